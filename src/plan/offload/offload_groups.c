/* SPDX-License-Identifier: Apache-2.0 */
/* offload_groups.c: the search over groups, and its actions spread over their stages. */
#include "plan/offload/offload_groups.h"
#include "plan/stages/stage_groups.h"

static void spread(struct neap__action_list *out, const struct neap__action_list *list,
	const struct neap__stage_groups *groups)
{
	for (int64_t i = 0; i < list->n; i++) {
		struct neap_action a = list->a[i];
		a.t0 = groups->at[a.t0];
		a.t1 = groups->at[a.t1];
		neap__action_list_add(out, &a);
	}
}

int neap__offload_grouped(struct neap__action_list *out, const struct neap_problem *p,
	neap__offload_make *make, int64_t effort, int any, int64_t count)
{
	struct neap__stage_groups groups;
	struct neap__action_list list = {0};
	struct neap_problem coarse = *p;
	int rc = neap__stage_groups_make(&groups, &p->chain, neap__all_stages(&p->chain), count, 0);
	coarse.chain.steps = groups.n;
	coarse.chain.stages = &groups.stages;
	if (rc == 0)
		rc = make(&list, &coarse, effort, any);
	if (rc == 0)
		spread(out, &list, &groups);
	neap__action_list_free(&list);
	neap__stage_groups_free(&groups);
	return rc < 0 ? rc : out->error;
}
