/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offload_search.c: tries choices: as they are, repaired until they fit, and those of the
 * greedy ladder, which starts from the plans of `chain` for larger budgets.
 */
#include <math.h>
#include <string.h>
#include "base/fail.h"
#include "plan/offload/offload_search.h"

#define MEMORY_MOST                                                                                \
	((uint64_t)1 << 61) /* bytes, derived: more than all sizes, which are 2^60 at most */
#define RUNGS 24 /* budgets of the ladder, from this one to all bytes there are; chosen */

int neap__offload_search_init_bare(
	struct neap__offload_search *x, const struct neap_problem *p, int64_t effort)
{
	int64_t n = p->chain.steps;
	memset(x, 0, sizeof *x);
	x->bounded = *p;
	if (p->memory > MEMORY_MOST)
		x->bounded.memory = MEMORY_MOST;
	x->problem = p = &x->bounded;
	x->makespan = INFINITY;
	x->left = effort;
	NEAP_TRY(neap__offload_init(&x->fit, p));
	NEAP_TRY(neap__offload_choice_init(&x->now, n));
	NEAP_TRY(neap__offload_choice_init(&x->trial, n));
	return neap__offload_choice_init(&x->best, n);
}

int neap__offload_search_init(
	struct neap__offload_search *x, const struct neap_problem *p, int64_t effort)
{
	int64_t n = p->chain.steps;
	NEAP_TRY(neap__offload_search_init_bare(x, p, effort));
	p = x->problem;
	if (n <= NEAP__CHAIN_TABLE_STAGES) {
		/* They hold for less memory too. */
		uint64_t least = neap__chain_table_least(&p->chain);
		NEAP_TRY(neap__chain_table_fill(
			&x->tables, &p->chain, least > p->memory ? least : p->memory));
		x->groups = &x->tables;
	}
	return 0;
}

void neap__offload_search_fini(struct neap__offload_search *x)
{
	neap__offload_fini(&x->fit);
	neap__action_list_free(&x->plain);
	neap__chain_table_free(&x->tables);
	neap__offload_choice_free(&x->now);
	neap__offload_choice_free(&x->trial);
	neap__offload_choice_free(&x->best);
}

static void keep(
	struct neap__offload_search *x, const struct neap__offload_choice *o, double makespan)
{
	x->left -= x->fit.fits > 0 ? x->fit.fits : 1;
	x->fit.fits = 0;
	if (makespan < x->makespan) {
		x->makespan = makespan;
		neap__offload_choice_copy(&x->best, o);
	}
}

int neap__offload_search_try(
	struct neap__offload_search *x, const struct neap__offload_choice *o, double *makespan)
{
	int rc = neap__offload_choice_load(&x->fit, &x->plain, o, x->groups);
	if (rc > 0)
		rc = neap__offload_fit(&x->fit, NULL);
	*makespan = rc > 0 ? x->fit.makespan : INFINITY;
	keep(x, o, *makespan);
	return rc < 0 ? rc : 0;
}

int neap__offload_search_relieve(
	struct neap__offload_search *x, struct neap__offload_choice *o, double *makespan)
{
	int rc = neap__offload_choice_relieve(&x->fit, &x->plain, o, x->groups);
	*makespan = rc > 0 ? x->fit.makespan : INFINITY;
	keep(x, o, *makespan);
	return rc < 0 ? rc : 0;
}

/* Bytes of everything at once, about. */
static uint64_t all_bytes(const struct neap_chain *c)
{
	const struct neap_stages *s = c->stages;
	uint64_t all = c->adjoint * 2, temporary = 0;
	for (int64_t i = 0; i <= c->steps; i++) {
		uint64_t more = (uint64_t)neap__stage_backward_tmp(s, i);
		all += s->state[i] + (i < c->steps ? s->tape[i] : 0);
		if (i < c->steps && more < (uint64_t)neap__stage_record_tmp(s, i))
			more = (uint64_t)neap__stage_record_tmp(s, i);
		if (i < c->steps)
			more += 2 * s->state[i] + s->state[i + 1];
		temporary = more > temporary ? more : temporary;
	}
	return all + temporary;
}

int neap__offload_search_extremes(struct neap__offload_search *x)
{
	struct neap__offload_choice *o = &x->trial;
	size_t n = (size_t)o->n;
	double makespan;
	for (int recorded = 0; recorded < 2; recorded++)
		for (int states = !recorded; states < 2; states++) {
			memset(o->tape, recorded ? NEAP__STAYS : NEAP__NOT_KEPT, n);
			memset(o->state, states ? NEAP__STAYS : NEAP__NOT_KEPT, n);
			memset(o->ahead, 0, n);
			o->state[0] = NEAP__STAYS;
			NEAP_TRY(neap__offload_search_relieve(x, o, &makespan));
		}
	return 0;
}

int neap__offload_search_greedy(struct neap__offload_search *x)
{
	const struct neap_problem *p = x->problem;
	struct neap__chain_table tables = {0};
	uint64_t all = all_bytes(&p->chain);
	double makespan;
	NEAP_TRY(neap__offload_search_extremes(x));
	if (!x->groups)
		return 0;
	uint64_t least = neap__chain_table_least(&p->chain);
	all = all > least ? all : least;
	int rc = neap__chain_table_fill(&tables, &p->chain, all > p->memory ? all : p->memory);
	for (int k = 0; rc == 0 && k < RUNGS; k++) {
		double share = (double)k / RUNGS;
		double more = all > p->memory ? (double)(all - p->memory) : 0;
		neap__offload_choice_spine(
			&x->trial, &tables, (int64_t)((double)p->memory + more * share * share));
		rc = neap__offload_search_relieve(x, &x->trial, &makespan);
	}
	neap__chain_table_free(&tables);
	return rc;
}

int neap__offload_search_list(struct neap__offload_search *x, struct neap__action_list *out)
{
	if (!(x->makespan < INFINITY))
		return neap__fail(NEAP_EINFEASIBLE, "no outline fits");
	int rc = neap__offload_choice_load(&x->fit, &x->plain, &x->best, x->groups);
	if (rc > 0)
		rc = neap__offload_fit(&x->fit, out);
	return rc < 0 ? rc : 0;
}
