/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints arrays of NumPy as neap reads them, for tests that compare with NumPy: a line an array
 * with name, kind and shape, then a line a field with all elements; or the line of a refusal.
 *   print_npy FILE.npy|FILE.npz
 */
#include "data/npy/npz.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int refuse(int rc)
{
	printf("refused %d %s\n", rc, neap_detail());
	return 1;
}

static int print_text(struct neap__npy *array)
{
	char **text;
	int count, rc = neap__npy_strings(array, 1000000, &text, &count);
	if (rc < 0)
		return refuse(rc);
	for (int i = 0; i < count; i++) {
		printf("%s\n", text[i]);
		free(text[i]);
	}
	free(text);
	return 0;
}

static int print_numbers(struct neap__npy *array, int field)
{
	const struct neap__npy_header *h = neap__npy_shape(array);
	double *value = malloc((size_t)(h->count + 1) * sizeof *value);
	int64_t *whole = (int64_t *)value;
	int real = h->field[field].kind == NEAP__NPY_FLOAT;
	/* In two parts, so that a part begins elsewhere. */
	int64_t half = h->count / 3;
	int rc = real ? neap__npy_doubles(array, field, 0, half, value)
		      : neap__npy_integers(array, field, 0, half, whole);
	if (rc == 0)
		rc = real ? neap__npy_doubles(array, field, half, h->count - half, value + half)
			  : neap__npy_integers(array, field, half, h->count - half, whole + half);
	for (int64_t i = 0; rc == 0 && i < h->count; i++)
		if (real)
			printf("%a ", value[i]);
		else
			printf("%" PRId64 " ", whole[i]);
	free(value);
	if (rc < 0)
		return refuse(rc);
	printf("\n");
	return 0;
}

static int print_array(struct neap__npy *array, const char *name)
{
	const struct neap__npy_header *h = neap__npy_shape(array);
	printf("array %s %d", name, h->fields);
	for (int d = 0; d < h->dims; d++)
		printf(" %" PRId64, h->shape[d]);
	printf("\n");
	for (int f = 0; f < h->fields; f++) {
		int text = h->field[f].kind >= NEAP__NPY_BYTES;
		printf("field %s\n", h->field[f].name);
		if (text ? print_text(array) : print_numbers(array, f))
			return 1;
	}
	return 0;
}

static int print_archive(const char *path)
{
	struct neap__npz *archive;
	int rc = neap__npz_open(&archive, path), bad = 0;
	if (rc < 0)
		return refuse(rc);
	for (int64_t i = 0; i < neap__npz_arrays(archive); i++) {
		struct neap__npy *array;
		rc = neap__npz_array(&array, archive, neap__npz_name(archive, i));
		bad |= rc < 0 ? refuse(rc) : print_array(array, neap__npz_name(archive, i));
		if (rc == 0)
			neap__npy_close(array);
	}
	neap__npz_close(archive);
	return bad;
}

int main(int argc, char **argv)
{
	struct neap__npy *array;
	if (argc != 2)
		return 2;
	if (strstr(argv[1], ".npz"))
		return print_archive(argv[1]);
	int rc = neap__npy_open(&array, argv[1]);
	if (rc < 0)
		return refuse(rc);
	rc = print_array(array, "-");
	neap__npy_close(array);
	return rc;
}
