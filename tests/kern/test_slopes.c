/* SPDX-License-Identifier: Apache-2.0 */
/* Derivatives of surrogates that have an exponential against the C library's, in either precision.
 */
#include "test.h"

#include "kern/tables.h"

#include <float.h>
#include <math.h>

static const double epsilon = sizeof(real) == sizeof(double) ? DBL_EPSILON : FLT_EPSILON;
static const double root = 2.50662827463100050242; /* of 2 pi */

static double sigmoid(double x, double w)
{
	double y = 1 / (1 + exp(-x / w));
	return y * (1 - y) / w;
}

static double gaussian(double x, double w)
{
	return exp(-x * x / (2 * w * w)) / (w * root);
}

static double slayer(double x, double w)
{
	return exp(-fabs(x) / w);
}

static double double_gaussian(double x, double w)
{
	return 1.15 * gaussian(x, w) - 0.3 * gaussian(x, 6 * w);
}

static const struct {
	enum neap_surrogate kind;
	double (*want)(double x, double w);
} rows[] = {{NEAP_SIGMOID, sigmoid}, {NEAP_GAUSSIAN, gaussian}, {NEAP_SLAYER, slayer},
	{NEAP_DOUBLE_GAUSSIAN, double_gaussian}};

/* Errors in units of the largest value, as differences of exponentials have no better ones. */
static void formulas(void **arg)
{
	static const double widths[] = {0.07, 0.5, 3, 1e4};
	const struct neap__kernels *k = table(NEAP__ISA_LOWERED);

	(void)arg;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		double worst = 0;
		for (int j = 0; j < 4; j++) {
			double w = (double)(real)widths[j], top = fabs(rows[i].want(0, w));
			const struct neap__slope s = {
				.theta = 1, .cut = INFINITY, .width = (real)w, .height = 1};
			for (int n = -4000; n <= 4000; n++) {
				real u = (real)(1 + w * n / 250), height;
				k->slope[rows[i].kind](&height, &u, 1, &s);
				double want = rows[i].want((double)(u - s.theta), w);
				worst = fmax(worst, fabs((double)height - want) / top);
			}
		}
		fprintf(stderr, "# surrogate %d: worst error %g\n", (int)rows[i].kind, worst);
		assert_true(worst < 8 * epsilon);
	}
}

/* Far from the threshold and beyond a cut there is nothing, and what is no number has no slope. */
static void ends(void **arg)
{
	const real u[] = {(real)-1e30, (real)1e30, -INFINITY, INFINITY, NAN, (real)3.5};
	const struct neap__slope wide = {.theta = 1, .cut = INFINITY, .width = 1, .height = 1};
	struct neap__slope cut = wide;
	const struct neap__kernels *k = table(NEAP__ISA_LOWERED);
	real height[6];

	(void)arg;
	cut.cut = (real)2.25;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		k->slope[rows[i].kind](height, u, 6, &wide);
		for (int n = 0; n < 5; n++)
			assert_true(fabs((double)height[n]) < 1e-300);
		assert_true(fabs((double)height[5]) > 1e-3);
		k->slope[rows[i].kind](height, u, 6, &cut);
		assert_true(height[5] == 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(formulas),
		cmocka_unit_test(ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
