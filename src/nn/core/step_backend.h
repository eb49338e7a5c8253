/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_backend.h: what runs the steps of a net on a device (src/device). States, adjoints and tapes
 * then lie in memory that only `memory` and these functions may touch. Batches, losses, sums over
 * groups and updates stay with the net, which computes them from what the device fetches.
 */
#ifndef NEAP_NN_CORE_STEP_BACKEND_H
#define NEAP_NN_CORE_STEP_BACKEND_H

#include <neap/memory.h>

#include <stddef.h>
#include <stdint.h>

struct neap_net;

/*
 * Functions return 0 or a negative code. `self` is passed first. advance, record and backward
 * return once their work is queued, as callbacks of a model with a `fence` do (neap/sweep.h); the
 * others wait for what they copy.
 */
struct neap__step_backend {
	const struct neap_memory_ops *memory;
	int64_t record_steps; /* as in neap_step_ops */
	/*
	 * At the end of neap_net_begin: copies the batch, and the weights, to the device and clears
	 * its sums. Sets *tape_max to the bytes that one step's tape takes at most.
	 */
	int (*begin)(void *self, struct neap_net *net, size_t *tape_max);
	int (*fence)(void *self);
	int (*advance)(void *self, void *state, int64_t t0, int64_t t1, int first);
	int (*record)(void *self, void *state, int64_t t0, int64_t t1, int first, void *tape,
		size_t room, size_t *used, int64_t *t_done);
	int (*backward)(void *self, void *adjoint, int64_t t1, int64_t t0, const void *tape);
	/* Adds what first passes counted to the groups of the net: before the turn. */
	int (*fetch_counts)(void *self, struct neap_net *net);
	/* After the turn: copies the penalties on rates to the device. */
	int (*send_penalties)(void *self, struct neap_net *net);
	/*
	 * Copies the sums of gradients to the groups of the net (struct neap__grads), and back: for
	 * the end of the batch and for journals.
	 */
	int (*fetch_sums)(void *self, struct neap_net *net);
	int (*send_sums)(void *self, struct neap_net *net);
};

#endif
