/* SPDX-License-Identifier: Apache-2.0 */
/* packed_weights.c: which weights are copied, and room for them (packed_weights.h). */
#include "nn/replay/packed_weights.h"
#include "nn/core/cell.h"
#include "nn/replay/replay_memory.h"
#include "base/fail.h"

#include <errno.h>
#include <math.h>

/* Makes room for `rows` rows of `columns` numbers, in strips of `strip` columns. */
static int make(struct neap_net *net, void **to, int64_t rows, int64_t columns, int64_t strip)
{
	uint64_t strips = ((uint64_t)columns + (uint64_t)strip - 1) / (uint64_t)strip;
	uint64_t row = strips * (uint64_t)strip * net->ops->real;

	*to = neap__net_get(net, (uint64_t)rows, row);
	return *to ? 0 : neap__fail_errno(ENOMEM, "net");
}

/* Room for the tensor that the outputs of layer `from` go through, where they are all units', or
 * all are asked for. */
static int make_strips(struct neap_net *net, const struct neap__layer *from, int tensor)
{
	const struct neap__param *t = tensor < 0 ? NULL : &net->tensors[tensor];
	int all = from->outputs == NEAP__OUTPUT_ALL, strip = net->ops->strip_columns(net);

	if (!t || t->sources || !neap__has_plain_rows(t))
		return 0;
	if (all)
		NEAP_TRY(make(net, &net->strips[tensor], t->rows, t->columns, strip));
	if (all || isinf(from->cut))
		NEAP_TRY(make(net, &net->turned[tensor], t->columns, t->rows, strip));
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
		NEAP_TRY(make(net, &net->strips[net->layers[0].weight], first->rows, first->columns,
			net->ops->strip_columns(net)));
	for (int l = 0; l < net->nlayers - 1; l++) {
		const struct neap__layer *layer = &net->layers[l];
		if (net->has_log)
			NEAP_TRY(make(net, &net->packed[l], neap__walk_rows(layer), layer->n,
				(int64_t)net->strip_units));
		for (int r = layer->first_reader; r <= layer->last_reader; r++)
			if (net->layers[r].source[0].layer == l)
				NEAP_TRY(make_strips(net, layer, net->layers[r].weight));
		if (layer->is_recurrent)
			NEAP_TRY(make_strips(net, layer, layer->recurrent));
		NEAP_TRY(make_strips(net, layer, layer->candidate));
	}
	return 0;
}
