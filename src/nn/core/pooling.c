/* SPDX-License-Identifier: Apache-2.0 */
/* pooling.c: the units of pools that pass (pooling.h). */
#include "nn/core/pooling.h"

enum { NO_POOL = UINT16_MAX };

/* best[pool] = 1 + the place in the list of the unit that passes; the others stay 0. */
static void find_best(
	int32_t *best, const struct neap__layer *layer, const struct neap__list *outputs)
{
	const real *v = outputs->value;

	for (int k = 0; k < outputs->count; k++) {
		int pool = layer->pooled[outputs->id[k]];
		if (pool != NO_POOL && (!best[pool] || (v && v[k] > v[best[pool] - 1])))
			best[pool] = k + 1;
	}
}

static void forget_best(
	int32_t *best, const struct neap__layer *layer, const struct neap__list *outputs)
{
	for (int k = 0; k < outputs->count; k++)
		if (layer->pooled[outputs->id[k]] != NO_POOL)
			best[layer->pooled[outputs->id[k]]] = 0;
}

struct neap__list neap__pool_list(const struct neap_net *net, struct neap__group *group,
	const struct neap__layer *layer, int slot, const struct neap__list *outputs)
{
	size_t most =
		(size_t)(net->options.inputs > net->widest ? net->options.inputs : net->widest);
	uint16_t *id = group->pool.ids + (size_t)slot * most;
	real *value = (real *)group->pool.values + (size_t)slot * most;
	const real *v = outputs->value;
	int count = 0;

	find_best(group->pool.best, layer, outputs);
	for (int k = 0; k < outputs->count; k++) {
		int pool = layer->pooled[outputs->id[k]];
		if (pool == NO_POOL || group->pool.best[pool] != k + 1)
			continue;
		if (v)
			value[count] = v[k];
		id[count++] = outputs->id[k];
	}
	forget_best(group->pool.best, layer, outputs);
	return (struct neap__list){.count = count, .id = id, .value = v ? value : NULL};
}

void neap__pool_gradient(const struct neap_net *net, struct neap__group *group,
	const struct neap__layer *layer, const struct neap__view *view,
	const struct neap__list *outputs, real *ds)
{
	(void)net;
	find_best(group->pool.best, layer, outputs);
	for (int k = 0; k < view->active; k++) {
		int unit = view->active_id[k], pool = layer->pooled[unit];
		int best = pool == NO_POOL ? 0 : group->pool.best[pool];
		int passes = pool == NO_POOL ? -1
			     : best	     ? outputs->id[best - 1]
					     : layer->pool_first[pool];
		if (unit != passes)
			ds[k] = 0;
	}
	forget_best(group->pool.best, layer, outputs);
}
