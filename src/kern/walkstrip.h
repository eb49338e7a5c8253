/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walkstrip.h: the body of walk.c, included once for each width of vectors. VECTOR: bytes
 * of one; TARGET: the attribute of functions that use it; WALK(name): their names. Sums
 * and products are the same at every width, element by element, and never fused.
 */
typedef real WALK(vec) __attribute__((vector_size(VECTOR)));
typedef walk_bits WALK(mask) __attribute__((vector_size(VECTOR)));

struct WALK(strip) {
	WALK(vec) v[LANES];
};

/* Adds the rows of the list, in its order. */
TARGET static inline void WALK(gather)(
	struct WALK(strip) * u, const real *w, const struct neap__events *e)
{
	const WALK(vec) *rows = (const WALK(vec) *)(const void *)w;
	WALK(vec) a = u->v[0], b = u->v[1], c = u->v[2], d = u->v[3];
	WALK(vec) p = u->v[4], q = u->v[5], r = u->v[6], s = u->v[7];
	for (int k = 0; k < e->count; k++) {
		const WALK(vec) *row = rows + (size_t)e->id[k] * LANES;
		a += row[0];
		b += row[1];
		c += row[2];
		d += row[3];
		p += row[4];
		q += row[5];
		r += row[6];
		s += row[7];
	}
	u->v[0] = a;
	u->v[1] = b;
	u->v[2] = c;
	u->v[3] = d;
	u->v[4] = p;
	u->v[5] = q;
	u->v[6] = r;
	u->v[7] = s;
}

/* What a unit that spiked becomes. */
TARGET static inline void WALK(reset)(
	struct WALK(strip) * u, const WALK(mask) * m, const struct neap__walk *w)
{
	int fixed = w->reset == NEAP__WALK_ZERO || w->reset == NEAP__WALK_HARD;
	WALK(vec) to = (WALK(vec)){0} + (w->reset == NEAP__WALK_HARD ? w->to : 0);
	for (int i = 0; i < LANES; i++) {
		WALK(mask) yes = (WALK(mask))(fixed ? to : u->v[i] - w->theta);
		u->v[i] = (WALK(vec))((m[i] & yes) | (~m[i] & (WALK(mask))u->v[i]));
	}
}

TARGET static void WALK(walk)(const struct neap__walk *w, int strip)
{
	enum { UNITS = LANES * VECTOR / (int)sizeof(real) };
	int from = strip * UNITS, n = w->n - from < UNITS ? w->n - from : UNITS;
	int late = w->reset == NEAP__WALK_ZERO || w->reset == NEAP__WALK_SUBTRACT;
	const real *in = w->in + (size_t)strip * w->in_rows * UNITS;
	const real *own = w->own ? w->own + (size_t)strip * w->n * UNITS : NULL;
	real padded[UNITS] = {0};
	struct WALK(strip) u, bias;
	WALK(mask) m[LANES];

	memcpy(padded, w->bias + from, (size_t)n * sizeof(real));
	memcpy(&bias, padded, sizeof bias);
	memset(padded, 0, sizeof padded);
	for (int k = 0; late && k < w->spiked->count; k++)
		if (w->spiked->id[k] >= from && w->spiked->id[k] < from + UNITS)
			padded[w->spiked->id[k] - from] = 1;
	memcpy(&u, padded, sizeof u);
	for (int i = 0; i < LANES; i++)
		m[i] = (WALK(mask))(u.v[i] > (WALK(vec)){0});
	memcpy(padded, w->u + from, (size_t)n * sizeof(real));
	memset(padded + n, 0, (size_t)(UNITS - n) * sizeof(real));
	memcpy(&u, padded, sizeof u);
	for (int t = 0; t < w->steps; t++) {
		for (int i = 0; i < LANES; i++)
			u.v[i] = w->beta * u.v[i] + bias.v[i];
		WALK(gather)(&u, in, &w->arriving[t]);
		if (own)
			WALK(gather)(&u, own, &w->spiked[t]);
		memcpy(w->out + (size_t)t * w->stride + from, &u, sizeof u);
		if (late)
			WALK(reset)(&u, m, w);
		for (int i = 0; i < LANES; i++)
			m[i] = (WALK(mask))(u.v[i] > (WALK(vec)){0} + w->theta);
		if (!late)
			WALK(reset)(&u, m, w);
	}
	memcpy(padded, &u, sizeof u);
	memcpy(w->u + from, padded, (size_t)n * sizeof(real));
}

#undef VECTOR
#undef TARGET
#undef WALK
