/* SPDX-License-Identifier: Apache-2.0 */
/*
 * surrogate.c: surrogate derivatives h(x) of the step function at x = u - theta, and their
 * integrals F(x), the spikes of a smooth net: F'(x) = h(x), F(-inf) = 0. Beyond the cut h is 0, so
 * that the integral of a cut surrogate is F(x) - F(-cut), with x brought into [-cut, cut].
 */
#include "kern/kern.h"

#include <math.h>

#define PI 3.14159265358979323846

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
	double y = sigmoid_integral(x, s);
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
	return exp(-y * y / 2) / ((double)s->width * sqrt(2 * PI));
}

static inline double gaussian_integral(double x, const struct neap__slope *s)
{
	return 0.5 * erfc(-x / ((double)s->width * sqrt(2.0)));
}

static inline double slayer(double x, const struct neap__slope *s)
{
	return (double)s->height * exp(-fabs(x) / (double)s->width);
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
	double g = (1 + LOBES) * exp(-y * y / 2) - 2 * LOBES / LOBE_WIDTH * exp(-z * z / 2);
	return (double)s->height * g / (w * sqrt(2 * PI));
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
