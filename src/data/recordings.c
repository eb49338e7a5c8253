/* SPDX-License-Identifier: Apache-2.0 */
/* recordings.c: walks folders, takes names from paths. */
#include "data/recordings.h"
#include "data/missing_file.h"
#include "base/fail.h"
#include "base/grow.h"
#include "base/print.h"
#include "data/names/name_list.h"
#include "data/names/name_pattern.h"
#include "data/names/sort_command.h"

#include <dirent.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const neap__sound_endings[] = {".wav", ".flac", ".aiff", ".aif", ".aifc", NULL};
const char *const neap__table_endings[] = {".csv", ".tsv", NULL};
#define ENDING(comma, ending) ending,
const char *const neap__event_endings[] = {NEAP__EVENT_ENDINGS(ENDING) NULL};

enum { DEEPEST = 32, MOST_NAMES = 65536 };

static int no_memory(void)
{
	return neap__fail_errno(ENOMEM, "listing recordings");
}

static int add_file(struct neap__recordings *all, const char *path, int stray)
{
	if (neap__grow(&all->file, &all->room, all->count + 1, sizeof *all->file) < 0)
		return no_memory();
	struct neap__recording *file = &all->file[all->count];
	*file = (struct neap__recording){.stray = stray};
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
	int rc = 0, is_there = stat(path, &st) == 0, hidden = name[0] == '.';
	if (!is_there && errno != ENOENT && errno != ELOOP)
		rc = neap__fail_errno(errno, "cannot read '%s'", path);
	else if (!is_there || !S_ISDIR(st.st_mode))
		rc = add_file(all, path, hidden ? 1 : is_there && S_ISREG(st.st_mode) ? 0 : 2);
	else if (!hidden)
		rc = walk(all, path, depth + 1);
	free(path);
	return rc;
}

static int walk(struct neap__recordings *all, const char *dir, int depth)
{
	if (depth > DEEPEST)
		return neap__fail(NEAP_EFORMAT,
			"'%s' has folders nested more than %d deep. Check for a link that points "
			"to a parent folder",
			dir, DEEPEST);
	DIR *folder = opendir(dir);
	if (!folder)
		return neap__fail_errno(errno, "cannot read folder '%s'", dir);
	int rc = 0;
	struct dirent *entry;
	while (rc == 0 && (errno = 0, entry = readdir(folder)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			rc = visit(all, dir, entry->d_name, depth);
	if (rc == 0 && errno != 0)
		rc = neap__fail_errno(errno, "cannot read folder '%s'", dir);
	closedir(folder);
	return rc;
}

int neap__recordings_add(struct neap__recordings *all, const char *path)
{
	return add_file(all, path, 0);
}

static int by_path(const void *a, const void *b)
{
	const struct neap__recording *x = a, *y = b;
	return strcmp(x->path, y->path);
}

int neap__recordings_ends(const char *path, const char *const *endings)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	for (size_t n = strlen(name), i = 0; endings[i]; i++)
		if (n >= strlen(endings[i]) &&
			strcasecmp(name + n - strlen(endings[i]), endings[i]) == 0)
			return 1;
	return 0;
}

/* Name of the folder a file is in; the file must be below `dir`, not in it. */
static int folder_name(char **out, const struct neap__recordings *all, const char *path,
	const char *dir, const struct neap__recordings_choice *choice)
{
	size_t n = strlen(dir);
	while (n > 1 && dir[n - 1] == '/')
		n--;
	const char *end = strrchr(path, '/'), *begin = end;
	while (begin > path + n && begin[-1] != '/')
		begin--;
	if (begin <= path + n || begin >= end)
		return choice->lines ? choice->lines->no_class(all, path, dir, choice->endings)
				     : neap__fail(NEAP_EFORMAT, "'%s' has no class", path);
	*out = strndup(begin, (size_t)(end - begin));
	return *out ? 0 : no_memory();
}

int neap__recordings_folder_name(char **out, const char *path)
{
	const char *slash = strrchr(path, '/');
	char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	char *resolved = folder ? realpath(folder, NULL) : NULL;
	int rc = 0;
	if (!folder)
		rc = no_memory();
	else if (!resolved)
		rc = neap__fail_errno(errno, "cannot find the folder of '%s'", path);
	free(folder);
	NEAP_TRY(rc);
	const char *name = strrchr(resolved, '/') + 1; /* a resolved path begins with a slash */
	*out = strdup(*name ? name : "recording");
	free(resolved);
	return *out ? 0 : no_memory();
}

static int name_files(struct neap__recordings *all, const char *dir, int alone,
	const struct neap__recordings_choice *choice)
{
	struct neap__name_pattern *by_label = NULL, *by_speaker = NULL;
	const char *label = choice->label, *speaker = choice->speaker;
	if (label && !strchr(label, '('))
		return choice->lines ? choice->lines->no_group(all, label, choice->endings)
				     : neap__fail(NEAP_EUSAGE, "'%s' has no group", label);
	int rc = label ? neap__name_pattern_new(&by_label, label, "--label") : 0;
	if (rc == 0 && speaker)
		rc = neap__name_pattern_new(&by_speaker, speaker, "--speaker");
	for (int64_t i = 0; rc == 0 && i < all->count; i++) {
		struct neap__recording *file = &all->file[i];
		rc = label   ? neap__name_pattern_find(by_label, &file->label, file->path)
		     : alone ? neap__recordings_folder_name(&file->label, file->path)
			     : folder_name(&file->label, all, file->path, dir, choice);
		if (rc == 0 && speaker)
			rc = neap__name_pattern_find(by_speaker, &file->speaker, file->path);
	}
	neap__name_pattern_free(by_label);
	neap__name_pattern_free(by_speaker);
	return rc;
}

static void free_file(struct neap__recording *file)
{
	free(file->path);
	free(file->label);
	free(file->speaker);
}

/* Path below `dir`, as lists of files have it. */
static const char *below(const char *path, const char *dir)
{
	path += strlen(dir);
	while (*path == '/')
		path++;
	return path;
}

/* What is wrong with a folder of which nothing counts. */
static int none_kept(const char *dir, const struct neap__recordings_choice *choice)
{
	char command[NEAP__DETAIL_BYTES], rename[500];
	int has_texts = neap__join_texts(command, sizeof command, dir);
	if (choice->unlisted)
		return neap__fail(NEAP_EFORMAT,
			"'%s': --split and --without leave none of its %lld files to be encoded. "
			"Check that their lines are paths below that folder",
			dir, (long long)choice->unlisted);
	size_t n = strlen(choice->other);
	if (has_texts && n > 4 && strcasecmp(choice->other + n - 4, ".txt") == 0)
		return neap__fail(NEAP_EFORMAT,
			"'%s' contains no file that encode reads, but %lld of other kinds, such as "
			"'%s'. If they are texts to learn, join them: %s; neap train --text "
			"all.txt. %sIf each line is an event, t x y p, rename them: %s",
			dir, (long long)choice->others, choice->other, command,
			strchr(choice->other, '/')
				? "If their folders are classes, see 'Classes of texts' in "
				  "docs/data.md. "
				: "",
			neap__rename_events(rename, sizeof rename, dir));
	if (has_texts)
		return neap__fail(NEAP_EFORMAT,
			"'%s' contains no file that encode reads, but %lld of other kinds, such as "
			"'%s'. To learn its texts as one: %s; neap train --text all.txt",
			dir, (long long)choice->others, choice->other, command);
	return neap__fail(NEAP_EFORMAT,
		"'%s' contains no file that encode reads, but %lld of other kinds, such as '%s'. "
		"It "
		"reads recordings (.wav, .flac, .aiff; others with --any-sound), events "
		"(" NEAP__EVENT_ENDINGS(NEAP__LISTED) ") and tables (.csv, .tsv); "
						      "docs/own-data.md lists other kinds of data",
		dir, (long long)choice->others, choice->other);
}

/* 1: the paths are those of one file. */
static int is_same_file(const char *path, const struct stat *other)
{
	struct stat st;
	return stat(path, &st) == 0 && st.st_dev == other->st_dev && st.st_ino == other->st_ino;
}

/* Keeps the files that count. */
static int keep_files(
	struct neap__recordings *all, const char *dir, struct neap__recordings_choice *choice)
{
	struct stat apart;
	int64_t kept = 0;
	int rc = 0, has_apart = choice->apart && stat(choice->apart, &apart) == 0 &&
				neap__recordings_folder(dir);
	for (int64_t i = 0; i < all->count; i++) {
		struct neap__recording *file = &all->file[i];
		const char *name = below(file->path, dir);
		if (has_apart && is_same_file(file->path, &apart)) {
			free_file(file);
			continue;
		}
		int known = !file->stray && (!choice->endings || neap__recordings_ends(file->path,
									 choice->endings));
		int listed = (!choice->only || neap__name_list_has(choice->only, name)) &&
			     (!choice->without || !neap__name_list_has(choice->without, name));
		if (!known && file->stray != 1 && choice->strict && rc == 0)
			rc = neap__fail(NEAP_EFORMAT,
				"'%s' is of a kind that encode does not read. Remove --strict to "
				"skip such "
				"files",
				file->path);
		if (!known && choice->others == 0)
			neap__print(choice->other, sizeof choice->other, "%s", name);
		choice->others += !known;
		choice->unlisted += known && !listed;
		if (known && listed)
			all->file[kept++] = *file;
		else
			free_file(file);
	}
	all->count = kept;
	if (rc < 0 || kept)
		return rc;
	return choice->lines && !neap__recordings_folder(dir) && !choice->unlisted
		       ? choice->lines->wrong_file(dir)
		       : none_kept(dir, choice);
}

/* Every name in a list is a file's: a list of other files would go unnoticed. */
static int check_list(const struct neap__recordings *all, const char *dir, const char *option,
	const struct neap__name_list *list)
{
	int64_t found = 0;
	if (!list)
		return 0;
	for (int64_t i = 0; i < all->count; i++)
		found += neap__name_list_has(list, below(all->file[i].path, dir));
	if (found == list->count)
		return 0;
	for (int k = 0; k < list->count; k++) {
		const char *name = list->name[k];
		int there = 0;
		for (int64_t i = 0; i < all->count && !there; i++)
			there = strcmp(below(all->file[i].path, dir), name) == 0;
		if (!there)
			return neap__fail(NEAP_EUSAGE,
				"%s: '%.200s' is not among the %lld files of '%s'. List paths "
				"relative to that folder",
				option, name, (long long)all->count, dir);
	}
	return 0;
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
		return neap__fail(NEAP_EUSAGE,
			"there are %lld different %s, more than %d. Check the pattern that finds "
			"them",
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

static int given_number(const struct neap__recordings_choice *choice, const char *name)
{
	for (int k = 0; k < choice->nclasses; k++)
		if (strcmp(choice->classes[k], name) == 0)
			return k;
	return -1;
}

/* The first few different labels, "left, right, ...", for a line that refuses others. */
static const char *list_labels(char *room, size_t size, const struct neap__recordings *all)
{
	enum { SHOWN = 8 };
	const char *shown[SHOWN];
	int count = 0;
	size_t n = 0;
	room[0] = '\0';
	for (int64_t i = 0; i < all->count && n < size; i++) {
		int k = 0;
		while (k < count && strcmp(shown[k], all->file[i].label) != 0)
			k++;
		if (k < count)
			continue;
		if (count == SHOWN) {
			neap__print(room + n, size - n, ", ...");
			break;
		}
		shown[count++] = all->file[i].label;
		n += (size_t)neap__print(
			room + n, size - n, "%s%.40s", k ? ", " : "", all->file[i].label);
	}
	return room;
}

/* Classes are those that were given; files of others do not count. */
static int number_given(
	struct neap__recordings *all, const char *dir, struct neap__recordings_choice *choice)
{
	int64_t kept = 0;
	char found[400];
	list_labels(found, sizeof found, all);
	all->classes = calloc((size_t)choice->nclasses, sizeof *all->classes);
	if (!all->classes)
		return no_memory();
	for (; all->nclasses < choice->nclasses; all->nclasses++)
		if (!(all->classes[all->nclasses] = strdup(choice->classes[all->nclasses])))
			return no_memory();
	for (int64_t i = 0; i < all->count; i++) {
		struct neap__recording *file = &all->file[i];
		file->class_number = given_number(choice, file->label);
		if (file->class_number < 0 && choice->strict) {
			int rc = neap__fail(NEAP_EUSAGE,
				"'%s': class '%.100s' is not among the %d of --classes. Add it "
				"there, or remove --strict to skip such files",
				file->path, file->label, choice->nclasses);
			memmove(all->file + kept, all->file + i,
				(size_t)(all->count - i) * sizeof *all->file);
			all->count -= i - kept;
			return rc;
		}
		choice->strangers += file->class_number < 0;
		if (file->class_number >= 0)
			all->file[kept++] = *file;
		else
			free_file(file);
	}
	all->count = kept;
	return kept ? 0
		    : neap__fail(NEAP_EUSAGE,
			      "no file of '%s' has a class of --classes (the first is '%.100s'). "
			      "Leave out --classes; the classes found are %s",
			      dir, choice->classes[0], found);
}

static int number_found(struct neap__recordings *all, char **name)
{
	for (int64_t i = 0; i < all->count; i++)
		name[i] = all->file[i].label;
	NEAP_TRY(distinct(name, all->count, &all->classes, &all->nclasses, "classes"));
	for (int64_t i = 0; i < all->count; i++)
		all->file[i].class_number =
			number_of(all->classes, all->nclasses, all->file[i].label);
	return 0;
}

int neap__recordings_number(
	struct neap__recordings *all, const char *dir, struct neap__recordings_choice *choice)
{
	int speakers = choice->speaker != NULL;
	char **name = malloc((size_t)all->count * sizeof *name);
	if (!name)
		return no_memory();
	int rc = choice->classes ? number_given(all, dir, choice) : number_found(all, name);
	for (int64_t i = 0; rc == 0 && speakers && i < all->count; i++)
		name[i] = all->file[i].speaker;
	if (rc == 0 && speakers)
		rc = distinct(name, all->count, &all->speakers, &all->nspeakers, "speakers");
	free(name);
	for (int64_t i = 0; rc == 0 && i < all->count; i++)
		all->file[i].speaker_number =
			speakers ? number_of(all->speakers, all->nspeakers, all->file[i].speaker)
				 : -1;
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
	struct neap__recordings *all, const char *dir, struct neap__recordings_choice *choice)
{
	struct stat st;
	memset(all, 0, sizeof *all);
	if (stat(dir, &st) < 0)
		return neap__missing_file(errno, dir);
	int alone = S_ISREG(st.st_mode);
	int rc = alone ? add_file(all, dir, 0) : walk(all, dir, 0);
	if (rc == 0 && all->count == 0)
		rc = neap__fail(
			NEAP_EFORMAT, "the folder '%s' is empty. Put the recordings into it", dir);
	if (rc == 0)
		qsort(all->file, (size_t)all->count, sizeof *all->file, by_path);
	if (rc == 0)
		rc = check_list(all, dir, "--split", choice->only);
	if (rc == 0)
		rc = check_list(all, dir, "--without", choice->without);
	if (rc == 0)
		rc = keep_files(all, dir, choice);
	for (int64_t i = 0; rc == 0 && i < all->count; i++)
		all->file[i].class_number = all->file[i].speaker_number = -1;
	if (rc == 0 && !choice->nameless)
		rc = name_files(all, dir, alone, choice);
	if (rc == 0 && !choice->nameless)
		rc = neap__recordings_number(all, dir, choice);
	if (rc < 0)
		neap__recordings_free(all);
	return rc;
}

int neap__recordings_folder(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Names of parts of a data set: for training, and those that show what was learned, in the order in
 * which they are proposed. */
static const char *const training_parts[] = {"train", "training", NULL};
static const char *const other_parts[] = {
	"test", "testing", "val", "valid", "validation", "dev", "eval", NULL};

/* 1: the folder has one of the parts, in either case, whose path goes to `part`. */
static int has_part(char part[4096], const char *path, const char *const *names)
{
	size_t n = strlen(path);
	while (n > 0 && path[n - 1] == '/')
		n--;
	for (; *names; names++) {
		neap__print(part, 4096, "%.*s/%s", (int)n, path, *names);
		if (neap__recordings_folder(part))
			return 1;
		part[n + 1] = (char)toupper((unsigned char)(*names)[0]);
		if (neap__recordings_folder(part))
			return 1;
	}
	return 0;
}

int neap__recordings_parts(char train[4096], char test[4096], const char *path)
{
	return strlen(path) < 4000 && has_part(train, path, training_parts) &&
	       has_part(test, path, other_parts);
}

int neap__recordings_is_part(const char *path)
{
	size_t n = strlen(path), begin;
	while (n > 1 && path[n - 1] == '/')
		n--;
	for (begin = n; begin > 0 && path[begin - 1] != '/'; begin--)
		;
	for (int k = 0; k < 2; k++)
		for (const char *const *name = k ? other_parts : training_parts; *name; name++)
			if (strlen(*name) == n - begin &&
				strncasecmp(*name, path + begin, n - begin) == 0)
				return 1;
	return 0;
}

const char *neap__recordings_below(const char *path, const char *dir)
{
	const char *name = below(path, dir), *slash = strrchr(path, '/');
	return *name ? name : slash ? slash + 1 : path;
}

int64_t neap__recordings_count(const char *dir, const char *const *endings, int64_t *flat)
{
	struct neap__recordings all = {0};
	int64_t found = 0;
	if (walk(&all, dir, 0) == 0)
		for (int64_t i = 0; i < all.count; i++) {
			const char *path = all.file[i].path;
			int counts = !all.file[i].stray &&
				     (!endings || neap__recordings_ends(path, endings));
			found += counts;
			if (flat)
				*flat += counts && !strchr(below(path, dir), '/');
		}
	neap__recordings_free(&all);
	return found;
}

int neap__recordings_all(struct neap__recordings *all, const char *dir)
{
	memset(all, 0, sizeof *all);
	NEAP_TRY(walk(all, dir, 0));
	qsort(all->file, (size_t)all->count, sizeof *all->file, by_path);
	return 0;
}

int64_t neap__recordings_having(const char *dir, const char *const *endings)
{
	return neap__recordings_count(dir, endings, NULL);
}

void neap__recordings_free(struct neap__recordings *all)
{
	for (int64_t i = 0; i < all->count; i++)
		free_file(&all->file[i]);
	for (int i = 0; i < all->nclasses; i++)
		free(all->classes[i]);
	for (int i = 0; i < all->nspeakers; i++)
		free(all->speakers[i]);
	free(all->file);
	free(all->classes);
	free(all->speakers);
	memset(all, 0, sizeof *all);
}
