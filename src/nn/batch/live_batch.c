/* SPDX-License-Identifier: Apache-2.0 */
/* live_batch.c: a sample of no steps that becomes one without end (live_batch.h). */
#include "nn/batch/live_batch.h"
#include "nn/core/net_state.h"
#include "nn/core/on_device.h"
#include "base/fail.h"

int neap__live_batch_begin(struct neap__live_batch *live, struct neap_net *net)
{
	NEAP_TRY(neap__on_device_refuse(net, "input that is still being made"));
	*live = (struct neap__live_batch){.sample = {.start = live->nothing, .label = -1}};
	live->batch = (struct neap_batch){
		.size = 1, .inputs = net->options.inputs, .sequences = &live->sample};
	NEAP_TRY(neap_net_begin(net, &live->batch, NULL));
	live->sample.length = live->batch.steps = INT64_MAX;
	return 0;
}

int neap__live_batch_advance(struct neap__live_batch *live, struct neap_net *net, void *state,
	int64_t from, int64_t to, const uint32_t *start, const uint16_t *unit)
{
	live->events = live->sample;
	live->events.start = start;
	live->events.unit = unit;
	net->events = &live->events;
	net->events_from = from;
	net->events_to = to;
	return neap_net_advance(net, state, from, to, 1);
}

void neap__live_batch_close(struct neap__live_batch *live, struct neap_net *net, int64_t steps)
{
	live->sample.length = live->batch.steps = steps;
	net->sample_steps = (double)steps;
}
