/* SPDX-License-Identifier: Apache-2.0 */
/* filter_reference.c: the specification of products with shared weights (filter_reference.h). */
#include "kern/filter_reference.h"

/* The taps [*from, to) of a unit; returns `to`. */
static uint32_t taps_of(const struct neap__filter *w, const struct neap__filter_unit *u,
	const struct neap__filter_tap **from)
{
	*from = w->tap + w->start[u->place];
	return w->start[u->place + 1] - w->start[u->place];
}

/* What the k-th output of a sample counts. */
static real amount(const struct neap__filter *w, const struct neap__sample_rows *s, int k)
{
	return (real)w->factor * (s->v ? s->v[k] : (real)1);
}

void neap__filter_add(
	const struct neap__matrix *m, const struct neap__sample_rows *sample, int samples)
{
	const struct neap__filter *w = m->filter;
	const struct neap__filter_tap *tap;
	int n = m->columns;

	for (const struct neap__sample_rows *s = sample; s < sample + samples; s++)
		for (int k = 0; k < s->count; k++) {
			const struct neap__filter_unit *u = &w->unit[s->id[k]];
			uint32_t taps = taps_of(w, u, &tap);
			real a = amount(w, s, k);
			for (uint32_t e = 0; e < taps; e++) {
				const real *row = m->w + (size_t)(u->row + tap[e].row) * n;
				real *restrict y = s->out + u->at + tap[e].at;
				for (int i = 0; i < n; i++)
					y[i] += a * row[i];
			}
		}
}

void neap__filter_dot(
	const struct neap__matrix *m, const struct neap__sample_rows *sample, int samples)
{
	const struct neap__filter *w = m->filter;
	const struct neap__filter_tap *tap;
	int n = m->columns;

	for (const struct neap__sample_rows *s = sample; s < sample + samples; s++)
		for (int k = 0; k < s->count; k++) {
			const struct neap__filter_unit *u = &w->unit[s->id[k]];
			uint32_t taps = taps_of(w, u, &tap);
			real sum = 0;
			for (uint32_t e = 0; e < taps; e++) {
				const real *row = m->w + (size_t)(u->row + tap[e].row) * n;
				const real *x = s->in + u->at + tap[e].at;
				for (int i = 0; i < n; i++)
					sum += row[i] * x[i];
			}
			s->out[k] += (real)w->factor * sum;
		}
}

void neap__filter_grad(
	real *g, const struct neap__matrix *m, const struct neap__sample_rows *sample, int samples)
{
	const struct neap__filter *w = m->filter;
	const struct neap__filter_tap *tap;
	int n = m->columns;

	for (const struct neap__sample_rows *s = sample; s < sample + samples; s++)
		for (int k = 0; k < s->count; k++) {
			const struct neap__filter_unit *u = &w->unit[s->id[k]];
			uint32_t taps = taps_of(w, u, &tap);
			real a = amount(w, s, k);
			for (uint32_t e = 0; e < taps; e++) {
				real *restrict row = g + (size_t)(u->row + tap[e].row) * n;
				const real *x = s->in + u->at + tap[e].at;
				for (int i = 0; i < n; i++)
					row[i] += a * x[i];
			}
		}
}
