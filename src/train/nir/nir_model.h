/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nir_model.h: nets of neap as graphs of NIR, and back. NIR gives differential equations; neap
 * takes them in Euler steps of dt, with k = dt/tau and ks = dt/tau_syn:
 *
 *     LIF:     v += k (v_leak - v + r I)
 *              lif:reset=hard, decay 1 - k, weights times k r
 *     IF:      v += dt r I
 *              lif:reset=hard, decay 1, weights times dt r
 *     CubaLIF: i += ks (w_in I - i); v += k (v_leak - v + r i)
 *              cubalif:reset=hard, decays 1 - k, 1 - ks, weights times k r ks w_in
 *     LI:      as LIF, without spikes
 *              li, decay 1 - k, weights times r; in other places integrator, weights times k r
 *     I:       as IF, without spikes
 *              integrator, decay 1, weights times dt r
 *     CubaLI:  as CubaLIF, without spikes
 *              integrator, decay 1 - ks, weights times ks w_in, and a layer as for LI
 *     Threshold: a spike where I is above it
 *              lif:reset=hard, decay 0
 *
 * and v becomes v_reset where it is above v_threshold. neap's membrane is v - v_leak. A connection
 * from a node to itself through weights is recurrent: what left it a step before enters. The same
 * holds for connections that close a cycle (nir_order.h).
 *
 * Written is, for a decay of exp(-dt/tau), the time constant dt/(1 - exp(-dt/tau)), which gives the
 * same decay in Euler steps; r is tau/dt and w_in tau_syn/dt, so that all factors of weights are 1.
 */
#ifndef NEAP_TRAIN_NIR_NIR_MODEL_H
#define NEAP_TRAIN_NIR_NIR_MODEL_H

#include <neap/net.h>
#include "data/nir/nir_graph.h"
#include "train/safetensors.h"

struct neap__text;

/* What a graph may not say. */
struct neap__nir_hints {
	double dt;		      /* seconds a step; 0: what the graph's metadata says */
	const enum neap_reset *reset; /* of all nodes that spike; NULL: metadata, else hard */
	int keeps_dt;		      /* 1: another dt than the metadata's is refused */
	int values;		      /* 1: its inputs are numbers; metadata stands above it */
};

/*
 * Reads a NIR file as the file of a model: tensors and metadata as neap__safetensors_read gives
 * them. Where metadata describes a net of neap's that the graph still agrees with, it is that net,
 * to the bit. 0, NEAP_EFORMAT, NEAP_EUSAGE where dt is missing, or -ENOMEM.
 */
int neap__nir_model_read(
	struct neap__safetensors *file, const char *path, const struct neap__nir_hints *hints);

/* The same of a graph; `path` is for messages alone. */
int neap__nir_model_of(struct neap__safetensors *file, const struct neap__nir_graph *graph,
	const char *path, const struct neap__nir_hints *hints);

/*
 * Makes the graph of a net and, as metadata, of all texts of its file whose keys begin "neap.".
 * Adds to *lost a line about what readers other than neap will not see; with `strict` that is
 * refused instead. 0, NEAP_EUSAGE for what NIR cannot say, or -ENOMEM; the graph is to be freed in
 * any case.
 */
int neap__nir_model_graph(struct neap__nir_graph *graph, const struct neap_net *net,
	const struct neap__safetensors *file, int strict, struct neap__text *lost);

#endif
