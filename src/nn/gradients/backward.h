/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backward.h: ranges of steps of one group, backward, and the sums of gradient blocks. A step goes
 * layer by layer from the top over the samples in their order. Every sum into a weight's gradient
 * goes downwards in t and upwards in samples, wherever a range was cut.
 */
#ifndef NEAP_NN_GRADIENTS_BACKWARD_H
#define NEAP_NN_GRADIENTS_BACKWARD_H

#include "nn/core/precision.h"

#define neap__backward_group NEAP_R(neap__backward_group)
#define neap__fold_part NEAP_R(neap__fold_part)
#define neap__fold_tensor NEAP_R(neap__fold_tensor)

/* A row of struct neap__precision_ops. */
void neap__backward_group(struct neap_net *net, struct neap__group *group, unsigned char *adjoint,
	int64_t t1, int64_t t0, const unsigned char *tape, int64_t tape_t0);
/*
 * At the end of a gradient block: adds numbers [at, at + count) of a tensor's sums of the block to
 * those of the blocks before, and zeroes them.
 */
void neap__fold_part(const struct neap_net *net, struct neap__grads *grads, int tensor, int64_t at,
	int64_t count);
/* The same of all rows of a tensor that have a sum. */
void neap__fold_tensor(struct neap_net *net, struct neap__grads *grads, int tensor);

#endif
