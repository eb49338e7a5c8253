/* SPDX-License-Identifier: Apache-2.0 */
/* encode_notes.c: skipped files, names and doubts (cli.h). */
#include "cli.h"
#include "base/quote.h"
#include "data/encode/label_doubts.h"
#include "data/recordings.h"

#include <neap/data.h>

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum {
	MOST_LINES = 20,
	MOST_NAMES = 5 /* in a line */,
	NAMES_SHOWN = 8,
	LONGEST_FIRST = 200,
	MOST_COMPARED = 1000 /* classes: pairs are compared */
};

/* The line without quoted names and digits: equal for files with the same fault. */
static void fault_of(char *room, size_t size, const char *line)
{
	size_t n = 0;
	int quoted = 0;
	for (; *line && n + 1 < size; line++) {
		quoted ^= *line == '\'';
		if (!quoted && !strchr("'0123456789.", *line))
			room[n++] = *line;
	}
	room[n] = '\0';
}

/* Adds the quoted name that a line begins with. */
static void add_name(struct cli_skipped *s, const char *line)
{
	const char *end = *line == '\'' ? strchr(line + 1, '\'') : NULL;
	size_t n = strlen(s->names), bytes = end ? (size_t)(end + 1 - line) : 0;
	if (bytes && bytes < LONGEST_FIRST && n + bytes + 3 < sizeof s->names)
		snprintf(s->names + n, sizeof s->names - n, "%s%.*s", n ? ", " : "", (int)bytes,
			line);
}

static void show_skipped(struct cli_skipped *s)
{
	char room[NEAP__PLAIN_TEXT];
	if (s->line[0] && s->kinds <= MOST_LINES)
		fprintf(stderr, "neap encode: warning: skipped: %s\n", neap__plain(s->line));
	if (s->line[0] && s->kinds == MOST_LINES)
		fprintf(stderr,
			"neap encode: warning: further skipped files are only counted; --strict "
			"stops at the first\n");
	if (s->alike && s->alike <= MOST_NAMES && s->kinds <= MOST_LINES)
		fprintf(stderr, "neap encode: warning: skipped for the same reason: %s\n",
			neap__plain_text(room, s->names));
	else if (s->alike && s->kinds <= MOST_LINES)
		fprintf(stderr,
			"neap encode: warning: skipped for the same reason: %" PRId64
			" more files, such "
			"as %s\n",
			s->alike, neap__plain_text(room, s->names));
	s->line[0] = s->names[0] = '\0';
	s->alike = 0;
}

void cli_skipped_add(struct cli_skipped *s, const char *line)
{
	char here[sizeof s->line], before[sizeof s->line];
	fault_of(here, sizeof here, line);
	fault_of(before, sizeof before, s->line);
	if (s->line[0] && strcmp(here, before) == 0) {
		if (s->alike++ < MOST_NAMES)
			add_name(s, line);
		return;
	}
	show_skipped(s);
	s->kinds++;
	snprintf(s->line, sizeof s->line, "%s", line);
}

void cli_skipped_end(struct cli_skipped *s, int failed)
{
	if (!failed || s->kinds > 1)
		show_skipped(s);
}

void cli_encoded_names(const char *out)
{
	struct neap_dataset_info info = {.size = sizeof info};
	struct neap_dataset *set;
	char room[NEAP__PLAIN_TEXT];
	if (neap_dataset_open(&set, out) < 0)
		return;
	int count = neap_dataset_info(set, &info) < 0 || info.target == NEAP_TARGET_NUMBERS ||
				    info.target == NEAP_TARGET_SERIES
			    ? 0
			    : info.classes;
	for (int i = 0; i < count && i < NAMES_SHOWN; i++) {
		const char *name = neap_dataset_class_name(set, i);
		if (!name && i == 0)
			count = 0;
		else
			printf("%s%s",
				i ? ", " : "classes: ", neap__plain_text(room, name ? name : "?"));
	}
	if (count > NAMES_SHOWN)
		printf(" and %d more", count - NAMES_SHOWN);
	if (count > 0)
		printf("\n");
	neap_dataset_close(set);
}

static int is_part(const char *name)
{
	static const char *const parts[] = {"train", "training", "test", "testing", "val", "valid",
		"validation", "dev", "eval", NULL};
	int k = 0;
	while (parts[k] && strcasecmp(parts[k], name) != 0)
		k++;
	return parts[k] != NULL;
}

/* Folders in a folder, and those that are named like parts of a data set: the first two of these.
 */
struct inside {
	int folders, parts;
	char part[2][64];
};

static void look_inside(struct inside *found, const char *dir)
{
	struct dirent *entry;
	struct stat st;
	DIR *folder = opendir(dir);
	while (folder && (entry = readdir(folder)) != NULL) {
		if (entry->d_name[0] == '.' || fstatat(dirfd(folder), entry->d_name, &st, 0) < 0 ||
			!S_ISDIR(st.st_mode))
			continue;
		found->folders++;
		if (!is_part(entry->d_name) || found->parts == 2)
			continue;
		snprintf(
			found->part[found->parts++], sizeof found->part[0], "%.60s", entry->d_name);
	}
	if (folder)
		closedir(folder);
	if (found->parts == 2 && strcmp(found->part[0], found->part[1]) < 0) { /* train first */
		char other[sizeof found->part[0]];
		memcpy(other, found->part[0], sizeof other);
		memcpy(found->part[0], found->part[1], sizeof other);
		memcpy(found->part[1], other, sizeof other);
	}
}

static int by_case(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;
	int order = strcasecmp(x, y);
	return order ? order : strcmp(x, y);
}

/* The first two names that differ only in case; sorts `names`. */
static int twins(const char **names, int count, const char **one, const char **other)
{
	qsort(names, (size_t)count, sizeof *names, by_case);
	for (int i = 1; i < count; i++)
		if (strcasecmp(names[i - 1], names[i]) == 0 &&
			strcmp(names[i - 1], names[i]) != 0) {
			*one = names[i - 1];
			*other = names[i];
			return 1;
		}
	return 0;
}

/* The first two names that are the same text (label_doubts.h). */
static int same_texts(const char **names, int count, const char **one, const char **other)
{
	for (int i = 0; i < count; i++)
		for (int k = i + 1; k < count; k++)
			if (neap__label_same_text(names[i], names[k])) {
				*one = names[i];
				*other = names[k];
				return 1;
			}
	return 0;
}

/* The data set's classes; *count 0: they have no names. */
static const char **class_names(const struct neap_dataset *set, int *count)
{
	struct neap_dataset_info info = {.size = sizeof info};
	*count = neap_dataset_info(set, &info) < 0 ? 0 : info.classes;
	const char **names = calloc((size_t)*count + 1, sizeof *names);
	for (int i = 0; names && i < *count; i++)
		if (!(names[i] = neap_dataset_class_name(set, i)))
			*count = 0;
	*count = names ? *count : 0;
	return names;
}

void cli_encoded_parts(const char *dir, int by_folder, const char *given,
	void (*doubt)(void *user, const char *line), void *user)
{
	struct inside in = {0};
	char path[2][NEAP__QUOTED_BYTES + 100], line[NEAP__PLAIN_TEXT];
	int64_t files = 0, flat = 0;

	look_inside(&in, dir);
	if (in.parts != 2)
		return;
	for (int i = 0; i < 2; i++)
		snprintf(
			path[i], sizeof path[i], "%.*s/%.90s", NEAP__QUOTED_BYTES, dir, in.part[i]);
	/* Files that are directly in a part take its name as their class. */
	for (int i = 0; by_folder && i < 2; i++) {
		flat = 0;
		neap__recordings_count(path[i], neap__sound_endings, &flat);
		files += flat;
		flat = 0;
		neap__recordings_count(path[i], neap__event_endings, &flat);
		files += flat;
		flat = 0;
		neap__recordings_count(path[i], neap__table_endings, &flat);
		files += flat;
	}
	snprintf(line, sizeof line,
		"the folders '%s' and '%s' of '%.100s' %s. Encode them separately%s: neap encode "
		"%s --out %s.h5%s; neap encode %s --out %s.h5%s",
		in.part[0], in.part[1], dir,
		files ? "become classes" : "are merged into one data set",
		files ? ", with --label if the file names contain the class" : "",
		neap__quoted(path[0]), in.part[0], given, neap__quoted(path[1]), in.part[1], given);
	doubt(user, line);
}

/* Who is told of a doubt. */
struct doubts {
	void (*doubt)(void *user, const char *line);
	void *user;
};

/* Doubts about --label, which gave `samples` files `count` classes. */
static void doubt_label(const struct doubts *to, const char *dir, const char *label,
	const char **name, int count, int64_t samples)
{
	struct inside in = {0};
	const char *one;
	char line[NEAP__PLAIN_TEXT], file[200];

	look_inside(&in, dir);
	if (count == 1 && in.folders > 1) {
		snprintf(line, sizeof line,
			"--label '%.100s' gives all files the class '%.60s', although '%.100s' has "
			"%d "
			"folders. Remove --label if the folders are the classes",
			label, name[0], dir, in.folders);
		to->doubt(to->user, line);
	}
	if (strchr(label, '-') && (one = neap__label_cut(file, sizeof file, dir, label))) {
		snprintf(line, sizeof line,
			"--label '%.100s' finds only a part of the word in '%.100s', since "
			"[A-Za-z] has no other letters than ASCII. Pass --label %s, and repeat the "
			"command with --force",
			label, file, neap__quoted(one));
		to->doubt(to->user, line);
	}
	if (count > 2 && count == samples && strcmp(label, "(.*)") != 0) {
		snprintf(line, sizeof line,
			"--label '%.100s' gives each of the %d files a separate class: a network "
			"cannot learn from one sample per class. Use a part of the names that "
			"several "
			"files share, or put the files into one folder per class",
			label, count);
		to->doubt(to->user, line);
	}
}

/* Doubts about names of classes that a reader can take for the same. */
static void doubt_names(const struct doubts *to, const char *dir, const char **name, int count)
{
	const char *one, *other;
	char line[NEAP__PLAIN_TEXT];

	if (count > 1 && twins(name, count, &one, &other)) {
		snprintf(line, sizeof line,
			"the classes '%.60s' and '%.60s' differ only in case. If they are the same "
			"class, rename one of them",
			one, other);
		to->doubt(to->user, line);
	}
	if (count > 1 && count <= MOST_COMPARED && same_texts(name, count, &one, &other)) {
		snprintf(line, sizeof line,
			"the classes '%.60s' and '%.60s' are the same text in two forms of Unicode "
			"(NFC and NFD). Rename the files, and repeat the command with --force: "
			"python3 -c \"import glob, os, unicodedata; d = %s; [os.renames(p, q if "
			"not "
			"os.path.exists(q) else '-2.'.join(q.rsplit('.', 1))) for p in "
			"glob.glob(d + '/**/*.*', recursive=True) for q in [d + "
			"unicodedata.normalize('NFC', p[len(d):])] if p != q and "
			"os.path.isfile(p)]\"",
			one, other, neap__python_quoted(dir));
		to->doubt(to->user, line);
	}
}

void cli_encoded_doubts(const char *out, const char *dir, const char *label,
	void (*doubt)(void *user, const char *line), void *user)
{
	const struct doubts to = {doubt, user};
	struct neap_dataset *set;
	int count;

	if (neap_dataset_open(&set, out) < 0)
		return;
	const char **name = class_names(set, &count);
	struct neap_dataset_info info = {.size = sizeof info};
	int64_t samples = neap_dataset_info(set, &info) < 0 ? 0 : info.samples;
	if (label)
		doubt_label(&to, dir, label, name, count, samples);
	doubt_names(&to, dir, name, count);
	free(name);
	neap_dataset_close(set);
}

int cli_encoded_out(const char *out)
{
	struct stat st;
	const char *slash = strrchr(out, '/');
	size_t n = strlen(out);
	char folder[4096];
	snprintf(folder, sizeof folder, "%s%strain.h5", out, n > 0 && out[n - 1] == '/' ? "" : "/");
	if (stat(out, &st) == 0 && S_ISDIR(st.st_mode))
		return cli_usage("encode", "--out: '%s' is a folder. Pass a file: --out %s", out,
			neap__quoted(folder));
	if (!slash || slash == out)
		return CLI_DONE;
	snprintf(folder, sizeof folder, "%.*s", (int)(slash - out), out);
	if (stat(folder, &st) < 0 && errno == ENOENT)
		return cli_usage("encode",
			"--out: there is no folder '%s'. Create it (mkdir -p %s), or pass "
			"another --out",
			folder, neap__quoted(folder));
	if (stat(folder, &st) == 0 ? !S_ISDIR(st.st_mode) : errno == ENOTDIR)
		return cli_usage("encode",
			"--out: '%s' cannot be written, since '%s' is not a folder. Pass another "
			"--out, such as --out %s",
			out, folder, neap__quoted(slash + 1));
	return CLI_DONE;
}
