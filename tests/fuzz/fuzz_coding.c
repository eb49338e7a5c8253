/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_coding.c: texts that say how numbers become spikes. One that is accepted reads back from
 * what is written of it, and makes spikes of rows that hold zeros, large and tiny numbers.
 */
#include "fuzz_files.h"
#include "data/coding/coding.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

enum { FEATURES = 6, STEPS = 12 };
static const float rows[2][FEATURES] = {
	{0, 1, -1, FLT_MAX, FLT_MIN, 0.5f}, {-0.0f, 0.3f, 1e-20f, -FLT_MAX, FLT_MAX, 0.5f}};

static void make_spikes(const struct neap__coding *coding)
{
	const struct neap__coding_kind *kind = coding->kind;

	for (int64_t t = 0; t < STEPS; t++) {
		float now[FEATURES];
		int8_t spike[FEATURES];
		const struct neap__coding_step step = {.sample = 3,
			.step = t,
			.within = t % 5,
			.features = FEATURES,
			.now = now,
			.before = t ? rows[(t - 1) % 2] : NULL};
		memcpy(now, rows[t % 2], sizeof now);
		if (kind->prepare)
			kind->prepare(&coding->values, 5, FEATURES, now);
		kind->spikes(&coding->values, &step, spike);
		for (int f = 0; f < FEATURES; f++)
			FUZZ_CHECK(spike[f] == 0 || spike[f] == 1 ||
					   (spike[f] == -1 && neap__coding_channels(coding) == 2),
				"step %lld, feature %d: %d", (long long)t, f, spike[f]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), written[NEAP__CODING_TEXT], again[NEAP__CODING_TEXT];
	struct neap__coding coding, read;
	int rc = neap__coding_parse(&coding, text);

	fuzz_line(rc);
	free(text);
	if (rc < 0 || !coding.kind)
		return 0;
	neap__coding_text(written, &coding);
	FUZZ_CHECK(strlen(written) < sizeof written - 1, "'%s' is cut", written);
	FUZZ_CHECK(neap__coding_parse(&read, written) == 0, "'%s': %s", written, neap_detail());
	FUZZ_CHECK(strcmp(neap__coding_text(again, &read), written) == 0, "'%s', then '%s'",
		written, again);
	FUZZ_CHECK(coding.kind == read.kind &&
			   memcmp(&coding.values, &read.values, sizeof read.values) == 0,
		"'%s' reads as something else", written);
	neap__coding_seed(&coding, 7);
	make_spikes(&coding);
	return 0;
}
