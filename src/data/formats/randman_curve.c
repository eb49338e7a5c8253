/* SPDX-License-Identifier: Apache-2.0 */
/* randman_curve.c: sums and products of sines; compiled once for each kind of vectors. */
#include "data/formats/randman_curve.h"

enum { BLOCK = 128 /* units whose sums stay in the first cache; chosen */ };

/* Sums of one dimension for `n` units. */
static void add_terms(double *restrict sum, const struct neap__randman_terms *terms,
	const double *term, int n, double x)
{
	for (int u = 0; u < n; u++)
		sum[u] = 0;
	for (int k = 0; k < terms->terms; k++, term += 3 * terms->units) {
		const double *restrict amplitude = term;
		const double *restrict frequency = term + terms->units;
		const double *restrict phase = term + 2 * terms->units;
		for (int u = 0; u < n; u++)
			sum[u] += amplitude[u] * neap__roughly_sin(frequency[u] * x + phase[u]);
	}
}

void NEAP__RANDMAN_CURVE(double *value, const struct neap__randman_terms *terms, const double *x)
{
	double sum[BLOCK];
	for (int from = 0; from < terms->units; from += BLOCK) {
		int n = terms->units - from < BLOCK ? terms->units - from : BLOCK;
		for (int d = 0; d < terms->dim; d++) {
			size_t at = 3 * (size_t)terms->units * (size_t)terms->terms * (size_t)d;
			add_terms(sum, terms, terms->term + at + from, n, x[d]);
			for (int u = 0; u < n; u++)
				value[from + u] = d ? value[from + u] * sum[u] : sum[u];
		}
	}
}
