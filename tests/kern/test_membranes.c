/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Currents and the walk over many steps against bias, add, add, decay and the reset, one step
 * after the other: the same bits, for every table, reset and size about those of strips, of
 * all units or of those inside the support, rows at once or in parts, with room or without.
 * Compiled in either precision.
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
	struct neap__sample_rows share = {.id = e->id, .count = e->count, .out = u};
	neap__kernels_reference.rows[0].add(&m, &share, 1);
}

static void reset_units(real *u, const struct neap__events *e, enum neap__membrane_walk_reset reset)
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
	int near_count[STEPS];
};

/* Step by step; notes the spikes of each. */
static void expect(struct layer *layer, enum neap__membrane_walk_reset reset, struct expected *e)
{
	int n = layer->n, late = reset == NEAP__WALK_SUBTRACT || reset == NEAP__WALK_ZERO;
	real *u = e->u;

	memcpy(u, layer->u, (size_t)n * sizeof *u);
	for (int t = 0; t < STEPS; t++) {
		struct neap__events *before = &layer->spiked[t], *now = before + 1;
		real sums[WIDEST];
		memcpy(sums, layer->bias, (size_t)n * sizeof *sums);
		add(sums, layer->in, n, &layer->arriving[t]);
		if (layer->recurrent)
			add(sums, layer->own, n, before);
		neap__kernels_reference.decay(u, beta, sums, n);
		memcpy(e->all[t], u, (size_t)n * sizeof *u);
		if (late)
			reset_units(u, before, reset);
		now->id = layer->spikes[t + 1];
		now->count = neap__kernels_reference.support(layer->spikes[t + 1], e->near[t],
			e->value[t], &e->near_count[t], u, n, theta, cut);
		if (!late)
			reset_units(u, now, reset);
	}
}

static uint16_t *list(uint16_t *to, const struct neap__events *e, int first, int from, int end)
{
	for (int k = 0; k < e->count; k++)
		if (first + e->id[k] >= from && first + e->id[k] < end)
			*to++ = (uint16_t)(first + e->id[k] - from);
	return to;
}

enum { MOST_UNITS = 64 }; /* of a strip */

/* The currents of a strip, of rows [from, end) after those before. */
static void arrive(const struct neap__kernels *k, const struct layer *layer, const real *strip,
	int first, int from, int end, real *sums)
{
	uint16_t rows[STEPS * (BELOW + WIDEST)], counts[STEPS], *to = rows;
	int units = k->walk_units, left = layer->n - first;

	for (int t = 0; t < STEPS; t++) {
		uint16_t *begin = to;
		to = list(to, &layer->arriving[t], 0, from, end);
		if (layer->recurrent)
			to = list(to, &layer->spiked[t], BELOW, from, end);
		counts[t] = (uint16_t)(to - begin);
	}
	struct neap__arrivals a = {.steps = STEPS,
		.units = left < units ? left : units,
		.count = counts,
		.row = rows,
		.begin = from ? NULL : layer->bias + first,
		.sums = sums};
	k->currents(strip + (size_t)from * units, &a);
}

/* What the strips kept of each step, put together. */
static void check_near(const struct neap__kernels *k, struct neap__found *found, int strips,
	const int *near_count, const struct expected *e)
{
	real value[WIDEST + NEAP__SPARE];
	uint16_t near[WIDEST + NEAP__SPARE];

	for (int t = 0; t < STEPS; t++) {
		size_t count = (size_t)e->near_count[t];
		assert_int_equal(near_count[t], e->near_count[t]);
		assert_int_equal(k->collect(near, value, found, strips, t), e->near_count[t]);
		assert_memory_equal(near, e->near[t], count * sizeof *near);
		assert_memory_equal(value, e->value[t], count * sizeof *value);
	}
}

/* `part`: rows added at a time. `most`: of all membranes together; negative: they are whole. */
static void check(const struct neap__kernels *k, struct layer *layer,
	enum neap__membrane_walk_reset reset, int part, int most)
{
	static struct expected e;
	static real sums[STEPS * MOST_UNITS] __attribute__((aligned(64)));
	int n = layer->n, units = k->walk_units, strips = (n + units - 1) / units;
	int all = BELOW + layer->recurrent * n, listed = most >= 0, used = 0,
	    near_count[STEPS] = {0};
	size_t room = (size_t)STEPS * strips * units + NEAP__STRIP_SPARE;
	real *w = aligned_alloc(64, (size_t)all * strips * units * sizeof *w);
	real *out = malloc(room * sizeof *out);
	uint64_t *near = calloc((size_t)strips * STEPS, sizeof *near),
		 spiked[WIDEST / 64 + 2] = {0};
	struct neap__found *found = calloc((size_t)strips, sizeof *found);
	real u[WIDEST + 1];

	assert_true(w && out && near && found && units <= MOST_UNITS);
	expect(layer, reset, &e);
	neap__pack_part(w, layer->in, BELOW, n, units, 0, all);
	if (layer->recurrent)
		neap__pack_part(w, layer->own, n, n, units, BELOW, all);
	for (int i = 0; i < layer->spiked->count; i++)
		spiked[layer->spiked->id[i] / 64] |= (uint64_t)1 << layer->spiked->id[i] % 64;
	memcpy(u, layer->u, (size_t)n * sizeof *u);
	u[n] = 77;
	struct neap__membrane_walk walk = {
		.reset = reset, .beta = beta, .theta = theta, .to = hard_to, .cut = cut};
	for (int strip = 0; strip < strips && (!listed || used <= most); strip++) {
		int first = strip * units, left = n - first;
		struct neap__walker q = {.steps = STEPS,
			.units = left < units ? left : units,
			.sums = sums,
			.spiked = spiked[first / 64] >> first % 64,
			.u = u + first,
			.value = out + (listed ? used : first * STEPS),
			.near = listed ? near + (size_t)strip * STEPS : NULL,
			.near_count = near_count,
			.most = most - used};
		for (int from = 0; from < all; from += part)
			arrive(k, layer, w + (size_t)strip * all * units, first, from,
				from + part < all ? from + part : all, sums);
		found[strip] = (struct neap__found){q.near, q.value};
		used += k->walk(&walk, &q);
		for (int t = 0; t < STEPS && !listed; t++)
			assert_memory_equal(q.value + (size_t)t * units, e.all[t] + first,
				(size_t)q.units * sizeof(real));
	}
	int needed = 0;
	for (int t = 0; t < STEPS; t++)
		needed += e.near_count[t];
	assert_true(!listed || (used > most) == (needed > most));
	if (listed && used <= most)
		check_near(k, found, strips, near_count, &e);
	if (!listed || used <= most)
		assert_memory_equal(u, e.u, (size_t)n * sizeof *u);
	assert_true(u[n] == 77);
	free(w);
	free(out);
	free(near);
	free(found);
}

static void walks(void **arg)
{
	static struct layer layer;
	(void)arg;
	for (int t = 0; t < NEAP__ISAS; t++)
		for (size_t i = 0; i < sizeof sizes / sizeof *sizes && table(t); i++)
			for (int reset = NEAP__WALK_SUBTRACT; reset <= NEAP__WALK_SOFT; reset++)
				for (int recurrent = 0; recurrent < 2; recurrent++) {
					enum neap__membrane_walk_reset kind =
						(enum neap__membrane_walk_reset)reset;
					make(&layer, sizes[i], recurrent);
					int all = BELOW + recurrent * sizes[i];
					check(table(t), &layer, kind, all, -1);
					check(table(t), &layer, kind, 9, -1);
					check(table(t), &layer, kind, all, STEPS * sizes[i]);
					check(table(t), &layer, kind, 9, sizes[i]);
					check(table(t), &layer, kind, all, sizes[i] / 2);
				}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(walks)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
