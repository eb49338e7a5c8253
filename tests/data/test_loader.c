/* SPDX-License-Identifier: Apache-2.0 */
/* Splits, bins and batches. */
#include "spikes.h"
#include "data/bins.h"

#include <pthread.h>

static void split_by_seed(void **state)
{
	(void)state;
	struct neap_dataset *set;
	ok(neap_dataset_open(&set, "randman:samples=997,classes=7,units=3"));
	for (int round = 0; round < 20; round++) {
		double fraction = round / 20.0;
		int64_t *a, *b, na, nb, *a2, *b2, na2, nb2;
		ok(neap_dataset_split(set, fraction, 5, -1, &a, &na, &b, &nb));
		assert_int_equal(na + nb, 997);
		assert_int_equal(nb, llround(fraction * 997));
		int seen[997] = {0}, of_class[7] = {0};
		for (int64_t i = 0; i < na; i++) {
			seen[a[i]]++;
			assert_true(i == 0 || a[i - 1] < a[i]);
		}
		for (int64_t i = 0; i < nb; i++) {
			seen[b[i]]++;
			of_class[neap_dataset_label(set, b[i])]++;
			assert_true(i == 0 || b[i - 1] < b[i]);
		}
		for (int i = 0; i < 997; i++)
			assert_int_equal(seen[i], 1);
		for (int c = 0; c < 7; c++)
			assert_true(fabs(of_class[c] - fraction * 997 / 7) <= 2);
		ok(neap_dataset_split(set, fraction, 5, -1, &a2, &na2, &b2, &nb2));
		assert_memory_equal(b, b2, (size_t)nb * sizeof *b);
		free(a2);
		free(b2);
		if (round > 2) {
			ok(neap_dataset_split(set, fraction, 6, -1, &a2, &na2, &b2, &nb2));
			assert_memory_not_equal(b, b2, (size_t)nb * sizeof *b);
			free(a2);
			free(b2);
		}
		free(a);
		free(b);
	}
	int64_t *a, *b, n;
	refused(neap_dataset_split(set, 1, 0, -1, &a, &n, &b, &n), NEAP_EUSAGE, "less than 1");
	refused(neap_dataset_split(set, NAN, 0, -1, &a, &n, &b, &n), NEAP_EUSAGE,
		"validation fraction is nan");
	refused(neap_dataset_split(set, 0, 0, 2, &a, &n, &b, &n), NEAP_EUSAGE, "has no speakers");
	neap_dataset_close(set);
}

static void split_by_speaker(void **state)
{
	(void)state;
	const char *path = scratch("speaker.h5");
	write_set(path, 50, 10, 5);
	struct neap_dataset *set;
	ok(neap_dataset_open(&set, path));
	int64_t *a, *b, na, nb;
	ok(neap_dataset_split(set, 0, 0, 2, &a, &na, &b, &nb));
	assert_int_equal(na + nb, 50);
	assert_true(nb > 5);
	for (int64_t i = 0; i < nb; i++)
		assert_int_equal(neap_dataset_speaker(set, b[i]), 2);
	for (int64_t i = 0; i < na; i++)
		assert_int_not_equal(neap_dataset_speaker(set, a[i]), 2);
	free(a);
	free(b);
	refused(neap_dataset_split(set, 0, 0, 4, &a, &na, &b, &nb), NEAP_EUSAGE, "speaker 4");
	neap_dataset_close(set);
	unlink(path);
}

static void bins_by_definition(void **state)
{
	(void)state;
	uint64_t seed = test_seed(3);
	struct neap__bins bins = {0};
	for (int64_t round = 0; round < 300; round++) {
		int units = 1 + (int)(round % 40);
		double dt = round % 3 == 0 ? 1e-3 : round % 3 == 1 ? 0.25e-3 : 3.3e-3;
		struct neap_events e = some_events(seed, round, units, (int)(round % 7) * 60);
		if (round % 2)
			e.duration = 0;
		int64_t length, limit = round % 5 == 0 ? 20 : 0;
		neap__bins_clear(&bins);
		ok(neap__bins_add(&bins, &e, units, dt, limit, &length));
		/* The plain way: a table of (step, unit). */
		int64_t steps = 1;
		if (e.duration > 0)
			steps = (int64_t)ceil(e.duration / dt - 1e-6);
		else if (e.count)
			steps = (int64_t)floor(e.time[e.count - 1] / dt + 1e-6) + 1;
		if (limit && steps > limit)
			steps = limit;
		assert_int_equal(length, steps);
		char *table = calloc((size_t)(steps * units), 1);
		for (int64_t i = 0; i < e.count; i++) {
			int64_t t = (int64_t)floor(e.time[i] / dt + 1e-6);
			if (t < steps)
				table[t * units + e.unit[i]] = 1;
		}
		assert_int_equal(bins.start[0], 0);
		for (int64_t t = 0; t < steps; t++) {
			uint32_t at = bins.start[t];
			for (int u = 0; u < units; u++)
				if (table[t * units + u]) {
					assert_true(at < bins.start[t + 1]);
					assert_int_equal(bins.unit[at++], u);
				}
			assert_int_equal(at, bins.start[t + 1]);
		}
		free(table);
		neap_events_free(&e);
	}
	neap__bins_free(&bins);
}

/* A time at the start of step n belongs to step n, also from float32, as far as 10^6 steps. */
static void bins_at_borders(void **state)
{
	(void)state;
	struct neap__bins bins = {0};
	int n = 1000;
	struct neap_events e = {.count = n, .time = calloc(1000, 8), .unit = calloc(1000, 2)};
	static const double dts[] = {1e-3, 2e-3, 1e-4, 2.5e-4};
	for (int d = 0; d < 4; d++) {
		for (int i = 0; i < n; i++)
			e.time[i] = (double)(float)(i * 997 * dts[d]);
		int64_t length;
		neap__bins_clear(&bins);
		ok(neap__bins_add(&bins, &e, 1, dts[d], 0, &length));
		assert_int_equal(length, 999 * 997 + 1);
		for (int i = 0; i < n; i++)
			assert_int_equal(bins.start[i * 997 + 1] - bins.start[i * 997], 1);
	}
	e.time[n - 1] = 1e6;
	int64_t length;
	refused(neap__bins_add(&bins, &e, 1, 1e-6, 0, &length), NEAP_EFORMAT, "longer --dt");
	ok(neap__bins_add(&bins, &e, 1, 1e-6, 100, &length));
	assert_int_equal(length, 100);
	neap_events_free(&e);
	neap__bins_free(&bins);
}

/* A number that depends on every bit of a batch. */
static uint64_t digest(const struct neap_batch *batch)
{
	uint64_t h = 1469598103934665603u;
#define MIX(x) (h = (h ^ (uint64_t)(x)) * 1099511628211u)
	MIX(batch->size);
	MIX(batch->steps);
	for (int i = 0; i < batch->size; i++) {
		const struct neap_sequence *s = &batch->sequences[i];
		MIX(s->index);
		MIX(s->label);
		MIX(s->length);
		for (int64_t t = 0; t <= s->length; t++)
			MIX(s->start[t]);
		for (uint32_t k = 0; k < s->start[s->length]; k++)
			MIX(s->unit[k]);
	}
#undef MIX
	return h;
}

static struct neap_loader_options options(int batch)
{
	return (struct neap_loader_options){.size = sizeof(struct neap_loader_options),
		.batch = batch,
		.dt = 1e-3,
		.shuffle = 1,
		.seed = 4};
}

static void batches_are_a_function(void **state)
{
	(void)state;
	const char *path = scratch("loader.h5");
	write_set(path, 103, 20, 50);
	struct neap_dataset *set;
	ok(neap_dataset_open(&set, path));
	struct neap_loader_options o = options(8);
	struct neap_loader *loader;
	ok(neap_loader_open(&loader, set, &o));
	assert_int_equal(neap_loader_batches(loader), 13);
	const struct neap_batch *batch;
	refused(neap_loader_next(loader, &batch), NEAP_EUSAGE, "before");
	uint64_t whole[3][13];
	for (int epoch = 0; epoch < 3; epoch++) {
		int seen[103] = {0}, n = 0;
		ok(neap_loader_start(loader, epoch, 0));
		while (neap_loader_next(loader, &batch) > 0) {
			assert_int_equal(batch->size, n == 12 ? 103 - 96 : 8);
			assert_int_equal(batch->inputs, 20);
			assert_true(batch->bytes > 0);
			for (int i = 0; i < batch->size; i++) {
				const struct neap_sequence *s = &batch->sequences[i];
				seen[s->index]++;
				assert_int_equal(s->label, s->index % 3);
				assert_int_equal(s->length, 100);
				assert_true(s->length <= batch->steps);
			}
			whole[epoch][n++] = digest(batch);
		}
		assert_int_equal(n, 13);
		assert_int_equal(neap_loader_next(loader, &batch), 0);
		for (int i = 0; i < 103; i++)
			assert_int_equal(seen[i], 1);
	}
	assert_true(whole[0][0] != whole[1][0] && whole[1][0] != whole[2][0]);
	/* Begun anywhere, dropped anywhere: the same batches. */
	for (int round = 0; round < 60; round++) {
		int epoch = round % 3, first = round * 7 % 14, take = round % 5;
		ok(neap_loader_start(loader, epoch, first));
		for (int n = first; n < first + take && n < 13; n++) {
			assert_int_equal(neap_loader_next(loader, &batch), 1);
			assert_true(digest(batch) == whole[epoch][n]);
		}
	}
	refused(neap_loader_start(loader, 0, 14), NEAP_EUSAGE, "batch 14");
	neap_loader_close(loader);
	neap_dataset_close(set);
	unlink(path);
}

/* Every order of three samples comes, each about as often as another. */
static void every_order(void **state)
{
	struct neap_loader_options o = options(3);
	struct neap_dataset *set;
	struct neap_loader *loader;
	const struct neap_batch *batch;
	int seen[27] = {0}, orders = 0;
	(void)state;
	ok(neap_dataset_open(&set, "randman:samples=3,units=5,steps=20,classes=3"));
	ok(neap_loader_open(&loader, set, &o));
	for (int epoch = 0; epoch < 120; epoch++) {
		ok(neap_loader_start(loader, epoch, 0));
		assert_int_equal(neap_loader_next(loader, &batch), 1);
		seen[batch->sequences[0].index * 9 + batch->sequences[1].index * 3 +
			batch->sequences[2].index]++;
	}
	for (int i = 0; i < 27; i++) {
		orders += seen[i] > 0;
		assert_true(seen[i] == 0 || seen[i] > 6);
	}
	assert_int_equal(orders, 6);
	neap_loader_close(loader);
	neap_dataset_close(set);
}

static void subsets_and_limits(void **state)
{
	(void)state;
	struct neap_dataset *set;
	ok(neap_dataset_open(&set, "randman:samples=20,units=5,steps=50"));
	static const int64_t index[] = {3, 19, 3, 0};
	struct neap_loader_options o = options(3);
	o.shuffle = 0;
	o.index = index;
	o.count = 4;
	o.steps = 30;
	struct neap_loader *loader;
	const struct neap_batch *batch;
	ok(neap_loader_open(&loader, set, &o));
	ok(neap_loader_start(loader, 0, 0));
	for (int i = 0; i < 4; i++) {
		if (i % 3 == 0)
			assert_int_equal(neap_loader_next(loader, &batch), 1);
		assert_int_equal(batch->sequences[i % 3].index, index[i]);
		assert_int_equal(batch->sequences[i % 3].length, 30);
	}
	assert_int_equal(neap_loader_next(loader, &batch), 0);
	neap_loader_close(loader);
	neap_loader_close(NULL);

	static const int64_t wrong[] = {0, 20};
	o.index = wrong;
	o.count = 2;
	refused(neap_loader_open(&loader, set, &o), NEAP_EUSAGE, "sample 20");
	o.index = NULL;
	o.batch = 0;
	refused(neap_loader_open(&loader, set, &o), NEAP_EUSAGE, "batch is 0");
	o.batch = 1;
	o.dt = NAN;
	refused(neap_loader_open(&loader, set, &o), NEAP_EUSAGE, "dt is");
	o.dt = 1e-9;
	o.steps = 0;
	ok(neap_loader_open(&loader, set, &o)); /* 5e7 steps: long, but possible */
	neap_loader_close(loader);
	neap_dataset_close(set);
}

/* A sample that cannot be read: the batch before it arrives, then the error, again and again. */
static void errors_arrive(void **state)
{
	(void)state;
	const char *path = scratch("broken.h5");
	write_set(path, 30, 20, 4000);
	struct neap_dataset *set;
	ok(neap_dataset_open(&set, path));
	struct neap_loader_options o = options(4);
	o.shuffle = 0;
	struct neap_loader *loader;
	const struct neap_batch *batch;
	ok(neap_loader_open(&loader, set, &o));
	ok(neap_loader_start(loader, 0, 0));
	assert_int_equal(neap_loader_next(loader, &batch), 1);
	assert_int_equal(truncate(path, 6000), 0);
	int rc = 1, given = 1;
	while ((rc = neap_loader_next(loader, &batch)) > 0)
		given++;
	assert_in_range(given, 1, 3);
	assert_int_equal(rc, NEAP_EFORMAT);
	assert_non_null(strstr(neap_detail(), path));
	assert_int_equal(neap_loader_next(loader, &batch), NEAP_EFORMAT);
	neap_loader_close(loader);
	neap_dataset_close(set);
	unlink(path);
}

static void *drain(void *arg)
{
	struct neap_loader *loader = arg;
	const struct neap_batch *batch;
	uint64_t *sum = calloc(1, sizeof *sum);
	if (neap_loader_start(loader, 7, 0) < 0)
		return sum;
	while (neap_loader_next(loader, &batch) > 0)
		*sum += digest(batch);
	return sum;
}

/* Several loaders over one set, from several threads. */
static void loaders_share_a_set(void **state)
{
	(void)state;
	const char *path = scratch("shared.h5");
	write_set(path, 64, 20, 50);
	struct neap_dataset *set;
	ok(neap_dataset_open(&set, path));
	struct neap_loader_options o = options(5);
	struct neap_loader *loader[4];
	pthread_t thread[4];
	uint64_t *sum[4];
	for (int i = 0; i < 4; i++) {
		ok(neap_loader_open(&loader[i], set, &o));
		assert_int_equal(pthread_create(&thread[i], NULL, drain, loader[i]), 0);
	}
	for (int i = 0; i < 4; i++) {
		void *answer;
		pthread_join(thread[i], &answer);
		sum[i] = answer;
		neap_loader_close(loader[i]);
		assert_true(*sum[i] != 0 && *sum[i] == *sum[0]);
	}
	for (int i = 0; i < 4; i++)
		free(sum[i]);
	/* Closed at any moment. */
	for (int i = 0; i < 50; i++) {
		const struct neap_batch *batch;
		ok(neap_loader_open(&loader[0], set, &o));
		if (i % 4)
			ok(neap_loader_start(loader[0], i, 0));
		for (int k = 0; k < i % 4 - 1; k++)
			assert_int_equal(neap_loader_next(loader[0], &batch), 1);
		neap_loader_close(loader[0]);
	}
	neap_dataset_close(set);
	unlink(path);
}

/* The shares of all ranks, one behind the other, are the batch of one process alone. */
static void ranks_share_batches(void **state)
{
	(void)state;
	struct neap_dataset *set;
	const struct neap_batch *whole, *part;
	ok(neap_dataset_open(&set, "randman:samples=77,classes=7,units=3,steps=20"));
	for (int ranks = 1; ranks <= 6; ranks++)
		for (int group = 1; group <= 9; group += 4) {
			struct neap_loader_options o = {.size = sizeof o,
				.batch = 18,
				.dt = 1e-3,
				.shuffle = 1,
				.seed = 4,
				.augment = {.shift = 1}};
			struct neap_loader *alone, *loader[6];
			ok(neap_loader_open(&alone, set, &o));
			o.ranks = ranks;
			o.group = group;
			o.last_group = 2;
			for (o.rank = 0; o.rank < ranks; o.rank++) {
				ok(neap_loader_open(&loader[o.rank], set, &o));
				ok(neap_loader_start(loader[o.rank], 1, 0));
				assert_int_equal(neap_loader_batches(loader[o.rank]), 5);
			}
			ok(neap_loader_start(alone, 1, 0));
			while (neap_loader_next(alone, &whole) > 0) {
				int at = 0, per_sum = whole->size < o.batch ? o.last_group : group;
				assert_int_equal(whole->of, 0);
				for (int r = 0; r < ranks; r++) {
					assert_int_equal(neap_loader_next(loader[r], &part), 1);
					assert_int_equal(part->of, whole->size);
					assert_int_equal(at < whole->size ? at % per_sum : 0, 0);
					for (int i = 0; i < part->size; i++, at++) {
						const struct neap_sequence
							*a = &part->sequences[i],
							*b = &whole->sequences[at];
						assert_int_equal(a->index, b->index);
						assert_int_equal(a->length, b->length);
						assert_memory_equal(a->unit + a->start[0],
							b->unit + b->start[0],
							(b->start[b->length] - b->start[0]) * 2);
					}
				}
				assert_int_equal(at, whole->size);
			}
			neap_loader_close(alone);
			for (int r = 0; r < ranks; r++) {
				assert_int_equal(neap_loader_next(loader[r], &part), 0);
				neap_loader_close(loader[r]);
			}
		}
	struct neap_loader_options bad = {
		.size = sizeof bad, .batch = 8, .dt = 1e-3, .ranks = 2, .rank = 2, .group = 4};
	struct neap_loader *loader;
	refused(neap_loader_open(&loader, set, &bad), NEAP_EUSAGE, "rank 2 of 2");
	bad.rank = bad.group = 0;
	refused(neap_loader_open(&loader, set, &bad), NEAP_EUSAGE, "groups of 0");
	neap_dataset_close(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(split_by_seed),
		cmocka_unit_test(split_by_speaker),
		cmocka_unit_test(bins_by_definition),
		cmocka_unit_test(bins_at_borders),
		cmocka_unit_test(batches_are_a_function),
		cmocka_unit_test(every_order),
		cmocka_unit_test(subsets_and_limits),
		cmocka_unit_test(errors_arrive),
		cmocka_unit_test(loaders_share_a_set),
		cmocka_unit_test(ranks_share_batches),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
