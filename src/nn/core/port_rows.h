/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port_rows.h: the rows of the caller's arrays (neap/ports.h) that a step of a sample reads and
 * writes.
 */
#ifndef NEAP_NN_CORE_PORT_ROWS_H
#define NEAP_NN_CORE_PORT_ROWS_H

#include "nn/core/precision.h"

#define neap__port_outputs NEAP_R(neap__port_outputs)
#define neap__port_input_grads NEAP_R(neap__port_input_grads)
#define neap__port_state_grads NEAP_R(neap__port_state_grads)

/* The layers that a step computes: with ports, the readout is left out. */
static inline int neap__computed_layers(const struct neap_net *net)
{
	return net->nlayers - neap__has_ports(net);
}

/* Where row (t, sample) of an array begins that has n numbers in a row. */
static inline size_t neap__port_at(const struct neap_net *net, const struct neap__at *at, int n)
{
	return ((size_t)(at->t - net->ports.first) * net->ports.samples + at->sample) * n;
}

/* The gradients of a sample's outputs [n], where the layer is the last hidden one; or NULL. */
static inline const real *neap__port_gradients(const struct neap__at *at)
{
	const struct neap_net *net = at->net;

	if (!net->ports.output_grads || at->layer->index != net->nlayers - 2)
		return NULL;
	return (const real *)net->ports.output_grads + neap__port_at(net, at, at->layer->n);
}

/* Writes the outputs of the sample's step, which the cell has just made. */
void neap__port_outputs(const struct neap__at *at);
/* Writes the gradients of the inputs of all samples: W d(in) of the first layer. */
void neap__port_input_grads(struct neap_net *net, struct neap__group *group, int alive);
/* Writes the gradient of a group's state before the first step: rows of [samples][n] numbers. */
void neap__port_state_grads(
	struct neap_net *net, struct neap__group *group, const unsigned char *adjoint, void *rows);

#endif
