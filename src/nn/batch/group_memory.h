/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group_memory.h: the memory of a group and of gradient sums. Each has its arrays in one block,
 * which a function measures and divides (base/bump_alloc.h), so that the bytes reported are those
 * taken.
 */
#ifndef NEAP_NN_BATCH_GROUP_MEMORY_H
#define NEAP_NN_BATCH_GROUP_MEMORY_H

#include <stdint.h>

struct neap_net;
struct neap_batch;
struct neap__grads;
struct neap__group;

/* Memory of gradient sums, but for rows of inputs. 0, or -ENOMEM. */
int neap__grads_make(struct neap_net *net, struct neap__grads *grads);
/*
 * Zeroes the sums of the samples that `grads` has been given; makes room for the rows of the inputs
 * that spike in them, or, in a batch that comes in windows, of all. 0, or -ENOMEM.
 */
int neap__grads_begin(
	struct neap_net *net, const struct neap_batch *batch, struct neap__grads *grads);
/* Bytes that neap__grads_make takes; saturates. */
uint64_t neap__grads_bytes(const struct neap_net *net);
/* Bytes of `rows` rows of inputs; 0 where every input has a row among what neap__grads_make takes.
 */
uint64_t neap__input_rows_bytes(const struct neap_net *net, int rows);
void neap__grads_free(struct neap_net *net, struct neap__grads *grads);
/* Bytes of a group of at most `samples` samples; saturates. */
uint64_t neap__group_bytes(const struct neap_net *net, int samples);
/* Memory of a group of at most `samples` samples, all zero. 0 or -ENOMEM. */
int neap__group_make(struct neap_net *net, struct neap__group *group, int samples);
void neap__group_free(struct neap_net *net, struct neap__group *group);

#endif
