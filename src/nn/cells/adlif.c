/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adlif.c: a leaky integrate-and-fire cell with an adaptation current w that membrane and spikes
 * feed, so that the cell can resonate (Bittar and Garner 2022):
 *     w = rho w_{-1} + a U_{-1} + b S_{-1}
 *     U = beta (U_{-1} - S_{-1}) + (1 - beta)(in - w); S = H(U - theta)
 *     dS = gS + V'd(in)_{+1} + b dw_{+1} - beta dU_{+1} (R)
 *     dU = s' dS + beta dU_{+1} + a dw_{+1}; dw = rho dw_{+1} - (1 - beta) dU
 *     d(in) = (1 - beta) dU
 *
 * State: U, w, and a bitmap of the last spikes. Adjoint: d(in), dU, dw. Tape: as lif's.
 *
 * Where the leaks are learned (leak.h), there are two traces of (U, w), (P, Q) each: by tau's
 * parameter and by tau_adapt's. A term in brackets is part of one of the two alone:
 *     Q = rho Q_{-1} + a P_{-1} [+ rho' w_{-1}: tau_adapt]
 *     P = beta P_{-1} - (1 - beta) Q [+ beta' (U_{-1} - S_{-1} - in + w): tau]
 */
#include "nn/cells/leak.h"
#include "nn/cells/lif_tape.h"
#include "nn/cells/spiking.h"
#include "nn/core/forward.h"

/* Rows of the traces: P by either parameter, then Q. */
enum { P, P_ADAPT, Q, Q_ADAPT, TRACES };

/* Q of this step; w is not moved on yet. */
static void trace_adaptation(const struct neap__at *at, const real *w)
{
	const struct neap__layer *layer = at->layer;
	const struct neap__leak *adapt = &layer->leaks[NEAP__SECOND_LEAK];
	const real *rho = adapt->decay, *slope = adapt->slope;
	const real *p = neap__trace(at, P), *p_adapt = neap__trace(at, P_ADAPT);
	real *q = neap__trace(at, Q), *q_adapt = neap__trace(at, Q_ADAPT), a = (real)layer->a;

	for (int i = 0; i < layer->n; i++) {
		q[i] = rho[i] * q[i] + a * p[i];
		q_adapt[i] = rho[i] * q_adapt[i] + a * p_adapt[i] + slope[i] * w[i];
	}
}

/* P of this step: w is moved on, u reset alone. */
static void trace_membrane(const struct neap__at *at, const real *in, const real *u, const real *w)
{
	const struct neap__layer *layer = at->layer;
	const struct neap__leak *membrane = &layer->leaks[NEAP__MEMBRANE_LEAK];
	const real *beta = membrane->decay, *rest = membrane->rest, *slope = membrane->slope;
	const real *q = neap__trace(at, Q), *q_adapt = neap__trace(at, Q_ADAPT);
	real *p = neap__trace(at, P), *p_adapt = neap__trace(at, P_ADAPT);

	for (int i = 0; i < layer->n; i++) {
		p[i] = beta[i] * p[i] - rest[i] * q[i] + slope[i] * (u[i] - in[i] + w[i]);
		p_adapt[i] = beta[i] * p_adapt[i] - rest[i] * q_adapt[i];
	}
}

static size_t finish(struct neap__at *at, void *sums, unsigned char *tape)
{
	const struct neap__layer *layer = at->layer;
	const struct neap__leak *membrane = &layer->leaks[NEAP__MEMBRANE_LEAK];
	int n = layer->n;
	const real *in = sums, *beta = membrane->decay, *rest = membrane->rest;
	real *u = (real *)(void *)(at->state + layer->state_at), *w = u + n;
	real a = (real)layer->a;

	if (neap__learned(layer))
		trace_adaptation(at, w);
	neap__leak_scale(at, NEAP__SECOND_LEAK, w);
	for (int i = 0; i < n; i++)
		w[i] += a * u[i];
	neap__delayed_spikes(at, w, (real)layer->b);
	neap__delayed_reset(at, u, 1);
	if (neap__learned(layer))
		trace_membrane(at, in, u, w);
	for (int i = 0; i < n; i++)
		u[i] = beta[i] * u[i] + rest[i] * (in[i] - w[i]);
	return neap__spike(at, u, u, tape);
}

static void backward(struct neap__at *at, const struct neap__view *view, void *ds_)
{
	const struct neap__layer *layer = at->layer;
	const struct neap__leak *membrane = &layer->leaks[NEAP__MEMBRANE_LEAK];
	const real *height = neap__heights(at, view), *ds = ds_;
	const real *beta = membrane->decay, *rest = membrane->rest;
	const real *rho = layer->leaks[NEAP__SECOND_LEAK].decay;
	int n = layer->n;
	real *din = (real *)(void *)(at->adjoint + layer->adjoint_at), *du = din + n, *dw = du + n;
	real a = (real)layer->a, b = (real)layer->b, *e = at->group->scratch[0];

	for (int k = 0; k < view->active; k++) {
		int i = view->active_id[k];
		real back = layer->detach ? 0 : beta[i];
		e[k] = height[k] * (ds[k] + b * dw[i] - back * du[i]);
	}
	for (int i = 0; i < n; i++)
		du[i] = beta[i] * du[i] + a * dw[i];
	for (int k = 0; k < view->active; k++)
		du[view->active_id[k]] += e[k];
	for (int i = 0; i < n; i++) {
		din[i] = rest[i] * du[i];
		dw[i] = rho[i] * dw[i] - din[i];
	}
	for (int i = 0; i < neap__learned(layer); i++)
		neap__leak_add(at, i, view, e);
}

const struct neap__cell_code NEAP_R(neap__adlif) = {
	.rows = {.state = 2, .adjoint = 3},
	.traces = TRACES,
	.shown = {{"membrane", 0}, {"adaptation", 1}},
	.tape_max = neap__lif_tape_max,
	.start = neap__start_bias,
	.finish = finish,
	.view = neap__lif_view,
	.backward = backward,
};
