/* SPDX-License-Identifier: Apache-2.0 */
/* tensors.h: the parameter tensors of a net. */
#ifndef NEAP_NN_TENSORS_H
#define NEAP_NN_TENSORS_H

struct neap_net;

/* Makes, names and fills in all tensors. 0, NEAP_EOVERFLOW or -ENOMEM. */
int neap__net_tensors(struct neap_net *net);

#endif
