/* SPDX-License-Identifier: Apache-2.0 */
/* label_doubts.h: classes by the names of files that are probably meant otherwise. */
#ifndef NEAP_DATA_LABEL_DOUBTS_H
#define NEAP_DATA_LABEL_DOUBTS_H

#include <stddef.h>

/*
 * The pattern for --label that fits the files in the folder whose class the pattern `label` cuts
 * inside a word, at a letter that is not ASCII, and one of them to file[size]. NULL: it cuts none,
 * or no other pattern fits.
 */
const char *neap__label_cut(char *file, size_t size, const char *dir, const char *label);
/* 1: two different names that are the same text, since one has a letter and its accent as one
 * character of Unicode (NFC), the other as two (NFD), as macOS writes names. Of Latin letters. */
int neap__label_same_text(const char *one, const char *other);

#endif
