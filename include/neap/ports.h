/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ports.h: the hidden layers of a network as a function of arrays, for layers of other frameworks:
 * inputs and outputs of all steps, and their gradients, are arrays of the caller. The readout is
 * not computed, and there is no loss.
 *
 *     struct neap_ports p = {.size = sizeof p, .samples = B, .steps = T, .inputs = x, .outputs =
 * y}; neap_net_set_ports(net, &p); neap_net_begin(net, &batch, NULL);               samples of T
 * steps; values may be NULL neap_net_record(net, state, 0, T, 1, tape, ...); writes y
 *     p.output_grads = dy;
 *     p.input_grads = dx;
 *     neap_net_set_ports(net, &p);
 *     neap_net_state_adjoint(net, adjoint, NULL);
 *     neap_net_backward(net, adjoint, T, 0, tape);     reads dy, writes dx
 *     neap_net_end(net);                               gradients of the weights are complete
 */
#ifndef NEAP_PORTS_H
#define NEAP_PORTS_H

#include <neap/net.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The first step of a chain that continues from a given state: a whole gradient block. */
#define NEAP_PORTS_CONTINUED 64

/*
 * Arrays of a batch in the precision of the network, dense and in C order; borrowed until they are
 * replaced. n is the number of units of the last hidden layer.
 */
struct neap_ports {
	uint32_t size; /* sizeof(struct neap_ports) */
	int samples;   /* B: samples of the batch */
	int64_t steps; /* T: steps in the arrays */
	/*
	 * Number of the step that row 0 of the arrays belongs to. 0: the chain starts with the
	 * state of all zero bytes. NEAP_PORTS_CONTINUED: the state before that step is given
	 * (neap_net_state_put), and first_outputs; every sample then has first + T steps, of which
	 * the first ones are never computed.
	 */
	int64_t first;
	const void *first_outputs; /* [B][n] outputs of the step before `first`; NULL: all 0 */
	/* [T][B][inputs] if the network takes numbers; NULL: the inputs are in the batch. */
	const void *inputs;
	void *outputs; /* [T][B][n], written when a step runs for the first time; or NULL */
	const void *output_grads; /* [T][B][n], read by backward; NULL: all 0 */
	/* [T][B][inputs], written by backward: the gradient of all inputs, spikes included; or
	 * NULL. */
	void *input_grads;
	/*
	 * If the network is on a device, arrays are addresses of its memory, and from the call of
	 * neap_net_set_ports on, all work of the device runs on this stream (a CUstream; NULL: the
	 * default stream), in the order of the calls. The stream must exist until another one is
	 * set, or the last network on the device is freed. Inputs are not checked there.
	 */
	void *stream;
};

/*
 * Sets the arrays of the next batches; NULL: none, the network has its readout as before. Called
 * before neap_net_begin, and between calls of the step functions to replace arrays. Sequences of
 * the batch must have first + steps steps each; their `values` are not read if `inputs` is given.
 * In the calls of step functions t counts from `first`. neap_net_turn must not be called; gradients
 * of the readout are 0. NEAP_EUSAGE: the network has no hidden layer, or has a convolution or
 * pooling; samples, steps or first change in a batch.
 */
NEAP_API int neap_net_set_ports(struct neap_net *net, const struct neap_ports *ports);

/*
 * Lists the spikes of x [T][B][inputs], in the form of the sequences of a batch: sample b has its
 * `unit` from offset[b] on and its `start` from b * (first + T + 1) on; `first` empty steps precede
 * the steps of x. unit NULL: fills in start and offset [B + 1] only; offset[B] is the number of
 * units. Returns 0; 1 if a number is neither 0 nor 1, or a sample has 2^32 spikes or more.
 */
NEAP_API int neap_spikes_list(enum neap_precision precision, const void *x, int64_t steps,
	int samples, int inputs, int64_t first, uint32_t *start, int64_t *offset, uint16_t *unit);
/*
 * Returns the rows R of the state of the last hidden layer, for a network with one hidden layer:
 * what the cell carries, in the order of docs/cells.md (lif: membrane; alif: membrane, adaptation;
 * lstm: c), and then the outputs of the last step, if the next step depends on them. NEAP_EUSAGE
 * if the cell has another state, or learns time constants.
 */
NEAP_API int neap_net_state_rows(const struct neap_net *net);
/*
 * Copies the state of the current batch to rows [R][B][n]. In this and the following functions,
 * states and adjoints of a network on a device are in its memory, and rows are in memory of the
 * host.
 */
NEAP_API int neap_net_state_get(const struct neap_net *net, const void *state, void *rows);
/* The reverse of neap_net_state_get; outputs of spiking cells are spikes if they are not 0. */
NEAP_API int neap_net_state_put(const struct neap_net *net, void *state, const void *rows);
/*
 * Initialises the adjoint at the last step. rows: [R][B][n], the gradient with respect to the last
 * state, whose last row, the gradient of the outputs, must be added to output_grads by the caller;
 * NULL: 0. NEAP_EUSAGE: rows are given for a cell that spikes; its state has no gradient here.
 */
NEAP_API int neap_net_state_adjoint(const struct neap_net *net, void *adjoint, const void *rows);
/*
 * Writes the gradient with respect to the state before step `first` to rows [R][B][n], from the
 * adjoint there. NEAP_EUSAGE for a cell that spikes.
 */
NEAP_API int neap_net_state_grads(struct neap_net *net, const void *adjoint, void *rows);

#ifdef __cplusplus
}
#endif
#endif
