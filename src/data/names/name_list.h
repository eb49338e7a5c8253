/* SPDX-License-Identifier: Apache-2.0 */
/* name_list.h: a text file of names, a line each, such as classes or the files of a split. */
#ifndef NEAP_DATA_NAME_LIST_H
#define NEAP_DATA_NAME_LIST_H

#include <neap/status.h>

struct neap__name_list {
	char **name; /* in the order of the file */
	int count;
	char **sorted; /* the same strings */
};

/*
 * Reads files of 64 MiB at most into one list; empty lines are passed over, spaces at the end of a
 * line cut off. A name that stands twice is refused, and so is a list without names. NEAP_EFORMAT
 * or -errno.
 */
int neap__name_list_read(struct neap__name_list *list, const char *const *paths, int count);
void neap__name_list_free(struct neap__name_list *list);
int neap__name_list_has(const struct neap__name_list *list, const char *name);

#endif
