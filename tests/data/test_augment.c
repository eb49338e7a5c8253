/* SPDX-License-Identifier: Apache-2.0 */
/* Augmentation: what becomes of small samples, and on what it may depend. */
#include "spikes.h"
#include "data/augment/augment.h"
#include "data/bins.h"

enum { UNITS = 40, SAMPLES = 23 };

/* One file for all tests. */
static const char *set_path(void)
{
	static char path[4200];
	if (!path[0]) {
		snprintf(path, sizeof path, "%s", scratch("augment.h5"));
		write_set(path, SAMPLES, UNITS, 200);
	}
	return path;
}

static int remove_set(void **state)
{
	(void)state;
	unlink(set_path());
	return 0;
}

static struct neap__augment all_of(struct neap_augment options, uint32_t epoch)
{
	return (struct neap__augment){
		.options = options, .inputs = UNITS, .dt = 1e-3, .seed = 1, .epoch = epoch};
}

/* Events of the plainest kind: unit i at time i * every. */
static struct neap_events stairs(int count, double every)
{
	struct neap_events e = {.count = count, .duration = count * every};
	e.time = calloc((size_t)count, sizeof *e.time);
	e.unit = calloc((size_t)count, sizeof *e.unit);
	for (int i = 0; i < count; i++) {
		e.time[i] = i * every;
		e.unit[i] = (uint16_t)i;
	}
	return e;
}

static void shifted_together(void **state)
{
	(void)state;
	static const int expected[] = {-3, -3, -3, 3, 0, -1, -2, 2, 3, -3, -3, 2};
	int seen[7] = {0};

	for (uint32_t epoch = 0; epoch < 200; epoch++) {
		struct neap__augment a = all_of((struct neap_augment){.shift = 3}, epoch);
		struct neap_events e = stairs(UNITS, 1e-3);
		neap__augment_apply(&a, 5, &e);
		assert_true(e.count >= UNITS - 3 && e.count <= UNITS);
		int by = e.unit[10] - (int)lround(e.time[10] * 1e3);
		assert_true(by >= -3 && by <= 3);
		seen[by + 3]++;
		if (epoch < 12 && by != expected[epoch])
			fail_msg("epoch %u: shift %d, not %d", epoch, by, expected[epoch]);
		assert_int_equal(e.count, UNITS - abs(by));
		for (int64_t i = 0; i < e.count; i++) {
			int was = (int)i + (by < 0 ? -by : 0);
			assert_int_equal(e.unit[i], was + by);
			assert_true(e.time[i] == was * 1e-3);
		}
		neap_events_free(&e);
	}
	for (int i = 0; i < 7; i++)
		assert_in_range(seen[i], 10, 50); /* 200 / 7 = 28.6 */
}

static void shifted_out_of_all(void **state)
{
	(void)state;
	int none = 0;
	for (uint32_t epoch = 0; epoch < 50; epoch++) {
		struct neap__augment a = all_of((struct neap_augment){.shift = 65535}, epoch);
		struct neap_events e = stairs(UNITS, 1e-3);
		neap__augment_apply(&a, 0, &e);
		none += e.count == 0;
		neap_events_free(&e);
	}
	assert_true(none > 40);
}

static void jittered_one_by_one(void **state)
{
	(void)state;
	enum { N = 20000 };
	double sum = 0, squares = 0;
	struct neap__augment a = all_of((struct neap_augment){.jitter = 3e-3}, 0);
	struct neap_events e = stairs(N, 1e-3);

	neap__augment_apply(&a, 0, &e);
	assert_int_equal(e.count, N);
	for (int i = 0; i < N; i++) {
		assert_int_equal(e.unit[i], i);
		double moved = (e.time[i] - i * 1e-3) * 1e3; /* whole steps */
		assert_true(fabs(moved - round(moved)) < 1e-6 && fabs(moved) < 27);
		sum += moved;
		squares += moved * moved;
	}
	assert_true(fabs(sum / N) < 0.1); /* 5 standard errors: times are not cut down */
	assert_true(fabs(sqrt(squares / N) - sqrt(9 + 1.0 / 12)) < 0.1);
	neap_events_free(&e);
}

/* The draw of an event is its own: other events, their number and order do not matter. */
static void jittered_in_any_order(void **state)
{
	(void)state;
	struct neap__augment a = all_of((struct neap_augment){.jitter = 5e-3}, 7);
	struct neap_events all = stairs(UNITS, 1.7e-3), few = stairs(UNITS, 1.7e-3);

	few.count = 0;
	for (int i = UNITS - 1; i >= 0; i -= 3, few.count++) {
		few.time[few.count] = all.time[i];
		few.unit[few.count] = (uint16_t)i;
	}
	neap__augment_apply(&a, 2, &all);
	neap__augment_apply(&a, 2, &few);
	for (int64_t i = 0; i < few.count; i++)
		assert_true(few.time[i] == all.time[few.unit[i]]);
	neap_events_free(&all);
	neap_events_free(&few);
}

static void stretched_as_one(void **state)
{
	(void)state;
	double least = 9, most = 0;
	for (uint32_t epoch = 0; epoch < 300; epoch++) {
		const struct neap_augment o = {.stretch_low = 0.8, .stretch_high = 1.25};
		struct neap__augment a = all_of(o, epoch);
		struct neap_events e = stairs(UNITS, 1e-2);
		struct neap__sample_extent length = {UNITS, 0.4, 0.39};
		neap__augment_apply(&a, 1, &e);
		neap__augment_extent(&a, 1, &length);
		double by = length.duration / 0.4;
		least = fmin(least, by);
		most = fmax(most, by);
		assert_true(by >= 0.8 && by <= 1.25);
		assert_true(length.last == e.time[UNITS - 1] || UNITS * 1e-2 != 0.4);
		for (int i = 0; i < UNITS; i++) {
			assert_int_equal(e.unit[i], i);
			assert_true(fabs(e.time[i] - by * i * 1e-2) < 1e-12);
		}
		neap_events_free(&e);
	}
	assert_true(least < 0.81 && most > 1.24);
	struct neap_augment o = {.stretch_low = 0.8, .stretch_high = 1.25};
	assert_true(neap__augment_longest(&o, 2) == 2.5);
	o = (struct neap_augment){.jitter = 1, .shift = 9};
	assert_true(neap__augment_longest(&o, 2) == 2);
}

/* A sample of a batch, copied. */
struct copy {
	int64_t length;
	uint32_t *start;
	uint16_t *unit;
};

static struct copy copy_of(const struct neap_sequence *s)
{
	struct copy c = {.length = s->length};
	size_t starts = (size_t)(s->length + 1) * sizeof *c.start;
	size_t units = s->start[s->length] * sizeof *c.unit;
	c.start = malloc(starts);
	c.unit = malloc(units + 1);
	memcpy(c.start, s->start, starts);
	memcpy(c.unit, s->unit, units);
	return c;
}

static int same(const struct copy *a, const struct copy *b)
{
	return a->length == b->length &&
	       memcmp(a->start, b->start, (size_t)(a->length + 1) * sizeof *a->start) == 0 &&
	       memcmp(a->unit, b->unit, a->start[a->length] * sizeof *a->unit) == 0;
}

static void free_copies(struct copy copies[SAMPLES])
{
	for (int i = 0; i < SAMPLES; i++) {
		free(copies[i].start);
		free(copies[i].unit);
	}
	memset(copies, 0, SAMPLES * sizeof *copies);
}

/* Units of a step ascend and differ; all are within the inputs. */
static void check_form(const struct neap_sequence *s)
{
	assert_true(s->length >= 1);
	assert_int_equal(s->start[0], 0);
	for (int64_t t = 0; t < s->length; t++) {
		assert_true(s->start[t] <= s->start[t + 1]);
		for (uint32_t i = s->start[t]; i < s->start[t + 1]; i++) {
			assert_true(s->unit[i] < UNITS);
			assert_true(i == s->start[t] || s->unit[i - 1] < s->unit[i]);
		}
	}
}

/* The samples of an epoch from batch `first` on; gives how many. */
static int load(
	struct copy copies[SAMPLES], struct neap_loader_options o, int64_t epoch, int64_t first)
{
	struct neap_dataset *set;
	struct neap_loader *loader;
	const struct neap_batch *batch;
	int seen = 0, rc;

	ok(neap_dataset_open(&set, set_path()));
	ok(neap_loader_open(&loader, set, &o));
	if (epoch > 0) { /* what ran before does not matter */
		ok(neap_loader_start(loader, epoch - 1, 0));
		ok(neap_loader_next(loader, &batch));
	}
	ok(neap_loader_start(loader, epoch, first));
	while ((rc = neap_loader_next(loader, &batch)) > 0) {
		for (int i = 0; i < batch->size; i++, seen++) {
			const struct neap_sequence *s = &batch->sequences[i];
			check_form(s);
			assert_null(copies[s->index].start);
			copies[s->index] = copy_of(s);
			assert_int_equal(s->label, s->index % 3);
		}
	}
	ok(rc);
	neap_loader_close(loader);
	neap_dataset_close(set);
	return seen;
}

static struct neap_loader_options options(int batch, struct neap_augment augment)
{
	return (struct neap_loader_options){.size = sizeof(struct neap_loader_options),
		.batch = batch,
		.dt = 1e-3,
		.seed = 11,
		.augment = augment};
}

static const struct neap_augment kinds[] = {
	{.shift = 2},
	{.jitter = 2e-3},
	{.stretch_low = 0.9, .stretch_high = 1.1},
	{.stretch_low = 0.5, .stretch_high = 2, .jitter = 20e-3, .shift = 7},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static void a_function_of_seed_epoch_and_sample(void **state)
{
	(void)state;
	struct copy plain[SAMPLES] = {0}, one[SAMPLES] = {0}, other[SAMPLES] = {0};

	load(plain, options(4, (struct neap_augment){0}), 0, 0);
	for (int k = 0; k < KINDS; k++) {
		struct neap_loader_options o = options(1, kinds[k]);
		int equal = 0, later = 0, reseeded = 0;
		assert_int_equal(load(one, o, 3, 0), SAMPLES);
		/* Other batches, another order, resumed in mid-epoch. */
		o.batch = 5;
		for (int first = 0; first < 4; first += 3) {
			int n = load(other, o, 3, first);
			assert_int_equal(n, SAMPLES - 5 * first);
			for (int i = 0; i < SAMPLES; i++)
				assert_true(!other[i].start || same(&one[i], &other[i]));
			free_copies(other);
			o.shuffle = 1;
		}
		load(other, o, 4, 0);
		for (int i = 0; i < SAMPLES; i++) {
			equal += same(&one[i], &plain[i]);
			later += same(&one[i], &other[i]);
		}
		free_copies(other);
		o.seed = 12;
		load(other, o, 3, 0);
		for (int i = 0; i < SAMPLES; i++)
			reseeded += same(&one[i], &other[i]);
		free_copies(other);
		free_copies(one);
		assert_true(equal <= SAMPLES / 2 && later <= SAMPLES / 2);
		assert_true(reseeded <= SAMPLES / 2);
	}
	free_copies(plain);
}

/* Against a table of (step, unit) that is filled in event by event. */
static void batches_by_definition(void **state)
{
	(void)state;
	for (int k = 0; k < KINDS; k++) {
		struct copy got[SAMPLES] = {0};
		struct neap__augment a = {kinds[k], UNITS, 1e-3, 11, 6};
		load(got, options(6, kinds[k]), 6, 0);
		for (int64_t i = 0; i < SAMPLES; i++) {
			struct neap_events e = some_events(1, i, UNITS, 200);
			struct neap__sample_extent length = {e.count, e.duration, 0};
			for (int64_t n = 0; n < e.count; n++)
				e.time[n] = (double)(float)e.time[n]; /* as the file keeps it */
			neap__augment_extent(&a, i, &length);
			neap__augment_apply(&a, i, &e);
			int64_t steps = (int64_t)ceil(length.duration / 1e-3 - 1e-6);
			assert_int_equal(got[i].length, steps);
			char *table = calloc((size_t)(steps * UNITS), 1);
			int64_t spikes = 0;
			for (int64_t n = 0; n < e.count; n++) {
				double x = e.time[n] / 1e-3, t = floor(x + 1e-6 + x * 6e-8);
				if (t >= 0 && t < (double)steps)
					table[(int64_t)t * UNITS + e.unit[n]] = 1;
			}
			for (int64_t n = 0; n < steps * UNITS; n++)
				spikes += table[n];
			assert_int_equal(got[i].start[steps], spikes);
			for (int64_t t = 0; t < steps; t++)
				for (uint32_t n = got[i].start[t]; n < got[i].start[t + 1]; n++)
					assert_int_equal(table[t * UNITS + got[i].unit[n]], 1);
			free(table);
			neap_events_free(&e);
		}
		free_copies(got);
	}
}

static void cut_after_all_else(void **state)
{
	(void)state;
	struct copy whole[SAMPLES] = {0}, cut[SAMPLES] = {0};
	struct neap_loader_options o = options(6, kinds[KINDS - 1]);
	load(whole, o, 0, 0);
	o.steps = 60;
	load(cut, o, 0, 0);
	for (int i = 0; i < SAMPLES; i++) {
		assert_int_equal(cut[i].length, whole[i].length < 60 ? whole[i].length : 60);
		assert_memory_equal(cut[i].start, whole[i].start,
			(size_t)(cut[i].length + 1) * sizeof *cut[i].start);
		assert_memory_equal(cut[i].unit, whole[i].unit,
			cut[i].start[cut[i].length] * sizeof *cut[i].unit);
	}
	free_copies(whole);
	free_copies(cut);
}

/* A file without durations: the last spike, stretched, makes the length; shift takes none of it. */
static void lengths_without_duration(void **state)
{
	(void)state;
	struct neap__augment a = all_of(kinds[KINDS - 1], 9);
	struct neap__sample_extent e = {5, 0, 0.25};
	neap__augment_extent(&a, 3, &e);
	assert_true(e.duration == 0 && e.count == 5);
	assert_true(e.last >= 0.125 && e.last <= 0.5 && e.last != 0.25);
}

static void what_is_refused(void **state)
{
	(void)state;
	static const struct {
		struct neap_augment augment;
		const char *says;
	} bad[] = {{{.shift = -1}, "--shift is -1"}, {{.shift = 65536}, "--shift is"},
		{{.jitter = -1e-3}, "--jitter is"}, {{.jitter = NAN}, "--jitter is"},
		{{.jitter = 2e3}, "--jitter is"}, {{.stretch_high = 1.1}, "--stretch is"},
		{{.stretch_low = 1.1, .stretch_high = 0.9}, "--stretch is"},
		{{.stretch_low = 1, .stretch_high = NAN}, "--stretch is"},
		{{.stretch_low = 1, .stretch_high = 101}, "--stretch is"}};
	struct neap_dataset *set;
	struct neap_loader *loader;
	ok(neap_dataset_open(&set, "randman:samples=4,classes=2"));
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct neap_loader_options o = options(2, bad[i].augment);
		refused(neap_loader_open(&loader, set, &o), NEAP_EUSAGE, bad[i].says);
	}
	neap_dataset_close(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shifted_together),
		cmocka_unit_test(shifted_out_of_all),
		cmocka_unit_test(jittered_one_by_one),
		cmocka_unit_test(jittered_in_any_order),
		cmocka_unit_test(stretched_as_one),
		cmocka_unit_test(a_function_of_seed_epoch_and_sample),
		cmocka_unit_test(batches_by_definition),
		cmocka_unit_test(cut_after_all_else),
		cmocka_unit_test(lengths_without_duration),
		cmocka_unit_test(what_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, remove_set);
}
