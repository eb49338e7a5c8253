/* SPDX-License-Identifier: Apache-2.0 */
/*
 * brf.c: the balanced resonate-and-fire neuron (Higuchi, Kairat, Bohte and Otte 2024, "Balanced
 * Resonate-and-Fire Neurons", ICML, equations 5 to 9). The membrane is an oscillation U + iV of the
 * frequency omega, which a spike does not reset: it raises the threshold and the damping by q.
 * p(omega) is the damping at which an undamped oscillation neither grows nor decays in steps of dt:
 *     k = 1 + dt (p - b - q_{-1}); 1 + dt p = sqrt(1 - (dt omega)^2)
 *     U = k U_{-1} - dt omega V_{-1} + dt in; V = dt omega U_{-1} + k V_{-1}
 *     S = H(U - q_{-1} - theta); q = gamma q_{-1} + S
 *     dq = gamma dq_{+1} - dt (dU_{+1} U + dV_{+1} V) - s'_{+1} dS_{+1} (R)
 *     dS = gS + V'd(in)_{+1} + dq; d(in) = dt dU
 *     dU = k_{+1} dU_{+1} + dt omega dV_{+1} + s' dS; dV = k_{+1} dV_{+1} - dt omega dU_{+1}
 *
 * State: U, V, q, and a bitmap of the last spikes where the next step needs them. Adjoint: d(in),
 * dU, dV, and gamma dq - s' dS. Tape: U, V, q_{-1}; k_{+1} follows from q, which is recomputed
 * as it was. The tape does not shrink with the activity, as dq takes in all units.
 *
 * Learned frequencies and dampings are exp of a parameter (NEAP__LEAK_TURN, NEAP__LEAK_DAMPING);
 * with x = dt omega, their gradients follow from the tape, without traces:
 *     dx = dV_{+1} U - dU_{+1} V - x / sqrt(1 - x^2) (dU_{+1} U + dV_{+1} V)
 *     d(dt b) = -(dU_{+1} U + dV_{+1} V)
 */
#include "nn/cells/leak.h"
#include "nn/cells/spiking.h"
#include "nn/core/forward.h"

#include <math.h>
#include <string.h>

enum { U, V, Q, TAPE };		  /* rows of a state, and of a tape */
enum { TURN_LEAK, DAMPING_LEAK }; /* leaks */

/* What the threshold sees. */
static void seen_by(real *seen, const real *u, const real *q, int n)
{
	for (int i = 0; i < n; i++)
		seen[i] = u[i] - q[i];
}

/* 1: the output of every unit can get a gradient. */
static int all_active(const struct neap__at *at)
{
	return at->layer->smooth || isinf(at->layer->cut) || at->net->options.dense;
}

/* How many outputs can. */
static int active(const struct neap__at *at, const real *seen)
{
	const struct neap__layer *layer = at->layer;
	real theta = (real)layer->threshold, cut = (real)layer->cut;
	int count = 0;

	if (all_active(at))
		return layer->n;
	for (int i = 0; i < layer->n; i++)
		count += seen[i] >= theta - cut && seen[i] <= theta + cut;
	return count;
}

/* q = gamma q_{-1} + S; spikes: as the damping sees them. */
static void damp(const struct neap__at *at, real *q, const real *before,
	const struct neap__list *spikes, int is_forward)
{
	const struct neap__layer *layer = at->layer;
	real gamma = (real)layer->gamma;

	for (int i = 0; i < layer->n; i++)
		q[i] = gamma * before[i];
	if (layer->smooth) {
		const real *s = spikes->value;
		if (is_forward)
			s = neap__reset_spikes(at, at->t, s);
		for (int i = 0; i < layer->n; i++)
			q[i] += s[i];
		return;
	}
	neap__add_spikes(q, spikes, 1);
}

static size_t finish(struct neap__at *at, void *sums, unsigned char *tape)
{
	const struct neap__layer *layer = at->layer;
	const struct neap__kernels *kernels = at->net->kernels;
	const real *x = layer->leaks[TURN_LEAK].decay, *keep = layer->leaks[TURN_LEAK].rest;
	const real *damping = layer->leaks[DAMPING_LEAK].decay, *in = sums;
	struct neap__slope slope = neap__slope(layer);
	struct neap__list *now = at->now;
	size_t n = (size_t)layer->n, row = n * sizeof(real);
	real *u = (real *)(void *)(at->state + layer->state_at), *v = u + V * n, *q = u + Q * n;
	real *seen = at->group->scratch[0], dt = (real)at->net->options.dt;

	for (size_t i = 0; i < n; i++) {
		real k = keep[i] - damping[i] - dt * q[i], before = u[i];
		u[i] = k * before - x[i] * v[i] + dt * in[i];
		v[i] = x[i] * before + k * v[i];
	}
	seen_by(seen, u, q, layer->n);
	if (layer->smooth) {
		kernels->integral[layer->surrogate](now->value_room, seen, layer->n, &slope);
		neap__smooth_spikes(at);
	} else {
		now->count = kernels->spikes(now->room, seen, layer->n, slope.theta);
	}
	if (tape) {
		memcpy(tape, u, TAPE * row);
		at->group->support += active(at, seen);
		at->group->recorded += layer->n;
	}
	damp(at, q, q, now, 1);
	return tape ? TAPE * row : 0;
}

static size_t view_tape(struct neap__at *at, const unsigned char *tape, struct neap__view *view)
{
	const struct neap__layer *layer = at->layer;
	const struct neap__kernels *k = at->net->kernels;
	struct neap__slope slope = neap__slope(layer);
	int n = layer->n, near;
	const real *u = (const real *)(const void *)tape;
	real *seen = view->numbers[0];

	seen_by(seen, u, u + Q * (size_t)n, n);
	view->outputs = tape;
	view->active = n;
	view->active_id = at->net->identity;
	view->u = seen;
	if (layer->smooth) {
		k->integral[layer->surrogate](view->numbers[1], seen, n, &slope);
		view->spikes =
			(struct neap__list){n, at->net->identity, view->numbers[1], NULL, NULL};
	} else if (all_active(at)) {
		int count = k->spikes(view->ids[0], seen, n, slope.theta);
		view->spikes = (struct neap__list){count, view->ids[0], NULL, NULL, NULL};
	} else {
		int count = k->support(view->ids[0], view->ids[1], view->numbers[2], &near, seen, n,
			slope.theta, slope.cut);
		view->spikes = (struct neap__list){count, view->ids[0], NULL, NULL, NULL};
		view->active = near;
		view->active_id = view->ids[1];
		view->u = view->numbers[2];
	}
	return TAPE * (size_t)n * sizeof(real);
}

/* Adds the terms of step t + 1 to the gradients of parameters, from dU_{+1}, dV_{+1}, U and V. */
static void learn(
	const struct neap__at *at, const real *du, const real *dv, const real *u, const real *v)
{
	const struct neap__layer *layer = at->layer;

	for (int l = 0; l < neap__learned(layer); l++) {
		const struct neap__leak *leak = &layer->leaks[l];
		const struct neap__param *t = &at->net->tensors[leak->tensor];
		const real *x = leak->decay, *keep = leak->rest, *slope = leak->slope;
		real *sum = at->group->grads->part[leak->tensor];
		if (t->is_frozen)
			continue;
		at->group->grads->dirty[t->row_offset] = 1;
		for (int i = 0; i < layer->n; i++) {
			real pull = du[i] * u[i] + dv[i] * v[i];
			real g = l == DAMPING_LEAK
					 ? -pull
					 : dv[i] * u[i] - du[i] * v[i] - x[i] / keep[i] * pull;
			sum[i] += slope[i] * g;
		}
	}
}

static void backward(struct neap__at *at, const struct neap__view *view, void *ds_)
{
	const struct neap__layer *layer = at->layer;
	const real *x = layer->leaks[TURN_LEAK].decay, *keep = layer->leaks[TURN_LEAK].rest;
	const real *damping = layer->leaks[DAMPING_LEAK].decay, *height = neap__heights(at, view);
	size_t n = (size_t)layer->n;
	const real *u = view->outputs, *v = u + V * n, *last_q = u + Q * n;
	real *din = (real *)(void *)(at->adjoint + layer->adjoint_at), *du = din + n;
	real *dv = du + n, *dq = dv + n, *q = at->group->scratch[0], *ds = ds_;
	real dt = (real)at->net->options.dt, gamma = (real)layer->gamma;

	learn(at, du, dv, u, v);
	damp(at, q, last_q, &view->spikes, 0);
	for (size_t i = 0; i < n; i++) {
		real k = keep[i] - damping[i] - dt * q[i], before = du[i];
		dq[i] = layer->detach ? 0 : dq[i] - dt * (before * u[i] + dv[i] * v[i]);
		du[i] = k * before + x[i] * dv[i];
		dv[i] = k * dv[i] - x[i] * before;
	}
	for (int k = 0; k < view->active; k++)
		ds[k] = height[k] * (ds[k] + dq[view->active_id[k]]);
	for (size_t i = 0; i < n; i++)
		dq[i] *= gamma;
	for (int k = 0; k < view->active; k++) {
		int i = view->active_id[k];
		du[i] += ds[k];
		if (!layer->detach)
			dq[i] -= ds[k];
	}
	for (size_t i = 0; i < n; i++)
		din[i] = dt * du[i];
}

const struct neap__cell_code NEAP_R(neap__brf) = {
	.is_dense = 1,
	.rows = {.state = TAPE, .adjoint = 4, .tape = TAPE},
	.shown = {{"membrane", U}, {"velocity", V}},
	.start = neap__start_bias,
	.finish = finish,
	.view = view_tape,
	.backward = backward,
};
