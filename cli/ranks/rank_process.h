/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_process.h: this process as one of several that run the same command together. `neap` runs
 * alone (peers_none.c) and becomes `neap-mpi` where mpirun started it several times; that program
 * has the same commands, and exchanges numbers through MPI (peers_mpi.c).
 */
#ifndef NEAP_CLI_RANK_PROCESS_H
#define NEAP_CLI_RANK_PROCESS_H

#include <neap/peers.h>

/* Processes that mpirun says it started, and which of them this is; 1 and 0 where it says nothing.
 */
struct cli_launch {
	int count, rank;
};
struct cli_launch cli_launch_read(void);

/* 1: the command runs on all ranks; others run on rank 0, and the other ranks end at once. */
int cli_peers_shared(const char *command);

/*
 * Begins: *peers are the ranks, NULL: alone. `command` is what will run, NULL: none. Returns -1, or
 * the exit code of a process that is to end now. May become another program.
 */
int cli_peers_begin(const struct neap_peers **peers, const char *command, char **argv);

/* The ranks that cli_peers_begin found; NULL: alone. */
const struct neap_peers *cli_peers(void);

/*
 * Seconds that a rank waits for the others, at least; it waits four times as long as it ever
 * computed between two exchanges, if that is more. 0 and infinite: any time.
 */
void cli_peers_patience(double seconds);

/* Ends with the exit code of the command, together with the others or by ending them. */
int cli_peers_end(int code);

/* failure.c: from now on lines about failures are held back; the first, or "". */
void cli_hold_failures(void);
const char *cli_held_failure(void);

#endif
