/* SPDX-License-Identifier: Apache-2.0 */
/* freeze.h: marks the tensors that do not learn, and what need not go backward because of them. */
#ifndef NEAP_NN_FREEZE_H
#define NEAP_NN_FREEZE_H

struct neap_net;

/*
 * Marks the tensors that options.freeze names, and sets from which layer on a net learns and has
 * tapes. Comes after the tensors are made, and before anything that asks for a log. 0, or
 * NEAP_EUSAGE where a name is none of the net's, or nothing is left to learn.
 */
int neap__net_freeze(struct neap_net *net);

#endif
