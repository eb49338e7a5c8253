/* SPDX-License-Identifier: Apache-2.0 */
/* reading_cost.h: what reading inputs in windows adds to the time of a step. */
#ifndef NEAP_MEASURE_READING_COST_H
#define NEAP_MEASURE_READING_COST_H

#include "measure/net_steps.h"

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

/* Adds the seconds that reading its inputs takes to each step that needs them. */
void neap__costs_add_reading(struct neap__costs *costs, double seconds);

#endif
