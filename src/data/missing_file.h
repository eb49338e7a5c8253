/* SPDX-License-Identifier: Apache-2.0 */
/* missing_file.h: the line about a file or folder that cannot be read. */
#ifndef NEAP_DATA_MISSING_FILE_H
#define NEAP_DATA_MISSING_FILE_H

/*
 * -err, with the line "cannot read 'PATH': ..."; if there is no such file, with the name in its
 * folder that was probably meant.
 */
int neap__missing_file(int err, const char *path);

#endif
