/* SPDX-License-Identifier: Apache-2.0 */
/* spike_log.h: how a log lists the units of a layer that spiked in one step of one sample. */
#ifndef NEAP_NN_CORE_SPIKE_LOG_H
#define NEAP_NN_CORE_SPIKE_LOG_H

#include "nn/core/net_state.h"

/*
 * A list of a log: ascending units, the last one marked, or NEAP__LOG_NONE. Of a layer whose
 * units take all 16 bits: a count and the units.
 */
enum { NEAP__LOG_LAST = 0x8000, NEAP__LOG_NONE = 0xFFFF };

static inline int neap__log_marks(const struct neap__layer *layer)
{
	return layer->n < NEAP__LOG_LAST;
}

#endif
