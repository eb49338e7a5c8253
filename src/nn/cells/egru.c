/* SPDX-License-Identifier: Apache-2.0 */
/*
 * egru.c: the event-based GRU (Subramoney, Nazeer, Schoene, Mayr, Kappel 2023). Columns of W and b
 * are u, r, z, n each, columns of V are u and r; V_z is the tensor `candidate`. S = H(c - theta):
 *     u, r = sigmoid(W x + V y_{-1} + b); z = tanh(W_z x + V_z (r y_{-1}) + b_z)
 *     c = u z + (1 - u) c_{-1} - y_{-1}; y = c S
 *     dy = gy + V'd(u, r)_{+1} + r_{+1} V_z'd(z)_{+1} - dc_{+1}
 *     dc = (S + c s') dy + (1 - u_{+1}) dc_{+1}
 *     d(u) = (z - c_{-1}) u (1 - u) dc; d(z) = u (1 - z^2) dc
 *     d(r) = y_{-1} r (1 - r) V_z'd(z)
 * Outputs are events with numbers: products with weights, dy and the gradients of V take in the
 * units alone that spike, or whose s' is not 0.
 *
 * State: c, and a bitmap of the last events. Adjoint: d(in) 3n, (1 - u) dc, and the row that is
 * added to dy beside the products. Tape: u, r, z, c_{-1}; c and y are computed again from the tape.
 */
#include "nn/cells/dense_outputs.h"
#include "nn/core/forward.h"

#include <math.h>
#include <string.h>

enum { GATES = 3, TAPE = 4 };

/* c = u z + (1 - u) before - y, y the last outputs */
__attribute__((noinline)) static void next_state(real *c, const real *u, const real *z,
	const real *c_prev, const struct neap__list *y, int n)
{
	const real *v = y->value;

	for (int i = 0; i < n; i++)
		c[i] = u[i] * z[i] + (1 - u[i]) * c_prev[i];
	for (int k = 0; k < y->count; k++)
		c[y->id[k]] -= v[k];
}

/* The events of c: ids and numbers go to the rooms given. */
static struct neap__list events(
	const struct neap__at *at, const real *c, uint16_t *ids, real *numbers)
{
	const struct neap__layer *layer = at->layer;
	const struct neap__kernels *k = at->net->kernels;
	struct neap__slope slope = neap__slope(layer);
	struct neap__list y = {.id = ids, .value = numbers};

	if (layer->smooth) {
		k->integral[layer->surrogate](numbers, c, layer->n, &slope);
		for (int i = 0; i < layer->n; i++)
			numbers[i] *= c[i];
		y.id = at->net->identity;
		y.count = layer->n;
		return y;
	}
	y.count = k->spikes(ids, c, layer->n, slope.theta);
	for (int i = 0; i < y.count; i++)
		numbers[i] = c[ids[i]];
	return y;
}

/* Lists the units whose y depends on c; returns how many. */
static int active(const struct neap__layer *layer, const real *c, uint16_t *ids)
{
	real theta = (real)layer->threshold, low = theta - (real)layer->cut;
	int count = 0, all = layer->smooth || isinf(layer->cut);

	for (int i = 0; i < layer->n; i++)
		if (all || c[i] > theta || c[i] >= low)
			ids[count++] = (uint16_t)i;
	return count;
}

static void recall(
	const struct neap__layer *layer, const unsigned char *state, struct neap__list *list)
{
	const real *c = (const real *)(const void *)(state + layer->state_at);
	real *numbers = list->value_room;

	for (int k = 0; k < list->count; k++)
		numbers[k] = c[list->id[k]];
	list->value = numbers;
}

/* r y_{-1} */
static struct neap__list gate(struct neap__at *at, void *sums, void *room)
{
	int n = at->layer->n;
	real *r = (real *)sums + n, *gated = room;
	const struct neap__list *y = at->prev;
	const real *v = y->value;

	at->net->kernels->sigmoids(sums, 2 * n);
	for (int k = 0; k < y->count; k++)
		gated[k] = r[y->id[k]] * v[k];
	return (struct neap__list){.count = y->count, .id = y->id, .value = gated};
}

static size_t finish(struct neap__at *at, void *sums, unsigned char *tape)
{
	const struct neap__layer *layer = at->layer;
	struct neap__list *now = at->now;
	int n = layer->n;
	real *u = sums, *z = u + 2 * n, *c = (real *)(void *)(at->state + layer->state_at);
	real *c_prev = at->group->scratch[0];
	size_t row = (size_t)n * sizeof *c;

	at->net->kernels->tanhs(z, n);
	memcpy(c_prev, c, row);
	next_state(c, u, z, c_prev, at->prev, n);
	struct neap__list y = events(at, c, now->room, now->value_room);
	now->count = y.count;
	now->id = y.id;
	now->value = y.value;
	if (!tape)
		return 0;
	at->group->support += active(layer, c, at->near_now->room);
	at->group->recorded += n;
	memcpy(tape, u, GATES * row);
	memcpy(tape + GATES * row, c_prev, row);
	return TAPE * row;
}

static size_t view_tape(struct neap__at *at, const unsigned char *tape, struct neap__view *view)
{
	const struct neap__layer *layer = at->layer;
	int n = layer->n;
	const real *u = (const real *)(const void *)tape, *c_prev = u + GATES * (size_t)n;
	real *c = view->numbers[0], *active_c = view->numbers[2];

	struct neap__list last = events(at, c_prev, view->ids[0], view->numbers[1]);
	if (at->t == 0)
		last.count = 0;
	next_state(c, u, u + 2 * (size_t)n, c_prev, &last, n);
	view->spikes = events(at, c, view->ids[0], view->numbers[1]);
	view->active = active(layer, c, view->ids[1]);
	view->active_id = view->ids[1];
	for (int k = 0; k < view->active; k++)
		active_c[k] = c[view->ids[1][k]];
	view->u = active_c;
	view->outputs = tape;
	view->gated = (struct neap__list){
		.count = at->t ? active(layer, c_prev, view->ids[2]) : 0, .id = view->ids[2]};
	return TAPE * (size_t)n * sizeof(real);
}

static size_t extra_at(const struct neap__layer *layer)
{
	return layer->adjoint_at + (GATES + 1) * (size_t)layer->n * sizeof(real);
}

/* dy/dc at the active units, in group->scratch[1]: S + c s' */
static const real *slopes(const struct neap__at *at, const struct neap__view *view)
{
	const struct neap__layer *layer = at->layer;
	const struct neap__kernels *k = at->net->kernels;
	struct neap__slope slope = neap__slope(layer);
	real *height = at->group->scratch[1], *step = at->group->scratch[0];
	const real *c = view->u;

	k->slope[layer->surrogate](height, c, view->active, &slope);
	if (layer->smooth)
		k->integral[layer->surrogate](step, c, view->active, &slope);
	for (int i = 0; i < view->active; i++)
		height[i] = (layer->smooth ? step[i] : c[i] > slope.theta) + c[i] * height[i];
	return height;
}

static void backward(struct neap__at *at, const struct neap__view *view, void *ds)
{
	const struct neap__layer *layer = at->layer;
	size_t n = (size_t)layer->n;
	const real *u = view->outputs, *z = u + 2 * n, *c_prev = z + n;
	const real *dy = ds, *height = slopes(at, view);
	real *du = (real *)(void *)(at->adjoint + layer->adjoint_at), *dr = du + n, *dz = dr + n;
	real *dc = dz + n, *extra = (real *)(void *)(at->adjoint + extra_at(layer));

	for (int k = 0; k < view->active; k++)
		dc[view->active_id[k]] += height[k] * dy[k];
	memset(dr, 0, n * sizeof *dr);
	for (size_t i = 0; i < n; i++) {
		du[i] = (z[i] - c_prev[i]) * u[i] * (1 - u[i]) * dc[i];
		dz[i] = u[i] * (1 - z[i] * z[i]) * dc[i];
		extra[i] = -dc[i];
		dc[i] *= 1 - u[i];
	}
}

/* Through r y_{-1}; its list shrinks to the units that spiked. */
static void ungate(struct neap__at *at, struct neap__view *view, const void *q_)
{
	const struct neap__layer *layer = at->layer;
	size_t n = (size_t)layer->n;
	const real *r = (const real *)view->outputs + n, *c_prev = r + 2 * n, *q = q_;
	real *dr = (real *)(void *)(at->adjoint + layer->adjoint_at) + n;
	real *extra = (real *)(void *)(at->adjoint + extra_at(layer)), *gated = view->numbers[0];
	real theta = (real)layer->threshold;
	uint16_t *id = view->ids[2];
	int asked = view->gated.count, count = 0;

	if (layer->smooth)
		events(at, c_prev, NULL, gated);
	for (int k = 0; k < asked; k++) {
		int j = id[k];
		real y = layer->smooth ? gated[j] : c_prev[j];
		extra[j] += r[j] * q[k];
		if (!layer->smooth && !(y > theta))
			continue;
		dr[j] = q[k] * y * r[j] * (1 - r[j]);
		gated[count] = r[j] * y;
		id[count++] = (uint16_t)j;
	}
	view->gated = (struct neap__list){.count = count, .id = id, .value = gated};
}

const struct neap__cell_code NEAP_R(neap__egru) = {
	.widths = {.in = GATES, .own = 2, .sums = GATES, .candidate_at = 2},
	.outputs = NEAP__OUTPUT_VALUES,
	.has_candidate = 1,
	.is_dense = 1,
	.shown = {{"cell", 0}},
	.rows = {.state = 1, .adjoint = GATES + 2, .tape = TAPE},
	.extra_at = extra_at,
	.start = neap__start_bias,
	.finish = finish,
	.recall = recall,
	.gate = gate,
	.ungate = ungate,
	.view = view_tape,
	.backward = backward,
};
