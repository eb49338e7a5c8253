/* SPDX-License-Identifier: Apache-2.0 */
/* device_net.c: offsets and constants of a net for kernels, and what they cannot do (device_net.h).
 */
#include "device/device_net.h"
#include "nn/core/cell.h"
#include "nn/sources.h"
#include "base/fail.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Kernels know the choices by their number. */
_Static_assert((int)DEVICE_SUBTRACT == (int)NEAP_RESET_SUBTRACT, "reset");
_Static_assert((int)DEVICE_ZERO == (int)NEAP_RESET_ZERO, "reset");
_Static_assert((int)DEVICE_HARD == (int)NEAP_RESET_HARD, "reset");
_Static_assert((int)DEVICE_SOFT == (int)NEAP_RESET_SOFT, "reset");
_Static_assert((int)DEVICE_TRIANGLE == (int)NEAP_TRIANGLE, "surrogate");
_Static_assert((int)DEVICE_BOXCAR == (int)NEAP_BOXCAR, "surrogate");
_Static_assert((int)DEVICE_SUPERSPIKE == (int)NEAP_SUPERSPIKE, "surrogate");
_Static_assert((int)DEVICE_SIGMOID == (int)NEAP_SIGMOID, "surrogate");
_Static_assert((int)DEVICE_ATAN == (int)NEAP_ATAN, "surrogate");
_Static_assert((int)DEVICE_GAUSSIAN == (int)NEAP_GAUSSIAN, "surrogate");
_Static_assert((int)DEVICE_SLAYER == (int)NEAP_SLAYER, "surrogate");
_Static_assert((int)DEVICE_DOUBLE_GAUSSIAN == (int)NEAP_DOUBLE_GAUSSIAN, "surrogate");
_Static_assert((int)DEVICE_MEAN == (int)NEAP_READ_MEAN, "readout");
_Static_assert((int)DEVICE_SUM == (int)NEAP_READ_SUM, "readout");
_Static_assert((int)DEVICE_LAST == (int)NEAP_READ_LAST, "readout");
_Static_assert((int)DEVICE_MAX == (int)NEAP_READ_MAX, "readout");
_Static_assert((int)DEVICE_STEP == (int)NEAP_READ_STEP, "readout");
_Static_assert((int)DEVICE_SOFTMAX == (int)NEAP_READ_SOFTMAX, "readout");
_Static_assert((int)DEVICE_BLOCK_STEPS == (int)NEAP__GRADIENT_BLOCK, "gradient block");

_Static_assert((int)DEVICE_EXACT == (int)NEAP_MATH_EXACT, "math");
_Static_assert((int)DEVICE_TF32X3 == (int)NEAP_MATH_TF32X3, "math");
_Static_assert((int)DEVICE_BF16 == (int)NEAP_MATH_BF16, "math");

#define NEAP_X(choice, name, meaning) [choice] = #name,
static const char *const maths[] = {NEAP_MATH_TABLE(NEAP_X)};
#undef NEAP_X

/* Cells, by their numbers in kernels. */
static const char *const spiking[] = {[DEVICE_LIF] = "lif",
	[DEVICE_CUBALIF] = "cubalif",
	[DEVICE_ALIF] = "alif",
	[DEVICE_ADLIF] = "adlif"};
static const char *const dense[] = {
	[DEVICE_RNN] = "rnn", [DEVICE_LSTM] = "lstm", [DEVICE_GRU] = "gru", [DEVICE_EGRU] = "egru"};
enum { SPIKING = sizeof spiking / sizeof spiking[0], DENSE = sizeof dense / sizeof dense[0] };

/* The number of a layer's cell among `count` names; -1: it is none of them. */
static int cell_of(const struct neap__layer *layer, const char *const *names, int count)
{
	int cell = count - 1;

	while (cell >= 0 && strcmp(layer->cell->name, names[cell]) != 0)
		cell--;
	return cell;
}

static int is_dense(const struct neap__layer *layer)
{
	return cell_of(layer, dense, DENSE) >= 0;
}

/* Cells with outputs that are numbers have other kernels than spiking ones. */
static int refuse_mixture(const struct neap_net *net, int l)
{
	const struct neap__layer *layer = &net->layers[l], *first = &net->layers[0];

	if (is_dense(layer) == is_dense(first))
		return 0;
	return neap__fail(NEAP_EUSAGE,
		"'%.200s' has layers of %s and of %s, and devices do not have both in one net; use "
		"cells of rnn, lstm, gru and egru alone, or none of them, or train on the CPU",
		net->spec, first->cell->name, layer->cell->name);
}

/* Choices that were added to the tables of neap/net.h and not to the kernels; NULL: there are none.
 */
static const char *unknown_choice(const struct neap__layer *layer)
{
	int traits = layer->cell->traits;

	if ((traits & NEAP__HAS_THRESHOLD) && (int)layer->surrogate >= DEVICE_SURROGATES)
		return "surrogate";
	if ((traits & (NEAP__HAS_RESETS | NEAP__HAS_RESET_KEY)) &&
		(int)layer->reset >= DEVICE_RESETS)
		return "reset";
	return NULL;
}

/* Options of a layer that no kernel implements, by their keys. */
static int refuse_layer(const struct neap_net *net, int l)
{
	const struct neap__layer *layer = &net->layers[l];
	const char *key = unknown_choice(layer);

	if (key)
		;
	else if (!neap__is_in_chain(layer))
		key = "from";
	else if (layer->norm.kind)
		key = "norm";
	else if (neap__has_filter(layer))
		key = layer->conv[0] ? "conv" : "pool";
	if (!key && (layer->cell->traits & NEAP__HAS_THRESHOLD) && !(layer->threshold > 0))
		return neap__fail(NEAP_EUSAGE,
			"layer %d of '%s' has threshold=%g; on devices, thresholds must be above "
			"0. "
			"Train on the CPU",
			l, net->spec, layer->threshold);
	if (key)
		return neap__fail(NEAP_EUSAGE,
			"layer %d of '%s' has the key '%s', which is not implemented on devices; "
			"remove the key or train on the CPU",
			l, net->spec, key);
	if (layer->cell->readout)
		return 0;
	if (!is_dense(layer) && cell_of(layer, spiking, SPIKING) < 0)
		return neap__fail(NEAP_EUSAGE,
			"layer %d of '%.200s' is a layer of %s, which is not implemented on "
			"devices; use lif, cubalif, alif, adlif, rnn, lstm, gru or egru, or train "
			"on the CPU",
			l, net->spec, layer->cell->name);
	NEAP_TRY(refuse_mixture(net, l));
	if (layer->n > NEAP__DEVICE_UNITS_MOST)
		return neap__fail(NEAP_EUSAGE,
			"layer %d of '%s' has %d units, but devices take at most %d; use a smaller "
			"layer or train on the CPU",
			l, net->spec, layer->n, NEAP__DEVICE_UNITS_MOST);
	return 0;
}

int neap__device_net_check(const struct neap_net *net)
{
	const char *key = NULL;

	if (net->options.precision != NEAP_FLOAT)
		key = net->options.precision == NEAP_BF16 ? "precision=bf16" : "precision=double";
	else if (net->options.products != NEAP_CHAINS)
		key = "products=tiles";
	else if (net->options.smooth)
		key = "smooth";
	else if (net->learns_from > 0)
		key = "freeze";
	else if ((int)net->options.readout >= DEVICE_READOUTS)
		key = "readout";
	if (key)
		return neap__fail(NEAP_EUSAGE,
			"the option '%s' is not implemented on devices; remove it or train on the "
			"CPU",
			key);
	if (net->nlayers < 2)
		return neap__fail(NEAP_EUSAGE,
			"'%s' has no hidden layer, but devices need one; train on the CPU",
			net->spec);
	for (int l = 0; l < net->nlayers; l++)
		NEAP_TRY(refuse_layer(net, l));
	if (net->options.math != NEAP_MATH_EXACT && !is_dense(&net->layers[0]))
		return neap__fail(NEAP_EUSAGE,
			"--math %s: only layers of rnn, lstm, gru and egru have products for "
			"tensor cores, not those of %s; use --math exact",
			maths[net->options.math], net->layers[0].cell->name);
	return 0;
}

/* What is known only with a batch. */
static int refuse_batch(const struct neap_net *net)
{
	if (!net->batch)
		return neap__fail(NEAP_EUSAGE, "no batch was begun");
	for (int l = 0; l < net->nlayers && neap__has_ports(net); l++)
		if (net->layers[l].density < 1)
			return neap__fail(NEAP_EUSAGE,
				"layer %d of '%.200s' has density=%g, which devices do not "
				"combine with arrays of a caller; remove the key or compute on "
				"the CPU",
				l, net->spec, net->layers[l].density);
	return 0;
}

static struct neap__device_delays describe_delays(const struct neap__layer *layer)
{
	return (struct neap__device_delays){.most = layer->delays.most,
		.learns = layer->delays.learns,
		.ring_at = (int)layer->source[0].ring_at,
		.adjoint_at = (int)layer->delays.adjoint_at};
}

static struct neap__device_lif describe_layer(
	const struct neap__layer *layer, const float *const *weights)
{
	const struct neap__leak *membrane = &layer->leaks[NEAP__MEMBRANE_LEAK];

	return (struct neap__device_lif){.cell = cell_of(layer, spiking, SPIKING),
		.units = layer->n,
		.below = layer->below,
		.is_first = layer->index == 0,
		.is_late = layer->delay,
		.is_recurrent = layer->is_recurrent,
		.is_dense = layer->dense,
		.delays = describe_delays(layer),
		.learned = neap__learned(layer),
		.traces_at = (int)layer->traces_at,
		.is_masked = layer->density < 1,
		.is_chained = isinf(layer->cut),
		.detach = layer->detach,
		.keeps_spikes = layer->keeps_spikes,
		.keeps_support = layer->keeps_support,
		.reset = (int)layer->reset,
		.surrogate = (int)layer->surrogate,
		.beta = (float)membrane->start,
		.rest = (float)(1 - membrane->start),
		.second = (float)layer->leaks[NEAP__SECOND_LEAK].start,
		.adapt = (float)layer->adapt,
		.a = (float)layer->a,
		.b = (float)layer->b,
		.theta = (float)layer->threshold,
		.to = (float)layer->reset_value,
		.cut = (float)layer->cut,
		.width = (float)layer->width,
		.height = (float)layer->height,
		.slope = (float)layer->slope,
		.state_at = (int)layer->state_at,
		.spikes_at = (int)layer->spikes_at,
		.support_at = (int)layer->support_at,
		.adjoint_at = (int)layer->adjoint_at,
		.weight = weights[layer->weight],
		.recurrent = layer->is_recurrent ? weights[layer->recurrent] : NULL,
		.bias = weights[layer->bias],
		.drop = {.scale = 1},
		.below_drop = {.scale = 1}};
}

static struct neap__device_dense describe_dense(
	const struct neap_net *net, const struct neap__layer *layer, const float *const *weights)
{
	return (struct neap__device_dense){.cell = cell_of(layer, dense, DENSE),
		.units = layer->n,
		.below = layer->below,
		.is_first = layer->index == 0,
		.is_late = layer->delay,
		.is_relu = layer->activation == NEAP__RELU,
		.in = layer->widths.in,
		.own = layer->widths.own,
		.sums = layer->widths.sums,
		.own_at = layer->widths.own_at,
		.candidate_at = layer->widths.candidate_at,
		.tape = (int)(neap__layer_tape(net, layer) / sizeof(float)),
		.by_lanes = layer->outputs != NEAP__OUTPUT_ALL && !isinf(layer->cut),
		.is_masked = layer->density < 1 && net->options.math == NEAP_MATH_EXACT,
		.surrogate = (int)layer->surrogate,
		.theta = (float)layer->threshold,
		.cut = (float)layer->cut,
		.width = (float)layer->width,
		.height = (float)layer->height,
		.state_at = (int)layer->state_at,
		.outputs_at = (int)layer->spikes_at,
		.adjoint_at = (int)layer->adjoint_at,
		.weight = weights[layer->weight],
		.recurrent = weights[layer->recurrent],
		.candidate = layer->candidate >= 0 ? weights[layer->candidate] : NULL,
		.bias = weights[layer->bias],
		.drop = {.scale = 1}};
}

/* Offsets as in nn/cells/li.c. */
static struct neap__device_readout describe_readout(
	const struct neap_net *net, const float *const *weights)
{
	const struct neap__layer *layer = &net->layers[net->nlayers - 1];
	const struct neap__leak *leak = &layer->leaks[NEAP__MEMBRANE_LEAK];
	size_t outputs = ((size_t)layer->n * sizeof(float) + 7) & ~(size_t)7;
	size_t currents = (3 * (size_t)layer->n * sizeof(float) + 7) & ~(size_t)7;

	return (struct neap__device_readout){.classes = neap__has_ports(net) ? 0 : layer->n,
		.kind = (int)net->options.readout,
		.is_late = layer->delay,
		.state_at = (int)layer->state_at,
		.own_at = (int)(layer->state_at + outputs),
		.adjoint_at = (int)layer->adjoint_at,
		.steps_at = (int)(layer->adjoint_at + currents),
		.delays = describe_delays(layer),
		.learned = neap__has_ports(net) ? 0 : neap__learned(layer),
		.is_masked = layer->density < 1,
		.decay = (float)leak->start,
		.rest = (float)(1 - leak->start),
		.weight = weights[layer->weight],
		.bias = weights[layer->bias]};
}

/* Samples of a group go in parts of equal size, whose outputs the CPU adds up one by one. */
static void describe_parts(struct neap__device_net *device, const struct neap_net *net)
{
	device->per_part = net->ngroups ? net->groups[0].per_part : 1;
	device->parts = (device->batch.group + device->per_part - 1) / device->per_part;
}

int neap__device_net_layers(
	struct neap__device_net *device, const struct neap_net *net, const float *const *weights)
{
	int dense_layers = is_dense(&net->layers[0]);

	*device = (struct neap__device_net){.net = net,
		.layers = net->nlayers - 1,
		.math = (int)net->options.math,
		.readout = describe_readout(net, weights)};
	if (dense_layers)
		device->dense = calloc((size_t)device->layers, sizeof *device->dense);
	else
		device->lif = calloc((size_t)device->layers, sizeof *device->lif);
	if (!device->dense && !device->lif)
		return neap__fail_errno(ENOMEM, "description of a net");
	for (int l = 0; l < device->layers && dense_layers; l++)
		device->dense[l] = describe_dense(net, &net->layers[l], weights);
	for (int l = 0; l < device->layers && !dense_layers; l++)
		device->lif[l] = describe_layer(&net->layers[l], weights);
	return 0;
}

int neap__device_net_describe(
	struct neap__device_net *device, const struct neap_net *net, const float *const *weights)
{
	NEAP_TRY(neap__device_net_check(net));
	NEAP_TRY(refuse_batch(net));
	NEAP_TRY(neap__device_net_layers(device, net, weights));
	device->groups = net->ngrads;
	device->batch = (struct neap__device_batch){.samples = net->batch->size,
		.group = net->ngrads ? net->grads[0].size : 1,
		.sample_state = (int)net->sample_state,
		.sample_adjoint = (int)net->sample_adjoint,
		.inputs = net->options.inputs};
	device->has_errors =
		!neap__has_ports(net) && (net->options.readout == NEAP_READ_STEP ||
						 net->options.readout == NEAP_READ_SOFTMAX);
	for (int l = 0; l < device->layers; l++)
		if (net->layers[l].cell->traits & NEAP__HAS_THRESHOLD)
			device->near_units += net->layers[l].n;
	if (device->dense)
		describe_parts(device, net);
	return 0;
}

void neap__device_net_free(struct neap__device_net *device)
{
	free(device->clusters);
	free(device->lif);
	free(device->dense);
	*device = (struct neap__device_net){0};
}

int neap__device_units(const struct neap__device_net *device, int layer)
{
	return device->dense ? device->dense[layer].units : device->lif[layer].units;
}

int neap__device_drops(const struct neap__device_net *device, int layer)
{
	return device->net->can_drop && device->net->layers[layer].dropout > 0;
}

/* The groups' own bytes of each unit, as bits. */
void neap__device_passes_write(const struct neap__device_net *device, int layer, u32 *passes)
{
	const struct neap_net *net = device->net;
	const struct neap__layer *own = &net->layers[layer];
	size_t words = neap__device_words(own->n);

	memset(passes, 0, (size_t)net->batch->size * words * sizeof *passes);
	for (int g = 0; g < net->ngroups; g++) {
		const struct neap__group *group = &net->groups[g];
		for (int s = 0; s < group->size; s++) {
			const uint8_t *from =
				group->mask.passes + (size_t)s * net->hidden + own->hidden_at;
			u32 *to = passes + (size_t)(group->first + s) * words;
			for (int i = 0; i < own->n; i++)
				to[i >> 5] |= (u32)(from[i] != 0) << (i & 31);
		}
	}
}

void neap__device_passes_set(struct neap__device_net *device, int layer, const u32 *passes)
{
	const struct neap__layer *own = &device->net->layers[layer];
	struct neap__device_dropout drop = {(float)neap__dropout_scale(own), passes};

	if (device->dense)
		device->dense[layer].drop = drop;
	else
		device->lif[layer].drop = drop;
	if (!device->dense && layer + 1 < device->layers)
		device->lif[layer + 1].below_drop = drop;
}

int neap__device_leaks(const struct neap__layer *layer)
{
	for (int k = 0; k < DEVICE_LEAKS; k++)
		if (layer->leaks[k].tensor >= 0)
			return 1;
	return 0;
}

void neap__device_leaks_set(struct neap__device_net *device, int l, const float *const *rows)
{
	const struct neap__layer *layer = &device->net->layers[l];

	if (l == device->layers)
		device->readout.leak = rows[0];
	for (int k = 0; k < DEVICE_LEAKS && l < device->layers; k++)
		device->lif[l].leak[k] = layer->leaks[k].tensor >= 0 ? rows[k] : NULL;
}

void neap__device_delays_set(
	struct neap__device_net *device, int l, const u8 *whole, const float *part)
{
	struct neap__device_delays *delays =
		l == device->layers ? &device->readout.delays : &device->lif[l].delays;

	delays->whole = whole;
	delays->part = part;
}

int neap__device_above_sums(const struct neap__device_net *device, int l)
{
	if (l + 1 < device->layers ? device->lif[l + 1].is_masked : device->readout.is_masked)
		return DEVICE_BY_MASK;
	const struct neap__device_delays *delays =
		l + 1 < device->layers ? &device->lif[l + 1].delays : &device->readout.delays;
	if (delays->most)
		return DEVICE_BY_LANES; /* also on the CPU: units have different rows */
	return device->lif[l].is_chained ? DEVICE_BY_CHAIN : DEVICE_BY_LANES;
}

int neap__device_own_sums(const struct neap__device_net *device, int l)
{
	if (!device->lif[l].is_recurrent)
		return neap__device_above_sums(device, l); /* there are none */
	if (device->lif[l].is_masked)
		return DEVICE_BY_MASK;
	return device->lif[l].is_chained ? DEVICE_BY_CHAIN : DEVICE_BY_LANES;
}

int neap__device_turns(const struct neap__device_net *device, int tensor)
{
	const struct neap__layer *layers = device->net->layers;

	for (int l = 0; l < device->layers && device->lif; l++) {
		int has_above = l + 1 < device->layers || device->readout.classes;
		if (has_above && tensor == layers[l + 1].weight &&
			neap__device_above_sums(device, l) != DEVICE_BY_LANES)
			return 1;
		if (layers[l].is_recurrent && tensor == layers[l].recurrent &&
			neap__device_own_sums(device, l) != DEVICE_BY_LANES)
			return 1;
	}
	return 0;
}

int neap__device_logs(const struct neap__device_net *device)
{
	return device->net->has_log && device->lif && neap__has_gradients(device->net);
}

int neap__device_spreads(const struct neap__device_net *device, int tensor)
{
	return device->net->tensors[tensor].row_start != NULL;
}

size_t neap__device_tape_most(const struct neap__device_net *device, int layer)
{
	if (device->dense)
		return (size_t)device->dense[layer].tape * sizeof(float);
	const struct neap__device_lif *lif = &device->lif[layer];
	size_t bytes = 4 * (size_t)lif->units * (size_t)(1 + lif->learned);
	return lif->reset == DEVICE_ZERO ? bytes + 8 + 4 * neap__device_words(lif->units)
					 : bytes + 4;
}
