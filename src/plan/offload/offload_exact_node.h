/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offload_exact_node.h: what the exact search knows.
 *   offload_exact.c  the search
 *   offload_exact_path.c   the schedule along a path
 */
#ifndef NEAP_PLAN_OFFLOAD_OFFLOAD_EXACT_NODE_H
#define NEAP_PLAN_OFFLOAD_OFFLOAD_EXACT_NODE_H

#include "plan/core/action_list.h"
#include "plan/core/stage_sizes.h"

enum { FLIGHTS = 6 };
enum {
	MOVE_ADVANCE,
	MOVE_RECORD,
	MOVE_TURN,
	MOVE_BACKWARD,
	MOVE_PUT,
	MOVE_GET,
	MOVE_DROP,
	MOVE_WAIT
};

/* Bits: states 0..L, tapes 16 + i. */
#define TAPE(i) ((uint32_t)1 << (16 + (i)))
#define STATE(t) ((uint32_t)1 << (t))

struct neap__offload_exact_spot {
	uint32_t fast, slow, leaving, arriving;
	int32_t adjoint; /* steps + 1: before the turn */
	int32_t flights;
	struct {
		uint32_t bit;
		int32_t put;
		double rest; /* seconds until it ends */
	} flight[FLIGHTS];   /* in order of issue */
};

struct neap__offload_exact_node {
	struct neap__offload_exact_spot spot;
	double time, least; /* so far; of the whole, at least */
	int64_t parent, chain;
	int32_t move;
	uint32_t bit;
};

struct neap__offload_exact_entry {
	double least, time;
	int64_t k;
};

struct neap__offload_exact_search {
	const struct neap_problem *p;
	const struct neap_stages *s;
	const struct neap_tier_spec *tier;
	int64_t n, memory;
	int holds, needs;
	double above;
	struct neap__offload_exact_node *node;
	int64_t count, room;
	struct neap__offload_exact_entry *heap;
	int64_t heap_count, heap_room;
	int64_t *hash;
	uint64_t mask;
	int failed;
};

static inline int neap__spot_in_tape(const struct neap__offload_exact_search *x,
	const struct neap__offload_exact_spot *a, int64_t t)
{
	return t > 0 && x->holds && a->fast & TAPE(t - 1);
}

static inline int neap__spot_present(const struct neap__offload_exact_search *x,
	const struct neap__offload_exact_spot *a, int64_t t)
{
	return (a->fast & STATE(t)) || neap__spot_in_tape(x, a, t);
}

/* The schedule that leads to a node. 1, or a negative code. */
int neap__stagepath(
	const struct neap__offload_exact_search *x, int64_t node, struct neap__action_list *out);

#endif
