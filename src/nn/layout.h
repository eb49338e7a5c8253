/* SPDX-License-Identifier: Apache-2.0 */
/* layout.h: where things lie in a sample's state, adjoint and tape, and the memory of groups. */
#ifndef NEAP_NN_LAYOUT_H
#define NEAP_NN_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

struct neap_net;
struct neap__grads;
struct neap__group;

/* Fills in what layers derive from their keys, offsets, and sizes of a sample. 0, or -ENOMEM. */
int neap__net_layout(struct neap_net *net);

/* Memory of gradient sums, but for rows of inputs. 0, or -ENOMEM. */
int neap__grads_make(struct neap_net *net, struct neap__grads *grads);
/*
 * Zeroes the sums of the samples that `grads` has been given; makes room for the rows of the inputs
 * that spike in them, or, in a batch that comes in windows, of all. 0, or -ENOMEM.
 */
int neap__grads_begin(const struct neap_net *net, struct neap__grads *grads);
/* Bytes that neap__grads_make takes, and that a row of an input takes beside them. */
size_t neap__grads_bytes(const struct neap_net *net);
size_t neap__grads_row_bytes(const struct neap_net *net);
void neap__grads_free(struct neap__grads *grads);
/* Bytes of a group of at most `samples` samples; saturates. */
uint64_t neap__group_bytes(const struct neap_net *net, int samples);
/* Memory of a group of at most `samples` samples. 0, NEAP_EOVERFLOW or -ENOMEM. */
int neap__group_make(struct neap_net *net, struct neap__group *group, int samples);
void neap__group_free(struct neap__group *group);

#endif
