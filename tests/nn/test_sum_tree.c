/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_sum_tree.c: sums of leaves, and of leaves of which some are made into nodes before, have the
 * bits of the definition of the tree, whatever is zero.
 */
#include "test.h"
#include "nn/batch/sum_tree.h"
#include "base/philox.h"

#include <string.h>

enum { MOST = 70, COLUMNS = 3 };

/* Numbers of very different sizes: another order of sums gives other bits. */
static void draw(double leaf[MOST][COLUMNS], uint64_t seed)
{
	for (int i = 0; i < MOST; i++)
		for (int c = 0; c < COLUMNS; c++) {
			uint64_t n = neap__random_below(seed, 0, (uint32_t)i, (uint64_t)c, 1 << 30);
			leaf[i][c] = ((double)n - (1 << 29)) / (double)(1 << n % 28);
		}
}

/* Node (first / size, log2 size) by its definition. */
static double node(double leaf[MOST][COLUMNS], int first, int size, int leaves, int c)
{
	if (size == 1)
		return leaf[first][c];
	double left = node(leaf, first, size / 2, leaves, c);
	int right = first + size / 2;
	return right < leaves ? left + node(leaf, right, size / 2, leaves, c) : left;
}

static double whole(double leaf[MOST][COLUMNS], int leaves, int c)
{
	int size = 1;
	while (size < leaves)
		size *= 2;
	return node(leaf, 0, size, leaves, c);
}

static void check(const double *sum, double leaf[MOST][COLUMNS], int leaves)
{
	for (int c = 0; c < COLUMNS; c++) {
		double expected = whole(leaf, leaves, c);
		assert_memory_equal(&sum[c], &expected, sizeof expected);
	}
}

static void test_leaves(void **state)
{
	double leaf[MOST][COLUMNS], copy[MOST][COLUMNS];

	(void)state;
	for (int leaves = 1; leaves <= MOST; leaves++) {
		struct neap__sum_tree tree = {0};
		struct neap__number_tree numbers = {0};
		draw(leaf, (uint64_t)leaves);
		memcpy(copy, leaf, sizeof copy);
		for (int i = 0; i < leaves; i++) {
			neap__sum_tree_add(&tree, copy[i], i, 1, COLUMNS);
			neap__number_tree_add(&numbers, leaf[i][0], i, 1);
		}
		check(neap__sum_tree_end(&tree, COLUMNS), leaf, leaves);
		double one = neap__number_tree_end(&numbers), expected = whole(leaf, leaves, 0);
		assert_memory_equal(&one, &expected, sizeof one);
		assert_null(neap__sum_tree_end(&tree, COLUMNS));
	}
}

static void test_zero_rows(void **state)
{
	double leaf[MOST][COLUMNS], copy[MOST][COLUMNS];

	(void)state;
	for (int leaves = 1; leaves <= MOST; leaves++) {
		struct neap__sum_tree tree = {0};
		int rows = 0;
		draw(leaf, 1000 + (uint64_t)leaves);
		for (int i = 0; i < leaves; i++) {
			int absent =
				(int)neap__random_below(3, 0, (uint32_t)leaves, (uint64_t)i, 2);
			if (absent)
				memset(leaf[i], 0, sizeof leaf[i]);
			memcpy(copy[i], leaf[i], sizeof copy[i]);
			neap__sum_tree_add(&tree, absent ? NULL : copy[i], i, 1, COLUMNS);
			rows += !absent;
		}
		const double *sum = neap__sum_tree_end(&tree, COLUMNS);
		assert_int_equal(sum != NULL, rows > 0);
		if (sum)
			check(sum, leaf, leaves);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leaves),
		cmocka_unit_test(test_zero_rows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
