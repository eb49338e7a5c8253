/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rnn.c: the plain recurrent cell, as PyTorch's, with one bias for its two; f is tanh or relu:
 *     h = f(W x + V h_{-1} + b)
 *     dh = gh + V'd(in)_{+1}; d(in) = f' dh, f' = 1 - h^2 or [h > 0]
 *
 * State: h. Adjoint: d(in). Tape: h.
 */
#include "nn/cells/dense_outputs.h"
#include "nn/core/forward.h"

#include <string.h>

static size_t finish(struct neap__at *at, void *sums, unsigned char *tape)
{
	const struct neap__layer *layer = at->layer;
	real *h = neap__output_all(at), *in = sums;
	size_t bytes = (size_t)layer->n * sizeof *h;

	if (layer->activation == NEAP__TANH)
		at->net->kernels->tanhs(in, layer->n);
	else
		for (int i = 0; i < layer->n; i++)
			in[i] = in[i] > 0 ? in[i] : 0;
	memcpy(h, in, bytes);
	if (tape)
		memcpy(tape, in, bytes);
	return tape ? bytes : 0;
}

static size_t view_tape(struct neap__at *at, const unsigned char *tape, struct neap__view *view)
{
	neap__view_all(at, view, (const real *)(const void *)tape);
	return (size_t)at->layer->n * sizeof(real);
}

static void backward(struct neap__at *at, const struct neap__view *view, void *ds)
{
	const struct neap__layer *layer = at->layer;
	const real *h = view->spikes.value, *dh = ds;
	real *din = (real *)(void *)(at->adjoint + layer->adjoint_at);

	if (layer->activation == NEAP__TANH)
		for (int i = 0; i < layer->n; i++)
			din[i] = (1 - h[i] * h[i]) * dh[i];
	else
		for (int i = 0; i < layer->n; i++)
			din[i] = h[i] > 0 ? dh[i] : 0;
}

const struct neap__cell_code NEAP_R(neap__rnn) = {
	.outputs = NEAP__OUTPUT_ALL,
	.is_dense = 1,
	.shown = {{"output", NEAP__LAST_OUTPUTS}},
	.rows = {.adjoint = 1, .tape = 1}, /* h is kept as the last outputs */
	.start = neap__start_bias,
	.finish = finish,
	.view = view_tape,
	.backward = backward,
};
