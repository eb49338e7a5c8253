/* SPDX-License-Identifier: Apache-2.0 */
/* pattern_proposal.h: the pattern that a message about --label shows for the files of a folder. */
#ifndef NEAP_DATA_PATTERN_PROPOSAL_H
#define NEAP_DATA_PATTERN_PROPOSAL_H

#include <stdint.h>

/*
 * Of some regular expressions whose group 1 is a part of a file name, the first that finds several
 * names in all paths, on average in two or more each; else the first that finds several, but fewer
 * than paths, or the same name in all. NULL: there is none. It has no
 * quotes.
 */
const char *neap__pattern_proposal(const char *const *paths, int64_t count);
/* A pattern that finds one of the `count` names in each path, to be freed; NULL: none is known. */
char *neap__pattern_of_names(
	const char *const *paths, int64_t npaths, const char *const *names, int count);

#endif
