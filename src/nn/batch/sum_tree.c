/* SPDX-License-Identifier: Apache-2.0 */
/* sum_tree.c: a stack of parts, each of fewer leaves than the one before (sum_tree.h). */
#include "nn/batch/sum_tree.h"

/* Adds the last part to the one before it. */
static void merge(struct neap__sum_tree *tree, size_t count)
{
	const double *right = tree->part[tree->parts - 1].row;
	double *left = tree->part[tree->parts - 2].row;

	if (!left)
		tree->part[tree->parts - 2].row = tree->part[tree->parts - 1].row;
	else if (right)
		for (size_t i = 0; i < count; i++)
			left[i] += right[i];
	tree->part[tree->parts - 2].leaves += tree->part[tree->parts - 1].leaves;
	tree->parts--;
}

/* Whether the last two parts are the halves of a node that is not cut. */
static int are_siblings(const struct neap__sum_tree *tree)
{
	if (tree->parts < 2)
		return 0;
	int leaves = tree->part[tree->parts - 1].leaves;
	return tree->part[tree->parts - 2].leaves == leaves &&
	       tree->part[tree->parts - 2].first / leaves % 2 == 0;
}

void neap__sum_tree_add(
	struct neap__sum_tree *tree, double *row, int first, int leaves, size_t count)
{
	tree->part[tree->parts].row = row;
	tree->part[tree->parts].first = first;
	tree->part[tree->parts].leaves = leaves;
	tree->parts++;
	while (are_siblings(tree))
		merge(tree, count);
}

double *neap__sum_tree_end(struct neap__sum_tree *tree, size_t count)
{
	while (tree->parts > 1)
		merge(tree, count);
	double *row = tree->parts ? tree->part[0].row : NULL;
	tree->parts = 0;
	return row;
}

void neap__number_tree_add(struct neap__number_tree *tree, double number, int first, int leaves)
{
	/* A part's number lies at the part's place: a merge leaves the sum at the place of the
	 * left. */
	double *at = &tree->number[tree->tree.parts];
	*at = number;
	neap__sum_tree_add(&tree->tree, at, first, leaves, 1);
}

double neap__number_tree_end(struct neap__number_tree *tree)
{
	const double *sum = neap__sum_tree_end(&tree->tree, 1);
	return sum ? *sum : 0;
}
