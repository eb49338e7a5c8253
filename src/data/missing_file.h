/* SPDX-License-Identifier: Apache-2.0 */
/* missing_file.h: the line about a file or folder that cannot be read. */
#ifndef NEAP_DATA_MISSING_FILE_H
#define NEAP_DATA_MISSING_FILE_H

#include <stddef.h>

/*
 * -err, with the line "cannot read 'PATH': ..."; if there is no such file, with the name in its
 * folder that was probably meant.
 */
int neap__missing_file(int err, const char *path);
/* Prints the path of the file that was probably meant by the missing `path`. 1, or 0: none was. */
int neap__missing_near(char *room, size_t size, const char *path);

/*
 * Prints the runs next to `path`, "'words1' or 'words2'": those whose names begin as its name does,
 * else all, if they are few. 1, or 0 and "": there are none.
 */
int neap__runs_near(char *room, size_t size, const char *path);

/*
 * Prints the command that joins the texts of a folder to all.txt: those with the most frequent
 * extension. 1, or 0: there are none.
 */
int neap__join_texts(char *room, size_t size, const char *folder);

#endif
