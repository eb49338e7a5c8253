/* SPDX-License-Identifier: Apache-2.0 */
/* sources.c: the key `from` of layers (sources.h). */
#include "nn/sources.h"
#include "nn/core/cell.h"
#include "base/fail.h"
#include "base/text.h"

#include <string.h>

enum { NOT_A_SOURCE = -2 };

/* The layer of a name: -1 the inputs; NOT_A_SOURCE. Numbers have no zero in front. */
static int layer_named(const char *text, size_t length)
{
	static const char first[] = "input", other[] = "layer";
	int number = 0;

	if (length == sizeof first - 1 && memcmp(text, first, length) == 0)
		return -1;
	size_t i = sizeof other - 1;
	if (length <= i || length > i + 4 || memcmp(text, other, i) != 0 ||
		(text[i] == '0' && length > i + 1))
		return NOT_A_SOURCE;
	for (; i < length; i++) {
		if (text[i] < '0' || text[i] > '9')
			return NOT_A_SOURCE;
		number = number * 10 + (text[i] - '0');
	}
	return number;
}

/* Inserts a source in ascending order. 0: it is there already. */
static int insert(struct neap__layer *layer, int source)
{
	int at = 0;

	while (at < layer->nsources && layer->source[at].layer < source)
		at++;
	if (at < layer->nsources && layer->source[at].layer == source)
		return 0;
	memmove(&layer->source[at + 1], &layer->source[at],
		(size_t)(layer->nsources - at) * sizeof layer->source[0]);
	layer->source[at] = (struct neap__layer_source){.layer = source};
	layer->nsources++;
	return 1;
}

int neap__sources_read(
	const struct neap_net *net, struct neap__layer *layer, const char *text, int length)
{
	const char *end = text + length;

	layer->nsources = 0;
	for (const char *word = text;; word++) {
		const char *plus = memchr(word, '+', (size_t)(end - word));
		int n = (int)((plus ? plus : end) - word), source = layer_named(word, (size_t)n);
		if (source == NOT_A_SOURCE || source >= net->nlayers - 1)
			return neap__fail(NEAP_EUSAGE,
				"--net: from='%.*s' of layer %d: '%.*s' is not a hidden layer of "
				"the "
				"network. Use input, layer0, layer1, ..., such as "
				"from=input+layer0",
				length, text, layer->index, n, word);
		if (source == layer->index)
			return neap__fail(NEAP_EUSAGE,
				"--net: from='%.*s' of layer %d names the layer itself. Write r "
				"behind its size for recurrent connections",
				length, text, layer->index);
		if (layer->nsources == NEAP__SOURCES_MOST)
			return neap__fail(NEAP_EUSAGE,
				"--net: from='%.*s' of layer %d names more than %d layers", length,
				text, layer->index, NEAP__SOURCES_MOST);
		if (!insert(layer, source))
			return neap__fail(NEAP_EUSAGE,
				"--net: from='%.*s' of layer %d names '%.*s' twice. Remove one",
				length, text, layer->index, n, word);
		if (!plus)
			return 0;
		word = plus;
	}
}

int neap__sources_default(const struct neap_net *net, struct neap__layer *layer)
{
	if (!layer->nsources)
		insert(layer, layer->index - 1);
	const struct neap__layer_source *first = &layer->source[0];
	if (first->layer > layer->index || (layer->index == 0 && first->layer >= 0))
		return neap__fail(NEAP_EUSAGE,
			"--net: from of layer %d names only layers above it, whose outputs arrive "
			"one "
			"step later. Add %s",
			layer->index, layer->index ? "input or a layer below" : "input");
	layer->below = first->layer < 0 ? net->options.inputs : net->layers[first->layer].n;
	return 0;
}

/* Finds the first and the last layer that receive a layer. 0: none does. */
static int find_readers(const struct neap_net *net, struct neap__layer *layer)
{
	int found = 0;

	for (int l = 0; l < net->nlayers; l++)
		for (int k = 0; k < net->layers[l].nsources; k++)
			if (net->layers[l].source[k].layer == layer->index) {
				layer->first_reader = found ? layer->first_reader : l;
				layer->last_reader = l;
				found = 1;
			}
	return found;
}

/* Max pooling stops gradients of units that another layer may see. */
static int check_pools(const struct neap_net *net, const struct neap__layer *layer)
{
	int source = layer->source[0].layer;

	if (!layer->pool.size[0] || layer->pool.by != NEAP__POOL_MAX || source < 0)
		return 0;
	for (int l = 0; l < net->nlayers; l++)
		for (int k = 0; k < net->layers[l].nsources; k++)
			if (l != layer->index && net->layers[l].source[k].layer == source)
				return neap__fail(NEAP_EUSAGE,
					"--net: layer %d has pooling=max and receives layer%d, "
					"which "
					"layer %d receives too. Use pooling=sum or pooling=avg",
					layer->index, source, l);
	return 0;
}

int neap__sources_settle(struct neap_net *net)
{
	for (int l = 0; l < net->nlayers; l++) {
		struct neap__layer *layer = &net->layers[l];
		int64_t rows = 0;
		for (int k = 0; k < layer->nsources; k++) {
			struct neap__layer_source *s = &layer->source[k];
			s->row = (int)rows;
			s->is_back = s->layer > l;
			s->late = s->is_back || (s->layer >= 0 && layer->delay);
			s->is_delayed = neap__has_delays(layer) && s->layer >= 0 && !s->is_back;
			s->delay_at = layer->delays.units;
			if (s->is_delayed)
				layer->delays.units += net->layers[s->layer].n;
			rows += s->layer < 0 ? net->options.inputs : net->layers[s->layer].n;
		}
		if (layer->nsources > 1 && rows > NEAP__UNITS_MOST)
			return neap__fail(NEAP_EUSAGE,
				"--net: layer %d receives %lld units in all; the limit is %d", l,
				(long long)rows, NEAP__UNITS_MOST);
		layer->below = (int)rows;
		NEAP_TRY(check_pools(net, layer));
		if (l < net->nlayers - 1 && !find_readers(net, layer))
			return neap__fail(NEAP_EUSAGE,
				"--net: no layer receives the outputs of layer %d. Add layer%d to "
				"the key "
				"from of another layer, or remove the layer",
				l, l);
	}
	return 0;
}

void neap__sources_write(struct neap__text *text, const struct neap__layer *layer)
{
	for (int k = 0; k < layer->nsources; k++) {
		int source = layer->source[k].layer;
		neap__text_add(text, k ? "+" : "");
		if (source < 0)
			neap__text_add(text, "input");
		else
			neap__text_add(text, "layer%d", source);
	}
}
