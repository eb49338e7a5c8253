/* SPDX-License-Identifier: Apache-2.0 */
/*
 * double.c: the strategy `double`: a checkpoint in the slow tier every R steps, and `standard` with
 * chunks of c steps inside every remote chunk ("Double" in arXiv 2412.11810).
 *
 *     T, S, A   steps of the chain; bytes of a state and of a tape
 *     R, N      steps of a remote chunk; N = ceil(T/R) remote chunks
 *     c, m      steps of a local chunk; m = ceil(R/c) local chunks of a remote chunk
 *     d         staging slots (as in remote.c)
 *
 * The first remote chunk, and the first local chunk of each, may be shorter. In the forward pass
 * the first states of all remote chunks except the last are written through staging slots, which
 * use the memory of tapes that do not exist yet. The last local chunk of a remote chunk is recorded
 * when it is reached, and the last remote chunk is processed in the forward pass. A remote chunk of
 * L steps therefore needs 2 L - c advance steps, and the last one R - c. While m - 1 local chunks
 * are reversed, the next state is read into the first free slot, where it is also the first local
 * checkpoint; with m = 1 it is read into the live buffer. For a given m the largest c is best; m is
 * searched.
 *
 * Peak: max((m - 1) S + c A, d S) bytes, 2 S less than the paper's k S + c A + S with k = m.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include "base/fail.h"
#include "plan/core/schedule.h"
#include "plan/core/strategy.h"
#include "plan/core/sizing.h"
#include "plan/core/predict_plan.h"

static int64_t remote_chunks(const struct neap_problem *p, int64_t r)
{
	return neap__ceil_div(p->chain.steps, r);
}

static int64_t peak_of(const struct neap_problem *p, int64_t r, int64_t c)
{
	return neap__bytes(p, neap__ceil_div(r, c) - 1, c);
}

struct double_choice {
	int64_t r, c;
	double cost;
};

static int64_t advanced(const struct neap_problem *p, int64_t r, int64_t c)
{
	int64_t n = remote_chunks(p, r), first = p->chain.steps - (n - 1) * r;
	if (n == 1)
		return p->chain.steps - (c < p->chain.steps ? c : p->chain.steps);
	return r - c + (n - 2) * (2 * r - c) + 2 * first - (first < c ? first : c);
}

static int64_t local_chunks(const struct neap_problem *p, int64_t r, int64_t c)
{
	int64_t sent = remote_chunks(p, r) - 1;
	return sent * neap__ceil_div(r, c) + neap__ceil_div(p->chain.steps - sent * r, c);
}

/* Time that depends on (R, c), seconds: a closed form of the steady state. */
static double cost(const struct neap_problem *p, int tier, int64_t r, int64_t c)
{
	const struct neap_chain *h = &p->chain;
	const struct neap_tier_spec *spec = &p->tiers[tier - 1];
	double sent = (double)(remote_chunks(p, r) - 1), m = (double)neap__ceil_div(r, c);
	double write = neap_tier_seconds(spec, 1, h->state);
	double read = neap_tier_seconds(spec, 0, h->state);
	double pass = (double)r * h->advance + h->slot_write + h->call;
	double hidden = (double)c * h->backward + h->call;
	double copies = (m - 1) * (h->slot_write + h->slot_read);
	double time = (double)advanced(p, r, c) * h->advance + (sent + 1) * copies +
		      (double)(3 * local_chunks(p, r, c) - 1) * h->call;

	if (spec->flags & NEAP_TIER_SYNC)
		return time + sent * (write + read);
	if (m > 1)
		hidden = (m - 1) * ((double)c * (h->record + h->backward) + 2 * h->call);
	double lost = neap_tier_lost(spec, h->state);
	write = fmin(fmax(lost, write), h->slot_write + fmax(lost, write - pass));
	return time + sent * (write + fmax(lost, read - hidden));
}

static void consider(
	struct double_choice *best, const struct neap_problem *p, int tier, int64_t r, int64_t c)
{
	int64_t steps = p->chain.steps;
	if (r > steps)
		r = steps;
	if (c > r)
		c = r;
	if (c < 1)
		return;
	int64_t sent = remote_chunks(p, r) - 1, pool = neap__pool_bytes(p, sent ? tier : 0);
	if (sent > neap__places(p, tier) || pool < peak_of(p, r, c))
		return;
	double time = cost(p, tier, r, c);
	if (best->c == 0 || time < best->cost)
		*best = (struct double_choice){r, c, time};
}

/* Considers the candidate with m local chunks and the largest c. */
static void consider_m(struct double_choice *best, const struct neap_problem *p, int tier,
	const struct neap_params *fixed, int64_t m)
{
	int64_t pool = neap__pool_bytes(p, tier), c = fixed->chunk;
	if (m < 1 || m - 1 > pool / (int64_t)p->chain.state)
		return;
	if (!c)
		c = neap__tapes_fit(p, pool - (m - 1) * (int64_t)p->chain.state);
	if (c > p->chain.steps)
		c = p->chain.steps;
	if (c >= 1)
		consider(best, p, tier, m > p->chain.steps / c ? p->chain.steps : m * c, c);
}

static uint64_t bytes_of(const struct neap_problem *p, int tier, const struct double_choice *at)
{
	return neap__fixed_bytes(p, remote_chunks(p, at->r) > 1 ? tier : 0) +
	       (uint64_t)peak_of(p, at->r, at->c);
}

/* The (R, c) with the least memory without the tier (R = T); c = 0: there is none. */
static struct double_choice least_local(
	const struct neap_problem *p, const struct neap_params *fixed)
{
	int64_t steps = p->chain.steps, m = fixed->checkpoints, c = fixed->chunk;
	if (fixed->remote_chunk) /* the caller requests the tier */
		return (struct double_choice){0};
	if (!c)
		c = neap__chunk_least(p, steps, 1);
	if (c > steps)
		c = steps;
	if (!fixed->chunk && m && neap__ceil_div(steps, c) > m)
		c = neap__ceil_div(steps, m);
	return (struct double_choice){steps, m && neap__ceil_div(steps, c) > m ? 0 : c, 0};
}

/* The (R, c) with the least memory with this tier. */
static struct double_choice least(
	const struct neap_problem *p, int tier, const struct neap_params *fixed)
{
	int64_t steps = p->chain.steps, m = fixed->checkpoints < steps ? fixed->checkpoints : steps;
	int64_t shortest = neap__ceil_div(steps, neap__places(p, tier) + 1);
	int64_t r = fixed->remote_chunk, c = fixed->chunk;
	if (!r)
		r = c && m ? (m > steps / c ? steps : m * c)
		    : c	   ? neap__ceil_div(shortest, c) * c
			   : shortest;
	if (r > steps)
		r = steps;
	if (!c)
		c = m ? neap__ceil_div(r, m) : neap__chunk_least(p, r, 1);
	if (m && !fixed->remote_chunk && !fixed->chunk) /* R = m c, as the search does */
		r = m > steps / c ? steps : m * c;
	return (struct double_choice){r, c < r ? c : r, 0};
}

static struct double_choice search(
	const struct neap_problem *p, int tier, const struct neap_params *fixed)
{
	struct double_choice best = {0};
	int64_t steps = p->chain.steps, r = fixed->remote_chunk;
	int64_t m = fixed->checkpoints < steps ? fixed->checkpoints : steps;
	if (r > steps)
		r = steps;
	if (r) {
		int64_t pool = neap__pool_bytes(p, r < steps ? tier : 0);
		int64_t c = fixed->chunk ? fixed->chunk : m ? neap__ceil_div(r, m) : 0;
		consider(&best, p, tier, r, c ? c : neap__chunk_largest(p, r, pool));
		return best;
	}
	/* The plan of `standard`, without the tier. */
	int64_t c =
		fixed->chunk ? fixed->chunk : neap__chunk_largest(p, steps, neap__pool_bytes(p, 0));
	if (!m || (c && neap__ceil_div(steps, c) <= m))
		consider(&best, p, tier, steps, c);
	if (m) {
		consider_m(&best, p, tier, fixed, m);
		return best;
	}
	/*
	 * The shortest remote chunks for which the tier has places; then values of m in steps
	 * of 1/16, and finally values near the best one. The step is chosen: the cost changes
	 * slowly around its minimum.
	 */
	r = least(p, tier, fixed).r;
	c = fixed->chunk ? fixed->chunk : neap__chunk_largest(p, r, neap__pool_bytes(p, tier));
	consider(&best, p, tier, r, c);
	for (m = 1; m <= steps; m += m / 16 + 1)
		consider_m(&best, p, tier, fixed, m);
	if (best.c) {
		int64_t middle = neap__ceil_div(best.r, best.c), reach = middle / 16 + 1;
		for (int64_t d = -reach; d <= reach; d += 1 + (reach >> 8))
			consider_m(&best, p, tier, fixed, middle + d);
	}
	return best;
}

/* Makes the plan for (R, c) with `room` staging slots. */
static int staged(struct neap_plan *plan, const struct neap_problem *problem, int tier,
	const struct double_choice *at, int64_t room)
{
	int64_t n = remote_chunks(problem, at->r), m = neap__ceil_div(at->r, at->c);
	int64_t bytes = peak_of(problem, at->r, at->c), out = neap__bytes(problem, room, 0);

	neap__accept(plan, problem, n > 1 ? tier : 0, m - 1 > room ? m - 1 : room,
		out > bytes ? out : bytes);
	plan->stage_slots = room;
	plan->params.remote_chunk = at->r;
	plan->params.chunk = at->c;
	plan->params.checkpoints = m;
	plan->record_steps = problem->chain.steps;
	plan->advance_steps = advanced(problem, at->r, at->c);
	if (n > 1)
		neap__tier_traffic(plan, problem, n - 1);
	return neap__predict(plan, &neap__strategy_double, problem);
}

static int finish(struct neap_plan *plan, const struct neap_problem *problem, int tier,
	const struct double_choice *at)
{
	int64_t sent = remote_chunks(problem, at->r) - 1;
	int64_t bytes = peak_of(problem, at->r, at->c);
	int64_t room = sent ? neap__outbox_room(problem, tier, bytes, sent) : 0;
	struct neap_plan direct = *plan;

	NEAP_TRY(staged(plan, problem, tier, at, room));
	if (room == 0 || problem->chain.slot_write == 0)
		return 0;
	/* Copying into a slot may take longer than waiting for the write. */
	NEAP_TRY(staged(&direct, problem, tier, at, 0));
	if (direct.makespan < plan->makespan)
		*plan = direct;
	return 0;
}

static int attempt(struct neap_plan *plan, const struct neap_problem *problem,
	const struct neap_params *fixed, int tier)
{
	struct double_choice best = search(problem, tier, fixed);
	if (best.c)
		return finish(plan, problem, tier, &best);
	struct double_choice local = least_local(problem, fixed);
	best = least(problem, tier, fixed);
	if (local.c && (remote_chunks(problem, best.r) - 1 > neap__places(problem, tier) ||
			       bytes_of(problem, tier, &local) < bytes_of(problem, tier, &best)))
		best = local;
	int64_t sent = remote_chunks(problem, best.r) - 1;
	if (sent > neap__places(problem, tier)) {
		neap__refuse(plan, 0, "tier %s is too small: it holds %lld states",
			problem->tiers[tier - 1].name, (long long)neap__places(problem, tier));
		return 0;
	}
	uint64_t bytes = bytes_of(problem, tier, &best);
	neap__refuse(plan, bytes, "remote chunks of %lld and chunks of %lld steps need %llu bytes",
		(long long)best.r, (long long)best.c, (unsigned long long)bytes);
	return 0;
}

static int solve(
	struct neap_plan *plan, const struct neap_problem *problem, const struct neap_params *fixed)
{
	return neap__over_tiers(plan, problem, fixed, attempt);
}

struct double_schedule {
	int64_t n, r, c; /* number of remote chunks; steps of a remote and a local chunk */
	int64_t slots;	 /* local checkpoints: ceil(r/c) - 1 */
	int64_t base;	 /* slot of local checkpoint 0 of the current remote chunk */
	int64_t j;	 /* current remote chunk */
	int64_t lo, hi;	 /* its steps */
	int64_t locals;	 /* its local chunks */
	int64_t i;	 /* current local chunk */
	enum { OUT, DOWN, UP } phase; /* forward pass; forward in a remote chunk; backward */
	struct neap__outbox out;
};

#define GET_TICKET (NEAP_TICKETS - 1) /* the outbox uses tickets from 0 on */

static int64_t remote_start(const struct neap_schedule *s, int64_t j)
{
	const struct double_schedule *x = s->self;
	return j == 0 ? 0 : s->problem.chain.steps - (x->n - j) * x->r;
}

static int64_t local_start(const struct double_schedule *x, int64_t i)
{
	return i == 0 ? x->lo : x->hi - (x->locals - i) * x->c;
}

static int64_t slot(const struct double_schedule *x, int64_t i)
{
	return (x->base + i) % x->slots;
}

static void enter(struct neap_schedule *s, int64_t j)
{
	struct double_schedule *x = s->self;
	x->j = j;
	x->lo = remote_start(s, j);
	x->hi = remote_start(s, j + 1);
	x->locals = neap__ceil_div(x->hi - x->lo, x->c);
	x->i = 0;
	x->phase = DOWN;
}

/* Waits for the state being read and makes it live; its slot becomes local checkpoint 0. */
static void arrive(struct neap_schedule *s)
{
	struct double_schedule *x = s->self;
	neap__wait(s, GET_TICKET);
	neap__forget(s, x->lo, x->j);
	if (x->slots == 0)
		return;
	neap__load(s, slot(x, 0), x->lo);
	if (x->locals == 1)
		neap__drop(s, slot(x, 0), x->lo);
}

static void ask(struct neap_schedule *s, int64_t to)
{
	struct double_schedule *x = s->self;
	if (x->j > 0)
		neap__get(s, to, remote_start(s, x->j - 1), x->j - 1, GET_TICKET);
}

static void reverse(struct neap_schedule *s)
{
	struct double_schedule *x = s->self;
	int64_t t0 = local_start(x, x->i), t1 = local_start(x, x->i + 1);
	neap__record(s, t0, t1);
	if (t1 == s->problem.chain.steps)
		neap__emit_turn(s);
	if (x->slots == 0)
		ask(s, NEAP_LIVE);
	neap__backward(s, t0, t1);
	x->i--;
}

/* One local chunk forward, towards the end of the remote chunk. */
static void down(struct neap_schedule *s)
{
	struct double_schedule *x = s->self;
	int last = x->j == x->n - 1;
	if (x->i == 0 && !last)
		arrive(s);
	if (s->coarse && x->i > 0 && x->out.issued == x->out.settled && x->i < x->locals - 1) {
		neap__compute(s, local_start(x, x->locals - 1) - local_start(x, x->i), 0,
			x->locals - 1 - x->i, 0);
		x->i = x->locals - 1;
	}
	if (x->i < x->locals - 1) {
		if (x->i > 0 || last) {
			neap__outbox_free(s, &x->out, slot(x, x->i));
			neap__save(s, slot(x, x->i), local_start(x, x->i));
		}
		neap__advance(s, local_start(x, x->i), local_start(x, x->i + 1));
		x->i++;
		return;
	}
	neap__outbox_free(s, &x->out, -1);
	reverse(s);
	x->phase = UP;
}

static void up(struct neap_schedule *s)
{
	struct double_schedule *x = s->self;
	int64_t from = slot(x, x->i), t0 = local_start(x, x->i);
	if (s->coarse && x->i < x->locals - 2) {
		neap__compute(s, 0, local_start(x, x->i + 1) - x->lo, 0, x->i + 1);
		x->i = -1;
		return;
	}
	neap__load(s, from, t0);
	neap__drop(s, from, t0);
	if (x->i == x->locals - 2)
		ask(s, from);
	reverse(s);
}

static int refill(struct neap_schedule *s)
{
	struct double_schedule *x = s->self;
	if (x->phase == OUT && x->j == x->n - 1)
		enter(s, x->j);
	if (x->phase == UP && x->i < 0) {
		if (x->j == 0)
			return 0;
		if (x->slots > 0) /* the slot that became free first */
			x->base = slot(x, x->locals - 2);
		enter(s, x->j - 1);
	}
	if (x->phase == OUT) {
		neap__outbox_send(s, &x->out, remote_start(s, x->j), x->j);
		neap__advance(s, remote_start(s, x->j), remote_start(s, x->j + 1));
		x->j++;
	} else if (x->phase == DOWN) {
		down(s);
	} else {
		up(s);
	}
	return 0;
}

/* Number of equal remote chunks: all except the first, which may be short, and the last. */
static int64_t alike(struct neap_schedule *s, int64_t *every)
{
	const struct double_schedule *x = s->self;
	*every = x->phase == OUT && x->out.room > 0 ? x->out.room : 1;
	if (x->phase == OUT)
		return x->j > 0 && x->j < x->n - 1 ? x->n - 1 - x->j : 0;
	if (x->phase == UP && x->i < 0)
		return x->j > 1 ? x->j - 1 : 0;
	return -1;
}

static void skip(struct neap_schedule *s, int64_t units)
{
	struct double_schedule *x = s->self;
	if (x->phase == OUT) {
		x->j += units;
		neap__outbox_skip(&x->out, units, units * x->r);
		return;
	}
	x->j -= units;
	if (x->slots > 0) /* each remote chunk moves base by slots - 1 */
		x->base = (x->base + units % x->slots * (x->slots - 1)) % x->slots;
}

static int open(struct neap_schedule *s)
{
	int64_t c = s->plan.params.chunk, r = s->plan.params.remote_chunk;
	if (c < 1 || r < c || (r < s->problem.chain.steps && s->plan.tier < 1))
		return neap__fail(NEAP_EUSAGE, "schedule: double: chunks of %lld and %lld steps",
			(long long)r, (long long)c);
	struct double_schedule *x = s->self = calloc(1, sizeof *x);
	if (!x)
		return neap__fail(-ENOMEM, "schedule: out of memory");
	x->c = c;
	x->r = r;
	x->n = remote_chunks(&s->problem, r);
	x->slots = neap__ceil_div(r, c) - 1;
	x->out.room = s->plan.stage_slots;
	s->refill = refill;
	s->alike = alike;
	s->skip = skip;
	return 0;
}

const struct neap__strategy neap__strategy_double = {
	.name = "double",
	.about =
		"slow memory every remote chunk, `standard` inside each (arXiv 2412.11810, Double)",
	.solve = solve,
	.open = open,
	.traits = NEAP_STRATEGY_TIERS,
	.plan_seconds = NEAP__PLANS_IN_CLOSED_FORM,
	.color = "#332288",
	.mark = 13,
};
