/* SPDX-License-Identifier: Apache-2.0 */
/* step_view.h: what a net has after a step of the batch begun, for those who look, and
 * change no step. */
#ifndef NEAP_NN_STEP_VIEW_H
#define NEAP_NN_STEP_VIEW_H

#include <stdint.h>

struct neap_net;

/* The outputs [classes] of the readout of a sample of the batch, from the batch's state. */
void neap__step_outputs(double *outputs, const struct neap_net *net, const void *state, int sample);

/* The same of the answer [classes] that the readout has after so many steps of the sample. */
void neap__answer_so_far(
	double *answer, const struct neap_net *net, const void *state, int sample, int64_t steps);
/* Lets that answer begin anew with the next step: it is then about the steps from there on. */
void neap__answer_restart(const struct neap_net *net, void *state, int sample);

#endif
