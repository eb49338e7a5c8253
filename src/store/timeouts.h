/* SPDX-License-Identifier: Apache-2.0 */
/* timeouts.h: waits for a mover that end, and requests that are abandoned. */
#ifndef NEAP_STORE_TIMEOUTS_H
#define NEAP_STORE_TIMEOUTS_H

#include "store/mover_state.h"

/* With the lock. Begins a wait for something that was asked for at `since`. */
void neap__timeout_begin(
	const struct neap__mover *mover, struct neap__timeout *timeout, double since);
/*
 * With the lock. Waits for the condition `done` for a while, `most` seconds at most. 0 when the
 * time without a byte is over.
 */
int neap__timeout_wait(struct neap__mover *mover, struct neap__timeout *timeout, double most);

/* With the lock: gives up a request that is not DONE. Its memory is its owner's on return. */
void neap__mover_abandon(struct neap__mover *mover, struct neap__request *request);
/* The I/O thread calls these around what it does to a request's memory. 0: it was abandoned. */
int neap__mover_use_memory(struct neap__mover *mover, struct neap__request *request);
void neap__mover_release_memory(struct neap__mover *mover, struct neap__request *request);
/* The I/O thread: a piece was done. */
void neap__mover_moved(struct neap__mover *mover);
/* The I/O thread: seconds to wait for a piece before it looks for new requests. */
double neap__mover_wait_limit(struct neap__mover *mover);

#endif
