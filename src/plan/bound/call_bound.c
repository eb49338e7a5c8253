/* SPDX-License-Identifier: Apache-2.0 */
/*
 * callbound: a call of n steps costs call + n f seconds, at least n (f + call / m) where no
 * call has more than m steps: those of the chain for advance, and for record and backward
 * as many as there is room for their tapes.
 */
#include "plan/bound/call_bound.h"

#include "plan/core/sizing.h"

/* Steps whose tapes can be in fast memory at a time, 1 at least. */
static double tapes_most(const struct neap_problem *p)
{
	const struct neap_chain *c = &p->chain;
	uint64_t taken = c->adjoint + neap__live_bytes(p), steps = (uint64_t)c->steps, most = 1;
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
