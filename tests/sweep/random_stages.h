/* SPDX-License-Identifier: Apache-2.0 */
/* random_stages.h: chains of stages (stagemodel.h) drawn at random. */
#ifndef NEAP_TEST_RANDOM_STAGES_H
#define NEAP_TEST_RANDOM_STAGES_H

#include "stagemodel.h"

struct random {
	uint64_t seed, n;
};

static inline int64_t below(struct random *r, int64_t n)
{
	return (int64_t)neap__random_below(r->seed, NEAP__STREAM_TEST, 7, r->n++, (uint64_t)n);
}

static inline int chance(struct random *r, int percent)
{
	return below(r, 100) < percent;
}

/* Widths up to `most` doubles; odd ones, so that rounding shows. */
static inline void random_model(struct stagemodel *m, struct random *r, int64_t n, int64_t most)
{
	*m = (struct stagemodel){.n = n};
	m->stages.flags = chance(r, 60) ? 3 : (uint32_t)below(r, 4);
	for (int64_t i = 0; i <= n; i++) {
		m->width[i] = chance(r, 4) ? 0 : 1 + below(r, most);
		m->backward[i] = (double)below(r, 6);
		m->backward_tmp[i] = chance(r, 30) ? (uint64_t)(8 * below(r, most)) : 0;
	}
	for (int64_t i = 0; i < n; i++) {
		m->w[i] = (double)below(r, 1000) / 800 - 0.6;
		m->junk[i] = chance(r, 60) ? below(r, 2 * most) : 0;
		m->advance[i] = (double)(1 + below(r, 5));
		m->record[i] = m->advance[i] + (double)below(r, 2);
		m->advance_tmp[i] = chance(r, 30) ? (uint64_t)(8 * below(r, most)) : 0;
		m->record_tmp[i] = chance(r, 30) ? (uint64_t)(8 * below(r, most)) : 0;
	}
	if (chance(r, 20)) {
		int64_t widest = 1;
		for (int64_t i = 0; i <= n; i++)
			widest = m->width[i] > widest ? m->width[i] : widest;
		m->adjoint_bytes = (size_t)(widest + below(r, most)) * 8;
	}
	stagemodel_wire(m);
}

#endif
