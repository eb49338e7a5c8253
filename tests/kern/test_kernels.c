/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every table that works on this machine against the reference: all sizes about
 * those of vectors, numbers that lie anywhere, lists of any length, samples alone and
 * together. Compiled in either precision.
 */
#include "test.h"

#include "base/philox.h"
#include "kern/tables.h"

#include <float.h>
#include <math.h>

static const int sizes[] = {
	1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 511, 516};
enum {
	SIZES = sizeof sizes / sizeof sizes[0],
	ROWS = 37,
	SHARES = 9,
	WIDEST = 516,
	PLACES = 6, /* of a filter; a place has as many taps as its number */
	TAPS = PLACES * (PLACES - 1) / 2,
	SHARED = 2 /* rows of a table of kernels */
};

static const real epsilon = sizeof(real) == sizeof(double) ? (real)DBL_EPSILON : (real)FLT_EPSILON;

static uint64_t drawn;

static double draw(void)
{
	return neap__random_uniform(5, NEAP__STREAM_TEST, 0, drawn++);
}

/* Numbers that begin `off` behind a line of the cache, with a guard behind them. */
struct numbers {
	real *all, *at;
	size_t count;
};

static struct numbers numbers(size_t count, int off)
{
	struct numbers x = {.count = count};
	x.all = aligned_alloc(64, (count + 32) * sizeof *x.all / 64 * 64 + 64);
	assert_non_null(x.all);
	x.at = x.all + off;
	for (size_t i = 0; i < count; i++)
		x.at[i] = (real)(draw() - 0.5);
	x.at[count] = 77;
	return x;
}

static void numbers_free(struct numbers *x)
{
	assert_true(x->at[x->count] == 77);
	free(x->all);
}

/* A product of up to SHARES samples, and the magnitudes behind each of its results. */
struct problem {
	struct neap__matrix m;
	struct neap__sample_rows share[SHARES];
	int shares, off, kind, terms; /* rows of a table; rows that a unit stands for, at most */
	struct numbers w, g, in, out, v;
	uint16_t id[SHARES][ROWS];
	struct neap__filter filter;
	struct neap__filter_unit unit[ROWS];
	uint32_t start[PLACES + 1];
	struct neap__filter_tap tap[TAPS];
};

/* Shares the rows; sums reach up to PLACES numbers beyond a row's. */
static void share_rows(struct problem *p, double factor)
{
	for (int i = 0; i < PLACES; i++)
		p->start[i + 1] = p->start[i] + (uint32_t)i;
	for (int i = 0; i < TAPS; i++)
		p->tap[i] =
			(struct neap__filter_tap){(uint16_t)(draw() * 5), (uint16_t)(draw() * 4)};
	for (int i = 0; i < ROWS; i++)
		p->unit[i] = (struct neap__filter_unit){(uint16_t)(draw() * PLACES),
			(uint16_t)(draw() * (ROWS - 5)), (uint16_t)(draw() * 3)};
	p->filter = (struct neap__filter){p->unit, p->start, p->tap, factor};
	p->m.filter = &p->filter;
	p->kind = SHARED;
	p->terms = PLACES;
}

enum lists { SAME, SOME, MANY, NONE, LISTS };

static void make(struct problem *p, int n, int shares, enum lists lists, int factors, int off)
{
	static const double shared[] = {1, 0.1, 0.8, 0};
	int wide = n + PLACES;
	*p = (struct problem){.m = {.columns = n}, .shares = shares, .off = off, .terms = 1};
	p->w = numbers((size_t)ROWS * n, off);
	p->g = numbers((size_t)ROWS * n, off);
	p->in = numbers((size_t)shares * wide, off);
	p->out = numbers((size_t)shares * (ROWS + n), off);
	p->v = numbers((size_t)shares * ROWS, off);
	p->m.w = p->w.at;
	for (int s = 0; s < shares; s++) {
		uint16_t *id = p->id[lists == SAME ? 0 : s];
		int count = 0;
		for (int i = 0; i < ROWS; i++)
			if (draw() < shared[lists])
				id[count++] = (uint16_t)i;
		p->share[s] = (struct neap__sample_rows){.id = id,
			.v = factors ? p->v.at + s * ROWS : NULL,
			.count = count,
			.in = p->in.at + s * wide,
			.out = p->out.at + s * (ROWS + n)};
	}
}

static void problem_free(struct problem *p)
{
	numbers_free(&p->w);
	numbers_free(&p->g);
	numbers_free(&p->in);
	numbers_free(&p->out);
	numbers_free(&p->v);
}

static struct numbers copy_of(const struct numbers *x)
{
	struct numbers y = numbers(x->count, (int)(x->at - x->all));
	memcpy(y.at, x->at, x->count * sizeof *y.at);
	return y;
}

static void put_back(struct numbers *x, const struct numbers *from)
{
	memcpy(x->at, from->at, x->count * sizeof *x->at);
}

/* The largest difference, in roundings of sums of so many terms below 1/4. */
static double distance(const struct numbers *a, const struct numbers *b, int terms)
{
	double worst = 0;
	for (size_t i = 0; i < a->count; i++) {
		assert_true(isfinite(a->at[i]));
		worst = fmax(worst, fabs((double)a->at[i] - (double)b->at[i]));
	}
	return worst / ((double)epsilon * (1 + terms / 4.0));
}

static int equal(const struct numbers *a, const struct numbers *b)
{
	return memcmp(a->at, b->at, a->count * sizeof *a->at) == 0;
}

typedef void checker(
	const struct neap__row_ops *rows, struct problem *p, const struct numbers *before);

/* What the reference makes of it, this table, and this table sample by sample. */
static void check_add(
	const struct neap__row_ops *rows, struct problem *p, const struct numbers *before)
{
	neap__kernels_reference.rows[p->kind].add(&p->m, p->share, p->shares);
	struct numbers expected = copy_of(&p->out);
	put_back(&p->out, before);
	rows->add(&p->m, p->share, p->shares);
	assert_true(distance(&p->out, &expected, p->terms * ROWS) < 2);
	assert_true(p->share->v || p->filter.factor == 0.25 || equal(&p->out, &expected));
	struct numbers together = copy_of(&p->out);
	put_back(&p->out, before);
	for (int s = 0; s < p->shares; s++)
		rows->add(&p->m, &p->share[s], 1);
	assert_true(equal(&p->out, &together));
	numbers_free(&expected);
	numbers_free(&together);
}

static void check_dot(
	const struct neap__row_ops *rows, struct problem *p, const struct numbers *before)
{
	neap__kernels_reference.rows[p->kind].dot(&p->m, p->share, p->shares);
	struct numbers expected = copy_of(&p->out);
	put_back(&p->out, before);
	rows->dot(&p->m, p->share, p->shares);
	assert_true(distance(&p->out, &expected, p->terms * p->m.columns) < 2);
	struct numbers together = copy_of(&p->out);
	put_back(&p->out, before);
	for (int s = 0; s < p->shares; s++)
		rows->dot(&p->m, &p->share[s], 1);
	assert_true(equal(&p->out, &together));
	numbers_free(&expected);
	numbers_free(&together);
}

static void check_grad(
	const struct neap__row_ops *rows, struct problem *p, const struct numbers *before)
{
	(void)before;
	struct numbers start = copy_of(&p->g);
	neap__kernels_reference.rows[p->kind].grad(p->g.at, &p->m, p->share, p->shares);
	struct numbers expected = copy_of(&p->g);
	put_back(&p->g, &start);
	rows->grad(p->g.at, &p->m, p->share, p->shares);
	assert_true(
		distance(&p->g, &expected, p->terms * p->shares * (p->terms > 1 ? ROWS : 1)) < 2);
	assert_true(p->share->v || p->filter.factor == 0.25 || equal(&p->g, &expected));
	struct numbers together = copy_of(&p->g);
	put_back(&p->g, &start);
	for (int s = 0; s < p->shares; s++)
		rows->grad(p->g.at, &p->m, &p->share[s], 1);
	assert_true(equal(&p->g, &together));
	numbers_free(&start);
	numbers_free(&expected);
	numbers_free(&together);
}

static void check_all(checker *check)
{
	for (int t = 0; t < NEAP__ISAS; t++) {
		const struct neap__kernels *k = table(t);
		if (!k)
			continue;
		assert_string_equal(k->name, neap__isa_name((enum neap__isa)t));
		for (int i = 0; i < SIZES; i++)
			for (int shares = 1; shares <= SHARES; shares++)
				for (int lists = 0; lists < LISTS; lists++)
					for (int factors = 0; factors < 2; factors++) {
						struct problem p;
						make(&p, sizes[i], shares, (enum lists)lists,
							factors, (i + shares) % 3);
						struct numbers before = copy_of(&p.out);
						check(&k->rows[0], &p, &before);
						share_rows(&p, shares % 2 ? 1 : 0.25);
						put_back(&p.out, &before);
						check(&k->rows[SHARED], &p, &before);
						numbers_free(&before);
						problem_free(&p);
					}
	}
}

static void add(void **arg)
{
	(void)arg;
	check_all(check_add);
}

/* More rows than a copied block has, by samples that use each of them often. */
static void add_blocks(void **arg)
{
	enum { TALL = 500, WIDTH = 141 };
	static uint16_t id[SHARES][TALL];
	struct numbers w = numbers((size_t)TALL * WIDTH, 1);
	struct numbers out = numbers((size_t)SHARES * WIDTH, 2), before = copy_of(&out);
	struct neap__matrix m = {.w = w.at, .columns = WIDTH};
	struct neap__sample_rows share[SHARES];

	(void)arg;
	for (int s = 0; s < SHARES; s++) {
		share[s] =
			(struct neap__sample_rows){.id = id[s], .out = out.at + (size_t)s * WIDTH};
		for (int i = 0; i < TALL - 3 * s; i++) /* one sample has none in a block */
			if (draw() < 0.8 && (s != 2 || i / 96 != 2))
				id[s][share[s].count++] = (uint16_t)i;
	}
	neap__kernels_reference.rows[0].add(&m, share, SHARES);
	struct numbers expected = copy_of(&out);
	for (int t = 0; t < NEAP__ISAS; t++) {
		if (!table(t))
			continue;
		put_back(&out, &before);
		table(t)->rows[0].add(&m, share, SHARES);
		assert_true(equal(&out, &expected));
	}
	numbers_free(&w);
	numbers_free(&out);
	numbers_free(&before);
	numbers_free(&expected);
}

static void dot(void **arg)
{
	(void)arg;
	check_all(check_dot);
}

static void grad(void **arg)
{
	(void)arg;
	check_all(check_grad);
}

static void check_product(
	const struct neap__kernels *k, int columns, int shares, int turned, int off)
{
	enum { DEEP = 2 * NEAP__OUTER_DEPTH + 3 };
	int rows = columns % 2 ? ROWS : DEEP, strip = k->product_columns;
	size_t strips = (size_t)(columns + strip - 1) / strip;
	struct numbers w = numbers((size_t)rows * columns, off);
	struct numbers v = numbers((size_t)shares * rows, off);
	struct numbers out = numbers((size_t)shares * columns, off), expected = copy_of(&out);
	struct numbers alone = copy_of(&out), packed = numbers(strips * rows * strip, 0);
	struct neap__matrix m = {.w = w.at, .columns = columns};
	struct neap__strips s = {packed.at, rows, columns};
	struct neap__sample_rows share[2 * SHARES];
	uint16_t id[DEEP];

	for (int i = 0; i < rows; i++)
		id[i] = (uint16_t)i;
	for (int i = 0; i < shares; i++)
		share[i] = (struct neap__sample_rows){.id = id,
			.v = v.at + (size_t)i * rows,
			.count = rows,
			.out = expected.at + (size_t)i * columns};
	k->rows[0].add(&m, share, shares);
	if (turned) {
		struct numbers other = numbers((size_t)rows * columns, off);
		for (int i = 0; i < rows; i++)
			for (int j = 0; j < columns; j++)
				other.at[(size_t)j * rows + i] = w.at[(size_t)i * columns + j];
		neap__pack_turned(packed.at, other.at, columns, rows, strip);
		numbers_free(&other);
	} else
		neap__pack(packed.at, w.at, rows, columns, strip);
	for (int i = 0; i < shares; i++)
		share[i].out = out.at + (size_t)i * columns;
	k->product(&s, share, shares);
	assert_true(equal(&out, &expected)); /* what lists of all rows make */
	for (int i = 0; i < shares; i++) {
		share[i].out = alone.at + (size_t)i * columns;
		k->product(&s, &share[i], 1);
	}
	assert_true(equal(&out, &alone));
	numbers_free(&w);
	numbers_free(&v);
	numbers_free(&out);
	numbers_free(&expected);
	numbers_free(&alone);
	numbers_free(&packed);
}

static void check_outer(const struct neap__kernels *k, int columns, int count, int off)
{
	enum { MOST = 600 };
	struct numbers x = numbers((size_t)count * ROWS, off);
	struct numbers y = numbers((size_t)count * columns, off);
	struct numbers g = numbers((size_t)ROWS * columns, off), by_term = copy_of(&g);
	struct numbers expected = copy_of(&g);
	struct numbers room = numbers(neap__outer_room(ROWS), 0);
	const real *xs[MOST], *ys[MOST];
	struct neap__outer o = {.columns = columns,
		.count = count,
		.to = ROWS,
		.right = columns,
		.x = xs,
		.y = ys,
		.room = room.at};

	for (int e = 0; e < count; e++) {
		xs[e] = x.at + (size_t)e * ROWS;
		ys[e] = y.at + (size_t)e * columns;
	}
	neap__kernels_reference.outer(expected.at, &o);
	for (int part = 0; part < 4; part++) { /* each element in one of them */
		o.from = part & 1 ? ROWS / 2 : 0;
		o.to = part & 1 ? ROWS : ROWS / 2;
		o.left = part & 2 ? columns / 3 : 0;
		o.right = part & 2 ? columns : columns / 3;
		k->outer(g.at, &o);
	}
	o.from = o.left = 0;
	for (int e = 0; e < count; e++) {
		o.count = 1;
		o.x = xs + e;
		o.y = ys + e;
		k->outer(by_term.at, &o);
	}
	assert_true(equal(&g, &by_term));
	assert_true(distance(&g, &expected, count) < 2);
	numbers_free(&x);
	numbers_free(&y);
	numbers_free(&g);
	numbers_free(&by_term);
	numbers_free(&expected);
	numbers_free(&room);
}

/* Rows that many rows are added to, some of them often. */
static void gather(void **arg)
{
	enum { LENDERS = 23, EVENTS = 200 };
	(void)arg;
	for (int t = 0; t < NEAP__ISAS; t++)
		for (int i = 0; i < SIZES && table(t); i++) {
			uint16_t row[ROWS];
			uint32_t start[ROWS + 1], from[EVENTS];
			int n = sizes[i], events = 0, rows = 0, off = i % 3;
			struct numbers x = numbers((size_t)LENDERS * (n + 5), off);
			struct numbers g = numbers((size_t)ROWS * n, off), before = copy_of(&g);
			real *strip = aligned_alloc(64, LENDERS * NEAP__STRIP_BYTES);
			struct neap__scatter b = {.row = row,
				.start = start,
				.from = from,
				.source_rows = LENDERS,
				.x = x.at,
				.stride = (size_t)n + 5,
				.strip = strip};
			for (int r = 0; r < ROWS; r++) {
				int count = draw() < 0.3 ? 0 : (int)(draw() * 9);
				if (count == 0)
					continue;
				start[rows] = (uint32_t)events;
				row[rows++] = (uint16_t)r;
				while (count-- && events < EVENTS)
					from[events++] = (uint32_t)(draw() * LENDERS);
			}
			start[rows] = (uint32_t)events;
			b.rows = rows;
			neap__kernels_reference.gather(g.at, n, &b);
			struct numbers expected = copy_of(&g);
			put_back(&g, &before);
			table(t)->gather(g.at, n, &b);
			assert_true(equal(&g, &expected) && !equal(&g, &before));
			free(strip);
			numbers_free(&x);
			numbers_free(&g);
			numbers_free(&before);
			numbers_free(&expected);
		}
}

/* A matrix in strips against rows of it, and a turned one against its columns; each sample alone.
 */
static void product(void **arg)
{
	(void)arg;
	for (int t = 0; t < NEAP__ISAS; t++)
		for (int i = 0; i < SIZES && table(t); i++)
			for (int shares = 1; shares <= 2 * SHARES; shares++)
				for (int turned = 0; turned < 2; turned++)
					check_product(table(t), sizes[i], shares, turned,
						(i + shares) % 3);
}

/* Many terms at once against one after the other, and against the reference. */
static void outer(void **arg)
{
	static const int counts[] = {1, 7, 255, 256, 257, 600};
	(void)arg;
	for (int t = 0; t < NEAP__ISAS; t++)
		for (int i = 0; i < SIZES && table(t); i++)
			for (int c = 0; c < 6; c++)
				check_outer(table(t), sizes[i], counts[c], i % 3);
}

/* Spikes, supports, decay: also exactly at the threshold and at the edge of the support. */
static void states(void **arg)
{
	const struct neap__kernels *r = &neap__kernels_reference;
	(void)arg;
	for (int t = 0; t < NEAP__ISAS; t++)
		for (int i = 0; i < SIZES && table(t); i++) {
			const struct neap__kernels *k = table(t);
			uint16_t id[2][WIDEST + NEAP__SPARE], near[2][WIDEST + NEAP__SPARE];
			real value[2][WIDEST + NEAP__SPARE];
			int n = sizes[i], nnear[2], off = i % 3;
			struct numbers u = numbers((size_t)n, off), b = numbers((size_t)n, off);
			struct numbers v = copy_of(&u);
			for (int j = 0; j < n; j++)
				if (draw() < 0.5)
					u.at[j] = v.at[j] = (real)((int)(draw() * 5) - 2) / 8;
			for (int from = 0; from <= 1; from++) {
				int m = n - from;
				int count = r->spikes(id[0], u.at + from, m, (real)0.125);
				assert_int_equal(
					k->spikes(id[1], u.at + from, m, (real)0.125), count);
				assert_memory_equal(id[0], id[1], (size_t)count * 2);
				assert_int_equal(r->support(id[0], near[0], value[0], &nnear[0],
							 u.at + from, m, (real)0.125, (real)0.125),
					count);
				assert_int_equal(k->support(id[1], near[1], value[1], &nnear[1],
							 u.at + from, m, (real)0.125, (real)0.125),
					count);
				assert_int_equal(nnear[0], nnear[1]);
				assert_memory_equal(id[0], id[1], (size_t)count * 2);
				assert_memory_equal(near[0], near[1], (size_t)nnear[0] * 2);
				assert_memory_equal(
					value[0], value[1], (size_t)nnear[0] * sizeof(real));
			}
			r->decay(u.at, (real)0.9, b.at, n);
			k->decay(v.at, (real)0.9, b.at, n);
			assert_true(equal(&u, &v));
			r->sum(u.at, b.at, n);
			k->sum(v.at, b.at, n);
			assert_true(equal(&u, &v));
			r->scale(u.at, (real)0.7, n);
			k->scale(v.at, (real)0.7, n);
			assert_true(equal(&u, &v));
			numbers_free(&u);
			numbers_free(&v);
			numbers_free(&b);
		}
}

/* Adding parts to sums in double, to the bit; the parts become zeros. */
static void folds(void **arg)
{
	(void)arg;
	for (int t = 0; t < NEAP__ISAS; t++)
		for (int i = 0; i < SIZES && table(t); i++) {
			double total[2][WIDEST];
			int n = sizes[i];
			struct numbers part = numbers((size_t)n, i % 3), same = copy_of(&part);
			for (int j = 0; j < n; j++)
				total[0][j] = total[1][j] = draw() * 1e6;
			neap__kernels_reference.fold(total[0], part.at, n);
			table(t)->fold(total[1], same.at, n);
			assert_memory_equal(total[0], total[1], (size_t)n * sizeof(double));
			assert_true(equal(&part, &same));
			for (int j = 0; j < n; j++)
				assert_true(part.at[j] == 0);
			numbers_free(&part);
			numbers_free(&same);
		}
}

/* Sigmoid and tanh keep the reference's bits, also far out. */
static void squashes(void **arg)
{
	const struct neap__kernels *r = &neap__kernels_reference;
	(void)arg;
	for (int t = 0; t < NEAP__ISAS; t++)
		for (int i = 0; i < SIZES && table(t); i++) {
			const struct neap__kernels *k = table(t);
			struct numbers x = numbers((size_t)sizes[i], i % 3), y;
			for (int j = 0; j < sizes[i]; j++)
				x.at[j] *= (real)(j % 5 ? 20 : 2000);
			y = copy_of(&x);
			r->sigmoids(x.at, sizes[i]);
			k->sigmoids(y.at, sizes[i]);
			assert_true(equal(&x, &y));
			r->scale(x.at, -3, sizes[i]);
			k->scale(y.at, -3, sizes[i]);
			r->tanhs(x.at, sizes[i]);
			k->tanhs(y.at, sizes[i]);
			assert_true(equal(&x, &y));
			numbers_free(&x);
			numbers_free(&y);
		}
}

/* The names, and what is refused. */
static void chosen(void **arg)
{
	const char *kept = getenv("NEAP_ISA");
	enum neap__isa isa;

	(void)arg;
	for (int i = 0; i < NEAP__ISAS; i++) {
		setenv("NEAP_ISA", neap__isa_name((enum neap__isa)i), 1);
		int works = neap__isa_works((enum neap__isa)i);
		assert_int_equal(neap__isa_choose(&isa), works ? 0 : NEAP_EUSAGE);
		if (works)
			assert_int_equal(isa, i);
		else
			assert_non_null(strstr(neap_detail(), "does not support it"));
	}
	setenv("NEAP_ISA", "sse9", 1);
	assert_int_equal(neap__isa_choose(&isa), NEAP_EUSAGE);
	assert_non_null(strstr(neap_detail(), "NEAP_ISA='sse9'"));
	setenv("NEAP_ISA", "", 1); /* as if it were not there */
	assert_int_equal(neap__isa_choose(&isa), 0);
	assert_true(neap__isa_works(isa));
	assert_true(isa == NEAP__ISAS - 1 || !neap__isa_works((enum neap__isa)(isa + 1)));
	if (kept)
		setenv("NEAP_ISA", kept, 1);
	else
		unsetenv("NEAP_ISA");
}

enum { STEP_WIDEST = 200, STEP_ROWS = 300 };

/* A step of a layer in one kernel: the sums, membranes and lists of the separate kernels. */
static void leak_steps_of(const struct neap__kernels *k, int n, int listed, int has_own)
{
	const struct neap__kernels *r = &neap__kernels_reference;
	static uint16_t in[STEP_ROWS], last[STEP_WIDEST], id[2][STEP_WIDEST + NEAP__SPARE],
		near[2][STEP_WIDEST + NEAP__SPARE];
	static real value[2][STEP_WIDEST + NEAP__SPARE];
	struct numbers w = numbers((size_t)(STEP_ROWS + n) * (size_t)n, 0);
	struct numbers bias = numbers((size_t)n, 1), u = numbers((size_t)n, 3);
	struct numbers sums = numbers((size_t)n, 0), other = numbers((size_t)n, 0);
	real beta = (real)draw(), theta = (real)(draw() - 0.5), cut = (real)(draw() / 2);
	int inputs = 0, spiked = 0, near_count = 0;

	for (int i = 0; i < STEP_ROWS; i++)
		if (draw() < 0.02)
			in[inputs++] = (uint16_t)i;
	for (int i = 0; i < n; i++)
		if (draw() < 0.1)
			last[spiked++] = (uint16_t)i;
	struct neap__leak_step step = {.n = n,
		.sources = 1 + has_own,
		.own = has_own ? 1 : -1,
		.source = {{w.at, in, inputs}, {w.at + (size_t)STEP_ROWS * n, last, spiked}},
		.bias = bias.at,
		.u = other.at,
		.beta = beta,
		.amount = theta,
		.theta = theta,
		.cut = cut,
		.spiked = last,
		.nspiked = spiked,
		.id = id[1],
		.near = listed ? near[1] : NULL,
		.value = value[1]};
	struct neap__matrix m = {.w = w.at, .columns = n};
	struct neap__sample_rows rows = {.id = in, .count = inputs, .out = sums.at};

	memcpy(other.at, u.at, (size_t)n * sizeof(real));
	memcpy(sums.at, bias.at, (size_t)n * sizeof(real));
	r->rows[0].add(&m, &rows, 1);
	m.w = step.source[1].w;
	rows = (struct neap__sample_rows){.id = last, .count = spiked, .out = sums.at};
	if (has_own)
		r->rows[0].add(&m, &rows, 1);
	r->decay(u.at, beta, sums.at, n);
	for (int i = 0; i < spiked; i++)
		u.at[last[i]] -= theta;
	int count = r->support(id[0], near[0], value[0], &near_count, u.at, n, theta, cut);
	assert_int_equal(k->leak_step(&step), count);
	assert_memory_equal(other.at, u.at, (size_t)n * sizeof(real));
	assert_memory_equal(id[1], id[0], (size_t)count * sizeof id[0][0]);
	if (listed) {
		assert_int_equal(step.nnear, near_count);
		assert_memory_equal(near[1], near[0], (size_t)near_count * sizeof near[0][0]);
		assert_memory_equal(value[1], value[0], (size_t)near_count * sizeof(real));
	}
	numbers_free(&w);
	numbers_free(&bias);
	numbers_free(&u);
	numbers_free(&sums);
	numbers_free(&other);
}

static void leak_steps(void **arg)
{
	(void)arg;
	for (int t = 0; t < NEAP__ISAS; t++)
		for (int n = 1; table(t) && n <= STEP_WIDEST; n += n < 70 ? 1 : 13)
			for (int kind = 0; kind < 4; kind++)
				leak_steps_of(table(t), n, kind & 1, kind >> 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(add),
		cmocka_unit_test(add_blocks),
		cmocka_unit_test(dot),
		cmocka_unit_test(grad),
		cmocka_unit_test(gather),
		cmocka_unit_test(product),
		cmocka_unit_test(outer),
		cmocka_unit_test(states),
		cmocka_unit_test(leak_steps),
		cmocka_unit_test(folds),
		cmocka_unit_test(squashes),
		cmocka_unit_test(chosen),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
