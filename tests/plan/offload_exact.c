/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offload_exact.c: the search. A node is a spot (offload_exact_node.h): what is in fast memory,
 * on the tier and in flight, and where the adjoint is. From every spot, all remaining
 * backwards and a recording of every tape that is stored nowhere must still follow: this is the
 * bound of A*.
 * Transfers are issued between two actions, and a payload that has left is freed at the end of
 * the action in which its transfer ended.
 */
#include "plan/offload_exact.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "base/grow.h"
#include "plan/offload_exact_node.h"

/* FNV-1a (Fowler, Noll and Vo): the 64-bit offset basis and prime. */
#define FNV_START 1469598103934665603u
#define FNV_PRIME 1099511628211u
#define NEAR 1e-12 /* of a duration: rests of transfers below are rounding */

static int64_t size_of(const struct neap__offload_exact_search *x, uint32_t bit)
{
	int k = __builtin_ctz(bit);
	return (int64_t)(k >= 16 ? x->s->tape[k - 16] : x->s->state[k]);
}

static int64_t bytes_of(
	const struct neap__offload_exact_search *x, const struct neap__offload_exact_spot *a)
{
	int64_t bytes = a->adjoint <= x->n ? neap__stage_gradient(&x->p->chain, a->adjoint) : 0;
	for (int64_t t = 0; t <= x->n; t++) {
		if (a->fast & STATE(t) && !neap__offload_exact_in_tape(x, a, t))
			bytes += (int64_t)x->s->state[t];
		if (t < x->n && a->fast & TAPE(t))
			bytes += (int64_t)x->s->tape[t];
	}
	for (uint32_t rest = a->arriving; rest; rest &= rest - 1)
		bytes += size_of(x, rest & -rest);
	return bytes;
}

/* Seconds that are still to come at least. */
static double to_come(
	const struct neap__offload_exact_search *x, const struct neap__offload_exact_spot *a)
{
	double seconds = a->adjoint > x->n ? x->s->backward[x->n] : 0;
	uint32_t somewhere = a->fast | a->slow | a->arriving;
	for (int64_t i = 0; i < a->adjoint && i < x->n; i++)
		seconds +=
			x->s->backward[i] + (somewhere & TAPE(i) ? 0 : neap__stage_record(x->s, i));
	return seconds;
}

static uint64_t hash_of(const struct neap__offload_exact_spot *a)
{
	const unsigned char *bytes = (const unsigned char *)a;
	uint64_t h = FNV_START;
	for (size_t i = 0; i < sizeof *a; i++)
		h = (h ^ bytes[i]) * FNV_PRIME;
	return h ^ h >> 29;
}

static int before(
	const struct neap__offload_exact_entry *p, const struct neap__offload_exact_entry *q)
{
	if (p->least < q->least || p->least > q->least)
		return p->least < q->least;
	return p->time > q->time || (!(p->time < q->time) && p->k > q->k);
}

static void exchange(struct neap__offload_exact_entry *heap, int64_t a, int64_t b)
{
	struct neap__offload_exact_entry e = heap[a];
	heap[a] = heap[b];
	heap[b] = e;
}

static void heap_push(struct neap__offload_exact_search *x, int64_t k)
{
	if (neap__grow(&x->heap, &x->heap_room, x->heap_count + 1, sizeof *x->heap) < 0) {
		x->failed = 1;
		return;
	}
	int64_t at = x->heap_count++;
	x->heap[at] = (struct neap__offload_exact_entry){x->node[k].least, x->node[k].time, k};
	for (; at > 0 && before(&x->heap[at], &x->heap[(at - 1) / 2]); at = (at - 1) / 2)
		exchange(x->heap, at, (at - 1) / 2);
}

static struct neap__offload_exact_entry heap_pop(struct neap__offload_exact_search *x)
{
	struct neap__offload_exact_entry top = x->heap[0];
	int64_t at = 0;
	x->heap[0] = x->heap[--x->heap_count];
	for (;;) {
		int64_t next = 2 * at + 1;
		if (next >= x->heap_count)
			return top;
		if (next + 1 < x->heap_count && before(&x->heap[next + 1], &x->heap[next]))
			next++;
		if (!before(&x->heap[next], &x->heap[at]))
			return top;
		exchange(x->heap, next, at);
		at = next;
	}
}

static void reach(struct neap__offload_exact_search *x, const struct neap__offload_exact_spot *spot,
	double time, int64_t parent, int32_t move, uint32_t bit)
{
	double least = time + to_come(x, spot);
	if (least >= x->above || x->failed)
		return;
	int64_t *slot = &x->hash[hash_of(spot) & x->mask];
	for (int64_t k = *slot; k >= 0; k = x->node[k].chain)
		if (memcmp(&x->node[k].spot, spot, sizeof *spot) == 0) {
			if (x->node[k].time <= time)
				return;
			x->node[k].time = time;
			x->node[k].least = least;
			x->node[k].parent = parent;
			x->node[k].move = move;
			x->node[k].bit = bit;
			heap_push(x, k);
			return;
		}
	if (x->count == x->room) {
		x->failed = 1;
		return;
	}
	x->node[x->count] = (struct neap__offload_exact_node){.time = time,
		.least = least,
		.parent = parent,
		.chain = *slot,
		.move = move,
		.bit = bit};
	memcpy(&x->node[x->count].spot, spot, sizeof *spot);
	*slot = x->count;
	heap_push(x, x->count++);
}

static void ended(struct neap__offload_exact_spot *a, uint32_t bit, int put)
{
	int k = __builtin_ctz(bit);
	if (put) {
		a->leaving &= ~bit;
		a->slow |= bit;
		if (k >= 16) {
			a->fast &= ~bit;
		}
	} else {
		a->arriving &= ~bit;
		a->fast |= bit;
		if (k >= 16)
			a->slow &= ~bit;
	}
}

/* Drops the states at or after the adjoint: no action needs them. */
static void tidy(const struct neap__offload_exact_search *x, struct neap__offload_exact_spot *a)
{
	for (int64_t t = 0; t <= x->n; t++)
		if (t >= a->adjoint) {
			a->fast &= ~(STATE(t) & ~a->leaving);
			a->slow &= ~STATE(t);
		}
}

static void pass(const struct neap__offload_exact_search *x, struct neap__offload_exact_spot *a,
	double seconds)
{
	int kept = 0;
	for (int f = 0; f < a->flights; f++) {
		a->flight[f].rest -= seconds;
		if (a->flight[f].rest <= NEAR * (1 + seconds))
			ended(a, a->flight[f].bit, a->flight[f].put);
		else
			a->flight[kept++] = a->flight[f];
	}
	memset(&a->flight[kept], 0, (size_t)(FLIGHTS - kept) * sizeof a->flight[0]);
	a->flights = kept;
	tidy(x, a);
}

static void compute(struct neap__offload_exact_search *x, int64_t from, int move, int64_t i)
{
	const struct neap__offload_exact_node *node = &x->node[from];
	const struct neap_stages *s = x->s;
	struct neap__offload_exact_spot a = node->spot;
	int64_t more = 0;
	double seconds = 0;
	if (move == MOVE_ADVANCE) {
		more = (int64_t)s->state[i + 1] + neap__stage_advance_tmp(s, i);
		seconds = s->advance[i];
	} else if (move == MOVE_RECORD) {
		more = (int64_t)s->tape[i] + (x->holds ? 0 : (int64_t)s->state[i + 1]) +
		       neap__stage_record_tmp(s, i);
		seconds = neap__stage_record(s, i);
	} else {
		more = neap__stage_gradient(&x->p->chain, i) + neap__stage_backward_tmp(s, i);
		seconds = s->backward[i];
	}
	if (bytes_of(x, &a) + more > x->memory)
		return;
	if (move == MOVE_ADVANCE || (move == MOVE_RECORD && !x->holds))
		a.fast |= STATE(i + 1);
	if (move == MOVE_RECORD)
		a.fast |= TAPE(i);
	if (move == MOVE_BACKWARD)
		a.fast &= ~TAPE(i);
	if (move == MOVE_BACKWARD || move == MOVE_TURN)
		a.adjoint = (int32_t)i;
	pass(x, &a, seconds);
	reach(x, &a, node->time + seconds, from, move, (uint32_t)i);
}

static void transfer(struct neap__offload_exact_search *x, int64_t from, int put, uint32_t bit)
{
	const struct neap__offload_exact_node *node = &x->node[from];
	struct neap__offload_exact_spot a = node->spot;
	int duplex = (x->tier->flags & NEAP_TIER_DUPLEX) != 0;
	double rest = 0, seconds = neap_tier_seconds(x->tier, put, (uint64_t)size_of(x, bit));
	double lost = neap_tier_lost(x->tier, (uint64_t)size_of(x, bit));
	if (a.flights == FLIGHTS)
		return;
	if (!put && bytes_of(x, &a) + size_of(x, bit) > x->memory)
		return;
	if (put && x->tier->capacity != NEAP_INFINITE) {
		uint64_t stored = (uint64_t)size_of(x, bit);
		for (uint32_t b = a.slow | a.leaving; b; b &= b - 1)
			stored += (uint64_t)size_of(x, b & -b);
		if (stored > x->tier->capacity)
			return;
	}
	for (int f = 0; f < a.flights; f++)
		if (!duplex || a.flight[f].put == put)
			rest = fmax(rest, a.flight[f].rest);
	*(put ? &a.leaving : &a.arriving) |= bit;
	a.flight[a.flights].bit = bit;
	a.flight[a.flights].put = put;
	a.flight[a.flights++].rest = rest + seconds;
	if (x->tier->flags & NEAP_TIER_SYNC || rest + seconds <= 0)
		pass(x, &a, rest + seconds);
	else
		seconds = -rest; /* no time passes */
	if (lost > 0)
		pass(x, &a, lost);
	reach(x, &a, node->time + rest + seconds + lost, from, put ? MOVE_PUT : MOVE_GET, bit);
}

static void transfers(struct neap__offload_exact_search *x, int64_t from)
{
	struct neap__offload_exact_spot a = x->node[from].spot;
	int stay = (x->p->chain.flags & NEAP_CHAIN_TAPES_STAY) != 0;
	for (int64_t i = 0; i < x->n && i < a.adjoint; i++) {
		uint32_t state = STATE(i), tape = TAPE(i);
		if (a.fast & state && !((a.slow | a.leaving) & state))
			transfer(x, from, 1, state);
		if (a.fast & tape && !(a.leaving & tape) && !stay)
			transfer(x, from, 1, tape);
		if (a.slow & state && !((a.arriving | a.fast) & state) &&
			!neap__offload_exact_in_tape(x, &a, i))
			transfer(x, from, 0, state);
		if (a.slow & tape && !((a.arriving | a.fast) & tape))
			transfer(x, from, 0, tape);
	}
}

static void expand(struct neap__offload_exact_search *x, int64_t from)
{
	struct neap__offload_exact_spot a = x->node[from].spot;
	int64_t n = x->n, back = a.adjoint - 1;
	uint32_t taped = a.fast | a.slow | a.arriving;
	for (int64_t i = 0; i < n && i < a.adjoint; i++) {
		if (!neap__offload_exact_present(x, &a, i))
			continue;
		if (i + 1 < a.adjoint && !neap__offload_exact_present(x, &a, i + 1))
			compute(x, from, MOVE_ADVANCE, i);
		if (!(taped & TAPE(i)))
			compute(x, from, MOVE_RECORD, i);
	}
	if (a.adjoint > n && neap__offload_exact_present(x, &a, n))
		compute(x, from, MOVE_TURN, n);
	if (a.adjoint <= n && back >= 0 && a.fast & ~a.leaving & TAPE(back) &&
		(!x->needs || neap__offload_exact_present(x, &a, back)))
		compute(x, from, MOVE_BACKWARD, back);
	for (int64_t t = 0; t <= n; t++)
		if (a.fast & ~a.leaving & STATE(t)) {
			struct neap__offload_exact_spot b = a;
			b.fast &= ~STATE(t);
			reach(x, &b, x->node[from].time, from, MOVE_DROP, STATE(t));
		}
	if (x->tier)
		transfers(x, from);
	if (a.flights) {
		struct neap__offload_exact_spot b = a;
		double rest = INFINITY;
		for (int f = 0; f < a.flights; f++)
			rest = fmin(rest, a.flight[f].rest);
		pass(x, &b, rest);
		reach(x, &b, x->node[from].time + rest, from, MOVE_WAIT, 0);
	}
}

static int prepare(struct neap__offload_exact_search *x, int64_t nodes)
{
	uint64_t slots = 1024;
	while (slots < (uint64_t)nodes)
		slots *= 2;
	x->mask = slots - 1;
	x->room = nodes;
	x->node = malloc((size_t)nodes * sizeof *x->node);
	x->hash = malloc(slots * sizeof *x->hash);
	if (!x->node || !x->hash)
		return neap__fail(-ENOMEM, "plan: out of memory");
	for (uint64_t i = 0; i < slots; i++)
		x->hash[i] = -1;
	return 0;
}

int neap__offload_exact(struct neap__action_list *out, const struct neap_problem *p, int64_t nodes,
	double above, int *proved)
{
	struct neap__offload_exact_search x = {.p = p,
		.s = p->chain.stages,
		.n = p->chain.steps,
		.memory = (int64_t)p->memory,
		.above = above};
	struct neap__offload_exact_spot start;
	int rc = 0;
	*proved = 0;
	if (x.n < 1 || x.n > NEAP__OFFLOAD_EXACT_STAGES || p->ntiers > 1 ||
		p->memory > (uint64_t)1 << 62)
		return 0;
	x.holds = neap__tape_holds_output(x.s);
	x.needs = neap__backward_needs_input(x.s);
	if (p->ntiers == 1) {
		x.tier = &p->tiers[0];
		x.memory -= (int64_t)x.tier->staging;
	}
	memset(&start, 0, sizeof start);
	start.fast = STATE(0);
	start.adjoint = (int32_t)x.n + 1;
	rc = prepare(&x, nodes);
	if (rc == 0 && bytes_of(&x, &start) <= x.memory)
		reach(&x, &start, 0, -1, MOVE_WAIT, 0);
	while (rc == 0 && x.heap_count && !x.failed) {
		struct neap__offload_exact_entry top = heap_pop(&x);
		int64_t k = top.k;
		if (top.time > x.node[k].time)
			continue; /* an old entry: the node was reached sooner since */
		/* What still travels is to be waited for: without it there is another node. */
		if (x.node[k].spot.adjoint == 0 && x.node[k].spot.flights == 0) {
			rc = neap__offload_exact_path(&x, k, out);
			*proved = x.tier == NULL || x.tier->staging == 0;
			break;
		}
		expand(&x, k);
	}
	if (rc == 0 && !x.failed)
		*proved = x.tier == NULL || x.tier->staging == 0;
	free(x.node);
	free(x.heap);
	free(x.hash);
	return rc;
}
