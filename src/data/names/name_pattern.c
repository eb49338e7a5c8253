/* SPDX-License-Identifier: Apache-2.0 */
/* name_pattern.c: compiles a pattern and matches it, with limits on both. */
#include "data/names/name_pattern.h"
#include "base/fail.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <errno.h>
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST 1000	  /* characters of a pattern */
#define MOST_TRIES 100000 /* steps of a match: milliseconds */
#define MOST_HEAP 1024	  /* KiB */

/* Letters of all scripts are \w, and a character is matched as a whole; names that are not UTF-8
 * match as far as they are. */
#ifdef PCRE2_MATCH_INVALID_UTF /* since 10.34 */
#define OPTIONS (PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF)
#else
#define OPTIONS 0
#endif

struct neap__name_pattern {
	const char *text, *what;
	pcre2_code *code;
	pcre2_match_data *match;
	pcre2_match_context *limits;
};

static int compile(struct neap__name_pattern *p)
{
	int error;
	PCRE2_SIZE at;
	PCRE2_UCHAR why[128];
	uint32_t groups = 0;
	if (strlen(p->text) > LONGEST)
		return neap__fail(NEAP_EUSAGE, "%s: the pattern is longer than %d characters",
			p->what, LONGEST);
	p->code = pcre2_compile(
		(PCRE2_SPTR)p->text, PCRE2_ZERO_TERMINATED, OPTIONS, &error, &at, NULL);
	if (!p->code && error < 0) /* the pattern is not UTF-8 */
		p->code = pcre2_compile(
			(PCRE2_SPTR)p->text, PCRE2_ZERO_TERMINATED, 0, &error, &at, NULL);
	if (!p->code) {
		pcre2_get_error_message(error, why, sizeof why);
		return neap__fail(NEAP_EUSAGE, "%s '%s': at character %zu: %s. Correct the pattern",
			p->what, p->text, (size_t)at, (const char *)why);
	}
	pcre2_pattern_info(p->code, PCRE2_INFO_CAPTURECOUNT, &groups);
	if (groups == 0)
		return neap__fail(NEAP_EUSAGE,
			"%s '%s' has no group. Put the part that is the name in parentheses",
			p->what, p->text);
	p->match = pcre2_match_data_create_from_pattern(p->code, NULL);
	p->limits = pcre2_match_context_create(NULL);
	if (!p->match || !p->limits)
		return neap__fail_errno(ENOMEM, "%s", p->what);
	pcre2_set_match_limit(p->limits, MOST_TRIES);
	pcre2_set_depth_limit(p->limits, MOST_TRIES);
	pcre2_set_heap_limit(p->limits, MOST_HEAP);
	return 0;
}

int neap__name_pattern_new(struct neap__name_pattern **out, const char *pattern, const char *what)
{
	struct neap__name_pattern *p = *out = calloc(1, sizeof *p);
	if (!p)
		return neap__fail_errno(ENOMEM, "%s", what);
	p->text = pattern;
	p->what = what;
	int rc = compile(p);
	if (rc < 0) {
		neap__name_pattern_free(p);
		*out = NULL;
	}
	return rc;
}

/* Group 1 of a match in the first `bytes` of a name: 1, 0 if there is none, or NEAP_EUSAGE. */
static int match(const struct neap__name_pattern *p, const char *name, size_t bytes,
	PCRE2_SIZE place[2], const char *path)
{
	int rc = pcre2_match(p->code, (PCRE2_SPTR)name, bytes, 0, 0, p->match, p->limits);
	const PCRE2_SIZE *at = pcre2_get_ovector_pointer(p->match);
	if (rc == PCRE2_ERROR_MATCHLIMIT || rc == PCRE2_ERROR_DEPTHLIMIT ||
		rc == PCRE2_ERROR_HEAPLIMIT)
		return neap__fail(NEAP_EUSAGE,
			"%s '%s' takes too long on '%s'. Rewrite it without nested repetitions",
			p->what, p->text, path);
	if (rc < 2 || at[2] == PCRE2_UNSET || at[3] <= at[2])
		return 0;
	place[0] = at[2];
	place[1] = at[3];
	return 1;
}

static int no_match(const struct neap__name_pattern *p, const char *name, const char *path)
{
	int is_label = strcmp(p->what, "--label") == 0;
	if (strchr(p->text, '/') && name > path)
		return neap__fail(NEAP_EUSAGE,
			"%s '%s' does not match '%s', because only the file name '%s' is searched, "
			"not its folders. %s",
			p->what, p->text, path, name,
			is_label ? "Remove --label to use the folder that each file is in as its "
				   "class, or change the pattern"
				 : "Change the pattern to a part of the file name");
	int is_ascii = 1;
	for (const char *at = name; *at; at++)
		is_ascii &= !((unsigned char)*at & 0x80);
	return neap__fail(NEAP_EUSAGE,
		"%s '%s' does not match '%s'. %sChange the pattern, or move the file away", p->what,
		p->text, path,
		is_ascii || !strstr(p->text, "-")
			? ""
			: "Ranges such as [A-Za-z] contain only ASCII letters; \\p{L} matches "
			  "every "
			  "letter, and [^_]+ what is between underscores. ");
}

/*
 * Finds group 1 in the file name of `path`: in front of the extension, or with it if the pattern
 * does not match there. As match, with the name and the length of its first part.
 */
static int locate(const struct neap__name_pattern *p, const char *path, const char **out,
	size_t *stem, PCRE2_SIZE place[2])
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');
	size_t bytes = strlen(name);
	*out = name;
	*stem = dot && dot > name ? (size_t)(dot - name) : bytes;
	int found = match(p, name, *stem, place, path);
	return found == 0 && *stem < bytes ? match(p, name, bytes, place, path) : found;
}

/* 1: a letter that is not ASCII begins there, by the first byte in UTF-8: those of 0xC2 and 0xE2
 * are signs and dashes, and those from 0xF0 on mostly symbols. */
static int is_foreign_letter(const char *at)
{
	unsigned char lead = (unsigned char)*at;
	return lead >= 0xC3 && lead < 0xF0 && lead != 0xE2;
}

int neap__name_pattern_cuts(const struct neap__name_pattern *p, const char *path)
{
	const char *name;
	size_t stem;
	PCRE2_SIZE place[2];
	if (locate(p, path, &name, &stem, place) <= 0)
		return 0;
	const char *before = name + place[0];
	while (before > name && ((unsigned char)*--before & 0xC0) == 0x80)
		;
	return is_foreign_letter(name + place[1]) || (place[0] > 0 && is_foreign_letter(before));
}

/* The extension is never the name itself. */
int neap__name_pattern_find(const struct neap__name_pattern *p, char **out, const char *path)
{
	const char *name;
	size_t stem;
	PCRE2_SIZE place[2] = {0, 0};
	int found;
	NEAP_TRY(found = locate(p, path, &name, &stem, place));
	if (found && place[0] > stem)
		return neap__fail(NEAP_EUSAGE,
			"%s '%s' matches only the extension of '%s'. Change the pattern so that "
			"group 1 matches a part of the name",
			p->what, p->text, path);
	if (!found)
		return no_match(p, name, path);
	*out = strndup(name + place[0], place[1] - place[0]);
	return *out ? 0 : neap__fail_errno(ENOMEM, "listing recordings");
}

void neap__name_pattern_free(struct neap__name_pattern *p)
{
	if (!p)
		return;
	pcre2_match_context_free(p->limits);
	pcre2_match_data_free(p->match);
	pcre2_code_free(p->code);
	free(p);
}
