/* SPDX-License-Identifier: Apache-2.0 */
/* chunk_walk.c: one chunk with each call. */
#include "plan/core/chunk_walk.h"

#include <errno.h>
#include <stdlib.h>
#include "plan/core/sizing.h"

int64_t neap__chunk_start(const struct neap_schedule *s, int64_t i)
{
	const struct neap__chunk_walk *x = s->self;
	return i == 0 ? 0 : s->problem.chain.steps - (x->n - i) * x->c;
}

static int refill(struct neap_schedule *s)
{
	struct neap__chunk_walk *x = s->self;
	const struct neap__chunk_moves *moves = x->moves;
	if (x->i < 0 || (moves->quiet && moves->quiet(s)))
		return 0;
	int64_t i = x->i, t0 = neap__chunk_start(s, i), t1 = neap__chunk_start(s, i + 1);
	if (!x->back && i < x->n - 1) {
		moves->keep(s, i);
		neap__advance(s, t0, t1);
		x->i++;
		return 0;
	}
	if (x->back)
		moves->bring(s, i);
	else if (moves->last)
		moves->last(s);
	neap__record(s, t0, t1);
	if (!x->back)
		neap__emit_turn(s);
	if (moves->ahead)
		moves->ahead(s, i);
	neap__backward(s, t0, t1);
	x->back = 1;
	x->i--;
	return 0;
}

void neap__chunk_walk_skip(struct neap_schedule *s, int64_t units)
{
	struct neap__chunk_walk *x = s->self;
	x->i += x->back ? -units : units;
}

int neap__chunk_walk_open(
	struct neap_schedule *s, size_t bytes, const struct neap__chunk_moves *moves, int64_t c)
{
	struct neap__chunk_walk *x = s->self = calloc(1, bytes);
	if (!x)
		return neap__fail(-ENOMEM, "schedule: out of memory");
	x->moves = moves;
	x->c = c;
	x->n = neap__ceil_div(s->problem.chain.steps, c);
	s->refill = refill;
	return 0;
}
