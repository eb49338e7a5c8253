/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turn_program.c: the rows of the linear program, and which tiers are near. The rows of a
 * turn_level are so many that they are added only if the last solution violates them (cutting
 * planes).
 */
#include "plan/bound/turn_program.h"

#include <math.h>
#include <stdlib.h>
#include "plan/bound/bound_memory.h"
#include "plan/bound/linear_program.h"
#include "plan/bound/stage_bound.h"
#include "plan/bound/turn_levels.h"
#include "plan/core/sizing.h"

#define GROUPS 2
#define PER_GROUP 5
/*
 * Rounds of solving and adding rows, rows added in a round per pool and form, and the violation
 * from which a row is added: in executions per step, and relative to the row's coefficients.
 * Chosen; the bound is valid after any number of rounds (bench/bound/gaps.py needs at most 11).
 */
#define ROUNDS 40
#define ROWS_A_ROUND 3
#define VIOLATED 1e-9
#define ROUNDING 1e-14

/*
 * The variables, in units of T steps and of `unit` seconds per step; TA ... SR of group 0. LA, LN:
 * late states, for the rows of all tiers and for those of the far tiers.
 */
enum { X1, X2, NM, NK, EX, LA, LN, TA, TV, SH, SW, SR };
static const double cost[NEAP__LINEAR_PROGRAM_VARS] = {[X1] = 1, [X2] = 1};

/* The tiers of a group as one. Seconds for a state, and for a tape in as long a transfer as fits.
 */
struct channel {
	double state_out, state_in, tape_out, tape_in;
	double state_lost, tape_lost; /* transfer overhead in seconds, each way */
	double capacity;	      /* bytes */
	int sync, shared;
};

struct turn_program {
	struct neap__linear_program lp;
	const struct neap_chain *c;
	double steps, pool, state, tape;	 /* bytes */
	double f, r, b;				 /* in units; f: the cheaper way forward */
	int groups, late;			 /* late 0: without late states, for the estimate */
	struct channel k[GROUPS];		 /* their times in units */
	double scale[NEAP__LINEAR_PROGRAM_VARS]; /* of a variable in the linear program */
	struct neap__turn_levels pools[GROUPS];	 /* [0]: fast memory; [1]: with the near tiers */
};

/* The number of a variable of group g. */
static int of(int variable, int g)
{
	return variable + g * PER_GROUP;
}

/* Seconds for one of n items of `bytes` each that travel together. */
static double seconds_each(const struct neap_tier_spec *tier, int out, uint64_t bytes, double n)
{
	double rate = out ? tier->write_rate : tier->read_rate;
	double fixed = out ? tier->write_fixed : tier->read_fixed;
	return fixed / n + (rate > 0 ? (double)bytes / rate : 0);
}

/* Seconds an item through two tiers: both rates add up, or the faster one counts (sync). */
static double together(double a, double b, int sync)
{
	if (sync)
		return fmin(a, b);
	return a > 0 && b > 0 ? 1 / (1 / a + 1 / b) : 0;
}

/* The tiers whose bits are set in `members` as one; times in units of `unit` seconds. */
static struct channel channel_of(
	const struct neap_problem *p, double pool, unsigned members, double unit)
{
	const struct neap_chain *c = &p->chain;
	struct channel k = {INFINITY, INFINITY, INFINITY, INFINITY, INFINITY, INFINITY, 0, 1, 0};
	double n = c->tape ? fmax(1, floor(pool / (double)c->tape)) : 1;
	uint64_t tape = neap__tape_sent(c);
	int count = 0, shared = 0;
	for (int i = 0; i < p->ntiers; i++)
		if (members >> i & 1)
			k.sync &= (p->tiers[i].flags & NEAP_TIER_SYNC) != 0;
	for (int i = 0; i < p->ntiers; i++) {
		const struct neap_tier_spec *t = &p->tiers[i];
		if (!(members >> i & 1))
			continue;
		k.state_out = together(k.state_out, seconds_each(t, 1, c->state, 1) / unit, k.sync);
		k.state_in = together(k.state_in, seconds_each(t, 0, c->state, 1) / unit, k.sync);
		k.tape_out = together(k.tape_out, seconds_each(t, 1, tape, n) / unit, k.sync);
		k.tape_in = together(k.tape_in, seconds_each(t, 0, tape, n) / unit, k.sync);
		k.state_lost = fmin(k.state_lost, neap_tier_lost(t, c->state) / unit);
		double fixed = neap_tier_lost(t, 0); /* of up to n tapes */
		k.tape_lost =
			fmin(k.tape_lost, (neap_tier_lost(t, tape) - fixed + fixed / n) / unit);
		k.capacity += t->capacity == NEAP_INFINITE ? INFINITY : (double)t->capacity;
		count++;
		shared = !(t->flags & NEAP_TIER_DUPLEX);
	}
	k.shared = count == 1 && shared;
	return k;
}

static void add(struct turn_program *x, struct neap__linear_program_row row)
{
	for (int j = 0; j < x->lp.vars; j++)
		row.g[j] /= x->scale[j];
	neap__linear_program_add(&x->lp, &row);
}

/*
 * X1 and X2 hold the computation, the overhead of transfers and the waits for synchronous
 * tiers. A transfer counts as one before the turn where it is issued before the turn: what a GET
 * brings takes room in fast memory from then on.
 */
static void add_compute(struct turn_program *x)
{
	struct neap__linear_program_row before = {.rhs = x->f}, after = {.rhs = x->r + x->b};
	before.g[X1] = after.g[X2] = 1;
	before.g[NM] = -(x->r - x->f);
	after.g[NM] = x->r;
	after.g[EX] = -x->f;
	for (int g = 0; g < x->groups; g++) {
		const struct channel *k = &x->k[g];
		double state_out = k->sync ? k->state_out : k->state_lost;
		double state_in = k->sync ? k->state_in : k->state_lost;
		double tape_out = k->sync ? k->tape_out : k->tape_lost;
		double tape_in = k->sync ? k->tape_in : k->tape_lost;
		before.g[of(TA, g)] = -(x->r - x->f) - tape_out;
		before.g[of(SH, g)] = -state_out;
		after.g[of(TA, g)] = x->r - tape_in;
		after.g[of(TV, g)] = -tape_out - tape_in;
		after.g[of(SW, g)] = -state_out;
		after.g[of(SR, g)] = -state_in;
	}
	add(x, before);
	add(x, after);
}

/* X1 and X2 hold what each channel carries; one channel for both ways holds the sum. */
static void add_channels(struct turn_program *x, int g)
{
	const struct channel *k = &x->k[g];
	struct neap__linear_program_row out1 = {0}, out2 = {0}, in = {0};
	out1.g[X1] = out2.g[X2] = in.g[X2] = 1;
	out1.g[of(TA, g)] = -k->tape_out;
	out1.g[of(SH, g)] = -k->state_out;
	out2.g[of(TV, g)] = -k->tape_out;
	out2.g[of(SW, g)] = -k->state_out;
	in.g[of(TA, g)] = in.g[of(TV, g)] = -k->tape_in;
	in.g[of(SR, g)] = -k->state_in;
	add(x, out1);
	if (k->shared) {
		for (int j = NM; j < NEAP__LINEAR_PROGRAM_VARS; j++)
			in.g[j] += out2.g[j];
	} else {
		add(x, out2);
	}
	add(x, in);
}

/* Where no buffer fits beside the tape in use, the transfers of a tier and computing alternate. */
static void add_staging(struct turn_program *x, int g)
{
	const struct channel *k = &x->k[g];
	struct neap__linear_program_row row = {.rhs = x->r};
	row.g[X2] = 1;
	row.g[NM] = x->r;
	for (int i = 0; i < x->groups; i++)
		row.g[of(TA, i)] = x->r;
	row.g[of(SR, g)] = -k->state_in;
	if (x->c->tape && x->pool < x->state + x->tape) {
		if (x->pool < 2 * x->tape) {
			row.g[of(TA, g)] -= k->tape_in;
			row.g[of(TV, g)] -= k->tape_in;
		}
		add(x, row);
	}
	if (x->c->tape && x->pool + x->state < 2 * x->tape) {
		row = (struct neap__linear_program_row){.rhs = x->b};
		row.g[X2] = 1;
		row.g[of(TA, g)] = row.g[of(TV, g)] = -k->tape_in;
		add(x, row);
	}
}

/* Fast memory, and tapes: at most T. */
static void add_limits(struct turn_program *x)
{
	struct neap__linear_program_row tapes = {.rhs = -1}, fast = {.rhs = -x->pool / x->steps};
	tapes.g[NM] = -1;
	for (int g = 0; g < x->groups; g++)
		tapes.g[of(TA, g)] = -1;
	add(x, tapes);
	fast.g[NM] = -x->tape;
	fast.g[NK] = -x->state;
	add(x, fast);
	if (x->c->flags & NEAP_CHAIN_CLASSIC) {
		struct neap__linear_program_row one = {.rhs = -1 / x->steps};
		one.g[NM] = -1;
		add(x, one);
	}
}

/* Each written state is read; tapes that stay; capacity. */
static void add_group_limits(struct turn_program *x, int g)
{
	struct neap__linear_program_row reads = {0}, stay = {0}, slow = {0};
	reads.g[of(SR, g)] = 1;
	reads.g[of(SH, g)] = reads.g[of(SW, g)] = -1;
	add(x, reads);
	if (x->c->flags & (NEAP_CHAIN_CLASSIC | NEAP_CHAIN_TAPES_STAY)) {
		stay.g[of(TA, g)] = stay.g[of(TV, g)] = -1;
		add(x, stay);
	}
	if (x->k[g].capacity < INFINITY) {
		slow.g[of(TA, g)] = -x->tape;
		slow.g[of(SH, g)] = -x->state;
		slow.rhs = -x->k[g].capacity / x->steps;
		add(x, slow);
	}
}

/*
 * Late states: at most those held at the turn, and at most those written after it. near: held in
 * fast memory or near tiers, and written to far ones.
 */
static void add_late(struct turn_program *x, int near)
{
	struct neap__linear_program_row held = {0}, written = {0};
	int late = near ? LN : LA;
	held.g[late] = written.g[late] = -1;
	held.g[NK] = 1;
	if (near)
		held.g[SH] = 1;
	for (int g = near; g < x->groups; g++)
		written.g[of(SW, g)] = 1;
	add(x, held);
	add(x, written);
}

/*
 * Row k of a level, in one of the two forms. near: the tiers of group 0 count as fast memory. late:
 * as of neap__turn_level_row.
 */
static struct neap__linear_program_row level_row(
	struct turn_program *x, int near, struct neap__turn_level *v, int form, int64_t k, int late)
{
	struct neap__turn_row u = neap__turn_level_row(&x->pools[near], v, form, k, late);
	struct neap__linear_program_row row = {.rhs = v->t - 1 - u.constant / x->steps};
	row.g[EX] = 1;
	row.g[NM] = u.nm - 1;
	row.g[NK] = u.nk;
	row.g[near ? LN : LA] = u.late;
	if (near) {
		row.g[TA] = u.nm - 1;
		row.g[SH] = u.nk;
	}
	for (int g = near; g < x->groups; g++) {
		row.g[of(TA, g)] = row.g[of(TV, g)] = v->t - 1;
		if (form == NEAP__COUNT_WRITES) {
			row.g[of(SH, g)] = v->sum;
			row.g[of(SW, g)] = v->sum_before;
		} else {
			row.g[of(SH, g)] = v->q[0] - v->before;
			row.g[of(SR, g)] = v->before;
		}
	}
	return row;
}

/* The executions per step and level by which a solution violates a row of level t; 0: rounding. */
static double violation(const struct neap__linear_program_row *row, double t, const double *at)
{
	double sum = row->rhs, most = fabs(row->rhs);
	for (int j = 0; j < NEAP__LINEAR_PROGRAM_VARS; j++) {
		sum -= row->g[j] * at[j];
		most = fmax(most, fabs(row->g[j]));
	}
	return sum > ROUNDING * most ? sum / t : 0;
}

/* Keeps the ROWS_A_ROUND most violated rows, the worst first. */
struct found_row {
	double violation;
	struct neap__linear_program_row row;
};

static void keep(struct found_row *found, const struct neap__linear_program_row *row, double much)
{
	int i = ROWS_A_ROUND;
	for (; i > 0 && found[i - 1].violation < much; i--)
		if (i < ROWS_A_ROUND)
			found[i] = found[i - 1];
	if (i < ROWS_A_ROUND)
		found[i] = (struct found_row){much, *row};
}

/* Adds the rows of a pool and a form that the solution `at` violates most; returns their number. */
static int add_violated(struct turn_program *x, int near, int form, const double *at)
{
	struct found_row found[ROWS_A_ROUND] = {0};
	double nk = (at[NK] + (near ? at[SH] : 0)) * x->steps;
	double late = at[near ? LN : LA] * x->steps;
	int n = 0;
	for (int i = 0; i < x->pools[near].count; i++) {
		struct neap__turn_level *v = &x->pools[near].level[i];
		int64_t rows[] = {-1, x->late ? neap__turn_level_tightest(v, form, nk, late) : 0};
		for (int k = 0; k < 2; k++) {
			/* Without late states a row is the stronger one, and cheap to compute. */
			struct neap__linear_program_row row =
				level_row(x, near, v, form, rows[k], 0);
			if (violation(&row, v->t, at) <= VIOLATED)
				continue;
			row = level_row(x, near, v, form, rows[k], x->late);
			double much = violation(&row, v->t, at);
			if (much > VIOLATED)
				keep(found, &row, much);
		}
	}
	for (; n < ROWS_A_ROUND && found[n].violation > 0; n++)
		add(x, found[n].row);
	return n;
}

/* The optimum over the rows of all levels, or less, in units. */
static double optimum(struct turn_program *x)
{
	double at[NEAP__LINEAR_PROGRAM_VARS] = {0}, best = 0;
	for (int round = 0, added = 1; round < ROUNDS && added > 0; round++) {
		best = fmax(best, neap__linear_program_bound(&x->lp, at));
		for (int j = 0; j < x->lp.vars; j++)
			at[j] /= x->scale[j];
		added = 0;
		for (int near = 0; near < GROUPS; near++)
			for (int form = 0; form < NEAP__COUNT_FORMS; form++)
				added += add_violated(x, near, form, at);
	}
	return best;
}

/*
 * Variables that count transfers are scaled by the seconds of one, if these are many: the channels
 * limit the counts to about their inverse.
 */
static void set_scale(struct turn_program *x)
{
	for (int j = 0; j < TA; j++)
		x->scale[j] = 1;
	for (int g = 0; g < x->groups; g++) {
		const struct channel *k = &x->k[g];
		x->scale[of(TA, g)] = x->scale[of(TV, g)] = fmax(1, fmax(k->tape_out, k->tape_in));
		x->scale[of(SH, g)] = x->scale[of(SW, g)] = x->scale[of(SR, g)] =
			fmax(1, fmax(k->state_out, k->state_in));
	}
}

/* Fills a program; `near` has the bits of the near tiers, 0: none. The rest is far, if any. */
static int fill(struct turn_program *x, const struct neap_problem *p, int64_t pool, unsigned near,
	double unit)
{
	const struct neap_chain *c = &p->chain;
	unsigned all = (1u << p->ntiers) - 1;
	x->c = c;
	x->steps = (double)c->steps;
	x->pool = (double)pool;
	x->state = (double)c->state;
	x->tape = (double)c->tape;
	x->f = fmin(c->advance, c->record) / unit;
	x->r = c->record / unit;
	x->b = c->backward / unit;
	x->groups = near && near != all ? 2 : 1;
	neap__linear_program_init(&x->lp, of(TA, x->groups), cost);
	x->k[0] = channel_of(p, x->pool, near ? near : all, unit);
	if (x->groups > 1)
		x->k[1] = channel_of(p, x->pool, all & ~near, unit);
	set_scale(x);
	add_compute(x);
	add_limits(x);
	for (int g = 0; g < x->groups; g++) {
		add_group_limits(x, g);
		add_channels(x, g);
		add_staging(x, g);
	}
	add_late(x, 0);
	if (near) {
		add_late(x, 1);
		if (x->pool + x->k[0].capacity < (double)INT64_MAX / 2) /* else a weaker bound */
			(void)neap__turn_levels_make(
				&x->pools[1], pool + (int64_t)x->k[0].capacity, c);
	}
	return neap__turn_levels_make(&x->pools[0], pool, c);
}

static double solve(const struct neap_problem *p, int64_t pool, unsigned near, int late)
{
	double unit = p->chain.record + p->chain.backward + p->chain.advance, bound = 0;
	struct turn_program *x = calloc(1, sizeof *x);
	if (!x) {
		neap__bound_note_memory();
		return 0;
	}
	x->late = late;
	if (fill(x, p, pool, near, unit) == 0)
		bound = optimum(x) * unit * x->steps;
	for (int i = 0; i < GROUPS; i++)
		neap__turn_levels_free(&x->pools[i]);
	free(x);
	return bound;
}

/* The smallest tier that is not among `near`; -1: none is bounded. */
static int smallest(const struct neap_problem *p, unsigned near)
{
	int best = -1;
	for (int i = 0; i < p->ntiers; i++)
		if (!(near >> i & 1) && p->tiers[i].capacity < NEAP_INFINITE &&
			(best < 0 || p->tiers[i].capacity < p->tiers[best].capacity))
			best = i;
	return best;
}

double neap__turn_program_bound(const struct neap_problem *p, int64_t pool, int late)
{
	const struct neap_chain *c = &p->chain;
	unsigned near = 0;
	double best = 0;
	if (!(c->record + c->backward + c->advance > 0) ||
		(!c->tape && !(c->flags & NEAP_CHAIN_CLASSIC)))
		return 0;
	for (int n = 1; n <= p->ntiers; n++) {
		int tier = smallest(p, near);
		if (tier < 0)
			break;
		near |= 1u << tier;
		best = fmax(best, solve(p, pool, near, late));
	}
	return near ? best : solve(p, pool, 0, late);
}
