/* SPDX-License-Identifier: Apache-2.0 */
/* copies.c: the live state is copied to a slot and back, by the model or as bytes. */
#include "sweep/steps/copies.h"
#include "sweep/steps/counts.h"
#include "base/fail.h"
#include "sys/clock.h"

static void count_copy(struct neap_sweep *s, double start, int64_t t)
{
	double end = neap__seconds();
	s->stats.copies += end - start;
	neap__trace_add(s->options.trace,
		&(struct neap__event){
			.start = start, .end = end, .t0 = t, .t1 = t, .kind = NEAP__EVENT_COPY});
}

int neap__copy_save(struct neap_sweep *s, void *to)
{
	double start = neap__seconds();
	int rc = 0;
	neap_detail_set(NULL);
	if (s->ops.save)
		rc = neap__step_answer("save", s->ops.save(s->user, to, neap__live(s)));
	else
		neap__memory_move(&s->arena.memory, to, neap__live(s), s->ops.state_bytes);
	count_copy(s, start, s->live_t);
	return rc ? rc : neap__memory_answer(&s->arena.memory);
}

int neap__copy_load(struct neap_sweep *s, const void *from, int64_t t)
{
	double start = neap__seconds();
	s->live_t = -1;
	if (!from) {
		neap__memory_fill(&s->arena.memory, neap__live(s), 0, s->ops.state_bytes);
		from = neap__live(s);
	}
	neap_detail_set(NULL);
	if (s->ops.load)
		NEAP_TRY(neap__step_answer("load", s->ops.load(s->user, neap__live(s), from)));
	else if (from == s->x0)
		neap__memory_write(&s->arena.memory, neap__live(s), from, s->ops.state_bytes);
	else
		neap__memory_move(&s->arena.memory, neap__live(s), from, s->ops.state_bytes);
	NEAP_TRY(neap__memory_answer(&s->arena.memory));
	count_copy(s, start, t);
	s->live_t = t;
	return 0;
}
