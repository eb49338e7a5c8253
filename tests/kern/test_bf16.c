/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_bf16.c: products of bfloat16 numbers. The plain model gives known results; the kernels of
 * AVX512-BF16 give the same bits as the model, for random bit patterns and for shapes that fill no
 * tile; sums do not depend on how terms are divided into calls.
 */
#include "test.h"

#include "base/half.h"
#include "base/philox.h"
#include "kern/bf16.h"
#include "kern/kern.h"

#include <math.h>

enum { ROUNDS = 10000 };

static uint64_t drawn;

static uint32_t draw(void)
{
	return (uint32_t)(neap__random_uniform(7, 0, 0, drawn++) * 0x1p32);
}

/* NULL: this processor lacks the instructions. */
static const struct neap__bf16_ops *hardware(void)
{
#ifdef __x86_64__
	if (neap__isa_has_bf16(NEAP__ISA_AVX512))
		return &neap__bf16_avx512;
#endif
	return NULL;
}

/* Results of the instructions VCVTNEPS2BF16 and VDPBF16PS, as an EPYC of the fourth generation
 * gives them; the first ones follow from Intel's definition too. */
static void known_results(void **arg)
{
	static const struct {
		uint32_t x;
		uint16_t rounded;
	} round[] = {
		{0x3F800000, 0x3F80},
		{0x3F808000, 0x3F80}, /* a tie, to even */
		{0x3F818000, 0x3F82},
		{0x3F808001, 0x3F81},
		{0x7F7FFFFF, 0x7F80}, /* overflow */
		{0x007FFFFF, 0x0000},
		{0x80000001, 0x8000}, /* subnormal */
		{0x7F800000, 0x7F80},
		{0xFF800001, 0xFFC0},
		{0x7FC12345, 0x7FC1},
	};
	static const struct {
		float sum;
		uint16_t a, b;
		float result;
	} add[] = {
		{1, 0x3F80, 0x4000, 3},
		{-0.0F, 0x8000, 0x0000, -0.0F}, /* the pair that changes no sum */
		{0.0F, 0x8000, 0x0000, 0.0F},
		{0x1p-127F, 0x0000, 0x0000, 0.0F},	/* a subnormal sum */
		{0, 0x0001, 0x7F00, 0.0F},		/* a subnormal factor */
		{0, 0x2000, 0x1F00, 0.0F},		/* 2^-63 2^-65 is subnormal */
		{0x1p-126F, 0x9A00, 0x1A00, 0.0F},	/* 2^-126 - 2^-150: smaller in 24 bits */
		{0x1p-126F, 0x9A00, 0x1980, 0x1p-126F}, /* 2^-126 - 2^-151: a tie, rounded up */
	};
	(void)arg;
	for (size_t i = 0; i < sizeof round / sizeof *round; i++)
		assert_int_equal(neap__bf16_round(neap__bits_float(round[i].x)), round[i].rounded);
	for (size_t i = 0; i < sizeof add / sizeof *add; i++) {
		float factor = neap__bits_float((uint32_t)add[i].a << 16), out = add[i].sum;
		uint32_t pairs[48] = {(uint32_t)add[i].b << 16};
		assert_int_equal(neap__float_bits(neap__bf16_add(add[i].sum, add[i].a, add[i].b)),
			neap__float_bits(add[i].result));
		struct neap__sample_rows sample = {.v = &factor, .count = 1, .out = &out};
		if (hardware()) {
			hardware()->product(&(struct neap__pairs){pairs, 1, 1}, &sample, 1);
			assert_int_equal(neap__float_bits(out), neap__float_bits(add[i].result));
		}
	}
}

/* A number of one of several kinds: any bits, near 1, small, or near the smallest normal one. */
static uint32_t some_number(int kind)
{
	uint32_t bits = draw();

	switch (kind) {
	case 0:
		return bits;
	case 1:
		return (bits & 0x80FFFFFFU) | 0x3F000000U;
	case 2:
		return (bits & 0x87FFFFFFU) + 0x1A000000U;
	default:
		return (bits & 0x8000FFFFU) + 0x00800000U - (bits >> 17 & 3);
	}
}

static void assert_same(const float *a, const float *b, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!isnan(a[i]) || !isnan(b[i]))
			assert_int_equal(neap__float_bits(a[i]), neap__float_bits(b[i]));
}

/* Two terms a sum: what the instruction computes of any numbers. */
static void same_arithmetic(void **arg)
{
	const struct neap__bf16_ops *ops = hardware();
	enum { LANES = 48 };

	(void)arg;
	if (!ops)
		skip();
	for (int round = 0; round < ROUNDS; round++) {
		float w[2 * LANES], out[LANES], expected[LANES], v[2];
		uint32_t pairs[LANES], model[LANES];
		int kind = round % 3;
		v[0] = neap__bits_float(some_number(kind));
		v[1] = neap__bits_float(some_number(kind));
		for (int i = 0; i < 2 * LANES; i++)
			w[i] = neap__bits_float(some_number(kind));
		for (int i = 0; i < LANES; i++)
			out[i] = expected[i] = neap__bits_float(some_number(kind == 2 ? 3 : kind));
		struct neap__sample_rows sample = {.v = v, .count = 2, .out = out};
		neap__bf16_pack(pairs, w, 2, LANES, ops->columns);
		ops->product(&(struct neap__pairs){pairs, 2, LANES}, &sample, 1);
		sample.out = expected;
		neap__bf16_pack(model, w, 2, LANES, neap__bf16_model.columns);
		neap__bf16_model.product(&(struct neap__pairs){model, 2, LANES}, &sample, 1);
		assert_same(out, expected, LANES);
	}
}

static float *random_numbers(size_t count)
{
	float *x = malloc((count ? count : 1) * sizeof *x);

	assert_non_null(x);
	for (size_t i = 0; i < count; i++)
		x[i] = (float)(neap__random_uniform(7, 0, 0, drawn++) * 2 - 1);
	return x;
}

static uint32_t *packed(const float *w, int rows, int n, int strip, int turned)
{
	int depth = turned ? n : rows, columns = turned ? rows : n;
	size_t words = ((size_t)depth + 1) / 2 * (size_t)((columns + strip - 1) / strip * strip);
	uint32_t *pairs = malloc(words * sizeof *pairs);

	assert_non_null(pairs);
	(turned ? neap__bf16_pack_turned : neap__bf16_pack)(pairs, w, rows, n, strip);
	return pairs;
}

/* One product: the model against single sums, and the kernel against the model. */
static void check_product(int rows, int columns, int samples, int turned)
{
	int depth = turned ? columns : rows, n = turned ? rows : columns;
	float *w = random_numbers((size_t)rows * columns);
	float *v = random_numbers((size_t)samples * depth);
	float *out = random_numbers((size_t)samples * n);
	float *expected = malloc((size_t)samples * n * sizeof *expected);
	struct neap__sample_rows sample[40];
	const struct neap__bf16_ops *both[] = {&neap__bf16_model, hardware()};

	assert_non_null(expected);
	memcpy(expected, out, (size_t)samples * n * sizeof *expected);
	for (int s = 0; s < samples; s++)
		for (int i = 0; i < n; i++)
			for (int k = 0; k < depth; k++) {
				float factor = turned ? w[(size_t)i * columns + k]
						      : w[(size_t)k * columns + i];
				expected[s * n + i] = neap__bf16_add(expected[s * n + i],
					neap__bf16_round(v[(size_t)s * depth + k]),
					neap__bf16_round(factor));
			}
	for (int o = 0; o < 2 && both[o]; o++) {
		uint32_t *pairs = packed(w, rows, columns, both[o]->columns, turned);
		float *got = malloc((size_t)samples * n * sizeof *got);
		assert_non_null(got);
		memcpy(got, out, (size_t)samples * n * sizeof *got);
		for (int s = 0; s < samples; s++)
			sample[s] = (struct neap__sample_rows){.v = v + (size_t)s * depth,
				.count = depth,
				.out = got + (size_t)s * n};
		both[o]->product(&(struct neap__pairs){pairs, depth, n}, sample, samples);
		assert_memory_equal(got, expected, (size_t)samples * n * sizeof *got);
		free(got);
		free(pairs);
	}
	free(w);
	free(v);
	free(out);
	free(expected);
}

static void products(void **arg)
{
	static const int rows[] = {1, 2, 7, 64, 259}, columns[] = {1, 16, 48, 50, 97},
			 samples[] = {1, 3, 8, 15, 37};

	(void)arg;
	for (int i = 0; i < 5; i++)
		for (int k = 0; k < 5; k++)
			check_product(rows[i], columns[k], samples[(i + k) % 5], (i + k) % 2);
}

/* Outer products: one call, and the same terms in two calls. */
static void check_outer(int rows, int columns, int count)
{
	float *x = random_numbers((size_t)count * rows),
	      *y = random_numbers((size_t)count * columns);
	size_t bytes = (size_t)rows * columns * sizeof(float);
	float *g = random_numbers((size_t)rows * columns), *expected = malloc(bytes);
	float *got = malloc(bytes), *room = NULL;
	const float *xs[600], *ys[600];
	int from = rows > 20 ? 8 : 0, right = columns > 60 ? columns - 1 : columns;
	const struct neap__bf16_ops *both[] = {&neap__bf16_model, hardware()};

	assert_non_null(expected);
	assert_non_null(got);
	assert_int_equal(posix_memalign((void **)&room, 64,
				 neap__outer_room((uint64_t)rows + 8) * sizeof *room),
		0);
	for (int e = 0; e < count; e++) {
		xs[e] = x + (size_t)e * rows;
		ys[e] = y + (size_t)e * columns;
	}
	memcpy(expected, g, bytes);
	for (int r = from; r < rows; r++)
		for (int c = 0; c < right; c++)
			for (int e = 0; e < count; e++)
				expected[r * columns + c] = neap__bf16_add(
					expected[r * columns + c], neap__bf16_round(xs[e][r]),
					neap__bf16_round(ys[e][c]));
	for (int o = 0; o < 2 && both[o]; o++)
		for (int cut = 0; cut <= count; cut += cut % 2 ? 1 + count / 3 : 1) {
			struct neap__outer outer = {.columns = columns,
				.count = cut,
				.from = from,
				.to = rows,
				.right = right,
				.x = xs,
				.y = ys,
				.room = room};
			memcpy(got, g, bytes);
			both[o]->outer(got, &outer);
			outer.x = xs + cut;
			outer.y = ys + cut;
			outer.count = count - cut;
			both[o]->outer(got, &outer);
			assert_memory_equal(got, expected, bytes);
		}
	free(x);
	free(y);
	free(g);
	free(expected);
	free(got);
	free(room);
}

static void outer_products(void **arg)
{
	static const int rows[] = {1, 8, 13, 40}, columns[] = {1, 47, 48, 101},
			 counts[] = {1, 2, 5, 531};

	(void)arg;
	for (int i = 0; i < 4; i++)
		for (int k = 0; k < 4; k++)
			check_outer(rows[i], columns[k], counts[(i + k) % 4]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_results),
		cmocka_unit_test(same_arithmetic),
		cmocka_unit_test(products),
		cmocka_unit_test(outer_products),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
