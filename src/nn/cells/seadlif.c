/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seadlif.c: an adaptive leaky integrate-and-fire cell discretised by the symplectic Euler method
 * (SE-adLIF; Baronig, Ferrand, Sabathiel and Legenstein 2025, "Advancing spatio-temporal processing
 * through adaptation in spiking neural networks", Nature Communications 16): the adaptation current
 * w uses the membrane of the same step, after a reset to zero at once. Q is what the threshold
 * sees: Q = beta U_{-1} + (1 - beta)(in - w_{-1}); S = H(Q - theta); U = (1 - S) Q w = rho w_{-1} +
 * (1 - rho)(a U + b S) dU = beta dQ_{+1} + (1 - rho) a dw; dS = gS + V'd(in)_{+1} + (1 - rho) b dw
 * - Q dU (R) dQ = (1 - S) dU + s' dS; dw_{-1} = rho dw - (1 - beta) dQ; d(in) = (1 - beta) dQ
 *
 * State: U, w, and a bitmap of the last spikes where the next step needs them. Adjoint: d(in), dQ,
 * dw. Tape: as lif's, with Q for U.
 *
 * Where the leaks are learned (leak.h), there are two traces of (Q, w), (P, R), for each parameter:
 * tau's, tau_adapt's, and with learn=all those of a and b. A term in brackets is part of one alone:
 *     P = beta (1 - S_{-1}) P_{-1} - (1 - beta) R_{-1} [+ beta' (U_{-1} - in + w_{-1}): tau]
 *     R = rho R_{-1} + (1 - rho) a (1 - S) P [+ rho' (w_{-1} - a U - b S): tau_adapt]
 *         [+ (1 - rho) U: a] [+ (1 - rho) S: b]
 */
#include "nn/cells/leak.h"
#include "nn/cells/lif_tape.h"
#include "nn/cells/spiking.h"
#include "nn/core/forward.h"

/* Leaks after the two decays. Rows of traces: P of each, masked after the step, then R of each. */
enum { A_LEAK = NEAP__SECOND_LEAK + 1, B_LEAK };

/* P of this step, from the membrane and the adaptation of the one before. */
static void trace_membrane(const struct neap__at *at, const real *in, const real *u, const real *w)
{
	const struct neap__leak *membrane = &at->layer->leaks[NEAP__MEMBRANE_LEAK];
	const real *beta = membrane->decay, *rest = membrane->rest, *slope = membrane->slope;
	int n = at->layer->n, learned = neap__learned(at->layer);

	for (int l = 0; l < learned; l++) {
		real *p = neap__trace(at, l);
		const real *r = neap__trace(at, learned + l);
		for (int i = 0; i < n; i++)
			p[i] = beta[i] * p[i] - rest[i] * r[i];
	}
	real *p = neap__trace(at, NEAP__MEMBRANE_LEAK);
	for (int i = 0; i < n; i++)
		p[i] += slope[i] * (u[i] - in[i] + w[i]);
}

/* drive[n]: a U + b S. R of this step; w is not moved on yet. */
static void trace_adaptation(
	const struct neap__at *at, const real *drive, const real *u, const real *w)
{
	const struct neap__layer *layer = at->layer;
	const struct neap__leak *adapt = &layer->leaks[NEAP__SECOND_LEAK];
	const real *rho = adapt->decay, *rest = adapt->rest, *slope = adapt->slope;
	const real *a = layer->leaks[A_LEAK].decay, *s = at->now->value;
	int n = layer->n, learned = neap__learned(layer);

	for (int l = 0; l < learned; l++) {
		real *p = neap__trace(at, l), *r = neap__trace(at, learned + l);
		neap__mask_spikes(p, at->now);
		for (int i = 0; i < n; i++)
			r[i] = rho[i] * r[i] + rest[i] * a[i] * p[i];
	}
	real *r = neap__trace(at, learned + NEAP__SECOND_LEAK);
	for (int i = 0; i < n; i++)
		r[i] += slope[i] * (w[i] - drive[i]);
	if (learned <= A_LEAK)
		return;
	r = neap__trace(at, learned + A_LEAK);
	for (int i = 0; i < n; i++)
		r[i] += rest[i] * u[i];
	r = neap__trace(at, learned + B_LEAK);
	for (int k = 0; k < at->now->count; k++)
		r[at->now->id[k]] += rest[at->now->id[k]] * (s ? s[k] : 1);
}

static size_t finish(struct neap__at *at, void *sums, unsigned char *tape)
{
	const struct neap__layer *layer = at->layer;
	const struct neap__leak *membrane = &layer->leaks[NEAP__MEMBRANE_LEAK];
	const struct neap__leak *adapt = &layer->leaks[NEAP__SECOND_LEAK];
	const real *in = sums, *beta = membrane->decay, *rest = membrane->rest;
	const real *rho = adapt->decay, *adapt_rest = adapt->rest;
	int n = layer->n;
	real *u = (real *)(void *)(at->state + layer->state_at), *w = u + n, *drive = sums;
	const real *a = layer->leaks[A_LEAK].decay, *b = layer->leaks[B_LEAK].decay, *s;

	if (neap__learned(layer))
		trace_membrane(at, in, u, w);
	for (int i = 0; i < n; i++)
		u[i] = beta[i] * u[i] + rest[i] * (in[i] - w[i]);
	size_t bytes = neap__spike(at, u, u, tape);
	neap__reset_at_once(at, u);
	for (int i = 0; i < n; i++)
		drive[i] = a[i] * u[i];
	s = at->now->value;
	for (int k = 0; k < at->now->count; k++)
		drive[at->now->id[k]] += b[at->now->id[k]] * (s ? s[k] : 1);
	if (neap__learned(layer))
		trace_adaptation(at, drive, u, w);
	for (int i = 0; i < n; i++)
		w[i] = rho[i] * w[i] + adapt_rest[i] * drive[i];
	return bytes;
}

static void backward(struct neap__at *at, const struct neap__view *view, void *ds_)
{
	const struct neap__layer *layer = at->layer;
	const struct neap__leak *membrane = &layer->leaks[NEAP__MEMBRANE_LEAK];
	const struct neap__leak *adapt = &layer->leaks[NEAP__SECOND_LEAK];
	const real *height = neap__heights(at, view), *ds = ds_, *q = view->u;
	const real *beta = membrane->decay, *rest = membrane->rest;
	const real *rho = adapt->decay, *adapt_rest = adapt->rest;
	int n = layer->n;
	real *din = (real *)(void *)(at->adjoint + layer->adjoint_at), *du = din + n, *dw = du + n;
	const real *a = layer->leaks[A_LEAK].decay, *b = layer->leaks[B_LEAK].decay;
	real *e = at->group->scratch[0];

	for (int i = 0; i < n; i++)
		du[i] = beta[i] * du[i] + adapt_rest[i] * a[i] * dw[i];
	for (int k = 0; k < view->active; k++) {
		int i = view->active_id[k];
		real back = layer->detach ? 0 : q[k] * du[i];
		e[k] = height[k] * (ds[k] + adapt_rest[i] * b[i] * dw[i] - back);
	}
	neap__mask_spikes(du, &view->spikes);
	for (int k = 0; k < view->active; k++)
		du[view->active_id[k]] += e[k];
	for (int i = 0; i < n; i++) {
		din[i] = rest[i] * du[i];
		dw[i] = rho[i] * dw[i] - din[i];
	}
	for (int i = 0; i < neap__learned(layer); i++)
		neap__leak_add(at, i, view, e);
}

const struct neap__cell_code NEAP_R(neap__seadlif) = {
	.rows = {.state = 2, .adjoint = 3},
	.traces = 4,
	.shown = {{"membrane", 0}, {"adaptation", 1}},
	.tape_max = neap__lif_tape_max,
	.start = neap__start_bias,
	.finish = finish,
	.view = neap__lif_view,
	.backward = backward,
};
