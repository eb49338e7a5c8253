/* SPDX-License-Identifier: Apache-2.0 */
/* log_plan.c: lines about plans. */
#include "sweep/log_plan.h"
#include "base/show.h"
#include "base/debug_log.h"

#include <string.h>

static void log_problem(const struct neap_problem *p)
{
	const struct neap_chain *c = &p->chain;
	char a[24], b[24], d[24], e[24];

	if (c->stages)
		neap__debug("plan for %lld unequal stages in %s", (long long)c->steps,
			neap__show_size(a, p->memory));
	else
		neap__debug("plan for %lld steps in %s: state %s, tape %s, adjoint %s",
			(long long)c->steps,
			p->memory == NEAP_INFINITE ? "unlimited memory"
						   : neap__show_size(a, p->memory),
			neap__show_size(b, c->state), neap__show_size(d, c->tape),
			neap__show_size(e, c->adjoint));
	if (!c->stages)
		neap__debug("costs of a step: advance %s, record %s, backward %s; of a call: %s",
			neap__show_time(a, c->advance), neap__show_time(b, c->record),
			neap__show_time(d, c->backward), neap__show_time(e, c->call));
}

static void log_tier(const struct neap_tier_spec *t, struct neap_tier *tier)
{
	char room[24], write[24], read[24], fixed[24];

	neap__debug("tier %s: room for %s, writes %s/s, reads %s/s, %s per write",
		neap_tier_about(tier),
		t->capacity == NEAP_INFINITE ? "any number of bytes"
					     : neap__show_size(room, t->capacity),
		t->write_rate > 0 ? neap__show_size(write, (uint64_t)t->write_rate)
				  : "any number of bytes",
		t->read_rate > 0 ? neap__show_size(read, (uint64_t)t->read_rate)
				 : "any number of bytes",
		neap__show_time(fixed, t->write_fixed));
}

void neap__log_plan(const struct neap_problem *problem, const struct neap_plan *plan,
	struct neap_tier *const *tiers, double seconds)
{
	char time[24], spent[24], peak[24], slow[24];

	if (!neap__debug_on())
		return;
	log_problem(problem);
	for (int i = 0; i < problem->ntiers; i++)
		log_tier(&problem->tiers[i], tiers[i]);
	if (!plan->feasible) {
		neap__debug("no plan: %s", plan->why);
		return;
	}
	neap__debug("strategy %s%s%s: predicted %s, %+.1f%% against storing everything; "
		    "memory %s, tiers %s; %lld steps advanced, %lld recorded; planned in %s",
		plan->strategy, strcmp(plan->chosen, plan->strategy) != 0 ? " chose " : "",
		strcmp(plan->chosen, plan->strategy) != 0 ? plan->chosen : "",
		neap__show_time(time, plan->makespan), 100 * plan->overhead,
		neap__show_size(peak, plan->arena_bytes), neap__show_size(slow, plan->slow_bytes),
		(long long)plan->advance_steps, (long long)plan->record_steps,
		neap__show_time(spent, seconds));
}

void neap__log_replan(const struct neap_problem *planned, const struct neap_problem *found,
	int64_t step, const struct neap_plan *rest)
{
	char was[24], is[24], time[24];

	neap__debug("step %lld: advancing a step takes %s, planned with %s; %s%s", (long long)step,
		neap__show_time(is, found->chain.advance),
		neap__show_time(was, planned->chain.advance),
		rest ? "the remaining steps get a new plan, predicted for the whole sweep: "
		     : "no other plan is faster",
		rest ? neap__show_time(time, rest->makespan) : "");
}
