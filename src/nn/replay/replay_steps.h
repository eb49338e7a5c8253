/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_steps.h: tapes of a group made again from a state and a log (spike_log.h), without its
 * spikes being computed again. The tapes are those of recording, bit by bit.
 *
 * Where all spikes are known, the currents of a layer wait for nothing, and its membranes for
 * nothing but their own past: strips of units go over up to NEAP__REPLAY_STEPS steps at a time
 * (kern/membranes.c), so that a strip's weights are read once for many steps and
 * samples. Large layers add their rows in parts, the sums so far kept near. Where sparse tapes need
 * no more, only the membranes inside the support are kept; else all membranes, as they are before
 * the reset, and from there each step goes the way of recording.
 */
#ifndef NEAP_NN_REPLAY_REPLAY_STEPS_H
#define NEAP_NN_REPLAY_REPLAY_STEPS_H

#include "nn/core/precision.h"

#define neap__replay_group NEAP_R(neap__replay_group)
#define neap__pack_net NEAP_R(neap__pack_net)

/* Rows of struct neap__precision_ops. */
size_t neap__replay_group(struct neap_net *net, struct neap__group *group, unsigned char *state,
	int64_t t0, int64_t t1, const unsigned char *const *logs, unsigned char *tape);
void neap__pack_net(struct neap_net *net);

#endif
