/* SPDX-License-Identifier: Apache-2.0 */
/* copies.c: the live state is copied to a slot and back, by the model or as bytes. */
#include "sweep/steps/copies.h"
#include "sweep/steps/counts.h"
#include "base/fail.h"
#include "sys/clock.h"

/*
 * Before a copy; early: it may return before it is done. Waits for earlier calls if it does not, so
 * that their seconds are not taken for those of the copy.
 */
static double start_copy(struct neap_sweep *s, int early)
{
	if (!early)
		neap__fence_wait(&s->arena.memory.fence);
	return neap__step_start(s, &s->stats.copies);
}

static void count_copy(struct neap_sweep *s, double start, int64_t t, int early, double planned)
{
	double end = neap__seconds();
	if (early)
		neap__fence_after(&s->arena.memory.fence, &s->stats, s->options.trace,
			&s->stats.copies, planned);
	s->stats.copies += end - start;
	neap__trace_add(s->options.trace,
		&(struct neap__event){
			.start = start, .end = end, .t0 = t, .t1 = t, .kind = NEAP__EVENT_COPY});
}

int neap__copy_save(struct neap_sweep *s, void *to)
{
	int early = s->ops.save || neap__memory_is_foreign(&s->arena.memory), rc = 0;
	double start = start_copy(s, early);
	if (s->ops.save)
		rc = neap__step_answer("save", s->ops.save(s->user, to, neap__live(s)));
	else
		neap__memory_move(&s->arena.memory, to, neap__live(s), s->ops.state_bytes);
	count_copy(s, start, s->live_t, early, s->problem.chain.slot_write);
	return rc ? rc : neap__memory_answer(&s->arena.memory);
}

int neap__copy_load(struct neap_sweep *s, const void *from, int64_t t)
{
	int early = from && s->ops.load;
	early |= neap__memory_is_foreign(&s->arena.memory) && from != s->x0;
	double start = start_copy(s, early);
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
	count_copy(s, start, t, early, s->problem.chain.slot_read);
	s->live_t = t;
	return 0;
}
