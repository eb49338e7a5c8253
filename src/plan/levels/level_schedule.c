/* SPDX-License-Identifier: Apache-2.0 */
/* level_schedule.c: the recursion as a stack of left parts; plans from counts of transfers. */
#include "plan/levels/level_schedule.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/checked.h"
#include "base/fail.h"
#include "base/grow.h"
#include "plan/core/sizing.h"

/*
 * A left part to come: l + 1 steps from step t0 on, its first state saved at `place` of level
 * k, m places of the level free. `count` equal parts one behind the other, at places one
 * behind the other, are one entry. part: the part as Revolve sees it, on a closed level 0.
 */
struct left {
	int64_t t0, l, m, place, count;
	struct neap__binomial part;
	int k;
};

/* Of the part at hand: its first state is live, or saved; DONE: the next one is popped. */
enum level_standing { DONE, LIVE, SAVED };

struct level_recursion {
	struct neap__level_schedule how;
	enum level_standing standing;
	struct left now; /* the part at hand; place and part where it is saved */
	struct left *stack;
	int64_t depth, room;
	int64_t used[NEAP__LEVELS_MOST]; /* places of a level, closed ones not counted */
};

static int closed(const struct level_recursion *x, int k)
{
	return k == 0 && x->how.closed;
}

/* The tier of a place; *place becomes the number of the place on that tier. */
static int tier_of(const struct level_recursion *x, int k, int64_t *place)
{
	const struct neap__level_depths *d = &x->how.depths;
	if (!closed(x, k))
		return x->how.level[k].tier;
	int64_t from = 0;
	for (int i = 0; i < d->count - 1 && *place >= d->row[i].upto; i++)
		from = d->row[i].upto;
	int i = 0;
	while (i < d->count - 1 && *place >= d->row[i].upto)
		i++;
	*place -= from;
	return d->row[i].tier;
}

static void transfer(struct neap_schedule *s, uint8_t kind, int tier, int64_t t, int64_t place)
{
	neap__emit(s, &(struct neap_action){.kind = kind,
			      .tier = (uint16_t)tier,
			      .slot = NEAP_LIVE,
			      .t0 = t,
			      .t1 = t,
			      .place = place});
}

static void store(struct neap_schedule *s, int k, int64_t place, int64_t t)
{
	int tier = tier_of(s->self, k, &place);
	if (tier == 0) {
		neap__save(s, place, t);
		return;
	}
	transfer(s, NEAP_PUT, tier, t, place);
	neap__wait(s, 0);
}

static void release(struct neap_schedule *s, int k, int64_t place, int64_t t)
{
	int tier = tier_of(s->self, k, &place);
	if (tier == 0)
		neap__drop(s, place, t);
	else
		transfer(s, NEAP_FORGET, tier, t, place);
}

static int grow(struct level_recursion *x, int64_t room)
{
	int rc = neap__grow(&x->stack, &x->room, room, sizeof *x->stack);
	return rc < 0 ? neap__fail(rc, "schedule: out of memory") : 0;
}

static int64_t tables(struct neap_schedule *s, int64_t room)
{
	struct level_recursion *x = s->self;
	NEAP_TRY(grow(x, room));
	return x->room;
}

static int push(struct level_recursion *x, const struct left *part)
{
	struct left *top = x->depth ? &x->stack[x->depth - 1] : NULL;
	if (top && !closed(x, part->k) && top->k == part->k && top->l == part->l &&
		x->how.level[part->k].slots == INT64_MAX &&
		part->t0 == top->t0 + top->count * (top->l + 1) &&
		part->place == top->place + top->count) {
		top->count++;
		return 0;
	}
	NEAP_TRY(grow(x, x->depth + 1));
	x->stack[x->depth++] = *part;
	return 0;
}

/* Takes the topmost left part off the stack. */
static struct left pop(struct level_recursion *x)
{
	struct left *top = &x->stack[x->depth - 1], part = *top;
	part.t0 += (part.count - 1) * (part.l + 1);
	part.place += part.count - 1;
	part.count = 1;
	if (--top->count == 0)
		x->depth--;
	return part;
}

/* Reverses step t, whose state is live, and reads the first state of the next left part. */
static int leaf(struct neap_schedule *s, int64_t t)
{
	struct level_recursion *x = s->self;
	neap__record(s, t, t + 1);
	if (t + 1 == s->problem.chain.steps)
		neap__emit_turn(s);
	x->standing = DONE;
	if (x->depth == 0) {
		neap__backward(s, t, t + 1);
		return 0;
	}
	x->now = pop(x);
	x->standing = SAVED;
	int64_t place = x->now.place, t0 = x->now.t0;
	int tier = tier_of(x, x->now.k, &place);
	if (tier > 0)
		transfer(s, NEAP_GET, tier, t0, place);
	neap__backward(s, t, t + 1);
	if (tier > 0)
		neap__wait(s, 0);
	else
		neap__load(s, place, t0);
	return 0;
}

/* Goes on with a part whose first state is live only. */
static void go_live(struct level_recursion *x, int k, int64_t m, int64_t t0, int64_t l)
{
	while (m == 0 && k > 0) {
		k--;
		m = x->how.level[k].slots;
	}
	x->now = (struct left){.k = k, .m = m, .t0 = t0, .l = l, .count = 1};
	x->standing = LIVE;
}

static int step_live(struct neap_schedule *s)
{
	struct level_recursion *x = s->self;
	struct left *now = &x->now;
	if (now->l == 0)
		return leaf(s, now->t0);
	if (now->m == 0)
		return neap__fail(NEAP_EUSAGE, "schedule: the plan is not one of this problem");
	if (closed(x, now->k)) {
		now->part = neap__binomial(now->l + 1, now->m);
	} else if (!x->how.writes(x->how.user, now->k, now->m, now->l, now->t0)) {
		go_live(x, now->k, 0, now->t0, now->l);
		return 0;
	} else {
		now->place = x->used[now->k]++;
	}
	store(s, now->k, now->place, now->t0);
	x->standing = SAVED;
	return 0;
}

/* Revolve's split: the right part's start goes one place deeper. */
static int step_closed(struct neap_schedule *s)
{
	struct level_recursion *x = s->self;
	struct left now = x->now;
	if (now.part.l == 1) {
		release(s, 0, now.place, now.t0);
		return leaf(s, now.t0);
	}
	int64_t y = neap__binomial_split(&now.part), rest = now.part.l - y;
	struct left part = now;
	part.part = y >= 2 ? neap__binomial_left(&now.part, y) : (struct neap__binomial){.l = 1};
	part.l = y - 1;
	NEAP_TRY(push(x, &part));
	neap__advance(s, now.t0, now.t0 + y);
	if (rest == 1)
		return leaf(s, now.t0 + y);
	x->now.t0 += y;
	x->now.l = rest - 1;
	x->now.part = neap__binomial_right(&now.part, y);
	x->now.place++;
	store(s, 0, x->now.place, x->now.t0);
	return 0;
}

static int step_saved(struct neap_schedule *s)
{
	struct level_recursion *x = s->self;
	struct left now = x->now;
	if (closed(x, now.k))
		return step_closed(s);
	int64_t y = now.l ? x->how.split(x->how.user, now.k, now.m, now.l, now.t0) : 0;
	if (y == 0) {
		release(s, now.k, now.place, now.t0);
		x->used[now.k]--;
		go_live(x, now.l ? now.k : 0, 0, now.t0, now.l);
		return 0;
	}
	struct left part = now;
	part.l = y - 1;
	NEAP_TRY(push(x, &part));
	neap__advance(s, now.t0, now.t0 + y);
	int64_t m = x->how.level[now.k].slots == INT64_MAX ? now.m : now.m - 1;
	go_live(x, now.k, m, now.t0 + y, now.l - y);
	return 0;
}

static int refill(struct neap_schedule *s)
{
	struct level_recursion *x = s->self;
	while (s->length == 0 && x->standing != DONE)
		NEAP_TRY(x->standing == LIVE ? step_live(s) : step_saved(s));
	return 0;
}

static void fini(struct neap_schedule *s)
{
	struct level_recursion *x = s->self;
	free(x->stack);
	if (x->how.free)
		x->how.free(x->how.user);
}

int neap__level_schedule_open(struct neap_schedule *s, const struct neap__level_schedule *how)
{
	struct level_recursion *x = s->self = calloc(1, sizeof *x);
	if (!x) {
		if (how->free)
			how->free(how->user);
		return neap__fail(-ENOMEM, "schedule: out of memory");
	}
	x->how = *how;
	s->refill = refill;
	s->fini = fini;
	s->tables = tables;
	int top = how->levels - 1;
	go_live(x, top > 0 ? top : 0, top < 0 ? 0 : how->level[top].slots, 0,
		s->problem.chain.steps - 1);
	return 0;
}

static int solved_writes(void *user, int k, int64_t m, int64_t l, int64_t t)
{
	(void)t;
	return neap__levels_writes(user, k, m, l);
}

static int64_t solved_split(void *user, int k, int64_t m, int64_t l, int64_t t)
{
	(void)t;
	return neap__levels_split(user, k, m, l);
}

static void solved_free(void *user)
{
	neap__levels_free(user);
}

int neap__level_schedule_solved(struct neap_schedule *s, struct neap__levels *solved)
{
	const struct neap__levels_problem *levels = neap__levels_in_use(solved);
	struct neap__level_schedule how = {.levels = levels->count,
		.closed = neap__levels_closed(solved),
		.depths = {.count = 1, .row = {{INT64_MAX, levels->level[0].tier}}},
		.writes = solved_writes,
		.split = solved_split,
		.free = solved_free,
		.user = solved};
	for (int k = 0; k < levels->count; k++) {
		how.level[k].tier = levels->level[k].tier;
		how.level[k].slots = levels->level[k].slots;
		if (levels->level[k].slots >= levels->length && !(k == 0 && how.closed))
			how.level[k].slots = INT64_MAX;
	}
	return neap__level_schedule_open(s, &how);
}

double neap__level_schedule_write(const struct neap_problem *p, int tier)
{
	if (tier == 0)
		return p->chain.slot_write;
	const struct neap_tier_spec *spec = &p->tiers[tier - 1];
	return fmax(
		neap_tier_seconds(spec, 1, p->chain.state), neap_tier_lost(spec, p->chain.state));
}

double neap__level_schedule_read(const struct neap_problem *p, int tier)
{
	if (tier == 0)
		return p->chain.slot_read;
	const struct neap_tier_spec *spec = &p->tiers[tier - 1];
	double read = neap_tier_seconds(spec, 0, p->chain.state);
	return spec->flags & NEAP_TIER_SYNC ? read
					    : fmax(neap_tier_lost(spec, p->chain.state),
						      read - p->chain.backward - p->chain.call);
}

void neap__level_schedule_refuse(struct neap_plan *plan, const struct neap_problem *problem)
{
	int64_t least = neap__binomial_slots_least(problem->chain.steps);
	uint64_t tape = problem->chain.tape, best;
	best = neap__fixed_bytes(problem, 0) + (uint64_t)neap__bytes(problem, least, 1);
	for (int tier = 1; tier <= problem->ntiers; tier++)
		if (neap__places(problem, tier) >= least &&
			neap__fixed_bytes(problem, tier) + tape < best)
			best = neap__fixed_bytes(problem, tier) + tape;
	neap__refuse(plan, best > problem->memory ? best : 0, "%lld place%s and a tape need %llu",
		(long long)least, least == 1 ? "" : "s", (unsigned long long)best);
}

/* *bytes += states * state. 1 where that exceeds 63 bits, else 0. */
static int add_states(uint64_t *bytes, int64_t states, uint64_t state)
{
	uint64_t more;
	return neap__mul_u64(&more, (uint64_t)states, state) ||
	       neap__add_u64(bytes, *bytes, more) || *bytes > INT64_MAX;
}

/* Adds a tier's traffic to its use. 0: the bytes are too many. */
static int add_traffic(
	struct neap_tier_use *use, const struct neap__level_traffic *x, uint64_t state)
{
	return !add_states(&use->peak_bytes, x->peak, state) &&
	       !add_states(&use->written, x->written, state) &&
	       !add_states(&use->read, x->read, state);
}

void neap__level_schedule_plan(struct neap_plan *plan, const struct neap_problem *problem,
	int64_t advanced, const struct neap__level_traffic *traffic, int count)
{
	const struct neap_chain *c = &problem->chain;
	long double copies = 0, stall = 0, lost = 0;
	uint64_t staging = 0;
	int64_t slots = 0;
	int tier = 0;
	memset(plan->tiers, 0, sizeof plan->tiers);
	for (int i = 0; i < count; i++) {
		const struct neap__level_traffic *x = &traffic[i];
		long double time =
			(long double)x->written * neap__level_schedule_write(problem, x->tier) +
			(long double)x->read * neap__level_schedule_read(problem, x->tier);
		if (x->tier == 0) {
			copies += time;
			slots = x->peak;
			continue;
		}
		if (x->written == 0)
			continue;
		long double costs = (long double)(x->written + x->read) *
				    neap_tier_lost(&problem->tiers[x->tier - 1], c->state);
		lost += costs;
		stall += time - costs;
		tier = tier ? tier : x->tier;
		staging += problem->tiers[x->tier - 1].staging;
		if (!add_traffic(&plan->tiers[x->tier - 1], x, c->state)) {
			memset(plan->tiers, 0, sizeof plan->tiers);
			neap__refuse(plan, 0, "more than 2^63 bytes travel");
			return;
		}
	}
	neap__accept(plan, problem, 0, slots, neap__bytes(problem, slots, 1));
	plan->tier = tier;
	plan->arena_bytes += staging;
	plan->peak_bytes += staging;
	plan->advance_steps = advanced;
	plan->record_steps = c->steps;
	plan->stall = (double)stall;
	plan->lost = (double)lost;
	plan->makespan = (double)((long double)advanced * c->advance +
				  (long double)c->steps * ((long double)c->record + c->backward) +
				  neap__level_schedule_calls(c) + copies + lost + stall);
}
