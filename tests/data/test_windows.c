/* SPDX-License-Identifier: Apache-2.0 */
/* Long batches in windows: the same events, whatever the order they are asked for in. */
#include "spikes.h"
#include "data/loader_ahead.h"
#include "data/loader_memory.h"
#include "data/windows.h"

struct pair {
	struct neap_dataset *set;
	struct neap_loader *whole, *parts;
	const struct neap_batch *all, *windowed;
};

static void open_augmented(struct pair *p, const char *name, double dt, int batch, uint64_t bytes,
	const struct neap_augment *augment)
{
	struct neap_loader_options o = {.size = sizeof o, .batch = batch, .dt = dt, .shuffle = 1};
	if (augment)
		o.augment = *augment;
	*p = (struct pair){0};
	ok(neap_dataset_open(&p->set, name));
	o.window_bytes = 1u << 30;
	ok(neap_loader_open(&p->whole, p->set, &o));
	o.window_bytes = bytes;
	ok(neap_loader_open(&p->parts, p->set, &o));
	ok(neap_loader_start(p->whole, 0, 0));
	ok(neap_loader_start(p->parts, 0, 0));
}

static void open_pair(struct pair *p, const char *name, double dt, int batch, uint64_t bytes)
{
	open_augmented(p, name, dt, batch, bytes, NULL);
}

static int next(struct pair *p)
{
	int a = neap_loader_next(p->whole, &p->all);
	ok(a);
	int b = neap_loader_next(p->parts, &p->windowed);
	ok(b);
	assert_int_equal(a, b);
	if (a)
		assert_null(p->all->windows);
	return a;
}

static void close_pair(struct pair *p)
{
	neap_loader_close(p->whole);
	neap_loader_close(p->parts);
	neap_dataset_close(p->set);
}

/* Every step of the window of t; its bounds. */
static struct neap_window check_window(const struct pair *p, int64_t t)
{
	struct neap_window w;
	ok(neap_windows_take(p->windowed->windows, t, &w));
	assert_true(w.from <= t && t < w.to && w.to <= p->all->steps);
	assert_int_equal(w.from % 64, 0);
	assert_true(w.to % 64 == 0 || w.to == p->all->steps);
	for (int b = 0; b < p->all->size; b++) {
		const struct neap_sequence *s = &p->all->sequences[b], *part = &w.sequences[b];
		for (int64_t step = w.from; step < w.to && step < s->length; step++) {
			const uint32_t *start = part->start + (step - w.from);
			uint32_t n = s->start[step + 1] - s->start[step];
			assert_int_equal(start[1] - start[0], n);
			assert_memory_equal(part->unit + start[0], s->unit + s->start[step],
				n * sizeof *s->unit);
		}
	}
	return w;
}

static void check_batch(const struct pair *p, uint64_t bytes)
{
	assert_non_null(p->windowed->windows);
	assert_true(p->windowed->bytes <= bytes);
	assert_int_equal(p->windowed->steps, p->all->steps);
	for (int b = 0; b < p->all->size; b++) {
		assert_int_equal(p->windowed->sequences[b].length, p->all->sequences[b].length);
		assert_int_equal(p->windowed->sequences[b].label, p->all->sequences[b].label);
		assert_int_equal(p->windowed->sequences[b].index, p->all->sequences[b].index);
	}
	int64_t T = p->all->steps, t = 0, count = 0;
	for (; t < T; count++)
		t = check_window(p, t).to;
	assert_true(count > 4); /* or the frames held all of it */
	for (t = T; t > 0;)
		t = check_window(p, t - 1).from;
	for (uint32_t i = 0; i < 20; i++) {
		t = (int64_t)neap__random_below(7, NEAP__STREAM_TEST, 1, i, (uint64_t)T);
		int64_t jump = (int64_t)neap__random_below(7, NEAP__STREAM_TEST, 2, i, (uint64_t)T);
		neap_windows_expect(p->windowed->windows, jump, T);
		struct neap_window a = check_window(p, t), b = check_window(p, t);
		assert_true(a.from == b.from && a.to == b.to);
		check_window(p, jump);
	}
	struct neap_window w;
	refused(neap_windows_take(p->windowed->windows, T, &w), NEAP_EUSAGE, "step");
	refused(neap_windows_take(p->windowed->windows, -1, &w), NEAP_EUSAGE, "step");
}

static void of_random_manifolds(void **state)
{
	(void)state;
	static const char *const names[] = {
		"randman:classes=2,alpha=4,steps=20000,spikes=400,samples=4,units=20",
		"randman:classes=2,alpha=4,steps=9000,spikes=200,samples=4,units=20,noise=30",
		"randman:classes=2,alpha=4,steps=9999,spikes=1,samples=3,units=50,noise=400",
		"randman:classes=2,alpha=4,steps=3001,spikes=3001,samples=5,units=9",
		"randman:classes=2,alpha=4,steps=8000,spikes=7,samples=3,units=100,dim=2",
	};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		struct pair p;
		uint64_t bytes = 42000;
		open_pair(&p, names[i], 1e-3, 3, bytes);
		while (next(&p))
			check_batch(&p, bytes);
		close_pair(&p);
	}
}

/* Samples of 2 to 3 s; `order` 0: the last two events change places. */
static void write_long(const char *path, int64_t samples, int units, int order)
{
	struct neap_shd_writer *writer;
	ok(neap_shd_create(&writer, path, units));
	for (int64_t i = 0; i < samples; i++) {
		int64_t n = 20000;
		struct neap_events e = {.count = n, .duration = 2 + 0.25 * (double)i};
		e.time = calloc((size_t)n, sizeof *e.time);
		e.unit = calloc((size_t)n, sizeof *e.unit);
		for (int64_t k = 0; k < n; k++) {
			/* Bursts: half of all events in a tenth of the time. */
			double x = (double)k / (double)n;
			e.time[k] = 2 * (x < 0.25	   ? x
						: x < 0.75 ? 0.25 + (x - 0.25) * 0.2
							   : 0.35 + (x - 0.75) * 2.6);
			e.unit[k] = (uint16_t)neap__random_below(
				3, NEAP__STREAM_TEST, (uint32_t)i, (uint64_t)k, (uint64_t)units);
		}
		if (!order)
			e.time[n - 1] = e.time[n - 2] - 0.01;
		ok(neap_shd_add(writer, &e));
		neap_events_free(&e);
	}
	const char *const names[] = {"one"};
	ok(neap_shd_finish(writer, names, 1, NULL, 0, NULL, 0));
}

static void of_files(void **state)
{
	(void)state;
	const char *path = scratch("long.h5");
	write_long(path, 5, 40, 1);
	for (int i = 0; i < 3; i++) {
		struct pair p;
		uint64_t bytes = 60000;
		open_pair(&p, path, i == 0 ? 3e-4 : i == 1 ? 1e-4 : 3.3e-5, 2, bytes);
		while (next(&p))
			check_batch(&p, bytes);
		close_pair(&p);
	}
	unlink(path);
}

/* Augmented samples are the same in windows: what a window needs is found around it. */
static void of_augmented(void **state)
{
	(void)state;
	static const struct neap_augment augments[] = {
		{.shift = 5},
		{.stretch_low = 0.6, .stretch_high = 1.7},
		{.jitter = 4e-3},
		{.stretch_low = 0.9, .stretch_high = 1.1, .jitter = 3e-3, .shift = 2},
	};
	const char *path = scratch("augmented.h5");
	write_long(path, 4, 40, 1);
	for (size_t i = 0; i < 8; i++) {
		struct pair p;
		uint64_t bytes = i % 2 && augments[i / 2].jitter > 0 ? 400000 : 60000;
		open_augmented(&p,
			i % 2 ? path
			      : "randman:classes=2,alpha=4,steps=9000,spikes=200,samples=4,"
				"units=20,noise=30",
			i % 2 ? 1e-4 : 1e-3, 2, bytes, &augments[i / 2]);
		while (next(&p))
			check_batch(&p, bytes);
		close_pair(&p);
	}
	unlink(path);
}

static void what_is_refused(void **state)
{
	(void)state;
	const char *path = scratch("disorder.h5");
	struct pair p;
	write_long(path, 2, 40, 0);
	open_pair(&p, path, 1e-3, 2, 50000);
	ok(neap_loader_next(p.whole, &p.all));
	refused(neap_loader_next(p.parts, &p.windowed), NEAP_EFORMAT, "not ascending");
	close_pair(&p);
	unlink(path);

	open_pair(&p, "randman:classes=2,alpha=4,steps=20000,samples=4", 1e-3, 4, 5000);
	refused(neap_loader_next(p.parts, &p.windowed), NEAP_EUSAGE, "windows of 4 samples");
	close_pair(&p);

	/* Every unit in every step: more than so little memory can hold of 64 steps. */
	open_pair(&p, "randman:classes=1,alpha=9,steps=5000,spikes=5000,samples=2,units=300", 1e-3,
		2, 50000);
	ok(neap_loader_next(p.parts, &p.windowed));
	struct neap_window w;
	refused(neap_windows_take(p.windowed->windows, 0, &w), NEAP_EFORMAT, "do not fit");
	close_pair(&p);
}

/* A window is read once, whichever of its steps are expected while it is being read. */
static void each_window_is_read_once(void **state)
{
	(void)state;
	struct pair p;
	struct neap_window w;
	open_pair(&p, "randman:classes=2,alpha=4,steps=20000,spikes=400,samples=3,units=20", 1e-3,
		3, 42000);
	assert_int_equal(next(&p), 1);
	struct neap_windows *windows = p.windowed->windows;
	const int64_t wide = neap_windows_steps(windows), last = 6;
	/* Down from the seventh window, with jumps to the start of every range of 10 steps. */
	ok(neap_windows_take(windows, last * wide, &w));
	neap__windows_settle(windows);
	int64_t before = neap__windows_read(windows); /* with the one behind it */
	for (int64_t t = last * wide; t > 0; t -= 10) {
		neap_windows_expect(windows, t > 10 ? t - 10 : 0, t);
		ok(neap_windows_take(windows, t - 1, &w));
	}
	neap__windows_settle(windows);
	assert_int_equal(neap__windows_read(windows) - before, last * wide);
	close_pair(&p);
}

/* A loader at rest reads nothing ahead; its batch and windows stay, and it can be started again. */
static void loader_at_rest(void **state)
{
	(void)state;
	struct pair p;
	struct neap_window w;
	open_pair(&p, "randman:classes=2,alpha=4,steps=20000,spikes=400,samples=9,units=20", 1e-3,
		3, 42000);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(next(&p), 1);
		neap__loader_rest(p.whole);
		neap__loader_rest(p.parts);
		assert_null(neap__loader_ahead(p.whole));
		check_batch(&p, 42000);
		refused(neap_loader_next(p.whole, &p.all), NEAP_EUSAGE, "before neap_loader_start");
		ok(neap_loader_start(p.whole, 0, i));
		ok(neap_loader_start(p.parts, 0, i));
		assert_int_equal(next(&p), 1);
		check_batch(&p, 42000);
		ok(neap_windows_take(p.windowed->windows, 5, &w));
	}
	assert_int_equal(next(&p), 0);
	close_pair(&p);
}

/* A batch is given up while its windows are being read. */
static void left_early(void **state)
{
	(void)state;
	struct pair p;
	open_pair(&p, "randman:classes=2,alpha=4,steps=20000,spikes=400,samples=12,units=20", 1e-3,
		2, 42000);
	for (int epoch = 0; epoch < 3; epoch++) {
		struct neap_window w;
		ok(neap_loader_start(p.parts, epoch, epoch));
		for (int i = 0; i < 3; i++) {
			assert_int_equal(neap_loader_next(p.parts, &p.windowed), 1);
			ok(neap_windows_take(p.windowed->windows, 5000, &w));
		}
	}
	close_pair(&p);
}

/* A batch above half the bound of windows stays whole if that is allowed. */
static void batches_may_stay_whole(void **state)
{
	struct neap_loader_options o = {
		.size = sizeof o, .batch = 4, .dt = 1e-3, .window_bytes = 50000};
	struct neap_dataset *set;
	(void)state;
	ok(neap_dataset_open(&set, "randman:steps=10000,spikes=20,units=30,samples=8"));
	/* 4 samples of 10,001 starts and 600 spikes take 164,816 bytes. */
	for (int k = 0; k < 3; k++) {
		struct neap_loader *loader;
		const struct neap_batch *batch;
		uint64_t most;
		o.whole_bytes = k == 0 ? 0 : k == 1 ? 164815 : 164816;
		ok(neap_loader_open(&loader, set, &o));
		ok(neap__loader_most(loader, &most));
		ok(neap_loader_start(loader, 0, 0));
		assert_int_equal(neap_loader_next(loader, &batch), 1);
		assert_int_equal(batch->windows == NULL, k == 2);
		assert_true(batch->bytes <= most);
		neap_loader_close(loader);
	}
	o.whole_bytes = UINT64_MAX;
	struct neap_loader *none;
	assert_int_equal(neap_loader_open(&none, set, &o), NEAP_EUSAGE);
	neap_dataset_close(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batches_may_stay_whole),
		cmocka_unit_test(of_random_manifolds),
		cmocka_unit_test(of_files),
		cmocka_unit_test(of_augmented),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(left_early),
		cmocka_unit_test(each_window_is_read_once),
		cmocka_unit_test(loader_at_rest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
