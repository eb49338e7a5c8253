/* SPDX-License-Identifier: Apache-2.0 */
/*
 * online_transfers.c: the slots, tickets and rows of a sweep with a slow tier, and the ring of
 * tapes in memory, for both passes (online_tier.c, online_tier_reverse.c).
 */
#include "plan/online/online_tier.h"

#include <errno.h>
#include "base/fail.h"
#include "base/grow.h"

int64_t neap__online_slot(struct neap__online_tier *x)
{
	x->held++;
	return x->slots_free ? x->free_slots[--x->slots_free] : x->slots_made++;
}

void neap__online_slot_free(struct neap__online_tier *x, int64_t slot)
{
	x->held--;
	x->free_slots[x->slots_free++] = (int32_t)slot;
}

int32_t neap__online_ticket(struct neap__online_tier *x)
{
	int32_t ticket = __builtin_ctzll(~x->tickets);
	x->tickets |= (uint64_t)1 << ticket;
	return ticket;
}

static int64_t record_of(const struct neap__online_tier *x, int32_t ticket)
{
	int64_t i = x->nrecords - 1;
	while (x->records[i].ticket != ticket)
		i--;
	return i;
}

void neap__online_wait(struct neap__online_tier *x, struct neap_schedule *s, int32_t ticket)
{
	struct neap__online_record *r = &x->records[record_of(x, ticket)];
	neap__wait(s, ticket);
	r->ticket = -1;
	if (x->now < r->end)
		x->now = r->end;
	x->tickets &= ~((uint64_t)1 << ticket);
}

void neap__online_wait_tapes(struct neap__online_tier *x, struct neap_schedule *s)
{
	const struct neap__online_record *r = &x->records[record_of(x, x->leaving[0])];
	x->taped -= r->t1 - r->t0;
	neap__online_wait(x, s, x->leaving[0]);
	x->leaving[0] = x->leaving[1];
	x->nleaving--;
}

/* The order of records: a state comes before the tapes that start with it. */
static int after(const struct neap__online_record *r, int64_t t0, int64_t t1)
{
	return r->t0 > t0 || (r->t0 == t0 && r->t1 > t1);
}

/* Adds a record in order and plans its write; returns its ticket or a negative code. */
int neap__online_add_record(
	struct neap__online_tier *x, int64_t t0, int64_t t1, int64_t place, double seconds)
{
	if (neap__grow(&x->records, &x->records_room, x->nrecords + 1, sizeof *x->records) < 0)
		return neap__fail(-ENOMEM, "schedule: out of memory");
	int64_t i = x->nrecords++;
	for (; i > 0 && after(&x->records[i - 1], t0, t1); i--)
		x->records[i] = x->records[i - 1];
	x->records[i] = (struct neap__online_record){
		.t0 = t0, .t1 = t1, .place = place, .slot = -1, .ticket = neap__online_ticket(x)};
	x->idle_at = (x->idle_at > x->now ? x->idle_at : x->now) + seconds;
	x->records[i].end = x->idle_at;
	return (int)x->records[i].ticket;
}

static void tapes_action(
	struct neap_schedule *s, int kind, int64_t t0, int64_t t1, int64_t place, int32_t ticket)
{
	neap__emit(s, &(struct neap_action){.kind = (uint8_t)kind,
			      .payload = NEAP_TAPE,
			      .tier = (uint16_t)(kind == NEAP_DROP ? 0 : s->plan.tier),
			      .ticket = ticket,
			      .t0 = t0,
			      .t1 = t1,
			      .place = place});
}

void neap__online_drop_tapes(struct neap_schedule *s, int64_t t0, int64_t t1)
{
	tapes_action(s, NEAP_DROP, t0, t1, 0, 0);
}

/* Removes sent or dropped tapes from the start of the ring. */
void neap__online_pop_gone(struct neap__online_tier *x)
{
	while (x->ring_count && neap__online_ring(x, 0)->send < 0) {
		x->ring_head = (x->ring_head + 1) % x->ring_room;
		x->ring_count--;
	}
}

/* Removes all rows of sent or dropped tapes from the ring. */
void neap__online_close_ring(struct neap__online_tier *x)
{
	int64_t left = 0;
	for (int64_t i = 0; i < x->ring_count; i++)
		if (neap__online_ring(x, i)->send >= 0)
			*neap__online_ring(x, left++) = *neap__online_ring(x, i);
	x->ring_count = left;
}

/* Starts to write tapes of the ring; their memory is freed by the wait. */
int neap__online_send(
	struct neap__online_tier *x, struct neap_schedule *s, struct neap__online_tapes *r)
{
	if (x->nleaving == NEAP__ONLINE_LEAVING)
		neap__online_wait_tapes(x, s);
	int64_t place = x->chunks_made++;
	int ticket = neap__online_add_record(x, r->t0, r->t1, place, x->sizes.write_chunk);
	NEAP_TRY(ticket);
	tapes_action(s, NEAP_PUT, r->t0, r->t1, place, ticket);
	x->leaving[x->nleaving++] = ticket;
	x->ring_steps -= r->t1 - r->t0;
	r->send = -1;
	return 0;
}

static void drop_tapes(
	struct neap__online_tier *x, struct neap_schedule *s, struct neap__online_tapes *r)
{
	neap__online_drop_tapes(s, r->t0, r->t1);
	x->taped -= r->t1 - r->t0;
	x->ring_steps -= r->t1 - r->t0;
	r->send = -1;
}

/* Drops all tapes that will not be sent. */
void neap__online_drop_unsent(struct neap__online_tier *x, struct neap_schedule *s)
{
	for (int64_t i = 0; i < x->ring_count; i++)
		if (neap__online_ring(x, i)->send == 0)
			drop_tapes(x, s, neap__online_ring(x, i));
	neap__online_pop_gone(x);
}

/* Index of the oldest tapes with this value of `send`; ring_count: none. */
int64_t neap__online_oldest(const struct neap__online_tier *x, int sent)
{
	int64_t i = 0;
	while (i < x->ring_count && neap__online_ring(x, i)->send != sent)
		i++;
	return i;
}

/*
 * Frees memory of tapes. Order: the oldest that will not be sent, which cost nothing; then those in
 * flight; then those that will be sent, which first must be written.
 */
int neap__online_let_go(struct neap__online_tier *x, struct neap_schedule *s)
{
	neap__online_pop_gone(x);
	int64_t i = neap__online_oldest(x, 0), n = x->ring_count;
	if (i == n && x->nleaving > 0) {
		neap__online_wait_tapes(x, s);
		return 0;
	}
	if (i == n && n > 0)
		NEAP_TRY(neap__online_send(x, s, neap__online_ring(x, neap__online_oldest(x, 1))));
	else if (n > 0)
		drop_tapes(x, s, neap__online_ring(x, i));
	else
		return neap__fail(NEAP_EILLEGAL, "online: the pool is too small");
	neap__online_pop_gone(x);
	return 0;
}

int neap__online_send_all(struct neap__online_tier *x, struct neap_schedule *s)
{
	neap__online_close_ring(x);
	while (x->ring_count)
		NEAP_TRY(neap__online_let_go(x, s));
	while (x->nleaving)
		neap__online_wait_tapes(x, s);
	x->asked = x->nrecords;
	return 0;
}

void neap__online_drop_all(struct neap__online_tier *x, struct neap_schedule *s)
{
	for (int64_t i = 0; i < x->ring_count; i++)
		if (neap__online_ring(x, i)->send >= 0)
			drop_tapes(x, s, neap__online_ring(x, i));
	neap__online_pop_gone(x);
	x->asked = x->nrecords;
}
