/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bf16_net.h: nets of precision bf16, and nets whose products are computed in tiles.
 *
 * bf16: all numbers are floats; the dense products of hidden layers round both factors to bfloat16
 * (kern/bf16.h): products with recurrent weights, with the weights from a hidden layer below or
 * from inputs that are numbers, and the outer products that are the gradients of these weights.
 * Rows of weights that input spikes select, the readout, biases and the equations of cells are
 * computed in float.
 *
 * Tiles (kern/tiles/tiles.h): in bf16, all these products but the outer ones, whose terms are those
 * of the steps of a call and would form other blocks in another plan. In float, products of weights
 * with many spikes, and of transposed weights with the gradients of many units
 * (nn/core/products.h).
 */
#ifndef NEAP_NN_BF16_NET_H
#define NEAP_NN_BF16_NET_H

#include "sys/isa.h"

struct neap_net;

/* 0; NEAP_EUSAGE: a cell, the shape of the net, or the processor is unsuitable for precision bf16.
 */
int neap__bf16_check(const struct neap_net *net, enum neap__isa isa);

/* Chooses net->tile_ops where the options ask for tiles. NEAP_EUSAGE: the precision or the
 * processor is unsuitable. */
int neap__tiles_choose(struct neap_net *net, enum neap__isa isa);

/* 1: this processor computes products in tiles with NEAP_ISA as it is set; else 0. */
int neap__tiles_work(void);

/*
 * Marks the tensors whose dense products round their factors, and those whose products are computed
 * in tiles. NEAP_EUSAGE: tiles are asked for, and no tensor has such products.
 */
int neap__bf16_mark(struct neap_net *net);

#endif
