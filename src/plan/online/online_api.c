/* SPDX-License-Identifier: Apache-2.0 */
/*
 * online_api.c: the public functions neap_online_*: a schedule for a chain whose caller says on
 * the way how many steps there are (online_schedule.h).
 */
#include <errno.h>
#include <stdlib.h>
#include "base/fail.h"
#include "plan/online/online_schedule.h"
#include "plan/online/online_tier.h"
#include "plan/core/sizing.h"

struct neap_online {
	struct neap_schedule s;
	struct neap__online x; /* without a tier */
	struct neap__online_tier y;
	int with_tier;
};

static int refill(struct neap_schedule *s)
{
	struct neap_online *o = s->self;
	return o->with_tier ? neap__online_tier_refill(&o->y, s) : neap__online_refill(&o->x, s);
}

static int init(struct neap_online *o, int64_t slots)
{
	struct neap__online_sizes sizes;
	neap__online_sizes(&sizes, &o->s.problem);
	o->with_tier = sizes.tier > 0;
	o->s.plan.tier = sizes.tier;
	if (o->with_tier)
		return neap__online_tier_init(&o->y, &o->s.problem.chain, &sizes);
	return neap__online_init(&o->x, &o->s.problem, slots);
}

int neap_online_create(struct neap_online **online, const struct neap_problem *problem)
{
	NEAP_NEED(online, problem);
	struct neap_problem p = *problem;
	p.chain.steps = 2; /* two need x_0 in a slot, as any more do */
	NEAP_TRY(neap_problem_check(&p));
	if (p.chain.stages || p.chain.join)
		return neap__fail(NEAP_EUSAGE, "online: steps that differ, or two chains");
	int64_t slots = neap__online_slots(&p);
	if (slots < 1)
		return neap__fail(NEAP_EINFEASIBLE,
			"online: one slot, for x_0, and a tape need %llu",
			(unsigned long long)(neap__fixed_bytes(&p, 0) +
					     (uint64_t)neap__bytes(&p, 1, 1)));
	struct neap_online *o = calloc(1, sizeof *o);
	if (!o)
		return neap__fail(-ENOMEM, "online: out of memory");
	o->s.problem = p;
	o->s.refill = refill;
	o->s.self = o;
	int rc = init(o, slots);
	if (rc < 0) {
		neap_online_free(o);
		return rc;
	}
	*online = o;
	return 0;
}

int neap_online_next(struct neap_online *o, struct neap_action *action)
{
	NEAP_NEED(o, action);
	return neap_schedule_next(&o->s, action);
}

/* Returns the forward action that was planned but not returned yet; NULL: none. */
static struct neap_action *pending(const struct neap_schedule *s)
{
	struct neap_action *last = s->head < s->length ? &s->queue[s->length - 1] : NULL;
	return last && (last->kind == NEAP_ADVANCE || last->kind == NEAP_RECORD) ? last : NULL;
}

/*
 * Cuts this action to the length of the chain and removes it if nothing remains: ADVANCE ends
 * before the last step, which is recorded. Returns the step at which it ends.
 */
static int64_t cut(struct neap_schedule *s, struct neap_action *a, int64_t steps)
{
	int64_t end = a->kind == NEAP_ADVANCE ? steps - 1 : steps;
	if (a->t1 > end)
		a->t1 = end > a->t0 ? end : a->t0;
	s->length -= a->t1 == a->t0;
	return a->t1;
}

static int finish(struct neap_online *o, int64_t at, int64_t steps)
{
	struct neap__online *x = &o->x;
	struct neap_action *next = pending(&o->s);
	int64_t told = o->with_tier ? o->y.steps : x->steps;
	int64_t from = o->with_tier ? o->y.from : x->from, to = o->with_tier ? o->y.at : x->at;
	if (told != INT64_MAX)
		return neap__fail(NEAP_EUSAGE, "online: the chain has %lld steps, as was told",
			(long long)told);
	if (at < from || at > (next ? from : to))
		return neap__fail(NEAP_EUSAGE, "online: step %lld is not in [%lld, %lld]",
			(long long)at, (long long)from, (long long)(next ? from : to));
	if (steps < at || steps > INT64_MAX / 4)
		return neap__fail(NEAP_EUSAGE, "online: %lld steps, of which %lld are done",
			(long long)steps, (long long)at);
	o->s.problem.chain.steps = steps;
	if (next)
		at = cut(&o->s, next, steps);
	if (o->with_tier) {
		neap__online_tier_finish(&o->y, at, steps);
		return 0;
	}
	x->at = x->from = at;
	x->steps = steps;
	return 0;
}

int neap_online_finish(struct neap_online *o, int64_t at, int64_t steps)
{
	NEAP_NEED(o);
	NEAP_TRY(neap__gate_enter(&o->s.gate, __func__, "chain"));
	int rc = finish(o, at, steps);
	neap__gate_leave(&o->s.gate);
	return rc;
}

int64_t neap__online_leaf(const struct neap_online *o)
{
	return neap__leaf_revolve_fit(o->with_tier ? &o->y.costs : &o->x.costs, 0);
}

int neap__online_reserve(struct neap_online *o)
{
	if (o->with_tier) {
		NEAP_TRY(neap__online_tier_reserve(&o->y));
	} else {
		NEAP_TRY(neap__leaf_revolve_reserve(&o->x.costs, o->x.steps));
		NEAP_TRY(neap__placement_reserve(&o->x.placement, o->x.costs.slots + 1));
	}
	o->s.room = 32;
	o->s.queue = malloc(o->s.room * sizeof *o->s.queue);
	return o->s.queue ? 0 : neap__fail(-ENOMEM, "online: out of memory");
}

void neap_online_free(struct neap_online *o)
{
	if (!o || neap__gate_enter(&o->s.gate, __func__, "chain") < 0)
		return;
	neap__online_fini(&o->x);
	neap__online_tier_fini(&o->y);
	free(o->s.queue);
	free(o);
}
