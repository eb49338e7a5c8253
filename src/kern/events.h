/* SPDX-License-Identifier: Apache-2.0 */
/* events.h: the spikes that arrive in one step, in either precision. */
#ifndef NEAP_KERN_EVENTS_H
#define NEAP_KERN_EVENTS_H

#include <stdint.h>

struct neap__events {
	const uint16_t *id; /* ascending */
	int count;
};

#endif
