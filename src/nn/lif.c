/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lif: the leaky integrate-and-fire cell, with its four resets. The equations
 * stand beside the code; dS is what reaches a spike from the layer above and
 * through recurrent weights, theta the threshold.
 *
 * Tape of a step and sample: {spikes, near, [prev, pre]} counts (16 bits each),
 * then, sparse: membranes of the units near the threshold (inside the support),
 * [membranes before a reset to zero], ids of the spikes, of the near units,
 * [of the last spikes and of the units those membranes belong to]. Where that
 * would take more than a membrane a unit, near is DENSE and the membranes of all
 * units follow [before the reset, and a bitmap or numbers for the last spikes].
 */
#include "nn/engine.h"

#include <string.h>

enum { DENSE = 0xFFFF };

static inline size_t head_bytes(const struct neap__layer *layer)
{
	size_t bytes = (layer->reset == NEAP_RESET_ZERO ? 4 : 2) * sizeof(uint16_t);
	return bytes < sizeof(real) ? sizeof(real) : bytes;
}

static inline size_t up(size_t bytes)
{
	return (bytes + sizeof(real) - 1) & ~(sizeof(real) - 1);
}

static inline size_t dense_bytes(const struct neap__layer *layer)
{
	size_t n = (size_t)layer->n, bytes = head_bytes(layer) + n * sizeof(real);
	if (layer->reset == NEAP_RESET_ZERO)
		bytes += layer->smooth ? n * sizeof(real) : up((n + 7) / 8);
	return bytes;
}

/* Spikes the reset sees at step t: those of step t - 1 or t; frozen in gradient checks. */
static const real *reset_spikes(const struct neap__at *at, int64_t t, const void *live)
{
	const struct neap_net *net = at->net;
	if (net->frozen != NEAP__FROZEN || !at->layer->detach)
		return live;
	int64_t n = at->layer->n, steps = net->batch->steps;
	return (const real *)(const void *)(net->frozen_spikes[at->layer->index] +
					    (at->sample * steps + t) * n);
}

static void smooth_late_reset(const struct neap__at *at, real *u)
{
	const struct neap__layer *layer = at->layer;
	real theta = (real)layer->threshold;

	if (at->t == 0)
		return; /* nothing has spiked yet */
	const real *s = reset_spikes(at, at->t - 1, at->prev->value);
	for (int i = 0; i < layer->n; i++)
		u[i] = layer->reset == NEAP_RESET_ZERO ? u[i] * (1 - s[i]) : u[i] - theta * s[i];
}

static void smooth_spikes(const struct neap__kernels *k, struct neap__at *at, real *u)
{
	const struct neap__layer *layer = at->layer;
	struct neap_net *net = at->net;
	struct neap__slope slope = neap__slope(layer);
	real *s = at->now->value_room;
	int64_t n = layer->n;

	k->integral[layer->surrogate](s, u, layer->n, &slope);
	at->now->count = layer->n;
	at->now->id = net->identity;
	at->now->value = s;
	if (net->frozen == NEAP__FREEZE) {
		double *to = net->frozen_spikes[layer->index] +
			     (at->sample * net->batch->steps + at->t) * n;
		for (int64_t i = 0; i < n; i++)
			to[i] = (double)s[i];
	}
}

static void reset_at_once(const struct neap__at *at, real *u)
{
	const struct neap__layer *layer = at->layer;
	const struct neap__list *now = at->now;
	real theta = (real)layer->threshold, to = (real)layer->reset_value;
	int hard = layer->reset == NEAP_RESET_HARD;

	if (layer->smooth) {
		const real *s = reset_spikes(at, at->t, now->value);
		for (int i = 0; i < layer->n; i++)
			u[i] = hard ? (1 - s[i]) * u[i] + to * s[i] : u[i] - theta * s[i];
		return;
	}
	for (int k = 0; k < now->count; k++) {
		int i = now->id[k];
		u[i] = hard ? to : u[i] - theta;
	}
}

static size_t tape_dense(const struct neap__at *at, const real *u, unsigned char *tape)
{
	const struct neap__layer *layer = at->layer;
	size_t n = (size_t)layer->n;
	uint16_t *head = (uint16_t *)(void *)tape;
	unsigned char *p = tape + head_bytes(layer);

	memset(tape, 0, head_bytes(layer));
	head[1] = DENSE;
	memcpy(p, u, n * sizeof *u);
	p += n * sizeof *u;
	if (layer->reset == NEAP_RESET_ZERO && layer->smooth) {
		if (at->t > 0)
			memcpy(p, at->prev->value, n * sizeof *u);
		else
			memset(p, 0, n * sizeof *u);
	} else if (layer->reset == NEAP_RESET_ZERO) {
		memset(p, 0, up((n + 7) / 8));
		for (int k = 0; k < at->prev->count; k++)
			p[at->prev->id[k] >> 3] |= (unsigned char)(1 << (at->prev->id[k] & 7));
	}
	return dense_bytes(layer);
}

static uint16_t *put_ids(uint16_t *to, const struct neap__list *list)
{
	memcpy(to, list->id, (size_t)list->count * sizeof *to);
	return to + list->count;
}

static real *put_membranes(real *to, const real *u, const struct neap__list *list)
{
	for (int k = 0; k < list->count; k++)
		to[k] = u[list->id[k]];
	return to + list->count;
}

/* pre: membranes before a reset to zero, else u. */
static size_t tape_step(
	const struct neap__at *at, const real *u, const real *pre, unsigned char *tape)
{
	const struct neap__layer *layer = at->layer;
	static const uint16_t no_ids[1];
	static const struct neap__list none = {.id = no_ids};
	const struct neap__list *now = at->now, *near = at->near_now;
	const struct neap__list *prev = &none, *near_prev = &none;

	if (layer->dense)
		return tape_dense(at, pre, tape);
	if (layer->reset == NEAP_RESET_ZERO) {
		prev = at->prev;
		near_prev = layer->keeps_support ? at->near_prev : &none;
	}
	size_t numbers = (size_t)near->count + near_prev->count;
	size_t ids = (size_t)now->count + near->count + prev->count + near_prev->count;
	size_t bytes = up(head_bytes(layer) + numbers * sizeof(real) + ids * sizeof(uint16_t));
	if (bytes >= dense_bytes(layer))
		return tape_dense(at, pre, tape);

	uint16_t *head = (uint16_t *)(void *)tape;
	head[0] = (uint16_t)now->count;
	head[1] = (uint16_t)near->count;
	if (layer->reset == NEAP_RESET_ZERO) {
		head[2] = (uint16_t)prev->count;
		head[3] = (uint16_t)near_prev->count;
	} else if (sizeof(real) == sizeof(double)) {
		head[2] = head[3] = 0;
	}
	real *v = (real *)(void *)(tape + head_bytes(layer));
	v = put_membranes(v, u, near);
	v = put_membranes(v, pre, near_prev);
	uint16_t *p = (uint16_t *)(void *)v;
	p = put_ids(put_ids(put_ids(put_ids(p, now), near), prev), near_prev);
	memset(p, 0, (size_t)(tape + bytes - (unsigned char *)p));
	return bytes;
}

static size_t forward(struct neap__at *at, unsigned char *tape)
{
	const struct neap__kernels *k = neap__kernels_get();
	const struct neap__layer *layer = at->layer;
	struct neap_net *net = at->net;
	real *u = (real *)(void *)(at->state + layer->state_at);
	real theta = (real)layer->threshold, *pre = u;
	int n = layer->n;
	int late = layer->reset == NEAP_RESET_SUBTRACT || layer->reset == NEAP_RESET_ZERO;

	/* u = beta u + b + W x + V S_{-1} */
	k->decay(u, (real)layer->beta, net->tensors[layer->bias].data, n);
	neap__gather(k, net, layer->weight, at->below, u);
	if (layer->is_recurrent)
		neap__gather(k, net, layer->recurrent, at->prev, u);

	if (layer->reset == NEAP_RESET_ZERO && tape) {
		pre = at->group->wide[0];
		memcpy(pre, u, (size_t)n * sizeof *u);
	}
	if (late && layer->smooth)
		smooth_late_reset(at, u);
	else if (late)
		for (int j = 0; j < at->prev->count; j++) {
			int i = at->prev->id[j];
			u[i] = layer->reset == NEAP_RESET_ZERO ? 0 : u[i] - theta;
		}

	struct neap__list *now = at->now, *near = at->near_now;
	if (layer->smooth) {
		smooth_spikes(k, at, u);
	} else if (!layer->dense && (tape || layer->keeps_support)) {
		now->count = k->support(
			now->room, near->room, &near->count, u, n, theta, (real)layer->cut);
	} else {
		now->count = k->spikes(now->room, u, n, theta);
	}
	size_t bytes = 0;
	if (tape) {
		bytes = tape_step(at, u, pre, tape);
		at->group->support += layer->dense ? n : near->count;
		at->group->recorded += n;
	}
	if (!late)
		reset_at_once(at, u);
	return bytes;
}

/* The membranes of all units are on tape: finds spikes and support as the forward pass did. */
static size_t view_dense(struct neap__at *at, const unsigned char *p, struct neap__view *view)
{
	const struct neap__kernels *k = neap__kernels_get();
	const struct neap__layer *layer = at->layer;
	int n = layer->n, count = 0;
	const real *u = (const real *)(const void *)p;
	struct neap__slope slope = neap__slope(layer);

	if (layer->reset == NEAP_RESET_ZERO) {
		real *after = view->numbers[0];
		p += (size_t)n * sizeof(real);
		view->npre = n;
		view->pre_id = at->net->identity;
		view->pre = u;
		memcpy(after, u, (size_t)n * sizeof *u);
		if (layer->smooth) {
			const real *s = (const real *)(const void *)p;
			for (int i = 0; i < n; i++)
				after[i] *= 1 - s[i];
			view->prev = (struct neap__list){n, at->net->identity, s, NULL, NULL};
		} else {
			for (int i = 0; i < n; i++)
				if (p[i >> 3] >> (i & 7) & 1) {
					after[i] = 0;
					view->ids[2][count++] = (uint16_t)i;
				}
			view->prev = (struct neap__list){count, view->ids[2], NULL, NULL, NULL};
		}
		u = after;
	}
	if (layer->smooth) {
		k->integral[layer->surrogate](view->numbers[1], u, n, &slope);
		view->spikes =
			(struct neap__list){n, at->net->identity, view->numbers[1], NULL, NULL};
	} else {
		int near;
		count = layer->dense ? k->spikes(view->ids[0], u, n, slope.theta)
				     : k->support(view->ids[0], view->ids[1], &near, u, n,
					       slope.theta, slope.cut);
		view->spikes = (struct neap__list){count, view->ids[0], NULL, NULL, NULL};
		if (!layer->dense) {
			real *v = view->numbers[2];
			for (int i = 0; i < near; i++)
				v[i] = u[view->ids[1][i]];
			view->active = near;
			view->active_id = view->ids[1];
			view->u = v;
			return dense_bytes(layer);
		}
	}
	view->active = n;
	view->active_id = at->net->identity;
	view->u = u;
	return dense_bytes(layer);
}

static size_t view_tape(struct neap__at *at, const unsigned char *tape, struct neap__view *view)
{
	const struct neap__layer *layer = at->layer;
	const uint16_t *head = (const uint16_t *)(const void *)tape;
	const unsigned char *p = tape + head_bytes(layer);

	view->prev.count = view->npre = 0;
	if (head[1] == DENSE)
		return view_dense(at, p, view);
	int nprev = layer->reset == NEAP_RESET_ZERO ? head[2] : 0;
	int npre = layer->reset == NEAP_RESET_ZERO ? head[3] : 0;
	const real *v = (const real *)(const void *)p;
	const uint16_t *id = (const uint16_t *)(const void *)(v + head[1] + npre);

	view->u = v;
	view->pre = v + head[1];
	view->spikes = (struct neap__list){head[0], id, NULL, NULL, NULL};
	id += head[0];
	view->active = head[1];
	view->active_id = id;
	id += head[1];
	view->prev = (struct neap__list){nprev, id, NULL, NULL, NULL};
	id += nprev;
	view->npre = npre;
	view->pre_id = id;
	id += npre;
	return up((size_t)((const unsigned char *)id - tape));
}

/* x = (1 - S) x */
static void mask(real *x, const struct neap__list *spikes)
{
	const real *s = spikes->value;
	if (s)
		for (int i = 0; i < spikes->count; i++)
			x[i] *= 1 - s[i];
	else
		for (int k = 0; k < spikes->count; k++)
			x[spikes->id[k]] = 0;
}

/*
 * With dU_{+1} the carried d(in) (for reset to zero (1-S) dU_{+1}), (R) unless detached:
 *   subtract: dS -= theta dU_{+1} (R); dU = beta dU_{+1} + s' dS
 *   zero:     dS -= pre_{+1} dU_{+1} (R, carried as the extra row); dU = beta (1-S) dU_{+1} + s'
 * dS; d(in) = (1 - S_{-1}) dU hard:     dM = beta dH_{+1}; dS += (v_r - H) dM (R); dH = (1-S) dM +
 * s' dS soft:     dM = beta dH_{+1}; dS -= theta dM (R); dH = dM + s' dS
 */
static void backward(
	struct neap__at *at, unsigned char *adjoint, const struct neap__view *view, void *ds_)
{
	const struct neap__kernels *k = neap__kernels_get();
	const struct neap__layer *layer = at->layer;
	struct neap__slope slope = neap__slope(layer);
	real *du = (real *)(void *)(adjoint + layer->adjoint_at), *ds = ds_;
	real *height = at->group->wide[1];
	const real *u = view->u;
	const uint16_t *id = view->active_id;
	real theta = (real)layer->threshold, to = (real)layer->reset_value;
	int n = layer->n, active = view->active;

	if (!layer->detach && layer->reset == NEAP_RESET_SUBTRACT)
		for (int i = 0; i < active; i++)
			ds[i] -= theta * du[id[i]];
	k->scale(du, (real)layer->beta, n);
	if (!layer->detach && layer->reset == NEAP_RESET_HARD)
		for (int i = 0; i < active; i++)
			ds[i] += (to - u[i]) * du[id[i]];
	if (!layer->detach && layer->reset == NEAP_RESET_SOFT)
		for (int i = 0; i < active; i++)
			ds[i] -= theta * du[id[i]];
	if (layer->reset == NEAP_RESET_HARD)
		mask(du, &view->spikes);
	k->slope[layer->surrogate](height, u, active, &slope);
	for (int i = 0; i < active; i++)
		du[id[i]] += height[i] * ds[i];
	if (layer->reset != NEAP_RESET_ZERO)
		return;
	if (!layer->detach) {
		real *extra = du + n;
		const real *pre = view->pre;
		memset(extra, 0, (size_t)n * sizeof *extra);
		for (int i = 0; i < view->npre; i++)
			extra[view->pre_id[i]] = -pre[i] * du[view->pre_id[i]];
	}
	mask(du, &view->prev);
}

static size_t state_bytes(const struct neap_net *net, const struct neap__layer *layer)
{
	(void)net;
	return (size_t)layer->n * sizeof(real);
}

static size_t extra_at(const struct neap__layer *layer)
{
	int extra = layer->reset == NEAP_RESET_ZERO && !layer->detach;
	return extra ? layer->adjoint_at + (size_t)layer->n * sizeof(real) : 0;
}

static size_t adjoint_bytes(const struct neap_net *net, const struct neap__layer *layer)
{
	return (extra_at(layer) ? 2 : 1) * state_bytes(net, layer);
}

static size_t tape_max(const struct neap_net *net, const struct neap__layer *layer)
{
	(void)net;
	return dense_bytes(layer);
}

const struct neap__cell_code NEAP_R(neap__lif) = {
	.state_bytes = state_bytes,
	.adjoint_bytes = adjoint_bytes,
	.tape_max = tape_max,
	.extra_at = extra_at,
	.forward = forward,
	.view = view_tape,
	.backward = backward,
};
