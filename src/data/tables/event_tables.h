/* SPDX-License-Identifier: Apache-2.0 */
/* event_tables.h: recognizes tables of events, one event per row, and prints the command that
 * converts them. */
#ifndef NEAP_DATA_TABLES_EVENT_TABLES_H
#define NEAP_DATA_TABLES_EVENT_TABLES_H

#include <stddef.h>

/*
 * Prints the shell command that converts the file `path`, or all files of its kind in the folder,
 * to .npz files of events and renames the old ones. 1; 0, and "": the first file has no columns of
 * events.
 */
int neap__event_tables_advise(char *room, size_t size, const char *path);

#endif
