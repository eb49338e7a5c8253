/* SPDX-License-Identifier: Apache-2.0 */
/* optimizer_steps.c: the launches of sums and updates (optimizer_steps.h). */
#include "device/optimizer_steps.h"
#include "base/fail.h"
#include "ranks/rank_share.h"

_Static_assert((int)DEVICE_ADAM == (int)NEAP__UPDATE_ADAM, "optimizer");
_Static_assert((int)DEVICE_ADAMW == (int)NEAP__UPDATE_ADAMW, "optimizer");
_Static_assert((int)DEVICE_SGD == (int)NEAP__UPDATE_SGD, "optimizer");
_Static_assert((int)DEVICE_SQUARES == (int)NEAP__SLICE_BLOCK, "blocks of squares");

int neap__device_tensor_table(struct neap__device_tensor *table, const struct neap_net *net,
	const struct neap__device_parameters *p, double *const *total)
{
	int count = 0;

	for (int i = 0; i < net->ntensors; i++) {
		const struct neap__param *t = &net->tensors[i];
		if (!t->is_frozen)
			table[count++] = (struct neap__device_tensor){.offset = (i64)t->offset,
				.count = t->count,
				.unit = t->unit,
				.decays = t->is_leak || t->is_delay ? 0 : 1,
				.total = total[i],
				.weight = p->weight[i]};
	}
	return count;
}

int neap__device_sum_groups(const struct neap_net *net, const struct neap__device_launcher *on,
	const struct neap__device_parameters *p, int groups)
{
	struct sum_groups_arguments a = {.blocks = (int)neap__device_square_blocks(net),
		.groups = groups,
		.tensors = p->learning,
		.tensor = p->tensor,
		.gradient = p->gradient,
		.square = p->square};

	return neap__launch_sum_groups(on, &a);
}

int neap__device_update(const struct neap_net *net, const struct neap__device_launcher *on,
	const struct neap__device_parameters *p, const struct neap__update *update)
{
	struct optimizer_step_arguments a = {.count = (i64)net->elements,
		.tensors = p->learning,
		.rule = (int)update->rule,
		.factor = update->factor,
		.rate = update->rate,
		.weight_decay = update->weight_decay,
		.momentum = update->momentum,
		.beta1 = update->beta1,
		.beta2 = update->beta2,
		.epsilon = update->epsilon,
		.first = update->first,
		.second = update->second,
		.tensor = p->tensor,
		.gradient = p->gradient,
		.moment = p->moment[0],
		.second_moment = p->moment[1],
		.infinite = p->infinite};

	NEAP_TRY(on->clear(on->user, p->infinite, sizeof *p->infinite));
	return neap__launch_optimizer_step(on, &a);
}
