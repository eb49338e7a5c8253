/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nir_chain.h: a graph of NIR as layers of neap: a chain of nodes with a state, each of which sees
 * the one before and itself, in Euler steps of dt (nir_model.h).
 */
#ifndef NEAP_TRAIN_NIR_CHAIN_H
#define NEAP_TRAIN_NIR_CHAIN_H

#include "data/nir/nir_sums.h"

struct neap__nir_layer {
	int node; /* -1: a readout that the graph does not have, which passes spikes on */
	enum neap__nir_type type;
	int64_t n, below;
	struct neap__nir_term *feed, *own; /* from below; from itself, or NULL */
	const double *bias;		   /* [n], or NULL */
	int delay;			   /* steps by which the layer below is seen late */
	double *gain;			   /* [n] factors of all weights and of the bias */
	double *decay[2];		   /* [n] of the membrane, of the synaptic current */
	int same[2];			   /* 1: all units have one decay, that of tau */
	double tau[2];			   /* seconds */
	double threshold, reset_value;	   /* of v - v_leak, of all units alike */
};

struct neap__nir_chain {
	struct neap__nir_layer *layer;
	int layers;
	int64_t inputs;
	int is_single; /* all weights have 32 bits */
};

/*
 * Finds the layers of a graph in steps of dt seconds. 0; NEAP_EFORMAT with a line about the node
 * that no layer can be; -ENOMEM. To be freed in any case, before the sums.
 */
int neap__nir_chain_make(struct neap__nir_chain *chain, struct neap__nir_sums *sums, double dt);
void neap__nir_chain_free(struct neap__nir_chain *chain);

#endif
