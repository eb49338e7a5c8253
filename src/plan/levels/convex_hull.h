/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convex_hull.h: convex hulls (greatest convex minorants) of cost functions of a length, as
 * lists of segments of rising slope that start at (0, 0). The recurrences of level_solver.h
 * consist of minima and (min,+) convolutions. The convex conjugate turns the former into maxima
 * and the latter into sums, so the hull of each row follows exactly from the hulls of other
 * rows, in one sweep over the slopes. A hull is a lower bound of the cost at every length.
 *
 *     F          a cost, in units of one advance, as a function of the length l
 *     F*(s)      its conjugate, max_l ( s l - F(l) )
 *
 *     P_k,m*(s) = max( f_k*(s), O_k,m-1*(s) + P_k,m*(s-1) + s - 1 - r_k )
 *     O_k,m*(s) = max( f_k*(s), P_k,m*(s) - w_k )
 *
 * Hulls and sweep are ours; a list has some tens of segments, whatever the length.
 */
#ifndef NEAP_PLAN_LEVELS_CONVEX_HULL_H
#define NEAP_PLAN_LEVELS_CONVEX_HULL_H

#include <stdint.h>

/* Slopes that differ by less than this share of 1 + slope are equal. */
#define NEAP__HULL_TIE 1e-11

struct neap__hull_segment {
	double slope, length;
	double at, value; /* where it begins */
};

struct neap__hull {
	struct neap__hull_segment *s;
	int64_t count, room;
	double end, value; /* behind the last segment */
};

/* Adds a segment; slopes may not fall, equal slopes are joined. 0, or -1 without memory. */
int neap__hull_push(struct neap__hull *h, double slope, double length);
void neap__hull_free(struct neap__hull *h);
/* The value at l; beyond the end the slope `steepest` follows. */
double neap__hull_at(const struct neap__hull *h, double l, double steepest);
/* The slope at l (of the segment that ends there or contains it). */
double neap__hull_slope(const struct neap__hull *h, double l, double steepest);
/* The sum of the lengths of all segments below a slope. */
double neap__hull_below(const struct neap__hull *h, double slope);

/*
 * Sets *out to the hull of min(f, g) up to slope `steepest`. g begins at (at, value) and
 * consists of the segments of `a` and, with `own`, of those of *out itself one slope steeper.
 * P_k,m takes (f_k, O_k,m-1, own 1, at 1, value 1 + r_k), O_k,m takes (f_k, P_k,m, 0, 0, w_k).
 * 0, or -1 without memory or with more than `most` segments.
 */
int neap__hull_sweep(struct neap__hull *out, const struct neap__hull *f, const struct neap__hull *a,
	int own, double at, double value, double steepest, int64_t most);

/*
 * The best split of P_k,m(l) by the hulls, the centre: takes l - 1 units of length from `a`
 * (O_k,m-1) and from `own` (P_k,m one slope steeper) in the order of slopes, of equal slopes
 * those of `a` first. Returns x, the steps to advance: l less the units of `a`.
 */
int64_t neap__hull_centre(const struct neap__hull *a, const struct neap__hull *own, int64_t l);

#endif
