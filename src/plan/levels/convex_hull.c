/* SPDX-License-Identifier: Apache-2.0 */
/* convex_hull.c: lists of segments, and the sweep that makes the hull of a row. */
#include "plan/levels/convex_hull.h"

#include <math.h>
#include <stdlib.h>
#include "base/grow.h"

/* Slopes are sums of a few costs. Slopes closer than this differ by rounding only. */
static double tie(double slope)
{
	return NEAP__HULL_TIE * (1 + fabs(slope));
}

int neap__hull_push(struct neap__hull *h, double slope, double length)
{
	if (h->count > 0) {
		struct neap__hull_segment *last = &h->s[h->count - 1];
		if (slope <= last->slope + tie(slope)) {
			last->length += length;
			h->end += length;
			h->value += last->slope * length;
			return 0;
		}
	}
	if (neap__grow(&h->s, &h->room, h->count + 1, sizeof *h->s) < 0)
		return -1;
	h->s[h->count++] = (struct neap__hull_segment){slope, length, h->end, h->value};
	h->end += length;
	h->value += slope * length;
	return 0;
}

void neap__hull_free(struct neap__hull *h)
{
	free(h->s);
	*h = (struct neap__hull){0};
}

/* The last segment that begins at or before l, -1 where there is none. */
static int64_t find(const struct neap__hull *h, double l)
{
	int64_t low = -1, high = h->count;
	while (high - low > 1) {
		int64_t i = low + (high - low) / 2;
		if (h->s[i].at <= l)
			low = i;
		else
			high = i;
	}
	return low;
}

double neap__hull_at(const struct neap__hull *h, double l, double steepest)
{
	if (l >= h->end)
		return h->value + (l > h->end ? steepest * (l - h->end) : 0);
	const struct neap__hull_segment *s = &h->s[find(h, l)];
	return s->value + s->slope * (l - s->at);
}

double neap__hull_slope(const struct neap__hull *h, double l, double steepest)
{
	if (l > h->end || h->count == 0)
		return steepest;
	int64_t i = find(h, l);
	return i > 0 && h->s[i].at == l ? h->s[i - 1].slope : h->s[i].slope;
}

double neap__hull_below(const struct neap__hull *h, double slope)
{
	int64_t low = 0, high = h->count; /* finds the first segment that is not below */
	while (low < high) {
		int64_t i = low + (high - low) / 2;
		if (h->s[i].slope < slope - tie(slope))
			low = i + 1;
		else
			high = i;
	}
	return low < h->count ? h->s[low].at : h->end;
}

/* How far a sweep has come on f (0) and on g (1), and which of them is the hull there. */
struct sweep {
	double at[2], value[2];
	int winner;
};

int neap__hull_sweep(struct neap__hull *out, const struct neap__hull *f, const struct neap__hull *a,
	int own, double at, double value, double steepest, int64_t most)
{
	struct sweep x = {.at = {0, at}, .value = {0, value}};
	int64_t i = 0, j = 0, o = 0;
	for (;;) {
		double next[3] = {i < f->count ? f->s[i].slope : INFINITY,
			j < a->count ? a->s[j].slope : INFINITY,
			own && o < out->count ? out->s[o].slope + 1 : INFINITY};
		int which = next[0] <= next[1] ? 0 : 1;
		which = next[2] < next[which] ? 2 : which;
		double slope = next[which];
		int loser = !x.winner;
		double more = x.at[loser] - x.at[x.winner];
		double cross = (x.value[loser] - x.value[x.winner]) / more;
		if (more > 0 && cross <= slope && cross <= steepest) {
			if (neap__hull_push(out, cross, more) < 0)
				return -1;
			x.winner = loser;
			continue;
		}
		if (!(slope <= steepest) || out->count > most)
			return out->count > most ? -1 : 0;
		double length = which == 0 ? f->s[i++].length : which == 1 ? a->s[j++].length : 0;
		if (which == 2) {
			/* The last segment may still grow: what is joined to it has its slope. */
			length = out->s[o++].length;
		}
		int side = which != 0;
		x.at[side] += length;
		x.value[side] += slope * length;
		if (side == x.winner && neap__hull_push(out, slope, length) < 0)
			return -1;
	}
}

int64_t neap__hull_centre(const struct neap__hull *a, const struct neap__hull *own, int64_t l)
{
	double units = (double)(l - 1);
	int64_t low = -1, high = a->count; /* finds the last segment of `a` that begins within */
	while (high - low > 1) {
		int64_t i = low + (high - low) / 2;
		if (a->s[i].at + neap__hull_below(own, a->s[i].slope - 1) <= units)
			low = i;
		else
			high = i;
	}
	if (low < 0)
		return l;
	const struct neap__hull_segment *s = &a->s[low];
	double rest = units - s->at - neap__hull_below(own, s->slope - 1);
	return l - (int64_t)(s->at + fmin(rest, s->length));
}
