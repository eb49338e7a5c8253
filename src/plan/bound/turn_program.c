/* SPDX-License-Identifier: Apache-2.0 */
/* turn_program.c: the rows of the linear program, and which tiers are near. */
#include "plan/bound/turn_program.h"

#include <math.h>
#include <stdlib.h>
#include "plan/bound/linear_program.h"
#include "plan/bound/phi_levels.h"
#include "plan/bound/stage_bound.h"
#include "plan/core/sizing.h"

#define CELLS_MOST 400000 /* entries of Phi that are computed: each search asks for a bound */
#define LEVELS_SINGLE 40  /* levels that all get rows; beyond them every tenth part more */
#define LEVELS_FACTOR 1.1
#define ROWS_LEVELS 632 /* rows of each set of levels are begun up to here */
#define GROUPS 2
#define PER_GROUP 5

/* The variables, in units of T steps and of `unit` seconds a step; TA ... SR of group 0. */
enum { X1, X2, NM, NK, EX, TA, TV, SH, SW, SR };

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
	double steps, pool, state, tape; /* bytes */
	double f, r, b;			 /* in units; f: the cheaper way forward */
	int groups;
	struct channel k[GROUPS]; /* their times in units */
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

/* Phi_t, Phi_{t-1}, Phi_{t-2} and the sums of Phi_j, j < t and j < t - 1. */
struct terms {
	double t, now, last, before, sum, sum_before;
};

/* Rows of a level. near: the tiers of group 0 count as fast memory, which is a part of `k`. */
static void add_level_rows(struct turn_program *x, const struct terms *k, int near)
{
	for (int form = 0; form < 4; form++) {
		struct neap__linear_program_row row = {.rhs = k->t - 1};
		row.g[EX] = 1;
		row.g[NM] = -1;
		if (near)
			row.g[TA] = -1;
		if (form & 1) {
			row.g[NM] += k->t;
			row.g[NK] = k->last;
			if (near) {
				row.g[TA] += k->t;
				row.g[SH] = k->last;
			}
		} else {
			row.rhs -= k->now / x->steps;
		}
		for (int g = near; g < x->groups; g++) {
			row.g[of(TA, g)] = row.g[of(TV, g)] = k->t - 1;
			if (form & 2) {
				row.g[of(SH, g)] = k->sum;
				row.g[of(SW, g)] = k->sum_before;
			} else {
				row.g[of(SH, g)] = k->last - k->before;
				row.g[of(SR, g)] = k->before;
			}
		}
		add(x, row);
	}
}

/* The terms of level t where no slot fits: Phi_t = t leaf. */
static struct terms without_slots(double t, double leaf)
{
	return (struct terms){.t = t,
		.now = t * leaf,
		.last = (t - 1) * leaf,
		.before = fmax(t - 2, 0) * leaf,
		.sum = t * (t - 1) / 2 * leaf,
		.sum_before = fmax((t - 1) * (t - 2) / 2, 0) * leaf};
}

static void next_terms(struct terms *k, struct neap__phi_levels *levels)
{
	neap__phi_levels_next(levels);
	k->t = (double)levels->t;
	k->sum_before = k->sum;
	k->sum += k->now;
	k->before = k->last;
	k->last = k->now;
	k->now = (double)levels->value[0];
}

/* Adds the rows of levels, until Phi grows by T from one level to the next. */
static void add_levels(struct turn_program *x, struct neap__phi_levels *levels, int near)
{
	struct terms k = {0};
	double next = 1;
	int most = x->lp.rows + ROWS_LEVELS;
	if (most > NEAP__LINEAR_PROGRAM_ROWS)
		most = NEAP__LINEAR_PROGRAM_ROWS;
	for (int64_t cells = 0; cells < CELLS_MOST && x->lp.rows + 4 <= most;) {
		if (levels->slots == 0) {
			k = without_slots(next, (double)neap__phi_levels_leaf(levels, 0));
			if (k.t > x->steps)
				break;
		} else {
			next_terms(&k, levels);
			cells += levels->slots + 1;
		}
		int ends = k.now - k.last >= x->steps;
		if (k.t >= next || ends) {
			add_level_rows(x, &k, near);
			next = k.t < LEVELS_SINGLE ? k.t + 1 : ceil(k.t * LEVELS_FACTOR);
		}
		if (ends)
			break;
	}
}

/* Adds the rows of a pool; 0, or -1: Phi is too large, or out of memory. */
static int add_pool(struct turn_program *x, int64_t pool, int near)
{
	struct neap__phi_levels levels;
	if (neap__phi_levels_init(&levels, pool, x->c) < 0)
		return -1;
	add_levels(x, &levels, near);
	free(levels.value);
	return 0;
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
	x->lp.vars = of(TA, x->groups);
	x->lp.cost[X1] = x->lp.cost[X2] = 1;
	x->k[0] = channel_of(p, x->pool, near ? near : all, unit);
	if (x->groups > 1)
		x->k[1] = channel_of(p, x->pool, all & ~near, unit);
	add_compute(x);
	add_limits(x);
	for (int g = 0; g < x->groups; g++) {
		add_group_limits(x, g);
		add_channels(x, g);
		add_staging(x, g);
	}
	if (near && x->pool + x->k[0].capacity < (double)INT64_MAX / 2)
		(void)add_pool(x, pool + (int64_t)x->k[0].capacity, 1); /* else a weaker bound */
	return add_pool(x, pool, 0);
}

static double solve(const struct neap_problem *p, int64_t pool, unsigned near)
{
	double unit = p->chain.record + p->chain.backward + p->chain.advance, bound = 0;
	struct turn_program *x = calloc(1, sizeof *x);
	if (x && fill(x, p, pool, near, unit) == 0)
		bound = neap__linear_program_bound(&x->lp) * unit * x->steps;
	if (!x)
		neap__bound_note_memory();
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

double neap__turn_program_bound(const struct neap_problem *p, int64_t pool)
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
		best = fmax(best, solve(p, pool, near));
	}
	return near ? best : solve(p, pool, 0);
}
