/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_tiles.c: products in the order of AMX. The plain model gives known results and is near the
 * exact sums; the kernel has the same bits with tiles emulated in plain C, with AVX-512, and with
 * AMX on a processor that has it, for random shapes, lists and bit patterns; a sample's result does
 * not depend on the other samples.
 */
#include "test.h"

#include "base/half.h"
#include "base/philox.h"
#include "kern/bf16.h"
#include "kern/kern.h"
#include "kern/tiles/tiles.h"

#include <math.h>

/* tile_product.c, compiled for this test. */
extern const struct neap__tile_ops neap__tiles_emulated;

enum { SHAPES = 60, SAMPLES_MOST = 37, SPARE = 5 };

static uint64_t drawn;

static uint32_t draw(uint32_t below)
{
	return (uint32_t)(neap__random_uniform(11, 0, 0, drawn++) * below);
}

/* Kinds of numbers: near 1, of all sizes that give finite sums, with results near the smallest
 * normal number, and any bits. */
enum kind { USUAL, WIDE, TINY, ANY, KINDS };

static float some_number(enum kind kind, int is_sum)
{
	uint32_t bits = (uint32_t)(neap__random_uniform(11, 0, 0, drawn++) * 0x1p32);
	float mantissa = neap__bits_float((bits & 0x807FFFFFU) | 0x3F800000U);

	switch (kind) {
	case USUAL:
		return ldexpf(mantissa, -(int)draw(4));
	case WIDE:
		return ldexpf(mantissa, 20 - (int)draw(60));
	case TINY:
		return ldexpf(mantissa, (is_sum ? -120 : -60) - (int)draw(12));
	default:
		return neap__bits_float(bits);
	}
}

/* A product with room for two results. */
struct product_case {
	int rows, columns, samples, planes, turned, is_list;
	float *w, *v, *start, *out[2];
	uint16_t *ids;
	uint32_t *packed;
	struct neap__sample_rows sample[SAMPLES_MOST];
};

static void *room(size_t bytes)
{
	void *p = malloc(bytes ? bytes : 1);
	assert_non_null(p);
	return p;
}

static float *numbers(size_t count, enum kind kind, int is_sum)
{
	float *x = room(count * sizeof *x);
	for (size_t i = 0; i < count; i++)
		x[i] = some_number(kind, is_sum);
	return x;
}

static void case_make(struct product_case *c, int rows, int columns, int samples, int planes,
	int is_list, enum kind kind)
{
	size_t words = neap__planes_words((uint64_t)rows, (uint64_t)columns, planes);

	*c = (struct product_case){.rows = rows,
		.columns = columns,
		.samples = samples,
		.planes = planes,
		.turned = (int)draw(2),
		.is_list = is_list};
	c->w = numbers((size_t)rows * columns, kind, 0);
	c->v = numbers((size_t)samples * rows, kind, 0);
	c->start = numbers((size_t)samples * columns, kind, 1);
	c->ids = room((size_t)samples * rows * sizeof *c->ids);
	c->packed = room(words * sizeof *c->packed);
	if (c->turned)
		neap__planes_pack_turned(c->packed, c->w, columns, rows, planes);
	else
		neap__planes_pack(c->packed, c->w, rows, columns, planes);
	for (int o = 0; o < 2; o++)
		c->out[o] = room((size_t)samples * columns * sizeof(float));
	for (int s = 0; s < samples; s++) {
		uint16_t *id = c->ids + (size_t)s * rows;
		int count = 0;
		uint32_t activity = draw(101);
		for (int k = 0; k < rows; k++)
			if (draw(100) < activity)
				id[count++] = (uint16_t)k;
		c->sample[s] = (struct neap__sample_rows){.id = id,
			.v = is_list ? NULL : c->v + (size_t)s * rows,
			.count = is_list ? count : rows};
	}
}

static void case_free(struct product_case *c)
{
	free(c->w);
	free(c->v);
	free(c->start);
	free(c->ids);
	free(c->packed);
	free(c->out[0]);
	free(c->out[1]);
}

/* out[o] = start + the product, in calls of `part` samples. */
static void multiply(struct product_case *c, const struct neap__tile_ops *ops, int o, int part)
{
	struct neap__planes m = neap__planes_of(c->packed, c->rows, c->columns, c->planes);

	memcpy(c->out[o], c->start, (size_t)c->samples * c->columns * sizeof(float));
	for (int s = 0; s < c->samples; s++)
		c->sample[s].out = c->out[o] + (size_t)s * c->columns;
	for (int s = 0; s < c->samples; s += part)
		ops->product(&m, c->sample + s, c->samples - s < part ? c->samples - s : part);
}

static void assert_same(const struct product_case *c)
{
	for (size_t i = 0; i < (size_t)c->samples * c->columns; i++)
		if (!isnan(c->out[0][i]) || !isnan(c->out[1][i]))
			assert_int_equal(
				neap__float_bits(c->out[0][i]), neap__float_bits(c->out[1][i]));
}

/* Random products, and shapes around those of tiles. */
static void same_as_model(const struct neap__tile_ops *ops)
{
	static const int edges[] = {1, 2, 31, 32, 33, 63, 64, 65, 255, 256, 257, 300};
	struct product_case c;

	assert_true(neap__tiles_agree(ops));
	for (int i = 0; i < SHAPES; i++) {
		int rows = i % 2 ? edges[draw(12)] : 1 + (int)draw(330);
		int columns = i % 3 ? 1 + (int)draw(40) : 60 + (int)draw(40);
		case_make(&c, rows, columns, 1 + (int)draw(SAMPLES_MOST), 1 + (int)draw(3),
			(int)draw(2), (enum kind)(i % KINDS));
		multiply(&c, &neap__tiles_model, 0, c.samples);
		multiply(&c, ops, 1, 1 + (int)draw((uint32_t)c.samples));
		assert_same(&c);
		case_free(&c);
	}
}

static void emulated(void **arg)
{
	(void)arg;
	same_as_model(&neap__tiles_emulated);
}

static void avx512(void **arg)
{
	(void)arg;
#ifdef __x86_64__
	if (neap__isa_works(NEAP__ISA_AVX512)) {
		same_as_model(&neap__tiles_avx512);
		return;
	}
#endif
	printf("# SKIP avx512: this processor does not have AVX-512\n");
	skip();
}

static void amx(void **arg)
{
	(void)arg;
#ifdef NEAP__HAS_AMX_ASSEMBLER
	if (neap__isa_works(NEAP__ISA_AVX512) && neap__isa_take_amx()) {
		same_as_model(&neap__tiles_amx);
		return;
	}
#endif
	printf("# SKIP amx: this processor, its system or the assembler does not have AMX\n");
	skip();
}

/* Samples of both kinds in one call; nothing is written behind the columns. */
static void mixed_samples(void **arg)
{
	enum { ROWS = 70, COLUMNS = 21, SAMPLES = 20 };
	struct product_case lists, values;
	float out[SAMPLES][COLUMNS + SPARE];
	struct neap__sample_rows both[SAMPLES];

	(void)arg;
	case_make(&lists, ROWS, COLUMNS, SAMPLES, 3, 1, USUAL);
	case_make(&values, ROWS, COLUMNS, SAMPLES, 3, 0, USUAL);
	multiply(&lists, &neap__tiles_model, 0, 1);
	memcpy(values.packed, lists.packed,
		neap__planes_words(ROWS, COLUMNS, 3) * sizeof *lists.packed);
	multiply(&values, &neap__tiles_model, 0, 1);
	for (int s = 0; s < SAMPLES; s++) {
		const struct product_case *from = s % 5 < 3 ? &lists : &values;
		both[s] = from->sample[s];
		both[s].out = out[s];
		memcpy(out[s], from->start + (size_t)s * COLUMNS, COLUMNS * sizeof(float));
		for (int i = 0; i < SPARE; i++)
			out[s][COLUMNS + i] = 7;
	}
	struct neap__planes m = neap__planes_of(lists.packed, ROWS, COLUMNS, 3);
	neap__tiles_emulated.product(&m, both, SAMPLES);
	for (int s = 0; s < SAMPLES; s++) {
		const struct product_case *from = s % 5 < 3 ? &lists : &values;
		assert_memory_equal(
			out[s], from->out[0] + (size_t)s * COLUMNS, COLUMNS * sizeof(float));
		for (int i = 0; i < SPARE; i++)
			assert_true(out[s][COLUMNS + i] == 7);
	}
	case_free(&lists);
	case_free(&values);
}

/* Every number of packed weights, of any bits: rounded rests, one plane after the other. */
static void packed_planes(void **arg)
{
	(void)arg;
	for (int i = 0; i < 40; i++) {
		struct product_case c;
		case_make(&c, 1 + (int)draw(40), 1 + (int)draw(40), 1, 1 + (int)draw(3), 0,
			(enum kind)(i % KINDS));
		struct neap__planes m = neap__planes_of(c.packed, c.rows, c.columns, c.planes);
		int pairs = (c.rows + 1) / 2, strips = (c.columns + 15) / 16;
		for (int k = 0; k < 2 * pairs; k++)
			for (int n = 0; n < 16 * strips; n++) {
				int is_inside = k < c.rows && n < c.columns;
				float x = !is_inside ? 0
					  : c.turned ? c.w[n * c.rows + k]
						     : c.w[k * c.columns + n];
				for (int p = 0; p < c.planes; p++) {
					uint32_t pair =
						m.w[(size_t)p * m.plane +
							((size_t)(n / 16) * pairs + k / 2) * 16 +
							n % 16];
					uint16_t part = neap__bf16_round(x);
					assert_int_equal(
						(uint16_t)(k & 1 ? pair : pair >> 16), part);
					float as_float = neap__bits_float((uint32_t)part << 16);
					x = isfinite(as_float) ? x - as_float : 0;
				}
			}
		case_free(&c);
	}
}

/* Columns from a strip on are those of the whole product. */
static void part_of_columns(void **arg)
{
	enum { ROWS = 90, COLUMNS = 75, FROM = 32, COUNT = 21 };
	struct product_case c;
	float out[COUNT];

	(void)arg;
	case_make(&c, ROWS, COLUMNS, 1, 3, 0, USUAL);
	multiply(&c, &neap__tiles_model, 0, 1);
	struct neap__planes m = neap__planes_of(c.packed, ROWS, COLUMNS, 3);
	struct neap__planes part = neap__planes_part(&m, FROM, COUNT);
	memcpy(out, c.start + FROM, sizeof out);
	c.sample->out = out;
	neap__tiles_emulated.product(&part, c.sample, 1);
	assert_memory_equal(out, c.out[0] + FROM, sizeof out);
	case_free(&c);
}

/* Results that the order of sums decides: 2^24 + 1 is no float, 2^24 + 2 is one. */
static void known_results(void **arg)
{
	static const struct {
		int count;
		float term[6], result;
	} cases[] = {
		{4, {0x1p24F, 1, 0, 1}, 0x1p24F + 2}, /* both ones are in one chain */
		{4, {0x1p24F, 1, 1, 0}, 0x1p24F},     /* they are in two */
		{3, {0x1p24F, 0, 1}, 0x1p24F},
		{6, {0x1p24F, 0, 1, 0, 1, 0}, 0x1p24F},
		{2, {1.5F * 0x1p-126F, -0x1p-126F}, 0}, /* 2^-127 is subnormal */
		{1, {1 + 0x1p-23F}, 1 + 0x1p-23F},	/* three planes keep all bits */
		{1, {-0.0F}, 0},
	};
	const struct neap__tile_ops *both[] = {&neap__tiles_model, &neap__tiles_emulated};
	static const uint16_t ids[6] = {0, 1, 2, 3, 4, 5};

	(void)arg;
	for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
		int n = cases[i / 2].count;
		uint32_t packed[3 * 3 * NEAP__TILE_COLUMNS];
		float out = 0;
		struct neap__sample_rows sample = {.id = ids, .count = n, .out = &out};
		neap__planes_pack(packed, cases[i / 2].term, n, 1, 3);
		struct neap__planes m = neap__planes_of(packed, n, 1, 3);
		both[i % 2]->product(&m, &sample, 1);
		assert_int_equal(neap__float_bits(out), neap__float_bits(cases[i / 2].result));
	}
}

/*
 * Three planes give the exact sums but for the rounding of floats: a block of 32 terms has two
 * chains of 16, so that the error is below some 20 units of 2^-24 of the sum of magnitudes a block,
 * and the products that are left out are below 2^-24 of it each.
 */
static void near_exact(void **arg)
{
	struct product_case c;

	(void)arg;
	for (int i = 0; i < 20; i++) {
		case_make(&c, 1 + (int)draw(200), 1 + (int)draw(20), 3, 3, i % 2, USUAL);
		multiply(&c, &neap__tiles_model, 0, 3);
		for (int s = 0; s < c.samples; s++)
			for (int n = 0; n < c.columns; n++) {
				double sum = c.start[s * c.columns + n], size = fabs(sum);
				for (int k = 0; k < c.sample[s].count; k++) {
					int row = c.is_list ? c.sample[s].id[k] : k;
					double x = c.is_list ? 1 : c.sample[s].v[row];
					double y = x * c.w[c.turned ? n * c.rows + row
								    : row * c.columns + n];
					sum += y;
					size += fabs(y);
				}
				assert_true(fabs(c.out[0][s * c.columns + n] - sum) <=
					    40 * 0x1p-24 * size);
			}
		case_free(&c);
	}
}

static void choice(void **arg)
{
	(void)arg;
	assert_ptr_equal(neap__tiles_get(NEAP__ISA_LOWERED), &neap__tiles_model);
	assert_null(neap__tiles_get(NEAP__ISA_PLAIN));
	assert_null(neap__tiles_get(NEAP__ISA_AVX2));
	assert_int_equal(
		neap__tiles_get(NEAP__ISA_AVX512) != NULL, neap__isa_works(NEAP__ISA_AVX512));
}

/* A kernel with another order of sums is found out. */
static void wrong_order(
	const struct neap__planes *m, const struct neap__sample_rows *sample, int samples)
{
	neap__tiles_model.product(m, sample, samples);
	for (int s = 0; s < samples; s++)
		if (sample[s].v && m->planes == 1)
			sample[s].out[m->columns - 1] =
				nextafterf(sample[s].out[m->columns - 1], INFINITY);
}

static void disagreement(void **arg)
{
	static const struct neap__tile_ops wrong = {"wrong", wrong_order};

	(void)arg;
	assert_false(neap__tiles_agree(&wrong));
	assert_true(neap__tiles_agree(&neap__tiles_model));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_results),
		cmocka_unit_test(near_exact),
		cmocka_unit_test(emulated),
		cmocka_unit_test(avx512),
		cmocka_unit_test(amx),
		cmocka_unit_test(packed_planes),
		cmocka_unit_test(mixed_samples),
		cmocka_unit_test(part_of_columns),
		cmocka_unit_test(disagreement),
		cmocka_unit_test(choice),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
