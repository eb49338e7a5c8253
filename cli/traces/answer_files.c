/* SPDX-License-Identifier: Apache-2.0 */
/* answer_files.c: the files below folders, by their endings (answer_files.h). */
#include "answer_files.h"
#include "cli.h"
#include "base/quote.h"
#include "data/recordings.h"

#include <errno.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* Recordings of sound and tables; others are data sets, or are encoded first. */
static int is_answered(const char *name)
{
	static const char *const endings[] = {
		".wav", ".flac", ".aiff", ".aif", ".aifc", ".csv", ".tsv"};
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot && i < sizeof endings / sizeof endings[0]; i++)
		if (strcasecmp(dot, endings[i]) == 0)
			return 1;
	return 0;
}

static int no_memory(const char *command)
{
	cli_usage(command, "not enough memory for the names of the files");
	return CLI_FAILED;
}

static int add(struct cli_answer_files *files, const char *path, const char *command)
{
	char **more = realloc(files->path, (files->count + 1) * sizeof *more);
	char *copy = strdup(path);

	if (more)
		files->path = more;
	if (!more || !copy) {
		free(copy);
		return no_memory(command);
	}
	files->path[files->count++] = copy;
	return CLI_DONE;
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int add_entry(struct cli_answer_files *files, FTS *walk, FTSENT *entry, const char *command)
{
	int is_hidden = entry->fts_level > 0 && entry->fts_name[0] == '.';

	switch (entry->fts_info) {
	case FTS_D:
		if (is_hidden)
			fts_set(walk, entry, FTS_SKIP);
		return CLI_DONE;
	case FTS_F:
		if (!is_hidden && is_answered(entry->fts_name))
			return add(files, entry->fts_path, command);
		files->skipped += !is_hidden;
		return CLI_DONE;
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS:
		return cli_usage(command, "cannot read '%s': %s", entry->fts_path,
			strerror(entry->fts_errno));
	default:
		return CLI_DONE;
	}
}

/* Leaves out the table that lists the labels of the folder's files: it is no sample. */
static void leave_labels(struct cli_answer_files *files, size_t before, const char *folder)
{
	char labels[4096];
	size_t kept = before;

	if (files->count < before + 2 || !neap__labels_of(labels, sizeof labels, folder, 1))
		return;
	for (size_t i = before; i < files->count; i++)
		if (strcmp(files->path[i], labels) == 0)
			free(files->path[i]);
		else
			files->path[kept++] = files->path[i];
	files->skipped += files->count - kept;
	files->count = kept;
}

static int add_folder(struct cli_answer_files *files, const char *folder, const char *command)
{
	char *copy = strdup(folder);
	char *roots[] = {copy, NULL};
	size_t before = files->count;
	int code = CLI_DONE;

	if (!copy)
		return no_memory(command);
	FTS *walk = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, by_name);
	FTSENT *entry = NULL;
	while (walk && code == CLI_DONE && (entry = fts_read(walk)))
		code = add_entry(files, walk, entry, command);
	if (!walk)
		code = cli_usage(command, "cannot read '%s': %s", folder, strerror(errno));
	else
		fts_close(walk);
	free(copy);
	leave_labels(files, before, folder);
	if (code == CLI_DONE && files->count == before) /* which the library refuses with advice */
		return add(files, folder, command);
	files->named = 1;
	return code;
}

/* 1: certainly no data: found before the answers for the files in front of it are printed. */
static int is_missing(const char *name)
{
	struct stat st;

	return stat(name, &st) < 0 && !strchr(name, ':') && strcmp(name, "-") != 0 &&
	       strcmp(name, "randman") != 0;
}

int cli_answer_files(
	struct cli_answer_files *files, const char *const *given, int count, const char *command)
{
	struct stat st;
	int code = CLI_DONE;

	files->named = count > 1;
	for (int i = 0; i < count && count > 1; i++)
		if (is_missing(given[i]))
			return cli_usage(
				command, "cannot read '%s': %s", given[i], strerror(errno));
	for (int i = 0; i < count && code == CLI_DONE; i++)
		code = stat(given[i], &st) == 0 && S_ISDIR(st.st_mode)
			       ? add_folder(files, given[i], command)
			       : add(files, given[i], command);
	if (count == 1 && files->named)
		files->folder = given[0];
	return code;
}

/* 1: a file is in the folder itself, so no folder names its class. */
static int is_flat(const struct cli_answer_files *files)
{
	size_t n = strlen(files->folder);

	while (n > 1 && files->folder[n - 1] == '/')
		n--;
	for (size_t i = 0; i < files->count; i++)
		if (!strchr(files->path[i] + n + 1, '/'))
			return 1;
	return 0;
}

const char *cli_answer_files_all(char *room, size_t size, const struct cli_answer_files *files,
	const char *path, const char *line)
{
	char one[4200];

	if (!files->folder)
		return line;
	snprintf(one, sizeof one, "neap encode %s ", neap__quoted(path));
	const char *at = strstr(line, one);
	if (!at)
		return line;
	snprintf(room, size, "%.*sneap encode %s%s %s", (int)(at - line), line,
		neap__quoted(files->folder), is_flat(files) ? " --label '(.*)'" : "",
		at + strlen(one));
	return room;
}

void cli_answer_files_free(struct cli_answer_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		free(files->path[i]);
	free(files->path);
}
