/* SPDX-License-Identifier: Apache-2.0 */
/*
 * surrogate.c: surrogate derivatives h(x) of the step function at x = u - theta, and their
 * integrals F(x), the spikes of a smooth net: F'(x) = h(x), F(-inf) = 0. Beyond the cut h is 0, so
 * that the integral of a cut surrogate is F(x) - F(-cut), with x brought into [-cut, cut].
 *
 * Derivatives consist of operations that round alike everywhere, also their exponential; and
 * device/kernels/surrogate_slopes.k has the same formulas, so that GPUs compute the same bits.
 */
#include "kern/kern.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846
#define ROOT_2_PI 2.50662827463100050242

/* 1/k!: the terms from 2 to 13 reach the last place of 1. */
static const double series[] = {1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040,
	1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600,
	1.0 / 6227020800};

/*
 * exp(x), x brought into [-700, 700], in which the result is neither subnormal nor infinite:
 * 2^k exp(r) with x = k ln(2) + r, k whole and |r| <= ln(2)/2, and the Taylor series of exp(r). The
 * error is below 1 unit in the last place.
 */
static inline double exponential(double x)
{
	const double whole = 6755399441055744.0; /* 1.5 2^52: sums with it lose their fraction */
	double y = x < -700 ? -700 : x > 700 ? 700 : x;
	double shifted = y * 1.44269504088896341 + whole, k = shifted - whole;
	/* ln(2) in two parts, the first with few digits, so that y - k ln(2) loses none */
	double r = (y - k * 0.693145751953125) - k * 1.42860682030941723e-6;
	double p = series[11], scale;
	uint64_t bits;

	for (int i = 10; i >= 0; i--)
		p = p * r + series[i];
	memcpy(&bits, &shifted, sizeof bits);
	bits = (bits + 1023) << 52;
	memcpy(&scale, &bits, sizeof scale);
	return (1 + (r + r * r * p)) * scale;
}

static inline double triangle(double x, const struct neap__slope *s)
{
	double h = 1.0 - fabs(x) / (double)s->width;
	return h > 0 ? (double)s->height * h : 0;
}

static inline double triangle_integral(double x, const struct neap__slope *s)
{
	double w = (double)s->width, y = x < -w ? -w : x > w ? w : x, r = w - fabs(y);
	double tail = r * r / (2 * w);
	return (double)s->height * (y < 0 ? tail : w - tail);
}

static inline double boxcar(double x, const struct neap__slope *s)
{
	return fabs(x) <= (double)s->width ? 0.5 / (double)s->width : 0;
}

static inline double boxcar_integral(double x, const struct neap__slope *s)
{
	double w = (double)s->width, y = x < -w ? -w : x > w ? w : x;
	return (y + w) / (2 * w);
}

static inline double superspike(double x, const struct neap__slope *s)
{
	double d = 1.0 + fabs(x) / (double)s->width;
	return 1.0 / (d * d);
}

static inline double superspike_integral(double x, const struct neap__slope *s)
{
	double w = (double)s->width, tail = w / (1.0 + fabs(x) / w);
	return x < 0 ? tail : 2 * w - tail;
}

static inline double sigmoid_integral(double x, const struct neap__slope *s)
{
	return 1.0 / (1.0 + exp(-x / (double)s->width));
}

static inline double sigmoid(double x, const struct neap__slope *s)
{
	double y = 1.0 / (1.0 + exponential(-x / (double)s->width));
	return y * (1.0 - y) / (double)s->width;
}

static inline double atan_(double x, const struct neap__slope *s)
{
	double a = 1.0 / (double)s->width, y = PI * a * x / 2;
	return a / 2 / (1.0 + y * y);
}

static inline double atan_integral(double x, const struct neap__slope *s)
{
	return atan(PI * x / (2 * (double)s->width)) / PI + 0.5;
}

static inline double gaussian(double x, const struct neap__slope *s)
{
	double y = x / (double)s->width;
	return exponential(-y * y / 2) / ((double)s->width * ROOT_2_PI);
}

static inline double gaussian_integral(double x, const struct neap__slope *s)
{
	return 0.5 * erfc(-x / ((double)s->width * sqrt(2.0)));
}

static inline double slayer(double x, const struct neap__slope *s)
{
	return (double)s->height * exponential(-fabs(x) / (double)s->width);
}

static inline double slayer_integral(double x, const struct neap__slope *s)
{
	double w = (double)s->width, tail = w * exp(-fabs(x) / w);
	return (double)s->height * (x < 0 ? tail : 2 * w - tail);
}

/* The constants of Yin, Corradi and Bohte (2021): weight and width of the negative lobes. */
#define LOBES 0.15
#define LOBE_WIDTH 6

static inline double double_gaussian(double x, const struct neap__slope *s)
{
	double w = (double)s->width, y = x / w, z = y / LOBE_WIDTH;
	double g = (1 + LOBES) * exponential(-y * y / 2);
	g -= 2 * LOBES / LOBE_WIDTH * exponential(-z * z / 2);
	return (double)s->height * g / (w * ROOT_2_PI);
}

static inline double double_gaussian_integral(double x, const struct neap__slope *s)
{
	double y = -x / ((double)s->width * sqrt(2.0));
	return (double)s->height * ((1 + LOBES) * 0.5 * erfc(y) - LOBES * erfc(y / LOBE_WIDTH));
}

/* The loops over units. Formulas are made in double: the units inside the support are few. */
#define DEFINE(name, h, F)                                                                         \
	void NEAP_R(neap__slope_##name)(                                                           \
		real * out, const real *u, int n, const struct neap__slope *s)                     \
	{                                                                                          \
		for (int i = 0; i < n; i++) {                                                      \
			real x = u[i] - s->theta;                                                  \
			real a = x < 0 ? -x : x;                                                   \
			out[i] = a <= s->cut ? (real)h((double)x, s) : 0;                          \
		}                                                                                  \
	}                                                                                          \
	void NEAP_R(neap__integral_##name)(                                                        \
		real * out, const real *u, int n, const struct neap__slope *s)                     \
	{                                                                                          \
		double base = F(-(double)s->cut, s);                                               \
		for (int i = 0; i < n; i++) {                                                      \
			real x = u[i] - s->theta;                                                  \
			real y = x < -s->cut ? -s->cut : x > s->cut ? s->cut : x;                  \
			out[i] = (real)(F((double)y, s) - base);                                   \
		}                                                                                  \
	}

DEFINE(triangle, triangle, triangle_integral)
DEFINE(boxcar, boxcar, boxcar_integral)
DEFINE(superspike, superspike, superspike_integral)
DEFINE(sigmoid, sigmoid, sigmoid_integral)
DEFINE(atan, atan_, atan_integral)
DEFINE(gaussian, gaussian, gaussian_integral)
DEFINE(slayer, slayer, slayer_integral)
DEFINE(double_gaussian, double_gaussian, double_gaussian_integral)
