/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cells.h: the table of cells. X(name, readout): a cell lives in name.c, which
 * defines neap__name_float and neap__name_double (struct neap__cell_code).
 */
#ifndef NEAP_NN_CELLS_H
#define NEAP_NN_CELLS_H

#include "nn/inside.h"

#define NEAP__CELLS(X)                                                                             \
	X(lif, 0)                                                                                  \
	X(li, 1)

#define NEAP__X(cell, readout)                                                                     \
	extern const struct neap__cell_code neap__##cell##_float, neap__##cell##_double;
NEAP__CELLS(NEAP__X)
#undef NEAP__X

#endif
