/* SPDX-License-Identifier: Apache-2.0 */
/* json.c: JSON out: exact integers, null for numbers that do not exist. */
#include "cli.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void cli_json_int(cJSON *object, const char *key, int64_t value)
{
	char text[32];
	snprintf(text, sizeof text, "%" PRId64, value);
	cJSON_AddRawToObject(object, key, text);
}

void cli_json_bytes(cJSON *object, const char *key, uint64_t value)
{
	char text[32];
	snprintf(text, sizeof text, "%" PRIu64, value);
	cJSON_AddRawToObject(object, key, text);
}

void cli_json_number(cJSON *object, const char *key, double value)
{
	char text[40];
	if (!isfinite(value)) {
		cJSON_AddNullToObject(object, key);
		return;
	}
	/* The shortest form that reads back to the same number. */
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	cJSON_AddRawToObject(object, key, text);
}

void cli_json_text(cJSON *object, const char *key, const char *value)
{
	if (value)
		cJSON_AddStringToObject(object, key, value);
	else
		cJSON_AddNullToObject(object, key);
}

struct json_field {
	const char *name;
	size_t offset;
};
#define FIELD(name)                                                                                \
	{                                                                                          \
#name, offsetof(struct neap_params, name)                                          \
	}
static const struct json_field fields[] = {FIELD(chunk), FIELD(checkpoints), FIELD(remote_chunk),
	FIELD(interval), FIELD(period), FIELD(group), FIELD(tail), FIELD(kept_tapes)};

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

static void add_tiers(
	cJSON *object, const struct neap_problem *problem, const struct neap_plan *plan)
{
	cJSON *tiers = cJSON_AddArrayToObject(object, "tiers");
	for (int i = 0; i < problem->ntiers; i++) {
		cJSON *tier = cJSON_CreateObject();
		cli_json_text(tier, "name", problem->tiers[i].name);
		cli_json_bytes(tier, "peak_bytes", plan->tiers[i].peak_bytes);
		cli_json_bytes(tier, "written", plan->tiers[i].written);
		cli_json_bytes(tier, "read", plan->tiers[i].read);
		cJSON_AddItemToArray(tiers, tier);
	}
}

cJSON *cli_json_plan(
	const struct neap_problem *problem, const struct neap_plan *plan, double plan_seconds)
{
	static const char *const missing[] = {"peak_bytes", "slow_bytes", "advance_steps",
		"record_steps", "makespan", "stall", "lost", "overhead", "gap", "model_bound"};
	int classic = (problem->chain.flags & NEAP_CHAIN_CLASSIC) != 0;
	cJSON *o = cJSON_CreateObject();

	cli_json_text(o, "strategy", plan->strategy);
	cJSON_AddBoolToObject(o, "feasible", plan->feasible);
	if (plan->feasible) {
		cJSON *params = cJSON_AddObjectToObject(o, "params");
		for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
			if (field_value(&plan->params, i))
				cli_json_int(params, fields[i].name, field_value(&plan->params, i));
		if (strcmp(plan->chosen, plan->strategy) != 0)
			cli_json_text(o, "chosen", plan->chosen);
		cli_json_bytes(o, "peak_bytes", plan->peak_bytes);
		cli_json_bytes(o, "arena_bytes", plan->arena_bytes);
		cli_json_bytes(o, "slow_bytes", plan->slow_bytes);
		add_tiers(o, problem, plan);
		cli_json_int(o, "advance_steps", plan->advance_steps);
		cli_json_int(o, "record_steps", plan->record_steps);
		cli_json_number(o, "makespan", plan->makespan);
		cli_json_number(o, "stall", plan->stall);
		cli_json_number(o, "lost", plan->lost);
		cli_json_number(o, "overhead", plan->overhead);
		cli_json_number(o, "bound", plan->bound);
		cli_json_number(o, "gap", plan->gap);
		cli_json_number(o, "model_bound", plan->model_bound > 0 ? plan->model_bound : NAN);
	} else {
		cJSON_AddNullToObject(o, "params");
		for (size_t i = 0; i < sizeof missing / sizeof missing[0]; i++)
			cJSON_AddNullToObject(o, missing[i]);
		cJSON_AddNullToObject(o, "bound");
		cJSON_AddNullToObject(o, "tiers");
		const char *least = classic ? "least_slots" : "least_bytes";
		if (plan->least_bytes)
			cli_json_bytes(o, least, plan->least_bytes);
		else
			cJSON_AddNullToObject(o, least);
		cli_json_text(o, "why", plan->why);
	}
	if (plan_seconds >= 0)
		cli_json_number(o, "plan_seconds", plan_seconds);
	return o;
}

int cli_json_print(cJSON *object)
{
	char *text = cJSON_PrintUnformatted(object);
	cJSON_Delete(object);
	if (!text)
		return CLI_FAILED;
	puts(text);
	free(text);
	return cli_finish("--json");
}
