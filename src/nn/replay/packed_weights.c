/* SPDX-License-Identifier: Apache-2.0 */
/* packed_weights.c: which weights are copied, and room for them (packed_weights.h). */
#include "nn/replay/packed_weights.h"
#include "nn/core/cell.h"
#include "nn/replay/replay_memory.h"
#include "base/checked.h"
#include "base/fail.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Makes room for `rows` rows of `columns` numbers, in strips of `strip` columns. */
static int make(struct neap_net *net, void **to, int64_t rows, int64_t columns, int64_t strip)
{
	uint64_t strips = ((uint64_t)columns + (uint64_t)strip - 1) / (uint64_t)strip;
	uint64_t row = strips * (uint64_t)strip * net->ops->real;
	uint64_t bytes = neap__round_up(neap__sat_mul((uint64_t)rows, row), 64);

	*to = bytes <= PTRDIFF_MAX ? aligned_alloc(64, bytes) : NULL;
	if (!*to)
		return neap__fail_errno(ENOMEM, "net");
	net->packed_bytes += bytes;
	return 0;
}

/* Room for the tensor that the outputs of layer `from` go through, where they are all units', or
 * all are asked for. */
static int make_strips(struct neap_net *net, const struct neap__layer *from, int tensor)
{
	const struct neap__param *t = tensor < 0 ? NULL : &net->tensors[tensor];
	int all = from->outputs == NEAP__OUTPUT_ALL, strip = net->ops->strip_columns(net);

	if (!t || t->row_start)
		return 0;
	if (all)
		NEAP_TRY(make(net, &net->strips[tensor], t->rows, t->columns, strip));
	if (all || isinf(from->cut))
		NEAP_TRY(make(net, &net->turned[tensor], t->columns, t->rows, strip));
	return 0;
}

int neap__net_packed(struct neap_net *net)
{
	size_t count = (size_t)net->ntensors;

	net->packed = calloc((size_t)net->nlayers, sizeof *net->packed);
	net->strips = calloc(count, sizeof *net->strips);
	net->turned = calloc(count, sizeof *net->turned);
	if (!net->packed || !net->strips || !net->turned)
		return neap__fail_errno(ENOMEM, "net");
	const struct neap__param *first = &net->tensors[net->layers[0].weight];
	if (net->options.values && !first->row_start)
		NEAP_TRY(make(net, &net->strips[net->layers[0].weight], first->rows, first->columns,
			net->ops->strip_columns(net)));
	for (int l = 0; l < net->nlayers - 1; l++) {
		const struct neap__layer *layer = &net->layers[l];
		if (net->has_log)
			NEAP_TRY(make(net, &net->packed[l], neap__walk_rows(layer), layer->n,
				(int64_t)net->strip_units));
		NEAP_TRY(make_strips(net, layer, layer[1].weight));
		if (layer->is_recurrent)
			NEAP_TRY(make_strips(net, layer, layer->recurrent));
		NEAP_TRY(make_strips(net, layer, layer->candidate));
	}
	return 0;
}

void neap__packed_free(struct neap_net *net)
{
	for (int l = 0; l < net->nlayers; l++)
		free(net->packed ? net->packed[l] : NULL);
	for (int i = 0; i < net->ntensors; i++) {
		free(net->strips ? net->strips[i] : NULL);
		free(net->turned ? net->turned[i] : NULL);
	}
	free(net->packed);
	free(net->strips);
	free(net->turned);
}
