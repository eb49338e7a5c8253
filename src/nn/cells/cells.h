/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cells.h: the table of cells. X(name, traits): a cell lives in name.c, which
 * defines neap__name_float and neap__name_double (struct neap__cell_code).
 */
#ifndef NEAP_NN_CELLS_CELLS_H
#define NEAP_NN_CELLS_CELLS_H

#include "nn/core/net_state.h"

#define NEAP__CELLS(X)                                                                             \
	X(lif, NEAP__LIF | NEAP__RESETS)                                                           \
	X(cubalif, NEAP__LIF | NEAP__SYNAPSE)                                                      \
	X(alif, NEAP__LIF | NEAP__ADAPTS | NEAP__RAISES)                                           \
	X(adlif, NEAP__LIF | NEAP__ADAPTS | NEAP__COUPLES)                                         \
	X(rnn, NEAP__GATED | NEAP__SQUASHES)                                                       \
	X(lstm, NEAP__GATED)                                                                       \
	X(gru, NEAP__GATED)                                                                        \
	X(egru, NEAP__GATED | NEAP__SPIKES)                                                        \
	X(li, NEAP__READOUT | NEAP__LEAKS)

#define NEAP__GATED (NEAP__HIDDEN | NEAP__RECURS)
#define NEAP__LIF (NEAP__HIDDEN | NEAP__LEAKS | NEAP__SPIKES | NEAP__DETACHES)

#define NEAP__X(cell, traits)                                                                      \
	extern const struct neap__cell_code neap__##cell##_float, neap__##cell##_double;
NEAP__CELLS(NEAP__X)
#undef NEAP__X

#endif
