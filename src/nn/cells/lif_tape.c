/* SPDX-License-Identifier: Apache-2.0 */
/* lif_tape.c: writing and reading the tape of cells that spike (lif_tape.h has its layout). */
#include "nn/cells/lif_tape.h"
#include "nn/cells/leak.h"

#include <string.h>

enum { DENSE = 0xFFFF }; /* the mark of a dense tape: a sparse one has fewer units inside */

static inline size_t head_bytes(const struct neap__layer *layer)
{
	size_t bytes = (layer->reset == NEAP_RESET_ZERO ? 4 : 2) * sizeof(uint16_t);
	return bytes < sizeof(real) ? sizeof(real) : bytes;
}

static inline size_t up(size_t bytes)
{
	return (bytes + sizeof(real) - 1) & ~(sizeof(real) - 1);
}

size_t neap__lif_tape_max(const struct neap_net *net, const struct neap__layer *layer)
{
	(void)net;
	size_t n = (size_t)layer->n, rows = 1 + (size_t)neap__learned(layer);
	size_t bytes = head_bytes(layer) + rows * n * sizeof(real);
	if (layer->reset == NEAP_RESET_ZERO)
		bytes += layer->smooth ? n * sizeof(real) : up((n + 7) / 8);
	return bytes;
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
	n *= (size_t)neap__learned(layer);
	if (n)
		memcpy(tape + neap__lif_tape_max(at->net, layer) - n * sizeof(real),
			neap__trace(at, 0), n * sizeof(real));
	return neap__lif_tape_max(at->net, layer);
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

/* Bytes of a sparse tape without a step before and without traces. */
static size_t listed_bytes(const struct neap__layer *layer, int spikes, int near)
{
	size_t ids = (size_t)spikes + (size_t)near;
	return up(head_bytes(layer) + (size_t)near * sizeof(real) + ids * sizeof(uint16_t));
}

int neap__lif_lists(
	const struct neap_net *net, const struct neap__layer *layer, int spikes, int near)
{
	return !layer->dense && layer->reset != NEAP_RESET_ZERO && !neap__learned(layer) &&
	       listed_bytes(layer, spikes, near) < neap__lif_tape_max(net, layer);
}

size_t neap__lif_listed(const struct neap__layer *layer, int spikes, int near, unsigned char *tape,
	struct neap__listing *to)
{
	uint16_t *head = (uint16_t *)(void *)tape;
	real *v = (real *)(void *)(tape + head_bytes(layer));
	size_t bytes = listed_bytes(layer, spikes, near);

	memset(tape + bytes - sizeof(real), 0, sizeof(real)); /* the padding */
	memset(tape, 0, head_bytes(layer));
	head[0] = (uint16_t)spikes;
	head[1] = (uint16_t)near;
	to->membranes = v;
	to->spikes = (uint16_t *)(void *)(v + near);
	to->near = to->spikes + spikes;
	return bytes;
}

size_t neap__lif_tape(
	const struct neap__at *at, const real *membranes, const real *pre, unsigned char *tape)
{
	const struct neap__layer *layer = at->layer;
	static const uint16_t no_ids[1];
	static const struct neap__list none = {.id = no_ids};
	const struct neap__list *now = at->now, *near = at->near_now;
	const struct neap__list *prev = &none, *near_prev = &none;

	if (layer->dense)
		return tape_dense(at, pre, tape);
	if (neap__lif_lists(at->net, layer, now->count, near->count)) {
		struct neap__listing to;
		size_t bytes = neap__lif_listed(layer, now->count, near->count, tape, &to);
		memcpy(to.membranes, membranes, (size_t)near->count * sizeof *membranes);
		put_ids(to.spikes, now);
		put_ids(to.near, near);
		return bytes;
	}
	if (layer->reset == NEAP_RESET_ZERO) {
		prev = at->prev;
		near_prev = layer->keeps_support ? at->near_prev : &none;
	}
	size_t numbers =
		(size_t)near->count * (1 + (size_t)neap__learned(layer)) + (size_t)near_prev->count;
	size_t ids = (size_t)now->count + near->count + prev->count + near_prev->count;
	size_t bytes = up(head_bytes(layer) + numbers * sizeof(real) + ids * sizeof(uint16_t));
	if (bytes >= neap__lif_tape_max(at->net, layer))
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
	memcpy(v, membranes, (size_t)near->count * sizeof *v);
	v = put_membranes(v + near->count, pre, near_prev);
	for (int i = 0; i < neap__learned(layer); i++)
		v = put_membranes(v, neap__trace(at, i), near);
	uint16_t *p = (uint16_t *)(void *)v;
	p = put_ids(put_ids(put_ids(put_ids(p, now), near), prev), near_prev);
	memset(p, 0, (size_t)(tape + bytes - (unsigned char *)p));
	return bytes;
}

/* Reads the membranes before a reset to zero, and resets them; returns those after it. */
static const real *reset_membranes(
	const struct neap__at *at, const unsigned char *p, struct neap__view *view)
{
	const struct neap__layer *layer = at->layer;
	const real *before = (const real *)(const void *)p;
	real *after = view->numbers[0];
	int n = layer->n, count = 0;

	p += (size_t)n * sizeof(real);
	view->npre = n;
	view->pre_id = at->net->identity;
	view->pre = before;
	memcpy(after, before, (size_t)n * sizeof *before);
	if (layer->smooth) {
		const real *s = (const real *)(const void *)p;
		for (int i = 0; i < n; i++)
			after[i] *= 1 - s[i];
		view->prev = (struct neap__list){n, at->net->identity, s, NULL, NULL};
		return after;
	}
	for (int i = 0; i < n; i++)
		if (p[i >> 3] >> (i & 7) & 1) {
			after[i] = 0;
			view->ids[2][count++] = (uint16_t)i;
		}
	view->prev = (struct neap__list){count, view->ids[2], NULL, NULL, NULL};
	return after;
}

/* Reads a dense tape: finds spikes and support from the membranes, as the forward pass did. */
static size_t view_dense(struct neap__at *at, const unsigned char *p, struct neap__view *view)
{
	const struct neap__kernels *k = at->net->kernels;
	const struct neap__layer *layer = at->layer;
	int n = layer->n;
	const real *u = (const real *)(const void *)p;
	struct neap__slope slope = neap__slope(layer);
	size_t most = neap__lif_tape_max(at->net, layer);

	view->whole_trace = 1;
	for (int i = 0; i < neap__learned(layer); i++)
		view->trace[i] = p - head_bytes(layer) + most -
				 (size_t)(neap__learned(layer) - i) * n * sizeof(real);

	if (layer->reset == NEAP_RESET_ZERO)
		u = reset_membranes(at, p, view);
	if (layer->smooth) {
		k->integral[layer->surrogate](view->numbers[1], u, n, &slope);
		view->spikes =
			(struct neap__list){n, at->net->identity, view->numbers[1], NULL, NULL};
	} else {
		int near, count;
		count = layer->dense ? k->spikes(view->ids[0], u, n, slope.theta)
				     : k->support(view->ids[0], view->ids[1], view->numbers[2],
					       &near, u, n, slope.theta, slope.cut);
		view->spikes = (struct neap__list){count, view->ids[0], NULL, NULL, NULL};
		if (!layer->dense) {
			view->active = near;
			view->active_id = view->ids[1];
			view->u = view->numbers[2];
			return most;
		}
	}
	view->active = n;
	view->active_id = at->net->identity;
	view->u = u;
	return most;
}

size_t neap__lif_view(struct neap__at *at, const unsigned char *tape, struct neap__view *view)
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
	const real *traces = v + head[1] + npre;
	const uint16_t *id =
		(const uint16_t *)(const void *)(traces + head[1] * neap__learned(layer));

	view->whole_trace = 0;
	for (int i = 0; i < neap__learned(layer); i++)
		view->trace[i] = traces + (size_t)i * head[1];
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
