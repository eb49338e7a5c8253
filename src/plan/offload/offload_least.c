/* SPDX-License-Identifier: Apache-2.0 */
/* offload_least.c: the least budget of a search, by bisection. */
#include "plan/offload/offload_least.h"

#include <math.h>
#include "base/checked.h"
#include "base/fail.h"
#include "plan/offload/offload_away.h"
#include "plan/offload/offload_groups.h"
#include "plan/offload/offload_search.h"
#include "plan/stages/long_chain.h"

/* Chosen such that a budget is found within about a second. */
#define GROUPS 120     /* of longer chains than are searched */
#define BARE_MOST 100  /* stages: of longer chains what needs no search is taken */
#define STAGES_MOST 40 /* whose search takes so little time that it is bisected itself */

/* What needs the least memory, in groups of one stage. */
static int make_bare(struct neap__action_list *out, const struct neap_problem *p)
{
	struct neap__offload_search x;
	int rc = neap__offload_search_init_bare(&x, p, 0);
	if (rc == 0)
		rc = neap__offload_search_extremes(&x);
	if (rc == 0)
		rc = neap__offload_search_list(&x, out);
	neap__offload_search_fini(&x);
	return rc;
}

static int make_in(struct neap__action_list *out, struct neap_problem p, uint64_t memory,
	neap__offload_make *make, int64_t effort, int any)
{
	p.memory = memory;
	return p.chain.steps > STAGES_MOST ? make_bare(out, &p) : make(out, &p, effort, any);
}

static int least_of_long(uint64_t *least, const struct neap_problem *p)
{
	struct neap__action_list list = {0};
	uint64_t chain = neap__long_chain_least(&p->chain);
	int rc = neap__offload_away(&list, p, least);
	neap__action_list_free(&list);
	*least = *least < chain ? *least : chain;
	return rc == NEAP_EINFEASIBLE ? 0 : rc;
}

int neap__offload_least(
	uint64_t *least, const struct neap_problem *p, neap__offload_make *make, int64_t effort)
{
	uint64_t low = 0, high = neap__chain_table_least(&p->chain);
	*least = high;
	if (p->ntiers == 0)
		return 0;
	if (p->chain.steps > BARE_MOST)
		return least_of_long(least, p);
	for (int tier = 0; tier < p->ntiers; tier++)
		high = neap__sat_add(high, p->tiers[tier].staging);
	*least = high;
	while (low < high) {
		struct neap__action_list list = {0};
		uint64_t middle = low + (high - low) / 2;
		int rc = make_in(&list, *p, middle, make, effort, 1);
		neap__action_list_free(&list);
		if (rc != 0 && rc != NEAP_EINFEASIBLE)
			return rc;
		if (rc == 0)
			high = *least = middle;
		else
			low = middle + 1;
	}
	return 0;
}

int neap__offload_make_plan(struct neap__action_list *out, const struct neap_problem *p,
	neap__offload_make *make, int64_t effort)
{
	uint64_t least;
	int rc = p->chain.steps > NEAP__OFFLOAD_SEARCH_STAGES
			 ? neap__offload_grouped(out, p, make, effort, 0, GROUPS)
			 : make(out, p, effort, 0);
	if (rc != NEAP_EINFEASIBLE)
		return rc;
	NEAP_TRY(neap__offload_least(&least, p, make, effort));
	if (least > p->memory)
		return rc;
	neap__action_list_free(out);
	if (p->chain.steps > BARE_MOST)
		return neap__offload_away(out, p, &least);
	return make_in(out, *p, least, make, effort, 0);
}
