/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spike_lists.h: outputs of the last step, and the units inside the support there, between the
 * states of a group and its lists. Within a range of steps lists pass them on; between ranges the
 * state holds them, as bitmaps or numbers.
 */
#ifndef NEAP_NN_CORE_SPIKE_LISTS_H
#define NEAP_NN_CORE_SPIKE_LISTS_H

#include "nn/core/precision.h"

#define neap__group_load NEAP_R(neap__group_load)
#define neap__group_save NEAP_R(neap__group_save)

/* Fills in the lists of the step before t0, from the states. */
void neap__group_load(
	struct neap_net *net, struct neap__group *group, unsigned char *state, int64_t t0);
/* Writes the lists of step t1 - 1 into the states; samples that ended at t0 or before keep theirs.
 */
void neap__group_save(struct neap_net *net, struct neap__group *group, unsigned char *state,
	int64_t t0, int64_t t1);

#endif
