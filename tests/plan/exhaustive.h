/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exhaustive.h: the least makespan of a tiny problem over all schedules of the action
 * language (plan.h), with one slow tier at most, by Dijkstra's algorithm, directed by
 * what must be computed in any case (A*). Written from the rules alone: it shares nothing with the
 * library but struct neap_problem.
 *
 * A spot is what is in tier 0 and in the slow tier, the operation at hand, the write
 * and the read in flight, each with the time it has left. Whatever can begin may begin
 * at once and at no cost, or time passes until the next of them ends. Steps are single,
 * tapes travel in ranges of any length, memory is taken from the start of a transfer or
 * a recording to the end of what frees it. That allows all that schedules may do and
 * little beyond (memory that a write frees is free within an operation, places of
 * tapes do not fragment), so the result is a lower bound for every plan, too.
 *
 * Times must be whole numbers of seconds up to 255 an operation or transfer.
 */
#ifndef NEAP_PLAN_EXHAUSTIVE_H
#define NEAP_PLAN_EXHAUSTIVE_H

#include "plan_test.h"

#define TINY_STEPS 8 /* at most: sets of steps are bytes */
#define TINY_SPOTS (1 << 20)
#define TINY_TIME 8192

enum { OP_NONE, OP_ADVANCE, OP_RECORD, OP_BACKWARD, OP_SAVE, OP_LOAD, OP_LOST };
enum { MOVE_NONE, MOVE_SLOT, MOVE_LIVE, MOVE_TAPES };
enum { LIVE_NONE = 0, LIVE_AT = 1, LIVE_PARKED = 64 }; /* + t; parked: arrived, not waited for */

/* 24 bytes without gaps, compared and hashed as they lie. */
struct spot {
	uint8_t adjoint; /* T + 1: before the turn */
	uint8_t live;
	uint8_t slots, tapes, far, far_tapes; /* sets of steps, what is on its way included */
	uint8_t op, left;
	struct move {
		uint8_t kind, t0, t1, left; /* state t0, or tapes of [t0, t1) */
	} out, in;
	/*
	 * The call that goes on, or that the next step may go on with at no further price: an
	 * operation, or OP_NONE; `with`: the steps whose tapes it made so far, or, of
	 * BACKWARD, those whose tapes were there as it began.
	 */
	uint8_t call, with, unused[6];
};

struct tiny {
	int steps, tier;	   /* tier: there is one */
	int64_t pool, state, tape; /* bytes */
	int64_t room;		   /* of the tier */
	int f, r, b, save, load;   /* seconds */
	int price;		   /* seconds a call */
	int sync, duplex, classic; /* classic: 1, with tapes in slots 2 */
	int travel;		   /* tapes do */
	double out_fixed, out_byte, in_fixed, in_byte;
	int lost,
		lost_fixed; /* seconds of computing a byte and a transfer; of what does not wait */
};

struct tiny_search {
	const struct tiny *k;
	struct spot *spots;
	int32_t *next, *time; /* of a spot: the one after it in its bucket; best so far */
	int32_t *table;	      /* hash to spot + 1 */
	uint8_t *done;
	int32_t bucket[TINY_TIME];
	int32_t count, now;
};

/* Seconds that must still pass: every step is recorded, unless its tape is there, and reversed. */
static inline int tiny_ahead(const struct tiny *k, const struct spot *s)
{
	int steps = s->adjoint <= k->steps ? s->adjoint : k->steps;
	int taped = (s->tapes | s->far_tapes) & ((1 << steps) - 1);
	int ahead = steps * k->b + (steps - __builtin_popcount((unsigned)taped)) * k->r;
	if (s->op == OP_RECORD)
		ahead += s->left;
	if (s->op == OP_BACKWARD)
		ahead += s->left - k->b;
	return ahead;
}

static inline void tiny_push(struct tiny_search *x, const struct spot *s, int32_t time)
{
	uint64_t a[3];
	memcpy(a, s, sizeof a);
	uint64_t h = (a[0] ^ (a[1] + a[2] * 0x94d049bb133111ebu) * 0x9e3779b97f4a7c15u) *
		     0xbf58476d1ce4e5b9u;
	size_t mask = 2 * TINY_SPOTS - 1, i = (size_t)(h ^ h >> 29) & mask;
	int32_t key = time + tiny_ahead(x->k, s);
	if (key >= TINY_TIME)
		return;
	for (; x->table[i]; i = (i + 1) & mask)
		if (memcmp(&x->spots[x->table[i] - 1], s, sizeof *s) == 0)
			break;
	int32_t n = x->table[i] - 1;
	if (n >= 0 && (x->done[n] || x->time[n] <= time))
		return;
	/* A better time of a known spot: a new row; the old one is passed over. */
	if (x->count == TINY_SPOTS)
		return;
	if (n >= 0)
		x->done[n] = 1;
	n = x->count++;
	x->table[i] = n + 1;
	x->spots[n] = *s;
	x->time[n] = time;
	x->done[n] = 0;
	x->next[n] = x->bucket[key];
	x->bucket[key] = n;
}

static inline int tiny_bit(int set, int t)
{
	return set >> t & 1;
}

static inline int tiny_range(int t0, int t1)
{
	return (1 << t1) - (1 << t0);
}

static inline int tiny_fits(const struct tiny *k, const struct spot *s)
{
	int64_t states = __builtin_popcount(s->slots), tapes = __builtin_popcount(s->tapes);
	if (k->classic == 1)
		return states <= k->pool && tapes <= 1;
	if (k->classic == 2)
		return states <= k->pool && states + tapes <= k->pool + 1;
	return states * k->state + tapes * k->tape <= k->pool;
}

static inline int tiny_fits_far(const struct tiny *k, const struct spot *s)
{
	return __builtin_popcount(s->far) * k->state + __builtin_popcount(s->far_tapes) * k->tape <=
	       k->room;
}

/* What nothing can need any more goes. */
static inline void tiny_clean(const struct tiny *k, struct spot *s)
{
	if (s->adjoint > k->steps)
		return;
	int keep = (1 << s->adjoint) - 1, slot = 0, far = 0, tapes = 0;
	if (s->out.kind == MOVE_SLOT)
		slot |= 1 << s->out.t0;
	if (s->in.kind == MOVE_SLOT)
		slot |= 1 << s->in.t0;
	if (s->op == OP_SAVE || s->op == OP_LOAD)
		slot |= 1 << (s->live - LIVE_AT);
	if (s->out.kind == MOVE_SLOT || s->out.kind == MOVE_LIVE)
		far |= 1 << s->out.t0;
	if (s->in.kind == MOVE_SLOT || s->in.kind == MOVE_LIVE)
		far |= 1 << s->in.t0;
	if (s->out.kind == MOVE_TAPES)
		tapes |= tiny_range(s->out.t0, s->out.t1);
	if (s->in.kind == MOVE_TAPES)
		tapes |= tiny_range(s->in.t0, s->in.t1);
	s->slots &= (uint8_t)(keep | slot);
	s->far &= (uint8_t)(keep | far);
	s->far_tapes &= (uint8_t)(keep | tapes);
	int t = s->live >= LIVE_PARKED ? s->live - LIVE_PARKED : s->live - LIVE_AT;
	int free = s->op == OP_NONE || s->op == OP_BACKWARD || s->op == OP_LOST;
	int busy = !free || s->out.kind == MOVE_LIVE;
	if (s->live && t >= s->adjoint && !busy)
		s->live = LIVE_NONE;
}

static inline void tiny_end_op(struct spot *s)
{
	if (s->op == OP_ADVANCE || s->op == OP_RECORD)
		s->live++;
	if (s->op == OP_BACKWARD) {
		s->adjoint--;
		s->tapes &= (uint8_t) ~(1 << s->adjoint);
	}
	s->op = OP_NONE;
}

static inline void tiny_end_out(struct spot *s)
{
	if (s->out.kind == MOVE_TAPES)
		s->tapes &= (uint8_t)~tiny_range(s->out.t0, s->out.t1);
	s->out = (struct move){0};
}

static inline void tiny_end_in(struct spot *s)
{
	if (s->in.kind == MOVE_LIVE)
		s->live = (uint8_t)(LIVE_PARKED + s->in.t0);
	s->in = (struct move){0};
}

/* What has no time left ends. */
static inline void tiny_settle(struct tiny_search *x, struct spot s, int32_t time)
{
	if (s.op && s.left == 0)
		tiny_end_op(&s);
	if (s.out.kind && s.out.left == 0)
		tiny_end_out(&s);
	if (s.in.kind && s.in.left == 0)
		tiny_end_in(&s);
	tiny_clean(x->k, &s);
	tiny_push(x, &s, time);
}

static inline void tiny_begin(struct tiny_search *x, struct spot s, int op, int seconds)
{
	s.op = (uint8_t)op;
	if (op == OP_SAVE || op == OP_LOAD)
		s.call = s.with = 0;
	s.left = (uint8_t)seconds;
	tiny_settle(x, s, x->now);
}

static inline int tiny_still(const struct spot *s);

/* A step of a call: of the one that goes on, or of a new one. */
static inline void tiny_step(
	struct tiny_search *x, const struct spot *at, struct spot s, int op, int seconds, int t)
{
	int goes_on = s.call == op && (op != OP_BACKWARD || tiny_bit(s.with, t));
	if (x->k->price == 0) {
		tiny_begin(x, s, op, seconds);
		return;
	}
	if (!goes_on)
		s.with = op == OP_BACKWARD ? (uint8_t)tiny_still(at) : 0;
	if (op == OP_RECORD)
		s.with |= (uint8_t)(1 << t);
	s.call = (uint8_t)op;
	tiny_begin(x, s, op, seconds + (goes_on ? 0 : x->k->price));
}

/* Tapes that are dropped: of use where it is faster to record a step than to advance it. */
static inline void tiny_drops(struct tiny_search *x, const struct spot *at)
{
	int leaving = at->out.kind == MOVE_TAPES ? tiny_range(at->out.t0, at->out.t1) : 0;
	for (int u = 0; u < x->k->steps && x->k->r < x->k->f; u++) {
		struct spot s = *at;
		if (!tiny_bit(tiny_still(at) & ~leaving, u))
			continue;
		s.tapes &= (uint8_t) ~(1 << u);
		s.call = s.with = 0;
		tiny_push(x, &s, x->now);
	}
}

static inline void tiny_ops(struct tiny_search *x, const struct spot *at)
{
	const struct tiny *k = x->k;
	struct spot s = *at;
	int turned = s.adjoint <= k->steps, leaving = s.out.kind == MOVE_LIVE;
	int t = s.live >= LIVE_AT && s.live < LIVE_PARKED ? s.live - LIVE_AT : -1;
	int last = turned ? s.adjoint - 1 : k->steps - 1; /* the last step of use */
	if (t >= 0 && !leaving) {
		if (t < last || (!turned && t == last))
			tiny_step(x, at, s, OP_ADVANCE, k->f, t);
		if (t <= last && !tiny_bit(s.tapes, t)) {
			s.tapes |= (uint8_t)(1 << t);
			if (tiny_fits(k, &s))
				tiny_step(x, at, s, OP_RECORD, k->r, t);
			s = *at;
		}
	}
	if (t >= 0 && t <= last && !tiny_bit(s.slots, t)) {
		s.slots |= (uint8_t)(1 << t);
		if (tiny_fits(k, &s))
			tiny_begin(x, s, OP_SAVE, k->save);
		s = *at;
	}
	if (t == k->steps && !turned) {
		s.adjoint = (uint8_t)k->steps;
		s.call = s.with = 0;
		tiny_settle(x, s, x->now);
		s = *at;
	}
	if (turned && s.adjoint > 0 && !leaving && tiny_bit(s.tapes, last)) {
		int moving = 0;
		if (s.out.kind == MOVE_TAPES)
			moving |= tiny_range(s.out.t0, s.out.t1);
		if (s.in.kind == MOVE_TAPES)
			moving |= tiny_range(s.in.t0, s.in.t1);
		if (s.live < LIVE_PARKED)
			s.live = LIVE_NONE;
		if (!tiny_bit(moving, last))
			tiny_step(x, at, s, OP_BACKWARD, k->b, last);
		s = *at;
	}
	tiny_drops(x, at);
	for (int u = 0; u <= last; u++) {
		if (!tiny_bit(s.slots, u) || (s.in.kind == MOVE_SLOT && s.in.t0 == u))
			continue;
		if (!leaving && s.in.kind != MOVE_LIVE) {
			s.live = (uint8_t)(LIVE_AT + u);
			tiny_begin(x, s, OP_LOAD, k->load);
			s = *at;
		}
		if (!(s.out.kind == MOVE_SLOT && s.out.t0 == u)) {
			s.slots &= (uint8_t) ~(1 << u); /* DROP */
			tiny_push(x, &s, x->now);
			s = *at;
		}
	}
	if (s.live >= LIVE_PARKED) {
		s.live = (uint8_t)(s.live - LIVE_PARKED + LIVE_AT); /* WAIT */
		tiny_push(x, &s, x->now);
	}
}

static inline int tiny_seconds(double fixed, double byte, int64_t bytes)
{
	return (int)lround(fixed + byte * (double)bytes);
}

/*
 * What a transfer that begins costs the computation passes before the next operation.
 * 0 where so many begin at once that no schedule of use does that.
 */
static inline int tiny_lose(const struct tiny *k, struct spot *s, int64_t bytes)
{
	int seconds = k->sync ? 0 : k->lost_fixed + k->lost * (int)bytes;
	if (seconds == 0)
		return 1;
	if (s->op == OP_NONE)
		s->op = OP_LOST, s->call = s->with = 0;
	if (s->left + seconds > UINT8_MAX)
		return 0;
	s->left = (uint8_t)(s->left + seconds);
	return 1;
}

/* Tapes that lie still: recorded, not in use, not moving. */
static inline int tiny_still(const struct spot *s)
{
	int set = s->tapes;
	if (s->op == OP_RECORD)
		set &= ~(1 << (s->live - LIVE_AT));
	if (s->op == OP_BACKWARD)
		set &= ~(1 << (s->adjoint - 1));
	if (s->in.kind == MOVE_TAPES)
		set &= ~tiny_range(s->in.t0, s->in.t1);
	return set;
}

static inline void tiny_put(struct tiny_search *x, struct spot s, int kind, int t0, int t1)
{
	const struct tiny *k = x->k;
	int64_t bytes = kind == MOVE_TAPES ? (t1 - t0) * k->tape : k->state;
	if (kind == MOVE_TAPES)
		s.far_tapes |= (uint8_t)tiny_range(t0, t1);
	else
		s.far |= (uint8_t)(1 << t0);
	if (!tiny_fits_far(k, &s))
		return;
	if (kind == MOVE_TAPES && s.call == OP_RECORD && s.with & tiny_range(t0, t1))
		s.call = s.with = 0; /* its tapes leave when it has ended */
	s.out = (struct move){(uint8_t)kind, (uint8_t)t0, (uint8_t)t1,
		(uint8_t)tiny_seconds(k->out_fixed, k->out_byte, bytes)};
	if (tiny_lose(k, &s, bytes))
		tiny_settle(x, s, x->now);
}

static inline void tiny_puts(struct tiny_search *x, const struct spot *at)
{
	const struct tiny *k = x->k;
	int still = tiny_still(at), last = at->adjoint <= k->steps ? at->adjoint - 1 : k->steps - 1;
	int live = at->live >= LIVE_AT && at->live < LIVE_PARKED ? at->live - LIVE_AT : -1;
	for (int t = 0; t <= last; t++) {
		if (tiny_bit(at->far, t))
			continue;
		int arriving = at->in.kind == MOVE_SLOT && at->in.t0 == t;
		int saving = at->op == OP_SAVE && live == t;
		if (tiny_bit(at->slots, t) && !arriving && !saving)
			tiny_put(x, *at, MOVE_SLOT, t, 0);
		if (live == t && (at->op == OP_NONE || at->op == OP_LOST))
			tiny_put(x, *at, MOVE_LIVE, t, 0);
	}
	for (int t0 = 0; k->travel && t0 <= last; t0++)
		for (int t1 = t0 + 1; t1 <= last + 1; t1++) {
			int range = tiny_range(t0, t1);
			if ((still & range) == range && !(at->far_tapes & range))
				tiny_put(x, *at, MOVE_TAPES, t0, t1);
		}
}

static inline void tiny_get(struct tiny_search *x, struct spot s, int kind, int t0, int t1)
{
	const struct tiny *k = x->k;
	int64_t bytes = kind == MOVE_TAPES ? (t1 - t0) * k->tape : k->state;
	if (kind == MOVE_TAPES)
		s.tapes |= (uint8_t)tiny_range(t0, t1);
	else if (kind == MOVE_SLOT)
		s.slots |= (uint8_t)(1 << t0);
	else
		s.live = LIVE_NONE, s.call = s.call == OP_BACKWARD ? s.call : 0;
	if (!s.call)
		s.with = 0;
	if (!tiny_fits(k, &s))
		return;
	s.in = (struct move){(uint8_t)kind, (uint8_t)t0, (uint8_t)t1,
		(uint8_t)tiny_seconds(k->in_fixed, k->in_byte, bytes)};
	if (tiny_lose(k, &s, bytes))
		tiny_settle(x, s, x->now);
}

static inline void tiny_gets(struct tiny_search *x, const struct spot *at)
{
	const struct tiny *k = x->k;
	int last = at->adjoint <= k->steps ? at->adjoint - 1 : k->steps - 1, leaving = 0;
	int idle = at->op == OP_NONE || at->op == OP_BACKWARD || at->op == OP_LOST;
	int may_live = at->out.kind != MOVE_LIVE && idle;
	if (at->out.kind == MOVE_TAPES)
		leaving = tiny_range(at->out.t0, at->out.t1);
	for (int t = 0; t <= last; t++) {
		int going =
			(at->out.kind == MOVE_SLOT || at->out.kind == MOVE_LIVE) && at->out.t0 == t;
		if (!tiny_bit(at->far, t) || going)
			continue;
		if (!tiny_bit(at->slots, t))
			tiny_get(x, *at, MOVE_SLOT, t, 0);
		if (may_live)
			tiny_get(x, *at, MOVE_LIVE, t, 0);
	}
	for (int t0 = 0; k->travel && t0 <= last; t0++)
		for (int t1 = t0 + 1; t1 <= last + 1; t1++) {
			int range = tiny_range(t0, t1);
			if ((at->far_tapes & range) == range && !(at->tapes & range) &&
				!(leaving & range))
				tiny_get(x, *at, MOVE_TAPES, t0, t1);
		}
}

static inline int tiny_moves(const struct move *m, int t)
{
	return m->kind == MOVE_TAPES ? m->t0 <= t && t < m->t1 : m->kind && m->t0 == t;
}

static inline void tiny_forget(struct tiny_search *x, const struct spot *at)
{
	for (int t = 0; t < x->k->steps; t++) {
		struct spot s = *at;
		if (tiny_moves(&at->out, t) || tiny_moves(&at->in, t))
			continue;
		s.far &= (uint8_t) ~(1 << t);
		if (s.far != at->far)
			tiny_push(x, &s, x->now);
		s = *at;
		s.far_tapes &= (uint8_t) ~(1 << t);
		if (s.far_tapes != at->far_tapes)
			tiny_push(x, &s, x->now);
	}
}

/* Time passes until something ends. */
static inline void tiny_pass(struct tiny_search *x, struct spot s)
{
	int step = 256;
	if (s.op && s.left < step)
		step = s.left;
	if (s.out.kind && s.out.left < step)
		step = s.out.left;
	if (s.in.kind && s.in.left < step)
		step = s.in.left;
	if (step == 256)
		return;
	if (!s.op)
		s.call = s.with = 0;
	s.left = (uint8_t)(s.op ? s.left - step : 0);
	s.out.left = (uint8_t)(s.out.kind ? s.out.left - step : 0);
	s.in.left = (uint8_t)(s.in.kind ? s.in.left - step : 0);
	tiny_settle(x, s, x->now + step);
}

static inline void tiny_expand(struct tiny_search *x, const struct spot *s)
{
	const struct tiny *k = x->k;
	int moving = s->out.kind || s->in.kind;
	if (!s->op && !(k->sync && moving))
		tiny_ops(x, s);
	if (k->tier && !(k->sync && (s->op || moving))) {
		if (!s->out.kind && (k->duplex || !s->in.kind))
			tiny_puts(x, s);
		if (!s->in.kind && (k->duplex || !s->out.kind))
			tiny_gets(x, s);
		if (k->room < (k->state + k->tape) * k->steps)
			tiny_forget(x, s);
	}
	tiny_pass(x, *s);
}

/* Seconds; INFINITY: impossible; -1: too many spots. The arrays are the caller's. */
static inline double tiny_solve(struct tiny_search *x, const struct tiny *k)
{
	struct spot first = {.adjoint = (uint8_t)(k->steps + 1), .live = LIVE_AT};
	x->k = k;
	x->count = 0;
	memset(x->table, 0, 2 * TINY_SPOTS * sizeof *x->table);
	for (int i = 0; i < TINY_TIME; i++)
		x->bucket[i] = -1;
	tiny_push(x, &first, 0);
	for (int key = 0; key < TINY_TIME; key++)
		while (x->bucket[key] >= 0) {
			int32_t n = x->bucket[key];
			x->bucket[key] = x->next[n];
			if (x->done[n])
				continue;
			x->done[n] = 1;
			x->now = x->time[n];
			if (x->spots[n].adjoint == 0)
				return x->now;
			struct spot s = x->spots[n];
			tiny_expand(x, &s);
			if (x->count == TINY_SPOTS)
				return -1;
		}
	return INFINITY;
}

#endif
