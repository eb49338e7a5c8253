/* SPDX-License-Identifier: Apache-2.0 */
/* net_steps.h: the step functions of a net for a sweep, and the costs of its steps. */
#ifndef NEAP_MEASURE_NET_STEPS_H
#define NEAP_MEASURE_NET_STEPS_H

#include <neap/net.h>
#include <neap/sweep.h>

/* The step functions and the sizes of the batch begun. `user` is the net. */
void neap__net_steps_fill(struct neap_step_ops *ops, const struct neap_net *net);

/* Costs of a step: seconds; bytes of tape, in the fullest range seen and on average. */
struct neap__costs {
	double advance, record, backward;
	double replay; /* with what logging takes beyond an advance; not measured: `record` */
	double tape, tape_mean;
	double log_mean; /* bytes a step */
	/* Not of neap__net_steps_measure: a copy of the state; a call besides its steps. */
	double slot_write, slot_read;
	double call;
};

/*
 * Times the first steps (at most `steps`) of a batch: forward without tape, with
 * tape, backward, and logged and replayed. Begins and ends the batch; leaves weights alone and
 * gradients undefined. Maps at most `memory` bytes, and at most 8 MiB beyond what one step takes.
 * 0, or NEAP_EINFEASIBLE where `memory` does not hold a step, with costs of 1, 1 and 2 seconds and
 * the largest tape, or another negative code.
 */
int neap__net_steps_measure(struct neap__costs *costs, struct neap_net *net,
	const struct neap_batch *batch, const struct neap_objective *objective, int64_t steps,
	uint64_t memory);

/*
 * Returns the seconds by which the thread that reads windows delays a step of the batch begun, from
 * the windows read so far; 0 if the batch is in memory or the net leaves processors unused. If the
 * net uses all P processors, P - 1 compute during the time r in which a window is read (pool.h).
 * With g groups of samples, the step then loses
 *
 *     r (1 - ceil(g / P) / ceil(g / (P - 1)))      or r if P = 1
 *
 * and r if it has more threads than processors.
 */
double neap__reading_cost(const struct neap_net *net, const struct neap_batch *batch);

/* A step without a tape is part of a step with one: where it was measured to take longer, something
 * else disturbed it. */
void neap__costs_in_order(struct neap__costs *costs);

/* Adds the seconds that reading its inputs takes to each step that needs them. */
void neap__costs_add_reading(struct neap__costs *costs, double seconds);

#endif
