/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leak_step.c: a step of one sample through a layer whose membranes leak, with all its products.
 * The sums of a strip of units stay in registers from the bias to the threshold: rows are added in
 * the order of their lists, the membrane decays, and is compared. Every sum is made as the separate
 * kernels make it (row_adds.c, state.c) and is never fused, so that the bits are the same. The
 * separate kernels write and read sums and membranes again, and wait for membranes of which one
 * number has just been written by itself. Strips of twice as many vectors are slower.
 */
#include "kern/lanes.h"

enum { V = 8, /* vectors of a strip */ FEW = 4, UNITS = V * WIDE, WORDS = 65536 / 64 };

/* What the strips of a step share. */
struct strips {
	int count, near;      /* spikes, units inside the support */
	uint64_t bits[WORDS]; /* units that spiked in the step before */
};

INLINE void mark(struct strips *to, unsigned unit)
{
	to->bits[unit / 64] |= (uint64_t)1 << unit % 64;
}

/* a += the rows of a source; marks: the rows are of units that spiked in the step before. */
INLINE void add_rows(vec *a, const struct neap__step_rows *from, struct strips *to, int n,
	int column, int vectors, int left, int marks)
{
	const real *w = from->w + column;

	for (const uint16_t *id = from->id, *end = id + from->count; id < end; id++) {
		const real *row = w + (size_t)*id * (size_t)n;
		EACH_REGISTER(int i = 0; i < vectors; i++)
		a[i] += left == WIDE ? load(row + i * WIDE) : load_part(row, left);
		if (marks)
			mark(to, *id);
	}
}

/*
 * `vectors` vectors of units, the last of which has `left` units; begins: the first of the strips;
 * listed: with the support.
 */
INLINE void strip(const struct neap__leak_step *s, struct strips *to, int column, int vectors,
	int left, int begins, int listed)
{
	int whole = left == WIDE;
	uint64_t exist = ((uint64_t)1 << left) - 1, above[V];
	vec beta = spread(s->beta), theta = spread(s->theta), amount = spread(s->amount);
	vec cut = spread(s->cut), a[V];
	real *u = s->u + column;
	unsigned some = 0; /* vectors with a unit that spikes */
	int count = to->count, inside = to->near;

	EACH_REGISTER(int i = 0; i < vectors; i++)
	a[i] = whole ? load(s->bias + column + i * WIDE) : load_part(s->bias + column, left);
	for (int k = 0; k < s->sources; k++)
		if (begins && k == s->own)
			add_rows(a, &s->source[k], to, s->n, column, vectors, left, 1);
		else
			add_rows(a, &s->source[k], to, s->n, column, vectors, left, 0);
	EACH_REGISTER(int i = 0; i < vectors; i++)
	{
		unsigned unit = (unsigned)(column + i * WIDE);
		vec x = beta * (whole ? load(u + i * WIDE) : load_part(u, left)) + a[i];
		x = subtract_at(x, amount, to->bits[unit / 64] >> unit % 64);
		if (whole)
			store(u + i * WIDE, x);
		else
			store_part(u, x, left);
		above[i] = bits_above(x, theta);
		if (!whole)
			above[i] &= exist;
		some |= (unsigned)(above[i] != 0) << i;
		if (listed) {
			uint64_t near = bits_of(absolute(x - theta) <= cut);
			if (!whole)
				near &= exist;
			list_lanes(s->near + inside, near, (int)unit);
			inside += keep_lanes(s->value + inside, x, near);
		}
	}
	for (; some; some &= some - 1) {
		int i = __builtin_ctz(some);
		count += list_lanes(s->id + count, above[i], column + i * WIDE);
	}
	to->count = count;
	to->near = inside;
}

INLINE int step(struct neap__leak_step *s, int listed)
{
	struct strips to;
	int column = 0;

	to.count = to.near = 0;
	for (int i = 0; i < s->n; i += 64)
		to.bits[i / 64] = 0;
	for (int k = 0; k < s->nspiked && (s->own < 0 || s->n < UNITS); k++)
		mark(&to, s->spiked[k]);
	if (s->n >= UNITS) {
		strip(s, &to, 0, V, WIDE, 1, listed);
		column = UNITS;
	}
	for (; column + UNITS <= s->n; column += UNITS)
		strip(s, &to, column, V, WIDE, 0, listed);
	for (; column + FEW * WIDE <= s->n; column += FEW * WIDE)
		strip(s, &to, column, FEW, WIDE, 0, listed);
	for (; column + WIDE <= s->n; column += WIDE)
		strip(s, &to, column, 1, WIDE, 0, listed);
	if (column < s->n)
		strip(s, &to, column, 1, s->n - column, 0, listed);
	s->nnear = to.near;
	return to.count;
}

int NEAP_V(neap__leak_step)(struct neap__leak_step *s)
{
	return s->near ? step(s, 1) : step(s, 0);
}
