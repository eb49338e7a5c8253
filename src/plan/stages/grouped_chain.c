/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grouped_chain.c: the schedule of blocks of stages (stage_groups.h), written out stage by stage.
 */
#include "plan/stages/grouped_chain.h"

#include <errno.h>
#include <stdlib.h>
#include "base/fail.h"
#include "plan/stages/long_chain.h"
#include "plan/stages/stage_groups.h"

#define BLOCKS 128 /* whose tables take some 50 MB and a fifth of a second */

struct grouped {
	struct neap__stage_groups groups;
	struct neap_schedule *plan; /* of blocks */
};

/* An action on blocks is one on their stages. */
static int refill(struct neap_schedule *s)
{
	struct grouped *x = s->self;
	struct neap_action a;
	int rc = neap_schedule_next(x->plan, &a);
	if (rc <= 0)
		return rc;
	a.t0 = x->groups.at[a.t0];
	a.t1 = x->groups.at[a.t1];
	neap__emit(s, &a);
	return 0;
}

static void fini(struct neap_schedule *s)
{
	struct grouped *x = s->self;
	neap_schedule_close(x->plan);
	neap__stage_groups_free(&x->groups);
}

int neap__grouped_chain_open(struct neap_schedule *s)
{
	const struct neap_chain *c = &s->problem.chain;
	struct neap_problem blocks = s->problem;
	struct neap_plan plan = s->plan;
	int64_t largest = 0;
	struct grouped *x = s->self = calloc(1, sizeof *x);
	if (!x)
		return neap__fail(-ENOMEM, "schedule: out of memory");
	s->refill = refill;
	s->fini = fini;
	for (int64_t i = 0; i < c->steps && plan.variant == NEAP__LONG_CHAIN_BLOCKS_WORST; i++) {
		int64_t tape = (int64_t)c->stages->tape[i];
		largest = tape > largest ? tape : largest;
	}
	NEAP_TRY(neap__stage_groups_make(&x->groups, c, BLOCKS, largest));
	blocks.chain.steps = x->groups.n;
	blocks.chain.stages = &x->groups.stages;
	return neap__schedule_open_row(&x->plan, s->row, &blocks, &plan);
}
