/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convex_hull.h: convex hulls (greatest convex minorants) of cost functions of a length,
 * as lists of segments of rising slope that start at (0, 0). Costs are in units of
 * one advance. The conjugate turns minima into maxima and (min,+) convolutions into
 * sums, so hulls of level_solver.h's recurrences are exact, one sweep over the slopes a row.
 */
#ifndef NEAP_PLAN_LEVELS_CONVEX_HULL_H
#define NEAP_PLAN_LEVELS_CONVEX_HULL_H

#include <stdint.h>

struct neap__hull_segment {
	double slope, length;
	double at, value; /* where it begins */
};

struct neap__hull {
	struct neap__hull_segment *s;
	int64_t count, room;
	double end, value; /* behind the last segment */
};

/* 0 or -1 without memory. Slopes may not fall; equal ones are joined. */
int neap__hull_push(struct neap__hull *h, double slope, double length);
void neap__hull_free(struct neap__hull *h);
/* The value at l; beyond the end as if slope `steepest` followed. */
double neap__hull_at(const struct neap__hull *h, double l, double steepest);
/* The slope at l (of the segment that ends there or contains it). */
double neap__hull_slope(const struct neap__hull *h, double l, double steepest);
/* Length of all segments below a slope. */
double neap__hull_below(const struct neap__hull *h, double slope);

/*
 * out = hull of min(f, g) up to slope `steepest`, g = at + the lengths of `a` and,
 * with `own`, of out itself one slope steeper; g begins at (at, value).
 * P: (f, O_m-1, own, 1, 1 + r); O: (f, P, 0, 0, w). -1: no memory or more than `most`
 * segments.
 */
int neap__hull_sweep(struct neap__hull *out, const struct neap__hull *f, const struct neap__hull *a,
	int own, double at, double value, double steepest, int64_t most);

/*
 * The best split of l by the hulls: l - 1 units of `a` (O_m-1) and of `own` (P_m one
 * slope steeper) in the order of slopes, equal ones of `a` first. Steps to advance.
 */
int64_t neap__hull_centre(const struct neap__hull *a, const struct neap__hull *own, int64_t l);

#endif
