/* SPDX-License-Identifier: Apache-2.0 */
/* optimizer_steps.c: the launches of sums and updates (optimizer_steps.h). */
#include "device/optimizer_steps.h"
#include "base/fail.h"
#include "ranks/rank_share.h"

_Static_assert((int)DEVICE_ADAM == (int)NEAP__UPDATE_ADAM, "optimizer");
_Static_assert((int)DEVICE_ADAMW == (int)NEAP__UPDATE_ADAMW, "optimizer");
_Static_assert((int)DEVICE_SGD == (int)NEAP__UPDATE_SGD, "optimizer");
_Static_assert((int)DEVICE_SQUARES == (int)NEAP__SLICE_BLOCK, "blocks of squares");

int neap__device_sum_groups(const struct neap_net *net, const struct neap__device_launcher *on,
	const struct neap__device_parameters *p, double *const *total, int groups)
{
	NEAP_TRY(on->clear(
		on->user, p->square, neap__device_square_blocks(net) * sizeof *p->square));
	for (int i = 0; i < net->ntensors; i++) {
		const struct neap__param *t = &net->tensors[i];
		struct sum_groups_arguments a = {.offset = (i64)t->offset,
			.count = (int)t->count,
			.groups = groups,
			.unit = t->unit,
			.total = total[i],
			.gradient = p->gradient + t->offset,
			.square = p->square};
		if (!t->is_frozen)
			NEAP_TRY(neap__launch_sum_groups(on, &a));
	}
	return 0;
}

int neap__device_update(const struct neap_net *net, const struct neap__device_launcher *on,
	const struct neap__device_parameters *p, const struct neap__update *update)
{
	NEAP_TRY(on->clear(on->user, p->infinite, sizeof *p->infinite));
	for (int i = 0; i < net->ntensors; i++) {
		const struct neap__param *t = &net->tensors[i];
		struct optimizer_step_arguments a = {.count = (int)t->count,
			.rule = (int)update->rule,
			.factor = update->factor,
			.unit = t->unit,
			.rate = update->rate,
			.weight_decay = t->is_leak ? 0 : update->weight_decay,
			.momentum = update->momentum,
			.beta1 = update->beta1,
			.beta2 = update->beta2,
			.epsilon = update->epsilon,
			.first = update->first,
			.second = update->second,
			.gradient = p->gradient + t->offset,
			.moment = p->moment[0] + t->offset,
			.second_moment = p->moment[1] ? p->moment[1] + t->offset : NULL,
			.weight = p->weight[i],
			.infinite = p->infinite};
		if (!t->is_frozen)
			NEAP_TRY(neap__launch_optimizer_step(on, &a));
	}
	return 0;
}
