/* SPDX-License-Identifier: Apache-2.0 */
/*
 * product.c: dense products of a matrix with all samples of a group, and sums of outer products
 * over many steps. Both are C += A B, made in tiles of HIGH rows of C and a strip of VECTORS
 * vectors that stay in registers, DEPTH terms at a time, so that the strip's part of B is in a near
 * cache when the next tile reads it. A result is one chain of fused sums in the order of the terms,
 * begun with what was there, in whatever tile it is made: its bits depend on nothing else.
 */
#include "kern/vector.h"

enum {
	HIGH = NEAP__VECTOR == 64 ? 8 : 4,
	VECTORS = NEAP__VECTOR == 16 ? 2 : 3,
	STRIP = VECTORS * WIDE,
	DEPTH = NEAP__OUTER_DEPTH
};

const int NEAP_V(neap__product_columns) = STRIP;

/* c[r][columns] += sum over k < depth of a[r][k * step] * row k of b. */
INLINE void tile(real *const *c, const real *const *a, size_t step, const real *b, int depth,
	int high, int columns)
{
	vec sum[HIGH][VECTORS];

	EACH_REGISTER(int r = 0; r < high; r++)
	EACH_REGISTER(int i = 0; i < VECTORS; i++)
	sum[r][i] = load_some(c[r], i, columns);
	for (int k = 0; k < depth; k++) {
		vec w[VECTORS];
		EACH_REGISTER(int i = 0; i < VECTORS; i++)
		w[i] = load(b + (size_t)k * STRIP + i * WIDE);
		EACH_REGISTER(int r = 0; r < high; r++)
		{
			vec factor = spread(a[r][k * step]);
			EACH_REGISTER(int i = 0; i < VECTORS; i++)
			sum[r][i] = multiply_add(factor, w[i], sum[r][i]);
		}
	}
	EACH_REGISTER(int r = 0; r < high; r++)
	EACH_REGISTER(int i = 0; i < VECTORS; i++)
	store_some(c[r], i, columns, sum[r][i]);
}

/* The same of up to HIGH rows: as many at a time as are left. */
INLINE void tiles(real *const *c, const real *const *a, size_t step, const real *b, int depth,
	int high, int columns)
{
	int r = 0;

	if (high == HIGH && columns >= STRIP) {
		tile(c, a, step, b, depth, HIGH, STRIP);
		return;
	}
	if (high == HIGH) {
		tile(c, a, step, b, depth, HIGH, columns);
		return;
	}
	for (; r + 4 <= high; r += 4)
		tile(c + r, a + r, step, b, depth, 4, columns);
	for (; r + 2 <= high; r += 2)
		tile(c + r, a + r, step, b, depth, 2, columns);
	if (r < high)
		tile(c + r, a + r, step, b, depth, 1, columns);
}

/* Terms [k, k + depth) of a strip, for all samples. */
static void strip_of(const struct neap__strips *m, const struct neap__sample_rows *sample,
	int samples, int column, int k, int depth)
{
	const real *b = m->w + (size_t)column * m->rows + (size_t)k * STRIP;

	for (int s = 0; s < samples; s += HIGH) {
		int high = samples - s < HIGH ? samples - s : HIGH;
		const real *a[HIGH];
		real *c[HIGH];
		for (int r = 0; r < high; r++) {
			a[r] = sample[s + r].v + k;
			c[r] = sample[s + r].out + column;
		}
		tiles(c, a, 1, b, depth, high, m->columns - column);
	}
}

void NEAP_V(neap__product)(
	const struct neap__strips *m, const struct neap__sample_rows *sample, int samples)
{
	for (int column = 0; column < m->columns; column += STRIP)
		for (int k = 0; k < m->rows; k += DEPTH)
			strip_of(m, sample, samples, column, k,
				m->rows - k < DEPTH ? m->rows - k : DEPTH);
}

/* Terms [e, e + depth) of rows [from, to) of x, HIGH rows side by side, term after term. */
static void pack_rows(real *room, const struct neap__outer *o, int e, int depth)
{
	for (int row = o->from; row < o->to; row += HIGH) {
		int high = o->to - row < HIGH ? o->to - row : HIGH;
		for (const real *const *x = o->x + e; x < o->x + e + depth; x++, room += HIGH)
			for (int r = 0; r < high; r++)
				room[r] = (*x)[row + r];
	}
}

/* The same terms of a strip of y, padded with zeros; prefetches those of the next strip. */
static void pack_strip(real *room, const struct neap__outer *o, int column, int e, int depth)
{
	int next = column + STRIP < o->right ? STRIP : 0;

	for (const real *const *y = o->y + e; y < o->y + e + depth; y++, room += STRIP) {
		EACH_REGISTER(int i = 0; i < STRIP * (int)sizeof(real); i += 64)
		__builtin_prefetch((const char *)(*y + column + next) + i);
		EACH_REGISTER(int i = 0; i < VECTORS; i++)
		store(room + i * WIDE, load_some(*y + column, i, o->right - column));
	}
}

/* Prefetches a strip of rows that come next. */
INLINE void expect(const real *g, int columns, int high)
{
	for (int r = 0; r < high; r++)
		EACH_REGISTER(int i = 0; i < STRIP * (int)sizeof(real); i += 64)
	__builtin_prefetch((const char *)(g + (size_t)r * columns) + i, 1);
}

/* Adds `depth` packed terms to a strip of g. */
static void add_terms(real *g, const struct neap__outer *o, const real *rows, const real *strip,
	int column, int depth)
{
	for (int row = o->from; row < o->to; row += HIGH, rows += (size_t)depth * HIGH) {
		int high = o->to - row < HIGH ? o->to - row : HIGH;
		real *at = g + (size_t)row * o->columns + column, *c[HIGH];
		const real *a[HIGH];
		for (int r = 0; r < high; r++) {
			a[r] = rows + r;
			c[r] = at + (size_t)r * o->columns;
		}
		if (row + 2 * HIGH <= o->to)
			expect(at + (size_t)HIGH * o->columns, o->columns, HIGH);
		tiles(c, a, HIGH, strip, depth, high, o->right - column);
	}
}

void NEAP_V(neap__outer)(real *g, const struct neap__outer *o)
{
	real *strip = o->room, *rows = o->room + DEPTH * STRIP;

	_Static_assert((int)STRIP <= (int)NEAP__OUTER_STRIP && (int)HIGH <= (int)NEAP__OUTER_HIGH,
		"neap__outer_room");
	for (int e = 0; e < o->count; e += DEPTH) {
		int depth = o->count - e < DEPTH ? o->count - e : DEPTH;
		pack_rows(rows, o, e, depth);
		for (int column = o->left; column < o->right; column += STRIP) {
			pack_strip(strip, o, column, e, depth);
			add_terms(g, o, rows, strip, column, depth);
		}
	}
}
