/* SPDX-License-Identifier: Apache-2.0 */
/* tensors.c: shapes, names, random connections and initial values of tensors. */
#include "nn/tensors.h"
#include "nn/core/cell.h"
#include "nn/filter.h"
#include "nn/time_unit.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/philox.h"
#include "base/print.h"

#include <errno.h>
#include <math.h>

/* Makes compressed rows: a connection exists with probability `density`, by (seed, tensor,
 * element). */
static int connect(struct neap_net *net, struct neap__param *t, int index, double density)
{
	uint64_t seed = net->options.seed;
	int64_t count = 0;

	for (int64_t e = 0; e < t->rows * t->columns; e++)
		count += neap__random_uniform(
				 seed, NEAP__STREAM_MASK, (uint32_t)index, (uint64_t)e) < density;
	if (count > UINT32_MAX)
		return neap__fail(NEAP_EOVERFLOW, "%s: %lld connections are too many", t->name,
			(long long)count);
	t->row_start = neap__net_get(net, (uint64_t)t->rows + 1, sizeof *t->row_start);
	t->column = neap__net_get(net, (uint64_t)count, sizeof *t->column);
	if (!t->row_start || !t->column)
		return neap__fail_errno(ENOMEM, "%s: %lld connections", t->name, (long long)count);
	t->count = 0;
	for (int64_t row = 0; row < t->rows; row++) {
		t->row_start[row] = (uint32_t)t->count;
		for (int64_t c = 0; c < t->columns; c++)
			if (neap__random_uniform(seed, NEAP__STREAM_MASK, (uint32_t)index,
				    (uint64_t)(row * t->columns + c)) < density)
				t->column[t->count++] = (uint16_t)c;
	}
	t->row_start[t->rows] = (uint32_t)t->count;
	return 0;
}

/*
 * What the values of a tensor are drawn from: normal ones of a deviation, or sums of `uniform`
 * values from -bound to bound. Each is a function of (seed, tensor, place in the dense tensor).
 */
struct draw {
	double deviation, bound;
	int uniform;
};

static double drawn(const struct neap_net *net, const struct draw *draw, int index, uint64_t place,
	uint64_t places)
{
	uint64_t seed = net->options.seed;
	double sum = 0;

	if (draw->deviation > 0)
		return draw->deviation *
		       neap__random_normal(seed, NEAP__STREAM_WEIGHTS, (uint32_t)index, place);
	for (int i = 0; i < draw->uniform; i++)
		sum += draw->bound * (2 * neap__random_uniform(seed, NEAP__STREAM_WEIGHTS,
						  (uint32_t)index, place + (uint64_t)i * places) -
					     1);
	return sum;
}

static void fill(
	const struct neap_net *net, struct neap__param *t, int index, const struct draw *draw)
{
	uint64_t places = (uint64_t)(t->rows * t->columns);

	for (int64_t row = 0; row < t->rows; row++) {
		int64_t k = t->row_start ? t->row_start[row] : row * t->columns;
		int64_t end = t->row_start ? t->row_start[row + 1] : k + t->columns;
		for (int64_t first = k; k < end; k++) {
			int64_t c = t->column ? t->column[k] : k - first;
			double v =
				drawn(net, draw, index, (uint64_t)(row * t->columns + c), places);
			if (net->options.precision == NEAP_DOUBLE)
				((double *)t->data)[k] = v;
			else
				((float *)t->data)[k] = (float)v;
		}
	}
}

/* Numbers that the sums of a tensor are padded to: a cache line of floats. */
enum { PADDED = 16 };

static int make(struct neap_net *net, int index, const struct neap__layer *layer, const char *what,
	int64_t rows, int64_t columns, double density, struct draw draw, double unit)
{
	struct neap__param *t = &net->tensors[index];

	if (layer->cell->readout)
		neap__print(t->name, sizeof t->name, "readout.%s", what);
	else
		neap__print(t->name, sizeof t->name, "layer%d.%s", layer->index, what);
	t->unit = unit;
	t->rows = rows;
	t->columns = columns;
	t->count = rows * columns;
	if (density < 1)
		NEAP_TRY(connect(net, t, index, density));
	t->data = neap__net_get(net, (uint64_t)t->count, net->ops->real);
	t->in_use = t->data;
	if (!t->data)
		return neap__fail_errno(
			ENOMEM, "%s: %lld x %lld", t->name, (long long)rows, (long long)columns);
	/*
	 * The sum of PyTorch's two biases moves as they do under Adam, which moves each by the
	 * learning rate. Under SGD it moves twice as far, and its share of the squared norm that
	 * --clip limits is twice as large.
	 */
	if (draw.uniform > 1)
		t->unit = unit * draw.uniform;
	draw.deviation *= unit;
	draw.bound *= unit;
	fill(net, t, index, &draw);
	t->offset = net->elements;
	t->row_offset = net->rows;
	net->elements += neap__round_up((uint64_t)t->count, PADDED);
	net->rows += (size_t)rows;
	return 0;
}

enum {
	TENSORS = 8 + NEAP__LEAKS_MOST, /* a layer, at most */
	/*
	 * The steps that an update of Adam moves a delay by, in learning rates. The published
	 * configuration of Hammouamri and others (2024) trains delays with 100 times the learning
	 * rate of the weights.
	 */
	DELAY_UNIT = 100
};

static int make_decays(struct neap_net *net, struct neap__layer *layer)
{
	for (int l = 0; l < layer->nleaks; l++) {
		struct neap__leak *leak = &layer->leaks[l];
		size_t row = (size_t)layer->n * net->ops->real;
		char *rows = neap__net_get_zeroed(net, 3, row);
		if (!rows)
			return neap__fail_errno(ENOMEM, "decays of %d units", layer->n);
		leak->decay = rows;
		leak->rest = rows + row;
		leak->slope = rows + 2 * row;
	}
	return 0;
}

/*
 * The parameter of unit i at first. In a range, values are uniform, by (seed, layer, leak, unit),
 * so that they depend neither on what else is learned nor on the number of tensors.
 */
static double first_parameter(
	const struct neap_net *net, const struct neap__layer *layer, int l, int i)
{
	const struct neap_net_options *o = &net->options;
	const struct neap__leak *leak = &layer->leaks[l];
	uint32_t stream = (uint32_t)(layer->index * NEAP__LEAKS_MOST + l);
	double v = leak->start;

	if (leak->has_range) {
		v = leak->low + (leak->high - leak->low) * neap__random_uniform(o->seed,
								   NEAP__STREAM_UNITS, stream,
								   (uint64_t)i);
		if (leak->kind == NEAP__LEAK_DECAY)
			v = o->euler ? 1 - o->dt / v : exp(-o->dt / v);
	}
	return leak->kind == NEAP__LEAK_DECAY	? log(v / (1 - v))
	       : leak->kind == NEAP__LEAK_PLAIN ? v
						: log(v);
}

/* Tensors of the parameters that a layer learns or draws for each unit; others are not kept. */
static int make_leaks(struct neap_net *net, struct neap__layer *layer)
{
	for (int l = 0; l < NEAP__LEAKS_MOST; l++)
		layer->leaks[l].tensor = l < neap__learned(layer) || layer->leaks[l].has_range
						 ? net->ntensors++
						 : -1;
	for (int l = 0; l < layer->nleaks; l++) {
		struct neap__leak *leak = &layer->leaks[l];
		if (leak->tensor < 0)
			continue;
		struct neap__param *t = &net->tensors[leak->tensor];
		NEAP_TRY(make(
			net, leak->tensor, layer, leak->name, 1, layer->n, 1, (struct draw){0}, 1));
		t->is_leak = 1;
		t->is_frozen = l >= neap__learned(layer);
		for (int i = 0; i < layer->n; i++) {
			double p = first_parameter(net, layer, l, i);
			if (net->options.precision == NEAP_DOUBLE)
				((double *)t->data)[i] = p;
			else
				((float *)t->data)[i] = (float)p;
		}
	}
	return make_decays(net, layer);
}

/* Makes the tensor of the delays of a layer, drawn from their range, where they have one. */
static int make_delays(struct neap_net *net, struct neap__layer *layer)
{
	struct neap__delays *delays = &layer->delays;
	double range = delays->most - delays->least;

	delays->tensor = -1;
	if (!neap__has_delays(layer))
		return 0;
	delays->whole = neap__net_get_zeroed(net, (uint64_t)delays->units, sizeof *delays->whole);
	delays->part = neap__net_get_zeroed(net, (uint64_t)delays->units, net->ops->real);
	if (!delays->whole || !delays->part)
		return neap__fail_errno(ENOMEM, "delays of %d units", delays->units);
	if (range == 0)
		return 0;
	delays->tensor = net->ntensors++;
	struct neap__param *t = &net->tensors[delays->tensor];
	NEAP_TRY(make(net, delays->tensor, layer, "delay", 1, delays->units, 1, (struct draw){0},
		DELAY_UNIT));
	t->is_delay = 1;
	t->is_frozen = !delays->learns;
	for (int i = 0; i < delays->units; i++) {
		double u = neap__random_uniform(net->options.seed, NEAP__STREAM_WEIGHTS,
			(uint32_t)delays->tensor, (uint64_t)i);
		double d = delays->least +
			   (delays->learns ? u * range : fmin(floor(u * (range + 1)), range));
		if (net->options.precision == NEAP_DOUBLE)
			((double *)t->data)[i] = d;
		else
			((float *)t->data)[i] = (float)d;
	}
	return 0;
}

/* One row [channels] of a norm, all of a value. */
static int make_norm_row(struct neap_net *net, const struct neap__layer *layer, int *index,
	const char *name, double value)
{
	*index = net->ntensors++;
	NEAP_TRY(make(net, *index, layer, name, 1, layer->norm.channels, 1, (struct draw){0}, 1));
	for (int c = 0; c < layer->norm.channels; c++) {
		void *data = net->tensors[*index].data;
		if (net->options.precision == NEAP_DOUBLE)
			((double *)data)[c] = value;
		else
			((float *)data)[c] = (float)value;
	}
	return 0;
}

/* Makes the tensors of a norm, and the room for the weights and biases in use. */
static int make_norm(struct neap_net *net, struct neap__layer *layer)
{
	struct neap__norm *norm = &layer->norm;
	struct neap__param *weight = &net->tensors[layer->weight];

	if (!norm->kind)
		return 0;
	norm->channels = layer->conv[0] ? layer->channels : layer->n;
	NEAP_TRY(make_norm_row(net, layer, &norm->scale, "norm_scale", 1));
	NEAP_TRY(make_norm_row(net, layer, &norm->mean, "norm_mean", 0));
	NEAP_TRY(make_norm_row(net, layer, &norm->variance, "norm_variance", 1));
	net->tensors[norm->mean].is_frozen = net->tensors[norm->variance].is_frozen = 1;
	double *rows = neap__net_get_zeroed(net, 3 * (uint64_t)norm->channels, sizeof *rows);
	weight->in_use = neap__net_get_zeroed(net, (uint64_t)weight->count, net->ops->real);
	if (!layer->biases)
		layer->biases = neap__net_get_zeroed(net, (uint64_t)layer->n, net->ops->real);
	if (!rows || !weight->in_use || !layer->biases)
		return neap__fail_errno(ENOMEM, "norm of layer %d", layer->index);
	norm->factor = rows;
	norm->found[0] = rows + norm->channels;
	norm->found[1] = rows + 2 * (size_t)norm->channels;
	return 0;
}

/* 1: a layer gives out events, 0: numbers of all units. */
static int has_events(const struct neap_net *net, const struct neap__layer *layer)
{
	return neap__layer_code(net, layer)->outputs != NEAP__OUTPUT_ALL;
}

/* 1: all that arrives are events. */
static int gets_events(const struct neap_net *net, const struct neap__layer *layer)
{
	for (int k = 0; k < layer->nsources; k++) {
		const struct neap__layer *from = neap__source_of(layer, k);
		if (from ? !has_events(net, from) : net->options.values && layer->index > 0)
			return 0;
	}
	return 1;
}

/* 1: all that arrives are spikes. */
static int gets_spikes(const struct neap_net *net, const struct neap__layer *layer)
{
	for (int k = 0; k < layer->nsources; k++) {
		const struct neap__layer *from = neap__source_of(layer, k);
		if (from ? from->outputs != NEAP__OUTPUT_SPIKES : net->options.values)
			return 0;
	}
	return 1;
}

static int is_gated(const struct neap__layer *layer)
{
	return (layer->cell->traits & NEAP__IS_RECURRENT) != 0;
}

/*
 * Of weights from `fan` units. NEAP_INIT_TORCH: PyTorch's RNNBase has one bound for all tensors of
 * a gated cell, its Linear has one by the inputs. Sparse tensors have fewer inputs.
 */
static struct draw draw_weights(const struct neap__layer *layer, double scale, int fan)
{
	double inputs = layer->density * (is_gated(layer) ? layer->n : fan);

	if (layer->init == NEAP_INIT_TORCH)
		return (struct draw){.bound = 1 / sqrt(inputs), .uniform = 1};
	return (struct draw){.deviation = scale / sqrt(layer->density * fan)};
}

/* PyTorch's gated cells have two biases. Where a cell has one, it is the sum of the two. */
static struct draw draw_biases(const struct neap__layer *layer)
{
	int has_both = layer->widths.sums == layer->widths.in + layer->widths.own;
	double inputs = is_gated(layer) ? layer->n : neap__filter_fan(layer);

	if (layer->init != NEAP_INIT_TORCH)
		return (struct draw){0};
	return (struct draw){
		.bound = 1 / sqrt(inputs), .uniform = is_gated(layer) && !has_both ? 2 : 1};
}

/* The weights and biases of a layer. */
static int make_weights(struct neap_net *net, struct neap__layer *layer)
{
	struct neap__tensor_units unit = neap__tensor_units(net, layer);

	layer->weight = net->ntensors++;
	NEAP_TRY(make(net, layer->weight, layer, "weight", neap__filter_rows(layer),
		neap__filter_columns(layer), layer->density,
		draw_weights(layer, layer->scale, neap__filter_fan(layer)),
		layer->index == 0 && net->options.values ? 1
		: gets_events(net, layer)		 ? unit.events
							 : unit.numbers));
	net->tensors[layer->weight].filter = layer->filter;
	net->tensors[layer->weight].takes_spikes =
		gets_spikes(net, layer) && !neap__has_delays(layer);
	net->tensors[layer->weight].sources = layer->nsources > 1 ? layer : NULL;
	layer->recurrent = layer->candidate = -1;
	if (layer->is_recurrent) {
		layer->recurrent = net->ntensors++;
		NEAP_TRY(make(net, layer->recurrent, layer, "recurrent", layer->n,
			layer->widths.own, layer->density,
			draw_weights(layer, layer->recurrent_scale, layer->n),
			has_events(net, layer) ? unit.events : unit.numbers));
		net->tensors[layer->recurrent].takes_spikes = layer->outputs == NEAP__OUTPUT_SPIKES;
	}
	if (neap__layer_code(net, layer)->has_candidate) {
		layer->candidate = net->ntensors++;
		NEAP_TRY(make(net, layer->candidate, layer, "candidate", layer->n, layer->n,
			layer->density, draw_weights(layer, layer->recurrent_scale, layer->n), 1));
	}
	layer->bias = net->ntensors++;
	return make(net, layer->bias, layer, "bias", 1, neap__filter_biases(layer), 1,
		draw_biases(layer), unit.bias);
}

int neap__net_tensors(struct neap_net *net)
{
	net->tensors =
		neap__net_get_zeroed(net, (uint64_t)net->nlayers * TENSORS, sizeof *net->tensors);
	if (!net->tensors)
		return neap__fail_errno(ENOMEM, "net of %d layers", net->nlayers);
	for (int l = 0; l < net->nlayers; l++)
		NEAP_TRY(make_weights(net, &net->layers[l]));
	/* Last: initial weights depend on tensor numbers, and are the same with and without
	 * `learn` and `delay`. */
	for (int l = 0; l < net->nlayers; l++)
		NEAP_TRY(make_leaks(net, &net->layers[l]));
	for (int l = 0; l < net->nlayers; l++)
		NEAP_TRY(make_delays(net, &net->layers[l]));
	for (int l = 0; l < net->nlayers; l++)
		NEAP_TRY(make_norm(net, &net->layers[l]));
	double *grad = neap__net_get_zeroed(net, net->elements, sizeof *grad);
	if (!grad)
		return neap__fail_errno(ENOMEM, "gradients of %zu weights", net->elements);
	for (int i = 0; i < net->ntensors; i++)
		net->tensors[i].grad = grad + net->tensors[i].offset;
	return 0;
}
