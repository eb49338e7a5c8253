/* SPDX-License-Identifier: Apache-2.0 */
/*
 * predict_plan.c: simulates a plan without going through every unit of a long one. A schedule says
 * how many of the next units are alike; units in a steady state (steady_state.h) are skipped.
 */
#include "plan/core/predict_plan.h"

#include <errno.h>
#include <stdlib.h>
#include "base/fail.h"
#include "plan/core/steady_state.h"
#include "plan/core/schedule.h"
#include "plan/core/strategy.h"

/* Periods without a steady state after which the last one is repeated all the same. */
#define PATIENCE_MOST 4000

struct watch {
	struct neap_schedule *s;
	struct neap__clock clock;
	struct neap__steady steady;
	int64_t units, waited; /* of the present period; periods without a steady state */
};

/* Skips `periods` periods of `every` units. */
static void skip_periods(struct watch *w, int64_t periods, int64_t every)
{
	struct neap__clock *k = &w->clock;
	const struct neap__clock *b = neap__steady_skip(&w->steady, k, periods);
	for (int i = 0; i < k->highest; i++) {
		if (k->tickets[i].tier < 0)
			continue;
		k->tickets[i].place += periods * (k->tickets[i].place - b->tickets[i].place);
		k->tickets[i].start =
			neap__steady_move(k->tickets[i].start, b->tickets[i].start, periods);
		k->tickets[i].end =
			neap__steady_move(k->tickets[i].end, b->tickets[i].end, periods);
	}
	w->s->skip(w->s, periods * every);
	neap__steady_forget(&w->steady, k);
	w->waited = 0;
}

/* Between two units, or within one. */
static void pause_at(struct watch *w)
{
	int64_t every = 1, alike;
	if (!w->s->alike || (alike = w->s->alike(w->s, &every)) < 0)
		return;
	if (alike == 0) {
		neap__steady_forget(&w->steady, &w->clock);
		w->waited = 0;
		return;
	}
	if (w->steady.begun && ++w->units < every)
		return;
	if (w->steady.begun) {
		int64_t most = alike / every - 1;
		int64_t periods = neap__steady_end(&w->steady, &w->clock, 0, most);
		if (periods < 1 && most > 0 && neap__steady_watched(&w->steady) &&
			++w->waited > PATIENCE_MOST)
			periods = most;
		if (periods > 0)
			skip_periods(w, periods, every);
	}
	w->units = 0;
	neap__steady_begin(&w->steady, &w->clock);
}

static int drive(struct watch *w, struct neap_plan *plan)
{
	struct neap_action a;
	long double stall = 0;
	int rc;
	do {
		if (w->s->head == w->s->length)
			pause_at(w);
		rc = neap_schedule_next(w->s, &a);
		if (rc > 0)
			NEAP_TRY(neap__clock_step(&w->clock, &a));
	} while (rc > 0);
	for (int i = 0; i < NEAP_TIERS_MAX; i++)
		stall += w->clock.stall_write[i] + w->clock.stall_read[i];
	plan->makespan = (double)w->clock.now;
	plan->stall = (double)stall;
	plan->lost = (double)w->clock.lost;
	return rc;
}

int neap__predict(struct neap_plan *plan, const struct neap__strategy *row,
	const struct neap_problem *problem)
{
	struct watch *w = calloc(1, sizeof *w);
	if (!w)
		return neap__fail(-ENOMEM, "plan: out of memory");
	plan->chosen = row->name;
	int rc = neap__schedule_open_row(&w->s, row, problem, plan);
	if (rc == 0) {
		w->s->coarse = 1;
		neap__clock_init(&w->clock, problem);
		rc = drive(w, plan);
		neap_schedule_close(w->s);
	}
	free(w);
	return rc;
}
