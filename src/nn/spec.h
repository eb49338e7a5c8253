/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spec.h: the specification of a net, NAME[:SIZE[r]][:KEY=VALUE]..., a part a layer, separated by
 * commas.
 */
#ifndef NEAP_NN_SPEC_H
#define NEAP_NN_SPEC_H

#include <neap/net.h>

/*
 * Makes net->layers from net->options: keys of a layer first, then the options, then defaults.
 * Fills in net->spec with every key said. 0, NEAP_EUSAGE or -ENOMEM.
 */
int neap__net_parse(struct neap_net *net);

/*
 * The specification if none is given. Gated cells learn sequences of numbers and texts better than
 * spiking ones, whose inputs are spikes (docs/learning.md has measurements); options that only
 * spiking cells have ask for these.
 */
const char *neap__automatic_spec(const struct neap_net_options *o, int numbers);

/* As tau_out: NEAP_TAU_OUT_AUTO of a net whose answers are numbers. */
#define NEAP__TAU_OUT_NUMBERS (-2.0)

/*
 * The readout of NEAP_READ_AUTO. Spiking layers: the sum, whose larger scores learn faster than the
 * mean's, but the mean of answers that are numbers, since these do not grow with the length of a
 * sample. rnn, lstm and gru: the last step, which has seen all inputs, or the mean of spikes, which
 * often end before the sample does. egru: the mean, since few of its outputs differ from 0 in a
 * step. docs/learning.md has measurements.
 */
enum neap_readout neap__automatic_readout(const struct neap_net_options *o, int of_numbers);

struct neap__layer;

/* The rule of NEAP_INIT_AUTO: that of PyTorch where PyTorch has the layer. */
enum neap_init neap__automatic_init(const struct neap_net *net, const struct neap__layer *layer);

/*
 * NEAP_TAU_OUT_AUTO. Smoothing turns spikes into numbers. Numbers need none, and smoothed answers
 * to steps are those to earlier steps (docs/learning.md has measurements).
 */
double neap__automatic_tau_out(const struct neap_net *net, const struct neap__layer *layer);

#endif
