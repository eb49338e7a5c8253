/* SPDX-License-Identifier: Apache-2.0 */
/* step_view.c: numbers of a batch's state (step_view.h). */
#include "nn/step_view.h"
#include "nn/core/cell.h"

/* Where the state of a sample lies. */
static const unsigned char *state_of(const struct neap_net *net, const void *state, int sample)
{
	const struct neap__group *group = net->groups;

	while (sample >= group->first + group->size)
		group++;
	return (const unsigned char *)state + group->state_at +
	       (size_t)(sample - group->first) * net->sample_state;
}

void neap__step_outputs(double *outputs, const struct neap_net *net, const void *state, int sample)
{
	const struct neap__layer *readout = &net->layers[net->nlayers - 1];
	const void *o = state_of(net, state, sample) + readout->state_at;

	for (int c = 0; c < readout->n; c++)
		outputs[c] = net->options.precision == NEAP_DOUBLE ? ((const double *)o)[c]
								   : (double)((const float *)o)[c];
}

void neap__answer_so_far(
	double *answer, const struct neap_net *net, const void *state, int sample, int64_t steps)
{
	const struct neap__layer *readout = &net->layers[net->nlayers - 1];

	neap__layer_code(net, readout)->answer(net, steps, state_of(net, state, sample), answer);
}

void neap__answer_restart(const struct neap_net *net, void *state, int sample)
{
	const struct neap__layer *readout = &net->layers[net->nlayers - 1];
	size_t at = (size_t)(state_of(net, state, sample) - (const unsigned char *)state);

	neap__layer_code(net, readout)->restart(net, (unsigned char *)state + at);
}
