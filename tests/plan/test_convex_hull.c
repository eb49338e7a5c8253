/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convex hulls of costs against plain sums and against the lower hull of all their corners, on
 * random hulls of whole slopes and lengths. NEAP_SEED repeats a run.
 */
#include "plan_test.h"
#include "plan/levels/convex_hull.h"

#define ROUNDS 3000
#define CORNERS 250

/* Segments with rising slopes; a few pushes have the slope of the one before and are joined to it.
 */
static struct neap__hull random_hull(struct random *r, int most)
{
	struct neap__hull h = {0};
	double slope = (double)below(r, 4);
	for (int64_t i = below(r, most + 1); i > 0; i--, slope += (double)below(r, 4))
		assert_int_equal(neap__hull_push(&h, slope, (double)(1 + below(r, 5))), 0);
	return h;
}

/* Each question by a sum over all segments. */
static void questions(void **state)
{
	struct random r = {test_seed(31), 0};
	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		struct neap__hull h = random_hull(&r, 6);
		for (int i = 1; i < h.count; i++)
			assert_true(h.s[i].slope > h.s[i - 1].slope);
		for (double s = -1; s < 20; s += 0.5) {
			double shorter = 0;
			for (int i = 0; i < h.count; i++)
				shorter += h.s[i].slope < s ? h.s[i].length : 0;
			assert_true(neap__hull_below(&h, s) == shorter);
		}
		for (double l = 0; l < h.end + 3; l += 0.5) {
			double value = 0, at = 0, slope = 30;
			for (int i = 0; i < h.count; i++) {
				value += h.s[i].slope * fmax(fmin(l - at, h.s[i].length), 0);
				at += h.s[i].length;
			}
			for (int i = (int)h.count - 1; i >= 0; i--)
				slope = l <= h.s[i].at + h.s[i].length ? h.s[i].slope : slope;
			value += 30 * fmax(l - at, 0);
			assert_true(neap__hull_at(&h, l, 30) == value);
			assert_true(neap__hull_slope(&h, l, 30) == slope);
		}
		neap__hull_free(&h);
	}
}

struct corner {
	double at, value;
};

/* The corners of a function that begins with one, of segments sorted by slope, up to a slope. */
static int add_corners(
	struct corner *c, int n, struct corner from, const double (*segment)[2], int count)
{
	c[n++] = from;
	for (int i = 0; i < count; i++, n++)
		c[n] = (struct corner){c[n - 1].at + segment[i][1],
			c[n - 1].value + segment[i][0] * segment[i][1]};
	return n;
}

/* The lower hull from (0, 0) on, by the least slope to any corner; segments of at most `steepest`.
 */
static struct neap__hull lower_hull(const struct corner *c, int n, double steepest)
{
	struct neap__hull h = {0};
	struct corner here = {0, 0};
	for (;;) {
		struct corner next = here;
		double least = INFINITY;
		for (int i = 0; i < n; i++) {
			double slope = (c[i].value - here.value) / (c[i].at - here.at);
			if (c[i].at > here.at &&
				(slope < least - 1e-9 ||
					(slope < least + 1e-9 && c[i].at > next.at))) {
				least = slope;
				next = c[i];
			}
		}
		if (!(least <= steepest))
			return h;
		assert_int_equal(neap__hull_push(&h, least, next.at - here.at), 0);
		here = next;
	}
}

static int by_slope(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return (x[0] > y[0]) - (x[0] < y[0]);
}

/* A sweep makes the hull of min(f, g), also if g contains the hull itself, one slope steeper. */
static void sweeps(void **state)
{
	struct random r = {test_seed(32), 0};
	int64_t segments = 0;
	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		struct neap__hull f = random_hull(&r, 5), a = random_hull(&r, 5), out = {0};
		int own = (int)below(&r, 2), n, count = 0;
		double at = own ? 1 : (double)below(&r, 2), value = at + (double)below(&r, 6);
		double steepest = (double)below(&r, 12), list[CORNERS][2];
		struct corner c[2 * CORNERS];
		assert_int_equal(
			neap__hull_sweep(&out, &f, &a, own, at, value, steepest, CORNERS / 2), 0);
		for (int i = 0; i < f.count; i++, count++)
			memcpy(list[count], (double[]){f.s[i].slope, f.s[i].length},
				sizeof list[0]);
		n = add_corners(c, 0, (struct corner){0, 0}, (const double(*)[2])list, count);
		count = 0;
		for (int i = 0; i < a.count; i++, count++)
			memcpy(list[count], (double[]){a.s[i].slope, a.s[i].length},
				sizeof list[0]);
		for (int i = 0; own && i < out.count; i++, count++)
			memcpy(list[count], (double[]){out.s[i].slope + 1, out.s[i].length},
				sizeof list[0]);
		qsort(list, (size_t)count, sizeof list[0], by_slope);
		n = add_corners(c, n, (struct corner){at, value}, (const double(*)[2])list, count);
		struct neap__hull plain = lower_hull(c, n, steepest);
		if (!near(plain.end + 1, out.end + 1) || !near(plain.value + 1, out.value + 1) ||
			plain.count != out.count)
			fail_msg("round %d: %lld segments to (%g, %g), not %lld to (%g, %g)", round,
				(long long)out.count, out.end, out.value, (long long)plain.count,
				plain.end, plain.value);
		for (int i = 0; i < out.count; i++)
			assert_true(near(plain.s[i].slope + 1, out.s[i].slope + 1) &&
				    near(plain.s[i].length, out.s[i].length));
		segments += out.count;
		neap__hull_free(&plain);
		neap__hull_free(&out);
		neap__hull_free(&f);
		neap__hull_free(&a);
	}
	assert_true(segments > 2 * ROUNDS);
}

/* The split of a part by the hulls, unit by unit: the flatter segment first, of equal ones that of
 * `a`. */
static void centres(void **state)
{
	struct random r = {test_seed(33), 0};
	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		struct neap__hull a = random_hull(&r, 5), own = random_hull(&r, 5);
		int64_t i = 0, j = 0, units = 0;
		double of_a = 0, of_own = 0;
		for (;;) {
			assert_int_equal(
				neap__hull_centre(&a, &own, units + 1), units + 1 - (int64_t)of_a);
			while (i < a.count && of_a == a.s[i].at + a.s[i].length)
				i++;
			while (j < own.count && of_own == own.s[j].at + own.s[j].length)
				j++;
			if (i == a.count && j == own.count)
				break;
			if (i < a.count && (j == own.count || a.s[i].slope <= own.s[j].slope + 1))
				of_a++;
			else
				of_own++;
			units++;
		}
		neap__hull_free(&a);
		neap__hull_free(&own);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(questions),
		cmocka_unit_test(sweeps),
		cmocka_unit_test(centres),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
