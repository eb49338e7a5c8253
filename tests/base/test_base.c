/* SPDX-License-Identifier: Apache-2.0 */
/* test_base.c: random numbers, checked sizes, the detail line, sizes of structs, text. */
#include "test.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/philox.h"
#include "base/struct_size.h"
#include "base/text.h"

#include <errno.h>

static void philox_known_answers(void **state)
{
	(void)state;
	/* Known answers of Random123 for philox4x32-10. */
	struct neap__philox4 z = neap__philox(0, 0, 0, 0);
	assert_int_equal(z.v[0], 0x6627e8d5);
	assert_int_equal(z.v[1], 0xe169c58d);
	assert_int_equal(z.v[2], 0xbc57ac4c);
	assert_int_equal(z.v[3], 0x9b00dbd8);
	struct neap__philox4 o = neap__philox(UINT64_MAX, UINT32_MAX, UINT32_MAX, UINT64_MAX);
	assert_int_equal(o.v[0], 0x408f276d);
	assert_int_equal(o.v[1], 0x41c83b0e);
	assert_int_equal(o.v[2], 0xa20bc7c6);
	assert_int_equal(o.v[3], 0x6d5451fd);
}

static void philox_moments(void **state)
{
	(void)state;
	double sum = 0, square = 0;
	int n = 200000;
	for (int i = 0; i < n; i++) {
		double x = neap__random_normal(7, NEAP__STREAM_TEST, 0, (uint64_t)i);
		sum += x;
		square += x * x;
	}
	assert_true(fabs(sum / n) < 0.01);
	assert_true(fabs(square / n - 1) < 0.02);
}

static void checked_arithmetic(void **state)
{
	(void)state;
	uint64_t out;
	assert_int_equal(neap__mul_u64(&out, UINT64_MAX, 2), NEAP_EOVERFLOW);
	assert_int_equal(neap__mul_u64(&out, 1u << 31, 4), 0);
	assert_true(out == 1ull << 33);
	assert_true(neap__sat_mul(UINT64_MAX, 3) == UINT64_MAX);
	assert_true(neap__round_up(65, 64) == 128);
	assert_true(neap__round_up(UINT64_MAX - 3, 64) == UINT64_MAX);
}

static void detail_is_one_line(void **state)
{
	(void)state;
	assert_int_equal(neap__fail(NEAP_EFORMAT, "bad\nname\x1b[0m"), NEAP_EFORMAT);
	assert_null(strpbrk(neap_detail(), "\n\x1b"));
	assert_int_equal(neap__fail_in(NEAP_EFORMAT, "file: "), NEAP_EFORMAT);
	assert_int_equal(strncmp(neap_detail(), "file: bad", 9), 0);
	assert_string_equal(neap_strerror(NEAP_ECORRUPT), "record on a slow tier is corrupt");
}

/* The line that a callback of a model or a tier sets. */
static void detail_can_be_set(void **state)
{
	(void)state;
	char line[NEAP__DETAIL_BYTES + 100];
	memset(line, 'x', sizeof line - 1);
	line[sizeof line - 1] = '\0';
	neap_detail_set("tier:\tno\x7fplace\n");
	assert_string_equal(neap_detail(), "tier:?no?place?");
	assert_int_equal(neap__fail_in(-EIO, "put: "), -EIO);
	assert_string_equal(neap_detail(), "put: tier:?no?place?");
	neap_detail_set(neap_detail() + 5); /* a part of the present line */
	assert_string_equal(neap_detail(), "tier:?no?place?");
	neap_detail_set(line);
	assert_int_equal(strlen(neap_detail()), NEAP__DETAIL_BYTES - 1);
	neap_detail_set(NULL);
	assert_string_equal(neap_detail(), "");
	assert_int_equal(neap__fail_errno(ENOENT, "'%s'", "a"), -ENOENT);
	assert_string_equal(neap_detail(), "'a': No such file or directory");
}

/* A struct of an older header lacks its end; one of a newer header is refused. */
static void struct_sizes(void **state)
{
	(void)state;
	struct sized {
		uint32_t size;
		int a, b;
	} full = {1, 2, 3}, given = {offsetof(struct sized, b), 7, 8};
	assert_int_equal(neap__struct_take(&full, sizeof full, &given, "sized"), 0);
	assert_int_equal(full.size, sizeof full);
	assert_int_equal(full.a, 7);
	assert_int_equal(full.b, 0);
	given.size = sizeof given;
	assert_int_equal(neap__struct_take(&full, sizeof full, &given, "sized"), 0);
	assert_int_equal(full.b, 8);
	given.size = sizeof given + 4;
	assert_int_equal(neap__struct_take(&full, sizeof full, &given, "sized"), NEAP_EUSAGE);
	assert_string_equal(neap_detail(), "sized: the library is older than the header: it knows "
					   "12 bytes of this struct, not 16");
	assert_int_equal(full.b, 8);
	given.size = 0;
	assert_int_equal(neap__struct_take(&full, sizeof full, &given, "sized"), NEAP_EUSAGE);
	assert_string_equal(neap_detail(), "sized: set size to its sizeof, not 0");
	assert_int_equal(neap__struct_take(&full, sizeof full, NULL, "sized"), NEAP_EUSAGE);
	assert_int_equal(neap__struct_size(4, 8, 12, "sized"), NEAP_EUSAGE);
}

static void text_grows(void **state)
{
	(void)state;
	struct neap__text text = {0};
	for (int i = 0; i < 1000; i++)
		assert_int_equal(neap__text_add(&text, "%d,", i % 10), 0);
	assert_int_equal(text.length, 2000);
	assert_int_equal(strlen(text.data), 2000);
	neap__text_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(philox_known_answers),
		cmocka_unit_test(philox_moments),
		cmocka_unit_test(checked_arithmetic),
		cmocka_unit_test(detail_is_one_line),
		cmocka_unit_test(detail_can_be_set),
		cmocka_unit_test(struct_sizes),
		cmocka_unit_test(text_grows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
