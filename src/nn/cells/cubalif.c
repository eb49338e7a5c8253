/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cubalif.c: a leaky integrate-and-fire cell behind a synaptic current I, reset by subtraction one
 * step later:
 *     I = alpha I_{-1} + in; U = beta U_{-1} + I - theta S_{-1}; S = H(U - theta)
 *     dS = gS + V'dI_{+1} - theta dU_{+1} (R)
 *     dU = s' dS + beta dU_{+1}; dI = dU + alpha dI_{+1}; d(in) = dI
 *
 * State: I, U, and a bitmap of the last spikes. Adjoint: dI, dU. Tape: as lif's.
 *
 * Where the leaks are learned (leak.h), traces of U by tau's parameter (P) and by tau_syn's (Q),
 * and of I by tau_syn's (R):
 *     P = beta P_{-1} + beta' U_{-1}; Q = beta Q_{-1} + R; R = alpha R_{-1} + alpha' I_{-1}
 */
#include "nn/cells/leak.h"
#include "nn/cells/lif_tape.h"
#include "nn/cells/spiking.h"

static void *start(struct neap__at *at, void *row)
{
	const struct neap__layer *layer = at->layer;
	real *current = (real *)(void *)(at->state + layer->state_at);

	(void)row;
	neap__leak_decay(at, NEAP__SECOND_LEAK, current, at->net->tensors[layer->bias].data);
	return current;
}

/* The traces of the next step. */
static void step_traces(const struct neap__at *at, const real *u, const real *current)
{
	real *q = neap__trace(at, NEAP__SECOND_LEAK), *r = neap__trace(at, NEAP__LEAKS_MOST);

	neap__leak_trace(at, NEAP__MEMBRANE_LEAK, neap__trace(at, NEAP__MEMBRANE_LEAK), u);
	neap__leak_trace(at, NEAP__SECOND_LEAK, r, current);
	neap__leak_decay(at, NEAP__MEMBRANE_LEAK, q, r);
}

static size_t finish(struct neap__at *at, void *sums, unsigned char *tape)
{
	const struct neap__layer *layer = at->layer;
	real *u = (real *)sums + layer->n;

	neap__leak_decay(at, NEAP__MEMBRANE_LEAK, u, sums);
	neap__delayed_reset(at, u, (real)layer->threshold);
	size_t bytes = neap__spike(at, u, u, tape);
	if (neap__learned(layer))
		step_traces(at, u, sums);
	return bytes;
}

static void backward(struct neap__at *at, const struct neap__view *view, void *ds_)
{
	const struct neap__layer *layer = at->layer;
	const real *height = neap__heights(at, view), *ds = ds_;
	int n = layer->n;
	real *di = (real *)(void *)(at->adjoint + layer->adjoint_at), *du = di + n;
	real *e = at->group->scratch[0];
	real theta = layer->detach ? 0 : (real)layer->threshold;

	for (int k = 0; k < view->active; k++)
		e[k] = height[k] * (ds[k] - theta * du[view->active_id[k]]);
	neap__leak_scale(at, NEAP__MEMBRANE_LEAK, du);
	for (int k = 0; k < view->active; k++)
		du[view->active_id[k]] += e[k];
	neap__leak_decay(at, NEAP__SECOND_LEAK, di, du);
	for (int i = 0; i < neap__learned(layer); i++)
		neap__leak_add(at, i, view, e);
}

const struct neap__cell_code NEAP_R(neap__cubalif) = {
	.rows = {.state = 2, .adjoint = 2},
	.traces = 3,
	.tape_max = neap__lif_tape_max,
	.start = start,
	.finish = finish,
	.view = neap__lif_view,
	.backward = backward,
};
