/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spec.h: the specification of a net, NAME[:SIZE[r]][:KEY=VALUE]..., a part a layer, separated by
 * commas.
 */
#ifndef NEAP_NN_SPEC_H
#define NEAP_NN_SPEC_H

struct neap_net;

/*
 * Makes net->layers from net->options: keys of a layer first, then the options, then defaults.
 * Fills in net->spec with every key said. 0, NEAP_EUSAGE or -ENOMEM.
 */
int neap__net_parse(struct neap_net *net);

#endif
