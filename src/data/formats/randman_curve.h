/* SPDX-License-Identifier: Apache-2.0 */
/*
 * randman_curve.h: approximate values of the functions of randman.c, many at a time. A call of sin
 * is not vectorized by compilers, and took most of the time of generating samples.
 *
 * The terms of `units` functions are stored by dimension d, term k, and number (0: amplitude,
 * 1: frequency, 2: phase), units innermost.
 */
#ifndef NEAP_DATA_RANDMAN_CURVE_H
#define NEAP_DATA_RANDMAN_CURVE_H

#include <math.h>
#include <stddef.h>

#define NEAP__TWO_PI 6.283185307179586

struct neap__randman_terms {
	const double *term;
	int units, dim, terms;
};

/*
 * sin(2 pi turns) with an error below 1e-11 for |turns| < 1e4: the Taylor series to the 15th power
 * within a quarter of a turn.
 */
static inline double neap__roughly_sin(double turns)
{
	double t = turns - 0.25;
	t -= (t + 0x1.8p52) - 0x1.8p52; /* adding 1.5 * 2^52 rounds to an integer */
	double a = NEAP__TWO_PI * (0.25 - fabs(t)), b = a * a, sum = -1 / 1307674368000.0;
	sum = sum * b + 1 / 6227020800.0;
	sum = sum * b - 1 / 39916800.0;
	sum = sum * b + 1 / 362880.0;
	sum = sum * b - 1 / 5040.0;
	sum = sum * b + 1 / 120.0;
	sum = sum * b - 1 / 6.0;
	return a + a * b * sum;
}

/* Values of all units at x[dim]. */
#ifndef NEAP__RANDMAN_CURVE
#define NEAP__RANDMAN_CURVE neap__randman_curve
#endif
void NEAP__RANDMAN_CURVE(double *value, const struct neap__randman_terms *terms, const double *x);
void neap__randman_curve_avx2(
	double *value, const struct neap__randman_terms *terms, const double *x);

#endif
