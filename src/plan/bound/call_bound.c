/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call_bound.c: m is the whole chain for an advance; for record and backward, m is the number
 * of steps whose tapes fit into fast memory.
 */
#include "plan/bound/call_bound.h"

#include "plan/core/sizing.h"

/* Steps whose tapes fit into fast memory at a time, 1 at least. */
static double tapes_most(const struct neap_problem *p)
{
	const struct neap_chain *c = &p->chain;
	uint64_t taken = c->adjoint + neap__live_bytes(p), most = 1;
	uint64_t steps = (uint64_t)(c->steps > c->join ? c->steps : c->join);
	if (c->flags & NEAP_CHAIN_MIXED)
		most = p->memory < steps ? p->memory + 1 : steps;
	else if (!(c->flags & NEAP_CHAIN_CLASSIC))
		most = c->tape && p->memory >= taken ? (p->memory - taken) / c->tape : steps;
	if (most > steps)
		most = steps;
	return most > 1 ? (double)most : 1;
}

int neap__call_bound_spread(struct neap_problem *spread, const struct neap_problem *problem)
{
	struct neap_chain *c = &spread->chain;
	if (!(problem->chain.call > 0) || problem->chain.stages)
		return 0;
	*spread = *problem;
	int64_t steps = c->steps > c->join ? c->steps : c->join;
	double each = c->call / tapes_most(problem);
	c->advance += c->call / (double)(steps > 1 ? steps : 1);
	c->record += each;
	c->replay += each;
	c->backward += each;
	c->call = 0;
	return 1;
}
