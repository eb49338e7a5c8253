/* SPDX-License-Identifier: Apache-2.0 */
/* measure_list.c: verify and simulate over a list, and the plan filled from their numbers. */
#include "plan/verify/measure_list.h"
#include <string.h>
#include "base/fail.h"

struct list_position {
	const struct neap__action_list *list;
	int64_t next;
};

static int read_next(void *user, struct neap_action *a)
{
	struct list_position *r = user;
	if (r->next == r->list->n)
		return 0;
	*a = r->list->a[r->next++];
	return 1;
}

void neap__plan_measured(
	struct neap_plan *plan, const struct neap_verdict *v, const struct neap_simulation *m)
{
	plan->peak_bytes = v->peak_bytes;
	plan->arena_bytes = v->arena_bytes;
	plan->slots = v->slots;
	plan->advance_steps = v->advance_steps;
	plan->record_steps = v->record_steps;
	plan->makespan = m->makespan;
	plan->stall = m->stall;
	plan->lost = m->lost;
	memcpy(plan->tiers, v->tiers, sizeof plan->tiers);
}

int neap__action_list_measure(
	struct neap_plan *plan, const struct neap_problem *p, const struct neap__action_list *list)
{
	struct list_position reading = {list, 0};
	struct neap_schedule *s = NULL;
	struct neap_verdict v = {.size = sizeof v};
	struct neap_simulation m = {.size = sizeof m};
	NEAP_TRY(neap_schedule_wrap(&s, read_next, NULL, &reading));
	int rc = neap_verify(&v, p, s);
	reading.next = 0;
	if (rc == 0)
		rc = neap_simulate(&m, p, s);
	neap_schedule_close(s);
	NEAP_TRY(rc);
	if (v.peak_bytes > p->memory)
		return neap__fail(NEAP_EILLEGAL, "the plan takes %llu bytes",
			(unsigned long long)v.peak_bytes);
	plan->feasible = 1;
	neap__plan_measured(plan, &v, &m);
	plan->tier = 0;
	for (int i = p->ntiers; i > 0; i--)
		if (v.tiers[i - 1].written || v.tiers[i - 1].read)
			plan->tier = i;
	return 0;
}
