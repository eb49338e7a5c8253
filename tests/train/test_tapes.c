/* SPDX-License-Identifier: Apache-2.0 */
/* test_tapes.c: sizes of tapes over windows of steps (measure/tape_sizes.h). */
#include "test.h"
#include "measure/tape_sizes.h"

static void worst_window(void **state)
{
	struct neap__tape_sizes tapes;
	(void)state;
	assert_int_equal(neap__tape_sizes_make(&tapes, 640), 0);
	/* 10 bytes a step, but 100 in steps 256..319, told in pieces that cross blocks. */
	neap__tape_sizes_add(&tapes, 0, 100, 1000);
	neap__tape_sizes_add(&tapes, 100, 256, 1560);
	neap__tape_sizes_add(&tapes, 256, 320, 6400);
	neap__tape_sizes_add(&tapes, 320, 640, 3200);
	assert_true(fabs(neap__tape_sizes_worst(&tapes, 1) - 100) < 1e-9);
	assert_true(fabs(neap__tape_sizes_worst(&tapes, 64) - 100) < 1e-9);
	assert_true(fabs(neap__tape_sizes_worst(&tapes, 128) - 55) < 1e-9);
	assert_true(fabs(neap__tape_sizes_worst(&tapes, 640) - 19) < 1e-9);
	assert_true(fabs(neap__tape_sizes_worst(&tapes, 100000) - 19) < 1e-9);
	neap__tape_sizes_free(&tapes);
}

static void short_last_block(void **state)
{
	struct neap__tape_sizes tapes;
	(void)state;
	assert_int_equal(neap__tape_sizes_make(&tapes, 70), 0);
	neap__tape_sizes_add(&tapes, 0, 64, 64);
	neap__tape_sizes_add(&tapes, 64, 70, 60);
	assert_true(fabs(neap__tape_sizes_worst(&tapes, 5) - 10) < 1e-9);
	assert_true(fabs(neap__tape_sizes_worst(&tapes, 70) - 124.0 / 70) < 1e-9);
	neap__tape_sizes_free(&tapes);
	assert_int_equal(neap__tape_sizes_make(&tapes, 0), 0);
	assert_true(neap__tape_sizes_worst(&tapes, 1) == 0);
	neap__tape_sizes_free(&tapes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(worst_window),
		cmocka_unit_test(short_last_block),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
