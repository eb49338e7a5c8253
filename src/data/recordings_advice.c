/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recordings_advice.c: what to do about folders and files whose classes are not known, and about
 * files that are of no kind to be encoded (recordings.h).
 */
#include "data/recordings.h"
#include "data/dataset.h"
#include "data/missing_file.h"
#include "data/names/pattern_proposal.h"
#include "data/names/sort_command.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/quote.h"
#include "base/text_like.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A pattern for --label that fits the files, or those with the endings; NULL: none does. */
static const char *propose(const struct neap__recordings *all, const char *const *endings)
{
	const char **path = malloc((size_t)(all->count + 1) * sizeof *path);
	int64_t n = 0;
	for (int64_t i = 0; path && i < all->count; i++)
		if (!all->file[i].stray &&
			(!endings || neap__recordings_ends(all->file[i].path, endings)))
			path[n++] = all->file[i].path;
	const char *pattern = neap__pattern_proposal(path, n);
	free(path);
	return pattern;
}

static int no_group(
	const struct neap__recordings *all, const char *label, const char *const *endings)
{
	const char *pattern = propose(all, NULL);
	char target[200] = "";
	if (endings == neap__table_endings)
		neap__print(target, sizeof target, "If '%.60s' is a column, pass --target %.80s. ",
			label, neap__word(label));
	if (access(label, F_OK) == 0)
		return neap__fail(NEAP_EUSAGE,
			"--label '%s' is a file, and a pattern of file names is expected. If the "
			"file has "
			"the classes, pass --labels %s",
			label, neap__quoted(label));
	return neap__fail(NEAP_EUSAGE,
		"--label '%s' has no group. %sA pattern of file names has a group in parentheses "
		"that is the class, such as '%s'",
		label, target, pattern ? pattern : "^([A-Za-z]+)");
}

/* The folder that has `dir` as one of several folders with files; 0: there is none. */
static int above_folder(char above[300], const char *dir, const char *const *endings)
{
	size_t n = strlen(dir);
	if (neap__recordings_is_part(dir))
		return 0;
	while (n > 1 && dir[n - 1] == '/')
		n--;
	const char *slash = memrchr(dir, '/', n);
	if (!slash || slash == dir || slash - dir >= 300)
		return 0;
	neap__print(above, 300, "%.*s", (int)(slash - dir), dir);
	int64_t flat = 0, all = neap__recordings_count(above, endings, &flat);
	return flat == 0 && all > neap__recordings_count(dir, endings, NULL);
}

int neap__recordings_above(char *room, size_t size, const char *path, const char *const *endings)
{
	char dir[300], above[300];
	const char *slash = strrchr(path, '/');
	if (!slash || slash - path >= (int)sizeof dir)
		return 0;
	neap__print(dir, sizeof dir, "%.*s", (int)(slash - path), path);
	if (!above_folder(above, dir, endings))
		return 0;
	neap__print(room, size, "%s", above);
	return 1;
}

int neap__recordings_lone(const char *path, int events)
{
	const char *const *endings = events ? neap__event_endings : neap__sound_endings;
	char above[300], option[NEAP__CHANNELS_TEXT] = "";
	int64_t samples;
	int is = neap__recordings_above(above, sizeof above, path, endings);
	if (events)
		neap__event_file_channels(option, &samples, is ? above : path);
	if (is)
		return neap__fail(NEAP_EFORMAT,
			"'%s' is one recording%s, and training needs a data set with classes. If "
			"the folders in '%s' are the classes, encode that folder: neap encode %s "
			"--out FILE.h5%s",
			path, events ? " of events" : "", above, neap__quoted(above), option);
	return neap__fail(NEAP_EFORMAT,
		"'%s' is one recording%s, and training needs a data set with classes. Put "
		"recordings into one folder per class, and encode them: neap encode FOLDER --out "
		"FILE.h5%s",
		path, events ? " of events" : "", option);
}

/* "If ... " if the folder is one of several with files: these may be the classes. */
static void find_classes(char *room, size_t size, const char *dir, const char *const *endings)
{
	char above[300];
	if (above_folder(above, dir, endings))
		neap__print(room, size,
			"If the folders in '%s' are the classes, pass that folder: neap encode "
			"%s --out FILE.h5. Otherwise, p",
			above, neap__quoted(above));
}

/* The line about a table that probably lists labels instead of values; 0: it does not. `list`: a
 * table of labels in the same folder, or empty. */
static int refuse_labels(const char *path, const char *dir, const char *list)
{
	if (list[0])
		return neap__fail(NEAP_EUSAGE,
			"'%s' is not in a subfolder of '%s' that names its class, but '%s' lists "
			"labels for the files. Pass it: --labels %s",
			path, dir, list, neap__quoted(list));
	if (strcasestr(path + strlen(dir), "label") || strcasestr(path + strlen(dir), "meta"))
		return neap__fail(NEAP_EUSAGE,
			"'%s' is not in a subfolder of '%s' that names its class. If it lists "
			"labels, its first column must have the names of the "
			"files, which it has not for most of them: correct it and pass --labels "
			"%s, or move it out of '%s'",
			path, dir, neap__quoted(path), dir);
	return 0;
}

static int no_class(const struct neap__recordings *all, const char *path, const char *dir,
	const char *const *endings)
{
	char table[300], advice[NEAP__DETAIL_BYTES] = "", above[400] = "";
	char use[700] = "";
	const char *pattern = propose(all, NULL);
	int is_table = endings == neap__table_endings;
	if (neap__contents_is_set(path))
		return neap__contents_refuse_set(path);
	char sort[900];
	neap__labels_of(table, sizeof table, dir, 0);
	neap__sort_command(sort, sizeof sort, table[0] ? table : "labels.csv", dir);
	if (table[0] && !is_table)
		neap__print(advice, sizeof advice,
			". If '%s' lists file,class per line, this shell command sorts copies: %s",
			table, sort);
	if (is_table)
		NEAP_TRY(refuse_labels(path, dir, table));
	find_classes(above, sizeof above, dir, endings);
	if (is_table)
		neap__print(use, sizeof use,
			". To encode only this table: neap encode %s --out FILE.h5",
			neap__quoted(path));
	else if (neap__recording_named(path))
		neap__print(use, sizeof use, ". To predict their classes: neap predict RUN %s",
			neap__quoted(dir));
	if (!pattern && !is_table && !above[0])
		return neap__fail(NEAP_EUSAGE,
			"'%s' is not in a subfolder of '%s' that names its class, and no part of "
			"the "
			"file names does: each would be a separate class. Put the files into one "
			"folder per class%s. With a table '%s' that has file,class per line, this "
			"shell command sorts copies: %s",
			path, dir, use, table[0] ? table : "labels.csv", sort);
	return neap__fail(NEAP_EUSAGE,
		"'%s' is not in a subfolder of '%s' that names its class. %sut the files into one "
		"folder per class%s%s%s%s%s%s",
		path, dir, above[0] ? above : "P", pattern ? ", or pass --label " : "",
		pattern ? neap__quoted(pattern) : "",
		pattern ? ", a pattern of the file names whose group 1 is the class" : "",
		is_table ? ", or pass --target NAME or --labels FILE.csv" : "", use, advice);
}

int neap__recordings_read(const char *path)
{
	static const char *const others[] = {".h5", ".hdf5", NULL};
	return neap__recordings_ends(path, neap__sound_endings) ||
	       neap__recordings_ends(path, neap__event_endings) ||
	       neap__recordings_ends(path, neap__table_endings) ||
	       neap__recordings_ends(path, others);
}

int neap__recordings_text(const char *path)
{
	static const char *const texts[] = {".txt", ".md", ".rst", ".log", ".text", NULL};
	return neap__recordings_ends(path, texts);
}

int neap__recordings_wrong_file(const char *path)
{
	static const char *const sounds[] = {
		".mp3", ".ogg", ".oga", ".opus", ".au", ".caf", ".w64", NULL};
	static const char *const tensors[] = {".pt", ".pth", ".safetensors", ".pkl", NULL};
	static const char *const sheets[] = {
		".xlsx", ".xls", ".ods", ".parquet", ".feather", ".mat", ".json", ".jsonl", NULL};
	static const char *const packed[] = {
		".gz", ".zip", ".bz2", ".xz", ".tar", ".tgz", ".7z", NULL};
	static const char *const cameras[] = {".aedat", ".aedat2", ".bag", ".mat", NULL};
	char rename[600], renamed[300], advice[1000] = "docs/own-data.md lists the kinds of data";
	int is_txt = neap__recordings_ends(path, (const char *const[]){".txt", NULL});
	neap__print(renamed, sizeof renamed, "%.*s_events.txt", is_txt ? (int)strlen(path) - 4 : 0,
		path);
	neap__print(rename, sizeof rename, "mv %s %s", neap__quoted(path), neap__quoted(renamed));
	if (neap__recordings_text(path) || neap__text_like(path))
		neap__print(advice, sizeof advice,
			"If it is a text, pass it to train: neap train --text %.100s. If it is a "
			"table of numbers, rename it to .csv or .tsv; if its lines are events, t x "
			"y p, rename it%s%s",
			neap__quoted(path), is_txt ? ": " : " to ",
			is_txt ? rename : "NAME_events.txt");
	else if (neap__recordings_ends(path, sounds))
		neap__print(advice, sizeof advice,
			"neap encode --any-sound reads every kind of sound file that libsndfile "
			"knows");
	else if (neap__recordings_ends(path, tensors))
		neap__print(advice, sizeof advice,
			"Save the tensors as arrays x and y: numpy.savez('data.npz', x=x, y=y)");
	else if (neap__recordings_ends(path, sheets))
		neap__print(advice, sizeof advice,
			"If it is a table, save it as .csv from the program that wrote it");
	else if (neap__recordings_ends(path, packed))
		neap__print(advice, sizeof advice, "Unpack it first");
	else if (neap__recordings_ends(path, cameras))
		neap__print(advice, sizeof advice,
			"If it has events, save them as arrays t, x, y and p in a .npz file "
			"(docs/events.md)");
	return neap__fail(NEAP_EFORMAT,
		"'%s' has an extension that encode does not read. It reads recordings (.wav, "
		".flac, "
		".aiff), events (" NEAP__EVENT_ENDINGS(NEAP__LISTED) ") and tables "
								     "(.csv, .tsv). %s",
		path, advice);
}

const char *neap__recordings_label(char room[NEAP__OPTION_TEXT], const char *dir)
{
	int64_t flat = 0;
	int64_t sounds = neap__recordings_count(dir, neap__sound_endings, &flat);
	int64_t arrays = neap__recordings_count(dir, neap__event_endings, &flat);
	struct neap__recordings all = {0};
	const char *pattern = NULL;
	room[0] = '\0';
	if (flat && neap__recordings_all(&all, dir) == 0)
		pattern =
			propose(&all, arrays > sounds ? neap__event_endings : neap__sound_endings);
	if (pattern)
		neap__print(room, NEAP__OPTION_TEXT, " --label %s", neap__quoted(pattern));
	else if (flat)
		neap__print(room, NEAP__OPTION_TEXT,
			", after sorting the files into one folder per class, which their names do "
			"not contain");
	neap__recordings_free(&all);
	return room;
}

const char *neap__recordings_option(char room[NEAP__OPTION_TEXT], const char *dir, const char *all)
{
	char label[NEAP__OPTION_TEXT], channels[NEAP__CHANNELS_TEXT];
	int sees = neap__recordings_count(dir, neap__event_endings, NULL) >
		   neap__recordings_count(dir, neap__sound_endings, NULL);
	neap__print(room, NEAP__OPTION_TEXT, "%s%s",
		sees ? neap__event_channels(channels, all) : "",
		neap__recordings_label(label, dir));
	return room;
}

const struct neap__recordings_lines neap__recordings_lines = {
	.wrong_file = neap__recordings_wrong_file,
	.no_group = no_group,
	.no_class = no_class,
	.no_events = neap__contents_refuse_events,
};
