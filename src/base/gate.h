/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate.h: lets one call at a time into an object, and refuses the others. A call that a callback
 * makes of the object in use, or another thread, gets NEAP_EUSAGE in place of a mutex's wait, which
 * would last for ever in a callback.
 */
#ifndef NEAP_BASE_GATE_H
#define NEAP_BASE_GATE_H

#include <stdatomic.h>

struct neap__gate {
	atomic_int in_use; /* all zero: nobody is in */
};

/* 1 where the caller is in; 0 where another call is. */
static inline int neap__gate_try(struct neap__gate *gate)
{
	int free = 0;
	return atomic_compare_exchange_strong_explicit(
		&gate->in_use, &free, 1, memory_order_acquire, memory_order_relaxed);
}

static inline void neap__gate_leave(struct neap__gate *gate)
{
	atomic_store_explicit(&gate->in_use, 0, memory_order_release);
}

/* 0, or NEAP_EUSAGE with a line that names the function and what it was called for ("sweep"). */
int neap__gate_enter(struct neap__gate *gate, const char *function, const char *what);

#endif
