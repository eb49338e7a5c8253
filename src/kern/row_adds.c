/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row_adds.c: rows of weights added to samples, and rows of gradients. Of spikes, TOGETHER rows of
 * the list are added at a time, so that the sums are read and written once for them, element by
 * element in the list's order; of few columns the sums stay in registers. Of numbers, one row
 * follows the other, its products fused with the sums.
 *
 * If the samples of a group use each row several times, every use would read the row from the
 * second-level cache, at half the rate of the first. Then a strip of columns of a block of rows is
 * copied into the first-level cache, and the sums of a sample in that strip stay in registers while
 * its rows of the block pass. The order of each sum is that of the list in both forms.
 */
#include "kern/row_blocks.h"
#include "kern/vector.h"

enum {
	TOGETHER = 8,
	NARROW = 3,			 /* whole vectors of a row whose sums stay in registers */
	STRIP = 256 / (int)sizeof(real), /* columns of a strip: sums in four to eight registers */
	NEAR_BYTES = 24 * 1024, /* of a copied block: leaves a fourth of a 32-KiB cache to sums */
	NEAR_ROWS = NEAR_BYTES / (STRIP * (int)sizeof(real)),
	/*
	 * Mean uses of a row from which on its copy pays. Measured with 16 and 32 samples (AVX2 and
	 * AVX-512): equal times at 3.5 uses with 512 columns, at 5 with 2048.
	 */
	NEAR_USES = 5
};

INLINE void add_ones(real *y, const struct neap__matrix *m, const uint16_t *id, int rows)
{
	const real *row[TOGETHER];
	int n = m->columns, i = 0;

	EACH_REGISTER(int r = 0; r < rows; r++)
	row[r] = m->w + (size_t)id[r] * n;
	for (; i + WIDE <= n; i += WIDE) {
		vec a = load(y + i);
		EACH_REGISTER(int r = 0; r < rows; r++)
		a += load(row[r] + i);
		store(y + i, a);
	}
	if (i == n)
		return;
	vec a = load_part(y + i, n - i);
	EACH_REGISTER(int r = 0; r < rows; r++)
	a += load_part(row[r] + i, n - i);
	store_part(y + i, a, n - i);
}

/* Rows of `full` vectors and a part: the sums stay in registers. */
INLINE void add_narrow(const struct neap__matrix *m, const struct neap__sample_rows *sample, int k,
	int to, int full)
{
	int n = m->columns, left = n - full * WIDE;
	real *y = sample->out;
	vec a[NARROW + 1];

	EACH_REGISTER(int i = 0; i < full; i++)
	a[i] = load(y + i * WIDE);
	a[full] = load_part(y + full * WIDE, left);
	for (; k < to; k++) {
		const real *row = m->w + (size_t)sample->id[k] * n;
		EACH_REGISTER(int i = 0; i < full; i++)
		a[i] += load(row + i * WIDE);
		a[full] += load_part(row + full * WIDE, left);
	}
	EACH_REGISTER(int i = 0; i < full; i++)
	store(y + i * WIDE, a[i]);
	store_part(y + full * WIDE, a[full], left);
}

static void add_spikes(
	const struct neap__matrix *m, const struct neap__sample_rows *sample, int k, int to)
{
	const uint16_t *id = sample->id;

	for (; k + TOGETHER <= to; k += TOGETHER)
		add_ones(sample->out, m, id + k, TOGETHER);
	if (to - k >= 4) {
		add_ones(sample->out, m, id + k, 4);
		k += 4;
	}
	if (to - k >= 2) {
		add_ones(sample->out, m, id + k, 2);
		k += 2;
	}
	if (to > k)
		add_ones(sample->out, m, id + k, 1);
}

INLINE void add_row(real *y, const real *row, real factor, int n)
{
	vec v = (vec){0} + factor;
	int i = 0;

	for (; i + WIDE <= n; i += WIDE)
		store(y + i, multiply_add(v, load(row + i), load(y + i)));
	if (i < n)
		store_part(y + i,
			multiply_add(v, load_part(row + i, n - i), load_part(y + i, n - i)), n - i);
}

static void add_list(
	const struct neap__matrix *m, const struct neap__sample_rows *sample, int k, int to)
{
	if (sample->v) {
		for (; k < to; k++)
			add_row(sample->out, m->w + (size_t)sample->id[k] * m->columns,
				sample->v[k], m->columns);
		return;
	}
	switch (m->columns / WIDE) {
	case 0:
		add_narrow(m, sample, k, to, 0);
		break;
	case 1:
		add_narrow(m, sample, k, to, 1);
		break;
	case 2:
		add_narrow(m, sample, k, to, 2);
		break;
	case NARROW:
		add_narrow(m, sample, k, to, NARROW);
		break;
	default:
		add_spikes(m, sample, k, to);
	}
}

/* y[STRIP] += rows id[count] of a copied block, whose first row is `first`. */
INLINE void add_near(real *y, const real *block, const uint16_t *id, int count, int first)
{
	vec a[STRIP / WIDE];

	EACH_REGISTER(int i = 0; i < STRIP / WIDE; i++)
	a[i] = load(y + i * WIDE);
	for (int k = 0; k < count; k++) {
		const real *row = block + (size_t)(id[k] - first) * STRIP;
		EACH_REGISTER(int i = 0; i < STRIP / WIDE; i++)
		a[i] += load(row + i * WIDE);
	}
	EACH_REGISTER(int i = 0; i < STRIP / WIDE; i++)
	store(y + i * WIDE, a[i]);
}

/* The columns from `column` on, which do not fill a strip, of rows id[count]. */
static void add_rest(
	real *y, const struct neap__matrix *m, const uint16_t *id, int count, int column)
{
	int n = m->columns;

	for (; column < n; column += WIDE) {
		vec a = load_some(y + column, 0, n - column);
		for (int k = 0; k < count; k++)
			a += load_some(m->w + (size_t)id[k] * n + column, 0, n - column);
		store_some(y + column, 0, n - column, a);
	}
}

/* Rows [first, first + rows): entries [at[s], to[s]) of the samples' lists. */
static void add_block(const struct neap__matrix *m, const struct neap__sample_rows *sample,
	int samples, const int *at, const int *to, int first, int rows)
{
	real block[NEAR_ROWS * STRIP] __attribute__((aligned(64)));
	const real *w = m->w + (size_t)first * m->columns;
	int column = 0;

	for (; column + STRIP <= m->columns; column += STRIP) {
		for (int r = 0; r < rows; r++)
			EACH_REGISTER(int i = 0; i < STRIP; i += WIDE)
		store(block + r * STRIP + i, load(w + (size_t)r * m->columns + column + i));
		for (int s = 0; s < samples; s++)
			if (to[s] > at[s])
				add_near(sample[s].out + column, block, sample[s].id + at[s],
					to[s] - at[s], first);
	}
	for (int s = 0; column < m->columns && s < samples; s++)
		add_rest(sample[s].out, m, sample[s].id + at[s], to[s] - at[s], column);
}

static void adds_near(
	const struct neap__matrix *m, const struct neap__sample_rows *sample, int samples, int span)
{
	int at[NEAP__BLOCK_SAMPLES] = {0}, to[NEAP__BLOCK_SAMPLES] = {0};

	for (int first = 0; first < span; first += NEAR_ROWS) {
		int rows = span - first < NEAR_ROWS ? span - first : NEAR_ROWS;
		for (int s = 0; s < samples; s++) {
			at[s] = to[s];
			while (to[s] < sample[s].count && sample[s].id[to[s]] < first + rows)
				to[s]++;
		}
		add_block(m, sample, samples, at, to, first, rows);
	}
}

/* The rows that samples use, from row 0 on, if they use each often enough to copy it; else 0. */
static int span_of_near(
	const struct neap__matrix *m, const struct neap__sample_rows *sample, int samples)
{
	int64_t uses = 0;
	int span = 0;

	if (m->columns < STRIP)
		return 0;
	for (const struct neap__sample_rows *s = sample; s < sample + samples; s++) {
		int end = s->count ? s->id[s->count - 1] + 1 : 0;
		if (s->v)
			return 0;
		span = end > span ? end : span;
		uses += s->count;
	}
	return uses >= (int64_t)NEAR_USES * span ? span : 0;
}

void NEAP_V(neap__adds)(
	const struct neap__matrix *m, const struct neap__sample_rows *sample, int samples)
{
	for (; samples > 0; samples -= NEAP__BLOCK_SAMPLES, sample += NEAP__BLOCK_SAMPLES) {
		int count = samples < NEAP__BLOCK_SAMPLES ? samples : NEAP__BLOCK_SAMPLES;
		int span = span_of_near(m, sample, count);
		if (span)
			adds_near(m, sample, count, span);
		else
			neap__blocks(m, sample, count, add_list);
	}
}

void NEAP_V(neap__grads)(
	real *g, const struct neap__matrix *m, const struct neap__sample_rows *sample, int samples)
{
	int n = m->columns;

	for (const struct neap__sample_rows *s = sample; s < sample + samples; s++)
		for (int k = 0; k < s->count; k++)
			if (s->v)
				add_row(g + (size_t)s->id[k] * n, s->in, s->v[k], n);
			else
				NEAP_V(neap__sum)(g + (size_t)s->id[k] * n, s->in, n);
}
