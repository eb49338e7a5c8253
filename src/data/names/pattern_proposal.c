/* SPDX-License-Identifier: Apache-2.0 */
/* pattern_proposal.c: tries patterns on file names (pattern_proposal.h). */
#include "data/names/pattern_proposal.h"
#include "data/names/name_pattern.h"

#include <stdlib.h>
#include <string.h>

/* Bounds on the work: enough to see that the same names come again. Chosen. */
enum { MOST_PATHS = 1000, MOST_NAMES = 100 };

/* Words before numbers, since numbers often count recordings; the last one matches all names. A
 * word with other letters than those of ASCII is what is between marks and digits. */
static const char *const patterns[] = {"^([A-Za-z]+)", "^([^0-9_-]+)", "^([0-9]+)",
	"[_-]([A-Za-z]+)", "[_-]([^0-9_-]+)", "[_-]([0-9]+)", "([A-Za-z]+)$", "([^0-9_-]+)$",
	"^(.+)$"};
enum { PATTERNS = sizeof patterns / sizeof patterns[0] };

/* Different names that the pattern finds; 0: it does not match all paths, finds a part of a word,
 * or too many names. */
static int names_found(
	const struct neap__name_pattern *pattern, const char *const *paths, int64_t count)
{
	char *found[MOST_NAMES] = {0}, *name;
	int names = 0, ok = 1;

	for (int64_t i = 0; ok && i < count; i++) {
		int k = 0;
		if (neap__name_pattern_cuts(pattern, paths[i]) ||
			neap__name_pattern_find(pattern, &name, paths[i]) < 0) {
			ok = 0;
			break;
		}
		while (k < names && strcmp(found[k], name) != 0)
			k++;
		ok = k < MOST_NAMES;
		if (ok && k == names)
			found[names++] = name;
		else
			free(name);
	}
	for (int k = 0; k < names; k++)
		free(found[k]);
	return ok ? names : 0;
}

static int is_ascii(const char *const *paths, int64_t count)
{
	for (int64_t i = 0; i < count; i++)
		for (const char *at = paths[i]; *at; at++)
			if ((unsigned char)*at & 0x80)
				return 0;
	return 1;
}

const char *neap__pattern_proposal(const char *const *paths, int64_t count)
{
	const char *best = NULL, *several = NULL, *matches = NULL;
	struct neap__name_pattern *pattern;

	if (count > MOST_PATHS)
		count = MOST_PATHS;
	int skips = is_ascii(paths, count);
	for (int i = 0; i < PATTERNS && !best && count > 0; i++) {
		if (skips && strstr(patterns[i], "[^"))
			continue;
		if (neap__name_pattern_new(&pattern, patterns[i], "--label") < 0)
			continue;
		int names = names_found(pattern, paths, count);
		if (names > 1 && 2 * names <= count)
			best = patterns[i];
		if (!several && names > 1 && names < count)
			several = patterns[i];
		if (!matches && names == 1)
			matches = patterns[i];
		neap__name_pattern_free(pattern);
	}
	return best ? best : several ? several : matches;
}
