/* SPDX-License-Identifier: Apache-2.0 */
/* layout.c: what layers derive from their keys, and the offsets of their numbers (layout.h). */
#include "nn/layout.h"
#include "nn/core/cell.h"
#include "nn/filter.h"
#include "nn/sources.h"
#include "nn/time_unit.h"
#include "base/checked.h"
#include "base/fail.h"
#include "kern/kern.h"

#include <errno.h>
#include <math.h>

static size_t place(size_t *total, size_t bytes)
{
	size_t at = *total;
	*total = neap__round_up(at + bytes, NEAP__LAYER_ALIGN);
	return at;
}

/* Whether a surrogate is 0 beyond |u - threshold| = width. */
static int is_compact(enum neap_surrogate surrogate)
{
	return surrogate == NEAP_TRIANGLE || surrogate == NEAP_BOXCAR;
}

/* 1: a layer sees its outputs one step later. */
static int is_seen_late(const struct neap_net *net, const struct neap__layer *layer)
{
	for (int l = layer->first_reader; l <= layer->last_reader; l++)
		for (int k = 0; k < net->layers[l].nsources; k++)
			if (net->layers[l].source[k].layer == layer->index &&
				net->layers[l].source[k].late)
				return 1;
	return 0;
}

static void derive(const struct neap_net *net, struct neap__layer *layer)
{
	const struct neap_net_options *o = &net->options;
	layer->cut = is_compact(layer->surrogate) ? layer->width : INFINITY;
	if (layer->support > 0 && layer->support < layer->cut)
		layer->cut = layer->support;
	layer->slope = neap__unit_slope(net, layer);
	layer->smooth = o->smooth;
	layer->dense = o->dense || o->smooth || isinf(layer->cut) ||
		       neap__layer_code(net, layer)->is_dense;
	layer->outputs = o->smooth ? NEAP__OUTPUT_ALL : neap__layer_code(net, layer)->outputs;
	layer->keeps_spikes = layer->is_recurrent || is_seen_late(net, layer) ||
			      layer->reset == NEAP_RESET_SUBTRACT ||
			      layer->reset == NEAP_RESET_ZERO;
	layer->keeps_support = layer->reset == NEAP_RESET_ZERO && !layer->detach && !layer->dense;
}

static void derive_widths(const struct neap_net *net, struct neap__layer *layer)
{
	struct neap__widths w = neap__layer_code(net, layer)->widths;

	if (!w.sums)
		w = (struct neap__widths){1, 1, 1, 0, 0};
	layer->widths = (struct neap__widths){w.in * layer->n, w.own * layer->n, w.sums * layer->n,
		w.own_at * layer->n, w.candidate_at * layer->n};
}

/* Which spikes go into the log: those that others than the readout see. */
static void derive_log(struct neap_net *net)
{
	/* A replay adds the rows of spikes one after the other. */
	net->has_log = neap__is_chain(net) && !net->options.smooth && !net->options.values &&
		       net->options.products == NEAP_CHAINS && net->nlayers <= NEAP__LAYERS_MOST;
	for (int l = 0; l < net->nlayers - 1; l++) {
		struct neap__layer *layer = &net->layers[l];
		layer->logged = layer->is_recurrent || l + 1 < net->nlayers - 1;
		if (layer->logged)
			net->sample_log += (1 + (size_t)layer->n) * sizeof(uint16_t);
		/* What dropout lets through has another weight, which a walk does not know. */
		if (layer->density < 1 || neap__has_delays(layer + 1) || neap__has_filter(layer) ||
			neap__has_filter(layer + 1) || layer->norm.kind ||
			!neap__layer_code(net, layer)->walk || neap__learned(layer) ||
			neap__has_ranges(layer) || (l > 0 && layer[-1].dropout > 0))
			net->has_log = 0;
	}
	net->strip_units = (size_t)net->ops->strip_units(net);
}

static void derive_dense(struct neap_net *net)
{
	net->dense = net->nlayers > 1 && neap__is_chain(net);
	for (int l = 0; l < net->nlayers - 1; l++)
		net->dense &= neap__layer_code(net, &net->layers[l])->outputs == NEAP__OUTPUT_ALL &&
			      net->layers[l].density >= 1 && !neap__has_filter(&net->layers[l]);
	net->dense &= net->layers[net->nlayers - 1].density >= 1 &&
		      !neap__has_filter(&net->layers[net->nlayers - 1]);
	for (int l = 0; l < net->nlayers; l++) /* their gradients are added step by step */
		net->dense &= !neap__learned(&net->layers[l]);
}

static size_t bytes_of(const struct neap_net *net, const struct neap__layer *layer, int rows,
	size_t (*bytes)(const struct neap_net *net, const struct neap__layer *layer))
{
	return bytes ? bytes(net, layer) : (size_t)rows * layer->n * net->ops->real;
}

/* The rings of the outputs that are on their way to a layer, and of its d(in) (delays.h). */
static void place_delays(
	struct neap_net *net, struct neap__layer *layer, size_t *state, size_t *adjoint)
{
	size_t rows = (size_t)layer->delays.most + 1;

	net->has_delays = 1;
	for (int k = 0; k < layer->nsources; k++) {
		struct neap__layer_source *source = &layer->source[k];
		if (!source->is_delayed)
			continue;
		size_t n = (size_t)net->layers[source->layer].n;
		size_t row = net->options.smooth ? n * net->ops->real : (n + 7) / 8;
		source->ring_at = place(state, rows * row);
	}
	layer->delays.adjoint_at = place(adjoint, rows * (size_t)layer->widths.in * net->ops->real);
}

/* What a layer receives: its filter, the sums that are apart from its row, and the rows of d(in).
 */
static int derive_inputs(struct neap_net *net, struct neap__layer *layer)
{
	int late = 0;

	derive_widths(net, layer);
	NEAP_TRY(neap__filter_make(net, layer));
	net->has_norm |= layer->norm.kind != NEAP__NORM_NONE;
	layer->wide_index = net->nwide;
	net->nwide += layer->wide > 0;
	size_t wide = neap__round_up((uint64_t)neap__products_of(layer) * net->ops->real, 64);
	if (neap__is_apart(layer) && wide > net->wide_bytes)
		net->wide_bytes = wide;
	int at_once = neap__has_filter(layer) || neap__has_delays(layer);
	for (int k = 0; k < layer->nsources; k++)
		late |= layer->source[k].late;
	layer->din_mask = !at_once || layer->is_recurrent ? -1 : late;
	return 0;
}

/* Where a layer's parts are in the state and the adjoint of a sample. */
static void place_layer(
	struct neap_net *net, struct neap__layer *layer, size_t *state, size_t *adjoint)
{
	const struct neap__cell_code *c = neap__layer_code(net, layer);
	size_t bits = (size_t)(layer->n + 7) / 8, bytes = net->ops->real;
	int hidden = !layer->cell->readout;

	layer->state_at = place(state, bytes_of(net, layer, c->rows.state, c->state_bytes));
	if (neap__learned(layer))
		layer->traces_at =
			place(state, (size_t)(c->traces * neap__learned(layer) / layer->ntaus) *
					     layer->n * bytes);
	if (hidden && layer->keeps_spikes)
		layer->spikes_at =
			place(state, layer->outputs == NEAP__OUTPUT_ALL ? layer->n * bytes : bits);
	if (hidden && layer->keeps_support)
		layer->support_at = place(state, bits);
	layer->adjoint_at = place(adjoint, bytes_of(net, layer, c->rows.adjoint, c->adjoint_bytes));
	if (neap__has_delays(layer))
		place_delays(net, layer, state, adjoint);
}

/* The numbers of all units, or of all inputs if they are numbers. */
static int make_identity(struct neap_net *net)
{
	int all = net->options.values && net->options.inputs > net->widest ? net->options.inputs
									   : net->widest;

	net->identity = neap__net_get(net, (uint64_t)all, sizeof *net->identity);
	if (!net->identity)
		return neap__fail_errno(ENOMEM, "net");
	for (int i = 0; i < all; i++)
		net->identity[i] = (uint16_t)i;
	return 0;
}

int neap__net_layout(struct neap_net *net)
{
	size_t state = 0, adjoint = 0, tape = 0;
	int row = 0;

	for (int l = 0; l < net->nlayers; l++) {
		struct neap__layer *layer = &net->layers[l];
		int hidden = !layer->cell->readout;

		NEAP_TRY(derive_inputs(net, layer));
		if (hidden)
			derive(net, layer);
		place_layer(net, layer, &state, &adjoint);
		tape += neap__layer_tape(net, layer);
		net->widest = layer->n > net->widest ? layer->n : net->widest;
		row = layer->widths.sums > row ? layer->widths.sums : row;
		layer->hidden_at = net->hidden;
		net->can_drop |= hidden && layer->dropout > 0;
		net->hidden += hidden ? layer->n : 0;
	}
	net->sample_state = neap__round_up(state, NEAP__SAMPLE_ALIGN);
	net->sample_adjoint = neap__round_up(adjoint, NEAP__SAMPLE_ALIGN);
	net->sample_tape = tape;
	net->row_bytes = neap__round_up((uint64_t)row * net->ops->real, 64);
	derive_log(net);
	derive_dense(net);
	return make_identity(net);
}
