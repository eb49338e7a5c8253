/* SPDX-License-Identifier: Apache-2.0 */
/* net.h: makes a net whose arrays lie in a memory of the caller's (core/net_memory.h). */
#ifndef NEAP_NN_NET_H
#define NEAP_NN_NET_H

#include <neap/net.h>

struct neap__net_memory;

/* As neap_net_create, which takes the heap. The memory is borrowed until neap_net_free. */
int neap__net_create_in(struct neap_net **out, const struct neap_net_options *options,
	const struct neap__net_memory *memory);

#endif
