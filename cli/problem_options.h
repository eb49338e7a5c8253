/* SPDX-License-Identifier: Apache-2.0 */
/* problem_options.h: the options that give `neap plan` its problem, and the problem made of them.
 */
#ifndef NEAP_CLI_PROBLEM_OPTIONS_H
#define NEAP_CLI_PROBLEM_OPTIONS_H

#include "chain_file.h"
#include "cli.h"

/* The options of numbers: those up to CLI_GIVEN_IN_FILE stand in a chain file, if there is one. */
enum cli_given {
	CLI_GIVEN_STEPS,
	CLI_GIVEN_STATE,
	CLI_GIVEN_TAPE,
	CLI_GIVEN_TAPE_MAX,
	CLI_GIVEN_TAPE_MEAN,
	CLI_GIVEN_ADJOINT,
	CLI_GIVEN_LOG,
	CLI_GIVEN_SLOTS,
	CLI_GIVEN_ADVANCE,
	CLI_GIVEN_RECORD,
	CLI_GIVEN_BACKWARD,
	CLI_GIVEN_REPLAY,
	CLI_GIVEN_CALL,
	CLI_GIVEN_LAST,
	CLI_GIVEN_SLOT_WRITE,
	CLI_GIVEN_SLOT_READ,
	CLI_GIVEN_IN_FILE,
	CLI_GIVEN_MEMORY = CLI_GIVEN_IN_FILE,
	CLI_GIVENS
};

struct cli_question {
	struct neap_problem problem; /* chain.stages borrows from `chain` */
	struct neap_params params;
	const char *strategy, *file, *steps;
	struct cli_chain chain;
	struct cli_list tiers;
	int64_t slots;
	int given[CLI_GIVENS];
};

/* The defaults, set before the options are parsed: seconds a step. */
#define CLI_QUESTION_INIT                                                                          \
	{                                                                                          \
		.problem.chain = {.advance = 1, .backward = 2 }                                    \
	}

/* Rows of an option table that fill `q`; CLI_PARAMS is (q).params. */
/* clang-format off */
#define CLI_QUESTION_OPTIONS(q) \
	CLI_GROUP("The chain: sizes"), \
	{.name = "steps", .kind = CLI_TEXT, .into = &(q).steps, .argument = "T", \
		.help = "number of steps, required; A,B: two chains of equal steps that end in one loss", \
		.given = &(q).given[CLI_GIVEN_STEPS]}, \
	{.name = "chain", .kind = CLI_TEXT, .into = &(q).file, .argument = "FILE", \
		.help = "chain file (JSON) that replaces these numbers"}, \
	{.name = "state", .kind = CLI_SIZE, .into = &(q).problem.chain.state, .argument = "BYTES", \
		.help = "size of one state; required unless --slots is given", .low = 1, \
		.given = &(q).given[CLI_GIVEN_STATE]}, \
	{.name = "tape", .kind = CLI_SIZE, .into = &(q).problem.chain.tape, .argument = "BYTES", \
		.help = "size of the tape of one step; required unless --slots is given", \
		.given = &(q).given[CLI_GIVEN_TAPE]}, \
	{.name = "tape-max", .kind = CLI_SIZE, .into = &(q).problem.chain.tape_max, \
		.argument = "BYTES", .help = "size of the largest tape of a step, if tapes vary (default: " \
			"--tape)", \
		.given = &(q).given[CLI_GIVEN_TAPE_MAX]}, \
	{.name = "tape-mean", .kind = CLI_SIZE, .into = &(q).problem.chain.tape_mean, \
		.argument = "BYTES", \
		.help = "mean size of the tape of a step in transfers, if tapes vary (default: --tape)", \
		.given = &(q).given[CLI_GIVEN_TAPE_MEAN]}, \
	{.name = "adjoint", .kind = CLI_SIZE, .into = &(q).problem.chain.adjoint, \
		.argument = "BYTES", .help = "size of the adjoint of a state (default: --state)", \
		.given = &(q).given[CLI_GIVEN_ADJOINT]}, \
	{.name = "log", .kind = CLI_SIZE, .into = &(q).problem.chain.log, .argument = "BYTES", \
		.help = "size of the log of one step, from which replay rebuilds its tape (default: none)", .low = 1, \
		.given = &(q).given[CLI_GIVEN_LOG]}, \
	{.name = "memory", .kind = CLI_SIZE, .into = &(q).problem.memory, .argument = "BYTES", \
		.help = "budget of fast memory; required unless --slots is given", \
		.given = &(q).given[CLI_GIVEN_MEMORY]}, \
	{.name = "slots", .kind = CLI_INT, .into = &(q).slots, .argument = "C", \
		.help = "number of checkpoints, including the initial state, instead of sizes in bytes: the " \
			"classic problem (default: sizes in bytes)", \
		.high = CLI_STEPS_MOST, \
		.given = &(q).given[CLI_GIVEN_SLOTS]}, \
	CLI_GROUP("The chain: times"), \
	{.name = "advance", .kind = CLI_TIME, .into = &(q).problem.chain.advance, \
		.argument = "TIME", .help = "time of one forward step (default 1s)", .high = CLI_SECONDS_MOST, \
		.given = &(q).given[CLI_GIVEN_ADVANCE]}, \
	{.name = "record", .kind = CLI_TIME, .into = &(q).problem.chain.record, \
		.argument = "TIME", .help = "time of one forward step that saves its tape (default: " \
			"--advance)", \
		.high = CLI_SECONDS_MOST, \
		.given = &(q).given[CLI_GIVEN_RECORD]}, \
	{.name = "backward", .kind = CLI_TIME, .into = &(q).problem.chain.backward, \
		.argument = "TIME", .help = "time of one backward step (default 2s)", .high = CLI_SECONDS_MOST, \
		.given = &(q).given[CLI_GIVEN_BACKWARD]}, \
	{.name = "replay", .kind = CLI_TIME, .into = &(q).problem.chain.replay, \
		.argument = "TIME", \
		.help = "time to rebuild the tape of one step from state and log (default: --record)", .high = CLI_SECONDS_MOST, \
		.given = &(q).given[CLI_GIVEN_REPLAY]}, \
	{.name = "call", .kind = CLI_TIME, .into = &(q).problem.chain.call, .argument = "TIME", \
		.help = "overhead per call of the model, in addition to its steps (default 0)", \
		.high = CLI_SECONDS_MOST, \
		.given = &(q).given[CLI_GIVEN_CALL]}, \
	{.name = "last", .kind = CLI_NUMBER, .into = &(q).problem.chain.last, .argument = "SHARE", \
		.help = "time of the last step relative to the others, at most 1 (default 1)", .low = 1e-9, \
		.high = 1, \
		.given = &(q).given[CLI_GIVEN_LAST]}, \
	{.name = "slot-write", .kind = CLI_TIME, .into = &(q).problem.chain.slot_write, \
		.argument = "TIME", .help = "time to copy a state into a slot (default 0)", .high = CLI_SECONDS_MOST, \
		.given = &(q).given[CLI_GIVEN_SLOT_WRITE]}, \
	{.name = "slot-read", .kind = CLI_TIME, .into = &(q).problem.chain.slot_read, \
		.argument = "TIME", .help = "time to copy a state out of a slot (default 0)", .high = CLI_SECONDS_MOST, \
		.given = &(q).given[CLI_GIVEN_SLOT_READ]}, \
	CLI_GROUP("Slow memory and strategy"), \
	{.name = "tier", .kind = CLI_LIST, .into = &(q).tiers, .argument = "NAME:...", \
		.help = "slow memory, repeatable: capacity=,write=,read=,latency=,cpu=,cpu_fixed= (or " \
			"slots=), sync, duplex; cpu is the compute time lost per byte moved, or 300ms/1G"}, \
	{.name = "strategy", .kind = CLI_TEXT, .into = &(q).strategy, .argument = "NAME", \
		.help = "plan with this strategy alone (default: all)", .names = neap_strategy_name}, \
		CLI_PARAM_OPTIONS \
	{.name = "effort", .kind = CLI_INT, .into = &(q).params.effort, .argument = "N", \
		.help = "simulations that auto may run (default 2000)", .low = 1, .high = 1e9}

/* clang-format on */

/*
 * Makes q->problem of the options, or of the chain file they name; the caller frees q in every
 * case, and calls neap_problem_check. CLI_DONE or one line.
 */
int cli_question_complete(struct cli_question *q);
/* 1: one of these options was given. */
int cli_question_asked(const struct cli_question *q);
void cli_question_free(struct cli_question *q);

#endif
