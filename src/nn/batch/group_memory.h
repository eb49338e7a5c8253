/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group_memory.h: the memory of a group and of its gradient sums. The arrays of each are in one
 * block; the same function measures and divides it (base/bump_alloc.h), so a predicted size is the
 * allocated size.
 */
#ifndef NEAP_NN_BATCH_GROUP_MEMORY_H
#define NEAP_NN_BATCH_GROUP_MEMORY_H

#include <stdint.h>

struct neap_net;
struct neap_batch;
struct neap__grads;
struct neap__group;

/* Allocates gradient sums, except the rows of inputs. 0 or -ENOMEM. */
int neap__grads_make(struct neap_net *net, struct neap__grads *grads);
/*
 * Zeroes the sums of all struct neap__grads, whose samples are set, and allocates rows for the
 * inputs that spike in them, or for all inputs if the batch is read in windows. 0 or -ENOMEM.
 */
int neap__grads_begin(struct neap_net *net, const struct neap_batch *batch);
/* Bytes that neap__grads_make allocates; saturates. */
uint64_t neap__grads_bytes(const struct neap_net *net);
/* Bytes of `rows` rows of inputs; 0 if the sums of neap__grads_make include all inputs. */
uint64_t neap__input_rows_bytes(const struct neap_net *net, int rows);
void neap__grads_free(struct neap_net *net, struct neap__grads *grads);
/* Bytes of a group of at most `samples` samples; saturates. */
uint64_t neap__group_bytes(const struct neap_net *net, int samples);
/* Allocates a group of at most `samples` samples, all bytes zero. 0 or -ENOMEM. */
int neap__group_make(struct neap_net *net, struct neap__group *group, int samples);
void neap__group_free(struct neap_net *net, struct neap__group *group);

#endif
