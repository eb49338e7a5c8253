/* SPDX-License-Identifier: Apache-2.0 */
/* online_tier.c: the forward pass with a slow tier and an unknown number of steps. */
#include "plan/online/online_tier.h"

#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "base/grow.h"

/* Derived. */
#define FAR (INT64_MAX / 8) /* steps: no limit, but sums of a few do not overflow */
#define SLOTS_AT_ONCE 8	    /* upper bound of the slots that one call of refill uses */

static int out_of_memory(void)
{
	return neap__fail(-ENOMEM, "schedule: out of memory");
}

int neap__online_tier_init(struct neap__online_tier *x, const struct neap_chain *chain,
	const struct neap__online_sizes *sizes)
{
	int64_t buffers = sizes->send ? 2 * sizes->chunk * sizes->tape : 0;
	x->chain = chain;
	x->sizes = *sizes;
	x->steps = INT64_MAX;
	x->position = x->due = x->leaf = -1;
	x->stride = 1;
	x->ring_room = neap__online_ring_room(sizes);
	x->ring = calloc((size_t)x->ring_room, sizeof *x->ring);
	if (!x->ring)
		return out_of_memory();
	NEAP_TRY(neap__leaf_revolve_open(&x->costs, sizes->pool - buffers - sizes->state,
		sizes->state, sizes->tape, sizes->slots, 3));
	NEAP_TRY(neap__placement_open(&x->placement, &x->costs));
	x->placement.first_leaves = 1;
	return 0;
}

/* Allocates the lists of free slots and places for this number of them. */
static int make_lists(struct neap__online_tier *x, int64_t slots, int64_t places)
{
	int short_of_it =
		neap__grow(&x->free_slots, &x->slots_room, slots, sizeof *x->free_slots) < 0 ||
		neap__grow(&x->free_places, &x->places_room, places, sizeof *x->free_places) < 0;
	return short_of_it ? out_of_memory() : 0;
}

int neap__online_tier_reserve(struct neap__online_tier *x)
{
	int64_t places = x->sizes.states < x->steps ? x->sizes.states : x->steps;
	int64_t chunks = x->sizes.chunks < x->steps ? x->sizes.chunks : x->steps;
	int64_t most = places + chunks + 1;
	NEAP_TRY(neap__leaf_revolve_reserve(&x->costs, x->steps));
	NEAP_TRY(neap__placement_reserve(&x->placement, x->costs.slots + 1));
	NEAP_TRY(make_lists(x, x->sizes.slots + SLOTS_AT_ONCE, places));
	return neap__grow(&x->records, &x->records_room, most, sizeof *x->records) < 0
		       ? out_of_memory()
		       : 0;
}

void neap__online_tier_fini(struct neap__online_tier *x)
{
	neap__leaf_revolve_free(&x->costs);
	neap__placement_free(&x->placement);
	free(x->ring);
	free(x->records);
	free(x->free_slots);
	free(x->free_places);
}

/* Frees tapes until `bytes` fit in the pool and `steps` in the ring. */
static int make_room(
	struct neap__online_tier *x, struct neap_schedule *s, int64_t bytes, int64_t steps)
{
	while (neap__online_used(x) + bytes > x->sizes.pool ||
		x->ring_steps + steps > x->sizes.recent)
		NEAP_TRY(neap__online_let_go(x, s));
	return 0;
}

/* Waits for the write of entry 0, whose memory is in use until then, and frees its slot. */
static void settle_first(struct neap__online_tier *x, struct neap_schedule *s)
{
	struct neap__kept_state *first = &x->placement.kept[0];
	if (first->slot < 0)
		return;
	int64_t i = x->nrecords - 1;
	while (x->records[i].t0 != first->t || x->records[i].t1 != first->t)
		i--;
	if (x->records[i].ticket >= 0)
		neap__online_wait(x, s, x->records[i].ticket);
	neap__drop(s, first->slot, first->t);
	neap__online_slot_free(x, first->slot);
	first->slot = -1;
}

/* Forgets every second state on the tier, except the last one, and the tapes that end at it. */
static void thin(struct neap__online_tier *x, struct neap_schedule *s)
{
	struct neap__online_record *rows = x->records;
	int64_t last = x->placement.kept[0].t, left = 0;
	int odd = 0;
	for (int64_t i = 0; i < x->nrecords; i++) {
		const struct neap__online_record r = rows[i];
		int fixed = r.t0 < r.t1 || r.ticket >= 0 || r.t0 == last;
		odd ^= !fixed;
		if (fixed || odd) {
			rows[left++] = r;
			continue;
		}
		neap__online_give_up(x, s, &r);
		for (int64_t t = r.t0; left > 0 && rows[left - 1].t1 == t &&
				       rows[left - 1].t0 < t && rows[left - 1].ticket < 0;) {
			t = rows[--left].t0;
			neap__online_give_up(x, s, &rows[left]);
		}
	}
	x->nrecords = left;
	x->stride *= 2;
	/* Each run of sent tapes would need its own state: send no more tapes. */
	x->promised = x->sizes.chunks;
	x->send_left = 0;
}

/* Returns whether a new write would start at once: the tier is idle, or will be soon. */
static int is_idle(const struct neap__online_tier *x)
{
	return x->idle_at <= x->now + x->sizes.write_chunk / 2;
}

static int place_left(const struct neap__online_tier *x)
{
	return x->places_free > 0 || x->places_made < x->sizes.states;
}

/* Drops the oldest state that is only in memory. */
static int drop_oldest(struct neap__online_tier *x, struct neap_schedule *s)
{
	struct neap__placement *list = &x->placement;
	struct neap__kept_state first = list->kept[0], dropped = list->kept[1];
	neap__drop(s, dropped.slot, dropped.t);
	neap__online_slot_free(x, dropped.slot);
	NEAP_TRY(neap__placement_forget_first(list));
	return neap__placement_set_first(list, &first);
}

/* Starts to write entry 0 of the list. */
static int write_first(struct neap__online_tier *x, struct neap_schedule *s)
{
	NEAP_TRY(make_lists(x, 0, x->places_made + 1));
	int64_t place = x->places_free ? x->free_places[--x->places_free] : x->places_made++;
	const struct neap__kept_state *first = &x->placement.kept[0];
	int ticket = neap__online_add_record(x, first->t, first->t, place, x->sizes.write_state);
	NEAP_TRY(ticket);
	neap__put(s, first->slot, first->t, place, ticket);
	x->written = 1;
	return 0;
}

/*
 * Index of the state to write next: the oldest that is only in memory or, after thinning, the first
 * at the distance of the remaining states from the last written one. 0: none yet.
 */
static int64_t next_to_write(const struct neap__online_tier *x)
{
	const struct neap__placement *list = &x->placement;
	int64_t apart = x->stride > 1 ? x->stride * neap__leaf_revolve_fit(&x->costs, 0) : 0;
	for (int64_t i = 1; i < list->count; i++)
		if (list->kept[i].t - list->kept[0].t >= apart)
			return i;
	return 0;
}

/* Writes the next state and drops the states before it. */
static int write_next(struct neap__online_tier *x, struct neap_schedule *s)
{
	struct neap__placement *list = &x->placement;
	if (!x->written)
		return write_first(x, s);
	settle_first(x, s);
	x->due = -1;
	if (!place_left(x))
		thin(x, s);
	x->full = !place_left(x);
	if (x->full)
		return 0;
	for (int64_t n = next_to_write(x); n > 1; n--)
		NEAP_TRY(drop_oldest(x, s));
	if (next_to_write(x) == 0)
		return 0;
	NEAP_TRY(neap__placement_forget_first(list));
	return write_first(x, s);
}

/*
 * Returns whether there is a state to write. The chain may end at any step; the write must then end
 * before all steps so far are reversed, otherwise it would delay the backward pass.
 */
static int has_to_write(const struct neap__online_tier *x)
{
	double left = (double)x->at * x->chain->backward;
	return !x->full && (!x->written || next_to_write(x) > 0) && x->sizes.write_state <= left &&
	       x->at >= x->sizes.recent / 2;
}

/* As has_to_write, for tapes: they must also be read by then. */
static int may_send(const struct neap__online_tier *x)
{
	return x->at >= x->sizes.recent / 2 &&
	       2 * x->sizes.write_chunk <= (double)x->at * x->chain->backward;
}

/* Sends the oldest tapes that are marked for it, as soon as the tier is idle. */
static int send_some(struct neap__online_tier *x, struct neap_schedule *s)
{
	while (x->nleaving > 0 && x->idle_at - x->now <= (x->nleaving - 1) * x->sizes.write_chunk)
		neap__online_wait_tapes(x, s);
	while (is_idle(x) && !has_to_write(x) && neap__online_oldest(x, 1) < x->ring_count)
		NEAP_TRY(neap__online_send(x, s, neap__online_ring(x, neap__online_oldest(x, 1))));
	neap__online_pop_gone(x);
	return 0;
}

/* Makes a checkpoint of the live state. */
static int keep(struct neap__online_tier *x, struct neap_schedule *s)
{
	struct neap__placement *list = &x->placement;
	struct neap__kept_state evicted = {.slot = -1};
	while (x->sizes.send && list->count >= list->most && !x->full && next_to_write(x) > 0)
		NEAP_TRY(write_next(x, s));
	NEAP_TRY(neap__placement_keep(list, x->at, &evicted));
	if (evicted.slot >= 0) {
		neap__drop(s, evicted.slot, evicted.t);
		neap__online_slot_free(x, evicted.slot);
	}
	x->due = -1;
	x->keeps = 0;
	NEAP_TRY(make_room(x, s, x->sizes.state, 0));
	struct neap__kept_state *last = &list->kept[list->count - 1];
	last->slot = neap__online_slot(x);
	neap__save(s, last->slot, x->at);
	return 0;
}

static int begin(struct neap__online_tier *x, struct neap_schedule *s)
{
	struct neap__kept_state *first = &x->placement.kept[0];
	x->begun = 1;
	first->slot = neap__online_slot(x);
	neap__save(s, first->slot, 0);
	return 0;
}

/* Records up to `to`; the tapes are kept while there is memory. */
static int record(struct neap__online_tier *x, struct neap_schedule *s, int64_t to, int send)
{
	int64_t n = to - x->at;
	if (x->at >= x->sizes.ring_until)
		neap__online_drop_unsent(x, s);
	NEAP_TRY(make_room(x, s, n * x->sizes.tape, n));
	if (x->ring_count == x->ring_room)
		neap__online_close_ring(x);
	while (x->ring_count == x->ring_room)
		NEAP_TRY(neap__online_let_go(x, s));
	neap__record(s, x->at, to);
	*neap__online_ring(x, x->ring_count++) =
		(struct neap__online_tapes){.t0 = x->at, .t1 = to, .send = send};
	x->promised += send;
	x->ring_steps += n;
	x->taped += n;
	x->from = x->at;
	x->at = to;
	x->now += (double)n * x->chain->record;
	return 0;
}

static int advance(struct neap__online_tier *x, struct neap_schedule *s, int64_t to)
{
	neap__online_drop_unsent(x, s);
	neap__advance(s, x->at, to);
	x->from = x->at;
	x->at = to;
	x->now += (double)(to - x->from) * x->chain->advance;
	return 0;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/*
 * The next step at which the tier will be idle and reversing all steps so far takes at least
 * `needs` seconds. soon: seconds before that at which the tier accepts a new write.
 */
static int64_t next_turn(const struct neap__online_tier *x, double step, double needs, double soon)
{
	double wait = step > 0 ? (x->idle_at - x->now - soon) / step : 0;
	double back = x->chain->backward, late = back > 0 ? needs / back : 0;
	if (late < (double)x->sizes.recent / 2)
		late = (double)x->sizes.recent / 2;
	if (wait < late - (double)x->at)
		wait = late - (double)x->at;
	return x->at + 1 + (wait <= 0 ? 0 : wait < (double)FAR ? (int64_t)wait : FAR);
}

/* Advances or records up to the next decision. */
static int onward(struct neap__online_tier *x, struct neap_schedule *s)
{
	int ring = x->at < x->sizes.ring_until;
	if (x->due < 0)
		x->due = neap__placement_until(&x->placement, x->at);
	int64_t to = least(x->due, x->steps - !ring);
	double step = ring ? x->chain->record : x->chain->advance;
	if (to <= x->at) /* the state before the last step is not kept */
		return record(x, s, x->steps, 0);
	if (!x->full && (!x->written || next_to_write(x) > 0))
		to = least(to, next_turn(x, step, x->sizes.write_state, 0));
	if (x->sizes.send && neap__online_oldest(x, 1) < x->ring_count)
		to = least(
			to, next_turn(x, step, 2 * x->sizes.write_chunk, x->sizes.write_chunk / 2));
	int64_t room = (x->sizes.pool - x->held * x->sizes.state) / x->sizes.tape;
	if (room > x->sizes.piece)
		room = x->sizes.piece;
	if (ring)
		return record(x, s, least(to, x->at + (room > 1 ? room : 1)), 0);
	return advance(x, s, to);
}

static int forward(struct neap__online_tier *x, struct neap_schedule *s)
{
	x->from = x->at; /* the actions before are over: the chain can only end at the live state */
	if (x->at == x->steps) {
		neap__emit_turn(s);
		x->turned = 1;
		x->position = x->steps;
		x->at = -1;
		NEAP_TRY(neap__online_choose_records(x, s));
		x->asked = x->nrecords;
		for (int64_t i = 0; i < x->placement.count; i++)
			x->placement.kept[i].level = INT64_MAX;
		return 0;
	}
	if (!x->begun)
		return begin(x, s);
	/* x->at - 1: the state before the last step is never kept. */
	while (has_to_write(x) && x->now >= x->idle_at && x->at < x->steps - 1)
		NEAP_TRY(write_next(x, s));
	if (x->sizes.send && may_send(x))
		NEAP_TRY(send_some(x, s));
	if (x->due < 0)
		x->due = neap__placement_until(&x->placement, x->at);
	if (x->keeps && x->at < x->steps - 1)
		return keep(x, s);
	int sends = x->sizes.send && x->promised < x->sizes.chunks;
	if (x->send_left == 0 && sends && (x->at == 0 || x->at >= x->due))
		x->send_left = x->sizes.send;
	if (x->send_left > 0 && sends) {
		int64_t to = least(x->at + least(x->send_left, x->sizes.chunk), x->steps);
		x->send_left -= x->send_left == INT64_MAX ? 0 : to - x->at;
		NEAP_TRY(record(x, s, to, 1));
		x->keeps = x->send_left == 0;
		return 0;
	}
	x->send_left = 0;
	if (x->at >= x->due && x->at < x->steps - 1)
		return keep(x, s);
	return onward(x, s);
}

int neap__online_tier_refill(struct neap__online_tier *x, struct neap_schedule *s)
{
	size_t before = s->length;
	while (s->length == before && x->position != 0) {
		NEAP_TRY(make_lists(x, x->slots_made + SLOTS_AT_ONCE, 0));
		if (x->position < 0)
			NEAP_TRY(forward(x, s));
		else
			NEAP_TRY(neap__online_tier_backward(x, s));
	}
	return 0;
}

void neap__online_tier_finish(struct neap__online_tier *x, int64_t at, int64_t steps)
{
	int64_t left = x->at - at;
	if (left > 0 && x->ring_count > 0) {
		struct neap__online_tapes *last = neap__online_ring(x, x->ring_count - 1);
		if (last->t1 == x->at) {
			last->t1 = at;
			x->ring_steps -= left;
			x->taped -= left;
			x->ring_count -= last->t0 == at;
		}
	}
	x->at = x->from = at;
	x->steps = steps;
}
