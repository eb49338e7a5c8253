/* SPDX-License-Identifier: Apache-2.0 */
/* filter.c: sizes of images, and the tables of shared weights (filter.h). */
#include "nn/filter.h"
#include "nn/core/cell.h"
#include "base/fail.h"
#include "kern/kern.h"

#include <errno.h>
#include <limits.h>

enum {
	/* Taps of a layer, which bounds the table that a short text can ask for: 64 MiB. */
	TAPS_MOST = 1 << 24,
	NO_POOL = UINT16_MAX
};

/* ---- sizes ---- */

/* Windows along an axis of so many units; 0: none fits. */
static int64_t windows_along(const struct neap__windows *w, int axis, int64_t size)
{
	int64_t room = size + 2 * (int64_t)w->pad[axis] - w->size[axis];

	return w->size[axis] == 0 ? size : room < 0 ? 0 : room / w->stride[axis] + 1;
}

/* The windows [*from, *to) of `count` along an axis that a place belongs to. */
static void windows_of(
	const struct neap__windows *w, int axis, int place, int count, int *from, int *to)
{
	int last = place + w->pad[axis], first = last - w->size[axis] + 1;

	*from = place;
	*to = place + 1;
	if (!w->size[axis])
		return;
	*from = first > 0 ? (first + w->stride[axis] - 1) / w->stride[axis] : 0;
	*to = last / w->stride[axis] + 1;
	*to = *to < count ? *to : count;
}

static int overlap(const struct neap__windows *w)
{
	return w->stride[0] < w->size[0] || w->stride[1] < w->size[1];
}

/* Units of a window of a sum, which each count as an input more; of others 1. */
static double area_of_sum(const struct neap__windows *w)
{
	return w->size[0] && w->by == NEAP__POOL_SUM ? (double)w->size[0] * w->size[1] : 1;
}

/* What is wrong with the keys of windows of an image; the keys begin with `name`. */
static int settle_windows(struct neap__windows *w, const struct neap__layer *layer,
	const char *name, int64_t high, int64_t wide)
{
	const int64_t image[2] = {high, wide};

	if (!w->size[0] && (w->stride[0] || w->pad[0] || w->pad[1]))
		return neap__fail(NEAP_EUSAGE,
			"--net: layer %d has %s_%s, but no %s. Add the size of its windows, such "
			"as %s=2",
			layer->index, name, w->stride[0] ? "stride" : "pad", name, name);
	for (int i = 0; i < 2 && w->size[0]; i++) {
		if (!w->stride[i])
			w->stride[i] = w->size[i];
		if (2 * w->pad[i] > w->size[i])
			return neap__fail(NEAP_EUSAGE,
				"--net: %s_pad=%dx%d of layer %d is more than half of %s=%dx%d. "
				"Reduce it",
				name, w->pad[0], w->pad[1], layer->index, name, w->size[0],
				w->size[1]);
		if (windows_along(w, i, image[i]) < 1)
			return neap__fail(NEAP_EUSAGE,
				"--net: %s=%dx%d of layer %d is larger than the %lldx%lld units "
				"that "
				"it %s. Reduce it",
				name, w->size[0], w->size[1], layer->index, (long long)high,
				(long long)wide, w == &layer->pool ? "receives" : "pools");
	}
	return 0;
}

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
	NEAP_TRY(settle_windows(&layer->pool, layer, "pool", f->height, f->width));
	int64_t pools = f->channels * windows_along(&layer->pool, 0, f->height) *
			windows_along(&layer->pool, 1, f->width);
	if (pools > NEAP__UNITS_MOST)
		return neap__fail(NEAP_EUSAGE,
			"--net: pool of layer %d has %lld windows; the limit is %d. Increase "
			"pool_stride",
			layer->index, (long long)pools, NEAP__UNITS_MOST);
	if (layer->pool.size[0] && layer->pool.by == NEAP__POOL_MAX && below &&
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

	plane.height = (int)windows_along(&layer->pool, 0, plane.height);
	plane.width = (int)windows_along(&layer->pool, 1, plane.width);
	return plane;
}

/* Units of a convolution along an axis; 0 or less: its kernel does not fit. */
static int64_t steps_along(const struct neap__layer *layer, int axis, int size)
{
	int64_t span = (int64_t)layer->dilation[axis] * (layer->conv[axis] - 1) + 1;
	int64_t room = (int64_t)size + 2 * (int64_t)layer->pad[axis] - span;

	return room < 0 ? 0 : room / layer->stride[axis] + 1;
}

/* Checks the keys of a convolution over the plane `in`, which has high x wide sums. */
static int check_conv(
	const struct neap__layer *layer, const struct neap__plane *in, int64_t high, int64_t wide)
{
	if (layer->channels < 1)
		return neap__fail(NEAP_EUSAGE,
			"--net: conv of layer %d needs the number of its channels, such as "
			"channels=16",
			layer->index);
	if (in->channels % layer->groups || layer->channels % layer->groups)
		return neap__fail(NEAP_EUSAGE,
			"--net: groups=%d of layer %d must divide the %d channels that it receives "
			"and its own %d",
			layer->groups, layer->index, in->channels, layer->channels);
	if (high < 1 || wide < 1)
		return neap__fail(NEAP_EUSAGE,
			"--net: conv=%dx%d of layer %d is larger than the %dx%d units that it "
			"receives. Reduce it, or increase pad",
			layer->conv[0], layer->conv[1], layer->index, in->height, in->width);
	return 0;
}

static int settle_conv(struct neap__layer *layer)
{
	struct neap__plane in = neap__pooled_plane(layer);
	int64_t high = steps_along(layer, 0, in.height), wide = steps_along(layer, 1, in.width);
	int64_t rows = (int64_t)in.channels * layer->conv[0] * layer->conv[1];

	NEAP_TRY(check_conv(layer, &in, high, wide));
	int is_max = layer->conv_pool.size[0] && layer->conv_pool.by == NEAP__POOL_MAX;
	if (is_max && high * wide > NEAP__UNITS_MOST / layer->channels)
		return neap__fail(NEAP_EUSAGE,
			"--net: layer %d has conv_pooling=max of %d channels of %lldx%lld sums; "
			"the limit is %d. Reduce channels, or increase stride or pool",
			layer->index, layer->channels, (long long)high, (long long)wide,
			NEAP__UNITS_MOST);
	layer->sums[0] = (int)high;
	layer->sums[1] = (int)wide;
	layer->wide = is_max ? layer->channels * (int)high * (int)wide : 0;
	NEAP_TRY(settle_windows(&layer->conv_pool, layer, "conv_pool", high, wide));
	high = windows_along(&layer->conv_pool, 0, high);
	wide = windows_along(&layer->conv_pool, 1, wide);
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
	int strays = l->channels != 0 || l->groups != 1 || l->conv_pool.size[0] != 0;

	for (int i = 0; i < 2; i++)
		strays |= l->stride[i] != 1 || l->pad[i] != 0 || l->dilation[i] != 1;
	return !l->conv[0] && strays;
}

/* Windows of one unit each are none. */
static void settle_trivial(struct neap__windows *w)
{
	if (w->size[0] == 1 && w->size[1] == 1 && w->stride[0] <= 1 && w->stride[1] <= 1 &&
		!w->pad[0] && !w->pad[1])
		*w = (struct neap__windows){.by = w->by};
}

int neap__filter_settle(const struct neap_net *net, struct neap__layer *layer)
{
	settle_trivial(&layer->pool);
	settle_trivial(&layer->conv_pool);
	if (has_strays(layer))
		return neap__fail(NEAP_EUSAGE,
			"--net: layer %d has channels, stride, pad, dilation, groups or conv_pool, "
			"but no conv. Add the size of its kernel, such as conv=5",
			layer->index);
	if (!neap__has_filter(layer))
		NEAP_TRY(settle_windows(&layer->pool, layer, "pool", 0, 0));
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
	double of_pools = area_of_sum(&layer->pool) * area_of_sum(&layer->conv_pool);
	double fan = neap__filter_rows(layer) / (layer->conv[0] ? layer->groups : 1) * of_pools;

	return fan < INT_MAX ? (int)fan : INT_MAX;
}

/* ---- tables ---- */

/*
 * A table in the making: its units, and one place more than the image has, which has no taps. Where
 * windows of `pool` overlap, a place is a place before pooling, else a window.
 */
struct filter_making {
	struct neap_net *net;
	struct neap__layer *layer;
	struct neap__plane in; /* after pooling */
	int spreads, is_max;   /* windows of sums and means overlap; pools are its units */
	int places, units;
	struct neap__filter_unit *unit;
	uint32_t *start;
	struct neap__filter_tap *tap; /* NULL: they are counted alone */
	uint64_t taps;
};

/* The sums [*from, *to) of a convolution along an axis whose kernels reach a place. */
static void reached(const struct neap__layer *l, int axis, int place, int units, int *from, int *to)
{
	int last = place + l->pad[axis], first = last - l->dilation[axis] * (l->conv[axis] - 1);

	*from = first > 0 ? (first + l->stride[axis] - 1) / l->stride[axis] : 0;
	*to = last / l->stride[axis] + 1;
	*to = *to < units ? *to : units;
}

static void add_tap(struct filter_making *m, int row, int at)
{
	if (m->tap)
		m->tap[m->taps] = (struct neap__filter_tap){(uint16_t)row, (uint16_t)at};
	m->taps++;
}

/* Lists that a row of W is added to the sum at (y, x), which may be pooled. */
static void list_sums(struct filter_making *m, int row, int y, int x)
{
	const struct neap__layer *l = m->layer;
	int top, bottom, left, right;

	if (l->wide) { /* maxima are made of all sums */
		add_tap(m, row, (y * l->sums[1] + x) * l->channels);
		return;
	}
	windows_of(&l->conv_pool, 0, y, l->plane.height, &top, &bottom);
	windows_of(&l->conv_pool, 1, x, l->plane.width, &left, &right);
	for (int oy = top; oy < bottom && m->taps <= TAPS_MOST; oy++)
		for (int ox = left; ox < right; ox++)
			add_tap(m, row, (oy * l->plane.width + ox) * l->channels);
}

/* Lists the taps of a place of the pooled image. */
static void list_taps(struct filter_making *m, int y, int x)
{
	const struct neap__layer *l = m->layer;
	int top, bottom, left, right;

	reached(l, 0, y, l->sums[0], &top, &bottom);
	reached(l, 1, x, l->sums[1], &left, &right);
	for (int oy = top; oy < bottom && m->taps <= TAPS_MOST; oy++)
		for (int ox = left; ox < right; ox++) {
			int i = y + l->pad[0] - oy * l->stride[0];
			int j = x + l->pad[1] - ox * l->stride[1];
			if (i % l->dilation[0] == 0 && j % l->dilation[1] == 0)
				list_sums(m, i / l->dilation[0] * l->conv[1] + j / l->dilation[1],
					oy, ox);
		}
}

/* Rows of W from one window to the next, and from one channel to the next, of dense weights. */
static int row_step(const struct filter_making *m)
{
	return neap__from_conv(m->layer) ? m->in.channels : 1;
}

static int channel_step(const struct filter_making *m)
{
	return neap__from_conv(m->layer) ? 1 : m->in.height * m->in.width;
}

/* The windows [top, bottom) x [left, right) that a place before pooling belongs to. */
struct filter_span {
	int top, bottom, left, right;
};

static struct filter_span span_of(const struct filter_making *m, int y, int x)
{
	struct filter_span s;

	windows_of(&m->layer->pool, 0, y, m->in.height, &s.top, &s.bottom);
	windows_of(&m->layer->pool, 1, x, m->in.width, &s.left, &s.right);
	return s;
}

/* The taps of a place: of all windows that it belongs to, or of the window that it is. */
static void list_place(struct filter_making *m, int place)
{
	const struct neap__layer *l = m->layer;
	int wide = m->spreads ? l->from.width : m->in.width, y = place / wide, x = place % wide;
	struct filter_span s =
		m->spreads ? span_of(m, y, x) : (struct filter_span){y, y + 1, x, x + 1};

	for (int wy = s.top; wy < s.bottom && m->taps <= TAPS_MOST; wy++)
		for (int wx = s.left; wx < s.right; wx++)
			if (l->conv[0])
				list_taps(m, wy, wx);
			else
				add_tap(m, m->spreads ? (wy * m->in.width + wx) * row_step(m) : 0,
					0);
}

/* Fills in start, and the taps where there is room for them. */
static int list_places(struct filter_making *m)
{
	m->taps = 0;
	for (int p = 0; p < m->places; p++) {
		m->start[p] = (uint32_t)m->taps;
		list_place(m, p);
		if (m->taps > TAPS_MOST)
			return neap__fail(NEAP_EUSAGE,
				"--net: the kernels of conv and the windows of pools of layer %d "
				"have more than %d places. Reduce conv or conv_pool, or increase "
				"stride or pool_stride",
				m->layer->index, TAPS_MOST);
	}
	m->start[m->places] = m->start[m->places + 1] = (uint32_t)m->taps;
	return 0;
}

/* What a unit of a channel at a place enters; place -1: nothing. */
static void list_unit(struct filter_making *m, int unit, int channel, int place)
{
	const struct neap__layer *l = m->layer;
	int own = l->conv[0] ? l->channels / l->groups : 0;
	int rows = l->conv[0] ? l->conv[0] * l->conv[1] : channel_step(m), row = channel * rows;
	int has_row = !l->conv[0] && !m->spreads; /* for itself: all have the same tap */

	if (has_row && place >= 0)
		row += place * row_step(m);
	m->unit[unit] = (struct neap__filter_unit){.place = (uint16_t)(place < 0 ? m->places
								       : has_row ? 0
										 : place),
		.row = (uint16_t)(place < 0 ? 0 : row),
		.at = (uint16_t)(channel / (m->in.channels / l->groups) * own)};
}

static void list_units(struct filter_making *m)
{
	const struct neap__plane *from = m->is_max ? &m->in : &m->layer->from;
	int is_conv = neap__from_conv(m->layer);

	for (int c = 0; c < from->channels; c++)
		for (int y = 0; y < from->height; y++)
			for (int x = 0; x < from->width; x++) {
				struct filter_span s =
					m->is_max ? (struct filter_span){y, y + 1, x, x + 1}
						  : span_of(m, y, x);
				int none = s.top >= s.bottom || s.left >= s.right;
				int place = none	 ? -1
					    : m->spreads ? y * from->width + x
							 : s.top * m->in.width + s.left;
				list_unit(m, neap__plane_unit(from, is_conv, c, y, x), c, place);
			}
}

/* Of max pooling: the pools of each unit, where there is room for them, and the first unit of each.
 */
static uint32_t list_pools(
	struct filter_making *m, uint16_t *pooled, uint32_t *start, uint16_t *first)
{
	const struct neap__plane *from = &m->layer->from;
	int is_conv = neap__from_conv(m->layer);
	uint32_t count = 0;

	for (int unit = 0; unit < m->layer->below; unit++) {
		int c = is_conv ? unit % from->channels : unit / (from->height * from->width);
		int place = is_conv ? unit / from->channels : unit % (from->height * from->width);
		struct filter_span s = span_of(m, place / from->width, place % from->width);
		uint32_t begin = count;
		for (int y = s.top; y < s.bottom; y++)
			for (int x = s.left; x < s.right; x++, count++) {
				int pool = neap__plane_unit(&m->in, is_conv, c, y, x);
				if (pooled)
					pooled[start ? count : (uint32_t)unit] = (uint16_t)pool;
				if (first && unit < first[pool])
					first[pool] = (uint16_t)unit;
			}
		if (pooled && !start && count == begin)
			pooled[unit] = NO_POOL;
		if (start)
			start[unit + 1] = count;
		int own = (int)(count - begin);
		if (start && own > m->net->pools_of_unit)
			m->net->pools_of_unit = own;
	}
	return count;
}

static int make_pools(struct filter_making *m)
{
	struct neap__layer *l = m->layer;
	int pools = m->in.channels * m->in.height * m->in.width;

	if (!l->pool.size[0] || l->pool.by != NEAP__POOL_MAX)
		return 0;
	uint64_t count = m->is_max ? list_pools(m, NULL, NULL, NULL) : (uint64_t)l->below;
	uint16_t *pooled = neap__net_get(m->net, count, sizeof *pooled);
	uint16_t *first = neap__net_get(m->net, (uint64_t)pools, sizeof *first);
	uint32_t *start =
		m->is_max ? neap__net_get_zeroed(m->net, (uint64_t)l->below + 1, sizeof *start)
			  : NULL;
	if (!pooled || !first || (m->is_max && !start))
		return neap__fail_errno(ENOMEM, "pools of layer %d", l->index);
	for (int i = 0; i < pools; i++)
		first[i] = UINT16_MAX;
	list_pools(m, pooled, start, first);
	l->pooled = pooled;
	l->pool_first = first;
	l->pool_start = start;
	l->pools = pools;
	m->net->pools_most = pools > m->net->pools_most ? pools : m->net->pools_most;
	return 0;
}

static double factor_of(const struct neap__windows *w)
{
	int averages = w->size[0] && w->by == NEAP__POOL_AVERAGE;
	return averages ? 1.0 / ((double)w->size[0] * w->size[1]) : 1;
}

int neap__filter_make(struct neap_net *net, struct neap__layer *layer)
{
	struct filter_making m = {.net = net, .layer = layer, .in = neap__pooled_plane(layer)};

	if (!neap__has_filter(layer))
		return 0;
	int is_max = layer->pool.by == NEAP__POOL_MAX, overlaps = overlap(&layer->pool);
	m.spreads = overlaps && !is_max;
	m.is_max = overlaps && is_max;
	m.places = m.spreads	    ? layer->from.height * layer->from.width
		   : layer->conv[0] ? m.in.height * m.in.width
				    : 1;
	m.units = m.is_max ? m.in.channels * m.in.height * m.in.width : layer->below;
	struct neap__filter *filter = neap__net_get(net, 1, sizeof *filter);
	m.unit = neap__net_get(net, (uint64_t)m.units, sizeof *m.unit);
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
	*filter = (struct neap__filter){.unit = m.unit,
		.start = m.start,
		.tap = m.tap,
		.factor = factor_of(&layer->pool) * factor_of(&layer->conv_pool)};
	layer->filter = filter;
	return 0;
}
