/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c: the strategy `replay`: the forward pass writes a log of each step, which is much
 * smaller than its tape (the log of a spiking network are its spikes). Later the tapes of whole
 * blocks of steps are recomputed from the state before the block and the logs of its steps. This is
 * faster than recording, because the input of every unit is known in advance.
 *
 *     T            steps of the chain
 *     s            steps in n blocks (log_blocks.h); the other T - s are the tail
 *     f, r, b      seconds to advance, to record and to reverse a step
 *     rho          seconds to replay a step
 *     S, A, q      bytes of a state, of a tape and of a log
 *
 *     seconds = T b + (T - s) r + s (f + rho) + copies and waits
 *
 * The tail is recorded in the forward pass. Then the blocks are processed from the last to the
 * first: state and logs are read from their storage (each in fast memory or on a tier), and the
 * tapes of the block are replayed and reversed. The solver tries all storage locations for states
 * and logs, early and late reads of logs, and, if states are on the tier, also shorter blocks. Only
 * the states of blocks and the logs are transferred: S / interval + q bytes per step, compared with
 * A for `stream`. Our own method.
 */
#include "plan/recompute/log_blocks.h"

#include <errno.h>
#include <stdlib.h>
#include "base/fail.h"
#include "plan/core/strategy.h"
#include "plan/core/sizing.h"
#include "plan/core/predict_plan.h"

/* Limits of planning time; all chosen. */
#define HALVINGS 6   /* number of times the longest interval is halved */
#define ALL_UP_TO 48 /* up to this length all intervals are tried */

#define ALL_LOCAL (NEAP__LOG_SLOTS | NEAP__LOG_LOCAL)

#define SLOTS_TRIED 20000 /* with more blocks in slots, only one length is tried */
#define NO_MORE 2	  /* return value: there is no such interval */

/* Tickets: 0 to 15 for the outbox of states; writes of logs; the reads of a log and of a state. */
#define LOG_OUT 16
#define LOG_BACK 48
#define STATE_BACK 49

static int tier_takes(const struct neap__log_blocks *x)
{
	return x->tier == 0 || neap__log_blocks_tier_bytes(x) <= x->p->tiers[x->tier - 1].capacity;
}

/* Returns 1 if the mode is useful with the tier. */
static int mode_applies(const struct neap_problem *p, int tier, int mode)
{
	if (tier == 0 || (mode & ALL_LOCAL) == ALL_LOCAL)
		return tier == 0 && mode == ALL_LOCAL;
	if (mode & NEAP__LOG_LOCAL)
		return !(mode & NEAP__LOG_EARLY);
	return !(p->chain.flags & NEAP_CHAIN_TAPES_STAY);
}

/* Sets the numbers of the plan for these blocks. */
static int fill(struct neap_plan *plan, const struct neap__log_blocks *x)
{
	const struct neap_problem *p = x->p;
	int64_t steps = p->chain.steps;
	int slots = (x->mode & NEAP__LOG_SLOTS) != 0, sent = !(x->mode & NEAP__LOG_LOCAL);
	plan->tier = 0;
	neap__accept(
		plan, p, x->n ? x->tier : 0, slots ? x->n : x->staged, neap__log_blocks_peak(x));
	plan->stage_slots = slots ? 0 : x->staged;
	plan->variant = (x->n ? x->mode : ALL_LOCAL) + NEAP__LOG_MODES * (int)x->window;
	plan->params =
		(struct neap_params){.interval = x->n ? x->interval : 0, .tail = steps - x->body};
	plan->advance_steps = x->body;
	plan->record_steps = steps;
	if (plan->tier > 0) {
		struct neap_tier_use *use = &plan->tiers[plan->tier - 1];
		use->peak_bytes = neap__log_blocks_tier_bytes(x);
		use->written = use->read =
			(uint64_t)((slots ? 0 : x->n * x->state) + (sent ? x->body * x->log : 0));
	}
	return neap__predict(plan, &neap__strategy_replay, p);
}

/* Replaces *plan by the plan of these blocks if it is faster. */
static int offer(struct neap_plan *plan, struct neap__log_blocks *x, int staged)
{
	struct neap_plan trial = {
		.size = sizeof trial, .strategy = plan->strategy, .chosen = plan->strategy};
	neap__log_blocks_set_windows(x, staged);
	NEAP_TRY(fill(&trial, x));
	if (!plan->feasible || trial.makespan < plan->makespan * (1 - 1e-12))
		*plan = trial;
	return 0;
}

static int offer_both(struct neap_plan *plan, struct neap__log_blocks *x)
{
	NEAP_TRY(offer(plan, x, 1));
	/* Copying into a slot may take longer than waiting for the write. */
	return x->staged && x->p->chain.slot_write > 0 ? offer(plan, x, 0) : 0;
}

/*
 * The k-th interval to try, `most` is the longest: all intervals if there are few, otherwise the
 * longest and its halves; without a tier only the longest. 0: no more.
 */
static int64_t nth_interval(const struct neap__log_blocks *x, int64_t most, int k)
{
	if (x->tier == 0 || (x->mode & NEAP__LOG_SLOTS && x->n > SLOTS_TRIED))
		return 0;
	if (most <= ALL_UP_TO)
		return k < most ? most - k : 0;
	return k <= HALVINGS ? most >> k : 0;
}

/*
 * Fits blocks of the k-th interval, or the longest possible ones. Returns 1, 0 if they do not fit,
 * NO_MORE if there is no such interval, or a negative code.
 */
static int fit_nth(struct neap__log_blocks *x, int64_t given, int64_t *most, int k)
{
	int64_t interval = k == 0 ? given : given ? 0 : nth_interval(x, *most, k);
	if (k > 0 && interval == 0)
		return NO_MORE;
	int rc = neap__log_blocks_fit(x, interval);
	if (k == 0)
		*most = rc > 0 && x->n > 1 ? neap__log_blocks_start(x, 1) : x->interval;
	return rc > 0 ? tier_takes(x) : rc;
}

static int try_mode(struct neap_plan *plan, struct neap__log_blocks *x, int64_t given)
{
	int64_t most = 0;
	for (int k = 0, rc; (rc = fit_nth(x, given, &most, k)) != NO_MORE; k++) {
		NEAP_TRY(rc);
		if (rc == 0)
			continue;
		NEAP_TRY(offer_both(plan, x));
		if (x->n == 0)
			return 0;
	}
	return 0;
}

/* Returns 1 if some mode fits in this budget, 0, or a negative code. */
static int fits(const struct neap_problem *problem, uint64_t memory, int64_t given)
{
	struct neap_problem p = *problem;
	int64_t most = 0;
	int rc = 0;
	p.memory = memory;
	for (int tier = 0; tier <= p.ntiers && rc == 0; tier++)
		for (int mode = 0; mode < NEAP__LOG_MODES && rc == 0; mode++) {
			struct neap__log_blocks x;
			if (!mode_applies(&p, tier, mode))
				continue;
			rc = neap__log_blocks_init(&x, &p, tier, mode);
			for (int k = 0; rc == 0; k++)
				rc = fit_nth(&x, given, &most, k);
			rc = rc == NO_MORE ? 0 : rc;
			neap__log_blocks_free(&x);
		}
	return rc;
}

/* Rejects the problem and reports the minimum budget; all tapes fit in the largest one tried. */
static int refuse(struct neap_plan *plan, const struct neap_problem *problem, int64_t interval)
{
	uint64_t low = problem->memory;
	uint64_t high = neap__fixed_bytes(problem, 0) +
			(uint64_t)problem->chain.steps * problem->chain.tape;
	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;
		int rc = fits(problem, middle, interval);
		NEAP_TRY(rc);
		*(rc > 0 ? &high : &low) = middle;
	}
	neap__refuse(plan, high, "blocks and their logs need %llu bytes", (unsigned long long)high);
	return 0;
}

static int solve(
	struct neap_plan *plan, const struct neap_problem *problem, const struct neap_params *fixed)
{
	const struct neap_chain *c = &problem->chain;
	if (c->flags & NEAP_CHAIN_CLASSIC) {
		neap__refuse(plan, 0, "needs bytes");
		return 0;
	}
	if (c->log == 0 || c->log >= c->tape) {
		neap__refuse(plan, 0,
			c->log ? "a log of %llu bytes is no smaller than a tape" : "needs a log",
			(unsigned long long)c->log);
		return 0;
	}
	for (int tier = 0; tier <= problem->ntiers; tier++)
		for (int mode = 0; mode < NEAP__LOG_MODES; mode++) {
			struct neap__log_blocks x;
			if (!mode_applies(problem, tier, mode))
				continue;
			int rc = neap__log_blocks_init(&x, problem, tier, mode);
			if (rc == 0)
				rc = try_mode(plan, &x, fixed->interval);
			neap__log_blocks_free(&x);
			NEAP_TRY(rc);
		}
	return plan->feasible ? 0 : refuse(plan, problem, fixed->interval);
}

struct replay {
	struct neap__log_blocks blocks;
	struct neap__outbox out;
	int64_t i; /* current block */
	int back;
	int64_t sent, settled; /* logs: PUTs issued, PUTs waited for */
};

static int64_t start(const struct replay *x, int64_t j)
{
	return neap__log_blocks_start(&x->blocks, j);
}

static void settle_log(struct neap_schedule *s, struct replay *x)
{
	neap__wait(s, LOG_OUT + (int32_t)(x->settled++ % x->blocks.window));
}

static void go_up(struct neap_schedule *s, struct replay *x)
{
	int64_t t0 = start(x, x->i), t1 = start(x, x->i + 1);
	int sends = !(x->blocks.mode & NEAP__LOG_LOCAL);
	if (sends && x->sent - x->settled == x->blocks.window)
		settle_log(s, x);
	if (x->blocks.mode & NEAP__LOG_SLOTS)
		neap__save(s, x->i, t0);
	else
		neap__outbox_send(s, &x->out, t0, x->i);
	neap__advance_log(s, t0, t1);
	if (sends)
		neap__put_log(s, t0, t1, x->i, LOG_OUT + (int32_t)(x->sent++ % x->blocks.window));
	x->i++;
}

/* Issues the GET of the state, or of the log, of block j if there is one. */
static void ask_state(struct neap_schedule *s, const struct replay *x, int64_t j)
{
	if (j >= 0 && !(x->blocks.mode & NEAP__LOG_SLOTS))
		neap__get(s, NEAP_LIVE, start(x, j), j, STATE_BACK);
}

static void ask_log(struct neap_schedule *s, const struct replay *x, int64_t j)
{
	if (j >= 0 && !(x->blocks.mode & NEAP__LOG_LOCAL))
		neap__get_log(s, start(x, j), start(x, j + 1), j, LOG_BACK);
}

static void turn(struct neap_schedule *s, struct replay *x)
{
	int64_t t0 = x->blocks.body, t1 = s->problem.chain.steps;
	neap__outbox_free(s, &x->out, -1);
	while (x->settled < x->sent)
		settle_log(s, x);
	if (t0 < t1)
		neap__record(s, t0, t1);
	neap__emit_turn(s);
	ask_state(s, x, x->i - 1);
	ask_log(s, x, x->i - 1);
	if (t0 < t1)
		neap__backward(s, t0, t1);
	x->back = 1;
	x->i--;
}

static void go_down(struct neap_schedule *s, struct replay *x)
{
	int64_t j = x->i--, t0 = start(x, j), t1 = start(x, j + 1);
	int early = x->blocks.mode & NEAP__LOG_EARLY;
	if (x->blocks.mode & NEAP__LOG_SLOTS) {
		neap__load(s, j, t0);
		neap__drop(s, j, t0);
	} else {
		neap__wait(s, STATE_BACK);
		neap__forget(s, t0, j);
	}
	if (!(x->blocks.mode & NEAP__LOG_LOCAL)) {
		neap__wait(s, LOG_BACK);
		neap__forget_log(s, t0, j);
	}
	if (early)
		ask_log(s, x, j - 1);
	neap__record_log(s, t0, t1);
	neap__drop_log(s, t0, t1);
	ask_state(s, x, j - 1);
	if (!early)
		ask_log(s, x, j - 1);
	neap__backward(s, t0, t1);
}

static int refill(struct neap_schedule *s)
{
	struct replay *x = s->self;
	if (x->back && x->i < 0)
		return 0;
	if (x->back)
		go_down(s, x);
	else if (x->i < x->blocks.n)
		go_up(s, x);
	else
		turn(s, x);
	return 0;
}

/* Blocks of one length are alike, except the first and the last two. */
static int64_t alike(struct neap_schedule *s, int64_t *every)
{
	const struct replay *x = s->self;
	int64_t n = x->blocks.n;
	*every = 1;
	if (x->blocks.mode & NEAP__LOG_SLOTS)
		return 0;
	if (x->back)
		return x->i > 0 && x->i < n - 1 ? x->i : 0;
	*every = x->blocks.window > x->blocks.staged ? x->blocks.window : x->blocks.staged;
	return x->i > 0 && x->i < n - 2 ? n - 2 - x->i : 0;
}

static void skip(struct neap_schedule *s, int64_t units)
{
	struct replay *x = s->self;
	if (x->back) {
		x->i -= units;
		return;
	}
	x->i += units;
	neap__outbox_skip(&x->out, units, units * x->blocks.interval);
	if (!(x->blocks.mode & NEAP__LOG_LOCAL)) {
		x->sent += units;
		x->settled += units;
	}
}

static void fini(struct neap_schedule *s)
{
	struct replay *x = s->self;
	neap__log_blocks_free(&x->blocks);
}

static int open(struct neap_schedule *s)
{
	const struct neap_plan *plan = &s->plan;
	const struct neap_chain *c = &s->problem.chain;
	int mode = plan->variant % NEAP__LOG_MODES, window = plan->variant / NEAP__LOG_MODES;
	int pow2 = !(window & (window - 1)) && !(plan->stage_slots & (plan->stage_slots - 1));
	struct replay *x = s->self = calloc(1, sizeof *x);
	if (!x)
		return neap__fail(-ENOMEM, "schedule: out of memory");
	s->fini = fini;
	s->refill = refill;
	s->alike = alike;
	s->skip = skip;
	int rc = 0;
	if (c->log && c->log < c->tape && pow2 && window >= 1 && window <= NEAP__OUTBOX_MOST &&
		plan->params.tail <= c->steps && mode_applies(&s->problem, plan->tier, mode)) {
		NEAP_TRY(neap__log_blocks_init(&x->blocks, &s->problem, plan->tier, mode));
		rc = neap__log_blocks_restore(
			&x->blocks, c->steps - plan->params.tail, plan->params.interval);
	}
	if (rc <= 0)
		return rc < 0 ? rc
			      : neap__fail(NEAP_EUSAGE,
					"schedule: replay: the plan is not one of this problem");
	x->blocks.window = window;
	x->out.room = x->blocks.staged = plan->stage_slots;
	return 0;
}

/* Tapes are recomputed for one block, or recorded for the tail, at a time. */
static int64_t tapes_of_a_block(const struct neap_plan *plan, int64_t steps)
{
	int64_t interval = plan->params.interval, tail = plan->params.tail;
	(void)steps;
	return interval && (interval < tail || tail == 0) ? interval : tail;
}

const struct neap__strategy neap__strategy_replay = {
	.name = "replay",
	.about = "tapes made again, block by block, from states and a log of what each step did",
	.solve = solve,
	.open = open,
	.tapes_held = tapes_of_a_block,
	.traits = NEAP_STRATEGY_TIERS | NEAP_STRATEGY_REPLAYS,
	.color = "#777777",
	.mark = 1,
};
