/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offload_exact_node.h: the nodes of the exact search, for its two files: the search itself
 * (offload_exact.c) and the schedule along its path (offload_exact_path.c). A set of states and
 * tapes is a word of 32 bits: bit t is x_t, bit 16 + i is the tape of stage i.
 */
#ifndef NEAP_TESTS_PLAN_OFFLOAD_EXACT_NODE_H
#define NEAP_TESTS_PLAN_OFFLOAD_EXACT_NODE_H

#include "plan/core/action_list.h"
#include "plan/core/stage_sizes.h"

enum { FLIGHTS = 6 }; /* transfers at once; each more multiplies the spots */
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

#define TAPE(i) ((uint32_t)1 << (16 + (i)))
#define STATE(t) ((uint32_t)1 << (t))

struct neap__offload_exact_spot {
	uint32_t fast, slow, leaving, arriving; /* sets */
	int32_t adjoint;			/* steps + 1: before the turn */
	int32_t flights;
	struct {
		uint32_t bit;
		int32_t put;
		double rest; /* seconds until it ends */
	} flight[FLIGHTS];   /* in order of issue */
};

struct neap__offload_exact_node {
	struct neap__offload_exact_spot spot;
	double time, least;    /* seconds so far; of the whole schedule, at least */
	int64_t parent, chain; /* the node before; the next node of the same hash */
	int32_t move;	       /* the move that led here, */
	uint32_t bit;	       /* and its stage, or the payload that it moves */
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
	int holds, needs; /* tapes hold outputs; backward needs inputs */
	double above;
	struct neap__offload_exact_node *node;
	int64_t count, room;
	struct neap__offload_exact_entry *heap;
	int64_t heap_count, heap_room;
	int64_t *hash;
	uint64_t mask;
	int failed; /* no more nodes, or no memory */
};

static inline int neap__offload_exact_in_tape(const struct neap__offload_exact_search *x,
	const struct neap__offload_exact_spot *a, int64_t t)
{
	return t > 0 && x->holds && a->fast & TAPE(t - 1);
}

static inline int neap__offload_exact_present(const struct neap__offload_exact_search *x,
	const struct neap__offload_exact_spot *a, int64_t t)
{
	return (a->fast & STATE(t)) || neap__offload_exact_in_tape(x, a, t);
}

/* The schedule that leads to a node. 1, or a negative code. */
int neap__offload_exact_path(
	const struct neap__offload_exact_search *x, int64_t node, struct neap__action_list *out);

#endif
