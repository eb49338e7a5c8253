/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_groups.h: how the samples of a batch are cut into groups, and the memory of all groups and
 * sums. Samples whose gradients are summed together make a struct neap__grads; one thread carries
 * a struct neap__group, which has these samples, or in a dense net a part of them.
 */
#ifndef NEAP_NN_BATCH_BATCH_GROUPS_H
#define NEAP_NN_BATCH_BATCH_GROUPS_H

#include <stdint.h>

struct neap_net;

struct neap__sample_split {
	int per_sum, per_group; /* samples: summed together, of a group; the last may have fewer */
	int ngrads, ngroups;	/* of this process */
};

/* How `own` samples are cut, this process's share of a batch of `whole`. */
struct neap__sample_split neap__split_samples(const struct neap_net *net, int whole, int own);
/*
 * Makes groups, gradient sums and deferred sums for such a batch, where what there is is too small.
 * 0 or -ENOMEM, after which there are none.
 */
int neap__groups_make(struct neap_net *net, const struct neap__sample_split *split);
/*
 * Bytes by which the memory of a net may grow, for batches of the sizes given and the one that has
 * been begun: another size is cut otherwise, and where other inputs spike sums have other rows.
 * all_rows: as if every input spiked; else as many as do now.
 */
uint64_t neap__net_growth(const struct neap_net *net, const int *sizes, int count, int all_rows);

/* Arrays of the net with a row a sample: losses and answers. Makes room for so many. 0, -ENOMEM. */
int neap__samples_make(struct neap_net *net, int samples);

#endif
