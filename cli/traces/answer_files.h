/* SPDX-License-Identifier: Apache-2.0 */
/* answer_files.h: the files that `neap predict` answers for: those given, and those in folders. */
#ifndef NEAP_CLI_ANSWER_FILES_H
#define NEAP_CLI_ANSWER_FILES_H

#include <stddef.h>

struct cli_answer_files {
	char **path; /* [count] of a folder in the order of their names */
	size_t count;
	int named;	/* 1: answers show the name of the file: there are several, or a folder */
	size_t skipped; /* files of other kinds in folders */
	const char *folder; /* the only argument, if it is a folder with files; NULL; borrowed */
};

/* Lists the files; `files` is all zero, and to be freed in any case. CLI_DONE or one line. */
int cli_answer_files(
	struct cli_answer_files *files, const char *const *given, int count, const char *command);
/*
 * `line` is about one file of the folder, and may propose a command that encodes this file: then
 * room[size] has it with the command for the folder. Else `line` itself is returned.
 */
const char *cli_answer_files_all(char *room, size_t size, const struct cli_answer_files *files,
	const char *path, const char *line);
void cli_answer_files_free(struct cli_answer_files *files);

#endif
