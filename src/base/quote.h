/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quote.h: paths and names in commands that messages suggest, so that a command works as it stands
 * whatever characters they have. The results are valid until the thread's eighth call after. A text
 * of more than NEAP__QUOTED_BYTES with its quotes is not cut, which would be a command for another
 * file, but replaced by three dots.
 */
#ifndef NEAP_BASE_QUOTE_H
#define NEAP_BASE_QUOTE_H

/* Chosen: a detail line has room for three of them and their command. */
enum { NEAP__QUOTED_BYTES = 500 };

/* 'TEXT': one word of a shell command. */
const char *neap__quoted(const char *text);
/* The same, without quotes if the shell needs none, as for most names of columns. */
const char *neap__word(const char *text);
/* 'TEXT': a string of Python, which may stand between the double quotes of a shell command. */
const char *neap__python_quoted(const char *text);

#endif
