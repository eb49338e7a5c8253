/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comparison_memory.c: what a comparison takes as a process and of a device, and the budget that a
 * total leaves.
 */
#include "measure/comparison.h"
#include "measure/process_memory.h"
#include "data/loader_memory.h"
#include "nn/core/net_state.h"
#include "nn/core/on_device.h"
#include "base/fail.h"
#include "sys/clock.h"

#include <math.h>

/* Plans are made before arenas are mapped; what they leave behind is counted when all are made. */
#define PLANNING ((uint64_t)1 << 20)

static struct neap__process_parts parts_of(const struct neap__comparison *c, uint64_t inputs)
{
	return (struct neap__process_parts){.net = c->one.net,
		.inputs = inputs,
		.planning = PLANNING,
		.arena = c->probe.sweep && !c->one.net->device ? neap_sweep_mapped(c->probe.sweep)
							       : 0,
		.tiers = &c->tiers};
}

static int share(struct neap__comparison *c, uint64_t arena)
{
	const uint64_t total = c->options->sweep.memory_total;
	uint64_t inputs;

	NEAP_TRY(neap__loader_most(c->one.loader, &inputs));
	struct neap__process_parts parts = parts_of(c, inputs);
	if (c->one.net->device)
		arena = 0;
	return neap__process_memory_share(&c->result->process, &parts, total, arena);
}

int neap__comparison_memory_begin(struct neap__comparison *c)
{
	const struct neap_sweep_settings *s = &c->options->sweep;

	NEAP_TRY(neap__on_device_use(c->one.net, &c->result->device, NULL));
	NEAP_TRY(neap__device_total_refuse(s, c->one.net));
	NEAP_TRY(neap__memory_budget(&c->result->memory, s, c->one.net));
	NEAP_TRY(neap__device_budget_check(s, c->one.net, c->result->memory));
	c->reference_memory = c->options->reference_memory;
	if (!s->memory_total)
		return 0;
	NEAP_TRY(share(c, s->memory ? s->memory : s->memory_total));
	c->result->memory = c->result->process.arena;
	if (!c->reference_memory || c->reference_memory > c->result->memory)
		c->reference_memory = c->result->memory;
	neap__tiers_lend(&c->tiers, c->result->memory);
	return 0;
}

/* What is mapped now is what the batch needs, and maybe the arena that measures the pace. */
static int plan_device(struct neap__comparison *c, uint64_t arena)
{
	struct neap_device_use now;
	uint64_t mapped, probe = c->probe.sweep ? neap_sweep_mapped(c->probe.sweep) : 0;

	NEAP_TRY(neap__on_device_use(c->one.net, &now, &mapped));
	c->result->device.planned = mapped > probe ? mapped - probe + arena : 0;
	return 0;
}

int neap__comparison_memory_planned(struct neap__comparison *c, uint64_t arena)
{
	char line[NEAP__PROCESS_LINE];

	if (c->options->sweep.memory_total) {
		NEAP_TRY(share(c, c->result->memory));
		if (arena > c->result->process.arena) {
			c->result->memory = c->result->process.arena;
			if (c->reference_memory > c->result->memory)
				c->reference_memory = c->result->memory;
			return 1;
		}
	}
	NEAP_TRY(share(c, arena));
	NEAP_TRY(plan_device(c, arena));
	if (c->options->say) {
		neap__process_memory_line(line, &c->result->process, 1);
		c->options->say(c->options->user, line);
	}
	return 0;
}

int neap__comparison_memory_end(struct neap__comparison *c, int rc)
{
	struct neap_device_use *use = &c->result->device, before = *use;

	if (rc < 0)
		return neap__device_budget_failed(
			rc, &c->options->sweep, c->one.net, c->result->memory);
	NEAP_TRY(neap__on_device_use(c->one.net, use, NULL));
	use->free = before.free;
	use->planned = before.planned;
	return 0;
}

/* A forward and backward pass. */
static int pass(
	struct neap__comparison *c, struct neap_sweep *sweep, const struct neap_batch *batch)
{
	double loss;

	NEAP_TRY(neap_net_begin(c->one.net, batch, &c->one.objective));
	neap__sweep_pace_start(&c->timed, 0);
	int rc = neap_sweep_run(sweep, NULL, NULL, &loss, NULL);
	int ended = neap_net_end(c->one.net);
	return rc < 0 ? rc : ended;
}

/*
 * The counter of a device changes some ten times a second, and a batch may take a millisecond:
 * passes follow each other, and their energy is the difference of the counter.
 */
int neap__comparison_energy(struct neap__comparison *c, struct neap_sweep *sweep,
	const struct neap_compare_run *run, double *joules)
{
	const double seconds = c->options->energy;
	struct neap_device_use before, after;
	int64_t passes = 0;
	int rc = 0;

	*joules = NAN;
	if (!run->ran || !(seconds > 0))
		return 0;
	NEAP_TRY(neap__on_device_use(c->one.net, &before, NULL));
	if (!(before.joules > 0))
		return 0;
	const double begun = neap__seconds();
	for (; rc == 0 && (passes == 0 || neap__seconds() - begun < seconds); passes++)
		rc = pass(c, sweep, run->reference ? &c->reference_batch : c->one.batch);
	neap_sweep_release(sweep);
	NEAP_TRY(rc);
	NEAP_TRY(neap__on_device_use(c->one.net, &after, NULL));
	*joules = (after.joules - before.joules) / (double)passes;
	return 0;
}
