/* SPDX-License-Identifier: Apache-2.0 */
/*
 * count_model.h: the least forward executions after the turn, by exhaustive search without clocks
 * or channels: what the counting rows of the lower bound (plan/bound/turn_levels.h) are about.
 *
 * A spot is what is held (states and tapes, as sets of bits), what is on a far tier of unlimited
 * size and on a near tier, which state is live, and how many transfers of states to and from the
 * far tier and writes of tapes to it are left. Transfers of a near tier and reads of tapes are not
 * limited. The search may do more than schedules can: transfers take no time, a state may be
 * copied into its slot while another is live, and the live state survives a backward step.
 */
#ifndef NEAP_TESTS_PLAN_COUNT_MODEL_H
#define NEAP_TESTS_PLAN_COUNT_MODEL_H

#include <stdint.h>
#include <stdlib.h>

#define COUNT_SPOTS (1 << 19) /* of the hash table; searches end at half of them */
#define COUNT_COST 64	      /* forward executions at most */
#define COUNT_NO_LIVE 15

/* Bit i of a set: state or tape i. left: the first step that is already reversed. */
struct count_spot {
	uint8_t left, live;
	uint8_t held, tapes, far, far_tapes, near, near_tapes; /* sets of at most 6 bits */
	uint8_t writes, reads, tape_writes;		       /* at most 7, 7 and 3 */
};

/* Bytes: of a state, of a tape, of fast memory without the live state, of the near tier. */
struct count_sizes {
	int state, tape, pool, near;
};

struct count_search {
	struct count_sizes size;
	uint64_t key[COUNT_SPOTS];
	uint32_t stamp[COUNT_SPOTS], now; /* an entry is used if its stamp is `now` */
	uint8_t cost[COUNT_SPOTS];
	int32_t next[COUNT_SPOTS], bucket[COUNT_COST];
	struct count_spot spot[COUNT_SPOTS];
	int count;
};

static inline uint64_t count_key(const struct count_spot *s)
{
	const uint8_t sets[] = {s->held, s->tapes, s->far, s->far_tapes, s->near, s->near_tapes};
	uint64_t key = (uint64_t)(s->left | s->live << 3 | s->writes << 7 | s->reads << 10 |
				  s->tape_writes << 13);
	for (int i = 0; i < 6; i++)
		key = key << 6 | sets[i];
	return key;
}

static inline int count_bits(unsigned set)
{
	return __builtin_popcount(set);
}

static inline int count_fits(const struct count_search *x, const struct count_spot *s)
{
	const struct count_sizes *z = &x->size;
	return count_bits(s->held) * z->state + count_bits(s->tapes) * z->tape <= z->pool &&
	       count_bits(s->near) * z->state + count_bits(s->near_tapes) * z->tape <= z->near;
}

/*
 * Reverses every step whose tape is there or can be brought, and forgets what is of no more use.
 * To wait with either helps nothing.
 */
static inline void count_reverse(const struct count_search *x, struct count_spot *s)
{
	while (s->left > 0) {
		uint8_t last = (uint8_t)(1 << (s->left - 1));
		struct count_spot with = *s;
		with.tapes |= last;
		if (!(s->tapes & last) &&
			(!((s->far_tapes | s->near_tapes) & last) || !count_fits(x, &with)))
			break;
		s->left--;
		uint8_t rest = (uint8_t)((1 << s->left) - 1);
		s->held &= rest;
		s->tapes &= rest;
		s->far &= rest;
		s->far_tapes &= rest;
		s->near &= rest;
		s->near_tapes &= rest;
	}
	if (s->live >= s->left)
		s->live = COUNT_NO_LIVE;
}

/* Adds a spot that is reached at a cost, unless it does not fit or is known at no higher one. */
static inline void count_push(struct count_search *x, struct count_spot s, int cost)
{
	if (!count_fits(x, &s) || cost >= COUNT_COST)
		return;
	count_reverse(x, &s);
	uint64_t key = count_key(&s);
	uint32_t at = (uint32_t)(key * 0x9E3779B97F4A7C15u >> 40) % COUNT_SPOTS;
	while (x->stamp[at] == x->now && x->key[at] != key)
		at = (at + 1) % COUNT_SPOTS;
	if (x->stamp[at] == x->now && x->cost[at] <= cost)
		return;
	/* A spot that was pushed at a higher cost stays in its bucket, where count_least skips it.
	 */
	x->stamp[at] = x->now;
	x->key[at] = key;
	x->cost[at] = (uint8_t)cost;
	x->spot[x->count] = s;
	x->next[x->count] = x->bucket[cost];
	x->bucket[cost] = x->count++;
}

static inline int count_known(struct count_search *x, const struct count_spot *s)
{
	uint64_t key = count_key(s);
	uint32_t at = (uint32_t)(key * 0x9E3779B97F4A7C15u >> 40) % COUNT_SPOTS;
	while (x->key[at] != key || x->stamp[at] != x->now)
		at = (at + 1) % COUNT_SPOTS;
	return x->cost[at];
}

/* Step `live` forward, with its tape or without; the live state into fast memory or onto a tier. */
static inline void count_live(struct count_search *x, const struct count_spot *from, int cost)
{
	uint8_t bit = (uint8_t)(1 << from->live);
	struct count_spot s = *from;
	s.live++;
	count_push(x, s, cost + 1);
	s.tapes |= bit;
	if (!(from->tapes & bit))
		count_push(x, s, cost + 1);
	s = *from;
	s.held |= bit;
	count_push(x, s, cost);
	s = *from;
	s.near |= bit;
	count_push(x, s, cost);
	s = *from;
	s.far |= bit;
	if (s.writes > 0 && s.far != from->far) {
		s.writes--;
		count_push(x, s, cost);
	}
}

/* State i, wherever it is: to another place, to the live state, or away. */
static inline void count_state(
	struct count_search *x, const struct count_spot *from, int i, int cost)
{
	uint8_t bit = (uint8_t)(1 << i), others = (uint8_t)~bit;
	struct count_spot s = *from, live = *from;
	live.live = (uint8_t)i;
	if (from->held & bit || from->near & bit)
		count_push(x, live, cost);
	if (from->held & bit) {
		s.held &= others;
		count_push(x, s, cost);
		s = *from;
		s.near |= bit;
		count_push(x, s, cost);
		s = *from;
		s.far |= bit;
		if (s.writes > 0 && s.far != from->far) {
			s.writes--;
			count_push(x, s, cost);
		}
	}
	if (from->near & bit) {
		s = *from;
		s.near &= others;
		count_push(x, s, cost);
		s = *from;
		s.held |= bit;
		count_push(x, s, cost);
	}
	if (from->far & bit && from->reads > 0) {
		live.reads--;
		count_push(x, live, cost);
		s = *from;
		s.held |= bit;
		s.reads--;
		count_push(x, s, cost);
	}
}

/* Tape i, wherever it is: to another place, or away. */
static inline void count_tape(
	struct count_search *x, const struct count_spot *from, int i, int cost)
{
	uint8_t bit = (uint8_t)(1 << i), others = (uint8_t)~bit;
	struct count_spot s = *from;
	if (from->tapes & bit) {
		s.tapes &= others;
		count_push(x, s, cost);
		s.near_tapes |= bit;
		count_push(x, s, cost);
		s.near_tapes = from->near_tapes;
		s.far_tapes |= bit;
		if (s.tape_writes > 0 && s.far_tapes != from->far_tapes) {
			s.tape_writes--;
			count_push(x, s, cost);
		}
	}
	s = *from;
	if (from->near_tapes & bit) {
		s.near_tapes &= others;
		count_push(x, s, cost);
	}
	s.tapes |= bit;
	if ((from->near_tapes | from->far_tapes) & bit)
		count_push(x, s, cost);
}

/*
 * The least forward executions from a spot until every step is reversed; -1: impossible, -2: the
 * search is too large. The search is the caller's, all zero before the first call.
 */
static inline int count_least(struct count_search *x, const struct count_spot *from)
{
	x->now++;
	x->count = 0;
	for (int cost = 0; cost < COUNT_COST; cost++)
		x->bucket[cost] = -1;
	count_push(x, *from, 0);
	for (int cost = 0; cost < COUNT_COST; cost++)
		while (x->bucket[cost] >= 0) {
			struct count_spot s = x->spot[x->bucket[cost]];
			x->bucket[cost] = x->next[x->bucket[cost]];
			if (count_known(x, &s) < cost)
				continue;
			if (s.left == 0)
				return cost;
			if (s.live != COUNT_NO_LIVE)
				count_live(x, &s, cost);
			for (int i = 0; i < s.left; i++) {
				count_state(x, &s, i, cost);
				count_tape(x, &s, i, cost);
			}
			if (x->count > COUNT_SPOTS / 2)
				return -2;
		}
	return -1;
}

#endif
