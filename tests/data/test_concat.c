/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings end to end: every spike where it belongs, samples of exactly one length. */
#include "spikes.h"
#include "data/concat.h"

/* A recording: a spike every millisecond, its number its unit. */
static void add(struct neap__concat *c, double seconds, int label, int speaker, int *number)
{
	struct neap_events e = {.duration = seconds, .label = label, .speaker = speaker};
	e.count = (int64_t)(seconds * 1000 + 0.5);
	e.time = calloc((size_t)e.count + 1, sizeof *e.time);
	e.unit = calloc((size_t)e.count + 1, sizeof *e.unit);
	for (int64_t i = 0; i < e.count; i++) {
		e.time[i] = (double)i / 1000;
		e.unit[i] = (uint16_t)((*number)++ % 1000);
	}
	ok(neap__concat_add(c, &e));
	neap_events_free(&e);
}

static void cut_to_length(void **state)
{
	(void)state;
	const char *path = scratch("concat.h5");
	struct neap__concat c = {.seconds = 0.5};
	int number = 0;
	ok(neap_shd_create(&c.writer, path, 1000));
	add(&c, 0.2, 0, 0, &number);
	add(&c, 0.2, 0, 0, &number);
	add(&c, 1.3, 0, 0, &number); /* fills the first, a second and a third; 0.2 s are left */
	assert_int_equal(c.written, 3);
	add(&c, 0.4, 0, 1, &number); /* another speaker: those are dropped */
	number = 0;
	add(&c, 0.5, 1, 1, &number); /* another class */
	add(&c, 0.3, 1, 1, &number);
	neap__concat_end(&c);
	assert_int_equal(c.written, 4);
	assert_true(fabs(c.left - 0.9) < 1e-9);
	const char *const names[] = {"a", "b"};
	ok(neap_shd_finish(c.writer, names, 2, names, 2, NULL, 0));
	struct neap_dataset *set;
	ok(neap_dataset_open(&set, path));
	for (int i = 0; i < 4; i++) {
		struct neap_events e;
		ok(neap_dataset_read(set, i, &e));
		assert_int_equal(e.count, 500);
		assert_true(fabs(e.duration - 0.5) < 1e-9);
		assert_int_equal(e.label, i == 3);
		for (int k = 0; k < 500; k++) {
			assert_int_equal(e.unit[k], (i < 3 ? 500 * i + k : k) % 1000);
			assert_true(fabs(e.time[k] - k / 1000.0) < 1e-6);
		}
		neap_events_free(&e);
	}
	neap_dataset_close(set);
	unlink(path);
}

static void recordings_as_they_are(void **state)
{
	(void)state;
	const char *path = scratch("alone.h5");
	struct neap__concat c = {0};
	int number = 0;
	ok(neap_shd_create(&c.writer, path, 1000));
	add(&c, 0.2, 0, 0, &number);
	add(&c, 0.3, 0, 0, &number);
	neap__concat_end(&c);
	assert_int_equal(c.written, 2);
	assert_true(c.left == 0);
	neap_shd_abort(c.writer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cut_to_length),
		cmocka_unit_test(recordings_as_they_are),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
