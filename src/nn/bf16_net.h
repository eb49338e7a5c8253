/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bf16_net.h: nets of precision bf16. All numbers are floats; the dense products of hidden layers
 * round both factors to bfloat16 (kern/bf16.h): products with recurrent weights, with the weights
 * from a hidden layer below or from inputs that are numbers, and the outer products that are the
 * gradients of these weights. Rows of weights that input spikes select, the readout, biases and the
 * equations of cells are computed in float.
 */
#ifndef NEAP_NN_BF16_NET_H
#define NEAP_NN_BF16_NET_H

#include "sys/isa.h"

struct neap_net;

/* 0; NEAP_EUSAGE: a cell, the shape of the net, or the processor is unsuitable. */
int neap__bf16_check(const struct neap_net *net, enum neap__isa isa);

/* Marks the tensors whose dense products round their factors; none in another precision. */
void neap__bf16_mark(struct neap_net *net);

#endif
