/* SPDX-License-Identifier: Apache-2.0 */
/* name_list.c: reads a list of names and finds names in it by bisection. */
#include "data/names/name_list.h"
#include "base/fail.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_BYTES = 64 << 20, MOST_NAMES = 16 << 20, LONGEST = 4096 };

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add(struct neap__name_list *list, char *line, size_t n, const char *path, int number)
{
	while (n > 0 && strchr(" \t\r\n", line[n - 1]))
		n--;
	line[n] = '\0';
	if (n == 0)
		return 0;
	if (n > LONGEST || list->count == MOST_NAMES)
		return neap__fail(NEAP_EFORMAT,
			"'%s', line %d exceeds the limit of %d bytes per name or %d names. Split "
			"the list",
			path, number, LONGEST, MOST_NAMES);
	if ((list->count & (list->count - 1)) == 0) { /* doubles */
		size_t room = list->count ? (size_t)list->count * 2 : 1;
		char **more = realloc(list->name, room * sizeof *more);
		if (!more)
			return neap__fail_errno(ENOMEM, "'%s'", path);
		list->name = more;
	}
	list->name[list->count] = strdup(line);
	if (!list->name[list->count])
		return neap__fail_errno(ENOMEM, "'%s'", path);
	list->count++;
	return 0;
}

static int sort(struct neap__name_list *list, const char *path)
{
	if (list->count == 0)
		return neap__fail(NEAP_EFORMAT, "'%s' has no names; write one per line", path);
	list->sorted = malloc((size_t)list->count * sizeof *list->sorted);
	if (!list->sorted)
		return neap__fail_errno(ENOMEM, "'%s'", path);
	memcpy(list->sorted, list->name, (size_t)list->count * sizeof *list->sorted);
	qsort(list->sorted, (size_t)list->count, sizeof *list->sorted, by_bytes);
	for (int i = 1; i < list->count; i++)
		if (strcmp(list->sorted[i - 1], list->sorted[i]) == 0)
			return neap__fail(NEAP_EFORMAT,
				"'%s' contains '%.200s' twice; remove one of them", path,
				list->sorted[i]);
	return 0;
}

static int read_file(struct neap__name_list *list, const char *path)
{
	struct stat st;
	if (stat(path, &st) < 0 && errno == ENOENT)
		return neap__fail(-ENOENT,
			"there is no file '%s'. Write a list with one path per line, or check the "
			"name of the file",
			path);
	if (stat(path, &st) < 0)
		return neap__fail_errno(errno, "cannot read '%s'", path);
	if (!S_ISREG(st.st_mode) || st.st_size > MOST_BYTES)
		return neap__fail(NEAP_EFORMAT,
			"'%s' must be a text file of at most %d MiB, one name per line", path,
			MOST_BYTES >> 20);
	FILE *file = fopen(path, "re");
	if (!file)
		return neap__fail_errno(errno, "cannot read '%s'", path);
	char *line = NULL;
	size_t room = 0;
	ssize_t n;
	int rc = 0;
	for (int number = 1; rc == 0 && (n = getline(&line, &room, file)) >= 0; number++)
		rc = strlen(line) == (size_t)n ? add(list, line, (size_t)n, path, number)
					       : neap__fail(NEAP_EFORMAT,
							 "'%s', line %d contains a zero byte; it "
							 "must be a text file, one name per line",
							 path, number);
	if (rc == 0 && ferror(file))
		rc = neap__fail_errno(EIO, "cannot read '%s'", path);
	free(line);
	fclose(file);
	return rc;
}

int neap__name_list_read(struct neap__name_list *list, const char *const *paths, int count)
{
	int rc = 0;
	memset(list, 0, sizeof *list);
	for (int i = 0; rc == 0 && i < count; i++)
		rc = read_file(list, paths[i]);
	if (rc == 0)
		rc = sort(list, paths[count - 1]);
	if (rc < 0)
		neap__name_list_free(list);
	return rc;
}

void neap__name_list_free(struct neap__name_list *list)
{
	for (int i = 0; i < list->count; i++)
		free(list->name[i]);
	free(list->name);
	free(list->sorted);
	memset(list, 0, sizeof *list);
}

int neap__name_list_has(const struct neap__name_list *list, const char *name)
{
	return bsearch(&name, list->sorted, (size_t)list->count, sizeof *list->sorted, by_bytes) !=
	       NULL;
}
