/* SPDX-License-Identifier: Apache-2.0 */
/* pattern_proposal.c: tries patterns on file names (pattern_proposal.h). */
#include "data/names/pattern_proposal.h"
#include "data/names/name_pattern.h"
#include "base/text.h"

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

/* Those that are tried for known names: also the last word of a name. */
static const char *const more[] = {
	"([A-Za-z]+)[^A-Za-z]*$", "_([^_]+)$", "-([^-]+)$", "^([^_]+)_", "^([^-]+)-"};

/* 1: the pattern finds one of the `count` names in all paths. */
static int finds_names(const char *text, const char *const *paths, int64_t npaths,
	const char *const *names, int count)
{
	struct neap__name_pattern *pattern;
	int ok = 1;

	if (neap__name_pattern_new(&pattern, text, "--label") < 0)
		return 0;
	for (int64_t i = 0; ok && i < npaths; i++) {
		char *name = NULL;
		int k = 0;
		ok = neap__name_pattern_find(pattern, &name, paths[i]) == 0;
		while (ok && k < count && (!names[k] || strcmp(names[k], name) != 0))
			k++;
		ok &= k < count;
		free(name);
	}
	neap__name_pattern_free(pattern);
	return ok;
}

static int by_length(const void *a, const void *b)
{
	const char *x = *(const char *const *)a, *y = *(const char *const *)b;
	size_t n = strlen(x), m = strlen(y);
	return n != m ? (n < m ? 1 : -1) : strcmp(x, y);
}

/* "(up|down)", longer names first, since one may begin as another; with `between`, a name is what
 * is between characters that are no letters. NULL: no memory. */
static char *one_of(const char *const *names, int count, int between)
{
	struct neap__text to = {0};
	const char **sorted = calloc((size_t)count + 1, sizeof *sorted);
	int known = 0;

	for (int k = 0; sorted && k < count; k++)
		if (names[k] && names[k][0])
			sorted[known++] = names[k];
	if (sorted)
		qsort(sorted, (size_t)known, sizeof *sorted, by_length);
	neap__text_add(&to, between ? "(?<![A-Za-z])(" : "(");
	for (int k = 0; k < known; k++) {
		neap__text_add(&to, "%s", k ? "|" : "");
		for (const char *at = sorted[k]; *at; at++)
			neap__text_add(&to, strchr("\\^$.|?*+()[]{}", *at) ? "\\%c" : "%c", *at);
	}
	neap__text_add(&to, between ? ")(?![A-Za-z])" : ")");
	free(sorted);
	if (!to.error && known)
		return to.data;
	neap__text_free(&to);
	return NULL;
}

char *neap__pattern_of_names(
	const char *const *paths, int64_t npaths, const char *const *names, int count)
{
	if (npaths > MOST_PATHS)
		npaths = MOST_PATHS;
	/* The last pattern matches all names. */
	for (int i = 0; i < PATTERNS - 1; i++)
		if (finds_names(patterns[i], paths, npaths, names, count))
			return strdup(patterns[i]);
	for (size_t i = 0; i < sizeof more / sizeof *more; i++)
		if (finds_names(more[i], paths, npaths, names, count))
			return strdup(more[i]);
	for (int between = 1; between >= 0; between--) {
		char *text = one_of(names, count, between);
		if (text && finds_names(text, paths, npaths, names, count))
			return text;
		free(text);
	}
	return NULL;
}
