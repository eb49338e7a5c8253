/* SPDX-License-Identifier: Apache-2.0 */
/* cell_blocks.h: runs the instructions of a cell file over a block of units. */
#ifndef NEAP_NN_CELLFILE_CELL_BLOCKS_H
#define NEAP_NN_CELLFILE_CELL_BLOCKS_H

#include "nn/cellfile/cell_program.h"
#include "nn/core/precision.h"

#define neap__cell_block_run NEAP_R(neap__cell_block_run)

/* Rows of a block: where its first unit is. */
struct neap__cell_block {
	const struct neap__at *at;
	int count; /* units, at most NEAP__CELL_BLOCK */
	const real *from[NEAP__CELL_FROM];
	real *to[NEAP__CELL_TO];
};

void neap__cell_block_run(const struct neap__cell_list *list, const struct neap__cell_block *block);

#endif
