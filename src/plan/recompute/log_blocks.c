/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_blocks.c: fits the blocks. A step in a block costs an advance and a replay instead of a
 * record, wherever its block begins, so only s counts for time. With states in slots, blocks
 * are as long as they can be, from the first one up: that gives the fewest blocks for the
 * steps they cover, and s follows from n. With states on the tier, all blocks but the last
 * have the same length, the longest that fits.
 */
#include <stdlib.h>
#include "base/fail.h"
#include "base/grow.h"
#include "plan/recompute/log_blocks.h"
#include "plan/core/sizing.h"

#define BLOCKS_MOST ((int64_t)1 << 20) /* with states in slots: each block takes a slot */

static int64_t lesser(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t greater(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int grow(struct neap__log_blocks *x, int64_t rows)
{
	int rc = neap__grow(&x->start, &x->start_room, rows, sizeof *x->start);
	return rc < 0 ? neap__fail(rc, "plan: out of memory") : 0;
}

int neap__log_blocks_init(
	struct neap__log_blocks *x, const struct neap_problem *problem, int tier, int mode)
{
	const struct neap_chain *c = &problem->chain;
	*x = (struct neap__log_blocks){.p = problem,
		.tier = tier,
		.mode = mode,
		.pool = neap__pool_bytes(problem, tier),
		.state = (int64_t)c->state,
		.tape = (int64_t)c->tape,
		.log = (int64_t)c->log,
		.window = 1};
	if (!(mode & NEAP__LOG_SLOTS))
		return 0;
	NEAP_TRY(grow(x, 1));
	x->start[0] = 0;
	return 0;
}

void neap__log_blocks_free(struct neap__log_blocks *x)
{
	free(x->start);
	x->start = NULL;
}

/* The longest block j that begins at step `start`, where block j - 1 has `before` steps. */
static int64_t longest(const struct neap__log_blocks *x, int64_t j, int64_t start, int64_t before)
{
	int64_t room = x->pool - j * x->state, both = x->tape + x->log, most;
	if (x->mode & NEAP__LOG_LOCAL) {
		most = (room - start * x->log) / both;
	} else if (x->mode & NEAP__LOG_EARLY) {
		most = (room - before * x->log) / both;
	} else {
		most = lesser(room / both, (room - before * x->log) / x->tape);
	}
	if (!(x->mode & NEAP__LOG_LOCAL)) /* on the first pass, beside its state */
		most = lesser(most, (room - x->state) / x->log);
	return lesser(most, x->interval);
}

/* The least s for n blocks whose turn fits. */
static int64_t must_cover(const struct neap__log_blocks *x, int64_t n)
{
	int64_t more = x->p->chain.steps * x->tape + n * x->state - x->pool;
	if (!(x->mode & NEAP__LOG_LOCAL) && n > 0)
		more -= x->start[n - 1] * x->log;
	int64_t least = more > 0 ? neap__ceil_div(more, x->tape - x->log) : 0;
	return n > 0 ? greater(least, x->start[n - 1] + 1) : least;
}

/* Returns 1 where a step in a block takes less time than a step of the tail. */
static int blocks_pay(const struct neap__log_blocks *x)
{
	return x->p->chain.advance + x->p->chain.replay < x->p->chain.record;
}

/* Fits blocks with states in slots: adds one block after the other. */
static int fit_slots(struct neap__log_blocks *x)
{
	int64_t steps = x->p->chain.steps, covered = 0, before = 0;
	int found = 0;
	for (int64_t n = 0; n <= BLOCKS_MOST; n++) {
		int64_t s = must_cover(x, n), most = lesser(covered, steps);
		if (s <= most) {
			found = 1;
			x->n = n;
			x->body = blocks_pay(x) ? most : s;
		}
		if (covered >= steps || (found && !blocks_pay(x)))
			break;
		before = longest(x, n, covered, before);
		if (before < 1)
			break;
		NEAP_TRY(grow(x, n + 2));
		x->start[n] = covered;
		covered += before;
	}
	return found;
}

/* With states on the tier: s for blocks of `interval` steps, -1 where they do not fit. */
static int64_t covered_by(const struct neap__log_blocks *x, int64_t interval)
{
	int64_t steps = x->p->chain.steps, whole = steps * x->tape - x->pool, s, most;
	if (whole <= 0 && !blocks_pay(x))
		return 0;
	if (interval < 1)
		return whole <= 0 ? 0 : -1;
	if (x->mode & NEAP__LOG_LOCAL) {
		s = whole > 0 ? neap__ceil_div(whole, x->tape - x->log) : 0;
		most = lesser((x->pool - interval * x->tape) / x->log, steps);
	} else {
		int64_t logs = (x->mode & NEAP__LOG_EARLY ? 2 : 1) * x->log;
		s = greater(neap__ceil_div(greater(whole + interval * x->log, 0), x->tape), 0);
		most = interval * (x->tape + logs) <= x->pool ? steps : -1;
	}
	if (whole <= 0 && most < s)
		return 0;
	return s > most || interval * x->tape > x->pool ? -1 : blocks_pay(x) ? most : s;
}

/* With states on the tier: the longest interval that fits, 0 where none does. */
static int64_t longest_interval(const struct neap__log_blocks *x)
{
	int64_t logs = (x->mode & NEAP__LOG_EARLY ? 2 : 1) * x->log, steps = x->p->chain.steps;
	if (x->mode & NEAP__LOG_LOCAL) {
		int64_t s = neap__ceil_div(greater(steps * x->tape - x->pool, 0), x->tape - x->log);
		return lesser(
			(x->pool - s * x->log) / x->tape, blocks_pay(x) ? steps : greater(s, 1));
	}
	int64_t most = lesser(x->pool / (x->tape + logs), steps);
	int64_t s = covered_by(x, most);
	return s > 0 ? lesser(most, s) : most;
}

int neap__log_blocks_fit(struct neap__log_blocks *x, int64_t interval)
{
	int64_t steps = x->p->chain.steps;
	x->staged = 0;
	x->window = 1;
	if (x->pool < 0)
		return 0;
	x->interval = interval ? lesser(interval, steps) : steps;
	if (x->mode & NEAP__LOG_SLOTS)
		return fit_slots(x);
	if (!interval)
		x->interval = longest_interval(x);
	x->body = covered_by(x, x->interval);
	if (x->body < 0)
		return 0;
	x->n = x->body ? neap__ceil_div(x->body, x->interval) : 0;
	return 1;
}

int neap__log_blocks_restore(struct neap__log_blocks *x, int64_t body, int64_t interval)
{
	int64_t covered = 0, before = 0;
	x->body = body;
	x->interval = interval;
	if (x->pool < 0 || body < 0 || body > x->p->chain.steps || (body && interval < 1))
		return 0;
	if (!(x->mode & NEAP__LOG_SLOTS)) {
		x->n = body ? neap__ceil_div(body, interval) : 0;
		return 1;
	}
	for (x->n = 0; covered < body; x->n++) {
		before = longest(x, x->n, covered, before);
		if (before < 1 || x->n >= BLOCKS_MOST)
			return 0;
		NEAP_TRY(grow(x, x->n + 2));
		x->start[x->n] = covered;
		covered += before;
	}
	return 1;
}

static int64_t length_of(const struct neap__log_blocks *x, int64_t j)
{
	return neap__log_blocks_start(x, j + 1) - neap__log_blocks_start(x, j);
}

/* Bytes while block j is replayed or reversed. */
static int64_t bytes_backward(const struct neap__log_blocks *x, int64_t j)
{
	int64_t l = length_of(x, j), before = j > 0 ? length_of(x, j - 1) : 0, logs = l;
	if (x->mode & NEAP__LOG_LOCAL)
		logs = neap__log_blocks_start(x, j + 1);
	else if (x->mode & NEAP__LOG_EARLY)
		logs = l + before;
	else
		logs = greater(l, before);
	return (x->mode & NEAP__LOG_SLOTS ? j * x->state : 0) + l * x->tape + logs * x->log;
}

/* Bytes while block j is logged; `window` logs at most are on their way to the tier. */
static int64_t bytes_forward(const struct neap__log_blocks *x, int64_t j)
{
	int64_t first = x->mode & NEAP__LOG_LOCAL ? 0 : greater(j + 1 - x->window, 0);
	int64_t logs = neap__log_blocks_start(x, j + 1) - neap__log_blocks_start(x, first);
	int64_t states = x->mode & NEAP__LOG_SLOTS ? j + 1 : lesser(j + 1, x->staged);
	return states * x->state + logs * x->log;
}

/* Bytes at the turn. */
static int64_t at_turn(const struct neap__log_blocks *x)
{
	int64_t logs = x->mode & NEAP__LOG_LOCAL ? x->body : x->n ? length_of(x, x->n - 1) : 0;
	return (x->mode & NEAP__LOG_SLOTS ? x->n * x->state : 0) +
	       (x->p->chain.steps - x->body) * x->tape + logs * x->log;
}

/* Bytes of the first pass at its worst moment: of equal blocks, one of the last. */
static int64_t peak_forward(const struct neap__log_blocks *x)
{
	int64_t most = 0, few = greater(x->window, x->staged) + 1;
	if (x->start) {
		for (int64_t j = 0; j < x->n; j++)
			most = greater(most, bytes_forward(x, j));
		return most;
	}
	for (int64_t j = greater(x->n - few, 0); j < x->n; j++)
		most = greater(most, bytes_forward(x, j));
	return most;
}

int64_t neap__log_blocks_peak(const struct neap__log_blocks *x)
{
	int64_t most = greater(peak_forward(x), at_turn(x));
	if (x->start) {
		for (int64_t j = 0; j < x->n; j++)
			most = greater(most, bytes_backward(x, j));
		return most;
	}
	/* All blocks but the last have one length: one of the last three takes the most. */
	for (int64_t j = greater(x->n - 3, 0); j < x->n; j++)
		most = greater(most, bytes_backward(x, j));
	return most;
}

void neap__log_blocks_set_windows(struct neap__log_blocks *x, int may_stage)
{
	int states = !(x->mode & NEAP__LOG_SLOTS) && may_stage, logs = !(x->mode & NEAP__LOG_LOCAL);
	x->staged = 0;
	x->window = 1;
	if (x->tier == 0 || x->p->tiers[x->tier - 1].flags & NEAP_TIER_SYNC)
		return;
	for (int64_t wide = 1; wide <= NEAP__OUTBOX_MOST && wide <= x->n; wide *= 2) {
		struct neap__log_blocks trial = *x;
		trial.staged = states ? wide : 0;
		if (peak_forward(&trial) <= x->pool)
			x->staged = trial.staged;
		trial.staged = x->staged;
		trial.window = logs ? wide : 1;
		if (peak_forward(&trial) <= x->pool)
			x->window = trial.window;
	}
}

uint64_t neap__log_blocks_tier_bytes(const struct neap__log_blocks *x)
{
	int64_t bytes = 0, most = 0;
	if (x->n == 0)
		return 0;
	if (!(x->mode & NEAP__LOG_SLOTS))
		bytes += x->n * x->state;
	if (x->mode & NEAP__LOG_LOCAL)
		return (uint64_t)bytes;
	for (int64_t j = 0; x->start && j < x->n; j++)
		most = greater(most, length_of(x, j));
	if (!x->start)
		most = lesser(x->interval, x->body);
	return (uint64_t)(bytes + x->n * most * x->log);
}
