/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sum_tree.h: sums over the groups of a batch in the order of a fixed binary tree. Node (i, k) is
 * the sum of leaves [i 2^k, (i + 1) 2^k), cut at their number: the sum of its left half and its
 * right half, or the left half alone where there are no leaves in the right one. The shape depends
 * on the number of leaves alone, so whoever adds up whole nodes gets the same bits. Parts come in
 * ascending order, leaves or nodes, and siblings are added as soon as both are there.
 */
#ifndef NEAP_NN_BATCH_SUM_TREE_H
#define NEAP_NN_BATCH_SUM_TREE_H

#include <stddef.h>

/* Parts that wait for their siblings, at most: one a power of two, below 2^31 leaves. */
enum { NEAP__SUM_PARTS = 32 };

struct neap__sum_tree {
	int parts;
	struct {
		double *row; /* [count], or NULL: all zero */
		int first, leaves;
	} part[NEAP__SUM_PARTS];
};

/*
 * Adds the sum of leaves [first, first + leaves), which is a leaf or a node, and follows the part
 * before. Rows are borrowed and changed: sums are made in the row of the part on the left.
 */
void neap__sum_tree_add(
	struct neap__sum_tree *tree, double *row, int first, int leaves, size_t count);
/* Adds up what is left, and empties the tree: the sum of all, or NULL where that is zero. */
double *neap__sum_tree_end(struct neap__sum_tree *tree, size_t count);

/* Sums of single numbers: the tree and the numbers of its parts. Zero to begin with. */
struct neap__number_tree {
	struct neap__sum_tree tree;
	double number[NEAP__SUM_PARTS];
};
void neap__number_tree_add(struct neap__number_tree *tree, double number, int first, int leaves);
double neap__number_tree_end(struct neap__number_tree *tree);

#endif
