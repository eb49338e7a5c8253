/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather.c: sums of rows of a gradient (struct neap__scatter). A strip of STRIP vectors of a row
 * stays in registers while all that is added to the row passes, in its order. Strips are the outer
 * loop; the strip's columns of all sources are copied together first, so that they stay in a near
 * cache for all rows. The gradient is read and written once.
 */
#include "kern/vector.h"

enum { STRIP = 8, AHEAD = 4 /* rows between a prefetch and its use */ };

/* g[vectors] += rows from[count] of x, which are `stride` numbers apart. */
INLINE void strip(
	real *g, const real *x, size_t stride, const uint32_t *from, uint32_t count, int vectors)
{
	vec a[STRIP];

	EACH_REGISTER(int i = 0; i < vectors; i++)
	a[i] = load(g + i * WIDE);
	for (uint32_t e = 0; e < count; e++) {
		const real *row = x + (size_t)from[e] * stride;
		EACH_REGISTER(int i = 0; i < vectors; i++)
		a[i] += load(row + i * WIDE);
	}
	EACH_REGISTER(int i = 0; i < vectors; i++)
	store(g + i * WIDE, a[i]);
}

/* Copies a strip's columns of all sources together. */
INLINE void pack(const struct neap__scatter *b, int column)
{
	for (int j = 0; j < b->source_rows; j++)
		EACH_REGISTER(int i = 0; i < STRIP; i++)
	store(b->strip + ((size_t)j * STRIP + i) * WIDE,
		load(b->x + (size_t)j * b->stride + column + i * WIDE));
}

/* The same for columns that do not fill a vector. */
INLINE void strip_part(
	real *g, const struct neap__scatter *b, uint32_t from, uint32_t to, int column, int count)
{
	vec a = load_part(g + column, count);

	for (uint32_t e = from; e < to; e++)
		a += load_part(b->x + (size_t)b->from[e] * b->stride + column, count);
	store_part(g + column, a, count);
}

/* Prefetches a strip of a row of g. */
INLINE void expect(const real *g, int column)
{
	EACH_REGISTER(int i = 0; i < STRIP * NEAP__VECTOR; i += 64)
	__builtin_prefetch((const char *)(g + column) + i, 1);
}

void NEAP_V(neap__gather)(real *g, int columns, const struct neap__scatter *b)
{
	int column = 0;

	for (; column + STRIP * WIDE <= columns; column += STRIP * WIDE) {
		pack(b, column);
		for (int k = 0; k < b->rows; k++) {
			if (k + AHEAD < b->rows)
				expect(g + (size_t)b->row[k + AHEAD] * columns, column);
			strip(g + (size_t)b->row[k] * columns + column, b->strip, STRIP * WIDE,
				b->from + b->start[k], b->start[k + 1] - b->start[k], STRIP);
		}
	}
	for (; column + WIDE <= columns; column += WIDE)
		for (int k = 0; k < b->rows; k++)
			strip(g + (size_t)b->row[k] * columns + column, b->x + column, b->stride,
				b->from + b->start[k], b->start[k + 1] - b->start[k], 1);
	for (int k = 0; column < columns && k < b->rows; k++)
		strip_part(g + (size_t)b->row[k] * columns, b, b->start[k], b->start[k + 1], column,
			columns - column);
}
