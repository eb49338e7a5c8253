/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whole_steps.h: a step of a layer by the kernel `leak_step`, which makes the products, the leak
 * and the threshold of one sample at once. It needs dense rows of weights and lists of spikes from
 * all sources, and samples that share few rows: else products are made for all samples first, so
 * that a row that has been read serves several of them. Both ways give the same bits.
 */
#ifndef NEAP_NN_CORE_WHOLE_STEPS_H
#define NEAP_NN_CORE_WHOLE_STEPS_H

#include "nn/core/precision.h"

#define neap__whole_begin NEAP_R(neap__whole_begin)
#define neap__whole_step NEAP_R(neap__whole_step)

/*
 * Whether the layer that group->at points to makes its step so, in `alive` samples; tapes: with
 * tapes. Fills in what the samples share.
 */
int neap__whole_begin(const struct neap_net *net, const struct neap__group *group, int alive,
	int tapes, struct neap__leak_step *step);
/* The step of one sample; returns the bytes of the tape. */
size_t neap__whole_step(
	struct neap__at *at, const struct neap__leak_step *step, unsigned char *tape);

#endif
