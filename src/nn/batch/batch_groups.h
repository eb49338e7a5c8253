/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_groups.h: divides the samples of a batch into groups, and allocates groups and gradient
 * sums. The samples whose gradients are summed together form a struct neap__grads; a struct
 * neap__group, which one thread processes, has the same samples or, in a dense net, a part of them.
 */
#ifndef NEAP_NN_BATCH_BATCH_GROUPS_H
#define NEAP_NN_BATCH_BATCH_GROUPS_H

#include <stdint.h>

struct neap_net;

struct neap__sample_split {
	/* Samples; the last of each may have fewer. A group is one part or NEAP__GROUP_PARTS. */
	int per_sum, per_group, per_part;
	int ngrads, ngroups; /* of this rank */
};

/* Divides `own` samples, the share of this rank in a batch of `whole` samples. */
struct neap__sample_split neap__split_samples(const struct neap_net *net, int whole, int own);
/*
 * Allocates groups, gradient sums and deferred sums for such a batch, unless the existing ones are
 * large enough. 0 or -ENOMEM; after an error there are none.
 */
int neap__groups_make(struct neap_net *net, const struct neap__sample_split *split);
/*
 * Upper bound of the bytes by which the memory of a net grows in batches of the given sizes and of
 * the current size: a batch of another size is divided differently, and other inputs may spike,
 * which adds rows to the sums. all_rows: every input spikes; otherwise as many as in the current
 * batch.
 */
uint64_t neap__net_growth(const struct neap_net *net, const int *sizes, int count, int all_rows);

/* Allocates the arrays with one row per sample: losses and answers. 0 or -ENOMEM. */
int neap__samples_make(struct neap_net *net, int samples);

#endif
