/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cubalif: a leaky integrate-and-fire cell behind a synaptic current, reset by
 * subtraction one step later:
 *   I = alpha I_{-1} + in; U = beta U_{-1} + I - theta S_{-1}; S = H(U - theta)
 *   dS = gS + V'dI_{+1} - theta dU_{+1} (R: unless detached)
 *   dU = s' dS + beta dU_{+1}; dI = dU + alpha dI_{+1}; d(in) = dI
 *
 * State: I, U, and a bitmap of the last spikes. Adjoint: dI, dU. Tape: as lif's.
 */
#include "nn/liftape.h"
#include "nn/spiking.h"

static void *start(struct neap__at *at, void *row)
{
	const struct neap__layer *layer = at->layer;
	real *current = (real *)(void *)(at->state + layer->state_at);

	(void)row;
	at->net->kernels->decay(
		current, (real)layer->alpha, at->net->tensors[layer->bias].data, layer->n);
	return current;
}

static size_t finish(struct neap__at *at, void *sums, unsigned char *tape)
{
	const struct neap__layer *layer = at->layer;
	real *u = (real *)sums + layer->n;

	at->net->kernels->decay(u, (real)layer->beta, sums, layer->n);
	neap__late_reset(at, u, (real)layer->threshold);
	return neap__spike(at, u, u, tape);
}

static void backward(struct neap__at *at, const struct neap__view *view, void *ds_)
{
	const struct neap__layer *layer = at->layer;
	const real *height = neap__heights(at, view), *ds = ds_;
	int n = layer->n;
	real *di = (real *)(void *)(at->adjoint + layer->adjoint_at), *du = di + n;
	real alpha = (real)layer->alpha, *e = at->group->wide[0];
	real theta = layer->detach ? 0 : (real)layer->threshold;

	for (int k = 0; k < view->active; k++)
		e[k] = height[k] * (ds[k] - theta * du[view->active_id[k]]);
	at->net->kernels->scale(du, (real)layer->beta, n);
	for (int k = 0; k < view->active; k++)
		du[view->active_id[k]] += e[k];
	for (int i = 0; i < n; i++)
		di[i] = du[i] + alpha * di[i];
}

const struct neap__cell_code NEAP_R(neap__cubalif) = {
	.rows = {.state = 2, .adjoint = 2},
	.tape_max = neap__lif_tape_max,
	.start = start,
	.finish = finish,
	.view = neap__lif_view,
	.backward = backward,
};
