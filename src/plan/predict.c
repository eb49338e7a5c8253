/* SPDX-License-Identifier: Apache-2.0 */
/*
 * predict: makespan and stall of a plan by simulation, without going through every
 * unit of a long one. A schedule says how many of the next units are alike; its clock
 * is a max-plus recurrence: every time is the larger of two earlier ones plus a
 * constant. While all those comparisons come out the same way the recurrence is
 * affine, and once three periods in a row differ by the same amounts all later ones
 * do, until the first comparison changes sign. So the units up to there are left out
 * and the clock is moved by as many times the last period's change: exact but for
 * rounding, at any length. A rhythm that drifts (writes a hair slower than what hides
 * them) is left out up to where its backlog first makes the computation wait.
 */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "schedule.h"
#include "simulate.h"
#include "strategy.h"

#define TRACE_MOST 2048	   /* comparisons of a period: 128 units and more of four each */
#define PATIENCE_MOST 4000 /* periods that may differ before the last one is taken */

struct period {
	struct neap__clock clock;	/* at its end */
	struct neap__clock_trace trace; /* what was compared in it */
	long double differences[TRACE_MOST];
};

struct watch {
	struct neap_schedule *s;
	struct neap__clock clock;
	struct period *last[3]; /* the latest first */
	int periods;		/* of them that are known */
	int64_t units, waited;	/* in the period at hand; periods without a rhythm */
};

static void forget(struct watch *w)
{
	w->periods = 0;
	w->units = 0;
	w->waited = 0;
}

/* Starts a new period; what was compared in the last one is kept. */
static void turn_over(struct watch *w)
{
	struct period *oldest = w->last[2];
	w->last[2] = w->last[1];
	w->last[1] = w->last[0];
	w->last[0] = oldest;
	w->periods += w->periods < 4;
	w->units = 0;
	oldest->trace = (struct neap__clock_trace){oldest->differences, 0, TRACE_MOST};
	w->clock.trace = &oldest->trace;
}

/* Times that differ by less are the same. */
static long double doubt(const struct watch *w)
{
	return 256 * LDBL_EPSILON * w->clock.now;
}

/* Did the last three periods change by the same amounts? */
static int steady(const struct watch *w)
{
	const struct period *a = w->last[2], *b = w->last[1], *c = w->last[0];
	long double near = doubt(w);
	if (w->periods < 4 || a->trace.count != b->trace.count ||
		b->trace.count != c->trace.count || c->trace.count == TRACE_MOST)
		return 0;
	for (int64_t i = 0; i < c->trace.count; i++) {
		long double x = a->differences[i], y = b->differences[i], z = c->differences[i];
		if ((x > 0) != (z > 0) || (y > 0) != (z > 0) || fabsl((z - y) - (y - x)) > near)
			return 0;
	}
	long double first = b->clock.now - a->clock.now, second = c->clock.now - b->clock.now;
	return fabsl(first - second) <= near;
}

/* Periods until a comparison comes out the other way, `most` at most. */
static int64_t until_change(const struct watch *w, int64_t most)
{
	const struct period *b = w->last[1], *c = w->last[0];
	long double near = doubt(w);
	for (int64_t i = 0; i < c->trace.count; i++) {
		long double at = c->differences[i], drift = at - b->differences[i];
		if (fabsl(drift) <= near || (at > 0) == (drift > 0))
			continue;
		long double periods = floorl(at / -drift) - 1;
		most = periods < (long double)most ? (int64_t)fmaxl(periods, 0) : most;
	}
	return most;
}

static long double move(long double now, long double before, int64_t periods)
{
	return now + (long double)periods * (now - before);
}

/* The clock after as many more periods like the last one. */
static void leap(struct watch *w, int64_t periods)
{
	struct neap__clock *k = &w->clock;
	const struct neap__clock *b = &w->last[1]->clock;
	for (int i = 0; i < NEAP_TIERS_MAX; i++) {
		k->out[i] = move(k->out[i], b->out[i], periods);
		k->in[i] = move(k->in[i], b->in[i], periods);
		k->stall_write[i] = move(k->stall_write[i], b->stall_write[i], periods);
		k->stall_read[i] = move(k->stall_read[i], b->stall_read[i], periods);
	}
	for (int i = 0; i < k->highest; i++) {
		if (k->tickets[i].tier < 0)
			continue;
		k->tickets[i].place += periods * (k->tickets[i].place - b->tickets[i].place);
		k->tickets[i].start = move(k->tickets[i].start, b->tickets[i].start, periods);
		k->tickets[i].end = move(k->tickets[i].end, b->tickets[i].end, periods);
	}
	k->now = move(k->now, b->now, periods);
}

/* At the end of a period: leaves out what is certain to go on like it. */
static void look(struct watch *w, int64_t alike, int64_t every)
{
	int64_t most = alike / every - 1, periods = 0;
	w->last[0]->clock = w->clock;
	if (most < 1)
		return;
	if (steady(w))
		periods = until_change(w, most);
	else if (w->periods >= 4 && ++w->waited > PATIENCE_MOST)
		periods = most;
	if (periods < 1)
		return;
	leap(w, periods);
	w->s->skip(w->s, periods * every);
	forget(w);
}

/* Between two units, or within one. */
static void pause(struct watch *w)
{
	int64_t every = 1, alike;
	if (!w->s->alike || (alike = w->s->alike(w->s, &every)) < 0)
		return;
	if (alike == 0) {
		forget(w);
		w->clock.trace = NULL;
		return;
	}
	if (w->periods == 0) {
		turn_over(w);
		return;
	}
	if (++w->units < every)
		return;
	look(w, alike, every);
	turn_over(w);
}

static int drive(struct watch *w, struct neap_plan *plan)
{
	struct neap_action a;
	long double stall = 0;
	int rc;
	do {
		if (w->s->head == w->s->length)
			pause(w);
		rc = neap_schedule_next(w->s, &a);
		if (rc > 0)
			NEAP_TRY(neap__clock_step(&w->clock, &a));
	} while (rc > 0);
	for (int i = 0; i < NEAP_TIERS_MAX; i++)
		stall += w->clock.stall_write[i] + w->clock.stall_read[i];
	plan->makespan = (double)w->clock.now;
	plan->stall = (double)stall;
	return rc;
}

int neap__predict(struct neap_plan *plan, const struct neap_problem *problem)
{
	struct watch *w = calloc(1, sizeof *w + 3 * sizeof(struct period));
	struct period *periods = (struct period *)(w + 1);
	if (!w)
		return neap__fail(-ENOMEM, "plan: out of memory");
	plan->chosen = plan->strategy;
	for (int i = 0; i < 3; i++)
		w->last[i] = &periods[i];
	int rc = neap_schedule_open(&w->s, problem, plan);
	if (rc == 0) {
		w->s->coarse = 1;
		neap__clock_init(&w->clock, problem);
		rc = drive(w, plan);
		neap_schedule_close(w->s);
	}
	free(w);
	return rc;
}
