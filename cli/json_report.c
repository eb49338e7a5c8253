/* SPDX-License-Identifier: Apache-2.0 */
/* json_report.c: plans as JSON and as a line of parameters; the end of a JSON report. */
#include "json_report.h"

#include <neap/train.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const struct json_field {
	const char *name;
	size_t offset;
} fields[] = {
#define CLI_X(name, option, meaning) {#name, offsetof(struct neap_params, name)},
	NEAP_PARAM_TABLE(CLI_X)
#undef CLI_X
};

static int64_t field_value(const struct neap_params *params, size_t index)
{
	int64_t value;
	memcpy(&value, (const char *)params + fields[index].offset, sizeof value);
	return value;
}

const char *cli_show_params(char room[160], const struct neap_params *params)
{
	size_t n = 0;
	room[0] = '\0';
	for (size_t i = 0; i < sizeof fields / sizeof fields[0] && n < 160; i++) {
		int64_t value = field_value(params, i);
		if (value)
			n += (size_t)snprintf(room + n, 160 - n, "%s%s=%" PRId64, n ? " " : "",
				fields[i].name, value);
	}
	return room;
}

static void write_tiers(
	struct neap__json *to, const struct neap_problem *problem, const struct neap_plan *plan)
{
	neap__json_begin(to, "tiers", '[');
	for (int i = 0; i < problem->ntiers; i++) {
		neap__json_begin(to, NULL, '{');
		neap__json_text(to, "name", problem->tiers[i].name);
		neap__json_bytes(to, "peak_bytes", plan->tiers[i].peak_bytes);
		neap__json_bytes(to, "written", plan->tiers[i].written);
		neap__json_bytes(to, "read", plan->tiers[i].read);
		neap__json_end(to, '}');
	}
	neap__json_end(to, ']');
}

static void write_feasible(struct neap__json *to, const struct neap_problem *problem,
	const struct neap_plan *plan, int with_overhead)
{
	neap__json_begin(to, "params", '{');
	for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
		if (field_value(&plan->params, i))
			neap__json_int(to, fields[i].name, field_value(&plan->params, i));
	neap__json_end(to, '}');
	if (strcmp(plan->chosen, plan->strategy) != 0)
		neap__json_text(to, "chosen", plan->chosen);
	neap__json_bytes(to, "peak_bytes", plan->peak_bytes);
	neap__json_bytes(to, "arena_bytes", plan->arena_bytes);
	neap__json_bytes(to, "slow_bytes", plan->slow_bytes);
	write_tiers(to, problem, plan);
	neap__json_int(to, "advance_steps", plan->advance_steps);
	neap__json_int(to, "record_steps", plan->record_steps);
	neap__json_number(to, "makespan", plan->makespan);
	neap__json_number(to, "stall", plan->stall);
	neap__json_number(to, "lost", plan->lost);
	if (with_overhead)
		neap__json_number(to, "overhead", plan->overhead);
	neap__json_number(to, "bound", plan->bound);
	neap__json_number(to, "gap", plan->gap);
	double estimate = neap_estimate(problem, plan->bound);
	neap__json_number(to, "estimate", estimate > plan->bound ? estimate : NAN);
	neap__json_number(to, "model_bound", plan->model_bound > 0 ? plan->model_bound : NAN);
}

static void write_infeasible(
	struct neap__json *to, const struct neap_problem *problem, const struct neap_plan *plan)
{
	static const char *const missing[] = {"params", "peak_bytes", "slow_bytes", "advance_steps",
		"record_steps", "makespan", "stall", "lost", "overhead", "gap", "estimate",
		"model_bound", "bound", "tiers"};
	const char *least =
		problem->chain.flags & NEAP_CHAIN_CLASSIC ? "least_slots" : "least_bytes";
	for (size_t i = 0; i < sizeof missing / sizeof missing[0]; i++)
		neap__json_null(to, missing[i]);
	if (plan->least_bytes)
		neap__json_bytes(to, least, plan->least_bytes);
	else
		neap__json_null(to, least);
	neap__json_text(to, "why", plan->why);
}

void cli_json_plan(struct neap__json *to, const struct neap_problem *problem,
	const struct neap_plan *plan, int with_overhead)
{
	neap__json_text(to, "strategy", plan->strategy);
	neap__json_bool(to, "feasible", plan->feasible);
	if (plan->feasible)
		write_feasible(to, problem, plan, with_overhead);
	else
		write_infeasible(to, problem, plan);
}

int cli_answer_numbers(const struct neap_answer *answer)
{
	return answer->target == NEAP_TARGET_NUMBERS || answer->target == NEAP_TARGET_SERIES;
}

void cli_json_class(struct neap__json *to, const char *key, const char *name, int number)
{
	char room[16];
	snprintf(room, sizeof room, "%d", number);
	neap__json_text(to, key, name ? name : room);
}

static int has_names(const struct neap_answer *answer)
{
	for (int i = 0; i < answer->classes; i++)
		if (answer->class_name[i])
			return 1;
	return 0;
}

void cli_json_answer(struct neap__json *to, const struct neap_answer *answer, const char *file)
{
	neap__json_begin(to, NULL, '{');
	if (file)
		neap__json_text(to, "file", file);
	neap__json_int(to, "sample", answer->index);
	if (answer->sample_name)
		neap__json_text(to, "recording", answer->sample_name);
	if (answer->time > 0)
		neap__json_number(to, "time", answer->time);
	neap__json_int(to, answer->step < 0 ? "steps" : "step",
		answer->step < 0 ? answer->steps : answer->step);
	if (!cli_answer_numbers(answer)) {
		neap__json_int(to, "label", answer->label);
		neap__json_int(to, "prediction", answer->prediction);
		cli_json_class(
			to, "name", answer->class_name[answer->prediction], answer->prediction);
	}
	if (cli_answer_numbers(answer) && has_names(answer)) {
		neap__json_begin(to, "names", '[');
		for (int i = 0; i < answer->classes; i++)
			cli_json_class(to, NULL, answer->class_name[i], i);
		neap__json_end(to, ']');
	}
	neap__json_begin(to, "scores", '[');
	for (int i = 0; i < answer->classes; i++)
		neap__json_number(to, NULL, answer->score[i]);
	neap__json_end(to, ']');
	neap__json_end(to, '}');
}

int cli_json_print(struct neap__json *report, const char *command)
{
	int failed = report->text.error;
	if (!failed)
		puts(report->text.data);
	neap__json_free(report);
	if (!failed)
		return cli_finish(command);
	cli_usage(command, "not enough memory for the report");
	return CLI_FAILED;
}
