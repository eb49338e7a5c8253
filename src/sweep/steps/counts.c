/* SPDX-License-Identifier: Apache-2.0 */
/* counts.c: the answers, times and counts of calls of the model, and of what a run waited for or
 * lost. */
#include "sweep/steps/counts.h"
#include "sweep/costs/cost_watch.h"
#include "base/fail.h"
#include "sys/clock.h"

int neap__step_failure(const char *name, int rc)
{
	if (rc > 0)
		return neap__fail(NEAP_EMODEL, "the model's %s answered %d", name, rc);
	if (rc < 0 && !neap_detail()[0])
		return neap__fail(
			rc, "the model's %s answered %d: %s", name, rc, neap_strerror(rc));
	return rc;
}

double neap__step_start(struct neap_sweep *s, const double *kind)
{
	neap__fence_before(&s->arena.memory.fence, kind);
	neap_detail_set(NULL);
	return neap__seconds();
}

/* Seconds that the plan counts with for a call of n steps. */
static double planned_seconds(const struct neap_chain *c, uint32_t event, int64_t n)
{
	double step = event == NEAP__EVENT_ADVANCE  ? c->advance
		      : event == NEAP__EVENT_RECORD ? c->record
		      : event == NEAP__EVENT_REPLAY ? c->replay
						    : c->backward;
	return (double)n * step + c->call;
}

void neap__step_charge(
	struct neap_sweep *s, double *kind, double start, uint32_t event, int64_t t0, int64_t t1)
{
	double end = neap__seconds();
	if (event != NEAP__EVENT_TURN) /* its loss is known when it returns */
		neap__fence_after(&s->arena.memory.fence, &s->stats, s->options.trace, kind,
			planned_seconds(&s->problem.chain, event, t1 - t0));
	*kind += end - start;
	s->stats.compute += end - start;
	s->stats.advance_calls += event == NEAP__EVENT_ADVANCE;
	s->stats.record_calls += event == NEAP__EVENT_RECORD || event == NEAP__EVENT_REPLAY;
	s->stats.backward_calls += event == NEAP__EVENT_BACKWARD;
	neap__trace_add(s->options.trace,
		&(struct neap__event){
			.start = start, .end = end, .t0 = t0, .t1 = t1, .kind = event});
}

void neap__count_overflow(struct neap_sweep *s, int64_t t0, int64_t t1)
{
	double now = neap__seconds();
	s->stats.overflows++;
	neap__trace_add(s->options.trace, &(struct neap__event){.start = now,
						  .end = now,
						  .t0 = t0,
						  .t1 = t1,
						  .kind = NEAP__EVENT_OVERFLOW});
}

void neap__step_passed(struct neap_sweep *s, int64_t t, int64_t *steps)
{
	*steps += t - s->live_t;
	if (s->recovering)
		s->stats.recomputed += t - s->live_t;
	s->live_t = t;
	if (t > s->passed) {
		s->passed = t;
		if (t >= s->watch.mark_at)
			neap__replan_foresee(s);
	}
}
