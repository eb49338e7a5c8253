/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alif: a leaky integrate-and-fire cell whose threshold its spikes raise; reset by
 * subtraction one step later:
 *   a = rho a_{-1} + S_{-1}; U = beta U_{-1} + in - theta S_{-1}; S = H(U - theta - kappa a)
 *   dS = gS + V'dU_{+1} + da_{+1} - theta dU_{+1} (R: unless detached)
 *   dU = s' dS + beta dU_{+1}; da = rho da_{+1} - kappa s' dS; d(in) = dU
 *
 * State: U, a, and a bitmap of the last spikes. Adjoint: dU, da. Tape: as lif's, with
 * U - kappa a for U.
 */
#include "nn/liftape.h"
#include "nn/spiking.h"

static void *start(struct neap__at *at, void *row)
{
	const struct neap__layer *layer = at->layer;
	real *u = (real *)(void *)(at->state + layer->state_at);

	(void)row;
	at->net->kernels->decay(u, (real)layer->beta, at->net->tensors[layer->bias].data, layer->n);
	return u;
}

static size_t finish(struct neap__at *at, void *sums, unsigned char *tape)
{
	const struct neap__layer *layer = at->layer;
	int n = layer->n;
	real *u = sums, *a = u + n, *seen = at->group->wide[0];
	real kappa = (real)layer->adapt;

	at->net->kernels->scale(a, (real)layer->rho, n);
	neap__late_spikes(at, a, 1);
	neap__late_reset(at, u, (real)layer->threshold);
	for (int i = 0; i < n; i++)
		seen[i] = u[i] - kappa * a[i];
	return neap__spike(at, seen, seen, tape);
}

static void backward(struct neap__at *at, const struct neap__view *view, void *ds_)
{
	const struct neap__layer *layer = at->layer;
	const real *height = neap__heights(at, view), *ds = ds_;
	int n = layer->n;
	real *du = (real *)(void *)(at->adjoint + layer->adjoint_at), *da = du + n;
	real kappa = (real)layer->adapt, theta = layer->detach ? 0 : (real)layer->threshold;
	real *e = at->group->wide[0];

	for (int k = 0; k < view->active; k++) {
		int i = view->active_id[k];
		e[k] = height[k] * (ds[k] + da[i] - theta * du[i]);
	}
	at->net->kernels->scale(du, (real)layer->beta, n);
	at->net->kernels->scale(da, (real)layer->rho, n);
	for (int k = 0; k < view->active; k++) {
		du[view->active_id[k]] += e[k];
		da[view->active_id[k]] -= kappa * e[k];
	}
}

const struct neap__cell_code NEAP_R(neap__alif) = {
	.rows = {.state = 2, .adjoint = 2},
	.tape_max = neap__lif_tape_max,
	.start = start,
	.finish = finish,
	.view = neap__lif_view,
	.backward = backward,
};
