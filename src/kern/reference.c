/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reference.c: the plain kernels, the specification of all others. Loops run over contiguous
 * columns, so that a compiler can vectorize them without changing a bit: sums over rows go in the
 * order of the list, element by element; dot products keep LANES partial sums.
 */
#include "kern/kern.h"
#include "kern/sigmoid.h"
#include "kern/filter_reference.h"

#include <string.h>

_Static_assert(
	__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are searched from the lowest byte");

enum { LANES = 16 /* of a dot product */, TILE = 64 /* units compared before any is listed */ };

#define NEAR 2 /* mark of a unit inside the support; 1 marks a spike */

static void add_ones(real *restrict y, const real *w, const uint16_t *id, int count, int n)
{
	int k = 0;

	for (; k + 4 <= count; k += 4) {
		const real *a = w + (size_t)id[k] * n, *b = w + (size_t)id[k + 1] * n;
		const real *c = w + (size_t)id[k + 2] * n, *d = w + (size_t)id[k + 3] * n;
		for (int i = 0; i < n; i++)
			y[i] = (((y[i] + a[i]) + b[i]) + c[i]) + d[i];
	}
	for (; k + 2 <= count; k += 2) {
		const real *a = w + (size_t)id[k] * n, *b = w + (size_t)id[k + 1] * n;
		for (int i = 0; i < n; i++)
			y[i] = (y[i] + a[i]) + b[i];
	}
	for (; k < count; k++) {
		const real *a = w + (size_t)id[k] * n;
		for (int i = 0; i < n; i++)
			y[i] += a[i];
	}
}

static void add_dense(
	const struct neap__matrix *m, const struct neap__sample_rows *sample, int samples)
{
	int n = m->columns;

	for (const struct neap__sample_rows *s = sample; s < sample + samples; s++) {
		if (!s->v)
			add_ones(s->out, m->w, s->id, s->count, n);
		for (int k = 0; s->v && k < s->count; k++) {
			const real *restrict row = m->w + (size_t)s->id[k] * n;
			real *restrict y = s->out, a = s->v[k];
			for (int i = 0; i < n; i++)
				y[i] += a * row[i];
		}
	}
}

/* LANES partial sums, four for the rest, one for the last; added up in a fixed order. */
static inline real dot(const real *restrict a, const real *restrict b, int n)
{
	real lane[LANES] = {0}, quad[4] = {0}, rest = 0;
	int i = 0;

	for (; i + LANES <= n; i += LANES)
		for (int k = 0; k < LANES; k++)
			lane[k] += a[i + k] * b[i + k];
	for (; i + 4 <= n; i += 4)
		for (int k = 0; k < 4; k++)
			quad[k] += a[i + k] * b[i + k];
	for (; i < n; i++)
		rest += a[i] * b[i];
	for (int k = 0; k < 8; k++)
		lane[k] += lane[k + 8];
	for (int k = 0; k < 4; k++)
		quad[k] += lane[k] + lane[k + 4];
	return ((quad[0] + quad[2]) + (quad[1] + quad[3])) + rest;
}

static void dot_dense(
	const struct neap__matrix *m, const struct neap__sample_rows *sample, int samples)
{
	int n = m->columns;

	for (const struct neap__sample_rows *s = sample; s < sample + samples; s++)
		for (int k = 0; k < s->count; k++)
			s->out[k] += dot(m->w + (size_t)s->id[k] * n, s->in, n);
}

static void grad_dense(
	real *g, const struct neap__matrix *m, const struct neap__sample_rows *sample, int samples)
{
	int n = m->columns;

	for (const struct neap__sample_rows *s = sample; s < sample + samples; s++)
		for (int k = 0; k < s->count; k++) {
			real *restrict row = g + (size_t)s->id[k] * n;
			const real *restrict x = s->in;
			real a = s->v ? s->v[k] : (real)1;
			for (int i = 0; i < n; i++)
				row[i] += a * x[i];
		}
}

static void add_compressed(
	const struct neap__matrix *m, const struct neap__sample_rows *sample, int samples)
{
	for (const struct neap__sample_rows *s = sample; s < sample + samples; s++)
		for (int k = 0; k < s->count; k++) {
			real a = s->v ? s->v[k] : (real)1;
			uint32_t end = m->row_start[s->id[k] + 1];
			for (uint32_t e = m->row_start[s->id[k]]; e < end; e++)
				s->out[m->column[e]] += a * m->w[e];
		}
}

static void dot_compressed(
	const struct neap__matrix *m, const struct neap__sample_rows *sample, int samples)
{
	for (const struct neap__sample_rows *s = sample; s < sample + samples; s++)
		for (int k = 0; k < s->count; k++) {
			real sum = 0;
			uint32_t end = m->row_start[s->id[k] + 1];
			for (uint32_t e = m->row_start[s->id[k]]; e < end; e++)
				sum += m->w[e] * s->in[m->column[e]];
			s->out[k] += sum;
		}
}

static void grad_compressed(real *restrict g, const struct neap__matrix *m,
	const struct neap__sample_rows *sample, int samples)
{
	for (const struct neap__sample_rows *s = sample; s < sample + samples; s++)
		for (int k = 0; k < s->count; k++) {
			real a = s->v ? s->v[k] : (real)1;
			uint32_t end = m->row_start[s->id[k] + 1];
			for (uint32_t e = m->row_start[s->id[k]]; e < end; e++)
				g[e] += a * s->in[m->column[e]];
		}
}

static void gather(real *g, int columns, const struct neap__scatter *b)
{
	for (int k = 0; k < b->rows; k++) {
		real *restrict row = g + (size_t)b->row[k] * columns;
		for (uint32_t e = b->start[k]; e < b->start[k + 1]; e++) {
			const real *restrict x = b->x + (size_t)b->from[e] * b->stride;
			for (int i = 0; i < columns; i++)
				row[i] += x[i];
		}
	}
}

static void decay(real *restrict u, real beta, const real *restrict b, int n)
{
	for (int i = 0; i < n; i++)
		u[i] = beta * u[i] + b[i];
}

static void scale(real *x, real a, int n)
{
	for (int i = 0; i < n; i++)
		x[i] *= a;
}

static void sum(real *restrict y, const real *restrict x, int n)
{
	for (int i = 0; i < n; i++)
		y[i] += x[i];
}

/* Calls `found` with the place i and the mark m of every byte of a tile that is not 0. */
#define EACH_MARK(mark, base, found)                                                               \
	for (int word_ = 0; word_ < TILE; word_ += 8) {                                            \
		uint64_t bits_;                                                                    \
		memcpy(&bits_, (mark) + word_, 8);                                                 \
		while (bits_) {                                                                    \
			int byte_ = __builtin_ctzll(bits_) >> 3;                                   \
			int i = (base) + word_ + byte_;                                            \
			int m = (mark)[word_ + byte_];                                             \
			bits_ &= ~((uint64_t)0xFF << (8 * byte_));                                 \
			found;                                                                     \
		}                                                                                  \
	}

static int spikes(uint16_t *restrict id, const real *restrict u, int n, real theta)
{
	unsigned char mark[TILE];
	int count = 0, base = 0;

	for (; base + TILE <= n; base += TILE) {
		for (int i = 0; i < TILE; i++)
			mark[i] = u[base + i] > theta;
		EACH_MARK(mark, base, {
			(void)m;
			id[count++] = (uint16_t)i;
		})
	}
	for (; base < n; base++)
		if (u[base] > theta)
			id[count++] = (uint16_t)base;
	return count;
}

static inline int marks(real u, real theta, real cut)
{
	real x = u - theta;
	return (u > theta) | ((x <= cut) & (x >= -cut)) * NEAR;
}

static int support(uint16_t *restrict id, uint16_t *restrict near, real *restrict value, int *nnear,
	const real *restrict u, int n, real theta, real cut)
{
	unsigned char mark[TILE];
	int count = 0, inside = 0, base = 0;

	for (; base + TILE <= n; base += TILE) {
		for (int i = 0; i < TILE; i++)
			mark[i] = (unsigned char)marks(u[base + i], theta, cut);
		EACH_MARK(mark, base, {
			id[count] = (uint16_t)i;
			count += m & 1;
			near[inside] = (uint16_t)i;
			value[inside] = u[i];
			inside += m >> 1;
		})
	}
	for (; base < n; base++) {
		int m = marks(u[base], theta, cut);
		if (m & 1)
			id[count++] = (uint16_t)base;
		value[inside] = u[base];
		near[inside] = (uint16_t)base;
		inside += m >> 1;
	}
	*nnear = inside;
	return count;
}

static void fold(double *restrict total, real *restrict part, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		total[i] += (double)part[i];
	memset(part, 0, (size_t)n * sizeof *part);
}

enum { STRIP = 16 }; /* product_columns of this table */

static void product(
	const struct neap__strips *m, const struct neap__sample_rows *sample, int samples)
{
	for (const struct neap__sample_rows *s = sample; s < sample + samples; s++)
		for (int from = 0; from < m->columns; from += STRIP) {
			const real *row = m->w + (size_t)from * m->rows;
			int n = m->columns - from < STRIP ? m->columns - from : STRIP;
			for (int k = 0; k < m->rows; k++, row += STRIP)
				for (int i = 0; i < n; i++)
					s->out[from + i] += s->v[k] * row[i];
		}
}

static void outer(real *g, const struct neap__outer *o)
{
	int n = o->columns;

	for (int e = 0; e < o->count; e++)
		for (int k = o->from; k < o->to; k++) {
			real *restrict row = g + (size_t)k * n, x = o->x[e][k];
			const real *restrict y = o->y[e];
			for (int i = o->left; i < o->right; i++)
				row[i] += x * y[i];
		}
}

#define SLOPE(choice, name, meaning) [choice] = NEAP_R(neap__slope_##name),
#define INTEGRAL(choice, name, meaning) [choice] = NEAP_R(neap__integral_##name),

const struct neap__kernels neap__kernels_reference = {
	.name = "reference",
	.rows = {{add_dense, dot_dense, grad_dense},
		{add_compressed, dot_compressed, grad_compressed},
		{neap__filter_add, neap__filter_dot, neap__filter_grad}},
	.gather = gather,
	.product = product,
	.product_columns = STRIP,
	.outer = outer,
	.sigmoids = neap__sigmoids,
	.tanhs = neap__tanhs,
	.decay = decay,
	.scale = scale,
	.sum = sum,
	.spikes = spikes,
	.support = support,
	.slope = {NEAP_SURROGATE_TABLE(SLOPE)},
	.integral = {NEAP_SURROGATE_TABLE(INTEGRAL)},
	.fold = fold,
};
