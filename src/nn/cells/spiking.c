/* SPDX-License-Identifier: Apache-2.0 */
/* spiking.c: from what a threshold sees to spikes and tape, and back (spiking.h). */
#include "nn/cells/spiking.h"
#include "nn/cells/lif_tape.h"

const real *neap__reset_spikes(const struct neap__at *at, int64_t t, const void *live)
{
	const struct neap_net *net = at->net;
	if (net->frozen != NEAP__FROZEN || !at->layer->detach)
		return live;
	int64_t n = at->layer->n, steps = net->batch->steps;
	return (const real *)(const void *)(net->frozen_spikes[at->layer->index] +
					    (at->sample * steps + t) * n);
}

/* x += amount S_{-1}; s: the numbers of a smooth net */
static void add_last(const struct neap__at *at, real *x, real amount, const real *s)
{
	if (at->layer->smooth)
		for (int i = 0; i < at->layer->n; i++)
			x[i] += amount * s[i];
	else
		for (int k = 0; k < at->prev->count; k++)
			x[at->prev->id[k]] += amount;
}

void neap__delayed_reset(const struct neap__at *at, real *u, real amount)
{
	if (at->t > 0)
		add_last(at, u, -amount, neap__reset_spikes(at, at->t - 1, at->prev->value));
}

void neap__delayed_spikes(const struct neap__at *at, real *x, real amount)
{
	if (at->t > 0)
		add_last(at, x, amount, at->prev->value);
}

void neap__reset_at_once(const struct neap__at *at, real *u)
{
	const struct neap__layer *layer = at->layer;
	const struct neap__list *now = at->now;
	real theta = (real)layer->threshold, to = (real)layer->reset_value;
	int hard = layer->reset == NEAP_RESET_HARD;

	if (layer->smooth) {
		const real *s = neap__reset_spikes(at, at->t, now->value);
		for (int i = 0; i < layer->n; i++)
			u[i] = hard ? (1 - s[i]) * u[i] + to * s[i] : u[i] - theta * s[i];
		return;
	}
	for (int k = 0; k < now->count; k++) {
		int i = now->id[k];
		u[i] = hard ? to : u[i] - theta;
	}
}

void neap__mask_spikes(real *x, const struct neap__list *spikes)
{
	const real *s = spikes->value;
	if (s)
		for (int i = 0; i < spikes->count; i++)
			x[i] *= 1 - s[i];
	else
		for (int k = 0; k < spikes->count; k++)
			x[spikes->id[k]] = 0;
}

void neap__add_spikes(real *x, const struct neap__list *spikes, real amount)
{
	const real *s = spikes->value;
	if (s)
		for (int i = 0; i < spikes->count; i++)
			x[i] += amount * s[i];
	else
		for (int k = 0; k < spikes->count; k++)
			x[spikes->id[k]] += amount;
}

void neap__smooth_spikes(struct neap__at *at)
{
	const struct neap__layer *layer = at->layer;
	struct neap_net *net = at->net;
	const real *s = at->now->value_room;
	int64_t n = layer->n;

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

size_t neap__spike(struct neap__at *at, const real *u, const real *pre, unsigned char *tape)
{
	const struct neap__kernels *k = at->net->kernels;
	const struct neap__layer *layer = at->layer;
	struct neap__list *now = at->now, *near = at->near_now;
	struct neap__slope slope = neap__slope(layer);

	if (layer->smooth) {
		k->integral[layer->surrogate](now->value_room, u, layer->n, &slope);
		neap__smooth_spikes(at);
	} else if (!layer->dense && (tape || layer->keeps_support)) {
		now->count = k->support(now->room, near->room, at->group->scratch[1], &near->count,
			u, layer->n, slope.theta, slope.cut);
	} else {
		now->count = k->spikes(now->room, u, layer->n, slope.theta);
	}
	return tape ? neap__spike_tape(at, at->group->scratch[1], pre, tape) : 0;
}

size_t neap__spike_tape(
	struct neap__at *at, const real *values, const real *pre, unsigned char *tape)
{
	const struct neap__layer *layer = at->layer;

	at->group->support += layer->dense ? layer->n : at->near_now->count;
	at->group->recorded += layer->n;
	return neap__lif_tape(at, values, pre, tape);
}

const real *neap__heights(const struct neap__at *at, const struct neap__view *view)
{
	const struct neap__layer *layer = at->layer;
	struct neap__slope slope = neap__slope(layer);

	at->net->kernels->slope[layer->surrogate](
		at->group->scratch[1], view->u, view->active, &slope);
	real *height = at->group->scratch[1];
	for (int i = 0; i < view->active && layer->slope != 1; i++)
		height[i] *= (real)layer->slope;
	return height;
}
