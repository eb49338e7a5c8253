/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lif.c: the leaky integrate-and-fire cell with its four resets. `subtract` and `zero` come one
 * step later, `hard` and `soft` at once:
 *     subtract: U = beta U_{-1} + in - theta S_{-1}; S = H(U - theta)
 *     zero:     pre = beta U_{-1} + in; U = (1 - S_{-1}) pre; S = H(U - theta)
 *     hard:     H = beta M_{-1} + in; S = H(H - theta); M = (1 - S) H + v_r S
 *     soft:     H = beta M_{-1} + in; S = H(H - theta); M = H - theta S
 * Backward, where gS includes V'd(in)_{+1}:
 *     subtract: dS = gS - theta dU_{+1} (R); dU = s' dS + beta dU_{+1}; d(in) = dU
 *     zero:     dS = gS - pre_{+1} dU_{+1} (R); dU = s' dS + beta (1 - S) dU_{+1};
 *               d(in) = (1 - S_{-1}) dU
 *     hard:     dM = beta dH_{+1}; dS = gS + (v_r - H) dM (R); dH = (1 - S) dM + s' dS;
 *               d(in) = dH
 *     soft:     dM = beta dH_{+1}; dS = gS - theta dM (R); dH = dM + s' dS; d(in) = dH
 *
 * State: U (or M), and a bitmap of the last spikes where the next step needs them; `zero` not
 * detached also a bitmap of the units inside the support. Adjoint: d(in); `zero` not detached also
 * the row -pre dU. Tape: lif_tape.h.
 */
#include "nn/cells/leak.h"
#include "nn/cells/lif_tape.h"
#include "nn/cells/spiking.h"
#include "nn/core/forward.h"

#include <string.h>

/* u = (1 - S_{-1}) u */
static void delayed_zero(const struct neap__at *at, real *u)
{
	const struct neap__layer *layer = at->layer;

	if (at->t == 0)
		return; /* no unit has spiked yet */
	if (layer->smooth) {
		const real *s = neap__reset_spikes(at, at->t - 1, at->prev->value);
		for (int i = 0; i < layer->n; i++)
			u[i] *= 1 - s[i];
		return;
	}
	for (int j = 0; j < at->prev->count; j++)
		u[at->prev->id[j]] = 0;
}

/* Moves the trace from step t to t + 1: P = beta P + beta' U, through the reset (leak.h). */
static void step_traces(const struct neap__at *at, const real *u)
{
	enum neap_reset reset = at->layer->reset;
	real *trace = neap__trace(at, 0);

	if (reset == NEAP_RESET_HARD)
		neap__mask_spikes(trace, at->now);
	neap__leak_trace(at, NEAP__MEMBRANE_LEAK, trace, u);
	if (reset == NEAP_RESET_ZERO)
		neap__mask_spikes(trace, at->now);
}

/* Ends a step from membranes before the reset: spikes, tape, reset. */
static size_t spike(struct neap__at *at, void *membranes, unsigned char *tape)
{
	const struct neap__layer *layer = at->layer;
	real *u = membranes, *pre = u;
	int n = layer->n;
	int delayed = layer->reset == NEAP_RESET_SUBTRACT || layer->reset == NEAP_RESET_ZERO;

	if (layer->reset == NEAP_RESET_ZERO && tape) {
		pre = at->group->scratch[0];
		memcpy(pre, u, (size_t)n * sizeof *u);
	}
	if (layer->reset == NEAP_RESET_ZERO)
		delayed_zero(at, u);
	if (layer->reset == NEAP_RESET_SUBTRACT)
		neap__delayed_reset(at, u, (real)layer->threshold);
	size_t bytes = neap__spike(at, u, pre, tape);
	if (!delayed)
		neap__reset_at_once(at, u);
	if (neap__learned(layer))
		step_traces(at, u);
	return bytes;
}

/* u = beta u + (b + W x + V S_{-1}) */
static size_t finish(struct neap__at *at, void *sums, unsigned char *tape)
{
	real *u = (real *)(void *)(at->state + at->layer->state_at);

	neap__leak_decay(at, NEAP__MEMBRANE_LEAK, u, sums);
	return spike(at, u, tape);
}

/* The constants of `finish`, for a step together with its products. */
static int leaks(const struct neap__layer *layer, void *step_)
{
	struct neap__leak_step *step = step_;

	if (layer->reset == NEAP_RESET_ZERO || layer->smooth || layer->dense ||
		neap__learned(layer) || layer->leaks[NEAP__MEMBRANE_LEAK].tensor >= 0)
		return 0;
	step->beta = (real)layer->leaks[NEAP__MEMBRANE_LEAK].start;
	step->theta = (real)layer->threshold;
	step->amount = layer->reset == NEAP_RESET_SUBTRACT ? step->theta : 0;
	step->cut = (real)layer->cut;
	return 1;
}

static size_t stepped(struct neap__at *at, const void *values, unsigned char *tape)
{
	real *u = (real *)(void *)(at->state + at->layer->state_at);
	size_t bytes = tape ? neap__spike_tape(at, values, u, tape) : 0;

	if (at->layer->reset != NEAP_RESET_SUBTRACT)
		neap__reset_at_once(at, u);
	return bytes;
}

/* The constants of `finish`, for many steps at a time. */
static void walk(const struct neap__layer *layer, void *walk_)
{
	static const enum neap__membrane_walk_reset resets[] = {
		[NEAP_RESET_SUBTRACT] = NEAP__WALK_SUBTRACT,
		[NEAP_RESET_ZERO] = NEAP__WALK_ZERO,
		[NEAP_RESET_HARD] = NEAP__WALK_HARD,
		[NEAP_RESET_SOFT] = NEAP__WALK_SOFT,
	};
	struct neap__membrane_walk *w = walk_;

	w->reset = resets[layer->reset];
	w->beta = (real)layer->leaks[NEAP__MEMBRANE_LEAK].start;
	w->theta = (real)layer->threshold;
	w->to = (real)layer->reset_value;
}

/*
 * du comes as d(in)_{+1}: for `zero` that is (1 - S) dU_{+1}, and -pre_{+1} dU_{+1} is the extra
 * row, which ds has in it already.
 */
static void backward(struct neap__at *at, const struct neap__view *view, void *ds_)
{
	const struct neap__layer *layer = at->layer;
	real *du = (real *)(void *)(at->adjoint + layer->adjoint_at), *ds = ds_;
	const real *u = view->u, *height = neap__heights(at, view);
	const uint16_t *id = view->active_id;
	real theta = (real)layer->threshold, to = (real)layer->reset_value;
	int n = layer->n, active = view->active;

	if (!layer->detach && layer->reset == NEAP_RESET_SUBTRACT)
		for (int i = 0; i < active; i++)
			ds[i] -= theta * du[id[i]];
	neap__leak_scale(at, NEAP__MEMBRANE_LEAK, du);
	if (!layer->detach && layer->reset == NEAP_RESET_HARD)
		for (int i = 0; i < active; i++)
			ds[i] += (to - u[i]) * du[id[i]];
	if (!layer->detach && layer->reset == NEAP_RESET_SOFT)
		for (int i = 0; i < active; i++)
			ds[i] -= theta * du[id[i]];
	if (layer->reset == NEAP_RESET_HARD)
		neap__mask_spikes(du, &view->spikes);
	for (int i = 0; i < active; i++)
		du[id[i]] += ds[i] *= height[i];
	if (neap__learned(layer))
		neap__leak_add(at, NEAP__MEMBRANE_LEAK, view, ds);
	if (layer->reset != NEAP_RESET_ZERO)
		return;
	if (!layer->detach) {
		real *extra = du + n;
		const real *pre = view->pre;
		memset(extra, 0, (size_t)n * sizeof *extra);
		for (int i = 0; i < view->npre; i++)
			extra[view->pre_id[i]] = -pre[i] * du[view->pre_id[i]];
	}
	neap__mask_spikes(du, &view->prev);
}

static size_t extra_at(const struct neap__layer *layer)
{
	int extra = layer->reset == NEAP_RESET_ZERO && !layer->detach;
	return extra ? layer->adjoint_at + (size_t)layer->n * sizeof(real) : 0;
}

static size_t adjoint_bytes(const struct neap_net *net, const struct neap__layer *layer)
{
	(void)net;
	return (extra_at(layer) ? 2 : 1) * (size_t)layer->n * sizeof(real);
}

const struct neap__cell_code NEAP_R(neap__lif) = {
	.rows = {.state = 1},
	.traces = 1,
	.shown = {{"membrane", 0}},
	.adjoint_bytes = adjoint_bytes,
	.tape_max = neap__lif_tape_max,
	.extra_at = extra_at,
	.start = neap__start_bias,
	.finish = finish,
	.leaks = leaks,
	.stepped = stepped,
	.walked = spike,
	.walk = walk,
	.lists = neap__lif_lists,
	.listed = neap__lif_listed,
	.view = neap__lif_view,
	.backward = backward,
};
