/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gru.c: the GRU cell, as PyTorch's. Columns of W and V are the gates r, z, n, as many as units
 * each; b holds PyTorch's two biases, that of W x first and b', that of V h, behind it:
 *     r, z = sigmoid(W x + V h_{-1} + b + b'), each of its own columns; q = V_n h_{-1} + b'_n
 *     n = tanh(W_n x + b_n + r q); h = (1 - z) n + z h_{-1}
 *     dh = gh + V'd(own)_{+1} + z_{+1} dh_{+1}
 *     d(in) = {q r (1 - r) dn, (h_{-1} - n) z (1 - z) dh, dn}, dn = (1 - n^2)(1 - z) dh
 *     d(own) = d(in), but r dn for its last part
 *
 * The code calls the gate n `candidate`. State: h, as the last outputs. Adjoint: d(in) 3n,
 * d(own) 3n, z dh. Tape: r, z, n, q, h_{-1}; h is computed again from the tape.
 */
#include "nn/cells/dense_outputs.h"
#include "nn/core/forward.h"

#include <string.h>

enum { GATES = 3, TAPE = 5 };

__attribute__((noinline)) static void interpolate(
	real *h, const real *z, const real *candidate, const real *h_prev, size_t n)
{
	for (size_t k = 0; k < n; k++)
		h[k] = (1 - z[k]) * candidate[k] + z[k] * h_prev[k];
}

static size_t finish(struct neap__at *at, void *sums, unsigned char *tape)
{
	size_t n = (size_t)at->layer->n, row = n * sizeof(real);
	real *r = sums, *z = r + n, *candidate = z + n, *own = candidate + n;
	const real *q = own + 2 * n, *h_prev = at->prev->value;

	for (size_t k = 0; k < 2 * n; k++)
		r[k] += own[k];
	at->net->kernels->sigmoids(r, 2 * at->layer->n);
	for (size_t k = 0; k < n; k++)
		candidate[k] += r[k] * q[k];
	at->net->kernels->tanhs(candidate, at->layer->n);
	interpolate(neap__output_all(at), z, candidate, h_prev, n);
	if (!tape)
		return 0;
	memcpy(tape, r, GATES * row);
	memcpy(tape + GATES * row, q, row);
	memcpy(tape + (GATES + 1) * row, h_prev, row);
	return TAPE * row;
}

static size_t view_tape(struct neap__at *at, const unsigned char *tape, struct neap__view *view)
{
	size_t n = (size_t)at->layer->n;
	const real *r = (const real *)(const void *)tape;

	interpolate(view->numbers[0], r + n, r + 2 * n, r + 4 * n, n);
	neap__view_all(at, view, view->numbers[0]);
	view->outputs = tape;
	return TAPE * n * sizeof(real);
}

static size_t extra_at(const struct neap__layer *layer)
{
	return layer->adjoint_at + 2 * GATES * (size_t)layer->n * sizeof(real);
}

static void backward(struct neap__at *at, const struct neap__view *view, void *ds)
{
	const struct neap__layer *layer = at->layer;
	size_t n = (size_t)layer->n;
	const real *r = view->outputs, *z = r + n, *candidate = z + n, *q = candidate + n,
		   *h_prev = q + n;
	const real *dh = ds;
	real *dr = (real *)(void *)(at->adjoint + layer->adjoint_at), *dz = dr + n, *dn = dz + n;
	real *own = dn + n, *carried = (real *)(void *)(at->adjoint + extra_at(layer));

	for (size_t k = 0; k < n; k++) {
		dn[k] = (1 - candidate[k] * candidate[k]) * (1 - z[k]) * dh[k];
		dz[k] = (h_prev[k] - candidate[k]) * z[k] * (1 - z[k]) * dh[k];
		dr[k] = q[k] * r[k] * (1 - r[k]) * dn[k];
		own[k] = dr[k];
		own[n + k] = dz[k];
		own[2 * n + k] = r[k] * dn[k];
		carried[k] = z[k] * dh[k];
	}
}

const struct neap__cell_code NEAP_R(neap__gru) = {
	.widths = {.in = GATES, .own = GATES, .sums = 2 * GATES, .own_at = GATES},
	.outputs = NEAP__OUTPUT_ALL,
	.is_dense = 1,
	.shown = {{"output", NEAP__LAST_OUTPUTS}},
	.rows = {.adjoint = 2 * GATES + 1, .tape = TAPE}, /* h is kept as the last outputs */
	.extra_at = extra_at,
	.start = neap__start_bias,
	.finish = finish,
	.view = view_tape,
	.backward = backward,
};
