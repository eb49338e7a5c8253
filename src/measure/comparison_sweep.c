/* SPDX-License-Identifier: Apache-2.0 */
/* comparison_sweep.c: the options and step functions of every sweep that a comparison runs. */
#include "measure/comparison.h"
#include "base/print.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>

#define SAID_LEAST 10 /* seconds: of a sweep that takes longer it is said; chosen */

/* The first call of a run that resumes: where its journal continues. */
static void say_resumed(struct neap__comparison *c)
{
	const struct neap_compare_options *o = c->options;
	const int64_t done = neap_sweep_spared(c->running);

	if (!c->resumes || c->told_resumed || done == 0 || !o->say)
		return;
	const struct neap_plan *plan = neap_sweep_plan(c->running);
	struct neap__text line = {0};
	neap__text_add(&line,
		"%s: continues from the last commit in %s: %" PRId64 " of %" PRId64
		" forward and backward steps are done",
		c->name, o->sweep.journal, done,
		plan->advance_steps + plan->record_steps + c->one.batch->steps);
	if (line.error == 0)
		o->say(o->user, line.data);
	neap__text_free(&line);
	c->told_resumed = 1;
}

/* Asked between a sweep's actions: estimates the seconds that it takes. 1: it is to end. */
static int watch(void *comparison)
{
	struct neap__comparison *c = comparison;
	const struct neap_compare_options *o = c->options;
	say_resumed(c);
	double seconds = neap_sweep_foreseen(c->running);
	if (seconds > SAID_LEAST && o->say) {
		char line[160];
		neap__print(line, sizeof line, "%s: about %.3g s, as of a tenth of its first pass",
			c->name, seconds);
		o->say(o->user, line);
	}
	if (seconds > 0)
		c->running = NULL;
	return o->progress ? o->progress(o->user, c->name, c->done, c->total) : 0;
}

void neap__comparison_sweep(struct neap__comparison *c, struct neap_sweep_options *so,
	int64_t steps, const char *strategy)
{
	*so = (struct neap_sweep_options){.size = sizeof *so,
		.steps = steps,
		.memory = c->result->memory,
		.strategy = strategy,
		.params = c->params,
		.tiers = c->tiers.tier,
		.ntiers = c->tiers.count,
		.advance = c->costs.advance,
		.record = c->costs.record,
		.backward = c->costs.backward,
		.replay = c->costs.replay,
		.call = c->costs.call,
		.trace = c->trace,
		.patience = neap__patience(&c->options->sweep, steps, c->costs.advance),
		.no_replan = c->options->sweep.no_replan || c->options->sweep.costs,
		.interrupted = watch,
		.interrupted_user = c};
}

void neap__comparison_ops(const struct neap__comparison *c, struct neap_step_ops *ops, double tape)
{
	neap__net_steps_fill(ops, c->one.net);
	if (tape > 0 && ops->tape_bytes < ops->tape_max_bytes)
		ops->tape_bytes = (size_t)fmin(tape, (double)ops->tape_max_bytes);
	ops->tape_mean_bytes = (size_t)c->costs.tape_mean;
}

void neap__costs_scale(struct neap__costs *costs, double times)
{
	costs->advance *= times;
	costs->record *= times;
	costs->backward *= times;
}
