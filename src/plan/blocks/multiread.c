/* SPDX-License-Identifier: Apache-2.0 */
/* multiread.c: the recurrences, with rising c and l. */
#include "plan/blocks/multiread.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"

#define STEPS_MOST 4096 /* chosen: the time to fill the splits is quadratic in the steps */
#define SLOTS_MOST 10	/* chosen: the time to fill grows with them; more stay unused */

/* m_c. */
static int64_t leaf_of(const struct neap__multiread *m, const struct neap_chain *chain,
	int64_t pool, int64_t free_slots)
{
	int64_t bytes = pool - (m->slots - free_slots) * (int64_t)chain->state;
	if (bytes < (int64_t)chain->tape)
		return 0;
	return chain->tape ? bytes / (int64_t)chain->tape : m->steps;
}

static int reserve(struct neap__multiread *m, int64_t cells)
{
	if (cells <= m->room)
		return 0;
	size_t n = (size_t)cells;
	free(m->stored);
	free(m->cost);
	m->room = 0;
	m->stored = calloc(2 * n, sizeof *m->stored);
	m->cost = calloc(2 * n, sizeof *m->cost);
	if (!m->stored || !m->cost)
		return neap__fail(-ENOMEM, "plan: out of memory");
	m->room = cells;
	return 0;
}

/* V0 and V1 of l steps with c slots, from those of shorter parts and of fewer slots. */
static void fill(struct neap__multiread *m, int64_t l, int64_t c, double f, double price)
{
	int64_t w = m->steps + 1;
	double *v0 = m->cost + c * w, *v1 = m->cost + m->room + c * w;
	const double *less = c > 0 ? v0 - w : NULL;
	struct neap__multiread_row kept = {0, NEAP__MULTIREAD_KEEP},
				   again = {0, NEAP__MULTIREAD_AGAIN};
	struct neap__multiread_row fresh = kept;
	double keep = INFINITY, reread = INFINITY, fresh_cost = INFINITY;
	for (int64_t y = 1; y < l; y++) {
		double go = (double)y * f;
		if (less && go + less[l - y] + v1[y] < keep) {
			keep = go + less[l - y] + v1[y];
			kept.split = (int32_t)y;
		}
		if (less && go + less[l - y] + v0[y] < fresh_cost) {
			fresh_cost = go + less[l - y] + v0[y];
			fresh.split = (int32_t)y;
		}
		if (go + v0[l - y] + v1[y] < reread) {
			reread = go + v0[l - y] + v1[y];
			again.split = (int32_t)y;
		}
	}
	v1[l] = keep <= reread + price ? keep : reread + price;
	m->stored[c * w + l] = keep <= reread + price ? kept : again;
	v0[l] = fresh_cost;
	if (v1[l] + price < fresh_cost) {
		v0[l] = v1[l] + price;
		fresh = (struct neap__multiread_row){1, NEAP__MULTIREAD_WRITE};
	}
	m->fresh[c * w + l] = fresh;
}

int neap__multiread_make(struct neap__multiread *m, const struct neap_chain *chain, int64_t steps,
	int64_t pool, double price)
{
	int64_t state = (int64_t)chain->state, tape = (int64_t)chain->tape;
	if (pool < tape || steps > STEPS_MOST)
		return NEAP_EINFEASIBLE;
	m->steps = steps;
	m->slots = (pool - tape) / state;
	if (m->slots > SLOTS_MOST)
		m->slots = SLOTS_MOST;
	if (m->slots > steps)
		m->slots = steps;
	int64_t w = steps + 1;
	NEAP_TRY(reserve(m, (m->slots + 1) * w));
	m->fresh = m->stored + m->room;
	/* V0(l,c) needs V0 and V1 of shorter parts with c slots, and V0 with c - 1. */
	for (int64_t c = 0; c <= m->slots; c++) {
		int64_t leaf = leaf_of(m, chain, pool, c);
		for (int64_t l = 0; l <= steps; l++) {
			if (l > leaf) {
				fill(m, l, c, chain->advance, price);
				continue;
			}
			m->cost[c * w + l] = m->cost[m->room + c * w + l] = 0;
			m->stored[c * w + l] = m->fresh[c * w + l] =
				(struct neap__multiread_row){0, NEAP__MULTIREAD_KEEP};
		}
	}
	return m->cost[m->room + m->slots * w + steps] < INFINITY ? 0 : NEAP_EINFEASIBLE;
}

void neap__multiread_free(struct neap__multiread *m)
{
	free(m->stored);
	free(m->cost);
	memset(m, 0, sizeof *m);
}
