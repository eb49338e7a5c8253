/* SPDX-License-Identifier: Apache-2.0 */
/* phi_levels.c: the recurrence of Phi, and the number of slots in its rows. */
#include "plan/bound/phi_levels.h"

#include <stdlib.h>
#include "plan/bound/bound_memory.h"
#include "plan/bound/stage_bound.h"

void neap__phi_levels_next(struct neap__phi_levels *x)
{
	x->t++;
	for (int64_t j = x->slots; j >= 0; j--) {
		neap__wide flat = x->t * neap__phi_levels_leaf(x, j);
		neap__wide split = j < x->slots ? x->value[j] + x->value[j + 1] : 0;
		x->value[j] = flat > split ? flat : split;
	}
}

int neap__phi_levels_init(struct neap__phi_levels *x, int64_t pool, const struct neap_chain *c)
{
	*x = (struct neap__phi_levels){
		.pool = pool, .state = (int64_t)c->state, .tape = (int64_t)c->tape};
	x->slots = pool < x->tape + x->state ? 0 : (pool - x->tape) / x->state;
	if (x->slots > c->steps)
		x->slots = c->steps; /* no schedule has more states */
	neap__wide reach = 0;
	int64_t j = 0;
	while (j < x->slots && reach < c->steps && j <= NEAP__PHI_CELLS_MOST)
		reach += neap__phi_levels_leaf(x, ++j);
	x->cut = reach >= c->steps;
	x->slots = j;
	if (x->slots > NEAP__PHI_CELLS_MOST)
		return -1;
	x->value = calloc((size_t)x->slots + 1, sizeof *x->value);
	if (!x->value)
		neap__bound_note_memory();
	return x->value ? 0 : -1;
}
