/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alif.c: a leaky integrate-and-fire cell whose spikes raise its threshold; reset by subtraction,
 * one step later:
 *     a = rho a_{-1} + S_{-1}; U = beta U_{-1} + in - theta S_{-1}; S = H(U - theta - kappa a)
 *     dS = gS + V'dU_{+1} + da_{+1} - theta dU_{+1} (R)
 *     dU = s' dS + beta dU_{+1}; da = rho da_{+1} - kappa s' dS; d(in) = dU
 *
 * State: U, a, and a bitmap of the last spikes. Adjoint: dU, da. Tape: as lif's, with U - kappa a
 * for U.
 *
 * Where the leaks are learned (leak.h), traces of U by tau's parameter and of a by tau_adapt's:
 *     P = beta P_{-1} + beta' U_{-1}; A = rho A_{-1} + rho' a_{-1}
 */
#include "nn/cells/leak.h"
#include "nn/cells/lif_tape.h"
#include "nn/cells/spiking.h"

static void *start(struct neap__at *at, void *row)
{
	const struct neap__layer *layer = at->layer;
	real *u = (real *)(void *)(at->state + layer->state_at);

	(void)row;
	neap__leak_decay(at, NEAP__MEMBRANE_LEAK, u, neap__biases(at->net, layer));
	return u;
}

static size_t finish(struct neap__at *at, void *sums, unsigned char *tape)
{
	const struct neap__layer *layer = at->layer;
	int n = layer->n;
	real *u = sums, *a = u + n, *effective = at->group->scratch[0];
	real kappa = (real)layer->adapt;

	neap__leak_scale(at, NEAP__SECOND_LEAK, a);
	neap__delayed_spikes(at, a, 1);
	neap__delayed_reset(at, u, (real)layer->threshold);
	for (int i = 0; i < n; i++)
		effective[i] = u[i] - kappa * a[i];
	size_t bytes = neap__spike(at, effective, effective, tape);
	if (neap__learned(layer)) {
		neap__leak_trace(at, NEAP__MEMBRANE_LEAK, neap__trace(at, NEAP__MEMBRANE_LEAK), u);
		neap__leak_trace(at, NEAP__SECOND_LEAK, neap__trace(at, NEAP__SECOND_LEAK), a);
	}
	return bytes;
}

static void backward(struct neap__at *at, const struct neap__view *view, void *ds_)
{
	const struct neap__layer *layer = at->layer;
	const real *height = neap__heights(at, view), *ds = ds_;
	int n = layer->n;
	real *du = (real *)(void *)(at->adjoint + layer->adjoint_at), *da = du + n;
	real kappa = (real)layer->adapt, theta = layer->detach ? 0 : (real)layer->threshold;
	real *e = at->group->scratch[0];

	for (int k = 0; k < view->active; k++) {
		int i = view->active_id[k];
		e[k] = height[k] * (ds[k] + da[i] - theta * du[i]);
	}
	neap__leak_scale(at, NEAP__MEMBRANE_LEAK, du);
	neap__leak_scale(at, NEAP__SECOND_LEAK, da);
	for (int k = 0; k < view->active; k++)
		du[view->active_id[k]] += e[k];
	if (neap__learned(layer))
		neap__leak_add(at, NEAP__MEMBRANE_LEAK, view, e);
	for (int k = 0; k < view->active; k++)
		da[view->active_id[k]] += e[k] *= -kappa;
	if (neap__learned(layer))
		neap__leak_add(at, NEAP__SECOND_LEAK, view, e);
}

const struct neap__cell_code NEAP_R(neap__alif) = {
	.rows = {.state = 2, .adjoint = 2},
	.traces = 2,
	.shown = {{"membrane", 0}, {"adaptation", 1}},
	.tape_max = neap__lif_tape_max,
	.start = start,
	.finish = finish,
	.view = neap__lif_view,
	.backward = backward,
};
