/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of NumPy that are cut short, or say what is not so. tests/data/numpy_arrays.py has whole
 * ones. */
#include "spikes.h"
#include "data/npy/npz.h"

#include <zip.h>

static const char *path;

static void write_file(const char *name, const void *data, size_t size)
{
	FILE *file = fopen(name, "we");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, size, file), size);
	fclose(file);
}

/* A .npy file of version 1 with this dictionary and so many bytes of data; its size. */
static size_t make(unsigned char *out, const char *dictionary, size_t data)
{
	size_t n = strlen(dictionary);
	memcpy(out, "\x93NUMPY\1\0", 8);
	out[8] = (unsigned char)n;
	out[9] = (unsigned char)(n >> 8);
	memcpy(out + 10, dictionary, n);
	for (size_t i = 0; i < data; i++)
		out[10 + n + i] = (unsigned char)(i * 7 + 1);
	return 10 + n + data;
}

#define SOME "{'descr': '<i2', 'fortran_order': False, 'shape': (3, 4), }"

static void whole(void **state)
{
	unsigned char file[300];
	struct neap__npy *array;
	int64_t value[12];
	(void)state;
	write_file(path, file, make(file, SOME "  \n", 24));
	ok(neap__npy_open(&array, path));
	const struct neap__npy_header *h = neap__npy_shape(array);
	assert_int_equal(h->dims, 2);
	assert_int_equal(h->count, 12);
	assert_int_equal(neap__npy_field(array, "x"), -1);
	ok(neap__npy_integers(array, 0, 2, 10, value));
	assert_int_equal(value[0], (4 * 7 + 1) | (5 * 7 + 1) << 8);
	assert_int_equal(value[9], (int16_t)((22 * 7 + 1) | (23 * 7 + 1) << 8));
	neap__npy_close(array);
	neap__npy_close(NULL);
	unlink(path);
}

static void truncated(void **state)
{
	unsigned char file[300];
	struct neap__npy *array;
	size_t size = make(file, SOME, 24);
	(void)state;
	for (size_t n = 0; n < size; n++) {
		write_file(path, file, n);
		int rc = neap__npy_open(&array, path);
		if (rc != NEAP_EFORMAT || !neap_detail()[0])
			fail_msg("%zu bytes: %d %s", n, rc, neap_detail());
	}
	file[size] = 0;
	write_file(path, file, size + 1);
	refused(neap__npy_open(&array, path), NEAP_EFORMAT, "25 bytes for 12 elements");
	unlink(path);
}

static void headers(void **state)
{
	static const char *const bad[][2] = {
		{"", "no dictionary"},
		{"{", "no key"},
		{"{}", "no 'descr'"},
		{"{'descr': '<i2', 'fortran_order': False}", "no 'shape'"},
		{"{'descr': '<i2', 'descr': '<i2'}", "or repeated"},
		{"{'other': 3}", "unknown"},
		{"{'descr': 3}", "no 'descr' of a type"},
		{"{'descr': '<i3', 'fortran_order': False, 'shape': (1,)}", "'<i3'"},
		{"{'descr': '<f1', 'fortran_order': False, 'shape': (1,)}", "'<f1'"},
		{"{'descr': '<i99999999999999999999', 'fortran_order': False, 'shape': (1,)}",
			"99"},
		{"{'descr': '<U0', 'fortran_order': False, 'shape': (1,)}", "'<U0'"},
		{"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "Python objects"},
		{"{'descr': [], 'fortran_order': False, 'shape': (1,)}", "no field"},
		{"{'descr': [('', '|V4')], 'fortran_order': False, 'shape': (1,)}", "no field"},
		{"{'descr': [('x' '<i2')], 'fortran_order': False, 'shape': (1,)}", "no fields"},
		{"{'descr': '<i2', 'fortran_order': Maybe, 'shape': (1,)}", "no 'fortran_order'"},
		{"{'descr': '<i2', 'fortran_order': False, 'shape': 1}", "no 'shape'"},
		{"{'descr': '<i2', 'fortran_order': False, 'shape': (-1,)}", "no 'shape'"},
		{"{'descr': '<i2', 'fortran_order': False, 'shape': (1.5,)}", "no end of 'shape'"},
		{"{'descr': '<i2', 'fortran_order': False, 'shape': (99999999999999999999,)}",
			"'shape'"},
		{"{'descr': '<i2', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
			"too many elements"},
		{"{'descr': '<i2', 'fortran_order': False, 'shape': (4294967296, 4294967296, 0)}",
			"too many elements"},
		{"{'descr': '<i8', 'fortran_order': False, 'shape': (2305843009213693952,)}",
			"damaged or truncated"},
		{"{'descr': '<i2', 'fortran_order': True, 'shape': (1073741824, 1024)}",
			"damaged or truncated"},
		{"{'descr': '<i2', 'fortran_order': False, 'shape': (1,)} x", "no end after"},
		{"{'descr': '<i2\\n', 'fortran_order': False, 'shape': (1,)}", "no 'descr'"},
	};
	unsigned char file[400];
	struct neap__npy *array;
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		write_file(path, file, make(file, bad[i][0], 0));
		refused(neap__npy_open(&array, path), NEAP_EFORMAT, bad[i][1]);
		assert_null(strchr(neap_detail(), '\n'));
	}
	size_t size = make(file, SOME, 24);
	file[6] = 4;
	write_file(path, file, size);
	refused(neap__npy_open(&array, path), NEAP_EFORMAT, "version 4.0");
	file[6] = 2; /* its length has four bytes */
	write_file(path, file, size);
	refused(neap__npy_open(&array, path), NEAP_EFORMAT, "a header of");
	unlink(path);
	refused(neap__npy_open(&array, path), -2, "cannot read");
	refused(neap__npy_open(&array, "/tmp"), NEAP_EFORMAT, "not a regular file");
}

static void numbers(void **state)
{
	unsigned char file[300];
	static const double real[4] = {1, -3, 2.5, 0x1p63};
	struct neap__npy *array;
	int64_t value[4];
	(void)state;
	size_t size =
		make(file, "{'descr': '<f8', 'fortran_order': False, 'shape': (4,)}", sizeof real);
	memcpy(file + size - sizeof real, real, sizeof real);
	write_file(path, file, size);
	ok(neap__npy_open(&array, path));
	ok(neap__npy_integers(array, 0, 0, 2, value));
	assert_int_equal(value[1], -3);
	refused(neap__npy_integers(array, 0, 1, 3, value), NEAP_EFORMAT, "element 2 is 2.5");
	refused(neap__npy_integers(array, 0, 3, 1, value), NEAP_EFORMAT, "element 3 is 9.22");
	char **text;
	int count;
	refused(neap__npy_strings(array, 4, &text, &count), NEAP_EFORMAT, "array of text");
	neap__npy_close(array);
	size = make(file, "{'descr': '>U2', 'fortran_order': False, 'shape': (3,)}", 24);
	write_file(path, file, size);
	ok(neap__npy_open(&array, path));
	refused(neap__npy_integers(array, 0, 0, 3, value), NEAP_EFORMAT, "contains text");
	refused(neap__npy_strings(array, 2, &text, &count), NEAP_EFORMAT, "3 names, more than 2");
	ok(neap__npy_strings(array, 3, &text, &count)); /* of characters that there are not */
	assert_string_equal(text[0], "\xef\xbf\xbd\xef\xbf\xbd");
	for (int i = 0; i < count; i++)
		free(text[i]);
	free(text);
	neap__npy_close(array);
	unlink(path);
}

static void make_archive(int method)
{
	static unsigned char file[3000];
	int code;
	size_t size =
		make(file, "{'descr': '|u1', 'fortran_order': False, 'shape': (2500,)}", 2500);
	unlink(path);
	zip_t *zip = zip_open(path, ZIP_CREATE, &code);
	assert_non_null(zip);
	for (int i = 0; i < 2; i++) {
		zip_source_t *source = zip_source_buffer(zip, file, size, 0);
		zip_int64_t at = zip_file_add(zip, i ? "y.npy" : "x.npy", source, 0);
		assert_true(at >= 0);
		zip_set_file_compression(zip, (zip_uint64_t)at, method, 0);
	}
	assert_int_equal(zip_close(zip), 0);
}

/* Opens the archive and reads all there is: the first error, or 0. */
static int read_archive(void)
{
	struct neap__npz *archive;
	struct neap__npy *array;
	int64_t value[2500];
	int rc = neap__npz_open(&archive, path);
	if (rc < 0)
		return rc;
	for (int64_t i = 0; rc == 0 && i < neap__npz_arrays(archive); i++) {
		rc = neap__npz_array(&array, archive, neap__npz_name(archive, i));
		if (rc < 0)
			break;
		int64_t n = neap__npy_shape(array)->count;
		rc = neap__npy_integers(array, 0, 0, n < 2500 ? n : 2500, value);
		neap__npy_close(array);
	}
	neap__npz_close(archive);
	return rc;
}

/* Each length of an archive, and each byte of it changed: an error, or what was there. */
static void archives(void **state)
{
	static unsigned char file[8000], copy[8000];
	(void)state;
	for (int method = ZIP_CM_STORE; method <= ZIP_CM_DEFLATE; method += ZIP_CM_DEFLATE) {
		make_archive(method);
		ok(read_archive());
		FILE *in = fopen(path, "re");
		size_t size = fread(file, 1, sizeof file, in);
		fclose(in);
		assert_true(size > 200 && size < sizeof file);
		for (size_t n = 0; n < size; n += n < 40 || n > size - 200 ? 1 : 37) {
			write_file(path, file, n);
			assert_int_equal(read_archive(), NEAP_EFORMAT);
		}
		for (size_t n = 0; n < size; n += n < 200 || n > size - 250 ? 1 : 37)
			for (int bit = 0; bit < 8; bit += 7) {
				memcpy(copy, file, size);
				copy[n] ^= (unsigned char)(1 << bit);
				write_file(path, copy, size);
				int rc = read_archive();
				if (rc != 0 && rc != NEAP_EFORMAT)
					fail_msg("byte %zu: %d %s", n, rc, neap_detail());
			}
	}
	struct neap__npz *archive;
	struct neap__npy *array;
	make_archive(ZIP_CM_DEFLATE);
	ok(neap__npz_open(&archive, path));
	assert_true(neap__npz_has(archive, "x"));
	assert_false(neap__npz_has(archive, "x.npy"));
	assert_null(neap__npz_name(archive, 2));
	refused(neap__npz_array(&array, archive, "z"), NEAP_EFORMAT, "has no array 'z'");
	neap__npz_close(archive);
	neap__npz_close(NULL);
	unlink(path);
	refused(neap__npz_open(&archive, path), -2, "cannot read");
	refused(neap__npz_open(&archive, "/tmp"), NEAP_EFORMAT, "not a regular file");
}

/* What a header of a member claims is not believed. */
static void claims(void **state)
{
	static unsigned char file[8000];
	(void)state;
	make_archive(ZIP_CM_DEFLATE);
	FILE *in = fopen(path, "re");
	size_t size = fread(file, 1, sizeof file, in);
	fclose(in);
	for (size_t i = 0; i + 46 < size; i++)
		if (memcmp(file + i, "PK\1\2", 4) == 0 || memcmp(file + i, "PK\3\4", 4) == 0)
			memcpy(file + i + (file[i + 2] == 1 ? 24 : 22), "\xf0\xff\xff\xff", 4);
	write_file(path, file, size);
	refused(read_archive(), NEAP_EFORMAT, "than its stored bytes can hold");
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole),
		cmocka_unit_test(truncated),
		cmocka_unit_test(headers),
		cmocka_unit_test(numbers),
		cmocka_unit_test(archives),
		cmocka_unit_test(claims),
	};
	path = strdup(scratch("arrays"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
