/* SPDX-License-Identifier: Apache-2.0 */
/* precision_ops.h: the tables of what runs a group, one for each precision. */
#ifndef NEAP_NN_PRECISION_OPS_H
#define NEAP_NN_PRECISION_OPS_H

#include "nn/core/net_state.h"

extern const struct neap__precision_ops neap__precision_ops_float, neap__precision_ops_double;

#endif
