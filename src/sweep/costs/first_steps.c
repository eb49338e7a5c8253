/* SPDX-License-Identifier: Apache-2.0 */
/*
 * first_steps.c: times steps before the first run of a sweep whose options give no costs, for some
 * tens of milliseconds, and plans anew. Beside slow tiers seconds matter: what a transfer hides
 * behind. The backward steps cannot be timed before the turn, and count as in the options'
 * defaults: as twice a forward step. Of ranks, the slowest one's times count.
 */
#include "sweep/costs/first_steps.h"
#include "sweep/steps/copies.h"
#include "sweep/steps/counts.h"
#include "sweep/online_sweep.h"
#include "sweep/steps/piece_ends.h"
#include "sweep/sweep.h"
#include "base/fail.h"
#include "sys/clock.h"

/* Chosen: a first sweep of a second is delayed by at most a tenth. */
#define SECONDS 0.03 /* of each kind of step */
#define STEPS_MOST 4096
#define BLOCK_MOST 64 /* steps a call */

int neap__first_steps_due(const struct neap_sweep *s)
{
	const struct neap_sweep_options *o = &s->options;
	return s->problem.ntiers > 0 && !s->measured && o->advance == 0 && o->record == 0 &&
	       o->backward == 0 && !o->saved && !s->open && !s->journal.base.resumes;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Calls that are timed: of one step first, of more while they are short. */
struct timed_calls {
	double seconds, cold; /* of all calls; of the first, which finds cold caches */
	int64_t steps, cold_steps, block;
};

static void add_call(struct timed_calls *x, double seconds, int64_t steps)
{
	if (x->steps == 0)
		x->cold = seconds, x->cold_steps = steps;
	x->seconds += seconds;
	x->steps += steps;
	if (seconds < SECONDS / 8 && x->block < BLOCK_MOST)
		x->block *= 2;
}

/* Seconds a step; 0: none was taken. */
static double step_seconds(const struct timed_calls *x)
{
	if (x->steps > x->cold_steps)
		return (x->seconds - x->cold) / (double)(x->steps - x->cold_steps);
	return x->steps ? x->seconds / (double)x->steps : 0;
}

/* How far the next call may go: up to where the model says that the chain ends. */
static int block_end(struct neap_sweep *s, const struct timed_calls *x, int64_t *end)
{
	int answer = NEAP_GO_ON;
	*end = least(x->steps + x->block, STEPS_MOST);
	if (!s->ops.ended) {
		*end = least(*end, s->problem.chain.steps);
		return 0;
	}
	s->live_t = x->steps;
	NEAP_TRY(neap__online_ask_ahead(s, &answer));
	*end = x->steps + (answer == NEAP_GO_ON && x->steps < STEPS_MOST);
	return 0;
}

/* After a call that is timed: its work is done. */
static int finish_call(struct neap_sweep *s)
{
	struct neap__memory *m = &s->arena.memory;
	neap__fence_after(&m->fence, NULL, NULL, NULL, 0);
	neap__fence_wait(&m->fence);
	return neap__memory_answer(m);
}

static int time_advance(struct neap_sweep *s, double *seconds)
{
	struct timed_calls x = {.block = 1};
	int64_t end;
	while (x.seconds < SECONDS) {
		NEAP_TRY(block_end(s, &x, &end));
		if (end == x.steps)
			break;
		double start = neap__seconds();
		neap_detail_set(NULL);
		int rc = s->ops.advance(s->user, neap__live(s), x.steps, end, 1);
		NEAP_TRY(neap__step_answer("advance", rc));
		NEAP_TRY(finish_call(s));
		double took = neap__seconds() - start;
		NEAP_TRY(neap__agree_seconds(&s->agreement, &took));
		add_call(&x, took, end - x.steps);
	}
	s->measured_steps = x.steps;
	*seconds = step_seconds(&x);
	return 0;
}

/* Records steps that were passed; the tapes are dropped. */
static int time_record(struct neap_sweep *s, double *seconds)
{
	struct neap__arena *arena = &s->arena;
	uint64_t room = arena->bytes - arena->tapes, tape = s->problem.chain.tape;
	struct timed_calls x = {.block = 1};
	while (x.seconds < SECONDS) {
		int64_t t = x.steps, done = t,
			end = neap__tape_piece_end(t, least(t + x.block, s->measured_steps),
				s->measured_steps, s->record_block);
		size_t used = 0;
		if (s->fixed && tape && (uint64_t)(end - t) > room / tape)
			end = t + (int64_t)(room / tape);
		if (end == t || room < neap__worst(s))
			break;
		double start = neap__seconds();
		neap_detail_set(NULL);
		int rc = s->ops.record(s->user, neap__live(s), t, end, 0,
			arena->base + arena->tapes, room, &used, &done);
		NEAP_TRY(neap__step_answer("record", rc));
		NEAP_TRY(finish_call(s));
		if (used > room || done <= t || done > end)
			break; /* the run will say what is wrong */
		double took = neap__seconds() - start;
		NEAP_TRY(neap__agree_seconds(&s->agreement, &took));
		add_call(&x, took, done - t);
	}
	*seconds = step_seconds(&x);
	return 0;
}

int neap__first_steps_measure(struct neap_sweep *s)
{
	double advance = 0, record = 0;
	NEAP_TRY(neap__copy_load(s, s->x0, 0));
	NEAP_TRY(time_advance(s, &advance));
	NEAP_TRY(neap__copy_load(s, s->x0, 0));
	NEAP_TRY(time_record(s, &record));
	s->measured = 1;
	if (!(advance > 0))
		return 0;
	struct neap_sweep_options o = s->options;
	o.tiers = s->tiers;
	o.advance = advance;
	o.record = record > 0 ? record : advance;
	o.backward = 2 * advance;
	int rc = neap__sweep_plan_anew(s, &o);
	return rc == NEAP_EINFEASIBLE ? 0 : rc; /* the plan that is there fits */
}
