/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bf16_product.c: the products of bf16.h with AVX512-BF16, in tiles of HIGH rows of C and a strip
 * of VECTORS vectors that stay in registers, as in product.c. An instruction adds two terms; both
 * factors are rounded when they are packed, DEPTH terms at a time.
 */
#include "kern/bf16.h"
#include "kern/vector.h"

enum {
	HIGH = 8,
	VECTORS = 3, /* 24 sums, 3 words of B and one of A fill 28 of 32 registers */
	STRIP = VECTORS * WIDE,
	DEPTH = NEAP__OUTER_DEPTH, /* a strip of so many terms takes 24 KiB */
	PAIRS = DEPTH / 2,
	/* Terms of outer products at a time: in pairs they take the room of OUTER_DEPTH floats. */
	OUTER = 2 * NEAP__OUTER_DEPTH,
	BLOCK = 32 /* samples whose factors are rounded together: 16 KiB of stack */
};

INLINE __m512i load_pairs(const uint32_t *p)
{
	return _mm512_loadu_si512(p);
}

/* Lane i: first[i] in the upper half, second[i] in the lower. */
INLINE __m512i pair_up(vec first, vec second)
{
	const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25,
		9, 24, 8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
	__m512i both = (__m512i)_mm512_cvtne2ps_pbh((__m512)first, (__m512)second);

	return _mm512_permutexvar_epi16(order, both);
}

/* Lane i: numbers 2 i, in the upper half, and 2 i + 1 of 32. */
INLINE __m512i pair_row(vec low, vec high)
{
	return _mm512_rol_epi32((__m512i)_mm512_cvtne2ps_pbh((__m512)high, (__m512)low), 16);
}

/* c[r][columns] += sum over k < pairs of both products of a[r][k * step] with pairs k of b. */
INLINE void tile(float *const *c, const uint32_t *const *a, size_t step, const uint32_t *b,
	int pairs, int high, int columns)
{
	vec sum[HIGH][VECTORS];

	EACH_REGISTER(int r = 0; r < high; r++)
	EACH_REGISTER(int i = 0; i < VECTORS; i++)
	sum[r][i] = load_some(c[r], i, columns);
	for (int k = 0; k < pairs; k++) {
		__m512i w[VECTORS];
		EACH_REGISTER(int i = 0; i < VECTORS; i++)
		w[i] = load_pairs(b + (size_t)k * STRIP + i * WIDE);
		EACH_REGISTER(int r = 0; r < high; r++)
		{
			__m512i factor = _mm512_set1_epi32((int)a[r][k * step]);
			EACH_REGISTER(int i = 0; i < VECTORS; i++)
			sum[r][i] = (vec)_mm512_dpbf16_ps(
				(__m512)sum[r][i], (__m512bh)factor, (__m512bh)w[i]);
		}
	}
	EACH_REGISTER(int r = 0; r < high; r++)
	EACH_REGISTER(int i = 0; i < VECTORS; i++)
	store_some(c[r], i, columns, sum[r][i]);
}

/* The same of up to HIGH rows: as many at a time as are left. */
INLINE void tiles(float *const *c, const uint32_t *const *a, size_t step, const uint32_t *b,
	int pairs, int high, int columns)
{
	int r = 0;

	if (high == HIGH && columns >= STRIP) {
		tile(c, a, step, b, pairs, HIGH, STRIP);
		return;
	}
	if (high == HIGH) {
		tile(c, a, step, b, pairs, HIGH, columns);
		return;
	}
	for (; r + 4 <= high; r += 4)
		tile(c + r, a + r, step, b, pairs, 4, columns);
	for (; r + 2 <= high; r += 2)
		tile(c + r, a + r, step, b, pairs, 2, columns);
	if (r < high)
		tile(c + r, a + r, step, b, pairs, 1, columns);
}

/* Rounds numbers [0, depth) of a row; an odd last one gets a second factor that adds nothing. */
static void round_row(uint32_t *pairs, const float *v, int depth)
{
	for (int k = 0; k < depth; k += 2 * WIDE)
		_mm512_storeu_si512(pairs + k / 2,
			pair_row(load_some(v + k, 0, depth - k), load_some(v + k, 1, depth - k)));
	if (depth % 2)
		pairs[depth / 2] |= NEAP__BF16_NONE;
}

/* Terms [k, k + depth) of all columns, for up to BLOCK samples. */
static void add_block(const struct neap__pairs *m, const struct neap__sample_rows *sample,
	int samples, int k, int depth)
{
	uint32_t rounded[BLOCK][PAIRS];
	size_t all = ((size_t)m->rows + 1) / 2 * STRIP;
	const uint32_t *b = m->w + (size_t)k / 2 * STRIP;

	for (int s = 0; s < samples; s++)
		round_row(rounded[s], sample[s].v + k, depth);
	for (int column = 0; column < m->columns; column += STRIP, b += all)
		for (int s = 0; s < samples; s += HIGH) {
			int high = samples - s < HIGH ? samples - s : HIGH;
			const uint32_t *a[HIGH];
			float *c[HIGH];
			for (int r = 0; r < high; r++) {
				a[r] = rounded[s + r];
				c[r] = sample[s + r].out + column;
			}
			tiles(c, a, 1, b, (depth + 1) / 2, high, m->columns - column);
		}
}

static void product(
	const struct neap__pairs *m, const struct neap__sample_rows *sample, int samples)
{
	for (int s = 0; s < samples; s += BLOCK)
		for (int k = 0; k < m->rows; k += DEPTH)
			add_block(m, sample + s, samples - s < BLOCK ? samples - s : BLOCK, k,
				m->rows - k < DEPTH ? m->rows - k : DEPTH);
}

/* What stands for a term after the last of an odd number: x is -0, y is +0. */
INLINE vec load_term(const real *const *rows, int e, int count, int at, int end, real otherwise)
{
	return e < count ? load_some(rows[e] + at, 0, end - at) : spread(otherwise);
}

/* Terms [e, e + depth) of rows [from, to) of x in pairs, HIGH rows side by side, pair after pair.
 */
static void pack_rows(uint32_t *room, const struct neap__outer *o, int e, int depth)
{
	size_t block = (size_t)(depth + 1) / 2 * HIGH;

	for (int row = o->from; row < o->to; row += 2 * HIGH, room += 2 * block)
		for (int k = 0; k < depth; k += 2) {
			uint32_t *to = room + (size_t)k / 2 * HIGH;
			__m512i pairs = pair_up(
				load_term(o->x, e + k, o->count, row, o->to, (real)-0.0),
				load_term(o->x, e + k + 1, o->count, row, o->to, (real)-0.0));
			_mm256_storeu_si256((__m256i_u *)to, _mm512_castsi512_si256(pairs));
			if (row + HIGH < o->to)
				_mm256_storeu_si256((__m256i_u *)(to + block),
					_mm512_extracti64x4_epi64(pairs, 1));
		}
}

/* The same terms of a strip of y; prefetches those of the next strip. */
static void pack_strip(uint32_t *room, const struct neap__outer *o, int column, int e, int depth)
{
	int next = column + STRIP < o->right ? STRIP : 0;

	for (int k = 0; k < depth; k += 2, room += STRIP)
		EACH_REGISTER(int i = 0; i < VECTORS; i++)
		{
			int at = column + i * WIDE;
			int inside = at < o->right ? at : o->right;
			__builtin_prefetch(o->y[e + k] + inside + next);
			_mm512_storeu_si512(room + i * WIDE,
				pair_up(load_term(o->y, e + k, o->count, inside, o->right, 0),
					load_term(o->y, e + k + 1, o->count, inside, o->right, 0)));
		}
}

/* Prefetches a strip of rows that come next. */
INLINE void expect(const float *g, int columns, int high)
{
	for (int r = 0; r < high; r++)
		EACH_REGISTER(int i = 0; i < VECTORS; i++)
	__builtin_prefetch(g + (size_t)r * columns + i * WIDE, 1);
}

/* Adds `pairs` packed pairs of terms to a strip of g. */
static void add_terms(float *g, const struct neap__outer *o, const uint32_t *rows,
	const uint32_t *strip, int column, int pairs)
{
	for (int row = o->from; row < o->to; row += HIGH, rows += (size_t)pairs * HIGH) {
		int high = o->to - row < HIGH ? o->to - row : HIGH;
		float *at = g + (size_t)row * o->columns + column, *c[HIGH];
		const uint32_t *a[HIGH];
		for (int r = 0; r < high; r++) {
			a[r] = rows + r;
			c[r] = at + (size_t)r * o->columns;
		}
		if (row + 2 * HIGH <= o->to)
			expect(at + (size_t)HIGH * o->columns, o->columns, HIGH);
		tiles(c, a, HIGH, strip, pairs, high, o->right - column);
	}
}

static void outer(float *g, const struct neap__outer *o)
{
	uint32_t *strip = (uint32_t *)(void *)o->room, *rows = strip + OUTER / 2 * STRIP;

	_Static_assert(sizeof(uint32_t) == sizeof *o->room && (int)STRIP <= (int)NEAP__OUTER_STRIP,
		"neap__outer_room has room for so many pairs");
	for (int e = 0; e < o->count; e += OUTER) {
		int depth = o->count - e < OUTER ? o->count - e : OUTER;
		pack_rows(rows, o, e, depth);
		for (int column = o->left; column < o->right; column += STRIP) {
			pack_strip(strip, o, column, e, depth);
			add_terms(g, o, rows, strip, column, (depth + 1) / 2);
		}
	}
}

const struct neap__bf16_ops neap__bf16_avx512 = {STRIP, product, outer};
