/* SPDX-License-Identifier: Apache-2.0 */
/* experiment_rows.c: cells of rows, fits and least plans (experiment.h). */
#include <math.h>
#include <string.h>
#include "base/fail.h"
#include "study/experiment.h"

const char *neap__row_text(const struct neap__study *study, int row, const char *column)
{
	return neap__points_text(study->points, row, column);
}

double neap__row_number(const struct neap__study *study, int row, const char *column)
{
	return neap__points_number(study->points, row, column);
}

int neap__row_is(const struct neap__study *study, int row, const char *column, const char *text)
{
	return strcmp(neap__points_text(study->points, row, column), text) == 0;
}

double neap__fit_power(const double *x, const double *y, int n)
{
	double sx = 0, sy = 0, sxx = 0, sxy = 0, count = 0;
	for (int i = 0; i < n; i++) {
		if (!(x[i] > 0 && y[i] > 0))
			continue;
		double u = log(x[i]), v = log(y[i]);
		sx += u;
		sy += v;
		sxx += u * u;
		sxy += u * v;
		count++;
	}
	double spread = count * sxx - sx * sx;
	return count < 2 || spread <= 0 ? NAN : (count * sxy - sx * sy) / spread;
}

int neap__plan_least(struct neap_plan *plan, struct neap_problem *problem, const char *strategy,
	const struct neap_params *params)
{
	problem->memory = 1;
	NEAP_TRY(neap_plan_make(plan, problem, strategy, params));
	if (plan->feasible || plan->least_bytes == 0)
		return 0;
	problem->memory = plan->least_bytes;
	return neap_plan_make(plan, problem, strategy, params);
}
