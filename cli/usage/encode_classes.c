/* SPDX-License-Identifier: Apache-2.0 */
/* encode_classes.c: the names of classes that --classes of `neap encode` gives. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A class that is named twice would be two classes. */
static int check_names(char **name, int names, const char *classes)
{
	char **sorted = malloc((size_t)names * sizeof *sorted);
	int rc = sorted ? CLI_DONE : cli_fail("encode", -12);
	if (sorted) {
		memcpy(sorted, name, (size_t)names * sizeof *sorted);
		qsort(sorted, (size_t)names, sizeof *sorted, by_text);
	}
	for (int i = 1; rc == CLI_DONE && i < names; i++)
		if (strcmp(sorted[i - 1], sorted[i]) == 0)
			rc = cli_usage("encode",
				"--classes: '%s' names the class '%.100s' twice. Remove one of the "
				"lines",
				classes, sorted[i]);
	free(sorted);
	return rc;
}

int cli_encoded_classes(char ***name, int *names, char **text, const char *classes, const char *dir)
{
	char *at, *line;
	int n = 0, count = 0;
	if (!classes)
		return CLI_DONE;
	if (classes[strspn(classes, "0123456789")] == '\0') {
		long most = strlen(classes) < 6 ? strtol(classes, NULL, 10) : 0;
		if (most < 1 || most > 65535)
			return cli_usage(
				"encode", "--classes: '%s' must be between 1 and 65535", classes);
		count = (int)most;
		*text = malloc((size_t)count * 6);
		for (int i = 0, used = 0; *text && i < count; i++)
			used += snprintf(*text + used, 6, "%d", i) + 1;
	} else if (access(classes, F_OK) < 0) {
		return cli_encoded_no_classes(classes, dir);
	} else {
		int rc = cli_read_text(text, NULL, classes, "encode");
		if (rc != CLI_DONE)
			return rc;
		for (at = *text; (line = strsep(&at, "\n")) != NULL;)
			count++;
	}
	*name = calloc((size_t)count + 1, sizeof **name);
	if (!*text || !*name)
		return cli_fail("encode", -12);
	for (at = *text; count > 0; count--) {
		char *next = at + strlen(at) + 1;
		at[strcspn(at, "\r")] = '\0';
		if (*at)
			(*name)[n++] = at;
		at = next;
	}
	if (n < 1)
		return cli_usage("encode",
			"--classes: '%s' is empty. Write the name of one class "
			"per line",
			classes);
	*names = n;
	return check_names(*name, n, classes);
}
