/* SPDX-License-Identifier: Apache-2.0 */
/* net.h: creates a net whose arrays are in memory that the caller provides (core/net_memory.h). */
#ifndef NEAP_NN_NET_H
#define NEAP_NN_NET_H

#include <neap/net.h>

struct neap__net_memory;

/* neap_net_create with an allocator other than the heap, which is borrowed until neap_net_free. */
int neap__net_create_in(struct neap_net **out, const struct neap_net_options *options,
	const struct neap__net_memory *memory);

/* About the weights that a specification asks for; makes no net. 0, NEAP_EUSAGE or -ENOMEM. */
int neap__net_weights(double *weights, const struct neap_net_options *options);

#endif
