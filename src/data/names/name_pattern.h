/* SPDX-License-Identifier: Apache-2.0 */
/*
 * name_pattern.h: a regular expression (PCRE2, UTF-8, where \w is a letter of any script) on file
 * names, whose group 1 is the name of a class or a speaker. The work for a name is bounded: a
 * pattern that would try without end is refused.
 */
#ifndef NEAP_DATA_NAME_PATTERN_H
#define NEAP_DATA_NAME_PATTERN_H

#include <neap/status.h>

struct neap__name_pattern;

/* `what`, the option it comes from, and `pattern` are borrowed. 0, NEAP_EUSAGE or -ENOMEM. */
int neap__name_pattern_new(struct neap__name_pattern **out, const char *pattern, const char *what);
/* Gives a copy of the name in the file name of `path`: in front of the extension if the pattern
 * matches there, and never the extension itself. 0, NEAP_EUSAGE or -ENOMEM. */
int neap__name_pattern_find(const struct neap__name_pattern *pattern, char **out, const char *path);
/* 1: the name that is found begins or ends inside a word, at a letter that is not ASCII, which a
 * range such as [A-Za-z] does not contain. */
int neap__name_pattern_cuts(const struct neap__name_pattern *pattern, const char *path);
void neap__name_pattern_free(struct neap__name_pattern *pattern);

#endif
