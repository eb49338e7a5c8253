/* SPDX-License-Identifier: Apache-2.0 */
/* dense_steps.c: the launches of a range of steps of a dense net (dense_steps.h). */
#include "device/dense_steps.h"
#include "device/port_steps.h"
#include "base/fail.h"

/* Columns from which on a product of many steps is worth a launch: a few launches each 64 steps. */
enum { ABOVE_LEAST = 16 };

/* A range of steps; what does not belong to a direction is 0. */
struct dense_range {
	const struct neap__device_net *net;
	const struct neap__device_launcher *on;
	const struct neap__device_room *room;
	const struct neap__device_tapes *tapes;
	u8 *state, *adjoint;
	int t0, t1;
};

/*
 * Launches a kernel of products, or the one that does the same on tensor cores. launch_NAME(range,
 * arguments) returns 0 or the code of the launch.
 */
#define LAUNCH_EITHER(name)                                                                        \
	static int launch_##name(const struct dense_range *r, const struct name##_arguments *a)    \
	{                                                                                          \
		if (r->net->math == DEVICE_EXACT)                                                  \
			return neap__launch_##name(r->on, a);                                      \
		const struct name##_math_arguments on_cores = {*a, r->net->math};                  \
		return neap__launch_##name##_math(r->on, &on_cores);                               \
	}
LAUNCH_EITHER(dense_product)
LAUNCH_EITHER(dense_forward)
LAUNCH_EITHER(dense_backward)
LAUNCH_EITHER(outer_products)
#undef LAUNCH_EITHER

/* The end of the block of steps in which the range begins. */
static int block_end(const struct dense_range *r)
{
	return r->t0 / DEVICE_BLOCK_STEPS * DEVICE_BLOCK_STEPS + DEVICE_BLOCK_STEPS;
}

/* Numbers of a step of all samples, of which a sample has `width`. */
static size_t step_of(const struct dense_range *r, int width)
{
	return (size_t)r->net->batch.samples * (size_t)width;
}

/* The weights of a tensor, with all places. */
static const float *places_of(const struct dense_range *r, int tensor, const float *weight)
{
	return tensor >= 0 && neap__device_spreads(r->net, tensor) ? r->room->spread[tensor]
								   : weight;
}

/* A layer, whose weights have all places. */
static struct neap__device_dense layer_of(const struct dense_range *r, int l)
{
	const struct neap__layer *layer = &r->net->net->layers[l];
	struct neap__device_dense dense = r->net->dense[l];

	dense.weight = places_of(r, layer->weight, dense.weight);
	dense.recurrent = places_of(r, layer->recurrent, dense.recurrent);
	dense.candidate = places_of(r, layer->candidate, dense.candidate);
	return dense;
}

/* W of a layer, or of the readout, with all places. */
static const float *weight_of(const struct dense_range *r, int l)
{
	return places_of(r, r->net->net->layers[l].weight,
		l < r->net->layers ? r->net->dense[l].weight : r->net->readout.weight);
}

/* Whether this W lacks connections that kernels leave out. */
static int is_masked(const struct dense_range *r, int l)
{
	return r->net->math == DEVICE_EXACT &&
	       neap__device_spreads(r->net, r->net->net->layers[l].weight);
}

/* What dropout of a layer lets pass of numbers [t1 - t0][samples][units], times `scale`. */
static int drop(const struct dense_range *r, int l, const float *from, float *to, float scale)
{
	const struct neap__device_dense *layer = &r->net->dense[l];
	struct drop_outputs_arguments a = {.rows = (r->t1 - r->t0) * r->net->batch.samples,
		.samples = r->net->batch.samples,
		.units = layer->units,
		.scale = scale,
		.passes = layer->drop.passes,
		.from = from,
		.to = to};

	return neap__launch_drop_outputs(r->on, &a);
}

/* b + W x of all steps of layer `l`, from the outputs of the layer below, or numbers as inputs. */
static int add_below(
	const struct dense_range *r, int l, int is_late, const float *bias, int columns)
{
	int below = l - 1;
	int units = below < 0 ? r->net->batch.inputs : r->net->dense[below].units;
	struct dense_product_arguments a = {.rows = (r->t1 - r->t0) * r->net->batch.samples,
		.terms = units,
		.columns = columns,
		.width = units,
		.numbers = below < 0 ? neap__device_inputs_at(r->net, r->t0)
				     : r->room->dense_outputs[below] +
					       (is_late ? 0 : step_of(r, units)),
		.is_masked = is_masked(r, l),
		.weight = weight_of(r, l),
		.bias = bias,
		.sums = r->room->sums};

	if (below >= 0 && r->net->dense[below].drop.passes) {
		NEAP_TRY(drop(
			r, below, a.numbers, r->room->passed, r->net->dense[below].drop.scale));
		a.numbers = r->room->passed;
	}
	return launch_dense_product(r, &a);
}

static int begin_layer(const struct dense_range *r, int l)
{
	struct dense_begin_arguments a = {.batch = r->net->batch,
		.layer = r->net->dense[l],
		.t0 = r->t0,
		.t1 = r->t1,
		.state = r->state,
		.outputs = r->room->dense_outputs[l]};

	if (r->tapes) {
		a.share = r->tapes->layer[l].share;
		a.most = r->tapes->most;
		a.offset = r->tapes->layer[l].offset;
		a.done = r->tapes->layer[l].done;
		a.bytes = r->tapes->layer[l].bytes;
		a.near_units = r->tapes->layer[l].near;
	}
	return neap__launch_dense_begin(r->on, &a);
}

/* What arrives from below. */
static int add_inputs(const struct dense_range *r, int l)
{
	const struct neap__device_dense *layer = &r->net->dense[l];
	struct dense_inputs_arguments a = {.batch = r->net->batch,
		.layer = layer_of(r, l),
		.t0 = r->t0,
		.t1 = r->t1,
		.sums = r->room->sums};

	return l || r->net->batch.values ? add_below(r, l, layer->is_late, layer->bias, layer->in)
					 : neap__launch_dense_inputs(r->on, &a);
}

static int step_layer(const struct dense_range *r, int l)
{
	const struct neap__device_dense *layer = &r->net->dense[l];
	struct dense_forward_arguments a = {.batch = r->net->batch,
		.layer = layer_of(r, l),
		.t0 = r->t0,
		.state = r->state,
		.gated = r->room->gated};

	if (r->tapes) {
		a.tape = r->tapes->layer[l].tape;
		a.share = r->tapes->layer[l].share;
		a.near_units = r->tapes->layer[l].near;
	}
	for (a.t = r->t0; a.t < r->t1; a.t++) {
		size_t step = (size_t)(a.t - r->t0), row = step_of(r, layer->units);
		a.sums = r->room->sums + step * step_of(r, layer->in);
		a.from = r->room->dense_outputs[l] + step * row;
		a.to = r->room->dense_outputs[l] + (step + 1) * row;
		a.candidate = 0;
		NEAP_TRY(launch_dense_forward(r, &a));
		if (!layer->candidate)
			continue;
		a.candidate = 1;
		NEAP_TRY(launch_dense_forward(r, &a));
	}
	return 0;
}

static int end_layer(const struct dense_range *r, int l)
{
	struct dense_end_arguments a = {.batch = r->net->batch,
		.layer = r->net->dense[l],
		.t0 = r->t0,
		.t1 = r->t1,
		.outputs = r->room->dense_outputs[l],
		.state = r->state};

	return neap__launch_dense_end(r->on, &a);
}

static int read_out(const struct dense_range *r)
{
	const struct neap__device_readout *readout = &r->net->readout;
	struct dense_readout_arguments a = {.batch = r->net->batch,
		.readout = *readout,
		.t0 = r->t0,
		.t1 = r->t1,
		.sums = r->room->sums,
		.state = r->state,
		.outputs = r->room->outputs,
		.factors = r->tapes && readout->learned ? r->tapes->factors : NULL};

	NEAP_TRY(add_below(r, r->net->layers, readout->is_late, readout->bias, readout->classes));
	return neap__launch_dense_readout(r->on, &a);
}

int neap__dense_forward(const struct neap__device_net *net, const struct neap__device_launcher *on,
	const struct neap__device_room *room, u8 *state, int t0, int t1,
	const struct neap__device_tapes *tapes)
{
	struct dense_range range = {.net = net,
		.on = on,
		.room = room,
		.tapes = tapes,
		.state = state,
		.t0 = t0,
		.t1 = t1};

	for (int l = 0; l < net->layers; l++) {
		NEAP_TRY(begin_layer(&range, l));
		NEAP_TRY(add_inputs(&range, l));
		NEAP_TRY(step_layer(&range, l));
		NEAP_TRY(end_layer(&range, l));
	}
	return net->readout.classes ? read_out(&range) : 0;
}

int neap__dense_count(const struct neap__device_net *net, const struct neap__device_launcher *on,
	const struct neap__device_room *room, int t0, int t1)
{
	for (int l = 0; l < net->layers; l++) {
		int units = net->dense[l].units;
		struct dense_counts_arguments a = {.batch = net->batch,
			.units = units,
			.t0 = t0,
			.t1 = t1,
			.groups = net->groups,
			.parts = net->parts,
			.per_part = net->per_part,
			.outputs = room->dense_outputs[l] + (size_t)net->batch.samples * units,
			.count = room->count[l]};
		NEAP_TRY(neap__launch_dense_counts(on, &a));
	}
	return 0;
}

/* d(in) of a layer between the adjoint and the array of steps. */
static int move_adjoint(const struct dense_range *r, int l, int save)
{
	struct dense_adjoint_arguments a = {.batch = r->net->batch,
		.layer = r->net->dense[l],
		.t1 = r->t1,
		.t0 = r->t0,
		.save = save,
		.adjoint = r->adjoint,
		.currents = r->room->currents[l]};

	return neap__launch_dense_adjoint(r->on, &a);
}

/*
 * W d(in) of the layer above, of all steps, if it is large and dS begins with it. It goes where the
 * outputs of the layer go later.
 */
static int add_above(const struct dense_range *r, struct dense_backward_arguments *a)
{
	int cell = a->layer.cell, units = a->layer.units;
	struct dense_product_arguments product = {.rows = (r->t1 - r->t0) * r->net->batch.samples,
		.terms = a->above_columns,
		.columns = units,
		.width = a->above_width,
		.turned = 1,
		.is_masked = a->above_masked,
		.numbers = a->above + (a->above_late ? 0 : step_of(r, a->above_width)),
		.weight = a->above_weight,
		.sums = a->values + step_of(r, units)};

	if ((cell != DEVICE_RNN && cell != DEVICE_LSTM) || a->above_columns < ABOVE_LEAST)
		return 0;
	a->is_added = 1;
	return launch_dense_product(r, &product);
}

static int layer_back(const struct dense_range *r, int l)
{
	const struct neap__device_dense *layer = &r->net->dense[l];
	const struct neap__device_layer_tapes *from = &r->tapes->layer[l];
	const struct neap__device_readout *readout = &r->net->readout;
	struct dense_backward_arguments a = {.batch = r->net->batch,
		.layer = layer_of(r, l),
		.t1 = r->t1,
		.above_columns = readout->classes,
		.above_width = readout->classes,
		.above_late = readout->is_late,
		.above_masked = readout->classes && is_masked(r, l + 1),
		.adjoint = r->adjoint,
		.above_weight = weight_of(r, l + 1),
		.above = r->room->readout_currents,
		.tape = from->tape,
		.share = from->share,
		.most = r->tapes->most,
		.tape_t0 = r->tapes->t0,
		.offset = from->offset,
		.currents = r->room->currents[l],
		.values = r->room->values[l],
		.gated = r->room->gated_values[l]};

	if (l + 1 < r->net->layers) {
		a.above_columns = layer[1].in;
		a.above_width = layer[1].sums;
		a.above_late = layer[1].is_late;
		a.above = r->room->currents[l + 1];
	}
	NEAP_TRY(add_above(r, &a));
	NEAP_TRY(move_adjoint(r, l, 0));
	for (a.t = r->t1 - 1; a.t >= r->t0; a.t--) {
		a.candidate = 0;
		a.given = neap__device_port_given(r->net, l, a.t);
		NEAP_TRY(launch_dense_backward(r, &a));
		if (!layer->candidate)
			continue;
		a.candidate = 1;
		NEAP_TRY(launch_dense_backward(r, &a));
	}
	return move_adjoint(r, l, 1);
}

static int readout_back(const struct dense_range *r)
{
	struct dense_readout_back_arguments a = {.batch = r->net->batch,
		.readout = r->net->readout,
		.t1 = r->t1,
		.t0 = r->t0,
		.adjoint = r->adjoint,
		.errors = r->net->has_errors ? r->room->errors : NULL,
		.readout_currents = r->room->readout_currents};

	if (r->net->readout.learned) {
		a.factors = r->tapes->factors +
			    (size_t)(r->t0 - r->tapes->t0) * step_of(r, r->net->readout.classes);
		a.readout_terms = r->room->leak_terms[DEVICE_LEAKS * r->net->layers];
	}
	return neap__launch_dense_readout_back(r->on, &a);
}

/* Adds to the gradient of one tensor by rows. */
static int add_rows(const struct dense_range *r, const struct neap__device_gradient *tensor)
{
	struct gradient_rows_arguments a = {.batch = r->net->batch,
		.t1 = r->t1,
		.t0 = r->t0,
		.block_end = block_end(r),
		.fold = r->t0 % DEVICE_BLOCK_STEPS == 0,
		.tensors = 1,
		.blocks = tensor->rows * r->net->groups,
		.threads = neap__device_threads(tensor->columns),
		.tensor = {*tensor}};

	return neap__launch_gradient_rows(r->on, &a);
}

/* The gradient of the first layer's weights, which events enter. */
static int add_events(const struct dense_range *r)
{
	int tensor = r->net->net->layers[0].weight;
	const struct neap__param *t = &r->net->net->tensors[tensor];
	struct input_rows_arguments rows = {.batch = r->net->batch,
		.t1 = r->t1,
		.t0 = r->t0,
		.block_end = block_end(r),
		.rows = r->room->input_rows};

	if (t->is_frozen)
		return 0;
	NEAP_TRY(r->on->clear(r->on->user, r->room->row_bits, r->room->row_bytes));
	NEAP_TRY(neap__launch_input_rows(r->on, &rows));
	return add_rows(r, &(struct neap__device_gradient){.rows = (int)t->rows,
				   .columns = (int)t->columns,
				   .width = r->net->dense[0].sums,
				   .factor = (float)t->factor,
				   .count = (int)t->count,
				   .row_start = r->room->row_start[tensor],
				   .column = r->room->column[tensor],
				   .currents = r->room->currents[0],
				   .bits = r->room->input_rows,
				   .part = r->room->part[tensor],
				   .total = r->room->total[tensor]});
}

/* The gradient of the readout's decay, if it learns: the sum of the terms of all steps. */
static int add_decay(const struct dense_range *r)
{
	const struct neap__layer *layer = &r->net->net->layers[r->net->layers];
	int tensor = layer->leaks[NEAP__MEMBRANE_LEAK].tensor;

	if (!r->net->readout.learned || r->net->net->tensors[tensor].is_frozen)
		return 0;
	return add_rows(r, &(struct neap__device_gradient){.rows = 1,
				   .columns = layer->n,
				   .width = layer->n,
				   .factor = (float)r->net->net->tensors[tensor].factor,
				   .currents = r->room->leak_terms[DEVICE_LEAKS * r->net->layers],
				   .part = r->room->part[tensor],
				   .total = r->room->total[tensor]});
}

/* Launches what is in `a`, and empties it. */
static int flush(const struct dense_range *r, struct outer_products_arguments *a)
{
	int rc = a->blocks ? launch_outer_products(r, a) : 0;

	a->tensors = a->blocks = 0;
	return rc;
}

/* Adds a tensor of a density below 1, as add_tensor: the connections alone, in a launch of their
 * own. */
static int add_connections(
	const struct dense_range *r, int l, int tensor, const float *values, int late, int from)
{
	const struct neap__param *t = &r->net->net->tensors[tensor];
	int is_hidden = l < r->net->layers;

	return add_rows(
		r, &(struct neap__device_gradient){.rows = (int)t->rows,
			   .columns = (int)t->columns,
			   .late = late,
			   .width = is_hidden ? r->net->dense[l].sums : r->net->readout.classes,
			   .from = from,
			   .factor = (float)t->factor,
			   .count = (int)t->count,
			   .row_start = r->room->row_start[tensor],
			   .column = r->room->column[tensor],
			   .values = values,
			   .are_outputs = l > 0 || tensor != r->net->net->layers[0].weight,
			   .currents = is_hidden ? r->room->currents[l] : r->room->readout_currents,
			   .part = r->room->part[tensor],
			   .total = r->room->total[tensor]});
}

/* Adds a tensor of layer `l`, which numbers `values` enter: columns of d(in) from `from` on. */
static int add_tensor(const struct dense_range *r, struct outer_products_arguments *a, int l,
	int tensor, const float *values, int late, int from)
{
	const struct neap__param *t = &r->net->net->tensors[tensor];
	int is_hidden = l < r->net->layers;

	if (t->is_frozen)
		return 0;
	if (neap__device_spreads(r->net, tensor))
		return add_connections(r, l, tensor, values, late, from);
	if (a->tensors == DEVICE_TENSORS)
		NEAP_TRY(flush(r, a));
	a->tensor[a->tensors++] = (struct neap__device_outer){.first_block = a->blocks,
		.rows = (int)t->rows,
		.columns = (int)t->columns,
		.late = late,
		.is_input = l == 0 && tensor == r->net->net->layers[0].weight,
		.width = is_hidden ? r->net->dense[l].sums : r->net->readout.classes,
		.from = from,
		.factor = (float)t->factor,
		.values = values,
		.currents = is_hidden ? r->room->currents[l] : r->room->readout_currents,
		.part = r->room->part[tensor],
		.total = r->room->total[tensor]};
	a->blocks += r->net->groups * neap__device_tiles((int)t->rows, DEVICE_BIG_TILE,
					      (int)t->columns, DEVICE_BIG_TILE);
	return 0;
}

/*
 * Adds the weights of layer `l` that outputs of the layer below enter after dropout: in a launch of
 * its own, since all layers use one array for such outputs. Their factor comes with the tensor's.
 */
static int add_passed(const struct dense_range *r, struct outer_products_arguments *a, int l)
{
	const struct neap__device_room *room = r->room;
	size_t step = step_of(r, r->net->dense[l - 1].units);

	NEAP_TRY(flush(r, a));
	NEAP_TRY(drop(r, l - 1, room->values[l - 1] + step, room->passed + step, 1));
	NEAP_TRY(add_tensor(r, a, l, r->net->net->layers[l].weight, room->passed,
		r->net->net->layers[l].delay, 0));
	return flush(r, a);
}

static int add_gradients(const struct dense_range *r)
{
	const struct neap__device_room *room = r->room;
	struct outer_products_arguments a = {.batch = r->net->batch,
		.t1 = r->t1,
		.t0 = r->t0,
		.fold = r->t0 % DEVICE_BLOCK_STEPS == 0};

	for (int l = 0; l < r->net->layers + (r->net->readout.classes > 0); l++) {
		const struct neap__layer *layer = &r->net->net->layers[l];
		NEAP_TRY(add_tensor(r, &a, l, layer->bias, NULL, 0, 0));
		const float *below =
			l ? room->values[l - 1] : neap__device_inputs_at(r->net, r->t0);
		if (l > 0 && r->net->dense[l - 1].drop.passes)
			NEAP_TRY(add_passed(r, &a, l));
		else if (below)
			NEAP_TRY(add_tensor(r, &a, l, layer->weight, below, layer->delay, 0));
		if (l == r->net->layers)
			continue;
		const struct neap__device_dense *dense = &r->net->dense[l];
		NEAP_TRY(add_tensor(r, &a, l, layer->recurrent, room->values[l], 1, dense->own_at));
		if (layer->candidate >= 0)
			NEAP_TRY(add_tensor(r, &a, l, layer->candidate, room->gated_values[l], 0,
				dense->candidate_at));
	}
	return flush(r, &a);
}

int neap__dense_backward(const struct neap__device_net *net, const struct neap__device_launcher *on,
	const struct neap__device_room *room, u8 *adjoint, int t1, int t0,
	const struct neap__device_tapes *tapes)
{
	struct dense_range range = {.net = net,
		.on = on,
		.room = room,
		.tapes = tapes,
		.adjoint = adjoint,
		.t0 = t0,
		.t1 = t1};

	if (net->readout.classes)
		NEAP_TRY(readout_back(&range));
	for (int l = net->layers - 1; l >= 0; l--)
		NEAP_TRY(layer_back(&range, l));
	if (!net->batch.values)
		NEAP_TRY(add_events(&range));
	NEAP_TRY(add_gradients(&range));
	NEAP_TRY(add_decay(&range));
	return neap__device_port_gradients(net, on, room, t0, t1);
}
