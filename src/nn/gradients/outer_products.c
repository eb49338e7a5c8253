/* SPDX-License-Identifier: Apache-2.0 */
/* outer_products.c: the gradients of one tile (outer_products.h). */
#include "nn/gradients/outer_products.h"
#include "nn/gradients/backward.h"
#include "nn/gradients/event_lists.h"

struct outer_work {
	struct neap_net *net;
	struct neap__grads *grads;
	struct neap__deferred *deferred;
	const struct neap__outer_tile *tile;
	const struct neap__layer *layer;
	int64_t t1, t0;
};

static int64_t length_of(const struct outer_work *w, int s)
{
	return w->net->batch->sequences[w->grads->first + s].length;
}

/* The input values of a step, which neap__inputs_store converted where they are no floats. */
static const real *inputs_of(const struct outer_work *w, int64_t t, int s)
{
	int row = (int)(w->t1 - t) * w->deferred->samples + s;
	const real *room = neap__deferred_inputs(w->net, w->deferred, row);

	if (sizeof(real) != sizeof(float))
		return room;
	return neap__input_values(w->net, w->grads->first + s, t, NULL);
}

/* Fills in the terms of a tensor, outputs and the d(in) that they enter; returns how many. */
static int collect(const struct outer_work *w, struct neap__outer_team *team)
{
	int own = w->tile->tensor == w->layer->recurrent, next = own || w->layer->delay;
	int from = w->tile->layer - !own;
	int column = neap__column_of(w->layer, w->tile->tensor), count = 0;

	for (int64_t t = w->t1 - 1; t >= w->t0; t--) {
		int step = (int)(w->t1 - t);
		for (int s = 0; s < w->grads->size; s++) {
			if (t + next >= length_of(w, s))
				continue;
			team->x[count] = from < 0 ? inputs_of(w, t, s)
						  : neap__deferred_outputs(w->net, w->deferred,
							    from, step, s, !own);
			team->y[count++] = neap__deferred_row(w->net, w->deferred, w->layer->index,
						   step - next, s) +
					   column;
		}
	}
	return count;
}

static void outer(const struct outer_work *w, struct neap__outer_team *team)
{
	const struct neap__outer_tile *p = w->tile;
	const struct neap__param *t = &w->net->tensors[p->tensor];
	struct neap__outer o = {.columns = (int)t->columns,
		.count = collect(w, team),
		.from = p->from,
		.to = p->to,
		.left = p->left,
		.right = p->right,
		.x = (const real *const *)team->x,
		.y = (const real *const *)team->y,
		.room = team->room};

	if (t->is_rounded)
		w->net->kernels->bf16->outer(w->grads->part[p->tensor], &o);
	else
		w->net->kernels->outer((real *)w->grads->part[p->tensor], &o);
	for (int row = p->from; row < p->to && w->t0 % NEAP__GRADIENT_BLOCK == 0; row++)
		neap__fold_part(w->net, w->grads, p->tensor, row * t->columns + p->left,
			p->right - p->left);
}

static void bias(const struct outer_work *w)
{
	const struct neap__param *t = &w->net->tensors[w->tile->tensor];
	real *part = w->grads->part[w->tile->tensor];

	for (int64_t at = w->t1 - 1; at >= w->t0; at--)
		for (int s = 0; s < w->grads->size; s++)
			if (at < length_of(w, s))
				w->net->kernels->sum(part,
					neap__deferred_row(w->net, w->deferred, w->layer->index,
						(int)(w->t1 - at), s),
					(int)t->columns);
	if (w->t0 % NEAP__GRADIENT_BLOCK == 0)
		neap__fold_part(w->net, w->grads, w->tile->tensor, 0, t->count);
}

/* Appends the events of the inputs, and sums them each time that there is no room for a step. */
static void events(const struct outer_work *w)
{
	struct neap__deferred *deferred = w->deferred;
	int tensor = w->tile->tensor, source_rows = ((int)(w->t1 - w->t0) + 1) * deferred->samples;
	size_t most = (size_t)w->net->tensors[tensor].rows;

	for (int64_t t = w->t1 - 1; t >= w->t0; t--)
		for (int s = 0; s < w->grads->size; s++) {
			if (t >= length_of(w, s))
				continue;
			if (deferred->room[tensor] - deferred->count[tensor] < most)
				neap__event_list_sum(
					w->net, w->grads, deferred, 0, tensor, source_rows);
			struct neap__list list = neap__input_events(w->net, w->grads->first + s, t);
			neap__event_list_append(deferred, tensor, 0, &list, w->grads->slot,
				(uint32_t)(w->t1 - t) * (uint32_t)deferred->samples + (uint32_t)s);
		}
	neap__event_list_sum(w->net, w->grads, deferred, 0, tensor, source_rows);
	if (w->t0 % NEAP__GRADIENT_BLOCK == 0)
		neap__fold_tensor(w->net, w->grads, tensor);
}

void neap__outer_tile_add(struct neap_net *net, struct neap__grads *grads,
	const struct neap__outer_tile *tile, struct neap__outer_team *team, int64_t t1, int64_t t0)
{
	struct outer_work w = {.net = net,
		.grads = grads,
		.deferred = &net->deferred[grads - net->grads],
		.tile = tile,
		.layer = &net->layers[tile->layer],
		.t1 = t1,
		.t0 = t0};

	if (tile->kind == NEAP__TILE_EVENTS)
		events(&w);
	else if (tile->kind == NEAP__TILE_OUTER)
		outer(&w, team);
	else
		bias(&w);
}
