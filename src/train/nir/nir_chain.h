/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nir_chain.h: a graph of NIR as layers of neap, in the order in which a step computes them, in
 * Euler steps of dt (nir_model.h). Nodes with a state are layers. The outputs of a layer that is
 * seen more than one step late, and inputs that are seen late, go through layers that repeat them a
 * step later.
 */
#ifndef NEAP_TRAIN_NIR_NIR_CHAIN_H
#define NEAP_TRAIN_NIR_NIR_CHAIN_H

#include "data/nir/nir_sums.h"

enum { NEAP__NIR_FEEDS = 16 }; /* as NEAP__SOURCES_MOST */

/* What a layer receives. */
struct neap__nir_feed {
	int layer; /* -1: the Input; it may come later in the order, and is then seen a step late */
	const struct neap__nir_term *term; /* NULL: one to one */
	int origin; /* the layer whose outputs these are, where `layer` repeats them */
	int64_t columns;
};

struct neap__nir_layer {
	int node;		  /* -1: the graph does not have it */
	enum neap__nir_type type; /* of CubaLI: LI, after another LI, its synapse */
	int is_readout;
	int64_t n, below;
	int feeds;
	struct neap__nir_feed feed[NEAP__NIR_FEEDS]; /* by layer, ascending */
	const struct neap__nir_term *own;	     /* from itself, or NULL */
	double *bias;				     /* [n], or NULL */
	int delay;		       /* steps by which layers before it are seen late */
	double *gain;		       /* [n] factors of all weights and of the bias */
	double *decay[2];	       /* [n] of the membrane, of the synaptic current */
	int same[2];		       /* 1: all units have one decay, that of tau */
	double tau[2];		       /* seconds */
	double threshold, reset_value; /* of v - v_leak, of all units alike */
};

struct neap__nir_chain {
	struct neap__nir_layer *layer;
	int layers;
	int64_t inputs;
	int is_single; /* all weights have 32 bits */
};

/* The convolution before a layer, or a pool before or behind it; NULL: there is none. */
static inline const struct neap__nir_filter *neap__nir_conv(const struct neap__nir_layer *layer)
{
	return layer->feed[0].term ? layer->feed[0].term->conv : NULL;
}

static inline const struct neap__nir_filter *neap__nir_pool(const struct neap__nir_layer *layer)
{
	return layer->feed[0].term ? layer->feed[0].term->pool : NULL;
}

static inline const struct neap__nir_filter *neap__nir_behind(const struct neap__nir_layer *layer)
{
	return layer->feed[0].term ? layer->feed[0].term->behind : NULL;
}

/* The image of a layer's units; NULL: it is no convolution. */
static inline const struct neap__nir_image *neap__nir_image_of(const struct neap__nir_layer *layer)
{
	const struct neap__nir_filter *conv = neap__nir_conv(layer),
				      *behind = neap__nir_behind(layer);
	return behind ? &behind->to : conv ? &conv->to : NULL;
}

/*
 * Finds the layers of a graph in steps of dt seconds. 0; NEAP_EFORMAT with a line about the node
 * that no layer can be; -ENOMEM. To be freed in any case, before the sums.
 */
int neap__nir_chain_make(struct neap__nir_chain *chain, struct neap__nir_sums *sums, double dt);
void neap__nir_chain_free(struct neap__nir_chain *chain);

#endif
