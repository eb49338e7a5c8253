/* SPDX-License-Identifier: Apache-2.0 */
/* layout.h: where things lie in a sample's state, adjoint and tape. */
#ifndef NEAP_NN_LAYOUT_H
#define NEAP_NN_LAYOUT_H

struct neap_net;

/* Fills in what layers derive from their keys, offsets, and sizes of a sample. 0, or -ENOMEM. */
int neap__net_layout(struct neap_net *net);

#endif
