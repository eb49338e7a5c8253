/* SPDX-License-Identifier: Apache-2.0 */
/* sigmoid and tanh over rows against the C library's, in either precision. */
#include "test.h"

#include "kern/sigmoid.h"

#include <float.h>
#include <math.h>

static const double epsilon = sizeof(real) == sizeof(double) ? DBL_EPSILON : FLT_EPSILON;

static double sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

/* Steps of 1/1024 and small numbers of either sign; rows of all lengths about a vector's. */
static void check(void (*rows)(real *, int), double (*want)(double), int is_odd)
{
	enum { MOST = 41 };
	real x[MOST], y[MOST];
	double worst = 0, worst_small = 0;

	for (int64_t k = -40 * 1024; k <= 40 * 1024;)
		for (int n = 1; n <= MOST; n++) {
			for (int i = 0; i < n; i++, k++)
				x[i] = y[i] = (real)((double)k / 1024);
			rows(y, n);
			for (int i = 0; i < n; i++)
				worst = fmax(worst, fabs((double)y[i] - want((double)x[i])));
		}
	for (int e = 1; e < 100; e++)
		for (int sign = -1; sign <= 1; sign += 2) {
			double small = (double)(real)(sign * pow(1.37, -e));
			x[0] = (real)small;
			rows(x, 1);
			double error = fabs((double)x[0] - want(small));
			worst_small = fmax(worst_small, is_odd ? error / fabs(small) : error);
		}
	fprintf(stderr, "# worst %g, of small ones %g\n", worst, worst_small);
	assert_true(worst < 4 * epsilon);
	assert_true(worst_small < 8 * epsilon);
}

static void sigmoids(void **arg)
{
	(void)arg;
	check(neap__sigmoids, sigmoid, 0);
}

static void tanhs(void **arg)
{
	(void)arg;
	check(neap__tanhs, tanh, 1);
}

/* Nothing overflows, and what is no number stays none. */
static void ends(void **arg)
{
	real x[] = {-INFINITY, INFINITY, -1e30f, 1e30f, NAN, 0}, y[6];

	(void)arg;
	memcpy(y, x, sizeof x);
	neap__sigmoids(x, 6);
	neap__tanhs(y, 6);
	for (int i = 0; i < 4; i++) {
		assert_true(fabs((double)x[i] - (i & 1)) < epsilon);
		assert_true(fabs((double)y[i] - (i & 1 ? 1 : -1)) < epsilon);
	}
	assert_true(isnan(x[4]) && isnan(y[4]));
	assert_true(x[5] == (real)0.5 && y[5] == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sigmoids),
		cmocka_unit_test(tanhs),
		cmocka_unit_test(ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
