/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suggest.h: the name that was probably meant, of those that are shown one after the other: the one
 * with the fewest letters to change (Damerau, 1964: one letter more, less, another one, or two
 * swapped), if they are few. Upper case and lower case are the same, and so are '-' and '_'.
 */
#ifndef NEAP_BASE_SUGGEST_H
#define NEAP_BASE_SUGGEST_H

#include <stddef.h>

struct neap__suggestion {
	const char *text; /* what was typed: not terminated */
	size_t length;
	const char *name; /* the nearest so far, or NULL */
	int changes;
};
void neap__suggest(struct neap__suggestion *suggestion, const char *name);
/* "; did you mean 'NAME'?", with `before` in front of the name, or "". Returns `room`. */
const char *neap__did_you_mean(
	char room[80], const struct neap__suggestion *suggestion, const char *before);

#endif
