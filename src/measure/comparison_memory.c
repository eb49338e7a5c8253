/* SPDX-License-Identifier: Apache-2.0 */
/* comparison_memory.c: what a comparison takes as a process, and the budget that a total leaves. */
#include "measure/comparison.h"
#include "measure/process_memory.h"
#include "data/loader_memory.h"
#include "base/fail.h"

/* Plans are made before arenas are mapped; what they leave behind is counted when all are made. */
#define PLANNING ((uint64_t)1 << 20)

static struct neap__process_parts parts_of(const struct neap__comparison *c, uint64_t inputs)
{
	return (struct neap__process_parts){.net = c->one.net,
		.inputs = inputs,
		.planning = PLANNING,
		.arena = c->probe.sweep ? neap_sweep_mapped(c->probe.sweep) : 0,
		.tiers = &c->tiers};
}

static int share(struct neap__comparison *c, uint64_t arena)
{
	const uint64_t total = c->options->sweep.memory_total;
	uint64_t inputs;

	NEAP_TRY(neap__loader_most(c->one.loader, &inputs));
	struct neap__process_parts parts = parts_of(c, inputs);
	return neap__process_memory_share(&c->result->process, &parts, total, arena);
}

int neap__comparison_memory_begin(struct neap__comparison *c)
{
	const struct neap_sweep_settings *s = &c->options->sweep;

	c->result->memory = neap__memory_budget(s);
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
	if (c->options->say) {
		neap__process_memory_line(line, &c->result->process, 1);
		c->options->say(c->options->user, line);
	}
	return 0;
}
