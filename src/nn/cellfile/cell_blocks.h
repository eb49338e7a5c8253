/* SPDX-License-Identifier: Apache-2.0 */
/* cell_blocks.h: runs a part of a cell file's program over a block of units. */
#ifndef NEAP_NN_CELLFILE_CELL_BLOCKS_H
#define NEAP_NN_CELLFILE_CELL_BLOCKS_H

#include "nn/cellfile/cell_program.h"
#include "nn/core/precision.h"

#define neap__cell_block_run NEAP_R(neap__cell_block_run)

/* Rows of a block: where its first unit is. */
struct neap__cell_block {
	const struct neap__at *at;
	int count; /* units, at most those of neap__cell_block_units */
	const real *from[NEAP__CELL_FROM];
	real *to[NEAP__CELL_TO];
};

/* The most units that a block of a program has: NEAP__CELL_BLOCK or NEAP__CELL_WIDE. */
static inline int neap__cell_block_units(const struct neap__cell_program *program)
{
	return program->compiled[NEAP__CELL_STEP] ? NEAP__CELL_WIDE : NEAP__CELL_BLOCK;
}

/* Runs a part of the program of the layer of block->at. */
void neap__cell_block_run(enum neap__cell_part part, const struct neap__cell_block *block);

#endif
