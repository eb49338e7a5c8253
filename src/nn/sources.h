/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sources.h: what a layer receives: the layer below, or what its key `from` names (skip
 * connections, He and others 2016, Fang and others 2021; feedback). The outputs of several sources
 * enter one after the other, as PyTorch's cat: W has the rows of each in turn, in the order inputs,
 * layer0, layer1, ... A layer above, and a layer itself, would be seen one step later; the latter
 * is what `r` makes.
 */
#ifndef NEAP_NN_SOURCES_H
#define NEAP_NN_SOURCES_H

#include "nn/core/net_state.h"

struct neap__text;

/* The value of `from`, such as "input+layer0". 0, or NEAP_EUSAGE. */
int neap__sources_read(
	const struct neap_net *net, struct neap__layer *layer, const char *text, int length);
/* Of a layer that has just been parsed: the sources of one without the key, and its own checks. */
int neap__sources_default(const struct neap_net *net, struct neap__layer *layer);
/* Of all layers: rows of W, sizes, and the checks that need all layers. */
int neap__sources_settle(struct neap_net *net);
/* Writes the value of `from`. */
void neap__sources_write(struct neap__text *text, const struct neap__layer *layer);

#endif
