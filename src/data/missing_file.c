/* SPDX-License-Identifier: Apache-2.0 */
/* missing_file.c: looks for a similar name in the folder of a missing file (missing_file.h). */
#include "data/missing_file.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/quote.h"
#include "base/suggest.h"
#include "base/text.h"
#include "base/text_like.h"

#include <dirent.h>
#include <errno.h>
#include <fts.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { NAMES_ROOM = 1024 };

/* The file of a text that is named by "text:FILE" or similarly; NULL: none. */
static const char *text_of(const char *path)
{
	size_t n = strncmp(path, "text", 4) == 0 ? 4 : strncmp(path, "txt", 3) == 0 ? 3 : 0;
	return n && (path[n] == ':' || path[n] == '=') && access(path + n + 1, F_OK) == 0
		       ? path + n + 1
		       : NULL;
}

/* Whether a name is so close that it was probably meant: one letter differs, or one of four,
 * or the ending alone.
 */
static int is_close(const char *name, const struct neap__suggestion *meant)
{
	size_t stem = strcspn(meant->text, ".");
	return meant->changes <= 1 || (size_t)meant->changes * 4 <= meant->length ||
	       (stem >= 2 && strncasecmp(name, meant->text, stem) == 0 &&
		       (name[stem] == '.' || !name[stem]));
}

int neap__missing_near(char *room, size_t size, const char *path)
{
	char dir[NAMES_ROOM] = ".", near[256] = "";
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	struct dirent *entry;
	int least = INT_MAX;
	if (slash)
		neap__print(dir, sizeof dir, "%.*s", (int)(slash - path) + 1, path);
	DIR *folder = opendir(dir);
	while (folder && (entry = readdir(folder)) != NULL) {
		struct neap__suggestion meant = {.text = base, .length = strlen(base)};
		int longer = abs((int)strlen(entry->d_name) - (int)strlen(base));
		neap__suggest(&meant, entry->d_name);
		if ((entry->d_name[0] == '.' && base[0] != '.') || !meant.name ||
			!is_close(entry->d_name, &meant))
			continue;
		/* Of several, the one of the nearest length, which the folder's order decides not.
		 */
		int cost = meant.changes * 1000 + longer;
		if (cost > least || (cost == least && strcmp(entry->d_name, near) > 0))
			continue;
		least = cost;
		neap__print(near, sizeof near, "%s", entry->d_name);
	}
	if (folder)
		closedir(folder);
	neap__print(room, size, "%.*s%s", (int)(base - path), path, near);
	return near[0] != '\0';
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int neap__runs_near(char *room, size_t size, const char *path)
{
	enum { MOST = 64 /* runs that are looked at */, SHOWN = 4 /* in a line; both chosen */ };
	char dir[NAMES_ROOM] = ".", file[NAMES_ROOM], *name[MOST];
	size_t length = strlen(path), used = 0;
	int count = 0, near = 0, shown = 0;
	struct dirent *entry;

	while (length > 1 && path[length - 1] == '/')
		length--;
	const char *slash = memrchr(path, '/', length), *base = slash ? slash + 1 : path;
	size_t bytes = length - (size_t)(base - path);
	if (slash)
		neap__print(dir, sizeof dir, "%.*s", (int)(base - path), path);
	room[0] = '\0';
	DIR *folder = opendir(dir);
	while (folder && count < MOST && (entry = readdir(folder)) != NULL) {
		neap__print(file, sizeof file, "%.700s/%.255s/run.json", dir, entry->d_name);
		if (entry->d_name[0] == '.' || access(file, F_OK) != 0 ||
			!(name[count] = strdup(entry->d_name)))
			continue;
		near += strncmp(name[count++], base, bytes) == 0;
	}
	if (folder)
		closedir(folder);
	qsort(name, (size_t)count, sizeof *name, by_name);
	int listed = near ? near : count, most = near && near > SHOWN ? SHOWN : listed;
	for (int i = 0; i < count && most <= SHOWN; i++) {
		if (shown == most || (near && strncmp(name[i], base, bytes) != 0))
			continue;
		used += (size_t)neap__print(room + used, size - used, "%s'%.*s%.255s'",
			!shown		    ? ""
			: shown + 1 == most ? " or "
					    : ", ",
			(int)(base - path), path, name[i]);
		shown++;
		used = used < size ? used : size;
	}
	for (int i = 0; i < count; i++)
		free(name[i]);
	return shown > 0;
}

/* 1: files match the pattern, which the shell has not expanded. */
static int matches(const char *pattern)
{
	glob_t found = {0};
	int rc = glob(pattern, GLOB_NOSORT, NULL, &found);
	globfree(&found);
	return rc == 0;
}

enum { EXTENSION = 24 /* bytes; longer ones are none */ };

/* The extension of a text; "": it is none. */
static void extension_of(char room[EXTENSION], const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');

	room[0] = '\0';
	if (dot && dot > name && strlen(dot) < EXTENSION && neap__text_like(path))
		neap__print(room, EXTENSION, "%s", dot);
}

/* Extensions of texts, and how many there are of each. */
struct extensions {
	char kind[8][EXTENSION];
	int count[8], kinds;
};

static void count_extension(struct extensions *e, const char *path)
{
	char here[EXTENSION];
	int k = 0;

	extension_of(here, path);
	while (k < e->kinds && strcmp(e->kind[k], here) != 0)
		k++;
	if (!here[0] || k == (int)(sizeof e->count / sizeof e->count[0]))
		return;
	if (k == e->kinds)
		memcpy(e->kind[e->kinds++], here, sizeof here);
	e->count[k]++;
}

int neap__join_texts(char *room, size_t size, const char *folder)
{
	enum { LOOKS = 200 /* at files; chosen */ };
	char *copy = strdup(folder), *roots[] = {copy, NULL}, pattern[EXTENSION + 2];
	FTS *walk = copy ? fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, NULL) : NULL;
	FTSENT *entry = NULL;
	struct extensions e = {0};
	int best = 0;

	for (int looks = 0; walk && looks < LOOKS && (entry = fts_read(walk));)
		if (entry->fts_level > 0 && entry->fts_name[0] == '.') {
			fts_set(walk, entry, FTS_SKIP);
		} else if (entry->fts_info == FTS_F) {
			count_extension(&e, entry->fts_path);
			looks++;
		}
	if (walk)
		fts_close(walk);
	free(copy);
	for (int k = 1; k < e.kinds; k++)
		best = e.count[k] > e.count[best] ? k : best;
	if (!e.kinds)
		return 0;
	neap__print(pattern, sizeof pattern, "*%s", e.kind[best]);
	neap__print(room, size, "find %s -name %s -exec cat {} + > all.txt", neap__quoted(folder),
		neap__quoted(pattern));
	return 1;
}

/* The pattern as a word that the shell expands: all but its wildcards is quoted if needed. */
static void add_pattern(struct neap__text *to, const char *pattern)
{
	static const char wildcards[] = "*?[]";
	char part[NAMES_ROOM];

	while (*pattern) {
		size_t wild = strspn(pattern, wildcards);
		size_t plain = strcspn(pattern + wild, wildcards);
		neap__text_add(to, "%.*s", (int)wild, pattern);
		neap__print(part, sizeof part, "%.*s", (int)plain, pattern + wild);
		if (plain)
			neap__text_add(to, "%s", neap__word(part));
		pattern += wild + plain;
	}
}

/* What to do instead of passing a pattern that the shell did not expand, which files match. */
static void pattern_advice(char *room, size_t size, const char *pattern)
{
	const char *slash = strrchr(pattern, '/'), *dot = strrchr(slash ? slash : pattern, '.');
	char folder[NAMES_ROOM], extension[EXTENSION];
	glob_t found = {0};
	struct neap__text word = {0};
	int arrays = dot && strcasecmp(dot, ".npz") == 0;

	neap__print(folder, sizeof folder, "%.*s", slash ? (int)(slash - pattern) : 1,
		slash ? pattern : ".");
	extension_of(extension,
		glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc ? found.gl_pathv[0] : "");
	add_pattern(&word, pattern);
	if (extension[0])
		neap__print(room, size, "Join the texts, and pass text:all.txt: cat %s > all.txt",
			word.data ? word.data : pattern);
	else if (dot && (strcasecmp(dot, ".h5") == 0 || strcasecmp(dot, ".hdf5") == 0))
		neap__print(room, size,
			"Pass one of the files; to train on all, encode their recordings from one "
			"folder into one file");
	else
		neap__print(room, size,
			"Pass the folder that the files are in%s%s. predict takes several files: "
			"leave out the quotation marks%s%s%s",
			strpbrk(folder, "*?[") ? "" : ": ",
			strpbrk(folder, "*?[") ? "" : neap__quoted(folder),
			arrays ? ". Arrays x and y with equal numbers of steps are joined to "
				 "all.npz: python3 -c \"import glob, numpy; d = [numpy.load(f) for "
				 "f "
				 "in sorted(glob.glob("
			       : "",
			arrays ? neap__quoted(pattern) : "",
			arrays ? "))]; numpy.savez('all.npz', **{k: numpy.concatenate([f[k] for f "
				 "in "
				 "d]) for k in d[0].files})\""
			       : "");
	neap__text_free(&word);
	globfree(&found);
}

/* 1: the part in front of the first comma is a file: "a.txt,b.txt". */
static int begins_a_list(const char *path)
{
	char first[NAMES_ROOM];
	size_t n = strcspn(path, ",");
	if (!path[n] || n == 0 || n >= sizeof first)
		return 0;
	neap__print(first, sizeof first, "%.*s", (int)n, path);
	return access(first, F_OK) == 0;
}

/* The line about a path that is no name of one file: an address, a pattern, a list, a text. 0: it
 * is a name; `rc`: the code of a file that is not there. */
static int refuse_path(int rc, const char *path)
{
	char advice[NEAP__DETAIL_BYTES];

	if (text_of(path))
		return neap__fail(NEAP_EUSAGE,
			"there is no file '%s'. A text is not encoded: pass it to train, eval or "
			"predict as text:%s",
			path, text_of(path));
	if (strstr(path, "://"))
		return neap__fail(NEAP_EUSAGE,
			"'%s' is an address, not a file. Download it, and pass the file: curl -LO "
			"'%s'",
			path, path);
	if (strpbrk(path, "*?[") && matches(path)) {
		pattern_advice(advice, sizeof advice, path);
		return neap__fail(
			rc, "'%s' is a pattern, but one file or folder is read. %s", path, advice);
	}
	if (begins_a_list(path))
		return neap__fail(rc,
			"there is no file '%s'. If these are several files, pass one, or a folder "
			"with "
			"all of them; texts can be joined: cat FILE FILE > all.txt",
			path);
	if (strpbrk(path, "*?"))
		return neap__fail(rc,
			"no file matches the pattern '%s'. Pass the folder that the files are in",
			path);
	if (strchr(path, ' ') && !strpbrk(path, "./"))
		return neap__fail(rc,
			"there is no file '%s'. Check the path; if it is a text itself, write it "
			"to a file, and pass text:text.txt: printf '%%s' %s > text.txt",
			path, neap__quoted(path));
	return 0;
}

int neap__missing_file(int err, const char *path)
{
	char line[NAMES_ROOM], near[NAMES_ROOM];
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	int rc = neap__fail_errno(err, "cannot read '%s'", path);
	if (err == EACCES)
		return neap__fail(rc,
			"cannot read '%s': permission denied. As its owner, make it readable: "
			"chmod u+r %s",
			path, neap__quoted(path));
	if (err == ENOENT)
		NEAP_TRY(refuse_path(rc, path));
	if (err != ENOENT || !*base || (slash && slash - path >= NAMES_ROOM - 1))
		return rc;
	neap__print(line, sizeof line, "%s", neap_detail());
	if (neap__missing_near(near, sizeof near, path))
		return neap__fail(rc, "%s. Did you mean '%s'?", line, near);
	return neap__fail(rc, "%s. Check the path", line);
}
