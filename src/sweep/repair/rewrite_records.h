/* SPDX-License-Identifier: Apache-2.0 */
/* rewrite_records.h: writes records that a tier lost again, where they were. */
#ifndef NEAP_SWEEP_REPAIR_REWRITE_RECORDS_H
#define NEAP_SWEEP_REPAIR_REWRITE_RECORDS_H

#include "sweep/sweep_state.h"

/* Moves the live state to t; lost records of the states on the way are written again. */
int neap__rewrite_to(struct neap_sweep *s, int64_t t);

#endif
