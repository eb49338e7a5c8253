/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer_sum.h: what processes that share a batch (neap/peers.h) add up together: losses and counts
 * at the turn, outputs of units, and gradients. A rank makes the nodes of sum_tree.h that lie in
 * its groups as a whole, and sends slices of them to the ranks that own these; an owner finishes
 * the tree for its slices, and all get all sums. Gradients go in rounds, which bound the buffers.
 */
#ifndef NEAP_NN_BATCH_PEER_SUM_H
#define NEAP_NN_BATCH_PEER_SUM_H

#include "nn/core/net_state.h"

/* What ranks add up at the turn. */
struct neap__peer_counts {
	int64_t steps, correct, judged, right;
};

/* A node of the tree, with its leaves, of which a rank has all. */
struct neap__peer_node {
	int first, leaves;
};

/* Who has what of the batch begun, and the buffers of exchanges, behind it in one block. */
struct neap__peer_room {
	int ranks, rank;
	int samples, groups; /* of a whole batch, that there is room for */
	/* Of the batch begun: */
	int whole, per_sum;	      /* samples of all ranks; those that are summed together */
	int first_group;	      /* of this rank */
	int nodes;		      /* of all ranks */
	struct neap__peer_node *node; /* [nodes] in the order of ranks */
	int *node_at;		      /* [ranks + 1] the first of each rank */
	size_t round;		      /* gradients of a slice in a round, at most */
	int has_gradients;	      /* 1: a backward pass follows the turn */
	int ended;		      /* 1: the numbers below are there */
	double support, recorded;     /* sums over the groups of all ranks */

	size_t *to, *from; /* [ranks] bytes */
	/* [ranks] what each rank has counted at the turn; its units inside the support, and all. */
	struct neap__peer_counts *counts;
	double (*shares)[2];
	double *loss;	  /* [samples] */
	double *units;	  /* [nodes][hidden units] */
	double *out, *in; /* [numbers] what is sent and received in a round */
	size_t numbers;
	double *square; /* [blocks] sums of squares of gradients (clip.c) */
};

/*
 * Makes room for batches of at most so many samples, of all ranks, which are of at most so many
 * groups. What was there and is too small is freed. 0 or -ENOMEM.
 */
int neap__peer_room_make(
	struct neap_net *net, const struct neap_peers *peers, int samples, int groups);

/*
 * Begins a batch of which this rank has a share: makes room for exchanges, and says who has what.
 * 0, or NEAP_EUSAGE where it is not this rank's share in whole groups; -ENOMEM.
 */
int neap__peer_begin(struct neap_net *net, const struct neap_batch *batch,
	const struct neap_peers *peers, int per_sum);

/*
 * Adds up the losses of all samples in their order, and the counts. Collective. 0 or a negative
 * code.
 */
int neap__peer_turn(struct neap_net *net, double *loss, struct neap__peer_counts *counts);
/* Keeps the loss of a sample of this rank, for neap__peer_turn. */
void neap__peer_loss(struct neap_net *net, int sample, double value);
/* Makes the sums of all hidden units, which neap__peer_unit returns. Collective. */
int neap__peer_units(struct neap_net *net);
double neap__peer_unit(const struct neap_net *net, int unit);
/*
 * Adds the gradients of all ranks to the parameters' `grad`: on all of them, or each its slice
 * (net->keeps_slice). Collective.
 */
int neap__peer_gradients(struct neap_net *net);

#endif
