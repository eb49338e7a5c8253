/* SPDX-License-Identifier: Apache-2.0 */
/*
 * online_tier_reverse.c: the backward pass, when the length is known (online_tier.h). From the end
 * down, it uses tapes in memory, tapes read from the tier, parts that start from a checkpoint in
 * memory, and parts that start from a state read from the tier. Parts are reversed by Revolve with
 * leaves; entry i of the list of checkpoints has i slots in use below it.
 */
#include "plan/online/online_tier.h"

#include "base/fail.h"

#define UNKNOWN_LEVEL INT64_MAX /* a mark: the part was not examined yet */
#define LEAF_PIECES 8		/* pieces of a leaf, so that its tapes are freed early; chosen */

/* Returns whether the state of a record is still in the slot from which it was written. */
static int in_memory(const struct neap__online_tier *x, const struct neap__online_record *r)
{
	const struct neap__placement *list = &x->placement;
	return r->t0 == r->t1 && list->count > 0 && list->kept[0].t == r->t0 &&
	       list->kept[0].slot >= 0;
}

static void get(struct neap__online_tier *x, struct neap_schedule *s, struct neap__online_record *r)
{
	int tapes = r->t0 < r->t1;
	r->ticket = neap__online_ticket(x);
	r->coming = 1;
	if (tapes) {
		x->taped += r->t1 - r->t0;
		x->chunks_coming += r->t1 - r->t0;
		x->chunks_beyond += x->states_coming ? r->t1 - r->t0 : 0;
	} else {
		r->slot = neap__online_slot(x);
		x->states_coming++;
	}
	neap__emit(s, &(struct neap_action){.kind = NEAP_GET,
			      .payload = tapes ? NEAP_TAPE : NEAP_STATE,
			      .tier = (uint16_t)s->plan.tier,
			      .ticket = r->ticket,
			      .slot = tapes ? 0 : r->slot,
			      .t0 = r->t0,
			      .t1 = r->t1,
			      .place = r->place});
}

/* Returns whether no part remains that starts from a checkpoint in memory and needs memory. */
static int none_to_do(const struct neap__online_tier *x)
{
	const struct neap__placement *list = &x->placement;
	return list->count == 0 || (list->count == 1 && list->kept[0].slot < 0);
}

/* Returns whether the record fits in memory now, and until it is needed. */
static int has_room(const struct neap__online_tier *x, const struct neap__online_record *r)
{
	int64_t n = r->t1 - r->t0, bytes = n ? n * x->sizes.tape : x->sizes.state;
	if (neap__online_used(x) + bytes > x->sizes.pool ||
		__builtin_popcountll(x->tickets) >= NEAP__ONLINE_RECORDS)
		return 0;
	if (n == 0)
		return x->states_coming == 0;
	int64_t most = 2 * x->sizes.chunk;
	if (!none_to_do(x))
		return x->chunks_coming + n <= most;
	return !x->states_coming || x->chunks_beyond + n <= most;
}

/* Returns whether tapes in memory start at this step, so that no part starts there. */
static int ring_begins(const struct neap__online_tier *x, int64_t t)
{
	int64_t i = x->ring_count;
	while (i > 0 &&
		(neap__online_ring(x, i - 1)->send < 0 || neap__online_ring(x, i - 1)->t0 > t))
		i--;
	return i > 0 && neap__online_ring(x, i - 1)->t0 == t;
}

/* Prefetches the records that are needed next, as far as they fit in memory. */
static void ask(struct neap__online_tier *x, struct neap_schedule *s)
{
	for (; x->asked > 0; x->asked--) {
		struct neap__online_record *r = &x->records[x->asked - 1];
		if (r->coming || in_memory(x, r) || (r->t0 == r->t1 && r->t0 >= x->position))
			continue;
		if (r->t0 == r->t1 && x->asked < x->nrecords && r[1].t0 == r->t0)
			continue; /* tapes start there, so no part does */
		if (r->t0 == r->t1 && ring_begins(x, r->t0))
			continue;
		if (r->t0 < r->t1 && r->ticket >= 0) {
			if (r->end > x->now)
				return;
			while (r->ticket >= 0)
				neap__online_wait_tapes(x, s);
		}
		if (!has_room(x, r))
			return;
		get(x, s, r);
	}
}

/* Waits for a record; issues its read if that was not done before. */
static struct neap__online_record arrive(
	struct neap__online_tier *x, struct neap_schedule *s, int64_t i)
{
	struct neap__online_record *r = &x->records[i];
	while (!r->coming && r->ticket >= 0)
		neap__online_wait_tapes(x, s);
	if (!r->coming)
		get(x, s, r);
	neap__online_wait(x, s, r->ticket);
	struct neap__online_record here = *r;
	if (here.t0 == here.t1)
		x->states_coming = 0, x->chunks_beyond = 0;
	neap__online_forget(x, s, i);
	if (x->asked > x->nrecords)
		x->asked = x->nrecords;
	return here;
}

static void reversed(struct neap__online_tier *x, struct neap_schedule *s, int64_t t0)
{
	neap__backward(s, t0, x->position);
	x->taped -= x->position - t0;
	x->now += (double)(x->position - t0) * x->chain->backward;
	x->position = t0;
	x->at = -1;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Reverses the topmost piece of a leaf. */
static void reverse_leaf(struct neap__online_tier *x, struct neap_schedule *s)
{
	int64_t left = (x->position - x->leaf - 1) / x->leaf_piece * x->leaf_piece;
	reversed(x, s, x->leaf + left);
	if (left == 0)
		x->leaf = -1;
}

static void reverse_ring(struct neap__online_tier *x, struct neap_schedule *s)
{
	int64_t t0 = neap__online_ring(x, --x->ring_count)->t0;
	x->ring_steps -= x->position - t0;
	reversed(x, s, t0);
}

/* The record whose state is still in the slot from which it was written; -1: none. */
static int64_t first_record(const struct neap__online_tier *x)
{
	const struct neap__placement *list = &x->placement;
	int64_t t = list->count > 0 && list->kept[0].slot >= 0 ? list->kept[0].t : INT64_MAX;
	int64_t i = x->nrecords - 1;
	while (i >= 0 && x->records[i].t0 >= t && !in_memory(x, &x->records[i]))
		i--;
	return i >= 0 && x->records[i].t0 >= t ? i : -1;
}

/* Uses the last written state from its slot, and forgets its record. */
static void use_first(struct neap__online_tier *x, struct neap_schedule *s)
{
	int64_t i = first_record(x);
	if (x->records[i].ticket >= 0)
		neap__online_wait(x, s, x->records[i].ticket);
	neap__online_forget(x, s, i);
	if (x->asked > i)
		x->asked--;
}

static void drop_top(struct neap__online_tier *x, struct neap_schedule *s)
{
	const struct neap__kept_state *top = &x->placement.kept[--x->placement.count];
	neap__drop(s, top->slot, top->t);
	neap__online_slot_free(x, top->slot);
}

static int first_is_written(const struct neap__online_tier *x)
{
	return x->placement.count == 1 && first_record(x) >= 0;
}

/* Forgets the topmost record, which is not needed; drops its state if it was being read. */
static void forget_top(struct neap__online_tier *x, struct neap_schedule *s)
{
	const struct neap__online_record *r = &x->records[x->nrecords - 1];
	if (r->ticket >= 0)
		neap__online_wait(x, s, r->ticket);
	if (r->t0 == r->t1 && r->coming) {
		neap__drop(s, r->slot, r->t0);
		neap__online_slot_free(x, r->slot);
		x->states_coming = 0, x->chunks_beyond = 0;
	}
	neap__online_forget(x, s, x->nrecords - 1);
	if (x->asked > x->nrecords)
		x->asked = x->nrecords;
}

/* Discards tapes inside a part whose later tapes were not sent because the tier was full. */
static void discard_tapes(struct neap__online_tier *x, struct neap_schedule *s)
{
	struct neap__online_record *r = &x->records[x->nrecords - 1];
	while (!r->coming && r->ticket >= 0)
		neap__online_wait_tapes(x, s);
	if (r->coming) {
		neap__online_wait(x, s, r->ticket);
		neap__online_drop_tapes(s, r->t0, r->t1);
		x->taped -= r->t1 - r->t0;
		x->chunks_coming -= r->t1 - r->t0;
	}
	forget_top(x, s);
}

/* The start of the next part, according to the topmost checkpoint in memory and record. */
static int64_t part_from(
	const struct neap__kept_state *top, const struct neap__online_record *record)
{
	int64_t from = top && top->slot >= 0 ? top->t : 0;
	return record && record->t1 > from ? record->t1 : from;
}

/* The last tapes in memory that were recorded in the forward pass; NULL: none. */
static const struct neap__online_tapes *last_tapes(struct neap__online_tier *x)
{
	while (x->ring_count && neap__online_ring(x, x->ring_count - 1)->send < 0)
		x->ring_count--;
	return x->ring_count ? neap__online_ring(x, x->ring_count - 1) : NULL;
}

/* As discard_tapes, for tapes in memory. Returns 1 if some were dropped. */
static int discard_ring(struct neap__online_tier *x, struct neap_schedule *s, int64_t from)
{
	const struct neap__online_tapes *last = last_tapes(x);
	if (!last || last->t1 == x->position || last->t0 < from)
		return 0;
	neap__online_drop_tapes(s, last->t0, last->t1);
	x->taped -= last->t1 - last->t0;
	x->ring_steps -= last->t1 - last->t0;
	x->ring_count--;
	return 1;
}

/* Removes states at which no part starts, because the chain ends or tapes start there. */
static void skip_empty(struct neap__online_tier *x, struct neap_schedule *s)
{
	struct neap__placement *list = &x->placement;
	for (;;) {
		const struct neap__kept_state *top =
			list->count ? &list->kept[list->count - 1] : NULL;
		const struct neap__online_record *r =
			x->nrecords ? &x->records[x->nrecords - 1] : NULL;
		if (top && top->slot >= 0 && top->t >= x->position) {
			if (first_is_written(x))
				use_first(x, s);
			drop_top(x, s);
		} else if (r && r->t0 == r->t1 && r->t0 >= x->position) {
			forget_top(x, s);
		} else if (r && r->t0 < r->t1 && r->t1 != x->position &&
			   (!top || top->slot < 0 || top->t <= r->t0)) {
			discard_tapes(x, s);
		} else if (!discard_ring(x, s, part_from(top, r))) {
			return;
		}
	}
}

/* Returns whether writing and reading a chunk of tapes is faster than recomputing it. */
static int sending_pays(const struct neap__online_tier *x)
{
	double again = (double)x->sizes.chunk * (x->chain->advance + x->chain->record);
	return x->sizes.send && x->sizes.write_chunk + x->sizes.read_chunk <= again;
}

/* Makes the first state of the next part live; it is also in a slot. */
static int begin_part(struct neap__online_tier *x, struct neap_schedule *s)
{
	struct neap__placement *list = &x->placement;
	if (first_is_written(x))
		use_first(x, s);
	if (list->count == 0 || list->kept[list->count - 1].slot < 0) {
		if (x->nrecords == 0)
			return neap__fail(NEAP_EILLEGAL, "online: no state below %lld",
				(long long)x->position);
		struct neap__online_record r = arrive(x, s, x->nrecords - 1);
		list->count = 1;
		list->kept[0] = (struct neap__kept_state){
			.t = r.t0, .slot = r.slot, .level = UNKNOWN_LEVEL};
		ask(x, s);
	}
	struct neap__kept_state *top = &list->kept[list->count - 1];
	int64_t tapes = x->ring_steps * x->sizes.tape;
	if (list->count + tapes / x->sizes.state >= x->sizes.slots / 2) {
		if (sending_pays(x))
			NEAP_TRY(neap__online_send_all(x, s));
		else
			neap__online_drop_all(x, s);
		tapes = 0;
	}
	x->beside = (tapes + x->sizes.state - 1) / x->sizes.state;
	int64_t l = x->position - top->t, j = list->count - 1 + x->beside;
	if (top->level == UNKNOWN_LEVEL) {
		NEAP_TRY(neap__leaf_revolve_reach(&x->costs, 3 * l, j));
		top->level = neap__leaf_revolve_part(&x->costs, l, j).level;
	}
	x->at = top->t;
	neap__load(s, top->slot, top->t);
	return 0;
}

/* One split or leaf of the topmost part, whose first state is live or in its slot. */
static int reverse_part(struct neap__online_tier *x, struct neap_schedule *s)
{
	struct neap__placement *list = &x->placement;
	struct neap__kept_state *top = &list->kept[list->count - 1];
	int kept = list->count > 0 && x->at == top->t;
	struct neap__leaf_part left, right,
		part = {.l = x->position - x->at,
			.j = list->count - kept + x->beside,
			.level = kept ? top->level : x->level};
	if (part.l <= neap__leaf_revolve_fit(&x->costs, part.j)) {
		if (kept)
			drop_top(x, s);
		x->leaf_piece = (part.l + LEAF_PIECES - 1) / LEAF_PIECES;
		for (int64_t t = x->at; t < x->position; t += x->leaf_piece)
			neap__record(s, t, least(t + x->leaf_piece, x->position));
		x->taped += part.l;
		x->now += (double)part.l * x->chain->record;
		x->leaf = x->at;
		x->at = -1;
		return 0;
	}
	if (!kept) {
		int64_t slot = neap__placement_push(list, x->at);
		NEAP_TRY((int)(slot < 0 ? slot : 0));
		top = &list->kept[list->count - 1];
		top->slot = neap__online_slot(x);
		neap__save(s, top->slot, x->at);
	}
	int64_t y = neap__leaf_revolve_split(&x->costs, &part, &left, &right);
	neap__advance(s, x->at, x->at + y);
	x->now += (double)y * x->chain->advance;
	top->level = left.level;
	x->at += y;
	x->level = right.level;
	return 0;
}

/* Waits for all transfers: none may be in flight at the end. */
static void finish(struct neap__online_tier *x, struct neap_schedule *s)
{
	while (x->nleaving)
		neap__online_wait_tapes(x, s);
	for (int64_t i = 0; i < x->nrecords; i++)
		if (x->records[i].ticket >= 0)
			neap__online_wait(x, s, x->records[i].ticket);
}

static int ring_is_next(struct neap__online_tier *x)
{
	const struct neap__online_tapes *last = last_tapes(x);
	return last && last->t1 == x->position;
}

int neap__online_tier_backward(struct neap__online_tier *x, struct neap_schedule *s)
{
	if (x->at < 0 && x->leaf < 0 && !ring_is_next(x))
		skip_empty(x, s);
	const struct neap__online_record *top = x->nrecords ? &x->records[x->nrecords - 1] : NULL;
	if (x->at < 0)
		ask(x, s);
	if (x->at >= 0) {
		NEAP_TRY(reverse_part(x, s));
	} else if (x->leaf >= 0) {
		reverse_leaf(x, s);
	} else if (ring_is_next(x)) {
		reverse_ring(x, s);
	} else if (top && top->t0 < top->t1 && top->t1 == x->position) {
		struct neap__online_record r = arrive(x, s, x->nrecords - 1);
		x->chunks_coming -= r.t1 - r.t0;
		reversed(x, s, r.t0);
	} else {
		while (x->nleaving)
			neap__online_wait_tapes(x, s);
		NEAP_TRY(begin_part(x, s));
	}
	if (x->position == 0)
		finish(x, s);
	return 0;
}
