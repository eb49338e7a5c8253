/* SPDX-License-Identifier: Apache-2.0 */
/* plan_copy.c: copies of plans, with the list of actions that a plan borrows. */
#include <neap/plan.h>
#include "base/checked.h"
#include "base/fail.h"
#include "base/struct_size.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int neap_plan_copy(struct neap_plan **out, const struct neap_plan *plan)
{
	NEAP_NEED(out, plan);
	struct neap_plan full;
	uint64_t bytes;
	NEAP_TRY(neap__struct_take(&full, sizeof full, plan, "neap_plan"));
	if (full.action_count < 0 ||
		neap__mul_u64(&bytes, (uint64_t)full.action_count, sizeof *full.actions) < 0)
		return neap__fail(NEAP_EUSAGE, "neap_plan_copy: a list of %lld actions",
			(long long)full.action_count);
	bytes = full.actions && bytes ? bytes : 1;
	struct neap_plan *copy = malloc(sizeof *copy);
	struct neap_action *actions = malloc(bytes);
	if (!copy || !actions) {
		free(copy);
		free(actions);
		return neap__fail_errno(ENOMEM, "copy of a plan");
	}
	if (full.actions)
		memcpy(actions, full.actions, (size_t)full.action_count * sizeof *actions);
	*copy = full;
	copy->actions = full.actions ? actions : NULL;
	if (!full.actions)
		free(actions);
	*out = copy;
	return 0;
}

void neap_plan_free(struct neap_plan *copy)
{
	if (!copy)
		return;
	free((void *)(uintptr_t)copy->actions);
	free(copy);
}
