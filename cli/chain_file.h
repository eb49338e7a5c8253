/* SPDX-License-Identifier: Apache-2.0 */
/* chain_file.h: chain files (JSON), as `neap plan --chain` reads them. */
#ifndef NEAP_CLI_CHAIN_FILE_H
#define NEAP_CLI_CHAIN_FILE_H

#include "cli.h"

union cli_value {
	uint64_t bytes;
	double seconds;
};

struct cli_column {
	int given;
	union cli_value scalar;
	union cli_value *list; /* NULL: the number holds for every step */
};

struct cli_chain {
	struct cli_column advance, record, backward, state, tape, advance_tmp, record_tmp,
		backward_tmp;
	int adjoint_given, flags_given, replay_given;
	char device[32];	   /* that was fastest, such as cuda:clusters=8; "": not given */
	struct neap_stages stages; /* borrows the lists */
};

/*
 * Reads a file into problem->chain and tiers; per-step lists stay with `chain`,
 * which outlives the problem. Free it in every case. CLI_DONE or one line.
 */
int cli_chain_read(struct cli_chain *chain, struct neap_problem *problem, const char *path,
	const char *command);
/* The same from text that came from `path`, which the lines name. */
int cli_chain_parse(struct cli_chain *chain, struct neap_problem *problem, const char *text,
	const char *path, const char *command);
void cli_chain_free(struct cli_chain *chain);

#endif
