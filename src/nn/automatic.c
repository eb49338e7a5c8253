/* SPDX-License-Identifier: Apache-2.0 */
/* automatic.c: what a specification leaves to be chosen: readout, smoothing, initial weights
 * (spec.h). */
#include "nn/cellfile/cell_program.h"
#include "nn/cells/cells.h"
#include "nn/spec.h"

#include <string.h>

/* Seconds of a readout's smoothing where it has some by default: as membranes have. */
#define TAU_OUT 20e-3

const char *neap__automatic_spec(const struct neap_net_options *o, int numbers)
{
	const struct neap_net_options usual = NEAP_NET_OPTIONS_INIT;
	int spiking = o->reset != usual.reset || o->reset_value != usual.reset_value || o->detach ||
		      o->surrogate != usual.surrogate || o->width != usual.width ||
		      o->height != usual.height || o->support != usual.support ||
		      o->threshold != usual.threshold || o->tau != usual.tau || o->euler ||
		      o->learn != usual.learn || o->smooth;

	return numbers && !spiking ? "gru:256,li" : "lif:256r,li";
}

/* 1: the layer is a readout that gets numbers: of a cell without spikes, or the inputs. */
static int reads_numbers(const struct neap_net *net, const struct neap__layer *layer)
{
	if (!layer->cell->readout)
		return 0;
	for (int k = 0; k < layer->nsources; k++) {
		const struct neap__layer *from = neap__source_of(layer, k);
		if (from && !from->cell)
			continue; /* above a readout that is not the last layer, which is refused */
		if (from ? neap__layer_code(net, from)->outputs != NEAP__OUTPUT_SPIKES
			 : net->options.values)
			return 1;
	}
	return 0;
}

enum neap_init neap__automatic_init(const struct neap_net *net, const struct neap__layer *layer)
{
	const struct neap_net_options *o = &net->options, usual = NEAP_NET_OPTIONS_INIT;
	int scaled = layer->said_scale || layer->said_recurrent_scale;

	if (!layer->cell->readout)
		scaled |= o->scale != usual.scale || o->recurrent_scale != usual.recurrent_scale;
	if (scaled)
		return NEAP_INIT_NORMAL;
	return (layer->cell->traits & NEAP__IS_RECURRENT) || reads_numbers(net, layer)
		       ? NEAP_INIT_TORCH
		       : NEAP_INIT_NORMAL;
}

double neap__automatic_tau_out(const struct neap_net *net, const struct neap__layer *layer)
{
	int smooths = net->options.readout != NEAP_READ_STEP && !reads_numbers(net, layer) &&
		      layer->tau != NEAP__TAU_OUT_NUMBERS;

	return smooths || layer->learn != NEAP_LEARN_NONE ? TAU_OUT : 0;
}

enum neap_readout neap__automatic_readout(const struct neap_net_options *o, int of_numbers)
{
	const char *readout = o->spec ? strrchr(o->spec, ',') : NULL, *name = readout;

	while (name && name > o->spec && name[-1] != ',')
		name--;
	int length = name ? (int)strcspn(name, ":,") : 0;
	const struct neap__cell *cell = length ? neap__cell_find(name, (size_t)length) : NULL;
	int spikes = cell ? cell->code[0]->outputs == NEAP__OUTPUT_SPIKES
			  : length && neap__cell_program_named(name, length);

	if (!cell && !spikes)
		return NEAP_READ_MEAN;
	if (spikes)
		return of_numbers ? NEAP_READ_MEAN : NEAP_READ_SUM;
	return o->values && !(cell->traits & NEAP__HAS_THRESHOLD) ? NEAP_READ_LAST : NEAP_READ_MEAN;
}
