/* SPDX-License-Identifier: Apache-2.0 */
/* precision_ops.c: the table of what runs a group, in the precision of the build. */
#include "nn/precision_ops.h"
#include "nn/cells/leak.h"
#include "nn/core/delays.h"
#include "nn/core/dropout.h"
#include "nn/core/forward.h"
#include "nn/core/norm.h"
#include "nn/core/port_rows.h"
#include "nn/core/precision.h"
#include "nn/core/products.h"
#include "nn/gradients/backward.h"
#include "nn/gradients/first_outputs.h"
#include "nn/gradients/outer_products.h"
#include "nn/replay/replay_steps.h"

#include <string.h>

static int strip_units(const struct neap_net *net)
{
	return net->kernels->walk_units;
}

static int strip_columns(const struct neap_net *net)
{
	return net->kernels->product_columns;
}

static void repeat_bias(struct neap_net *net, const struct neap__layer *layer)
{
	const struct neap__param *t = &net->tensors[layer->bias];

	if (layer->norm.kind) {
		neap__norm_begin(net, layer);
		return;
	}
	for (int at = 0; layer->biases && at < layer->widths.sums; at += (int)t->columns)
		memcpy((real *)layer->biases + at, t->data, (size_t)t->columns * sizeof(real));
}

static void set_penalty(struct neap_net *net, int layer, int unit, double value)
{
	((real *)net->penalty[layer])[unit] = (real)value;
}

const struct neap__precision_ops NEAP_R(neap__precision_ops) = {
	.real = sizeof(real),
	.advance = neap__advance_group,
	.record = neap__record_group,
	.log = neap__log_group,
	.replay = neap__replay_group,
	.kernels = neap__kernels_get,
	.strip_units = strip_units,
	.leak = neap__leak_begin,
	.bias = repeat_bias,
	.delays = neap__delays_begin,
	.draw = neap__dropout_draw,
	.pack = neap__pack_net,
	.strip_columns = strip_columns,
	.fill_strips = neap__strips_fill,
	.backward = neap__backward_group,
	.add_tile = neap__outer_tile_add,
	.add_first_outputs = neap__first_outputs_add,
	.state_grads = neap__port_state_grads,
	.penalty = set_penalty,
};
