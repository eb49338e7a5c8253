/* SPDX-License-Identifier: Apache-2.0 */
/* copies.h: copies of the live state. */
#ifndef NEAP_SWEEP_STEPS_COPIES_H
#define NEAP_SWEEP_STEPS_COPIES_H

#include "sweep/sweep_state.h"

/* Copies the live state to `to`. */
int neap__copy_save(struct neap_sweep *s, void *to);
/* Makes `from` the live state, which is at t then. NULL: all zero bytes, as x_0 may be. */
int neap__copy_load(struct neap_sweep *s, const void *from, int64_t t);

#endif
