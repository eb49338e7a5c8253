/* SPDX-License-Identifier: Apache-2.0 */
/*
 * study_schedules.c: drawings of the schedules of several strategies for 32 steps: step against
 * time, kept states, transfers below. Nothing is timed, so that every machine draws the same.
 *
 * A state and a tape have 1 MiB each; advance and record take 1 ms a step, backward 2 ms; a state
 * takes 2 ms to slow memory or back.
 */
#include <stdio.h>
#include <string.h>
#include "base/fail.h"
#include "study/experiment.h"
#include "sys/atomic_file.h"

#define MIB ((uint64_t)1 << 20)
#define STEPS 32
#define PATH 4200

static const struct drawn {
	const char *label, *strategy;
	uint64_t memory; /* MiB; 0: the least its parameters need */
	struct neap_params params;
	const char *what;
} drawn[] = {
	{"bptt", "bptt", 0, {0}, "stores every tape"},
	{"standard", "standard", 0, {.chunk = 6}, "a checkpoint every 6 steps in fast memory"},
	{"chunk-1", "hierarchical", 0, {.chunk = 6, .checkpoints = 1},
		"hierarchical, k = 1: checkpoints are offloaded one at a time"},
	{"chunk-3", "hierarchical", 0, {.chunk = 4, .checkpoints = 3},
		"hierarchical, k = 3: checkpoints are offloaded in threes"},
	{"remote", "remote", 0, {.chunk = 6}, "a checkpoint every 6 steps in slow memory"},
	{"double", "double", 0, {.remote_chunk = 12, .chunk = 4},
		"a checkpoint every 12 steps in slow memory and every 4 steps in fast "
		"memory"},
	{"revolve", "revolve", 6, {0}, "the fewest recomputed steps for the available slots"},
	{"async", "async", 6, {0}, "checkpoints are offloaded as often as the channel permits"},
	{"stream", "stream", 8, {0}, "tapes are offloaded, nothing is recomputed"},
	{"disk-revolve", "disk-revolve", 6, {0}, "Revolve over two levels of memory"},
	{"auto", "auto", 6, {0}, "the fastest plan found for 6 MiB"},
};

static struct neap_problem problem_of(const struct drawn *d)
{
	struct neap_problem p = {.size = sizeof p,
		.chain = {.steps = STEPS,
			.state = MIB,
			.tape = MIB,
			.adjoint = MIB,
			.advance = 1e-3,
			.record = 1e-3,
			.backward = 2e-3},
		.memory = d->memory * MIB,
		.ntiers = 1};
	p.tiers[0] = (struct neap_tier_spec){.name = "slow",
		.capacity = NEAP_INFINITE,
		.write_rate = 500.0 * (double)MIB,
		.read_rate = 500.0 * (double)MIB,
		.flags = NEAP_TIER_DUPLEX};
	return p;
}

static int plan_of(struct neap_plan *plan, struct neap_problem *p, const struct drawn *d)
{
	*p = problem_of(d);
	if (d->memory)
		return neap_plan_make(plan, p, d->strategy, &d->params);
	return neap__plan_least(plan, p, d->strategy, &d->params);
}

static int measure(struct neap__study *study)
{
	for (size_t i = 0; i < sizeof drawn / sizeof drawn[0]; i++) {
		const struct drawn *d = &drawn[i];
		struct neap_problem p = {.size = sizeof p};
		struct neap_plan plan = {.size = sizeof plan};
		int rc = neap__study_point(study, "%s", d->label);
		NEAP_TRY(rc);
		if (rc == 0)
			continue;
		NEAP_TRY(plan_of(&plan, &p, d));
		if (!plan.feasible)
			return neap__fail(NEAP_EINFEASIBLE, "%s: %s", d->label, plan.why);
		NEAP_TRY(neap__study_row(study, "%s,%s,%llu,%llu,%lld,%lld,%.9g,%.9g,%.9g",
			plan.strategy, plan.chosen, (unsigned long long)plan.peak_bytes,
			(unsigned long long)plan.slow_bytes, (long long)plan.advance_steps,
			(long long)plan.record_steps, plan.makespan, plan.stall, plan.overhead));
		NEAP_TRY(neap__study_done(study));
	}
	return 0;
}

static int write_file(void *user, const char *text, size_t length)
{
	return neap__atomic_file_write(user, text, length);
}

static int draw_one(struct neap__study *study, const struct drawn *d)
{
	struct neap__atomic_file *file = NULL;
	struct neap_schedule *schedule = NULL;
	struct neap_problem p = {.size = sizeof p};
	struct neap_plan plan = {.size = sizeof plan};
	char path[PATH], title[240], name[64];

	NEAP_TRY(plan_of(&plan, &p, d));
	snprintf(name, sizeof name, "schedules-%s", d->label);
	snprintf(path, sizeof path, "%s/%s.svg", study->options.out, name);
	snprintf(title, sizeof title, "%s: %s: %.0f MiB, %.0f ms", d->label, d->what,
		(double)plan.peak_bytes / (double)MIB, 1e3 * plan.makespan);
	if (plan.overhead > 0)
		snprintf(title + strlen(title), sizeof title - strlen(title),
			", %.0f%% slower than storing every tape", 100 * plan.overhead);
	NEAP_TRY(neap_schedule_open(&schedule, &p, &plan));
	int rc = neap__atomic_file_open(&file, path);
	if (rc == 0)
		rc = neap_draw(&p, schedule, title, 0, write_file, file);
	if (rc < 0)
		neap__atomic_file_abort(file);
	else
		rc = neap__atomic_file_commit(file);
	neap_schedule_close(schedule);
	NEAP_TRY(rc);
	if (study->options.png)
		NEAP_TRY(neap__figure_png(study->options.out, name));
	neap__text_add(&study->report, "\n![%s](%s.svg)\n", title, name);
	return 0;
}

static int draw(struct neap__study *study)
{
	neap__text_add(&study->report,
		"A chain of %d steps. A state and a tape take 1 MiB each; a step takes 1 "
		"ms forward and 2 ms backward; writing or reading a state in slow memory "
		"takes 2 ms. In the drawings time runs to the right and steps run "
		"upwards. Thin blue lines are forward steps that save nothing, wide "
		"orange lines are forward steps that save their tapes, green lines are "
		"backward steps. Grey lines are checkpoints in fast memory, and the bars "
		"at the bottom are transfers.\n\n| schedule | strategy | fast memory | "
		"slow memory | forward steps without tape | time | overhead "
		"|\n|---|---|---|---|---|---|---|\n",
		STEPS);
	for (int i = 0; i < neap__points_count(study->points); i++)
		neap__text_add(&study->report,
			"| %s | `%s` | %.1f MiB | %.1f MiB | %s | %.0f ms | %.1f%% |\n",
			neap__row_text(study, i, "point"), neap__row_text(study, i, "strategy"),
			neap__row_number(study, i, "peak_bytes") / (double)MIB,
			neap__row_number(study, i, "slow_bytes") / (double)MIB,
			neap__row_text(study, i, "advance_steps"),
			1e3 * neap__row_number(study, i, "makespan"),
			100 * neap__row_number(study, i, "overhead"));
	for (size_t i = 0; i < sizeof drawn / sizeof drawn[0]; i++)
		NEAP_TRY(draw_one(study, &drawn[i]));
	return 0;
}

const struct neap__experiment neap__study_schedules = {"schedules",
	"drawings of all strategies for 32 steps",
	"strategy,chosen,peak_bytes,slow_bytes,advance_steps,record_steps,makespan,stall,overhead",
	measure, draw};
