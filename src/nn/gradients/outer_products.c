/* SPDX-License-Identifier: Apache-2.0 */
/* outers: a parcel of a dense net's weight gradients, over some steps (outer_products.h). */
#include "nn/gradients/outer_products.h"
#include "nn/core/precision.h"
#include "nn/gradients/deferred_sums.h"

struct outer_work {
	struct neap_net *net;
	struct neap__grads *grads;
	struct neap__deferred *kept;
	const struct neap__outer_tile *parcel;
	const struct neap__layer *layer;
	int64_t t1, t0;
};

static int64_t length_of(const struct outer_work *w, int s)
{
	return w->net->batch->sequences[w->grads->first + s].length;
}

/* The terms of a layer's outputs (or what of them goes up) and d(in) that they reach. */
static int collect(const struct outer_work *w, struct neap__outer_team *crew)
{
	int own = w->parcel->tensor == w->layer->recurrent, next = own || w->layer->delay;
	int from = w->parcel->layer - !own;
	int column = neap__column_of(w->layer, w->parcel->tensor), count = 0;

	for (int64_t t = w->t1 - 1; t >= w->t0; t--) {
		int step = (int)(w->t1 - t);
		for (int s = 0; s < w->grads->size; s++) {
			if (t + next >= length_of(w, s))
				continue;
			crew->x[count] =
				neap__deferred_outputs(w->net, w->kept, from, step, s, !own);
			crew->y[count++] = neap__deferred_row(w->net, w->kept, w->layer->index,
						   step - next, s) +
					   column;
		}
	}
	return count;
}

static void outer(const struct outer_work *w, struct neap__outer_team *crew)
{
	const struct neap__outer_tile *p = w->parcel;
	const struct neap__param *t = &w->net->tensors[p->tensor];
	struct neap__outer o = {.columns = (int)t->columns,
		.count = collect(w, crew),
		.from = p->from,
		.to = p->to,
		.left = p->left,
		.right = p->right,
		.x = (const real *const *)crew->x,
		.y = (const real *const *)crew->y,
		.room = crew->room};

	w->net->kernels->outer((real *)w->grads->part + t->offset, &o);
	for (int row = p->from; row < p->to && w->t0 % NEAP__GRADIENT_BLOCK == 0; row++)
		neap__fold_part(w->net, w->grads, p->tensor, row * t->columns + p->left,
			p->right - p->left);
}

static void bias(const struct outer_work *w)
{
	const struct neap__param *t = &w->net->tensors[w->parcel->tensor];
	real *part = (real *)w->grads->part + t->offset;

	for (int64_t at = w->t1 - 1; at >= w->t0; at--)
		for (int s = 0; s < w->grads->size; s++)
			if (at < length_of(w, s))
				w->net->kernels->sum(part,
					neap__deferred_row(w->net, w->kept, w->layer->index,
						(int)(w->t1 - at), s),
					(int)t->columns);
	if (w->t0 % NEAP__GRADIENT_BLOCK == 0)
		neap__fold_part(w->net, w->grads, w->parcel->tensor, 0, t->count);
}

/* As many at a time as there is room for. */
static void events(const struct outer_work *w)
{
	struct neap__deferred *kept = w->kept;
	int tensor = w->parcel->tensor, lenders = ((int)(w->t1 - w->t0) + 1) * kept->samples;
	size_t most = (size_t)w->net->tensors[tensor].rows;

	for (int64_t t = w->t1 - 1; t >= w->t0; t--)
		for (int s = 0; s < w->grads->size; s++) {
			if (t >= length_of(w, s))
				continue;
			if (kept->room[tensor] - kept->count[tensor] < most)
				neap__event_list_add(w->net, w->grads, kept, 0, tensor, lenders);
			struct neap__list list = neap__input_events(w->net, w->grads->first + s, t);
			neap__note(kept, tensor, &list,
				(uint32_t)(w->t1 - t) * (uint32_t)kept->samples + (uint32_t)s);
		}
	neap__event_list_add(w->net, w->grads, kept, 0, tensor, lenders);
	if (w->t0 % NEAP__GRADIENT_BLOCK == 0)
		neap__fold_tensor(w->net, w->grads, tensor);
}

void neap__outers_parcel(struct neap_net *net, struct neap__grads *grads,
	const struct neap__outer_tile *parcel, struct neap__outer_team *crew, int64_t t1,
	int64_t t0)
{
	struct outer_work w = {.net = net,
		.grads = grads,
		.kept = &net->kept[grads - net->grads],
		.parcel = parcel,
		.layer = &net->layers[parcel->layer],
		.t1 = t1,
		.t0 = t0};

	if (parcel->kind == NEAP__PARCEL_EVENTS)
		events(&w);
	else if (parcel->kind == NEAP__PARCEL_OUTER)
		outer(&w, crew);
	else
		bias(&w);
}
