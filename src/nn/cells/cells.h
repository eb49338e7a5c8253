/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cells.h: the table of cells, X(name, traits). A cell lives in name.c, which defines
 * neap__name_float and neap__name_double (struct neap__cell_code). A cell whose keys the table of
 * keys (spec.c) has already needs its file, its row here and its line in src/nn/meson.build.
 */
#ifndef NEAP_NN_CELLS_CELLS_H
#define NEAP_NN_CELLS_CELLS_H

#include "nn/core/cell.h"

#define NEAP__CELLS(X)                                                                             \
	X(lif, NEAP__LIF | NEAP__HAS_RESETS)                                                       \
	X(cubalif, NEAP__LIF | NEAP__HAS_SYNAPSE | NEAP__HAS_RESET_KEY)                            \
	X(alif, NEAP__LIF | NEAP__HAS_ADAPTATION | NEAP__HAS_RAISED_THRESHOLD)                     \
	X(adlif, NEAP__LIF | NEAP__HAS_ADAPTATION | NEAP__HAS_COUPLING)                            \
	X(integrator, NEAP__HIDDEN | NEAP__HAS_LEAK)                                               \
	X(seadlif, NEAP__LIF | NEAP__HAS_ADAPTATION | NEAP__HAS_SCALED_COUPLING)                   \
	X(brf, NEAP__SPIKES | NEAP__OSCILLATES)                                                    \
	X(rnn, NEAP__GATED | NEAP__HAS_ACTIVATION)                                                 \
	X(lstm, NEAP__GATED)                                                                       \
	X(gru, NEAP__GATED)                                                                        \
	X(egru, NEAP__GATED | NEAP__HAS_THRESHOLD)                                                 \
	X(li, NEAP__READOUT | NEAP__HAS_LEAK)

#define NEAP__GATED (NEAP__HIDDEN | NEAP__IS_RECURRENT)
#define NEAP__SPIKES (NEAP__HIDDEN | NEAP__HAS_THRESHOLD | NEAP__HAS_DETACH | NEAP__HAS_FILTER)
#define NEAP__LIF (NEAP__SPIKES | NEAP__HAS_LEAK)

#define NEAP__X(cell, traits)                                                                      \
	extern const struct neap__cell_code neap__##cell##_float, neap__##cell##_double;
NEAP__CELLS(NEAP__X)
#undef NEAP__X

/* The cell of a name of so many characters; NULL where there is none. */
const struct neap__cell *neap__cell_find(const char *name, size_t length);
/* NEAP_EUSAGE: the line about a name that is none, with what was probably meant. */
int neap__cell_unknown(const char *name, int length);

/*
 * Fills in the leaks of a layer, as the traits of its cell require: kind, name and initial value,
 * from checked keys. NEAP_EUSAGE: a time constant is too short for the time step.
 */
int neap__layer_leaks(const struct neap_net *net, struct neap__layer *layer);

#endif
