/* SPDX-License-Identifier: Apache-2.0 */
/* tape_probe.h: step functions of a net that also note how large the tapes are that they write. */
#ifndef NEAP_MEASURE_TAPE_PROBE_H
#define NEAP_MEASURE_TAPE_PROBE_H

#include <neap/net.h>
#include "measure/tape_sizes.h"

/* The `user` of these step functions. */
struct neap__tape_probe {
	struct neap_net *net;
	struct neap__tape_sizes *tapes; /* NULL: sizes are not noted */
};

/* Fills in these step functions, which write no logs. */
void neap__tape_probe_fill(struct neap_step_ops *ops);

#endif
