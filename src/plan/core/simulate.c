/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simulate.c: one pass over the actions with a clock for the computation and one for each
 * channel. A transfer starts when it is issued and its channel is done with the earlier
 * transfers, a GET also not before the PUT of its place has ended. The seconds that a
 * transfer costs the computation (neap_tier_lost) pass as it is issued. Sums are long double:
 * a chain may have 10^9 actions.
 */
#include <string.h>
#include "base/fail.h"
#include "base/struct_size.h"
#include "plan/core/schedule.h"
#include "plan/core/simulate.h"
#include "plan/core/stage_sizes.h"
#include "plan/core/sizing.h"

static uint64_t bytes_of(const struct neap_problem *p, const struct neap_action *a)
{
	if (p->chain.stages)
		return neap__stages_bytes(p->chain.stages, a);
	uint64_t step = a->payload == NEAP_LOG ? p->chain.log : neap__tape_sent(&p->chain);
	return a->payload == NEAP_STATE ? p->chain.state : step * (uint64_t)(a->t1 - a->t0);
}

void neap__clock_init(struct neap__clock *clock, const struct neap_problem *problem)
{
	memset(clock, 0, sizeof *clock);
	clock->problem = problem;
	for (int i = 0; i < NEAP_TICKETS; i++)
		clock->tickets[i].tier = -1;
}

/* End of the PUT of a place that is still in flight, or 0. */
static long double put_end(const struct neap__clock *k, int tier, int payload, int64_t place)
{
	for (int i = 0, left = k->writing; i < k->highest && left > 0; i++) {
		if (k->tickets[i].tier < 0 || !k->tickets[i].write)
			continue;
		left--;
		if (k->tickets[i].tier == tier && k->tickets[i].payload == payload &&
			k->tickets[i].place == place)
			return k->tickets[i].end;
	}
	return 0;
}

/* The larger of two times. */
static long double later(struct neap__clock *k, long double a, long double b)
{
	neap__clock_note(k, a - b);
	return a > b ? a : b;
}

static void stall_until(struct neap__clock *k, int tier, int write, long double end)
{
	long double then = later(k, end, k->now);
	if (write)
		k->stall_write[tier] += then - k->now;
	else
		k->stall_read[tier] += then - k->now;
	k->now = then;
}

static void transfer(struct neap__clock *k, const struct neap_action *a)
{
	const struct neap_tier_spec *spec = &k->problem->tiers[a->tier - 1];
	int tier = a->tier - 1, write = a->kind == NEAP_PUT;
	uint64_t bytes = bytes_of(k->problem, a);
	long double *channel =
		write || !(spec->flags & NEAP_TIER_DUPLEX) ? &k->out[tier] : &k->in[tier];
	long double start = later(k, *channel, k->now);
	if (!write)
		start = later(k, put_end(k, tier, a->payload, a->place), start);
	k->writing += write - (k->tickets[a->ticket].tier >= 0 && k->tickets[a->ticket].write);
	*channel = start + (long double)neap_tier_seconds(spec, write, bytes);
	k->tickets[a->ticket].tier = tier;
	k->tickets[a->ticket].write = write;
	k->tickets[a->ticket].payload = a->payload;
	k->tickets[a->ticket].place = a->place;
	k->tickets[a->ticket].start = start;
	k->tickets[a->ticket].end = *channel;
	if (a->ticket >= k->highest)
		k->highest = a->ticket + 1;
	*(write ? &k->use[tier].written : &k->use[tier].read) += bytes;
	if (spec->flags & NEAP_TIER_SYNC)
		stall_until(k, tier, write, *channel);
	k->lost += (long double)neap_tier_lost(spec, bytes);
	k->now += (long double)neap_tier_lost(spec, bytes);
}

static int compute(struct neap__clock *k, long double *kind, double seconds, long double steps)
{
	long double time = (long double)seconds * steps;
	*kind += time;
	k->now += time;
	return 0;
}

/* One call of the model. */
static int call(
	struct neap__clock *k, long double *kind, double seconds, const struct neap_action *a)
{
	const struct neap_chain *c = &k->problem->chain;
	long double steps = (long double)(a->t1 - a->t0);
	compute(k, kind, c->call, 1);
	return compute(k, kind, seconds,
		a->t1 == c->steps ? steps - (long double)neap__last_missing(c) : steps);
}

/* Seconds of the steps of an action, each as long as it is. */
static int compute_stages(struct neap__clock *k, const struct neap_action *a)
{
	long double *kind = a->kind == NEAP_ADVANCE  ? &k->advance
			    : a->kind == NEAP_RECORD ? &k->record
						     : &k->backward;
	return compute(k, kind, neap__stages_seconds(&k->problem->chain, a), 1);
}

int neap__clock_step(struct neap__clock *k, const struct neap_action *a)
{
	const struct neap_chain *c = &k->problem->chain;
	int moves = a->kind == NEAP_PUT || a->kind == NEAP_GET;
	if (moves && (a->tier < 1 || a->tier > k->problem->ntiers))
		return neap__fail(NEAP_EILLEGAL, "simulate: tier %d does not exist", a->tier);
	if ((moves || a->kind == NEAP_WAIT) && (a->ticket < 0 || a->ticket >= NEAP_TICKETS))
		return neap__fail(NEAP_EILLEGAL, "simulate: no ticket %d", a->ticket);
	if (c->stages && moves && !neap__stages_hold(c, a))
		return neap__fail(NEAP_EILLEGAL, "simulate: no such state or tapes");
	if (c->stages && (a->kind <= NEAP_BACKWARD))
		return compute_stages(k, a);
	switch (a->kind) {
	case NEAP_ADVANCE:
		return call(k, &k->advance, c->advance, a);
	case NEAP_RECORD:
		return call(k, &k->record, a->payload == NEAP_LOG ? c->replay : c->record, a);
	case NEAP_BACKWARD:
		return call(k, &k->backward, c->backward, a);
	case NEAP_SAVE:
		return compute(k, &k->copies, c->slot_write, 1);
	case NEAP_LOAD:
		return compute(k, &k->copies, c->slot_read, 1);
	case NEAP__COMPUTE:
		compute(k, &k->advance, c->advance, (long double)a->t0);
		compute(k, &k->record, c->record, (long double)a->t1);
		compute(k, &k->backward, c->backward, (long double)a->t1);
		compute(k, &k->advance, c->call, (long double)a->slot);
		compute(k, &k->record, c->call, (long double)a->place);
		compute(k, &k->backward, c->call, (long double)a->place);
		compute(k, &k->copies, c->slot_write, (long double)a->slot);
		return compute(k, &k->copies, c->slot_read, (long double)a->place);
	case NEAP_PUT:
	case NEAP_GET:
		transfer(k, a);
		break;
	case NEAP_WAIT:
		if (k->tickets[a->ticket].tier >= 0)
			stall_until(k, k->tickets[a->ticket].tier, k->tickets[a->ticket].write,
				k->tickets[a->ticket].end);
		k->writing -= k->tickets[a->ticket].tier >= 0 && k->tickets[a->ticket].write;
		k->tickets[a->ticket].tier = -1;
		break;
	default:
		break;
	}
	return 0;
}

int neap_simulate(struct neap_simulation *given, const struct neap_problem *problem,
	struct neap_schedule *schedule)
{
	NEAP_NEED(given, problem, schedule);
	struct neap_simulation found = {.size = sizeof found}, *out = &found;
	struct neap__clock k;
	struct neap_action a;
	int rc;

	NEAP_TRY(neap__struct_size(
		given->size, sizeof given->size, sizeof found, "neap_simulation"));
	const struct neap_problem counted = neap__calls_counted(problem);
	neap__clock_init(&k, &counted);
	while ((rc = neap_schedule_next(schedule, &a)) > 0)
		NEAP_TRY(neap__clock_step(&k, &a));
	if (rc < 0)
		return rc;
	out->makespan = (double)k.now;
	out->advance = (double)k.advance;
	out->record = (double)k.record;
	out->backward = (double)k.backward;
	out->copies = (double)k.copies;
	out->lost = (double)k.lost;
	long double stall = 0;
	for (int i = 0; i < problem->ntiers; i++) {
		out->stall_write[i] = (double)k.stall_write[i];
		out->stall_read[i] = (double)k.stall_read[i];
		out->tiers[i] = k.use[i];
		stall += k.stall_write[i] + k.stall_read[i];
	}
	out->stall = (double)stall;
	neap__struct_give(given, out, sizeof *out);
	return 0;
}
