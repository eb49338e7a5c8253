/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spike_log.h: the log of a group. The log of a range of steps is a table of offsets [steps], then
 * the steps. A step holds the samples that have not ended, a sample a list of each layer whose
 * spikes others than the readout see. A list is the units that spiked, ascending, the last one
 * marked by its highest bit; or NEAP__LOG_NONE. Where the numbers of a layer's units take all 16
 * bits, a list is a count and the units.
 */
#ifndef NEAP_NN_CORE_SPIKE_LOG_H
#define NEAP_NN_CORE_SPIKE_LOG_H

#include "nn/core/net_state.h"

enum { NEAP__LOG_LAST = 0x8000, NEAP__LOG_NONE = 0xFFFF };

/* Whether the lists of a layer mark their last unit. */
static inline int neap__log_marks(const struct neap__layer *layer)
{
	return layer->n < NEAP__LOG_LAST;
}

#endif
