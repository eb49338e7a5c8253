/* SPDX-License-Identifier: Apache-2.0 */
/* event_tables.h: recognizes tables of events, one event per row, and prints the command that
 * converts them. */
#ifndef NEAP_DATA_TABLES_EVENT_TABLES_H
#define NEAP_DATA_TABLES_EVENT_TABLES_H

#include <stddef.h>

enum { NEAP__SPIKE_COLUMNS = 2 /* time and channel of events without pixels */ };

/*
 * Prints the shell command that converts the file `path`, or all files of its kind in the folder,
 * to .npz files of events and renames the old ones. The number of columns of events that the first
 * file has: four of a camera, or NEAP__SPIKE_COLUMNS; 0, and "": it has none.
 */
int neap__event_tables_advise(char *room, size_t size, const char *path);
/*
 * Prints the command that renames the text files of a folder so that they are read as events. 1, or
 * 0: it has none, or other files that encode reads.
 */
int neap__event_texts_advise(char *room, size_t size, const char *dir);

#endif
