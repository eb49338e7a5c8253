/* SPDX-License-Identifier: Apache-2.0 */
/* pooling.c: the units of pools that pass (pooling.h). */
#include "nn/core/pooling.h"
#include "nn/core/products.h"

#include <string.h>

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

/* The same where windows overlap; lists the pools in the order in which they are found. */
static int find_bests(int32_t *best, uint16_t *pools, const struct neap__layer *layer,
	const struct neap__list *outputs)
{
	const real *v = outputs->value;
	int count = 0;

	for (int k = 0; k < outputs->count; k++) {
		const uint32_t *start = layer->pool_start + outputs->id[k];
		for (uint32_t e = start[0]; e < start[1]; e++) {
			int pool = layer->pooled[e];
			if (!best[pool])
				pools[count++] = (uint16_t)pool;
			if (!best[pool] || (v && v[k] > v[best[pool] - 1]))
				best[pool] = k + 1;
		}
	}
	return count;
}

static struct neap__list list_pools(int32_t *best, uint16_t *pools, real *value,
	const struct neap__layer *layer, const struct neap__list *outputs)
{
	const real *v = outputs->value;
	int count = find_bests(best, pools, layer, outputs);

	for (int i = 0; i < count; i++) {
		if (v)
			value[i] = v[best[pools[i]] - 1];
		best[pools[i]] = 0;
	}
	return (struct neap__list){.count = count, .id = pools, .value = v ? value : NULL};
}

void neap__pool_products(const struct neap_net *net, struct neap__group *group,
	const struct neap__layer *layer, int slot, const struct neap__view *view,
	const struct neap__list *outputs, const real *din, real *ds)
{
	int32_t *best = group->pool.best;
	uint16_t *pools = group->pool.ids + (size_t)slot * group->pool.most;
	int found = find_bests(best, pools, layer, outputs);

	for (int k = 0; k < view->active; k++) {
		int unit = view->active_id[k], count = 0;
		uint16_t *into = group->pool.into;
		for (uint32_t e = layer->pool_start[unit]; e < layer->pool_start[unit + 1]; e++) {
			int pool = layer->pooled[e];
			int passes =
				best[pool] ? outputs->id[best[pool] - 1] : layer->pool_first[pool];
			if (unit == passes)
				into[count++] = (uint16_t)pool;
		}
		/* One sum of all: the products of a unit follow each other. */
		struct neap__sample_rows sample = {
			.id = into, .count = count, .out = group->pool.products, .in = din};
		memset(sample.out, 0, (size_t)count * sizeof *sample.out);
		neap__products_dot(net, &sample, 1, layer->weight, 0);
		for (int i = 0; i < count; i++)
			ds[k] += sample.out[i];
	}
	for (int i = 0; i < found; i++)
		best[pools[i]] = 0;
}

struct neap__list neap__pool_list(const struct neap_net *net, struct neap__group *group,
	const struct neap__layer *layer, int slot, const struct neap__list *outputs)
{
	size_t most = (size_t)group->pool.most;
	uint16_t *id = group->pool.ids + (size_t)slot * most;
	real *value = (real *)group->pool.values + (size_t)slot * most;
	const real *v = outputs->value;
	int count = 0;

	(void)net;
	if (layer->pool_start)
		return list_pools(group->pool.best, id, value, layer, outputs);

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
