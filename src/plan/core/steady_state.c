/* SPDX-License-Identifier: Apache-2.0 */
/* steady_state.c: compares the last three periods, and moves a clock on by many. */
#include "plan/core/steady_state.h"

#include <math.h>

void neap__steady_forget(struct neap__steady *r, struct neap__clock *clock)
{
	r->known = r->begun = 0;
	clock->trace = NULL;
}

void neap__steady_begin(struct neap__steady *r, struct neap__clock *clock)
{
	r->latest = (r->latest + 1) % 3;
	struct neap__steady_period *now = &r->period[r->latest];
	now->trace = (struct neap__clock_trace){now->difference, 0, NEAP__STEADY_TRACE};
	clock->trace = &now->trace;
	r->begun = 1;
}

static const struct neap__steady_period *before(const struct neap__steady *r, int periods)
{
	return &r->period[(r->latest + 3 - periods) % 3];
}

/* Is a time before, at, or after the one it was compared to? */
static int side(long double difference, long double near)
{
	return difference > near ? 1 : difference < -near ? -1 : 0;
}

/* Did the last three periods change by the same amounts? */
static int steady(const struct neap__steady *r, long double near)
{
	const struct neap__steady_period *a = before(r, 2), *b = before(r, 1), *c = before(r, 0);
	if (a->signature != c->signature || b->signature != c->signature ||
		a->trace.count != c->trace.count || b->trace.count != c->trace.count ||
		c->trace.count == NEAP__STEADY_TRACE)
		return 0;
	for (int64_t i = 0; i < c->trace.count; i++) {
		long double x = a->difference[i], y = b->difference[i], z = c->difference[i];
		if (side(x, near) != side(z, near) || side(y, near) != side(z, near) ||
			fabsl((z - y) - (y - x)) > near)
			return 0;
	}
	long double first = b->clock.now - a->clock.now, second = c->clock.now - b->clock.now;
	return fabsl(first - second) <= near;
}

/* Periods until a comparison comes out the other way, `most` at most. */
static int64_t until_change(const struct neap__steady *r, long double near, int64_t most)
{
	const struct neap__steady_period *b = before(r, 1), *c = before(r, 0);
	for (int64_t i = 0; i < c->trace.count; i++) {
		long double at = c->difference[i], drift = at - b->difference[i];
		if (fabsl(drift) <= near || (at > 0) == (drift > 0))
			continue;
		long double periods = floorl(at / -drift) - 1;
		most = periods < (long double)most ? (int64_t)fmaxl(periods, 0) : most;
	}
	return most;
}

int64_t neap__steady_end(
	struct neap__steady *r, struct neap__clock *clock, uint64_t signature, int64_t most)
{
	struct neap__steady_period *now = &r->period[r->latest];
	long double near = neap__steady_tolerance(clock);
	clock->trace = NULL;
	now->clock = *clock;
	now->signature = signature;
	r->begun = 0;
	r->known += r->known < 3;
	return r->known == 3 && most > 0 && steady(r, near) ? until_change(r, near, most) : 0;
}

int neap__steady_watched(const struct neap__steady *r)
{
	return r->known == 3;
}

const struct neap__clock *neap__steady_skip(
	const struct neap__steady *r, struct neap__clock *k, int64_t periods)
{
	const struct neap__clock *b = &before(r, 1)->clock;
	for (int i = 0; i < NEAP_TIERS_MAX; i++) {
		k->out[i] = neap__steady_move(k->out[i], b->out[i], periods);
		k->in[i] = neap__steady_move(k->in[i], b->in[i], periods);
		k->stall_write[i] =
			neap__steady_move(k->stall_write[i], b->stall_write[i], periods);
		k->stall_read[i] = neap__steady_move(k->stall_read[i], b->stall_read[i], periods);
		k->use[i].written += (uint64_t)periods * (k->use[i].written - b->use[i].written);
		k->use[i].read += (uint64_t)periods * (k->use[i].read - b->use[i].read);
	}
	k->lost = neap__steady_move(k->lost, b->lost, periods);
	k->now = neap__steady_move(k->now, b->now, periods);
	return b;
}
