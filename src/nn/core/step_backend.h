/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_backend.h: what runs the steps of a net on a device (src/device). States, adjoints and tapes
 * then lie in memory that only `memory` and these functions may touch. Batches and losses stay with
 * the net, which computes them from what the device fetches; so do sums over groups and updates, if
 * the net does not keep its parameters on the device.
 */
#ifndef NEAP_NN_CORE_STEP_BACKEND_H
#define NEAP_NN_CORE_STEP_BACKEND_H

#include <neap/memory.h>

#include <stddef.h>
#include <stdint.h>

/* The rules of optimizers (src/train/optimizer.h) that devices have. */
enum neap__update_rule { NEAP__UPDATE_ADAM, NEAP__UPDATE_ADAMW, NEAP__UPDATE_SGD };

/* An update of all parameters that learn. */
struct neap__update {
	enum neap__update_rule rule;
	double factor; /* multiplies the gradients first */
	double rate, weight_decay, momentum, beta1, beta2, epsilon;
	double first, second; /* bias corrections of the moments */
};

struct neap_net;

/*
 * Functions return 0 or a negative code. `self` is passed first. advance, record, the two with logs
 * and backward return once their work is queued, as callbacks of a model with a `fence` do
 * (neap/sweep.h); the others wait for what they copy.
 */
struct neap__step_backend {
	const struct neap_memory_ops *memory;
	int64_t record_steps; /* as in neap_step_ops */
	/*
	 * At the end of neap_net_begin: copies the batch, and the weights, to the device and clears
	 * its sums. Sets *tape_max to the bytes that one step's tape takes at most, and *log_bytes
	 * to those that each step's log takes; 0: the net has no log.
	 */
	int (*begin)(void *self, struct neap_net *net, size_t *tape_max, size_t *log_bytes);
	int (*fence)(void *self);
	int (*advance)(void *self, void *state, int64_t t0, int64_t t1, int first);
	int (*record)(void *self, void *state, int64_t t0, int64_t t1, int first, void *tape,
		size_t room, size_t *used, int64_t *t_done);
	/* neap_net_advance_log and neap_net_replay of a net that has a log. */
	int (*advance_log)(void *self, void *state, int64_t t0, int64_t t1, int first, void *log,
		size_t room, size_t *used, int64_t *t_done);
	int (*record_log)(void *self, void *state, int64_t t0, int64_t t1, const void *log,
		int64_t log_t0, void *tape, size_t room, size_t *used, int64_t *t_done);
	int (*backward)(void *self, void *adjoint, int64_t t1, int64_t t0, const void *tape);
	/*
	 * For the turn, which the host computes: copies the readout's part of a state to `copy`,
	 * which has the layout of the state, and that of an adjoint from `copy` to `adjoint`, all
	 * else of which becomes zero.
	 */
	int (*fetch_readout)(void *self, struct neap_net *net, const void *state, void *copy);
	int (*send_adjoint)(void *self, struct neap_net *net, void *adjoint, void *copy);
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
	/*
	 * From now on the net's parameters are updated on the device: makes room for gradients and
	 * `moments` numbers of each parameter, which are 0, and copies the weights there.
	 */
	int (*keep)(void *self, struct neap_net *net, int moments);
	int (*fetch_weights)(void *self, struct neap_net *net);
	int (*send_weights)(void *self, struct neap_net *net);
	/* At the end of a batch: adds the sums of gradients of all groups. */
	int (*add_groups)(void *self, struct neap_net *net);
	/* *square: sums of squares of these gradients, in blocks of NEAP__SLICE_BLOCK numbers. */
	int (*fetch_squares)(void *self, struct neap_net *net, const double **square);
	/* *finite becomes 0 if a weight is not finite afterwards. */
	int (*update)(
		void *self, struct neap_net *net, const struct neap__update *update, int *finite);
	/* From now on work runs on a stream of the caller (a CUstream), after all that was queued.
	 */
	int (*stream)(void *self, void *stream);
	/* Copies a moment of a tensor's numbers to the host, and back. */
	int (*fetch_moment)(void *self, struct neap_net *net, int tensor, int moment, double *to);
	int (*send_moment)(
		void *self, struct neap_net *net, int tensor, int moment, const double *from);
};

#endif
