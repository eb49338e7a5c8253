/* SPDX-License-Identifier: Apache-2.0 */
/* recordings.c: walks folders, takes names from paths. */
#include "data/recordings.h"
#include "base/fail.h"
#include "base/grow.h"
#include "data/name_pattern.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DEEPEST = 32, MOST_NAMES = 65536 };

static int no_memory(void)
{
	return neap__fail_errno(ENOMEM, "listing recordings");
}

static int add_file(struct neap__recordings *all, const char *path)
{
	if (neap__grow(&all->file, &all->room, all->count + 1, sizeof *all->file) < 0)
		return no_memory();
	struct neap__recording *file = &all->file[all->count];
	memset(file, 0, sizeof *file);
	file->path = strdup(path);
	if (!file->path)
		return no_memory();
	all->count++;
	return 0;
}

static int walk(struct neap__recordings *all, const char *dir, int depth);

static int visit(struct neap__recordings *all, const char *dir, const char *name, int depth)
{
	struct stat st;
	char *path;
	size_t n = strlen(dir);
	if (asprintf(&path, "%s%s%s", dir, n > 0 && dir[n - 1] == '/' ? "" : "/", name) < 0)
		return no_memory();
	int rc = 0;
	if (stat(path, &st) < 0)
		rc = neap__fail_errno(errno, "cannot read '%s'", path);
	else if (S_ISDIR(st.st_mode))
		rc = walk(all, path, depth + 1);
	else if (S_ISREG(st.st_mode))
		rc = add_file(all, path);
	else
		rc = neap__fail(NEAP_EFORMAT,
			"'%s' is neither a file nor a folder; hide it (.name) or move it away",
			path);
	free(path);
	return rc;
}

static int walk(struct neap__recordings *all, const char *dir, int depth)
{
	if (depth > DEEPEST)
		return neap__fail(NEAP_EFORMAT,
			"'%s': folders more than %d deep; is a link going in circles?", dir,
			DEEPEST);
	DIR *folder = opendir(dir);
	if (!folder)
		return neap__fail_errno(errno, "cannot read folder '%s'", dir);
	int rc = 0;
	struct dirent *entry;
	errno = 0;
	while (rc == 0 && (entry = readdir(folder)) != NULL)
		if (entry->d_name[0] != '.')
			rc = visit(all, dir, entry->d_name, depth);
	if (rc == 0 && errno != 0)
		rc = neap__fail_errno(errno, "cannot read folder '%s'", dir);
	closedir(folder);
	return rc;
}

static int by_path(const void *a, const void *b)
{
	const struct neap__recording *x = a, *y = b;
	return strcmp(x->path, y->path);
}

/* Name of the folder a file is in; the file must be below `dir`, not in it. */
static int folder_name(char **out, const char *path, const char *dir)
{
	size_t n = strlen(dir);
	while (n > 1 && dir[n - 1] == '/')
		n--;
	const char *end = strrchr(path, '/'), *begin = end;
	while (begin > path + n && begin[-1] != '/')
		begin--;
	if (begin <= path + n || begin >= end)
		return neap__fail(NEAP_EUSAGE,
			"'%s' is in no folder of its class below '%s': say where the name of the "
			"class stands, as in --label '([0-9]+)_.*'",
			path, dir);
	*out = strndup(begin, (size_t)(end - begin));
	return *out ? 0 : no_memory();
}

static int name_files(
	struct neap__recordings *all, const char *dir, const char *label, const char *speaker)
{
	struct neap__name_pattern *by_label = NULL, *by_speaker = NULL;
	int rc = label ? neap__name_pattern_new(&by_label, label, "--label") : 0;
	if (rc == 0 && speaker)
		rc = neap__name_pattern_new(&by_speaker, speaker, "--speaker");
	for (int64_t i = 0; rc == 0 && i < all->count; i++) {
		struct neap__recording *file = &all->file[i];
		rc = label ? neap__name_pattern_find(by_label, &file->label, file->path)
			   : folder_name(&file->label, file->path, dir);
		if (rc == 0 && speaker)
			rc = neap__name_pattern_find(by_speaker, &file->speaker, file->path);
	}
	neap__name_pattern_free(by_label);
	neap__name_pattern_free(by_speaker);
	return rc;
}

static int is_number(const char *text)
{
	return text[strspn(text, "0123456789")] == '\0';
}

/* Numbers before words, by value whatever their length; words by their bytes. */
static int by_name(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;
	int nx = is_number(x), ny = is_number(y);
	if (nx != ny)
		return ny - nx;
	if (nx) {
		const char *p = x + strspn(x, "0"), *q = y + strspn(y, "0");
		size_t np = strlen(p), nq = strlen(q);
		if (np != nq)
			return np < nq ? -1 : 1;
		if (strcmp(p, q) != 0)
			return strcmp(p, q);
	}
	return strcmp(x, y);
}

/* Gives copies of the distinct names among n, sorted; sorts `name`. */
static int distinct(char **name, int64_t n, char ***out, int *count, const char *what)
{
	int64_t kept = 0;
	qsort(name, (size_t)n, sizeof *name, by_name);
	for (int64_t i = 0; i < n; i++)
		if (kept == 0 || strcmp(name[kept - 1], name[i]) != 0)
			name[kept++] = name[i];
	if (kept > MOST_NAMES)
		return neap__fail(NEAP_EUSAGE, "%lld different %s; at most %d are accepted",
			(long long)kept, what, MOST_NAMES);
	*out = calloc((size_t)kept, sizeof **out);
	if (!*out)
		return no_memory();
	for (*count = 0; *count < (int)kept; ++*count)
		if (!((*out)[*count] = strdup(name[*count])))
			return no_memory();
	return 0;
}

static int number_of(char *const *names, int count, const char *name)
{
	char **found = bsearch(&name, names, (size_t)count, sizeof *names, by_name);
	return found ? (int)(found - names) : -1;
}

static int number_files(struct neap__recordings *all, int speakers)
{
	char **name = malloc((size_t)all->count * sizeof *name);
	if (!name)
		return no_memory();
	for (int64_t i = 0; i < all->count; i++)
		name[i] = all->file[i].label;
	int rc = distinct(name, all->count, &all->classes, &all->nclasses, "classes");
	for (int64_t i = 0; speakers && i < all->count; i++)
		name[i] = all->file[i].speaker;
	if (rc == 0 && speakers)
		rc = distinct(name, all->count, &all->speakers, &all->nspeakers, "speakers");
	free(name);
	for (int64_t i = 0; rc == 0 && i < all->count; i++) {
		struct neap__recording *file = &all->file[i];
		file->class_number = number_of(all->classes, all->nclasses, file->label);
		file->speaker_number =
			speakers ? number_of(all->speakers, all->nspeakers, file->speaker) : -1;
	}
	return rc;
}

static int by_class(const void *a, const void *b)
{
	const struct neap__recording *x = a, *y = b;
	if (x->class_number != y->class_number)
		return x->class_number < y->class_number ? -1 : 1;
	if (x->speaker_number != y->speaker_number)
		return x->speaker_number < y->speaker_number ? -1 : 1;
	return strcmp(x->path, y->path);
}

void neap__recordings_sort(struct neap__recordings *all)
{
	qsort(all->file, (size_t)all->count, sizeof *all->file, by_class);
}

int neap__recordings_find(
	struct neap__recordings *all, const char *dir, const char *label, const char *speaker)
{
	memset(all, 0, sizeof *all);
	int rc = walk(all, dir, 0);
	if (rc == 0 && all->count == 0)
		rc = neap__fail(NEAP_EFORMAT, "'%s' holds no recordings", dir);
	if (rc == 0) {
		qsort(all->file, (size_t)all->count, sizeof *all->file, by_path);
		rc = name_files(all, dir, label, speaker);
	}
	if (rc == 0)
		rc = number_files(all, speaker != NULL);
	if (rc < 0)
		neap__recordings_free(all);
	return rc;
}

void neap__recordings_free(struct neap__recordings *all)
{
	for (int64_t i = 0; i < all->count; i++) {
		free(all->file[i].path);
		free(all->file[i].label);
		free(all->file[i].speaker);
	}
	for (int i = 0; i < all->nclasses; i++)
		free(all->classes[i]);
	for (int i = 0; i < all->nspeakers; i++)
		free(all->speakers[i]);
	free(all->file);
	free(all->classes);
	free(all->speakers);
	memset(all, 0, sizeof *all);
}
