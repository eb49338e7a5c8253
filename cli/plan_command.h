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

/* What --ranks and the options beside it say; ranks.ranks 0: --ranks is not given. */
struct cli_ranks {
	struct neap_ranks ranks;
	const char *beta;
	int given; /* 1: one of those beside it is */
};
#define CLI_RANKS_INIT                                                                             \
	{                                                                                          \
		.ranks = {.size = sizeof(struct neap_ranks),                                       \
			.alpha = 2e-6,                                                             \
			.batch = 32,                                                               \
			.group = 8,                                                                \
			.threads = 1},                                                             \
		.beta = "12.5G/s"                                                                  \
	}
/* clang-format off */
#define CLI_RANKS_OPTIONS(r) \
	CLI_GROUP("Several ranks"), \
	{.name = "ranks", .kind = CLI_COUNT, .into = &(r).ranks.ranks, .argument = "P", \
		.help = "processes that share the work, whose cost is predicted (default: none)", \
		.low = 1, .high = 1 << 20}, \
	{.name = "alpha", .kind = CLI_TIME, .into = &(r).ranks.alpha, .argument = "TIME", \
		.help = "latency per message between ranks", .high = 1e6, \
		.given = &(r).given}, \
	{.name = "beta", .kind = CLI_TEXT, .into = &(r).beta, .argument = "RATE", \
		.help = "bandwidth per rank in bytes per second", .given = &(r).given}, \
	{.name = "parameters", .kind = CLI_INT, .into = &(r).ranks.parameters, .argument = "N", \
		.help = "parameters of the trained network; the plan is that of one group on one thread " \
			"(default 0: the state of one pass is spread over the ranks)", \
		.high = CLI_STEPS_MOST, .given = &(r).given}, \
	{.name = "units", .kind = CLI_INT, .into = &(r).ranks.units, .argument = "N", \
		.help = "hidden units of the network (default 0)", .high = 1e12, .given = &(r).given}, \
	{.name = "tensors", .kind = CLI_COUNT, .into = &(r).ranks.tensors, .argument = "N", \
		.help = "tensors of parameters (default 5: one recurrent layer and a readout)", .low = 1, .high = 1e6, .given = &(r).given}, \
	{.name = "batch", .kind = CLI_COUNT, .into = &(r).ranks.batch, .argument = "N", \
		.help = "samples per batch, over all ranks", .low = 1, .high = 1e9, .given = &(r).given}, \
	{.name = "group", .kind = CLI_COUNT, .into = &(r).ranks.group, .argument = "N", \
		.help = "samples that a thread computes at a time", .low = 1, .high = 1e9, \
		.given = &(r).given}, \
	{.name = "threads", .kind = CLI_COUNT, .into = &(r).ranks.threads, .argument = "N", \
		.help = "threads per rank", .low = 1, .high = 65536, .given = &(r).given}
/* clang-format on */
/* plan_ranks.c: CLI_DONE or one line. */
int cli_plan_ranks_ask(struct cli_ranks *ranks);
int cli_plan_ranks_print(const struct neap_problem *problem, const struct neap_plan *plan,
	const struct cli_ranks *ranks);
struct neap__json;
int cli_plan_ranks_json(struct neap__json *to, const struct neap_problem *problem,
	const struct neap_plan *plan, const struct cli_ranks *ranks);

/* A row a strategy, the fastest first, and why the others are not (plan_table.c). */
int cli_plans_table(const struct cli_plans *plans);
/* What to do about the reason of an infeasible plan: ": add --tier", ""; in plan_table.c. */
const char *cli_why_hint(const char *why);
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
