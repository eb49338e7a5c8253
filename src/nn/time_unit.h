/* SPDX-License-Identifier: Apache-2.0 */
/*
 * time_unit.h: what a step of dt seconds does to numbers that are said for steps of `time_unit`
 * seconds (struct neap_net_options), so that a net does and learns the same at any dt.
 *
 * A tensor's unit is the number at dt that stands for 1 at steps of time_unit. With r(tau) = (1 -
 * decay at dt) / (1 - decay at time_unit), which is about dt/time_unit:
 *     lif, alif    a spike moves the membrane by W: unit 1; a bias is added every step: r(tau)
 *     cubalif      a spike feeds a current that is added every step: r(tau_syn); a bias: both
 *     adlif, li    (1 - decay)(W x + b): a spike counts 1/r(tau), a bias 1; so does seadlif
 *     others       know no time: 1
 * Outputs that are numbers of all units act at every step, as a bias does. The answer of readout
 * `sum` grows with the number of steps, so that units of `li` are dt/time_unit of this there.
 *
 * A surrogate is a chance to spike within a time_unit: a membrane is inside the support for more
 * steps where they are short. Its derivative counts dt/time_unit there, and never more than 1.
 */
#ifndef NEAP_NN_TIME_UNIT_H
#define NEAP_NN_TIME_UNIT_H

#include "nn/core/net_state.h"

/* Units of a layer's tensors: of weights of events, of weights of numbers, of the bias. */
struct neap__tensor_units {
	double events, numbers, bias;
};
struct neap__tensor_units neap__tensor_units(
	const struct neap_net *net, const struct neap__layer *layer);

/* r(tau), as above. 1 where no time_unit is said. */
double neap__unit_leak(const struct neap_net_options *options, double tau);

/* The factor of the surrogate's derivative. */
double neap__unit_slope(const struct neap_net *net, const struct neap__layer *layer);

/*
 * A penalty on spikes a millisecond, as the net's objective has it: on spikes a step. The same
 * where no time_unit is said.
 */
struct neap_rate_penalty neap__unit_penalty(
	const struct neap_net_options *options, const struct neap_rate_penalty *said);

#endif
