/* SPDX-License-Identifier: Apache-2.0 */
/* joined_texts.c: several texts where one is learned (cli.h). */
#include "cli.h"
#include "base/quote.h"
#include "base/text.h"
#include "base/text_like.h"

#include <stdio.h>
#include <string.h>

enum { LISTED = 6 /* files by their names; chosen */ };

/* The part up to the last slash, and the part from the last dot on. */
static void ends_of(const char *path, size_t *folder, const char **ending)
{
	const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');

	*folder = slash ? (size_t)(slash + 1 - path) : 0;
	*ending = dot && dot > path + *folder ? dot : "";
}

/* 1: all are in one folder and end alike, which the shell can list: "src/" and ".py". */
static int are_alike(const char *const *file, int count)
{
	size_t folder, here;
	const char *ending, *end;

	ends_of(file[0], &folder, &ending);
	for (int i = 1; i < count; i++) {
		ends_of(file[i], &here, &end);
		if (here != folder || strncmp(file[0], file[i], folder) != 0 ||
			strcmp(ending, end) != 0)
			return 0;
	}
	return *ending != '\0';
}

int cli_several_texts(const char *const *file, int count)
{
	struct neap__text names = {0};
	char folder[NEAP__QUOTED_BYTES + 1];
	const char *ending;
	size_t n;

	for (int i = 0; i < count; i++)
		if (!neap__text_like(file[i]))
			return 0;
	ends_of(file[0], &n, &ending);
	if (count > LISTED && are_alike(file, count)) {
		snprintf(folder, sizeof folder, "%.*s", (int)n, file[0]);
		neap__text_add(&names, "%s*%s", n ? neap__quoted(folder) : "", ending);
	} else {
		for (int i = 0; i < count; i++)
			neap__text_add(&names, "%s%s", i ? " " : "", neap__quoted(file[i]));
	}
	cli_usage("train",
		"%d texts are given, but one is learned. Join them: cat %s > all.txt; neap train "
		"--text all.txt",
		count, names.data ? names.data : "");
	neap__text_free(&names);
	return 1;
}
