/* SPDX-License-Identifier: Apache-2.0 */
/* plan_command.h: what the files of `neap plan` share. */
#ifndef NEAP_CLI_PLAN_COMMAND_H
#define NEAP_CLI_PLAN_COMMAND_H

#include "cli.h"

#define CLI_PLANS_MAX 32

/* Plans of one problem, and how long each took to make. */
struct cli_plans {
	const struct neap_problem *problem;
	const char *file; /* chain file, or NULL */
	struct neap_plan plan[CLI_PLANS_MAX];
	double seconds[CLI_PLANS_MAX];
	int count;
};

/* A row a strategy, the fastest first, and why the others are not (plan_table.c). */
int cli_plans_table(const struct cli_plans *plans);
/* One plan at length (plan_details.c). */
int cli_plan_details(const struct neap_problem *problem, const struct neap_plan *plan);
/* "12.3%", "-" where there is no number. Returns `room`'s pointer. */
const char *cli_show_percent(char room[24], double ratio);
/* Bytes, or slots where the problem counts those. */
const char *cli_show_room(char room[24], const struct neap_problem *problem, uint64_t bytes);
/* The same, rounded up: a budget that works when it is typed. */
const char *cli_show_least(char room[24], const struct neap_problem *problem, uint64_t bytes);

/* plan_files.c */
int cli_plan_actions(const struct neap_problem *problem, const struct neap_plan *plan);
int cli_plan_draw(
	const struct neap_problem *problem, const struct neap_plan *plan, const char *path);
int cli_plan_save(const struct neap_problem *problem, const struct neap_plan *plan, uint32_t flags,
	const char *path, const char *command);
/* Free with neap_saved_free. */
int cli_plan_load(struct neap_saved **saved, const char *path);

#endif
