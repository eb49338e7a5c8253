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
 * Where the leaks are learned (leak.h), there are two traces of (Q, w), (P, R) each: by tau's
 * parameter and by tau_adapt's. A term in brackets is part of one of the two alone:
 *     P = beta (1 - S_{-1}) P_{-1} - (1 - beta) R_{-1} [+ beta' (U_{-1} - in + w_{-1}): tau]
 *     R = rho R_{-1} + (1 - rho) a (1 - S) P [+ rho' (w_{-1} - a U - b S): tau_adapt]
 */
#include "nn/cells/leak.h"
#include "nn/cells/lif_tape.h"
#include "nn/cells/spiking.h"
#include "nn/core/forward.h"

/* Rows of the traces: P by either parameter, masked after the step, then R. */
enum { P, P_ADAPT, R, R_ADAPT, TRACES };

/* P of this step, from the membrane and the adaptation of the one before. */
static void trace_membrane(const struct neap__at *at, const real *in, const real *u, const real *w)
{
	const struct neap__leak *membrane = &at->layer->leaks[NEAP__MEMBRANE_LEAK];
	const real *beta = membrane->decay, *rest = membrane->rest, *slope = membrane->slope;
	const real *r = neap__trace(at, R), *r_adapt = neap__trace(at, R_ADAPT);
	real *p = neap__trace(at, P), *p_adapt = neap__trace(at, P_ADAPT);

	for (int i = 0; i < at->layer->n; i++) {
		p[i] = beta[i] * p[i] - rest[i] * r[i] + slope[i] * (u[i] - in[i] + w[i]);
		p_adapt[i] = beta[i] * p_adapt[i] - rest[i] * r_adapt[i];
	}
}

/* drive[n]: a U + b S. R of this step; w is not moved on yet. */
static void trace_adaptation(const struct neap__at *at, const real *drive, const real *w)
{
	const struct neap__leak *adapt = &at->layer->leaks[NEAP__SECOND_LEAK];
	const real *rho = adapt->decay, *rest = adapt->rest, *slope = adapt->slope;
	real *p = neap__trace(at, P), *p_adapt = neap__trace(at, P_ADAPT);
	real *r = neap__trace(at, R), *r_adapt = neap__trace(at, R_ADAPT), a = (real)at->layer->a;

	neap__mask_spikes(p, at->now);
	neap__mask_spikes(p_adapt, at->now);
	for (int i = 0; i < at->layer->n; i++) {
		r[i] = rho[i] * r[i] + rest[i] * a * p[i];
		r_adapt[i] = rho[i] * r_adapt[i] + rest[i] * a * p_adapt[i] +
			     slope[i] * (w[i] - drive[i]);
	}
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
	real a = (real)layer->a, b = (real)layer->b;

	if (neap__learned(layer))
		trace_membrane(at, in, u, w);
	for (int i = 0; i < n; i++)
		u[i] = beta[i] * u[i] + rest[i] * (in[i] - w[i]);
	size_t bytes = neap__spike(at, u, u, tape);
	neap__reset_at_once(at, u);
	for (int i = 0; i < n; i++)
		drive[i] = a * u[i];
	neap__add_spikes(drive, at->now, b);
	if (neap__learned(layer))
		trace_adaptation(at, drive, w);
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
	real a = (real)layer->a, b = (real)layer->b, *e = at->group->scratch[0];

	for (int i = 0; i < n; i++)
		du[i] = beta[i] * du[i] + adapt_rest[i] * a * dw[i];
	for (int k = 0; k < view->active; k++) {
		int i = view->active_id[k];
		real back = layer->detach ? 0 : q[k] * du[i];
		e[k] = height[k] * (ds[k] + adapt_rest[i] * b * dw[i] - back);
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
	.traces = TRACES,
	.shown = {{"membrane", 0}, {"adaptation", 1}},
	.tape_max = neap__lif_tape_max,
	.start = neap__start_bias,
	.finish = finish,
	.view = neap__lif_view,
	.backward = backward,
};
