/* SPDX-License-Identifier: Apache-2.0 */
/* tape_probe.h: a net's step functions, with a look at the tapes that they write. */
#ifndef NEAP_MEASURE_TAPE_PROBE_H
#define NEAP_MEASURE_TAPE_PROBE_H

#include <neap/net.h>
#include "measure/tape_sizes.h"

/* The `user` of step functions that are watched. */
struct neap__tape_probe {
	struct neap_net *net;
	struct neap__tape_sizes *tapes; /* NULL: not looked at */
};

/* The net's step functions become watched ones, without logs. */
void neap__tape_sizes_watch(struct neap_step_ops *ops);

#endif
