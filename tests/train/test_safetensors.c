/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors: round trips, every rule of the format, and damage of all kinds. */
#include "test.h"
#include "train/safetensors.h"
#include "base/philox.h"
#include "sys/atomic_file.h"

#include <errno.h>

/* A file made of a header's text and some bytes of data. The caller frees it. */
static char *make(const char *header, size_t data, size_t *bytes)
{
	uint64_t n = strlen(header);
	*bytes = 8 + n + data;
	char *file = malloc(*bytes); /* no byte to spare: a sanitizer sees what reads beyond */
	assert_non_null(file);
	memcpy(file, &n, 8);
	memcpy(file + 8, header, n);
	for (size_t i = 0; i < data; i++)
		file[8 + n + i] = (char)i;
	return file;
}

static int parse(const char *header, size_t data)
{
	struct neap__safetensors file;
	size_t bytes;
	char *buffer = make(header, data, &bytes);
	int rc = neap__safetensors_parse(&file, buffer, bytes);
	if (rc == 0)
		neap__safetensors_free(&file);
	else
		assert_int_equal(file.tensors, 0);
	free(buffer);
	return rc;
}

#define T(dtype, shape, b, e)                                                                      \
	"{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" #b "," #e "]}"

static void good_files_are_read(void **state)
{
	(void)state;
	static const struct {
		const char *header;
		size_t data;
	} good[] = {
		{"{}", 0},
		{"{\"__metadata__\":{\"a\":\"b\"}}", 0},
		{"{\"a\":" T("F32", "[2,3]", 0, 24) "}", 24},
		{"{\"a\":" T("F32", "[]", 0, 4) "}", 4},   /* a scalar */
		{"{\"a\":" T("U8", "[0,5]", 0, 0) "}", 0}, /* nothing in it */
		{"{\"b\":" T("F64", "[1]", 8, 16) ",\"a\":" T("I64", "[1]", 0, 8) "}   ", 16},
		{"{\"a\":" T("BF16", "[3]", 0, 6) ",\"z\":" T("BOOL", "[0]", 6, 6) "}", 6},
	};
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		if (parse(good[i].header, good[i].data) != 0)
			fail_msg("%s: %s", good[i].header, neap_detail());
}

static void bad_files_are_refused(void **state)
{
	(void)state;
	static const struct {
		const char *header;
		size_t data;
		const char *says;
	} bad[] = {
		{"", 0, "'{'"},
		{"[]", 0, "'{'"},
		{" {}", 0, "'{'"},
		{"{", 0, "JSON"},
		{"{}x", 0, "end of file expected"},
		{"{}", 1, "follow the header"},
		{"{\"a\":1}", 0, "object"},
		{"{\"a\":{}}", 0, "dtype"},
		{"{\"a\":" T("F33", "[1]", 0, 4) "}", 4, "F33"},
		{"{\"a\":" T("F32", "1", 0, 4) "}", 4, "shape"},
		{"{\"a\":" T("F32", "[-1]", 0, 4) "}", 4, "dimension"},
		{"{\"a\":" T("F32", "[1.5]", 0, 6) "}", 6, "dimension"},
		{"{\"a\":" T("F32", "[\"1\"]", 0, 4) "}", 4, "dimension"},
		{"{\"a\":" T("F32", "[1e300]", 0, 4) "}", 4, "dimension"},
		{"{\"a\":" T("U8", "[1,1,1,1,1,1,1,1,1]", 0, 1) "}", 1, "dimensions"},
		{"{\"a\":" T("F32", "[4294967296,4294967296]", 0, 4) "}", 4, "overflow"},
		{"{\"a\":" T("F64", "[2305843009213693952]", 0, 0) "}", 0, "overflow"},
		{"{\"a\":" T("U8", "[9007199254740993]", 0, 1) "}", 1, "needs 9007199254740993"},
		{"{\"a\":" T("F32", "[1]", 4, 0) "}", 4, "before it begins"},
		{"{\"a\":" T("F32", "[2]", 0, 4) "}", 4, "its shape needs 8"},
		{"{\"a\":" T("F32", "[1]", 0, 8) "}", 8, "its shape needs 4"},
		{"{\"a\":" T("F32", "[2]", 0, 8) "}", 7, "truncated"},
		{"{\"a\":" T("F32", "[1]", 0, 4) "}", 5, "follow the header"},
		{"{\"a\":" T("F32", "[1]", 1, 5) "}", 5, "gap"},
		{"{\"a\":" T("U8", "[1]", 0, 1) ",\"b\":" T("U8", "[1]", 2, 3) "}", 3, "gap"},
		{"{\"a\":" T("U8", "[2]", 0, 2) ",\"b\":" T("U8", "[2]", 1, 3) "}", 3, "overlap"},
		{"{\"a\":" T("U8", "[2]", 0, 2) ",\"b\":" T("U8", "[2]", 0, 2) "}", 2, "overlap"},
		{"{\"a\":" T("U8", "[1]", 0, 1) ",\"a\":" T("U8", "[1]", 1, 2) "}", 2, "twice"},
		{"{\"__metadata__\":{\"a\":\"b\",\"a\":\"c\"}}", 0, "twice"},
		{"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "twice"},
		{"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
			1, "twice"},
		{"{\"__metadata__\":{\"a\":1}}", 0, "not a string"},
		{"{\"__metadata__\":[]}", 0, "object"},
		{"{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, "data_offsets"},
		{"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}", 1,
			"data_offsets"},
		{"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,2]}}", 1,
			"data_offsets"},
		{"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[-1,0]}}", 1,
			"data_offsets"},
		{"{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, "shape"},
		{"{\"a\\n\":{\"dtype\":7,\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "'a?'"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		if (parse(bad[i].header, bad[i].data) != NEAP_EFORMAT)
			fail_msg("taken: %s", bad[i].header);
		if (!strstr(neap_detail(), bad[i].says) || strchr(neap_detail(), '\n'))
			fail_msg("%s: '%s' does not say '%s'", bad[i].header, neap_detail(),
				bad[i].says);
	}
}

static void lengths_of_the_header_are_checked(void **state)
{
	(void)state;
	struct neap__safetensors file;
	static const uint64_t lengths[] = {
		3, 100000000, 100000001, (uint64_t)1 << 32, INT64_MAX, UINT64_MAX - 7, UINT64_MAX};
	for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
		char *buffer = malloc(10);
		memcpy(buffer, &lengths[i], 8);
		memcpy(buffer + 8, "{}", 2);
		assert_int_equal(neap__safetensors_parse(&file, buffer, 10), NEAP_EFORMAT);
		free(buffer);
	}
}

/* A file as a run writes them. */
static void write_sample(const char *path, float *f, double *d, uint16_t *u)
{
	for (int i = 0; i < 6; i++)
		f[i] = (float)i - 2.5f;
	for (int i = 0; i < 3; i++)
		d[i] = 1e-300 * (i + 1);
	for (int i = 0; i < 5; i++)
		u[i] = (uint16_t)(65530 + i);
	const struct neap__file_tensor tensors[] = {
		{"short \"quoted\"", NEAP__U16, 1, {5}, u, 10},
		{"layer0.weight", NEAP__F32, 2, {2, 3}, f, 24},
		{"empty", NEAP__F32, 2, {0, 3}, f, 0},
		{"moments", NEAP__F64, 1, {3}, d, 24},
	};
	const struct neap__metadata pairs[] = {{"epoch", "3"}, {"text", "a\nb \\ \xc3\xa9"}};
	assert_int_equal(neap__safetensors_write(path, tensors, 4, pairs, 2), 0);
}

static void written_files_come_back(void **state)
{
	(void)state;
	char dir[] = "/tmp/neap-test-XXXXXX", path[64];
	float f[6];
	double d[3];
	uint16_t u[5];
	struct neap__safetensors file;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/x.safetensors", dir);
	write_sample(path, f, d, u);
	assert_int_equal(neap__safetensors_read(&file, path), 0);
	assert_int_equal(file.tensors, 4);
	const struct neap__file_tensor *t = neap__safetensors_find(&file, "layer0.weight");
	assert_non_null(t);
	assert_int_equal(t->dtype, NEAP__F32);
	assert_int_equal(t->dims, 2);
	assert_int_equal(t->shape[1], 3);
	assert_memory_equal(t->data, f, sizeof f);
	assert_memory_equal(neap__safetensors_find(&file, "moments")->data, d, sizeof d);
	assert_memory_equal(neap__safetensors_find(&file, "short \"quoted\"")->data, u, sizeof u);
	assert_string_equal(neap__safetensors_meta(&file, "text"), "a\nb \\ \xc3\xa9");
	assert_null(neap__safetensors_meta(&file, "none"));
	assert_null(neap__safetensors_find(&file, "none"));
	/* the header's length is a multiple of 8, and every tensor lies aligned */
	for (int i = 0; i < file.tensors; i++) {
		size_t width = neap__dtype_bytes(file.tensor[i].dtype);
		size_t at = (size_t)((const char *)file.tensor[i].data - file.buffer);
		assert_int_equal(at % width, 0);
	}
	assert_int_equal(*(uint64_t *)(void *)file.buffer % 8, 0);
	neap__safetensors_free(&file);
	snprintf(path, sizeof path, "%s/none", dir);
	assert_int_equal(neap__safetensors_read(&file, path), -ENOENT);
	assert_int_equal(neap__safetensors_write("/nowhere/x", NULL, 0, NULL, 0), -ENOENT);
	snprintf(path, sizeof path, "rm -r %s", dir);
	assert_int_equal(system(path), 0);
}

/* Cut anywhere or with any bytes flipped: refused, or read without a step beyond. */
static void damage_is_survived(void **state)
{
	(void)state;
	char dir[] = "/tmp/neap-test-XXXXXX", path[64], *whole;
	float f[6];
	double d[3];
	uint16_t u[5];
	size_t bytes;
	struct neap__safetensors file;
	uint64_t seed = test_seed(7);
	int taken = 0;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/x", dir);
	write_sample(path, f, d, u);
	assert_int_equal(neap__read_file(&whole, &bytes, path, 1 << 20), 0);
	for (size_t n = 0; n < bytes; n++) {
		char *cut = malloc(n ? n : 1);
		memcpy(cut, whole, n);
		assert_int_equal(neap__safetensors_parse(&file, cut, n), NEAP_EFORMAT);
		free(cut);
	}
	for (uint32_t round = 0; round < 20000; round++) {
		char *copy = malloc(bytes);
		memcpy(copy, whole, bytes);
		uint64_t flips = 1 + neap__random_below(seed, NEAP__STREAM_TEST, round, 0, 4);
		for (uint64_t k = 0; k < flips; k++) {
			uint64_t at = neap__random_below(
				seed, NEAP__STREAM_TEST, round, 2 * k + 1, bytes);
			copy[at] =
				(char)neap__random_u64(seed, NEAP__STREAM_TEST, round, 2 * k + 2);
		}
		if (neap__safetensors_parse(&file, copy, bytes) == 0) {
			size_t sum = 0;
			for (int i = 0; i < file.tensors; i++)
				for (size_t k = 0; k < file.tensor[i].bytes; k++)
					sum += ((const unsigned char *)file.tensor[i].data)[k];
			taken += sum > 0;
			neap__safetensors_free(&file);
		} else {
			assert_true(neap_detail()[0] != '\0' && !strchr(neap_detail(), '\n'));
		}
		free(copy);
	}
	assert_true(taken > 0 && taken < 20000); /* flips in the data alone are no one's to see */
	free(whole);
	snprintf(path, sizeof path, "rm -r %s", dir);
	assert_int_equal(system(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_files_are_read),
		cmocka_unit_test(bad_files_are_refused),
		cmocka_unit_test(lengths_of_the_header_are_checked),
		cmocka_unit_test(written_files_come_back),
		cmocka_unit_test(damage_is_survived),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
