/* SPDX-License-Identifier: Apache-2.0 */
/*
 * integrator.c: a leaky integrator without a threshold, whose outputs are its membranes (the LI, I
 * and CubaLI of NIR, Pedersen and others 2024; a synapse that filters):
 *     U = beta U_{-1} + in, in = W x + V U_{-1} + b; S = U
 *     dU = gS + V'd(in)_{+1} + beta dU_{+1}; d(in) = dU
 * Of a leak that is learned, with e = gS + V'd(in)_{+1}, which enters dU in its own step (leak.h):
 *     dp = sum over t of e_t P_t, P = beta P_{-1} + beta' U_{-1}
 *
 * State: U, as the last outputs; where the leak is learned, P. Adjoint: d(in). Tape: U, and P where
 * the leak is learned.
 */
#include "nn/cells/dense_outputs.h"
#include "nn/cells/leak.h"
#include "nn/core/forward.h"

#include <string.h>

static size_t finish(struct neap__at *at, void *sums, unsigned char *tape)
{
	const struct neap__layer *layer = at->layer;
	const real *before = at->prev->value;
	size_t bytes = (size_t)layer->n * sizeof(real);
	int learned = neap__learned(layer);

	if (at->t > 0 && learned)
		neap__leak_trace(at, NEAP__MEMBRANE_LEAK, neap__trace(at, 0), before);
	real *u = neap__output_all(at);
	if (at->t > 0)
		memcpy(u, before, bytes);
	else
		memset(u, 0, bytes);
	neap__leak_decay(at, NEAP__MEMBRANE_LEAK, u, sums);
	if (!tape)
		return 0;
	memcpy(tape, u, bytes);
	if (learned)
		memcpy(tape + bytes, neap__trace(at, 0), bytes);
	return bytes * (learned ? 2 : 1);
}

static size_t view_tape(struct neap__at *at, const unsigned char *tape, struct neap__view *view)
{
	size_t bytes = (size_t)at->layer->n * sizeof(real);
	int learned = neap__learned(at->layer);

	neap__view_all(at, view, (const real *)(const void *)tape);
	view->trace[NEAP__MEMBRANE_LEAK] = learned ? tape + bytes : NULL;
	view->whole_trace = 1;
	return bytes * (learned ? 2 : 1);
}

static void backward(struct neap__at *at, const struct neap__view *view, void *ds)
{
	const struct neap__layer *layer = at->layer;
	const real *own = ds;
	real *du = (real *)(void *)(at->adjoint + layer->adjoint_at);

	if (neap__learned(layer))
		neap__leak_add(at, NEAP__MEMBRANE_LEAK, view, own);
	neap__leak_scale(at, NEAP__MEMBRANE_LEAK, du);
	for (int i = 0; i < layer->n; i++)
		du[i] += own[i];
}

static size_t tape_max(const struct neap_net *net, const struct neap__layer *layer)
{
	return (size_t)(neap__learned(layer) ? 2 : 1) * (size_t)layer->n * net->ops->real;
}

const struct neap__cell_code NEAP_R(neap__integrator) = {
	.outputs = NEAP__OUTPUT_ALL,
	.is_dense = 1,
	.shown = {{"membrane", NEAP__LAST_OUTPUTS}},
	.rows = {.adjoint = 1}, /* U is kept as the last outputs */
	.traces = 1,
	.tape_max = tape_max,
	.start = neap__start_bias,
	.finish = finish,
	.view = view_tape,
	.backward = backward,
};
