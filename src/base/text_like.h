/* SPDX-License-Identifier: Apache-2.0 */
/* text_like.h: whether a file is a text. */
#ifndef NEAP_BASE_TEXT_LIKE_H
#define NEAP_BASE_TEXT_LIKE_H

/* 1: a file that begins as a text does, UTF-8 without control characters, is not empty, and is no
 * other kind of data by its name. */
int neap__text_like(const char *path);

#endif
