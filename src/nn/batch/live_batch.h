/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_batch.h: a batch of one sample of spikes, forward only, whose steps come while it runs and
 * whose end nobody knows. What a step computes is what it computes in a batch that is there whole.
 */
#ifndef NEAP_NN_BATCH_LIVE_BATCH_H
#define NEAP_NN_BATCH_LIVE_BATCH_H

#include <neap/net.h>

/* Stays where it is, while the batch is begun. */
struct neap__live_batch {
	struct neap_batch batch;
	struct neap_sequence sample, events; /* as the net's batch has it; of the steps that came */
	uint32_t nothing[1];
};

/* Begins the batch in a net. 0, or NEAP_EUSAGE where the net takes numbers. */
int neap__live_batch_begin(struct neap__live_batch *live, struct neap_net *net);
/*
 * Makes steps [from, to), whose spikes are unit[start[t - from] .. start[t - from + 1]) in step t,
 * ascending, each once, below the net's inputs. The state is as in neap_net_advance.
 */
int neap__live_batch_advance(struct neap__live_batch *live, struct neap_net *net, void *state,
	int64_t from, int64_t to, const uint32_t *start, const uint16_t *unit);
/* Ends the sample after so many steps: neap_net_turn may follow, then neap_net_end. */
void neap__live_batch_close(struct neap__live_batch *live, struct neap_net *net, int64_t steps);

#endif
