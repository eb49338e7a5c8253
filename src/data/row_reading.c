/* SPDX-License-Identifier: Apache-2.0 */
/* row_reading.c: sets what step_rows.c does with the rows of a data set (row_reading.h). */
#include "data/row_reading.h"
#include "data/coded_rows.h"
#include "data/step_rows.h"
#include "data/target_units.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int neap__rows_next(struct neap_dataset *set)
{
	struct neap_dataset_info *info = &set->info;

	if (set->next)
		return 0;
	if (!info->values)
		return neap__fail(NEAP_EUSAGE,
			"--next-step predicts numbers, but the inputs of '%s' are spikes. Remove "
			"--next-step",
			set->name);
	for (int64_t i = 0; i < info->samples; i++)
		if (set->ops->length(set, i) < 2)
			return neap__fail(NEAP_EUSAGE,
				"'%s': sample %lld has a single step, so --next-step has nothing "
				"to predict. Remove that sample",
				set->name, (long long)i);
	free(set->label);
	set->label = NULL;
	neap__names_free(set->class_names, set->nclass_names);
	set->class_names = NULL;
	set->nclass_names = 0;
	set->next = 1;
	info->target = NEAP_TARGET_SERIES;
	info->classes = info->inputs;
	info->steps--;
	return 0;
}

int neap__rows_scale(struct neap_dataset *set, double *shift, double *scale)
{
	free(set->shift);
	free(set->scale);
	set->shift = shift;
	set->scale = scale;
	if (shift && scale)
		return 0;
	free(shift);
	free(scale);
	set->shift = set->scale = NULL;
	return neap__fail_errno(ENOMEM, "'%s'", set->name);
}

int neap__rows_normalise(struct neap_dataset *set, const int64_t *index, int64_t count)
{
	size_t inputs = (size_t)neap__features(set);
	double *shift = calloc(inputs, sizeof *shift), *scale = calloc(inputs, sizeof *scale);
	int rc = shift && scale ? neap__step_moments(set, index, count, shift, scale) : 0;

	if (rc == 0)
		return neap__rows_scale(set, shift, scale);
	free(shift);
	free(scale);
	return rc;
}

/* A set with other targets is refused by whoever compares the two. */
static int copy_targets(struct neap_dataset *set, const struct neap_dataset *from)
{
	size_t bytes = (size_t)from->info.classes * sizeof(double);

	if (set->info.target != from->info.target || set->info.classes != from->info.classes)
		return 0;
	double *mean = malloc(bytes), *deviation = malloc(bytes);
	if (mean && deviation) {
		memcpy(mean, from->target_mean, bytes);
		memcpy(deviation, from->target_deviation, bytes);
	}
	return neap__target_units_take(set, mean, deviation);
}

int neap__rows_copy(struct neap_dataset *set, const struct neap_dataset *from)
{
	size_t bytes = (size_t)neap__features(from) * sizeof(double);
	char advice[NEAP__FEATURES_TEXT];
	int64_t most;

	if (from->next)
		NEAP_TRY(neap__rows_next(set));
	if (set->ops->adopt && from->class_names)
		return set->ops->adopt(
			set, (const char *const *)from->class_names, from->nclass_names);
	const struct neap__coding coding = neap__rows_coding(from, &most);
	if (!set->coded)
		NEAP_TRY(neap__rows_encode(set, &coding, most));
	if (from->target_mean)
		NEAP_TRY(copy_targets(set, from));
	if (!from->shift && !from->coded)
		return 0;
	if (neap__features(set) != neap__features(from))
		return neap__fail(NEAP_EUSAGE, "'%s' has %d features, but '%s' has %d. %s",
			set->name, neap__features(set), from->name, neap__features(from),
			neap__features_advice(advice, set, (const char *const *)from->feature_names,
				from->nfeature_names));
	if (!from->shift)
		return 0;
	double *shift = malloc(bytes), *scale = malloc(bytes);
	if (shift && scale) {
		memcpy(shift, from->shift, bytes);
		memcpy(scale, from->scale, bytes);
	}
	return neap__rows_scale(set, shift, scale);
}
