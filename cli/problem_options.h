/* SPDX-License-Identifier: Apache-2.0 */
/* problem_options.h: the options that tell `neap plan` its problem, in one place. */
#ifndef NEAP_CLI_PROBLEM_OPTIONS_H
#define NEAP_CLI_PROBLEM_OPTIONS_H

#include "chain_file.h"
#include "cli.h"

struct cli_question {
	struct neap_problem problem; /* chain.stages borrows from `chain` */
	struct neap_params params;
	const char *strategy, *file, *steps;
	struct cli_chain chain;
	struct cli_list tiers;
	int64_t slots;
	struct {
		int steps, memory, slots, state, tape, adjoint, record, advance, backward, log,
			replay;
	} given;
};

/* What stands there before the options are parsed. */
#define CLI_QUESTION_INIT                                                                          \
	{                                                                                          \
		.problem.chain = {.advance = 1, .backward = 2 }                                    \
	}

/* Rows of an option table that fill `q`. */
#define CLI_QUESTION_OPTIONS(q)                                                                    \
	{"steps", CLI_TEXT, &(q).steps, "T",                                                       \
		"length of the chain; A,B: two chains that meet in one loss", 0, 0, NULL,          \
		&(q).given.steps},                                                                 \
		{"chain", CLI_TEXT, &(q).file, "FILE",                                             \
			"chain file (JSON) instead of these numbers", 0, 0, NULL, NULL},           \
		{"state", CLI_SIZE, &(q).problem.chain.state, "BYTES", "state", 1, 9e18, NULL,     \
			&(q).given.state},                                                         \
		{"tape", CLI_SIZE, &(q).problem.chain.tape, "BYTES", "tape of a step", 0, 9e18,    \
			NULL, &(q).given.tape},                                                    \
		{"tape-max", CLI_SIZE, &(q).problem.chain.tape_max, "BYTES",                       \
			"largest tape of a step, where they vary", 0, 9e18, NULL, NULL},           \
		{"tape-mean", CLI_SIZE, &(q).problem.chain.tape_mean, "BYTES",                     \
			"what a step's tape takes in transfers, where they vary (default: tape)",  \
			0, 9e18, NULL, NULL},                                                      \
		{"adjoint", CLI_SIZE, &(q).problem.chain.adjoint, "BYTES",                         \
			"adjoint (default: the state's)", 0, 9e18, NULL, &(q).given.adjoint},      \
		{"log", CLI_SIZE, &(q).problem.chain.log, "BYTES",                                 \
			"log of a step, from which its tape can be made again", 1, 9e18, NULL,     \
			&(q).given.log},                                                           \
		{"memory", CLI_SIZE, &(q).problem.memory, "BYTES", "budget of fast memory", 0,     \
			9e18, NULL, &(q).given.memory},                                            \
		{"slots", CLI_INT, &(q).slots, "C",                                                \
			"classic problem: C checkpoints, the initial state's included", 0, 1e15,   \
			NULL, &(q).given.slots},                                                   \
		{"advance", CLI_TIME, &(q).problem.chain.advance, "TIME",                          \
			"a step forward (default 1s)", 0, 1e12, NULL, &(q).given.advance},         \
		{"record", CLI_TIME, &(q).problem.chain.record, "TIME",                            \
			"a step forward with tape (default: advance)", 0, 1e12, NULL,              \
			&(q).given.record},                                                        \
		{"backward", CLI_TIME, &(q).problem.chain.backward, "TIME",                        \
			"a step backward (default 2s)", 0, 1e12, NULL, &(q).given.backward},       \
		{"replay", CLI_TIME, &(q).problem.chain.replay, "TIME",                            \
			"a tape made again from state and log (default: record)", 0, 1e12, NULL,   \
			&(q).given.replay},                                                        \
		{"call", CLI_TIME, &(q).problem.chain.call, "TIME",                                \
			"what each call of the model costs besides its steps (default 0)", 0,      \
			1e12, NULL, NULL},                                                         \
		{"slot-write", CLI_TIME, &(q).problem.chain.slot_write, "TIME",                    \
			"copy of a state into a slot", 0, 1e12, NULL, NULL},                       \
		{"slot-read", CLI_TIME, &(q).problem.chain.slot_read, "TIME",                      \
			"copy of a state out of a slot", 0, 1e12, NULL, NULL},                     \
		{"tier", CLI_LIST, &(q).tiers, "NAME:...",                                         \
			"slow tier: capacity=,write=,read=,latency=,cpu=,cpu_fixed= (or slots=), " \
			"sync, "                                                                   \
			"duplex; "                                                                 \
			"cpu: computing lost a byte moved, or 300ms/1G",                           \
			0, 0, NULL, NULL},                                                         \
		{"strategy", CLI_TEXT, &(q).strategy, "NAME", "one strategy (default: all)", 0, 0, \
			NULL, NULL},                                                               \
		CLI_PARAM_OPTIONS((q).params),                                                     \
	{                                                                                          \
		"effort", CLI_INT, &(q).params.effort, "N",                                        \
			"simulations that auto may spend (default 2000)", 1, 1e9, NULL, NULL       \
	}

/*
 * Turns what was said into q->problem, of a chain file too. Free it in every
 * case. CLI_DONE or one line; neap_problem_check is still to come.
 */
int cli_question_complete(struct cli_question *q);
/* Was any of these options given? */
int cli_question_asked(const struct cli_question *q);
void cli_question_free(struct cli_question *q);

#endif
