/* SPDX-License-Identifier: Apache-2.0 */
/*
 * level_memo.c: costs and counts of the parts that a schedule meets, top down. Each part is
 * decided once and remembered. By the hulls, P takes their centre split, or the levels below
 * where those may cost less; O writes or does not, whichever costs less. Where the dynamic
 * program filled tables, its decisions are taken. A stack of parts replaces the recursion,
 * which would be as deep as there are slots in use.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "base/grow.h"
#include "plan/levels/level_tables.h"
#include "plan/recompute/binomial.h"

#define VALUES_MOST 200000	     /* parts evaluated: 50 MB */
#define WALK_MOST ((int64_t)1 << 23) /* slots whose saves are counted one by one */
#define COST_MOST 4e18		     /* advances: two of them still fit into 63 bits */

/* l has 40 bits, m 19, k 4, the side 1. */
static uint64_t key_of(struct neap__level_part s)
{
	return (uint64_t)s.l << 24 | (uint64_t)s.m << 5 | (uint64_t)s.k << 1 | (uint64_t)s.side;
}

static uint64_t mix(uint64_t key)
{
	key *= 0x9e3779b97f4a7c15u;
	return key ^ key >> 29;
}

/* A live first state with no place left at its level makes a part of the levels below. */
static struct neap__level_part reduce(const struct neap__levels *x, struct neap__level_part s)
{
	while (s.side == NEAP__LEVEL_LIVE && s.m == 0 && s.k >= 0) {
		s.k--;
		s.m = s.k < 0 ? 0 : x->rows[s.k].unlimited ? 1 : x->problem.level[s.k].slots;
	}
	return s;
}

static struct neap__level_part live(const struct neap__levels *x, int k, int64_t m, int64_t l)
{
	return reduce(x, (struct neap__level_part){NEAP__LEVEL_LIVE, k, m, l});
}

/* O_k,m-1(l) for P_k,m, the right part. */
static struct neap__level_part right(
	const struct neap__levels *x, struct neap__level_part s, int64_t l)
{
	return live(x, s.k, x->rows[s.k].unlimited ? 1 : s.m - 1, l);
}

static const struct neap__level_value no_steps;
static const struct neap__level_value impossible = {.c.cost = INFINITY};

const struct neap__level_value *neap__level_memo_find(
	const struct neap__levels *x, struct neap__level_part s)
{
	s = reduce(x, s);
	if (s.l == 0)
		return &no_steps;
	if (s.k < 0)
		return &impossible;
	uint64_t key = key_of(s);
	for (uint64_t i = mix(key) & (uint64_t)x->memo.mask; x->memo.slot;
		i = (i + 1) & (uint64_t)x->memo.mask) {
		if (!x->memo.slot[i])
			return NULL;
		if (x->memo.value[x->memo.slot[i] - 1].key == key)
			return &x->memo.value[x->memo.slot[i] - 1];
	}
	return NULL;
}

static void memo_index(struct neap__level_memo *t, int64_t index)
{
	uint64_t i = mix(t->value[index].key) & (uint64_t)t->mask;
	while (t->slot[i])
		i = (i + 1) & (uint64_t)t->mask;
	t->slot[i] = index + 1;
}

static int memo_grow(struct neap__level_memo *t)
{
	int64_t *slot = NULL;
	if (neap__grow(&t->value, &t->room, t->count + 1, sizeof *t->value) == 0)
		slot = calloc(2 * (size_t)t->room, sizeof *slot);
	if (!slot)
		return neap__fail(-ENOMEM, "plan: out of memory");
	free(t->slot);
	t->slot = slot;
	t->mask = 2 * t->room - 1;
	for (int64_t i = 0; i < t->count; i++)
		memo_index(t, i);
	return 0;
}

static int memo_add(
	struct neap__level_memo *t, struct neap__level_part s, struct neap__level_value *v)
{
	if (t->count == t->room)
		NEAP_TRY(memo_grow(t));
	v->key = key_of(s);
	t->value[t->count] = *v;
	memo_index(t, t->count++);
	return 0;
}

void neap__level_memo_clear(struct neap__level_memo *t)
{
	free(t->value);
	free(t->slot);
	*t = (struct neap__level_memo){0};
}

/* Adds the counts of two parts that are done one after the other. */
static void join(struct neap__level_counts *sum, const struct neap__level_counts *a,
	const struct neap__level_counts *b)
{
	sum->cost = a->cost + b->cost;
	sum->advanced = a->advanced + b->advanced;
	for (int i = 0; i < NEAP__LEVELS_MOST; i++) {
		sum->written[i] = a->written[i] + b->written[i];
		sum->read[i] = a->read[i] + b->read[i];
		sum->peak[i] = a->peak[i] > b->peak[i] ? a->peak[i] : b->peak[i];
	}
}

/* O of Revolve's closed form. */
static void closed(const struct neap__levels *x, int64_t l, struct neap__level_value *v)
{
	const struct neap__level *level = &x->problem.level[0];
	struct neap__binomial s = neap__binomial(l + 1, level->slots);
	int64_t extra = neap__binomial_extra(&s), saves = 0;
	/* Free saves into slots are not counted: counting takes time for each slot. */
	if (level->write > 0 || level->tier > 0)
		saves = 1 + neap__binomial_saves(s);
	*v = (struct neap__level_value){.choice = 1};
	v->c.advanced = extra;
	v->c.written[0] = saves;
	v->c.read[0] = l;
	v->c.peak[0] = level->slots < l ? level->slots : l;
	v->c.cost =
		extra < 0 ? INFINITY
			  : (double)extra + (double)saves * level->write + (double)l * level->read;
}

/*
 * P that advances `step` steps. This and the functions below return 1, or 0 where the value
 * of *missing must be found first.
 */
static int split(const struct neap__levels *x, struct neap__level_part s, int64_t step,
	struct neap__level_value *v, struct neap__level_part *missing)
{
	struct neap__level_part a = right(x, s, s.l - step);
	struct neap__level_part b = {NEAP__LEVEL_SAVED, s.k, s.m, step - 1};
	const struct neap__level_value *right_value = neap__level_memo_find(x, a);
	const struct neap__level_value *left_value = neap__level_memo_find(x, b);
	if (!right_value || !left_value) {
		*missing = right_value ? b : a;
		return 0;
	}
	join(&v->c, &right_value->c, &left_value->c);
	v->c.cost += (double)step + x->problem.level[s.k].read;
	v->c.advanced += step;
	v->c.read[s.k]++;
	int64_t peak = 1 + right_value->c.peak[s.k];
	v->c.peak[s.k] = peak > left_value->c.peak[s.k] ? peak : left_value->c.peak[s.k];
	v->choice = step;
	return 1;
}

/* P of an unlimited level longer than `far`: as many equal splits as lead below it. */
static int equal_splits(const struct neap__levels *x, struct neap__level_part s,
	struct neap__level_value *v, struct neap__level_part *missing)
{
	const struct neap__hull_rows *rows = &x->rows[s.k];
	const struct neap__level *level = &x->problem.level[s.k];
	int64_t n = (s.l - rows->far + rows->stride - 1) / rows->stride;
	struct neap__level_part a = right(x, s, s.l - n * rows->stride);
	struct neap__level_part b = {NEAP__LEVEL_SAVED, s.k, s.m, rows->stride - 1};
	const struct neap__level_value *rest = neap__level_memo_find(x, a),
				       *one = neap__level_memo_find(x, b);
	if (!rest || !one) {
		*missing = rest ? b : a;
		return 0;
	}
	*v = *rest;
	v->c.cost += (double)n * (one->c.cost + (double)rows->stride + level->read + level->write) -
		     level->write;
	if (!(v->c.cost < COST_MOST))
		return 1;
	v->c.advanced += n * (one->c.advanced + rows->stride);
	for (int i = 0; i < NEAP__LEVELS_MOST; i++) {
		v->c.written[i] += n * one->c.written[i];
		v->c.read[i] += n * one->c.read[i];
		if (i != s.k && one->c.peak[i] > v->c.peak[i])
			v->c.peak[i] = one->c.peak[i];
	}
	v->c.written[s.k] += n - 1;
	v->c.read[s.k] += n;
	int64_t peak = n + rest->c.peak[s.k];
	v->c.peak[s.k] = peak > one->c.peak[s.k] ? peak : one->c.peak[s.k];
	v->choice = rows->stride;
	return 1;
}

/* P or O that leave the part to the levels below. */
static int lower_levels(const struct neap__levels *x, struct neap__level_part s,
	struct neap__level_value *v, struct neap__level_part *missing)
{
	struct neap__level_part below = live(x, s.k, 0, s.l);
	const struct neap__level_value *value = neap__level_memo_find(x, below);
	if (!value) {
		*missing = below;
		return 0;
	}
	v->c = value->c;
	v->choice = 0;
	if (s.side == NEAP__LEVEL_SAVED && v->c.peak[s.k] == 0)
		v->c.peak[s.k] = 1;
	return 1;
}

/* P. */
static int saved(const struct neap__levels *x, struct neap__level_part s,
	struct neap__level_value *v, struct neap__level_part *missing)
{
	struct neap__level_value other;
	int64_t choice = x->tables ? neap__level_dp_choice(x, s) : -1;
	if (choice >= 0)
		return choice == 0 ? lower_levels(x, s, v, missing)
				   : split(x, s, choice, v, missing);
	if (x->rows[s.k].unlimited && s.l > x->rows[s.k].far)
		return equal_splits(x, s, v, missing);
	if (!split(x, s, neap__levels_centre(x, s.k, s.m, s.l), v, missing))
		return 0;
	if (s.k == 0 ||
		neap__hull_at(neap__levels_o(x, s.k, 0), (double)s.l, x->steepest) >= v->c.cost)
		return 1;
	if (!lower_levels(x, s, &other, missing))
		return 0;
	if (other.c.cost < v->c.cost)
		*v = other;
	return 1;
}

/* O that saves the first state. */
static int writes(const struct neap__levels *x, struct neap__level_part s,
	struct neap__level_value *v, struct neap__level_part *missing)
{
	struct neap__level_part p = {NEAP__LEVEL_SAVED, s.k, s.m, s.l};
	const struct neap__level_value *value = neap__level_memo_find(x, p);
	if (!value) {
		*missing = p;
		return 0;
	}
	if (s.k > 0 && value->choice == 0) /* the saved state would not be read */
		return lower_levels(x, s, v, missing);
	*v = *value;
	v->c.cost += x->problem.level[s.k].write;
	v->c.written[s.k]++;
	v->choice = 1;
	return 1;
}

/* O. */
static int unsaved(const struct neap__levels *x, struct neap__level_part s,
	struct neap__level_value *v, struct neap__level_part *missing)
{
	struct neap__level_value other;
	int64_t choice = x->tables ? neap__level_dp_choice(x, s) : -1;
	if (choice >= 0)
		return choice ? writes(x, s, v, missing) : lower_levels(x, s, v, missing);
	if (x->closed && s.k == 0) {
		closed(x, s.l, v);
		return 1;
	}
	if (s.k == 0 || (x->rows[s.k].unlimited && s.l > x->rows[s.k].far))
		return writes(x, s, v, missing);
	double l = (double)s.l;
	double below = neap__hull_at(neap__levels_o(x, s.k, 0), l, x->steepest);
	double here = x->problem.level[s.k].write +
		      neap__hull_at(neap__levels_p(x, s.k, s.m), l, x->steepest);
	int write = here < below;
	if (!(write ? writes : lower_levels)(x, s, v, missing))
		return 0;
	if ((write ? below : here) >= v->c.cost)
		return 1;
	if (!(write ? lower_levels : writes)(x, s, &other, missing))
		return 0;
	if (other.c.cost < v->c.cost)
		*v = other;
	return 1;
}

struct stack {
	struct neap__level_part *s;
	int64_t count, room;
};

static int push(struct stack *stack, struct neap__level_part s)
{
	if (neap__grow(&stack->s, &stack->room, stack->count + 1, sizeof *stack->s) < 0)
		return neap__fail(-ENOMEM, "plan: out of memory");
	stack->s[stack->count++] = s;
	return 0;
}

static int evaluate_stack(struct neap__levels *x, struct stack *stack)
{
	int64_t most = x->problem.parts_most ? x->problem.parts_most : VALUES_MOST;
	while (stack->count > 0) {
		struct neap__level_part s = stack->s[stack->count - 1], missing;
		struct neap__level_value v;
		if (x->closed && s.k == 0 && x->problem.level[0].write > 0)
			x->counted_slots += x->problem.level[0].slots;
		/* Each part on the stack will be evaluated too. */
		if (x->memo.count + stack->count > most ||
			(x->counted_slots > WALK_MOST && x->memo.count > 2))
			return neap__fail(NEAP_EINFEASIBLE, "too many different stretches");
		if (neap__level_memo_find(x, s)) {
			stack->count--;
			continue;
		}
		if (!(s.side == NEAP__LEVEL_SAVED ? saved : unsaved)(x, s, &v, &missing)) {
			NEAP_TRY(push(stack, missing));
			continue;
		}
		if (!(v.c.cost < COST_MOST))
			v.c = impossible.c;
		NEAP_TRY(memo_add(&x->memo, s, &v));
		stack->count--;
	}
	return 0;
}

int neap__level_memo_evaluate(
	struct neap__levels *x, struct neap__level_part s, const struct neap__level_value **value)
{
	struct stack stack = {0};
	s = reduce(x, s);
	int rc = neap__level_memo_find(x, s) ? 0 : push(&stack, s);
	if (rc == 0)
		rc = evaluate_stack(x, &stack);
	free(stack.s);
	if (rc == 0)
		*value = neap__level_memo_find(x, s);
	return rc;
}
