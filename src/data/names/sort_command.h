/* SPDX-License-Identifier: Apache-2.0 */
/* sort_command.h: shell commands that sort recordings into one folder per class, and rename them.
 */
#ifndef NEAP_DATA_NAMES_SORT_COMMAND_H
#define NEAP_DATA_NAMES_SORT_COMMAND_H

#include <stddef.h>

/*
 * Prints a command that copies the recordings which the table `labels` lists, in `dir` or by their
 * paths, with or without the extension .wav, to sorted/CLASS/, with %2F for the slashes of their
 * paths. Fields are separated by commas,
 * semicolons or tabs.
 */
void neap__sort_command(char *room, size_t size, const char *labels, const char *dir);
/* Prints a command that renames the text files in `dir` as files of events; returns room. */
const char *neap__rename_events(char *room, size_t size, const char *dir);

#endif
