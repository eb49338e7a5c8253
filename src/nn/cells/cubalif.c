/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cubalif.c: a leaky integrate-and-fire cell behind a synaptic current I, with three resets:
 * `subtract` comes one step later, `hard` and `soft` at once, as lif's do:
 *     I = alpha I_{-1} + in
 *     subtract: U = beta U_{-1} + I - theta S_{-1}; S = H(U - theta)
 *     hard:     H = beta M_{-1} + I; S = H(H - theta); M = (1 - S) H + v_r S
 *     soft:     H = beta M_{-1} + I; S = H(H - theta); M = H - theta S
 * Backward, where gS includes V'dI_{+1} and dI = dU + alpha dI_{+1}, d(in) = dI:
 *     subtract: dS = gS - theta dU_{+1} (R); dU = s' dS + beta dU_{+1}
 *     hard:     dM = beta dU_{+1}; dS = gS + (v_r - H) dM (R); dU = (1 - S) dM + s' dS
 *     soft:     dM = beta dU_{+1}; dS = gS - theta dM (R); dU = dM + s' dS
 *
 * State: I, U (or M), and a bitmap of the last spikes where the next step needs them. Adjoint: dI,
 * dU. Tape: as lif's.
 *
 * Where the leaks are learned (leak.h), traces of U by tau's parameter (P) and by tau_syn's (Q),
 * and of I by tau_syn's (R):
 *     P = beta P_{-1} + beta' U_{-1}; Q = beta Q_{-1} + R; R = alpha R_{-1} + alpha' I_{-1}
 * where a hard reset lets nothing of P and Q through.
 */
#include "nn/cells/leak.h"
#include "nn/cells/lif_tape.h"
#include "nn/cells/spiking.h"

static void *start(struct neap__at *at, void *row)
{
	const struct neap__layer *layer = at->layer;
	real *current = (real *)(void *)(at->state + layer->state_at);

	(void)row;
	neap__leak_decay(at, NEAP__SECOND_LEAK, current, neap__biases(at->net, layer));
	return current;
}

/* The traces of the next step. */
static void step_traces(const struct neap__at *at, const real *u, const real *current)
{
	real *q = neap__trace(at, NEAP__SECOND_LEAK), *r = neap__trace(at, NEAP__SECOND_LEAK + 1);

	if (at->layer->reset == NEAP_RESET_HARD) {
		neap__mask_spikes(neap__trace(at, NEAP__MEMBRANE_LEAK), at->now);
		neap__mask_spikes(q, at->now);
	}
	neap__leak_trace(at, NEAP__MEMBRANE_LEAK, neap__trace(at, NEAP__MEMBRANE_LEAK), u);
	neap__leak_trace(at, NEAP__SECOND_LEAK, r, current);
	neap__leak_decay(at, NEAP__MEMBRANE_LEAK, q, r);
}

static size_t finish(struct neap__at *at, void *sums, unsigned char *tape)
{
	const struct neap__layer *layer = at->layer;
	real *u = (real *)sums + layer->n;

	neap__leak_decay(at, NEAP__MEMBRANE_LEAK, u, sums);
	if (layer->reset == NEAP_RESET_SUBTRACT)
		neap__delayed_reset(at, u, (real)layer->threshold);
	size_t bytes = neap__spike(at, u, u, tape);
	if (layer->reset != NEAP_RESET_SUBTRACT)
		neap__reset_at_once(at, u);
	if (neap__learned(layer))
		step_traces(at, u, sums);
	return bytes;
}

static void backward(struct neap__at *at, const struct neap__view *view, void *ds_)
{
	const struct neap__layer *layer = at->layer;
	const real *height = neap__heights(at, view), *ds = ds_, *u = view->u;
	const uint16_t *id = view->active_id;
	int n = layer->n, hard = layer->reset == NEAP_RESET_HARD;
	real *di = (real *)(void *)(at->adjoint + layer->adjoint_at), *du = di + n;
	real *e = at->group->scratch[0];
	real theta = layer->detach ? 0 : (real)layer->threshold, to = (real)layer->reset_value;

	if (layer->reset != NEAP_RESET_SUBTRACT)
		neap__leak_scale(at, NEAP__MEMBRANE_LEAK, du);
	if (hard && layer->detach)
		for (int k = 0; k < view->active; k++)
			e[k] = height[k] * ds[k];
	else if (hard)
		for (int k = 0; k < view->active; k++)
			e[k] = height[k] * (ds[k] + (to - u[k]) * du[id[k]]);
	else
		for (int k = 0; k < view->active; k++)
			e[k] = height[k] * (ds[k] - theta * du[id[k]]);
	if (layer->reset == NEAP_RESET_SUBTRACT)
		neap__leak_scale(at, NEAP__MEMBRANE_LEAK, du);
	if (hard)
		neap__mask_spikes(du, &view->spikes);
	for (int k = 0; k < view->active; k++)
		du[id[k]] += e[k];
	neap__leak_decay(at, NEAP__SECOND_LEAK, di, du);
	for (int i = 0; i < neap__learned(layer); i++)
		neap__leak_add(at, i, view, e);
}

const struct neap__cell_code NEAP_R(neap__cubalif) = {
	.rows = {.state = 2, .adjoint = 2},
	.traces = 3,
	.shown = {{"membrane", 1}, {"current", 0}},
	.tape_max = neap__lif_tape_max,
	.start = start,
	.finish = finish,
	.view = neap__lif_view,
	.backward = backward,
};
