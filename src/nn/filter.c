/* SPDX-License-Identifier: Apache-2.0 */
/* filter.c: sizes of images, and the tables of shared weights (filter.h). */
#include "nn/filter.h"
#include "nn/core/cell.h"
#include "base/fail.h"
#include "kern/kern.h"

#include <errno.h>

enum {
	/* Taps of a layer, which bounds the table that a short text can ask for: 64 MiB. */
	TAPS_MOST = 1 << 24,
	NO_POOL = UINT16_MAX
};

/* ---- sizes ---- */

static int refuse_plane(const struct neap__layer *layer)
{
	const struct neap__plane *f = &layer->from;

	if (f->channels)
		return neap__fail(NEAP_EUSAGE,
			"--net: layer %d has the shape %dx%dx%d, but receives %d %s. Set %s to the "
			"CHANNELSxHEIGHTxWIDTH of these",
			layer->index, f->channels, f->height, f->width, layer->below,
			layer->index ? "outputs" : "inputs", layer->index ? "shape" : "--shape");
	if (layer->index)
		return neap__fail(NEAP_EUSAGE,
			"--net: %s of layer %d needs the channels, height and width of the outputs "
			"that it receives. Add its key shape, such as shape=16x8x8",
			layer->conv[0] ? "conv" : "pool", layer->index);
	return neap__fail(NEAP_EUSAGE,
		"--net: %s of layer 0 needs the channels, height and width of the inputs, which "
		"the data does not specify. Pass --shape CHANNELSxHEIGHTxWIDTH, such as --shape "
		"2x34x34",
		layer->conv[0] ? "conv" : "pool");
}

/* 1: channels, height and width have so many units in all. */
static int is_plane_of(const struct neap__plane *f, int units)
{
	return (int64_t)f->channels * f->height <= units / f->width &&
	       f->channels * f->height * f->width == units;
}

/* Finds out what arrives: the plane of the layer below, what the key specifies, or the plane of the
 * inputs.
 */
static int settle_from(struct neap__layer *layer)
{
	const struct neap__layer *below = neap__source_of(layer, 0);
	struct neap__plane *f = &layer->from;
	int is_conv = neap__from_conv(layer);

	if (is_conv && !f->channels)
		*f = below->plane;
	if (is_conv && (f->channels != below->plane.channels || f->height != below->plane.height ||
			       f->width != below->plane.width))
		return neap__fail(NEAP_EUSAGE,
			"--net: layer %d has the shape %dx%dx%d, but the layer below has %dx%dx%d. "
			"Remove the key shape",
			layer->index, f->channels, f->height, f->width, below->plane.channels,
			below->plane.height, below->plane.width);
	if (!f->channels || !is_plane_of(f, layer->below))
		return refuse_plane(layer);
	for (int i = 0; i < 2 && layer->pool[0]; i++)
		if (layer->pool[i] > (i ? f->width : f->height))
			return neap__fail(NEAP_EUSAGE,
				"--net: pool=%dx%d of layer %d is larger than the %dx%d units that "
				"it receives. Reduce it",
				layer->pool[0], layer->pool[1], layer->index, f->height, f->width);
	if (layer->pool[0] && layer->pooling == NEAP__POOL_MAX && below &&
		!(below->cell->traits & (NEAP__HAS_FILTER | NEAP__HAS_SURROGATE)))
		return neap__fail(NEAP_EUSAGE,
			"--net: pooling=max of layer %d needs spikes, but a layer of %s has "
			"numbers as outputs. Use pooling=sum or pooling=avg",
			layer->index, below->cell->name);
	return 0;
}

struct neap__plane neap__pooled_plane(const struct neap__layer *layer)
{
	struct neap__plane plane = layer->from;

	if (layer->pool[0]) {
		plane.height /= layer->pool[0];
		plane.width /= layer->pool[1];
	}
	return plane;
}

/* Units of a convolution along an axis; 0 or less: its kernel does not fit. */
static int64_t steps_along(const struct neap__layer *layer, int axis, int size)
{
	int64_t span = (int64_t)layer->dilation[axis] * (layer->conv[axis] - 1) + 1;
	int64_t room = (int64_t)size + 2 * (int64_t)layer->pad[axis] - span;

	return room < 0 ? 0 : room / layer->stride[axis] + 1;
}

static int settle_conv(struct neap__layer *layer)
{
	struct neap__plane in = neap__pooled_plane(layer);
	int64_t high = steps_along(layer, 0, in.height), wide = steps_along(layer, 1, in.width);
	int64_t rows = (int64_t)in.channels * layer->conv[0] * layer->conv[1];

	if (layer->channels < 1)
		return neap__fail(NEAP_EUSAGE,
			"--net: conv of layer %d needs the number of its channels, such as "
			"channels=16",
			layer->index);
	if (in.channels % layer->groups || layer->channels % layer->groups)
		return neap__fail(NEAP_EUSAGE,
			"--net: groups=%d of layer %d must divide the %d channels that it receives "
			"and its own %d",
			layer->groups, layer->index, in.channels, layer->channels);
	if (high < 1 || wide < 1)
		return neap__fail(NEAP_EUSAGE,
			"--net: conv=%dx%d of layer %d is larger than the %dx%d units that it "
			"receives. Reduce it, or increase pad",
			layer->conv[0], layer->conv[1], layer->index, in.height, in.width);
	if (high * wide > NEAP__UNITS_MOST / layer->channels || rows > UINT16_MAX)
		return neap__fail(NEAP_EUSAGE,
			"--net: conv of layer %d has %d channels of %lldx%lld units and %lld rows "
			"of weights; the limit is %d of either. Reduce channels, or increase "
			"stride or pool",
			layer->index, layer->channels, (long long)high, (long long)wide,
			(long long)rows, NEAP__UNITS_MOST);
	layer->plane = (struct neap__plane){layer->channels, (int)high, (int)wide};
	int n = layer->channels * (int)high * (int)wide;
	if (layer->n && layer->n != n)
		return neap__fail(NEAP_EUSAGE,
			"--net: layer %d has the size %d, but its conv makes %d units. Remove the "
			"size",
			layer->index, layer->n, n);
	layer->n = n;
	return 0;
}

/* Keys of conv, without it. */
static int has_strays(const struct neap__layer *l)
{
	int strays = l->channels != 0 || l->groups != 1;

	for (int i = 0; i < 2; i++)
		strays |= l->stride[i] != 1 || l->pad[i] != 0 || l->dilation[i] != 1;
	return !l->conv[0] && strays;
}

int neap__filter_settle(const struct neap_net *net, struct neap__layer *layer)
{
	if (layer->pool[0] == 1 && layer->pool[1] == 1)
		layer->pool[0] = layer->pool[1] = 0;
	if (has_strays(layer))
		return neap__fail(NEAP_EUSAGE,
			"--net: layer %d has channels, stride, pad, dilation or groups, but no "
			"conv. Add the size of its kernel, such as conv=5",
			layer->index);
	if (!neap__has_filter(layer))
		return layer->from.channels && !is_plane_of(&layer->from, layer->below)
			       ? refuse_plane(layer)
			       : 0;
	if (layer->nsources > 1)
		return neap__fail(NEAP_EUSAGE,
			"--net: layer %d has %s and receives %d layers; conv and pool apply to "
			"one. "
			"Use from with one layer, or a layer without conv and pool",
			layer->index, layer->conv[0] ? "conv" : "pool", layer->nsources);
	if (layer->source[0].layer < 0 && !layer->from.channels)
		layer->from = net->layers[0].from;
	if (layer->density < 1)
		return neap__fail(NEAP_EUSAGE,
			"--net: layer %d has %s and density=%g, but shared weights have the "
			"density 1. Remove density",
			layer->index, layer->conv[0] ? "conv" : "pool", layer->density);
	NEAP_TRY(settle_from(layer));
	return layer->conv[0] ? settle_conv(layer) : 0;
}

int neap__filter_rows(const struct neap__layer *layer)
{
	struct neap__plane in = neap__pooled_plane(layer);
	int area = layer->conv[0] ? layer->conv[0] * layer->conv[1] : in.height * in.width;

	return neap__has_filter(layer) ? in.channels * area : layer->below;
}

int neap__filter_columns(const struct neap__layer *layer)
{
	return layer->conv[0] ? layer->channels / layer->groups : layer->widths.in;
}

int neap__filter_biases(const struct neap__layer *layer)
{
	return layer->conv[0] ? layer->channels : layer->widths.sums;
}

/* Outputs of a pool that count: weights of a sum over a pool are as many more inputs. */
int neap__filter_fan(const struct neap__layer *layer)
{
	int of_pool = layer->pool[0] && layer->pooling == NEAP__POOL_SUM
			      ? layer->pool[0] * layer->pool[1]
			      : 1;

	return neap__filter_rows(layer) / (layer->conv[0] ? layer->groups : 1) * of_pool;
}

/* ---- tables ---- */

/* A table in the making: its units, and one place more than the image has, which has no taps. */
struct filter_making {
	struct neap_net *net;
	struct neap__layer *layer;
	struct neap__plane in; /* after pooling */
	int places;
	struct neap__filter_unit *unit;
	uint32_t *start;
	struct neap__filter_tap *tap; /* NULL: they are counted alone */
};

/* The units [*from, *to) of a convolution along an axis whose kernels reach a place. */
static void reached(const struct neap__layer *l, int axis, int place, int units, int *from, int *to)
{
	int last = place + l->pad[axis], first = last - l->dilation[axis] * (l->conv[axis] - 1);

	*from = first > 0 ? (first + l->stride[axis] - 1) / l->stride[axis] : 0;
	*to = last / l->stride[axis] + 1;
	*to = *to < units ? *to : units;
}

/* Lists the taps of a place of the pooled image; returns how many. */
static uint32_t list_taps(const struct filter_making *m, int y, int x, struct neap__filter_tap *to)
{
	const struct neap__layer *l = m->layer;
	int top, bottom, left, right;
	uint32_t count = 0;

	reached(l, 0, y, l->plane.height, &top, &bottom);
	reached(l, 1, x, l->plane.width, &left, &right);
	for (int oy = top; oy < bottom; oy++)
		for (int ox = left; ox < right; ox++) {
			int i = y + l->pad[0] - oy * l->stride[0];
			int j = x + l->pad[1] - ox * l->stride[1];
			if (i % l->dilation[0] || j % l->dilation[1])
				continue;
			if (to)
				to[count] = (struct neap__filter_tap){
					.row = (uint16_t)(i / l->dilation[0] * l->conv[1] +
							  j / l->dilation[1]),
					.at = (uint16_t)((oy * l->plane.width + ox) * l->channels)};
			count++;
		}
	return count;
}

/* Fills in start, and the taps where there is room for them. */
static int list_places(const struct filter_making *m)
{
	uint64_t taps = 0;

	for (int p = 0; p < m->places; p++) {
		struct neap__filter_tap *to = m->tap ? m->tap + taps : NULL;
		m->start[p] = (uint32_t)taps;
		if (m->layer->conv[0])
			taps += list_taps(m, p / m->in.width, p % m->in.width, to);
		else if (to)
			to[0] = (struct neap__filter_tap){0};
		taps += !m->layer->conv[0];
		if (taps > TAPS_MOST)
			return neap__fail(NEAP_EUSAGE,
				"--net: the kernels of conv of layer %d have more than %d places. "
				"Reduce conv, or increase stride",
				m->layer->index, TAPS_MOST);
	}
	m->start[m->places] = m->start[m->places + 1] = (uint32_t)taps;
	return 0;
}

/* Of max pooling: the pool of each unit, and the first unit of each pool. */
static void list_pools(const struct filter_making *m, int unit, int pool)
{
	uint16_t *pooled = (uint16_t *)(uintptr_t)m->layer->pooled;
	uint16_t *first = (uint16_t *)(uintptr_t)m->layer->pool_first;

	if (!pooled)
		return;
	pooled[unit] = (uint16_t)pool;
	if (pool != NO_POOL && unit < first[pool])
		first[pool] = (uint16_t)unit;
}

static void list_units(const struct filter_making *m)
{
	const struct neap__layer *l = m->layer;
	const struct neap__plane *from = &l->from, *in = &m->in;
	int is_conv = neap__from_conv(l), high = l->pool[0] ? l->pool[0] : 1;
	int wide = l->pool[0] ? l->pool[1] : 1, group = in->channels / l->groups;
	int taps = l->conv[0] * l->conv[1], own = l->conv[0] ? l->channels / l->groups : 0;

	for (int c = 0; c < from->channels; c++)
		for (int y = 0; y < from->height; y++)
			for (int x = 0; x < from->width; x++) {
				int unit = neap__plane_unit(from, is_conv, c, y, x);
				int down = y / high, across = x / wide;
				int counts = down < in->height && across < in->width;
				int pool = neap__plane_unit(in, is_conv, c, down, across);
				int place = !counts	 ? m->places
					    : l->conv[0] ? down * in->width + across
							 : 0;
				m->unit[unit] = (struct neap__filter_unit){.place = (uint16_t)place,
					.row = (uint16_t)(!counts      ? 0
							  : l->conv[0] ? c * taps
								       : pool),
					.at = (uint16_t)(c / group * own)};
				list_pools(m, unit, counts ? pool : NO_POOL);
			}
}

static int make_pools(struct filter_making *m)
{
	struct neap__layer *l = m->layer;
	int pools = m->in.channels * m->in.height * m->in.width;

	if (!l->pool[0] || l->pooling != NEAP__POOL_MAX)
		return 0;
	uint16_t *pooled = neap__net_get(m->net, (uint64_t)l->below, sizeof *pooled);
	uint16_t *first = neap__net_get(m->net, (uint64_t)pools, sizeof *first);
	if (!pooled || !first)
		return neap__fail_errno(ENOMEM, "pools of layer %d", l->index);
	for (int i = 0; i < pools; i++)
		first[i] = UINT16_MAX;
	l->pooled = pooled;
	l->pool_first = first;
	l->pools = pools;
	m->net->pools_most = pools > m->net->pools_most ? pools : m->net->pools_most;
	return 0;
}

int neap__filter_make(struct neap_net *net, struct neap__layer *layer)
{
	struct filter_making m = {.net = net, .layer = layer, .in = neap__pooled_plane(layer)};

	if (!neap__has_filter(layer))
		return 0;
	m.places = layer->conv[0] ? m.in.height * m.in.width : 1;
	struct neap__filter *filter = neap__net_get(net, 1, sizeof *filter);
	m.unit = neap__net_get(net, (uint64_t)layer->below, sizeof *m.unit);
	m.start = neap__net_get(net, (uint64_t)m.places + 2, sizeof *m.start);
	if (!filter || !m.unit || !m.start)
		return neap__fail_errno(ENOMEM, "net");
	NEAP_TRY(list_places(&m));
	m.tap = neap__net_get(net, m.start[m.places], sizeof *m.tap);
	if (layer->conv[0])
		layer->biases = neap__net_get(net, (uint64_t)layer->n, net->ops->real);
	if (!m.tap || (layer->conv[0] && !layer->biases))
		return neap__fail_errno(ENOMEM, "net");
	NEAP_TRY(make_pools(&m));
	NEAP_TRY(list_places(&m));
	list_units(&m);
	int averages = layer->pool[0] && layer->pooling == NEAP__POOL_AVERAGE;
	*filter = (struct neap__filter){.unit = m.unit,
		.start = m.start,
		.tap = m.tap,
		.factor = averages ? 1.0 / (layer->pool[0] * layer->pool[1]) : 1};
	layer->filter = filter;
	return 0;
}
