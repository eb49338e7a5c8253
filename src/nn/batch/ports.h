/* SPDX-License-Identifier: Apache-2.0 */
/* ports.h: arrays of a caller in place of data set, readout and loss (neap/ports.h). */
#ifndef NEAP_NN_BATCH_PORTS_H
#define NEAP_NN_BATCH_PORTS_H

#include <neap/ports.h>

/* Checks a batch that is about to begin with the ports of the net. */
int neap__ports_check(const struct neap_net *net, const struct neap_batch *batch);

#endif
