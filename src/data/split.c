/* SPDX-License-Identifier: Apache-2.0 */
/* split.c: splits a data set into two lists of samples, by fraction or by speaker. */
#include "data/dataset.h"
#include "base/fail.h"
#include "base/philox.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Marks the samples of one speaker. */
static int by_speaker(const struct neap_dataset *set, int speaker, unsigned char *second)
{
	if (!set->speaker)
		return neap__fail(NEAP_EUSAGE,
			"'%s' has no speakers. Use --validation to hold out a fraction, or encode "
			"it with --speaker",
			set->name);
	if (speaker >= set->info.speakers)
		return neap__fail(NEAP_EUSAGE, "'%s' has no speaker %d; its speakers are 0 to %d",
			set->name, speaker, set->info.speakers - 1);
	for (int64_t i = 0; i < set->info.samples; i++)
		second[i] = set->speaker[i] == speaker;
	return 0;
}

/*
 * Marks `fraction` of the samples, as evenly over the classes as whole numbers allow: after k
 * classes round(fraction * samples so far) are marked. Within a class a Fisher-Yates shuffle
 * (Durstenfeld 1964) chooses.
 */
static int by_seed(
	const struct neap_dataset *set, double fraction, uint64_t seed, unsigned char *second)
{
	int64_t n = set->info.samples, seen = 0, taken = 0;
	int classes = set->info.classes > 0 ? set->info.classes : 1;
	int64_t *start = calloc((size_t)classes + 2, sizeof *start);
	int64_t *member = malloc((size_t)n * sizeof *member);
	if (!start || !member) {
		free(start);
		free(member);
		return neap__fail_errno(ENOMEM, "splitting '%s'", set->name);
	}
	for (int64_t i = 0; i < n; i++) {
		int label = neap_dataset_label(set, i);
		start[(label < 0 ? 0 : label) + 2]++;
	}
	for (int c = 0; c < classes; c++)
		start[c + 2] += start[c + 1];
	for (int64_t i = 0; i < n; i++) {
		int label = neap_dataset_label(set, i);
		member[start[(label < 0 ? 0 : label) + 1]++] = i;
	}
	for (int c = 0; c < classes; c++) {
		int64_t *m = member + start[c], size = start[c + 1] - start[c];
		seen += size;
		int64_t take = llround(fraction * (double)seen) - taken;
		take = take < 0 ? 0 : take > size ? size : take;
		for (int64_t i = 0; i < take; i++) {
			int64_t j = i + (int64_t)neap__random_below(seed, NEAP__STREAM_SPLIT,
						(uint32_t)c, (uint64_t)i, (uint64_t)(size - i));
			int64_t chosen = m[j];
			m[j] = m[i];
			second[chosen] = 1;
		}
		taken += take;
	}
	free(start);
	free(member);
	return 0;
}

/* Lists of the `n` samples that are not marked, and of those that are. 0 or -ENOMEM. */
static int divide(const unsigned char *mark, int64_t n, int64_t marked, int64_t **first,
	int64_t *nfirst, int64_t **second, int64_t *nsecond)
{
	int64_t *a = malloc((size_t)(n - marked) * sizeof *a);
	int64_t *b = malloc((size_t)(marked ? marked : 1) * sizeof *b);

	if (!a || !b) {
		free(a);
		free(b);
		return -ENOMEM;
	}
	*nfirst = *nsecond = 0;
	for (int64_t i = 0; i < n; i++)
		if (mark[i])
			b[(*nsecond)++] = i;
		else
			a[(*nfirst)++] = i;
	*first = a;
	*second = b;
	return 0;
}

int neap_dataset_split(const struct neap_dataset *set, double fraction, uint64_t seed, int speaker,
	int64_t **first, int64_t *nfirst, int64_t **second, int64_t *nsecond)
{
	NEAP_NEED(set, first, nfirst, second, nsecond);
	int64_t n = set->info.samples, marked = 0;
	if (speaker < 0 && !(fraction >= 0 && fraction < 1))
		return neap__fail(NEAP_EUSAGE,
			"the validation fraction is %g; it must be at least 0 and less than 1",
			fraction);
	unsigned char *mark = calloc((size_t)n, 1);
	if (!mark)
		return neap__fail_errno(ENOMEM, "splitting '%s'", set->name);
	int rc = speaker >= 0 ? by_speaker(set, speaker, mark) : by_seed(set, fraction, seed, mark);
	for (int64_t i = 0; i < n; i++)
		marked += mark[i];
	if (rc == 0 && marked == n)
		rc = neap__fail(NEAP_EUSAGE,
			"all samples of '%s' are in the validation split, none is left for "
			"training. %s",
			set->name,
			n == 1 ? "Pass --validation 0, or add samples" : "Lower --validation");
	if (rc == 0 && divide(mark, n, marked, first, nfirst, second, nsecond) < 0)
		rc = neap__fail_errno(ENOMEM, "splitting '%s'", set->name);
	free(mark);
	return rc;
}
