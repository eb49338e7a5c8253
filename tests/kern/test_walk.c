/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk over many steps against decay, add, add and the reset, one step after the
 * other: the same bits, for every table, reset and size about those of strips, of all units
 * or of those inside the support. Compiled in either precision.
 */
#include "test.h"

#include "base/philox.h"
#include "kern/tables.h"

enum { WIDEST = 261, BELOW = 23, STEPS = 7 };
static const int sizes[] = {1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 128, 129, 256, 261};
static const real beta = (real)0.9, theta = (real)0.25, hard_to = (real)-0.125, cut = (real)0.2;

struct layer {
	int n, recurrent;
	real in[BELOW * WIDEST], own[WIDEST * WIDEST], bias[WIDEST], u[WIDEST];
	uint16_t below[STEPS][BELOW], spikes[STEPS + 1][WIDEST];
	struct neap__events arriving[STEPS], spiked[STEPS + 1];
};

static uint64_t drawn;

static double draw(void)
{
	return neap__random_uniform(7, NEAP__STREAM_TEST, 0, drawn++);
}

static void fill(real *x, int count, double size)
{
	for (int i = 0; i < count; i++)
		x[i] = (real)(size * (draw() - 0.5));
}

/* Some of the units, ascending. */
static struct neap__events some(uint16_t *id, int units)
{
	int count = 0;
	for (int i = 0; i < units; i++)
		if (draw() < 0.3)
			id[count++] = (uint16_t)i;
	return (struct neap__events){id, count};
}

static void make(struct layer *layer, int n, int recurrent)
{
	layer->n = n;
	layer->recurrent = recurrent;
	fill(layer->in, BELOW * n, 0.6);
	fill(layer->own, n * n, 0.1);
	fill(layer->bias, n, 0.1);
	fill(layer->u, n, 1);
	for (int t = 0; t < STEPS; t++)
		layer->arriving[t] = some(layer->below[t], BELOW);
	layer->spiked[0] = some(layer->spikes[0], n);
}

static void add(real *u, const real *w, int n, const struct neap__events *e)
{
	struct neap__matrix m = {.w = w, .columns = n};
	struct neap__share share = {.id = e->id, .count = e->count, .out = u};
	neap__kernels_reference.rows[0].add(&m, &share, 1);
}

static void reset_units(real *u, const struct neap__events *e, enum neap__walk_reset reset)
{
	for (int k = 0; k < e->count; k++) {
		real *x = &u[e->id[k]];
		*x = reset == NEAP__WALK_ZERO ? 0 : reset == NEAP__WALK_HARD ? hard_to : *x - theta;
	}
}

/* What a step leaves behind, by one step after the other. */
struct expected {
	real u[WIDEST], all[STEPS][WIDEST], value[STEPS][WIDEST + NEAP__SPARE];
	uint16_t near[STEPS][WIDEST + NEAP__SPARE];
	int kept[STEPS];
};

/* Step by step; notes the spikes of each. */
static void expect(struct layer *layer, enum neap__walk_reset reset, struct expected *e)
{
	int n = layer->n, late = reset == NEAP__WALK_SUBTRACT || reset == NEAP__WALK_ZERO;
	real *u = e->u;

	memcpy(u, layer->u, (size_t)n * sizeof *u);
	for (int t = 0; t < STEPS; t++) {
		struct neap__events *before = &layer->spiked[t], *now = before + 1;
		neap__kernels_reference.decay(u, beta, layer->bias, n);
		add(u, layer->in, n, &layer->arriving[t]);
		if (layer->recurrent)
			add(u, layer->own, n, before);
		memcpy(e->all[t], u, (size_t)n * sizeof *u);
		if (late)
			reset_units(u, before, reset);
		now->id = layer->spikes[t + 1];
		now->count = neap__kernels_reference.support(layer->spikes[t + 1], e->near[t],
			e->value[t], &e->kept[t], u, n, theta, cut);
		if (!late)
			reset_units(u, now, reset);
	}
}

static uint32_t *list(uint32_t *to, const struct neap__events *e, int first, int units)
{
	for (int k = 0; k < e->count; k++)
		*to++ = (uint32_t)((first + e->id[k]) * units) * (uint32_t)sizeof(real);
	return to;
}

static void check(const struct neap__kernels *k, struct layer *layer, enum neap__walk_reset reset,
	int listed, int most)
{
	static struct expected e;
	int n = layer->n, units = k->walk_units, strips = (n + units - 1) / units;
	int all = BELOW + layer->recurrent * n, kept[STEPS] = {0}, counts[STEPS];
	size_t row = (size_t)strips * (size_t)units, stride = row + 2 * NEAP__STRIP_SPARE;
	uint32_t *rows = calloc((size_t)all * STEPS + 1, sizeof *rows), *to = rows;
	real *w = aligned_alloc(64, (size_t)all * row * sizeof *w);
	real *out = aligned_alloc(64, STEPS * stride * sizeof *out);
	uint16_t *near = calloc(STEPS * stride, sizeof(real));
	real u[WIDEST + 1];
	uint64_t spiked[WIDEST / 64 + 2] = {0};

	assert_true(rows && w && out && near);
	expect(layer, reset, &e);
	neap__pack_part(w, layer->in, BELOW, n, units, 0, all);
	if (layer->recurrent)
		neap__pack_part(w, layer->own, n, n, units, BELOW, all);
	for (int t = 0; t < STEPS; t++) {
		uint32_t *from = to;
		to = list(to, &layer->arriving[t], 0, units);
		if (layer->recurrent)
			to = list(to, &layer->spiked[t], BELOW, units);
		counts[t] = (int)(to - from);
	}
	for (int i = 0; i < layer->spiked->count; i++)
		spiked[layer->spiked->id[i] / 64] |= (uint64_t)1 << layer->spiked->id[i] % 64;
	memcpy(u, layer->u, (size_t)n * sizeof *u);
	u[n] = 77;
	struct neap__walk walk = {.n = n,
		.stride = (int)stride,
		.reset = reset,
		.beta = beta,
		.theta = theta,
		.to = hard_to,
		.cut = cut,
		.bias = layer->bias,
		.w = w,
		.rows = all,
		.most = most};
	struct neap__walker q = {.steps = STEPS,
		.count = counts,
		.from = rows,
		.spiked = spiked,
		.u = u,
		.value = out,
		.near = listed ? near : NULL,
		.kept = kept};
	for (int strip = 0; strip < strips; strip++)
		k->walk(&walk, &q, strip);
	for (int t = 0; t < STEPS && !listed; t++)
		assert_memory_equal(out + (size_t)t * stride, e.all[t], (size_t)n * sizeof(real));
	for (int t = 0; t < STEPS && listed; t++) {
		const char *ids = (const char *)near + (size_t)t * stride * sizeof(real);
		size_t count = (size_t)(kept[t] < most ? kept[t] : most);
		assert_int_equal(kept[t], e.kept[t]);
		assert_memory_equal(ids, e.near[t], count * sizeof(uint16_t));
		assert_memory_equal(out + (size_t)t * stride, e.value[t], count * sizeof(real));
	}
	assert_memory_equal(u, e.u, (size_t)n * sizeof *u);
	assert_true(u[n] == 77);
	free(rows);
	free(w);
	free(out);
	free(near);
}

static void walks(void **arg)
{
	static struct layer layer;
	(void)arg;
	for (int t = 0; t < TABLES; t++)
		for (size_t i = 0; i < sizeof sizes / sizeof *sizes && table(t); i++)
			for (int reset = NEAP__WALK_SUBTRACT; reset <= NEAP__WALK_SOFT; reset++)
				for (int recurrent = 0; recurrent < 2; recurrent++) {
					enum neap__walk_reset kind = (enum neap__walk_reset)reset;
					make(&layer, sizes[i], recurrent);
					check(table(t), &layer, kind, 0, 0);
					check(table(t), &layer, kind, 1, sizes[i]);
					check(table(t), &layer, kind, 1, sizes[i] / 8);
				}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(walks)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
