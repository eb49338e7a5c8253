/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lstm.c: the LSTM cell, as PyTorch's, with one bias for its two. Columns of W, V and b are the
 * gates i, f, g, o, n each:
 *     i, f, o = sigmoid(in), g = tanh(in), each of its own columns; in = W x + V h_{-1} + b
 *     c = f c_{-1} + i g; h = o tanh c
 *     dh = gh + V'd(in)_{+1}; dc = f_{+1} dc_{+1} + o (1 - tanh^2 c) dh
 *     d(in) = {g i (1 - i) dc, c_{-1} f (1 - f) dc, i (1 - g^2) dc, tanh c o (1 - o) dh}
 *
 * State: c, and h as the last outputs. Adjoint: d(in) 4n, f dc. Tape: i, f, g, o, c_{-1}; c and h
 * are computed again from the tape.
 */
#include "nn/cells/dense_outputs.h"
#include "nn/core/forward.h"

#include <string.h>

enum { GATES = 4, TAPE = 5 };

/* From gates and c_{-1}: tanh_c = tanh c, h; c_out to c where it is not NULL. */
__attribute__((noinline)) static void next_state(const struct neap__kernels *kernels,
	const real *gate, const real *c_prev, real *c_out, real *tanh_c, real *h, int n)
{
	const real *i = gate, *f = i + n, *g = f + n, *o = g + n;

	for (int k = 0; k < n; k++)
		tanh_c[k] = f[k] * c_prev[k] + i[k] * g[k];
	if (c_out)
		memcpy(c_out, tanh_c, (size_t)n * sizeof *c_out);
	kernels->tanhs(tanh_c, n);
	for (int k = 0; k < n; k++)
		h[k] = o[k] * tanh_c[k];
}

static size_t finish(struct neap__at *at, void *sums, unsigned char *tape)
{
	const struct neap__layer *layer = at->layer;
	int n = layer->n;
	real *gate = sums, *c = (real *)(void *)(at->state + layer->state_at);
	size_t row = (size_t)n * sizeof *c;

	at->net->kernels->sigmoids(gate, 2 * n);
	at->net->kernels->tanhs(gate + 2 * n, n);
	at->net->kernels->sigmoids(gate + 3 * n, n);
	if (tape) {
		memcpy(tape, gate, GATES * row);
		memcpy(tape + GATES * row, c, row);
	}
	next_state(at->net->kernels, gate, c, c, at->group->scratch[0], neap__output_all(at), n);
	return tape ? TAPE * row : 0;
}

static size_t view_tape(struct neap__at *at, const unsigned char *tape, struct neap__view *view)
{
	const real *gate = (const real *)(const void *)tape;
	int n = at->layer->n;

	next_state(at->net->kernels, gate, gate + GATES * (size_t)n, NULL, view->numbers[1],
		view->numbers[0], n);
	neap__view_all(at, view, view->numbers[0]);
	view->outputs = tape;
	return TAPE * (size_t)n * sizeof(real);
}

static void backward(struct neap__at *at, const struct neap__view *view, void *ds)
{
	const struct neap__layer *layer = at->layer;
	size_t n = (size_t)layer->n;
	const real *i = view->outputs, *f = i + n, *g = f + n, *o = g + n, *c_prev = o + n;
	const real *tanh_c = view->numbers[1], *dh = ds;
	real *di = (real *)(void *)(at->adjoint + layer->adjoint_at);
	real *df = di + n, *dg = df + n, *dout = dg + n, *carried = dout + n;

	for (size_t k = 0; k < n; k++) {
		real y = tanh_c[k], dc = carried[k] + o[k] * (1 - y * y) * dh[k];
		di[k] = g[k] * i[k] * (1 - i[k]) * dc;
		df[k] = c_prev[k] * f[k] * (1 - f[k]) * dc;
		dg[k] = i[k] * (1 - g[k] * g[k]) * dc;
		dout[k] = y * o[k] * (1 - o[k]) * dh[k];
		carried[k] = f[k] * dc;
	}
}

const struct neap__cell_code NEAP_R(neap__lstm) = {
	.widths = {.in = GATES, .own = GATES, .sums = GATES},
	.outputs = NEAP__OUTPUT_ALL,
	.is_dense = 1,
	.shown = {{"output", NEAP__LAST_OUTPUTS}, {"cell", 0}},
	.rows = {.state = 1, .adjoint = GATES + 1, .tape = TAPE},
	.carried = GATES,
	.start = neap__start_bias,
	.finish = finish,
	.view = view_tape,
	.backward = backward,
};
