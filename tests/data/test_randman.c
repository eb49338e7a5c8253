/* SPDX-License-Identifier: Apache-2.0 */
/* test_randman.c: samples of `randman` are functions of seed and point, and lie on manifolds. */
#include "spikes.h"
#include "data/bins.h"
#include "data/dataset.h"

static struct neap_events sample(const char *name, int64_t index)
{
	struct neap_dataset *set;
	struct neap_events e;
	ok(neap_dataset_open(&set, name));
	ok(neap_dataset_read(set, index, &e));
	neap_dataset_close(set);
	return e;
}

/* Time of each unit's first spike. */
static void profile(const char *name, int64_t index, int units, double *time)
{
	struct neap_events e = sample(name, index);
	for (int u = 0; u < units; u++)
		time[u] = -1;
	for (int64_t i = e.count - 1; i >= 0; i--)
		time[e.unit[i]] = e.time[i];
	neap_events_free(&e);
}

static double distance(const double *a, const double *b, int n)
{
	double sum = 0;
	for (int i = 0; i < n; i++)
		sum += (a[i] - b[i]) * (a[i] - b[i]);
	return sum;
}

static void every_unit_spikes_in_time(void **state)
{
	(void)state;
	struct neap_dataset *set;
	struct neap_dataset_info info = {.size = sizeof info};
	ok(neap_dataset_open(
		&set, "randman:units=33,classes=4,steps=1000,spikes=20,samples=10,noise=3"));
	neap_dataset_info(set, &info);
	assert_int_equal(info.inputs, 33);
	assert_int_equal(info.classes, 4);
	assert_int_equal(info.samples, 10);
	assert_int_equal(info.events, 10 * 20 * 33);
	assert_true(fabs(info.duration - 1) < 1e-12);
	for (int64_t i = 0; i < 10; i++) {
		struct neap_events e;
		int count[33] = {0};
		ok(neap_dataset_read(set, i, &e));
		assert_int_equal(e.count, 660);
		assert_int_equal(e.label, i % 4);
		for (int64_t k = 0; k < e.count; k++) {
			count[e.unit[k]]++;
			assert_true(e.time[k] >= 0 && e.time[k] < info.duration);
			assert_true(k == 0 || e.time[k - 1] <= e.time[k]);
		}
		for (int u = 0; u < 33; u++)
			assert_int_equal(count[u], 20);
		neap_events_free(&e);
	}
	neap_dataset_close(set);
}

static void a_function_of_seed_and_point(void **state)
{
	(void)state;
	double a[70], b[70];
	profile("randman", 5, 70, a);
	profile("randman:samples=7,first=0", 5, 70, b);
	assert_memory_equal(a, b, sizeof a);
	profile("randman:first=3", 2, 70, b); /* the same point */
	assert_memory_equal(a, b, sizeof a);
	profile("randman:part=test", 5, 70, b);
	assert_memory_not_equal(a, b, sizeof a);
	profile("randman:seed=1", 5, 70, b);
	assert_memory_not_equal(a, b, sizeof a);
	profile("randman:noise=1", 5, 70, b);
	assert_memory_not_equal(a, b, sizeof a);
}

/* Spikes are in the first quarter of their windows of 50 steps, in the order of those of
 * `active=1`, four times as close to the beginning. */
static void bursts_are_compressed_windows(void **state)
{
	(void)state;
	enum { WINDOWS = 8 };
	struct neap_dataset *set[2];
	struct neap_events e[2];
	double time[2][33][WINDOWS];

	ok(neap_dataset_open(&set[0], "randman:units=33,steps=400,spikes=8,samples=3"));
	ok(neap_dataset_open(&set[1], "randman:units=33,steps=400,spikes=8,samples=3,active=0.25"));
	for (int64_t i = 0; i < 3; i++) {
		for (int k = 0; k < 2; k++) {
			int count[33] = {0};
			ok(neap_dataset_read(set[k], i, &e[k]));
			assert_int_equal(e[k].count, 33 * WINDOWS);
			for (int64_t n = 0; n < e[k].count; n++) {
				int u = e[k].unit[n];
				assert_true(count[u] < WINDOWS);
				time[k][u][count[u]++] = e[k].time[n];
			}
			neap_events_free(&e[k]);
		}
		for (int u = 0; u < 33; u++)
			for (int w = 0; w < WINDOWS; w++) {
				double start = 0.05 * w;
				assert_true(fabs(time[1][u][w] - start -
						    0.25 * (time[0][u][w] - start)) < 1e-3);
			}
	}
	neap_dataset_close(set[0]);
	neap_dataset_close(set[1]);
}

/* Train and test share their manifolds: the nearest training sample has the right class. */
static void test_points_lie_on_the_manifolds(void **state)
{
	(void)state;
	enum { TRAIN = 1000, TEST = 100, UNITS = 70 };
	struct neap_dataset *train, *test;
	double(*t)[UNITS] = calloc(TRAIN, sizeof *t);
	int right = 0;
	ok(neap_dataset_open(&train, "randman:samples=1000"));
	ok(neap_dataset_open(&test, "randman:samples=100,part=test"));
	for (int64_t i = 0; i < TRAIN; i++) {
		struct neap_events e;
		ok(neap_dataset_read(train, i, &e));
		for (int64_t k = 0; k < e.count; k++)
			t[i][e.unit[k]] = e.time[k];
		neap_events_free(&e);
	}
	for (int64_t i = 0; i < TEST; i++) {
		struct neap_events e;
		double x[UNITS] = {0};
		int64_t best = 0;
		ok(neap_dataset_read(test, i, &e));
		for (int64_t k = 0; k < e.count; k++)
			x[e.unit[k]] = e.time[k];
		for (int64_t j = 1; j < TRAIN; j++)
			if (distance(x, t[j], UNITS) < distance(x, t[best], UNITS))
				best = j;
		right += neap_dataset_label(train, best) == e.label;
		neap_events_free(&e);
	}
	free(t);
	neap_dataset_close(train);
	neap_dataset_close(test);
	assert_true(right >= 98);
}

static void values_are_spread(void **state)
{
	(void)state;
	struct neap_dataset *set;
	ok(neap_dataset_open(&set, "randman:dim=2,alpha=1.5,samples=200"));
	double sum = 0, square = 0;
	int64_t n = 0;
	for (int64_t i = 0; i < 200; i++) {
		struct neap_events e;
		ok(neap_dataset_read(set, i, &e));
		for (int64_t k = 0; k < e.count; k++, n++) {
			sum += e.time[k];
			square += e.time[k] * e.time[k];
		}
		neap_events_free(&e);
	}
	double mean = sum / (double)n, deviation = sqrt(square / (double)n - mean * mean);
	assert_true(mean > 0.035 && mean < 0.065);
	assert_true(deviation > 0.015 && deviation < 0.04);
	neap_dataset_close(set);
}

/* f(x) of class 0 by the formula in the head of randman.c; every sine is the C library's. */
static double formula(int dim, double alpha, int terms, int unit, const double *x)
{
	double product = 1;
	for (int d = 0; d < dim; d++) {
		double sum = 0;
		for (int k = 0; k < terms; k++) {
			double t[3];
			uint64_t i =
				((uint64_t)unit * (uint64_t)dim + (uint64_t)d) * (uint64_t)terms +
				(uint64_t)k;
			for (uint32_t j = 0; j < 3; j++)
				t[j] = neap__random_uniform(0, NEAP__STREAM_RANDMAN, j, i);
			t[0] *= pow(k + 1, -alpha);
			t[1] *= k + 1;
			sum += t[0] * sin(6.283185307179586 * (t[1] * x[d] + t[2]));
		}
		product *= sum;
	}
	return product;
}

/* Times are the formula's to the bit, over the range of the formula at all points of the grid. */
static void times_are_the_formula(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int dim, terms;
		double alpha;
	} cases[] = {{"randman:units=9", 1, 31, 2}, {"randman:units=9,dim=3,alpha=1", 3, 1000, 1},
		{"randman:units=9,dim=2,alpha=10", 2, 1, 10}};
	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
		const int dim = cases[c].dim, terms = cases[c].terms;
		double time[9], x[3];
		profile(cases[c].name, 0, 9, time);
		for (int unit = 0; unit < 9; unit++) {
			double low = INFINITY, high = -INFINITY;
			for (uint64_t i = 0; i < 1024; i++) {
				for (uint32_t d = 0; d < (uint32_t)dim; d++)
					x[d] = dim == 1 ? (double)i / 1023
							: neap__random_uniform(0,
								  NEAP__STREAM_RANDMAN, 0x100 + d,
								  i);
				double v = formula(dim, cases[c].alpha, terms, unit, x);
				low = fmin(low, v);
				high = fmax(high, v);
			}
			uint64_t key = neap__random_u64(0, NEAP__STREAM_RANDMAN, 0x300, 0);
			for (uint32_t d = 0; d < (uint32_t)dim; d++)
				x[d] = neap__random_uniform(
					key, NEAP__STREAM_RANDMAN, 0x200 + d, 0);
			double v = (formula(dim, cases[c].alpha, terms, unit, x) - low) *
				   (1 / (high - low));
			double expected =
				fmin(fmin(fmax(v, 0), 1) * (100 * 1e-3), 100 * 1e-3 - 0.5e-3);
			assert_memory_equal(&time[unit], &expected, sizeof expected);
		}
	}
}

static void bad_names(void **state)
{
	(void)state;
	static const struct {
		const char *name, *word;
	} cases[] = {
		{"randman:", "KEY=VALUE"},
		{"randman:classes", "KEY=VALUE"},
		{"randman:classes=", "classes="},
		{"randman:classes=0", "between 1 and 1000"},
		{"randman:classes=-3", "between 1 and 1000"},
		{"randman:classes=2.5", "whole"},
		{"randman:classes=ten", "classes=ten"},
		{"randman:classes=1e99", "classes=1e99"},
		{"randman:units=65537", "units"},
		{"randman:units=9223372036854775808", "units"},
		{"randman:alpha=nan", "alpha"},
		{"randman:alpha=0", "alpha"},
		{"randman:steps=1", "steps"},
		{"randman:samples=0", "samples"},
		{"randman:noise=-1", "noise"},
		{"randman:noise=inf", "noise"},
		{"randman:active=0", "active"},
		{"randman:active=1.5", "active"},
		{"randman:spikes=200", "one spike per step"},
		{"randman:seed=-1", "seed"},
		{"randman:part=valid", "train or test"},
		{"randman:colour=red", "unknown key 'colour'"},
		{"randman:classes=3,,units=4", "KEY=VALUE"},
		{"randman:units=60000,classes=1000,dim=16,alpha=0.5", "more than 5e7"},
		{"randman:steps=100000000,spikes=10000000,units=1000", "spikes * units"},
		{"", "empty"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct neap_dataset *set;
		refused(neap_dataset_open(&set, cases[i].name), NEAP_EUSAGE, cases[i].word);
		assert_null(set);
	}
}

static void check_bins(const struct neap__bins *a, const struct neap__bins *b, int64_t index)
{
	if (a->starts != b->starts || a->units != b->units ||
		memcmp(a->start, b->start, a->starts * sizeof *a->start) != 0 ||
		memcmp(a->unit, b->unit, a->units * sizeof *a->unit) != 0)
		fail_msg("sample %lld has other spikes", (long long)index);
}

/* Times of which only the step matters may be approximate, but never in another step. */
static void approximate_times_are_in_the_same_steps(void **state)
{
	static const struct {
		const char *name;
		double dt;
	} cases[] = {{"randman:samples=100", 1e-3}, {"randman:samples=20", 1.7e-6},
		{"randman:samples=20", 1e-9},
		{"randman:samples=40,alpha=1,units=3,classes=2", 0.9e-3},
		{"randman:samples=10,dim=3,units=131,alpha=2,classes=2", 1e-3},
		{"randman:samples=5,spikes=20,steps=1000,noise=2,units=130,classes=2", 1e-3},
		{"randman:samples=9,spikes=3,steps=100000000,units=5", 1e-3}};
	(void)state;
	for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
		struct neap_dataset *set;
		struct neap__event_buffer exact = {0}, rough = {.dt = cases[k].dt};
		struct neap__bins a = {0}, b = {0};
		int64_t length, other, different = 0;
		ok(neap_dataset_open(&set, cases[k].name));
		for (int64_t i = 0; i < set->info.samples; i++) {
			double dt = cases[k].dt, from = 0.31 * set->info.duration;
			int long_sample = set->info.duration / dt > 1e5;
			int64_t t = (int64_t)(from / dt), most = 1 << 16;
			ok(neap__dataset_read(set, i, &exact));
			ok(neap__dataset_read(set, i, &rough));
			assert_int_equal(exact.events.count, rough.events.count);
			for (int64_t e = 0; e < exact.events.count; e++)
				different += exact.events.time[e] != rough.events.time[e];
			neap__bins_clear(&a);
			neap__bins_clear(&b);
			int64_t n = exact.events.count;
			assert_int_equal(neap__bins_step(exact.events.time[n - 1], dt),
				neap__bins_step(rough.events.time[n - 1], dt));
			if (!long_sample) {
				ok(neap__bins_add(
					&a, &exact.events, set->info.inputs, dt, 0, &length));
				ok(neap__bins_add(
					&b, &rough.events, set->info.inputs, dt, 0, &other));
				assert_int_equal(length, other);
			}
			/* And in a part that ends within the sample. */
			ok(neap__dataset_part(
				set, i, from - 0.01 * dt, 1e3 * dt + from, (size_t)most, &exact));
			ok(neap__dataset_part(
				set, i, from - 0.01 * dt, 1e3 * dt + from, (size_t)most, &rough));
			ok(neap__bins_add_part(
				&a, &exact.events, set->info.inputs, dt, t + 1, t + 1000));
			ok(neap__bins_add_part(
				&b, &rough.events, set->info.inputs, dt, t + 1, t + 1000));
			check_bins(&a, &b, i);
		}
		assert_true(different > 0 || cases[k].dt < 1e-8);
		neap__event_buffer_free(&exact);
		neap__event_buffer_free(&rough);
		neap__bins_free(&a);
		neap__bins_free(&b);
		neap_dataset_close(set);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_unit_spikes_in_time),
		cmocka_unit_test(a_function_of_seed_and_point),
		cmocka_unit_test(bursts_are_compressed_windows),
		cmocka_unit_test(test_points_lie_on_the_manifolds),
		cmocka_unit_test(values_are_spread),
		cmocka_unit_test(times_are_the_formula),
		cmocka_unit_test(approximate_times_are_in_the_same_steps),
		cmocka_unit_test(bad_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
