/* SPDX-License-Identifier: Apache-2.0 */
/* packed_weights.c: which weights are copied, and room for them (packed_weights.h). */
#include "nn/replay/packed_weights.h"
#include "nn/core/cell.h"
#include "nn/replay/replay_memory.h"
#include "kern/kern.h"
#include "kern/tiles/tiles.h"
#include "base/fail.h"

#include <errno.h>
#include <math.h>

/* Makes room for `rows` rows of `columns` elements of some bytes, in strips of `strip` columns. */
static int make(struct neap_net *net, void **to, int64_t rows, int64_t columns, int64_t strip,
	size_t element)
{
	uint64_t strips = ((uint64_t)columns + (uint64_t)strip - 1) / (uint64_t)strip;
	uint64_t row = strips * (uint64_t)strip * element;

	*to = neap__net_get(net, (uint64_t)rows, row);
	return *to ? 0 : neap__fail_errno(ENOMEM, "net");
}

/* The same for a tensor's dense products: numbers, or words with two rows each. */
static int make_room(struct neap_net *net, void **to, int tensor, int64_t rows, int64_t columns)
{
	int planes = net->tensors[tensor].planes;

	if (planes) {
		*to = neap__net_get(net,
			neap__planes_words((uint64_t)rows, (uint64_t)columns, planes),
			sizeof(uint32_t));
		return *to ? 0 : neap__fail_errno(ENOMEM, "net");
	}
	if (net->tensors[tensor].is_rounded)
		return make(net, to, (rows + 1) / 2, columns, net->kernels->bf16->columns,
			sizeof(uint32_t));
	return make(net, to, rows, columns, net->ops->strip_columns(net), net->ops->real);
}

/* Room for the tensor that the outputs of layer `from` go through, where they are all units', or
 * all are asked for. */
static int make_strips(struct neap_net *net, const struct neap__layer *from, int tensor)
{
	const struct neap__param *t = tensor < 0 ? NULL : &net->tensors[tensor];
	int all = from->outputs == NEAP__OUTPUT_ALL;

	if (!t || t->sources || !neap__has_plain_rows(t))
		return 0;
	if (all)
		NEAP_TRY(make_room(net, &net->strips[tensor], tensor, t->rows, t->columns));
	if (all || isinf(from->cut))
		NEAP_TRY(make_room(net, &net->turned[tensor], tensor, t->columns, t->rows));
	return 0;
}

/*
 * Room for tensors whose products with lists of spikes may be dense: for weights, and for weights
 * turned, which the gradients of the layer below go through, unless that is the inputs.
 */
static int make_planes(struct neap_net *net)
{
	int inputs = net->layers[0].weight;

	for (int i = 0; i < net->ntensors; i++) {
		const struct neap__param *t = &net->tensors[i];
		if (t->planes < NEAP__TILE_PLANES)
			continue;
		if (!net->strips[i])
			NEAP_TRY(make_room(net, &net->strips[i], i, t->rows, t->columns));
		if (!net->turned[i] && i != inputs)
			NEAP_TRY(make_room(net, &net->turned[i], i, t->columns, t->rows));
	}
	return 0;
}

int neap__net_packed(struct neap_net *net)
{
	uint64_t count = (uint64_t)net->ntensors;

	net->packed = neap__net_get_zeroed(net, (uint64_t)net->nlayers, sizeof *net->packed);
	net->strips = neap__net_get_zeroed(net, count, sizeof *net->strips);
	net->turned = neap__net_get_zeroed(net, count, sizeof *net->turned);
	if (!net->packed || !net->strips || !net->turned)
		return neap__fail_errno(ENOMEM, "net");
	const struct neap__param *first = &net->tensors[net->layers[0].weight];
	if (net->options.values && neap__has_plain_rows(first) && !first->sources)
		NEAP_TRY(make_room(net, &net->strips[net->layers[0].weight], net->layers[0].weight,
			first->rows, first->columns));
	for (int l = 0; l < net->nlayers - 1; l++) {
		const struct neap__layer *layer = &net->layers[l];
		if (net->has_log)
			NEAP_TRY(make(net, &net->packed[l], neap__walk_rows(layer), layer->n,
				(int64_t)net->strip_units, net->ops->real));
		for (int r = layer->first_reader; r <= layer->last_reader; r++)
			if (net->layers[r].source[0].layer == l)
				NEAP_TRY(make_strips(net, layer, net->layers[r].weight));
		if (layer->is_recurrent)
			NEAP_TRY(make_strips(net, layer, layer->recurrent));
		NEAP_TRY(make_strips(net, layer, layer->candidate));
	}
	return make_planes(net);
}
