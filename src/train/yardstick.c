/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yardstick.c: the least of a few runs, since what disturbs a run of some milliseconds
 * says nothing of the seconds to come.
 */
#include "train/comparison.h"
#include "base/fail.h"

#include <math.h>

enum { RUNS = 2, STEPS = 2048, ROOM = 1 << 20 }; /* sequences begin with silence */
#define SECONDS 0.1				 /* a run, about */

int neap__yardstick(double *seconds, const struct neap__comparison *c)
{
	const struct neap__costs *known = &c->costs;
	double step = known->advance + known->record;
	int64_t steps = (int64_t)fmax(fmin(STEPS, SECONDS / fmax(step, 1e-9)), 4);
	struct neap__costs costs;

	*seconds = INFINITY;
	for (int i = 0; i < RUNS; i++) {
		NEAP_TRY(neap__netops_measure(
			&costs, c->one.net, c->one.batch, &c->one.objective, steps, ROOM));
		*seconds = fmin(*seconds, costs.advance + costs.record + costs.backward);
	}
	return 0;
}
