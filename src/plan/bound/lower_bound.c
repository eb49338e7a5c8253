/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lower_bound.c: neap_bound, the seconds that no schedule beats. Every step is recorded and
 * reversed once, T (r + b) seconds. Without a slow tier, P bytes force further advances.
 *
 *     T            steps of the chain
 *     f, r, b      seconds to advance, to record and to reverse a step
 *     P            bytes of fast memory for states and tapes
 *     Phi_t        Phi_t(P) of recompute_cost.h
 *
 *     further forward executions >= max_t ( t T - Phi_t )
 *
 * Any t gives a valid bound, so the search over levels may stop early: at the maximum, since the
 * terms are concave in t, or after CELLS_MOST entries. With one slot the levels have a closed
 * form. Classic problems (a leaf of one tape) use Revolve's optimum (binomial.h).
 *
 * With slow tiers, what crosses the turn is counted in a linear program (linear_program.h). Its
 * variables, each divided by T:
 *
 *     X1, X2       seconds before and after the turn
 *     TA   a       tapes written before the turn and read after it
 *     TV   v       tapes recorded and written after the turn
 *     SH   h       states written before the turn and read after it
 *     SW   w       states written after the turn
 *     SR   R       reads of states after the turn, repeats counted
 *     NM   nm      tapes in fast memory at the turn
 *     NK   nk      states in fast memory at the turn
 *     EX   e       forward executions after the turn, less one for each step whose tape is
 *                  recorded after it: e2 - (T - a - nm), with e2 all executions after the turn
 *
 *     t T - e2 <= t a + (t-1) v + U + V      for every level t
 *     U = Phi_t    or   t nm + nk Phi_{t-1}
 *     V = h sum_{j<t} Phi_j + w sum_{j<t-1} Phi_j    or   h Phi_{t-1} + (R-h) Phi_{t-2}
 *
 * All four combinations hold. Each channel carries its transfers within X1 and X2, and the
 * computation loses their overhead (neap_tier_lost). Several tiers count as one with the
 * sum of their rates and capacities, which only helps; a schedule that waits for every
 * transfer waits for the fastest tier. Calls are spread over steps (call_bound.h). Ours.
 */
#include <math.h>
#include <stdlib.h>
#include "plan/bound/level_bound.h"
#include "plan/bound/call_bound.h"
#include "plan/levels/level_schedule.h"
#include "plan/bound/linear_program.h"
#include "plan/bound/stage_bound.h"
#include "plan/core/sizing.h"

#define CELLS_MOST 4000000 /* entries of Phi computed without slow tiers */
#define LEVELS_MOST 400000 /* entries computed with slow tiers: each search asks for a bound */
#define LEVELS_SINGLE 40   /* levels that all get rows; beyond them every tenth part more */
#define LEVELS_FACTOR 1.1
#define ROWS_SPARE 8		      /* rows that are left free; a level adds four */
#define PROGRAM_ROUNDING 1e-6	      /* relative, of the linear program beyond T (r + b) */
#define SUM_ROUNDING 1e-9	      /* relative, of T (r + b) */
#define POOL_MOST ((uint64_t)1 << 61) /* no bound changes beyond it; bytes stay in 63 bits */

typedef __int128 wide;

/* Level t of Phi: Phi_t beside j slots is value[j], j <= slots. */
struct levels {
	int64_t pool, state, tape, slots; /* tape 0: a leaf is one tape, which is free */
	int64_t t;
	wide *value;
};

static wide leaf(const struct levels *x, int64_t j)
{
	return x->tape ? (x->pool - j * x->state) / x->tape : 1;
}

static void next_level(struct levels *x)
{
	x->t++;
	for (int64_t j = x->slots; j >= 0; j--) {
		wide flat = x->t * leaf(x, j);
		wide split = j < x->slots ? x->value[j] + x->value[j + 1] : 0;
		x->value[j] = flat > split ? flat : split;
	}
}

static _Thread_local int memory_short;

void neap__bound_note_memory(void)
{
	memory_short = 1;
}

int neap__bound_memory_short(void)
{
	int was = memory_short;
	memory_short = 0;
	return was;
}

/* Level 0; the caller frees x->value. 0, or -1: too large, or out of memory. */
static int levels_init(struct levels *x, int64_t pool, const struct neap_chain *c)
{
	*x = (struct levels){.pool = pool, .state = (int64_t)c->state, .tape = (int64_t)c->tape};
	x->slots = pool < x->tape + x->state ? 0 : (pool - x->tape) / x->state;
	if (x->slots > c->steps)
		x->slots = c->steps; /* more is never of use */
	/* Nor are slots beyond those with which two executions of each step suffice. */
	int64_t reach = 0, j = 0;
	while (j < x->slots && reach < c->steps && j <= CELLS_MOST) {
		wide more = leaf(x, ++j);
		reach = more < c->steps - reach ? reach + (int64_t)more : c->steps;
	}
	x->slots = j;
	if (x->slots > CELLS_MOST)
		return -1;
	x->value = calloc((size_t)x->slots + 1, sizeof *x->value);
	if (!x->value)
		neap__bound_note_memory();
	return x->value ? 0 : -1;
}

/*
 * The maximum of u T - Phi_u over all levels u >= t, with one slot, from Phi_t = `now`. a and b
 * are the tapes without and with the slot. Once Phi_{t-1} + t b exceeds t a, all later levels
 * are Phi_u = u (u+1)/2 b + constant, so the maximum lies at about u = T/b.
 */
static wide one_slot(wide now, int64_t t, int64_t steps, int64_t b)
{
	wide best = 0, base = now - (wide)t * (t + 1) / 2 * b;
	for (int64_t u = steps / b - 2; u <= steps / b + 1; u++)
		if (u >= t) {
			wide value = (wide)u * steps - ((wide)u * (u + 1) / 2 * b + base);
			best = value > best ? value : best;
		}
	return best;
}

/* max_t ( t T - Phi_t ): further forward executions without a slow tier. */
static wide extra_steps(const struct neap_chain *c, int64_t pool)
{
	struct levels x;
	int64_t steps = c->steps, tape = (int64_t)c->tape;
	wide best = 0;
	if (tape == 0 || pool / tape >= steps || pool < tape + (int64_t)c->state ||
		levels_init(&x, pool, c) < 0)
		return 0; /* nothing to recompute, nothing possible, or too large */
	for (int64_t cells = 0; cells < CELLS_MOST; cells += x.slots + 1) {
		wide before = x.value[0];
		next_level(&x);
		wide value = (wide)x.t * steps - x.value[0];
		if (value < best)
			break;
		best = value;
		if (x.slots == 1 && x.value[0] == before + x.value[1]) {
			wide far = one_slot(x.value[0], x.t, steps, (pool - x.state) / tape);
			best = far > best ? far : best;
			break;
		}
	}
	free(x.value);
	return best;
}

/* All slow tiers as one. Seconds for a state, and for a tape in as long a transfer as fits. */
struct channel {
	double state_out, state_in, tape_out, tape_in;
	double state_lost, tape_lost; /* transfer overhead in seconds, each way */
	double capacity;	      /* bytes */
	int sync, shared;
};

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

static struct channel channel_of(const struct neap_problem *p, double pool)
{
	const struct neap_chain *c = &p->chain;
	struct channel k = {INFINITY, INFINITY, INFINITY, INFINITY, INFINITY, INFINITY, 0, 1, 0};
	double n = c->tape ? fmax(1, floor(pool / (double)c->tape)) : 1;
	uint64_t tape = neap__tape_sent(c);
	for (int i = 0; i < p->ntiers; i++)
		k.sync &= (p->tiers[i].flags & NEAP_TIER_SYNC) != 0;
	for (int i = 0; i < p->ntiers; i++) {
		const struct neap_tier_spec *t = &p->tiers[i];
		k.state_out = together(k.state_out, seconds_each(t, 1, c->state, 1), k.sync);
		k.state_in = together(k.state_in, seconds_each(t, 0, c->state, 1), k.sync);
		k.tape_out = together(k.tape_out, seconds_each(t, 1, tape, n), k.sync);
		k.tape_in = together(k.tape_in, seconds_each(t, 0, tape, n), k.sync);
		k.state_lost = fmin(k.state_lost, neap_tier_lost(t, c->state));
		double fixed = neap_tier_lost(t, 0); /* of up to n tapes */
		k.tape_lost = fmin(k.tape_lost, neap_tier_lost(t, tape) - fixed + fixed / n);
		k.capacity += t->capacity == NEAP_INFINITE ? INFINITY : (double)t->capacity;
	}
	k.shared = p->ntiers == 1 && !(p->tiers[0].flags & NEAP_TIER_DUPLEX);
	return k;
}

/* The variables (see above), in units of T steps and of `unit` seconds a step. */
enum { X1, X2, TA, TV, SH, SW, SR, NM, NK, EX };

struct turn_program {
	struct neap__linear_program lp;
	const struct neap_chain *c;
	double steps, pool, state, tape; /* bytes */
	double f, r, b;			 /* in units; f: the cheaper way forward */
	struct channel k;		 /* its times in units */
};

static void add(struct turn_program *x, struct neap__linear_program_row row)
{
	neap__linear_program_add(&x->lp, &row);
}

/*
 * X1 and X2 hold the computation, the overhead of transfers and the waits for a synchronous
 * tier. A transfer counts as one before the turn where it is issued before the turn: what a GET
 * brings takes room in fast memory from then on.
 */
static void add_compute(struct turn_program *x)
{
	const struct channel *k = &x->k;
	double state_out = k->sync ? k->state_out : k->state_lost;
	double state_in = k->sync ? k->state_in : k->state_lost;
	double tape_out = k->sync ? k->tape_out : k->tape_lost;
	double tape_in = k->sync ? k->tape_in : k->tape_lost;
	struct neap__linear_program_row before = {.rhs = x->f}, after = {.rhs = x->r + x->b};
	before.g[X1] = after.g[X2] = 1;
	before.g[TA] = before.g[NM] = -(x->r - x->f);
	after.g[TA] = after.g[NM] = x->r;
	after.g[EX] = -x->f;
	before.g[TA] -= tape_out;
	before.g[SH] -= state_out;
	after.g[TA] -= tape_in;
	after.g[TV] -= tape_out + tape_in;
	after.g[SW] -= state_out;
	after.g[SR] -= state_in;
	add(x, before);
	add(x, after);
}

/* X1 and X2 hold what each channel carries; one channel for both ways holds the sum. */
static void add_channels(struct turn_program *x)
{
	const struct channel *k = &x->k;
	struct neap__linear_program_row out1 = {0}, out2 = {0}, in = {0};
	out1.g[X1] = out2.g[X2] = in.g[X2] = 1;
	out1.g[TA] = -k->tape_out;
	out1.g[SH] = -k->state_out;
	out2.g[TV] = -k->tape_out;
	out2.g[SW] = -k->state_out;
	in.g[TA] = in.g[TV] = -k->tape_in;
	in.g[SR] = -k->state_in;
	add(x, out1);
	if (k->shared) {
		for (int j = TA; j <= EX; j++)
			in.g[j] += out2.g[j];
	} else {
		add(x, out2);
	}
	add(x, in);
}

/* Where no buffer fits beside the tape in use, transfers and computing alternate. */
static void add_staging(struct turn_program *x)
{
	const struct channel *k = &x->k;
	struct neap__linear_program_row row = {.rhs = x->r};
	row.g[X2] = 1;
	row.g[TA] = row.g[NM] = x->r;
	row.g[SR] = -k->state_in;
	if (x->c->tape && x->pool < x->state + x->tape) {
		if (x->pool < 2 * x->tape) {
			row.g[TA] -= k->tape_in;
			row.g[TV] -= k->tape_in;
		}
		add(x, row);
	}
	if (x->c->tape && x->pool + x->state < 2 * x->tape) {
		row = (struct neap__linear_program_row){.rhs = x->b};
		row.g[X2] = 1;
		row.g[TA] = row.g[TV] = -k->tape_in;
		add(x, row);
	}
}

/* Tapes: at most T. Reads: each written state is read. Fast memory and capacity. */
static void add_limits(struct turn_program *x)
{
	struct neap__linear_program_row tapes = {.rhs = -1}, reads = {0}, fast = {.rhs = 0},
					slow = {0};
	tapes.g[TA] = tapes.g[NM] = -1;
	add(x, tapes);
	reads.g[SR] = 1;
	reads.g[SH] = reads.g[SW] = -1;
	add(x, reads);
	fast.g[NM] = -x->tape;
	fast.g[NK] = -x->state;
	fast.rhs = -x->pool / x->steps;
	add(x, fast);
	if (x->c->flags & NEAP_CHAIN_CLASSIC) {
		struct neap__linear_program_row one = {.rhs = -1 / x->steps};
		one.g[NM] = -1;
		add(x, one);
	}
	if (x->c->flags & (NEAP_CHAIN_CLASSIC | NEAP_CHAIN_TAPES_STAY)) {
		struct neap__linear_program_row stay = {0};
		stay.g[TA] = stay.g[TV] = -1;
		add(x, stay);
	}
	if (x->k.capacity < INFINITY) {
		slow.g[TA] = -x->tape;
		slow.g[SH] = -x->state;
		slow.rhs = -x->k.capacity / x->steps;
		add(x, slow);
	}
}

/* Phi_t, Phi_{t-1}, Phi_{t-2} and the sums of Phi_j, j < t and j < t - 1. */
struct terms {
	double t, now, last, before, sum, sum_before;
};

static void add_level_rows(struct turn_program *x, const struct terms *k)
{
	for (int form = 0; form < 4; form++) {
		struct neap__linear_program_row row = {.rhs = k->t - 1};
		row.g[EX] = 1;
		row.g[TA] = k->t - 1;
		row.g[NM] = -1;
		row.g[TV] = k->t - 1;
		if (form & 1) {
			row.g[NM] += k->t;
			row.g[NK] = k->last;
		} else {
			row.rhs -= k->now / x->steps;
		}
		if (form & 2) {
			row.g[SH] = k->sum;
			row.g[SW] = k->sum_before;
		} else {
			row.g[SH] = k->last - k->before;
			row.g[SR] = k->before;
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

static void next_terms(struct terms *k, struct levels *levels)
{
	next_level(levels);
	k->t = (double)levels->t;
	k->sum_before = k->sum;
	k->sum += k->now;
	k->before = k->last;
	k->last = k->now;
	k->now = (double)levels->value[0];
}

/* Adds the rows of levels, until Phi grows by T from one level to the next. */
static void add_levels(struct turn_program *x, struct levels *levels)
{
	struct terms k = {0};
	double next = 1;
	for (int64_t cells = 0;
		cells < LEVELS_MOST && x->lp.rows < NEAP__LINEAR_PROGRAM_ROWS - ROWS_SPARE;) {
		if (levels->slots == 0) {
			k = without_slots(next, (double)leaf(levels, 0));
			if (k.t > x->steps)
				break;
		} else {
			next_terms(&k, levels);
			cells += levels->slots + 1;
		}
		int ends = k.now - k.last >= x->steps;
		if (k.t >= next || ends) {
			add_level_rows(x, &k);
			next = k.t < LEVELS_SINGLE ? k.t + 1 : ceil(k.t * LEVELS_FACTOR);
		}
		if (ends)
			break;
	}
}

/* The optimum of the linear program in seconds; 0 where it does not apply. */
static double program_bound(const struct neap_problem *p, int64_t pool)
{
	const struct neap_chain *c = &p->chain;
	double unit = c->record + c->backward + c->advance, bound = 0;
	struct levels levels;
	if (!(unit > 0) || (!c->tape && !(c->flags & NEAP_CHAIN_CLASSIC)) ||
		levels_init(&levels, pool, c) < 0)
		return 0;
	struct turn_program *x = calloc(1, sizeof *x);
	if (x) {
		x->c = c;
		x->steps = (double)c->steps;
		x->pool = (double)pool;
		x->state = (double)c->state;
		x->tape = (double)c->tape;
		x->f = fmin(c->advance, c->record) / unit;
		x->r = c->record / unit;
		x->b = c->backward / unit;
		x->k = channel_of(p, x->pool);
		x->k.state_out /= unit;
		x->k.state_in /= unit;
		x->k.tape_out /= unit;
		x->k.tape_in /= unit;
		x->k.state_lost /= unit;
		x->k.tape_lost /= unit;
		x->lp.cost[X1] = x->lp.cost[X2] = 1;
		add_compute(x);
		add_limits(x);
		add_channels(x);
		add_staging(x);
		add_levels(x, &levels);
		bound = neap__linear_program_bound(&x->lp) * unit * x->steps;
	}
	if (!x)
		neap__bound_note_memory();
	free(x);
	free(levels.value);
	return bound;
}

/* A mixed problem as one of bytes: a slot is a byte, and one tape is free. */
static double bound_mixed(const struct neap_problem *problem)
{
	struct neap_problem p = *problem;
	p.chain.flags &= ~(uint32_t)(NEAP_CHAIN_CLASSIC | NEAP_CHAIN_MIXED);
	p.chain.tape = p.chain.live = 1;
	p.memory += 2;
	return neap_bound(&p);
}

/*
 * With a log, the bound is that of a problem whose steps are recorded at the price of a replay:
 * the log takes no room and no time to move. Besides, each step is once either logged and
 * replayed, or recorded.
 */
static double bound_logged(const struct neap_problem *problem)
{
	const struct neap_chain *c = &problem->chain;
	struct neap_problem p = *problem;
	p.chain.log = 0;
	p.chain.record = c->replay;
	double each = fmin(c->record, c->advance + c->replay) + c->backward;
	return fmax(neap_bound(&p), (double)c->steps * each);
}

double neap_bound(const struct neap_problem *problem)
{
	if (!problem)
		return 0;
	const struct neap_chain *c = &problem->chain;
	struct neap_problem spread = {.size = sizeof spread};
	if (neap__call_bound_spread(&spread, problem))
		return neap_bound(&spread);
	if (c->log && c->replay < c->record)
		return bound_logged(problem);
	if (c->stages)
		return neap__stage_bound(problem);
	if (c->join)
		return (double)(c->steps + c->join) * (c->record + c->backward);
	if (c->flags & NEAP_CHAIN_MIXED)
		return bound_mixed(problem);
	double least = (double)c->steps * (c->record + c->backward);
	/* The reserve for worst-case tapes is a promise of plans, so a bound cannot count it. */
	uint64_t taken = c->adjoint + neap__live_bytes(problem);
	if (problem->memory < taken || c->steps < 2)
		return least;
	uint64_t pool = problem->memory - taken, most = POOL_MOST;
	int64_t room = (int64_t)(pool < most ? pool : most);
	if (problem->ntiers > 0) {
		/* Less what rounding can have added. */
		double more = (program_bound(problem, room) - least) * (1 - PROGRAM_ROUNDING) -
			      SUM_ROUNDING * least;
		return fmax(more > 0 ? least + more : least, neap__level_bound(problem));
	}
	wide extra;
	if (c->flags & NEAP_CHAIN_CLASSIC)
		extra = room < 1 ? 0 : neap__revolve_extra(c->steps, room);
	else
		extra = extra_steps(c, room);
	return least + (extra > 0 ? (double)extra : 0) * fmin(c->advance, c->record);
}
