/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adlif: a leaky integrate-and-fire cell with an adaptation current that membrane and
 * spikes feed, so that it can resonate (Bittar and Garner 2022):
 *   w = rho w_{-1} + a U_{-1} + b S_{-1}
 *   U = beta (U_{-1} - S_{-1}) + (1 - beta)(in - w); S = H(U - theta)
 *   dS = gS + V'd(in)_{+1} + b dw_{+1} - beta dU_{+1} (R: unless detached)
 *   dU = s' dS + beta dU_{+1} + a dw_{+1}; dw = rho dw_{+1} - (1 - beta) dU
 *   d(in) = (1 - beta) dU
 *
 * State: U, w, and a bitmap of the last spikes. Adjoint: d(in), dU, dw. Tape: as lif's.
 */
#include "nn/liftape.h"
#include "nn/spiking.h"

#include <string.h>

static size_t finish(struct neap__at *at, void *sums, unsigned char *tape)
{
	const struct neap__layer *layer = at->layer;
	int n = layer->n;
	const real *in = sums;
	real *u = (real *)(void *)(at->state + layer->state_at), *w = u + n;
	real beta = (real)layer->beta, rest = (real)(1 - layer->beta);
	real rho = (real)layer->rho, a = (real)layer->a;

	for (int i = 0; i < n; i++)
		w[i] = rho * w[i] + a * u[i];
	neap__late_spikes(at, w, (real)layer->b);
	for (int i = 0; i < n; i++)
		u[i] = beta * u[i] + rest * (in[i] - w[i]);
	neap__late_reset(at, u, beta);
	return neap__spike(at, u, u, tape);
}

static void backward(struct neap__at *at, const struct neap__view *view, void *ds_)
{
	const struct neap__layer *layer = at->layer;
	const real *height = neap__heights(at, view), *ds = ds_;
	int n = layer->n;
	real *din = (real *)(void *)(at->adjoint + layer->adjoint_at), *du = din + n, *dw = du + n;
	real beta = (real)layer->beta, rest = (real)(1 - layer->beta);
	real rho = (real)layer->rho, a = (real)layer->a, b = (real)layer->b;
	real back = layer->detach ? 0 : beta, *e = at->group->wide[0];

	for (int k = 0; k < view->active; k++) {
		int i = view->active_id[k];
		e[k] = height[k] * (ds[k] + b * dw[i] - back * du[i]);
	}
	for (int i = 0; i < n; i++)
		du[i] = beta * du[i] + a * dw[i];
	for (int k = 0; k < view->active; k++)
		du[view->active_id[k]] += e[k];
	for (int i = 0; i < n; i++) {
		din[i] = rest * du[i];
		dw[i] = rho * dw[i] - din[i];
	}
}

const struct neap__cell_code NEAP_R(neap__adlif) = {
	.rows = {.state = 2, .adjoint = 3},
	.tape_max = neap__lif_tape_max,
	.start = neap__start_bias,
	.finish = finish,
	.view = neap__lif_view,
	.backward = backward,
};
