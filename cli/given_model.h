/* SPDX-License-Identifier: Apache-2.0 */
/* given_model.h: the options of commands that evaluate, and the model that they name. */
#ifndef NEAP_CLI_GIVEN_MODEL_H
#define NEAP_CLI_GIVEN_MODEL_H

#include "net_options.h"

/* clang-format off */
/* Of commands that evaluate; `o` is a struct neap_eval_options, `given` a struct cli_given_model. */
#define CLI_EVAL_OPTIONS(o, given_) \
	{.name = "from", .kind = CLI_TEXT, .into = &(given_).from, .argument = "FILE", \
		.help = "in place of RUN: a run, a .safetensors file or a NIR graph"}, \
	{.name = "dt", .kind = CLI_TIME, .into = &(o).dt, .argument = "TIME", \
		.help = "of a NIR graph that does not say it: the time of a step", .low = 1e-9, \
		.high = 10}, \
	{.name = "reset", .kind = CLI_CHOICE, .into = &(given_).reset, .argument = "KIND", \
		.help = "of a NIR graph: how spikes reset membranes (default: as it says, or hard)", \
		.choices = cli_resets, .given = &(given_).reset_given}, \
	{.name = "batch", .kind = CLI_COUNT, .into = &(o).batch, .argument = "N", \
		.help = "samples at a time (default 64)", .low = 1, .high = CLI_BATCH_MOST}, \
	{.name = "threads", .kind = CLI_COUNT, .into = &(o).threads, .argument = "N", \
		.help = "0: one a processor", .high = 1024}
/* clang-format on */

/* What these name: the model by --from, and its reset. */
struct cli_given_model {
	const char *from;
	int reset, reset_given;
	enum neap_reset kind;
};
/* Puts RUN and DATA, or --from and DATA, and the reset into the options. CLI_DONE or one line. */
int cli_take_model(struct neap_eval_options *o, struct cli_given_model *given, int parsed,
	const char *const *named, const char *command);

#endif
