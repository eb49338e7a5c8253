/* SPDX-License-Identifier: Apache-2.0 */
/* experiment_curves.c: series of figures from rows (experiment.h). */
#include <math.h>
#include "study/experiment.h"

/* A strategy's rows as a series; key and look as of neap__figure_series. */
static void draw_curve(struct neap__study *study, struct neap__figure *figure,
	const struct neap__curve *curve, const char *strategy, const char *key, int look)
{
	neap__figure_series(figure, strategy, 0, key, look);
	for (int i = 0; i < neap__points_count(study->points); i++)
		if (neap__row_is(study, i, "axis", curve->axis) &&
			neap__row_is(study, i, "strategy", strategy))
			neap__figure_xy(figure, neap__row_number(study, i, curve->x),
				neap__row_number(study, i, curve->y) / curve->unit /
					(curve->each ? neap__row_number(study, i, "steps") : 1));
}

void neap__curves_draw(struct neap__study *study, struct neap__figure *figure,
	const char *const *strategies, const struct neap__curve *measured,
	const struct neap__curve *model)
{
	for (int i = 0; strategies[i]; i++) {
		if (model)
			draw_curve(study, figure, model, strategies[i], "", NEAP__LINE);
		draw_curve(study, figure, measured, strategies[i], i ? NULL : "bptt (store-all)",
			NEAP__MARKS);
	}
}

int neap__row_at_end(const struct neap__study *study, const char *axis, const char *column,
	const char *strategy, int last)
{
	int found = -1;
	for (int i = 0; i < neap__points_count(study->points); i++) {
		double at = neap__row_number(study, i, column);
		double best = found < 0 ? at : neap__row_number(study, found, column);
		if (neap__row_is(study, i, "axis", axis) &&
			neap__row_is(study, i, "strategy", strategy) &&
			isfinite(neap__row_number(study, i, "seconds")) &&
			(found < 0 || (last ? at > best : at < best)))
			found = i;
	}
	return found;
}
