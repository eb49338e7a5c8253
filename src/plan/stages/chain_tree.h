/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain_tree.h: how a chain of stages is taken apart: every split that the tables of chain_table.h
 * choose, as a tree. More stages than a table can hold are put into groups first, and parts of few
 * groups are put into smaller groups and solved anew where that saves time. Ours.
 */
#ifndef NEAP_PLAN_STAGES_CHAIN_TREE_H
#define NEAP_PLAN_STAGES_CHAIN_TREE_H

#include <neap/plan.h>

enum neap__chain_part {
	NEAP__CHAIN_LEAF,  /* recorded as a whole, unless taped, and reversed; or the loss */
	NEAP__CHAIN_SPLIT, /* x_j is kept, and the parts [j,end) and [i,j) are done */
	NEAP__CHAIN_FIRST, /* of a taped part: the stages [j,end) are reversed, then [i,j) is done
			    */
};

/* A part [i,end) of the chain, with x_i kept; end is steps + 1 where the loss is a part of it. */
struct neap__chain_node {
	int32_t i, end, j;
	int32_t from; /* stages [from,j) are recorded on the way to x_j; j: none */
	int32_t right, left;
	uint8_t kind, taped; /* taped: the tapes of its last group are there */
};

struct neap__chain_tree {
	struct neap__chain_node *nodes; /* the root is the first */
	int64_t count, room;
};

struct neap__chain_grouping {
	int64_t groups;	 /* 0: every stage is one, NEAP__CHAIN_TABLE_STAGES at most */
	int64_t again;	 /* parts of at most so many groups are put into new groups; 0: none */
	int64_t largest; /* of stage_groups.h */
};

/*
 * Makes the tree for `memory` bytes in all. 0, -ENOMEM, or NEAP_EINFEASIBLE where the groups do
 * not fit; free it in every case. Takes the memory of one table, and 32 bytes for each of at most
 * two nodes a stage.
 */
int neap__chain_tree_make(struct neap__chain_tree *tree, const struct neap_chain *chain,
	uint64_t memory, const struct neap__chain_grouping *how);
void neap__chain_tree_free(struct neap__chain_tree *tree);

#endif
