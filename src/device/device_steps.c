/* SPDX-License-Identifier: Apache-2.0 */
/* device_steps.c: the launches of a range of steps (device_steps.h). */
#include "device/device_steps.h"
#include "device/dense_steps.h"
#include "device/port_steps.h"
#include "base/fail.h"

enum { LOG_LEAST = 8 }; /* bytes of a step's log at least; unused if no layer is recurrent */

static int has_forward_clusters(const struct neap__device_net *net, int l)
{
	return net->clusters && net->clusters[l].forward.blocks;
}

static int has_backward_clusters(const struct neap__device_net *net, int l)
{
	return net->clusters && net->clusters[l].backward.blocks;
}

/* The readout, which belongs to the launch of the last hidden layer; its weights have all places.
 */
static struct neap__device_readout readout_of(
	const struct neap__device_net *net, const struct neap__device_room *room, int l)
{
	struct neap__device_readout readout = net->readout;
	int tensor = net->net->layers[net->layers].weight;

	if (l < net->layers - 1)
		return (struct neap__device_readout){0};
	if (neap__device_spreads(net, tensor))
		readout.weight = room->spread[tensor];
	return readout;
}

/* Delays of what a layer, or the readout, receives. */
static const struct neap__device_delays *delays_of(const struct neap__device_net *net, int l)
{
	return l < net->layers ? &net->lif[l].delays : &net->readout.delays;
}

/* A layer, whose weights have all places. */
static struct neap__device_lif layer_of(
	const struct neap__device_net *net, const struct neap__device_room *room, int l)
{
	const struct neap__layer *layer = &net->net->layers[l];
	struct neap__device_lif lif = net->lif[l];

	if (neap__device_spreads(net, layer->weight))
		lif.weight = room->spread[layer->weight];
	if (layer->is_recurrent && neap__device_spreads(net, layer->recurrent))
		lif.recurrent = room->spread[layer->recurrent];
	return lif;
}

/* The weights of a tensor as parameters are; NULL: biases. */
static const float *weights_of(const struct neap__device_net *net, int tensor)
{
	const struct neap__layer *layers = net->net->layers;

	for (int l = 0; l < net->layers; l++) {
		if (tensor == layers[l].weight)
			return net->dense ? net->dense[l].weight : net->lif[l].weight;
		if (layers[l].is_recurrent && tensor == layers[l].recurrent)
			return net->dense ? net->dense[l].recurrent : net->lif[l].recurrent;
		if (net->dense && layers[l].candidate >= 0 && tensor == layers[l].candidate)
			return net->dense[l].candidate;
	}
	return tensor == layers[net->layers].weight ? net->readout.weight : NULL;
}

/* Gives weights of a density below 1 all places. */
static int spread_weights(const struct neap__device_net *net,
	const struct neap__device_launcher *on, const struct neap__device_room *room)
{
	for (int i = 0; i < net->net->ntensors; i++) {
		struct spread_weights_arguments a = {.rows = (int)net->net->tensors[i].rows,
			.columns = (int)net->net->tensors[i].columns,
			.missing = net->math == DEVICE_EXACT ? DEVICE_MISSING : 0,
			.row_start = room->row_start[i],
			.column = room->column[i],
			.from = weights_of(net, i),
			.to = room->spread[i]};
		if (neap__device_spreads(net, i))
			NEAP_TRY(neap__launch_spread_weights(on, &a));
	}
	return 0;
}

static int launch_forward(const struct neap__device_net *net,
	const struct neap__device_launcher *on, int l, const struct lif_forward_arguments *a)
{
	if (!has_forward_clusters(net, l))
		return neap__launch_lif_forward(on, a);
	struct lif_forward_cluster_arguments c = {.lif = *a, .shape = net->clusters[l].forward};
	c.lif.unit_threads = c.shape.unit_threads;
	return neap__launch_lif_forward_cluster(on, &c);
}

static int launch_backward(const struct neap__device_net *net,
	const struct neap__device_launcher *on, int l, const struct lif_backward_arguments *a)
{
	if (!has_backward_clusters(net, l))
		return neap__launch_lif_backward(on, a);
	struct lif_backward_cluster_arguments c = {.lif = *a,
		.shape = net->clusters[l].backward,
		.stride = neap__cluster_stride(a->layer.units)};
	c.lif.unit_threads = c.shape.unit_threads;
	return neap__launch_lif_backward_cluster(on, &c);
}

/* The arguments of layer l forward. */
static struct lif_forward_arguments forward_of(const struct neap__device_net *net,
	const struct neap__device_room *room, int l, u8 *state, int t0, int t1,
	const struct neap__device_tapes *tapes)
{
	struct lif_forward_arguments a = {.batch = net->batch,
		.layer = layer_of(net, room, l),
		.readout = readout_of(net, room, l),
		.t0 = t0,
		.t1 = t1,
		.unit_threads = neap__device_unit_threads(net->lif[l].units),
		.state = state,
		.below_spikes = l ? room->spikes[l - 1] : NULL,
		.spikes = room->spikes[l],
		.outputs = room->outputs};

	if (tapes) {
		const struct neap__device_layer_tapes *to = &tapes->layer[l];
		a.below_done = l ? tapes->layer[l - 1].done : NULL;
		a.tape = to->tape;
		a.share = to->share;
		a.most = tapes->most;
		a.offset = to->offset;
		a.factors = l == net->layers - 1 && net->readout.learned ? tapes->factors : NULL;
		a.done = to->done;
		a.bytes = to->bytes;
		a.near_units = to->near;
	}
	return a;
}

int neap__device_forward(const struct neap__device_net *net, const struct neap__device_launcher *on,
	const struct neap__device_room *room, u8 *state, int t0, int t1,
	const struct neap__device_tapes *tapes)
{
	NEAP_TRY(spread_weights(net, on, room));
	if (net->dense)
		return neap__dense_forward(net, on, room, state, t0, t1, tapes);
	for (int l = 0; l < net->layers; l++) {
		struct lif_forward_arguments a = forward_of(net, room, l, state, t0, t1, tapes);
		NEAP_TRY(launch_forward(net, on, l, &a));
	}
	return 0;
}

/* Bytes of a recurrent layer's spikes of a step, of all samples. */
static size_t spike_bytes(const struct neap__device_net *net, int l)
{
	return (size_t)net->batch.samples * neap__device_words(net->lif[l].units) * sizeof(u32);
}

size_t neap__device_log_row(const struct neap__device_net *net)
{
	size_t bytes = 0;

	for (int l = 0; l < net->layers; l++)
		bytes += net->lif[l].is_recurrent ? spike_bytes(net, l) : 0;
	return bytes > LOG_LEAST ? (bytes + 7) & ~(size_t)7 : LOG_LEAST;
}

int neap__device_write_log(const struct neap__device_net *net,
	const struct neap__device_launcher *on, const struct neap__device_room *room, int t0,
	int t1, u8 *log)
{
	for (int l = 0; l < net->layers; l++) {
		size_t words = spike_bytes(net, l) / sizeof(u32);
		struct copy_rows_arguments a = {.samples = t1 - t0,
			.words = (int)words,
			.from_row = (int)words,
			.to_row = (int)(neap__device_log_row(net) / sizeof(u32)),
			.from = room->spikes[l] + words,
			.to = (u32 *)(void *)log};
		if (!net->lif[l].is_recurrent)
			continue;
		NEAP_TRY(neap__launch_copy_rows(on, &a));
		log += spike_bytes(net, l);
	}
	return 0;
}

/* How many rows of weights a block of replay_currents has in shared memory: recurrent ones first,
 * since all of them are read most often. */
static void hold_rows(const struct neap__device_net *net, struct replay_currents_arguments *a)
{
	int rows = (int)(net->shared / (DEVICE_STRIP * sizeof(float)));
	int own = a->layer.is_recurrent ? a->layer.units : 0;

	a->held_own = own < rows ? own : rows;
	rows -= a->held_own;
	a->held_below = a->layer.below < rows ? a->layer.below : rows;
}

/* A layer from its log: at a time as many steps as `currents` has room for. */
static int replay_layer(const struct neap__device_net *net, const struct neap__device_launcher *on,
	const struct neap__device_room *room, const struct lif_forward_arguments *lif, int l,
	const u8 *log)
{
	/* A multiprocessor has room for one block, whose strip may take all shared memory. */
	int strips = neap__device_tiles(1, 1, net->lif[l].units, DEVICE_STRIP);
	int parts = strips < net->processors ? net->processors / strips : 1;
	struct replay_currents_arguments c = {.batch = net->batch,
		.layer = lif->layer,
		.t0 = lif->t0,
		.parts = parts,
		.log_row = (int)neap__device_log_row(net),
		.log = log,
		.state = lif->state,
		.below_spikes = lif->below_spikes,
		.below_done = lif->below_done,
		.currents = room->currents[l]};
	struct lif_replay_arguments a = {.lif = *lif, .currents = room->currents[l]};

	hold_rows(net, &c);
	a.lif.layer.is_first = 1; /* what arrives is in `currents` */
	for (int t = lif->t0; t < lif->t1; t = c.to) {
		c.from = a.from = t;
		c.to = a.lif.t1 =
			lif->t1 - t < room->replay_steps ? lif->t1 : t + room->replay_steps;
		int pairs = (c.to - c.from) * net->batch.samples;
		c.warps = (pairs + parts - 1) / parts;
		c.warps = c.warps < DEVICE_STRIP_WARPS ? c.warps : DEVICE_STRIP_WARPS;
		NEAP_TRY(neap__launch_replay_currents(on, &c));
		NEAP_TRY(neap__launch_lif_replay(on, &a));
	}
	return 0;
}

int neap__device_replay(const struct neap__device_net *net, const struct neap__device_launcher *on,
	const struct neap__device_room *room, u8 *state, int t0, int t1,
	const struct neap__device_tapes *tapes, const u8 *log)
{
	for (int l = 0; l < net->layers; l++) {
		struct lif_forward_arguments a = forward_of(net, room, l, state, t0, t1, tapes);
		NEAP_TRY(replay_layer(net, on, room, &a, l, log));
		log += net->lif[l].is_recurrent ? spike_bytes(net, l) : 0;
	}
	return 0;
}

int neap__device_pack(const struct neap__device_net *net, const struct neap__device_launcher *on,
	const struct neap__device_tapes *tapes, const u32 *start,
	const struct neap__device_layer_tapes *to)
{
	int samples = net->batch.samples;

	for (int l = 0; l < net->layers; l++) {
		const struct neap__device_layer_tapes *layer = &tapes->layer[l];
		struct pack_tapes_arguments a = {.samples = samples,
			.steps = tapes->t1 - tapes->t0,
			.most = tapes->most,
			.share = layer->share,
			.tape = layer->tape,
			.offset = layer->offset,
			.start = start + (size_t)l * (size_t)samples,
			.to = to[l].tape,
			.to_offset = to[l].offset};
		NEAP_TRY(neap__launch_pack_tapes(on, &a));
	}
	return 0;
}

int neap__device_count(const struct neap__device_net *net, const struct neap__device_launcher *on,
	const struct neap__device_room *room, int t0, int t1)
{
	if (net->dense)
		return neap__dense_count(net, on, room, t0, t1);
	for (int l = 0; l < net->layers; l++) {
		struct spike_counts_arguments a = {.batch = net->batch,
			.units = net->lif[l].units,
			.t0 = t0,
			.t1 = t1,
			.spikes = room->spikes[l] + (size_t)net->batch.samples *
							    neap__device_words(net->lif[l].units),
			.count = room->count[l]};
		NEAP_TRY(neap__launch_spike_counts(on, &a));
	}
	return 0;
}

/* A range of steps backward. */
struct range {
	const struct neap__device_net *net;
	const struct neap__device_launcher *on;
	const struct neap__device_room *room;
	int t1, t0, block_end;
	u8 *adjoint;
};

/* Marks which rows of the gradients of the first layer's input weights have terms. */
static int mark_inputs(const struct range *range)
{
	struct input_rows_arguments a = {.batch = range->net->batch,
		.t1 = range->t1,
		.t0 = range->t0,
		.block_end = range->block_end,
		.rows = range->room->input_rows};

	return neap__launch_input_rows(range->on, &a);
}

/* Turns the weights of products that are not in lanes. */
static int turn_weights(const struct range *range)
{
	const struct neap_net *net = range->net->net;
	const struct neap__device_room *room = range->room;

	for (int i = 0; i < net->ntensors; i++) {
		int is_spread = neap__device_spreads(range->net, i);
		struct turn_weights_arguments a = {.rows = (int)net->tensors[i].rows,
			.columns = (int)net->tensors[i].columns,
			.from = is_spread ? room->spread[i] : weights_of(range->net, i),
			.to = room->turned[i]};
		if (neap__device_turns(range->net, i))
			NEAP_TRY(neap__launch_turn_weights(range->on, &a));
	}
	return 0;
}

static int layer_back(
	const struct range *range, int l, u8 *adjoint, const struct neap__device_tapes *tapes)
{
	const struct neap__device_net *net = range->net;
	const struct neap__device_room *room = range->room;
	const struct neap__device_layer_tapes *from = &tapes->layer[l];
	int is_last = l == net->layers - 1;
	struct lif_backward_arguments a = {.batch = net->batch,
		.layer = net->lif[l],
		.readout = readout_of(net, room, l),
		.t1 = range->t1,
		.t0 = range->t0,
		.block_end = range->block_end,
		.unit_threads = neap__device_unit_threads(net->lif[l].units),
		.above_units = is_last ? net->readout.classes : net->lif[l + 1].units,
		.above_late = is_last ? net->readout.is_late : net->lif[l + 1].is_late,
		.above_delays = *delays_of(net, l + 1),
		.adjoint = adjoint,
		.above_weight = is_last ? readout_of(net, room, l).weight
					: layer_of(net, room, l + 1).weight,
		.above_sums = neap__device_above_sums(net, l),
		.own_sums = neap__device_own_sums(net, l),
		.above_turned = room->turned[net->net->layers[l + 1].weight],
		.own_turned = net->lif[l].is_recurrent ? room->turned[net->net->layers[l].recurrent]
						       : NULL,
		.above = is_last ? NULL : room->currents[l + 1],
		.errors = is_last && net->has_errors ? room->errors : NULL,
		.penalty = room->penalty ? room->penalty[l] : NULL,
		.given = neap__device_port_given(net, l, range->t0),
		.tape = from->tape,
		.share = from->share,
		.most = tapes->most,
		.tape_t0 = tapes->t0,
		.offset = from->offset,
		.currents = room->currents[l],
		.readout_currents = room->readout_currents,
		.rows = room->rows[l]};

	for (int k = 0; k < net->lif[l].learned; k++)
		a.leak_terms[k] = room->leak_terms[DEVICE_LEAKS * l + k];
	if (is_last && net->readout.learned) {
		a.factors = tapes->factors + (size_t)(range->t0 - tapes->t0) *
						     (size_t)net->batch.samples *
						     (size_t)net->readout.classes;
		a.readout_terms = room->leak_terms[DEVICE_LEAKS * net->layers];
	}
	return launch_backward(net, range->on, l, &a);
}

/* Launches what is in `a`, and empties it. */
static int flush(const struct range *range, struct gradient_rows_arguments *a)
{
	int rc = a->blocks ? neap__launch_gradient_rows(range->on, a) : 0;

	a->tensors = a->blocks = a->threads = 0;
	return rc;
}

/* What a gradient adds up: `currents` in the rows that `bits` selects; NULL: in all. */
struct terms {
	const float *currents;
	const float *values; /* what they are multiplied by; NULL: 1 */
	const u32 *bits, *passes;
	int late;
	const struct neap__device_delays *delays; /* NULL: there are none */
};

/* Adds to the gradient of a tensor. */
static int add_rows(const struct range *range, struct gradient_rows_arguments *a, int tensor,
	const struct terms *terms)
{
	static const struct neap__device_delays none;
	const struct neap__param *t = &range->net->net->tensors[tensor];
	int threads = neap__device_threads((int)t->columns);

	if (t->is_frozen)
		return 0;
	if (a->tensors == DEVICE_TENSORS)
		NEAP_TRY(flush(range, a));
	a->tensor[a->tensors++] = (struct neap__device_gradient){.first_block = a->blocks,
		.rows = (int)t->rows,
		.columns = (int)t->columns,
		.width = (int)t->columns,
		.late = terms->late,
		.factor = (float)t->factor,
		.count = (int)t->count,
		.row_start = t->row_start ? range->room->row_start[tensor] : NULL,
		.column = t->row_start ? range->room->column[tensor] : NULL,
		.values = terms->values,
		.delays = terms->delays ? *terms->delays : none,
		.adjoint = range->adjoint,
		.currents = terms->currents,
		.bits = terms->bits,
		.passes = terms->passes,
		.part = range->room->part[tensor],
		.total = range->room->total[tensor]};
	a->blocks += (int)t->rows * range->net->groups;
	a->threads = threads > a->threads ? threads : a->threads;
	return 0;
}

/* Layer `l` of the net; after the last hidden one, the readout. */
static int add_layer(const struct range *range, struct gradient_rows_arguments *a, int l)
{
	const struct neap__device_room *room = range->room;
	const struct neap__layer *layer = &range->net->net->layers[l];
	const float *currents = l < range->net->layers ? room->currents[l] : room->readout_currents;
	const struct terms bias = {.currents = currents};
	const struct terms weight = {.currents = currents,
		.bits = l ? room->rows[l - 1] : room->input_rows,
		.passes = l ? range->net->lif[l - 1].drop.passes : NULL,
		.late = layer->delay,
		.delays = delays_of(range->net, l)};
	const struct terms numbers = {
		.currents = currents, .values = neap__device_inputs_at(range->net, range->t0)};
	const struct terms recurrent = {.currents = currents,
		.bits = layer->is_recurrent ? room->rows[l] : NULL,
		.late = 1};

	NEAP_TRY(add_rows(range, a, layer->bias, &bias));
	if (l > 0 || !range->net->batch.values)
		NEAP_TRY(add_rows(range, a, layer->weight, &weight));
	else if (neap__device_spreads(range->net, layer->weight))
		NEAP_TRY(add_rows(range, a, layer->weight, &numbers));
	if (layer->is_recurrent)
		NEAP_TRY(add_rows(range, a, layer->recurrent, &recurrent));
	for (int k = 0; k < neap__learned(layer); k++) {
		const struct terms leak = {.currents = room->leak_terms[DEVICE_LEAKS * l + k]};
		NEAP_TRY(add_rows(range, a, layer->leaks[k].tensor, &leak));
	}
	return 0;
}

/* The gradient of the first layer's weights that numbers enter. */
static int add_inputs(const struct range *range)
{
	const struct neap__device_net *net = range->net;
	int tensor = net->net->layers[0].weight, rows, columns;
	const struct neap__param *t = &net->net->tensors[tensor];
	struct outer_products_arguments a = {.batch = net->batch,
		.t1 = range->t1,
		.t0 = range->t0,
		.fold = range->t0 % DEVICE_BLOCK_STEPS == 0,
		.tensors = 1};

	if (t->is_frozen || neap__device_spreads(net, tensor))
		return 0; /* add_layer adds those of a density below 1 */
	rows = (int)t->rows;
	columns = (int)t->columns;
	a.blocks =
		net->groups * neap__device_tiles(rows, DEVICE_BIG_TILE, columns, DEVICE_BIG_TILE);
	a.tensor[0] = (struct neap__device_outer){.rows = rows,
		.columns = columns,
		.is_input = 1,
		.width = columns,
		.factor = (float)t->factor,
		.values = neap__device_inputs_at(net, range->t0),
		.currents = range->room->currents[0],
		.part = range->room->part[tensor],
		.total = range->room->total[tensor]};
	return neap__launch_outer_products(range->on, &a);
}

/* The gradient of the learned delays of layer `l`, or of the readout. */
static int add_delays(const struct range *range, int l)
{
	const struct neap__device_net *net = range->net;
	const struct neap__device_room *room = range->room;
	const struct neap__layer *layer = &net->net->layers[l];
	int is_readout = l == net->layers, tensor = layer->delays.tensor;
	struct delay_gradients_arguments a = {.batch = net->batch,
		.t1 = range->t1,
		.t0 = range->t0,
		.block_end = range->block_end,
		.fold = range->t0 % DEVICE_BLOCK_STEPS == 0,
		.groups = net->groups,
		.units = net->lif[l - 1].units,
		.width = layer->n,
		.is_masked = layer->density < 1,
		.delays = *delays_of(net, l),
		.adjoint = range->adjoint,
		.currents = is_readout ? room->readout_currents : room->currents[l],
		.weight = is_readout ? readout_of(net, room, l - 1).weight
				     : layer_of(net, room, l).weight,
		.bits = room->rows[l - 1],
		.passes = net->lif[l - 1].drop.passes};

	if (!layer->delays.learns || net->net->tensors[tensor].is_frozen)
		return 0;
	a.factor = (float)net->net->tensors[tensor].factor;
	a.part = room->part[tensor];
	a.total = room->total[tensor];
	return neap__launch_delay_gradients(range->on, &a);
}

static int add_gradients(const struct range *range)
{
	struct gradient_rows_arguments a = {.batch = range->net->batch,
		.t1 = range->t1,
		.t0 = range->t0,
		.block_end = range->block_end,
		.fold = range->t0 % DEVICE_BLOCK_STEPS == 0};

	/* Without classes, arrays of a caller replace the readout. */
	for (int l = 0; l < range->net->layers + (range->net->readout.classes > 0); l++) {
		NEAP_TRY(add_layer(range, &a, l));
		if (l > 0)
			NEAP_TRY(add_delays(range, l));
	}
	return flush(range, &a);
}

/* Keeps d(in) of these steps for steps before them, which read that of later ones until now. */
static int store_delays(const struct range *range, int l)
{
	const struct neap__device_net *net = range->net;
	const struct neap__device_room *room = range->room;
	int is_readout = l == net->layers;
	struct store_delays_arguments a = {.batch = net->batch,
		.t1 = range->t1,
		.t0 = range->t0,
		.width = is_readout ? net->readout.classes : net->lif[l].units,
		.delays = *delays_of(net, l),
		.currents = is_readout ? room->readout_currents : room->currents[l],
		.adjoint = range->adjoint};

	return a.delays.most && a.width ? neap__launch_store_delays(range->on, &a) : 0;
}

int neap__device_backward(const struct neap__device_net *net,
	const struct neap__device_launcher *on, const struct neap__device_room *room, u8 *adjoint,
	int t1, int t0, const struct neap__device_tapes *tapes)
{
	struct range range = {net, on, room, t1, t0,
		t0 / DEVICE_BLOCK_STEPS * DEVICE_BLOCK_STEPS + DEVICE_BLOCK_STEPS, adjoint};

	NEAP_TRY(spread_weights(net, on, room));
	if (net->dense)
		return neap__dense_backward(net, on, room, adjoint, t1, t0, tapes);
	NEAP_TRY(on->clear(on->user, room->row_bits, room->row_bytes));
	NEAP_TRY(turn_weights(&range));
	for (int l = net->layers - 1; l >= 0; l--)
		NEAP_TRY(layer_back(&range, l, adjoint, tapes));
	NEAP_TRY(net->batch.values ? add_inputs(&range) : mark_inputs(&range));
	NEAP_TRY(add_gradients(&range));
	for (int l = 1; l <= net->layers; l++)
		NEAP_TRY(store_delays(&range, l));
	return neap__device_port_gradients(net, on, room, t0, t1);
}
