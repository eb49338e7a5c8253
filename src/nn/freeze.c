/* SPDX-License-Identifier: Apache-2.0 */
/* freeze.c: the names of --freeze, and the layers that learn and have tapes (freeze.h). */
#include "nn/freeze.h"
#include "nn/core/cell.h"
#include "base/fail.h"
#include "base/text.h"

#include <string.h>

/* Does a word name this tensor: wholly, or the layer that it belongs to? */
static int names(const char *word, size_t length, const char *tensor)
{
	return length > 0 && strncmp(word, tensor, length) == 0 &&
	       (tensor[length] == '\0' || tensor[length] == '.');
}

static int refuse(const struct neap_net *net, const char *word, size_t length)
{
	struct neap__text known = {0};

	for (int i = 0; i < net->ntensors; i++)
		neap__text_add(&known, "%s%s", i ? ", " : "", net->tensors[i].name);
	int rc = neap__fail(NEAP_EUSAGE,
		"--freeze: the network has no '%.*s'. Name a layer such as layer0 or readout, or a "
		"tensor: %.300s",
		(int)(length < 60 ? length : 60), word, known.data ? known.data : "");
	neap__text_free(&known);
	return rc;
}

static int mark(struct neap_net *net, const char *list)
{
	for (const char *word = list;; word++) {
		size_t length = strcspn(word, ",");
		int found = 0;
		for (int i = 0; i < net->ntensors; i++)
			if (names(word, length, net->tensors[i].name))
				found = net->tensors[i].is_frozen = 1;
		if (!found)
			return refuse(net, word, length);
		word += length;
		if (!*word)
			return 0;
	}
}

/* What a norm makes of weights and bias has one gradient, which its parts are made from. */
static int check_norms(const struct neap_net *net)
{
	for (int l = 0; l < net->nlayers; l++) {
		const struct neap__layer *layer = &net->layers[l];
		const struct neap__param *t = net->tensors;
		if (!layer->norm.kind ||
			(t[layer->weight].is_frozen == t[layer->bias].is_frozen &&
				t[layer->weight].is_frozen <= t[layer->norm.scale].is_frozen))
			continue;
		return neap__fail(NEAP_EUSAGE,
			"--freeze: layer%d has norm=batch, whose weight, bias and norm_scale are "
			"normalised together. Freeze layer%d, layer%d.norm_scale, or none of "
			"these",
			l, l, l);
	}
	return 0;
}

/* 1: a tensor of the layer learns. */
static int learns(const struct neap_net *net, const struct neap__layer *layer)
{
	const int tensors[] = {layer->weight, layer->recurrent, layer->bias, layer->candidate,
		layer->delays.tensor};

	for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++)
		if (tensors[i] >= 0 && !net->tensors[tensors[i]].is_frozen)
			return 1;
	for (int l = 0; l < neap__learned(layer); l++)
		if (!net->tensors[layer->leaks[l].tensor].is_frozen)
			return 1;
	return 0;
}

/*
 * Layers that see what a layer that learns gives out, at a later step, hand its gradient down, also
 * if they learn nothing. The sources of all these are on tape.
 */
static void lower(struct neap_net *net)
{
	for (int l = 0; l < net->learns_from; l++) {
		const struct neap__layer *layer = &net->layers[l];
		if (layer->source[layer->nsources - 1].layer >= net->learns_from) {
			net->learns_from = l;
			l = -1;
		}
	}
	net->taped_from = net->learns_from;
	for (int l = net->learns_from; l < net->nlayers; l++) {
		int first = net->layers[l].source[0].layer;
		first = first < 0 && net->layers[l].nsources > 1 ? net->layers[l].source[1].layer
								 : first;
		if (first >= 0 && first < net->taped_from)
			net->taped_from = first;
	}
}

int neap__net_freeze(struct neap_net *net)
{
	const char *list = net->options.freeze;

	if (!list || !*list)
		return 0;
	NEAP_TRY(mark(net, list));
	NEAP_TRY(check_norms(net));
	while (net->learns_from < net->nlayers && !learns(net, &net->layers[net->learns_from]))
		net->learns_from++;
	if (net->learns_from == net->nlayers)
		return neap__fail(NEAP_EUSAGE, "--freeze: all tensors are frozen, nothing is left "
					       "to train. Remove one of them");
	lower(net);
	net->sample_tape = 0;
	for (int l = net->taped_from; l < net->nlayers; l++)
		net->sample_tape += neap__layer_tape(net, &net->layers[l]);
	/* Of layers below the first that learns, spikes are read; no membrane is near enough. */
	for (int l = net->taped_from; l < net->learns_from; l++)
		if (!net->layers[l].dense && net->layers[l].outputs == NEAP__OUTPUT_SPIKES)
			net->layers[l].cut = -1;
	if (net->taped_from > 0) /* a replay makes the tapes of all layers */
		net->has_log = 0;
	return 0;
}
