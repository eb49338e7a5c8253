/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quote.h: paths and names in commands that messages suggest, so that a command works as it stands
 * whatever characters they have. The results are valid until the thread's eighth call after; texts
 * of more than 1000 bytes are cut.
 */
#ifndef NEAP_BASE_QUOTE_H
#define NEAP_BASE_QUOTE_H

/* 'TEXT': one word of a shell command. */
const char *neap__quoted(const char *text);
/* The same, without quotes if the shell needs none, as for most names of columns. */
const char *neap__word(const char *text);
/* 'TEXT': a string of Python, which may stand between the double quotes of a shell command. */
const char *neap__python_quoted(const char *text);

#endif
