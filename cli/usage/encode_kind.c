/* SPDX-License-Identifier: Apache-2.0 */
/* encode_kind.c: kinds of input of `neap encode`, and the options that each has (cli.h). */
#include "cli.h"
#include "base/quote.h"
#include "data/names/sort_command.h"
#include "data/recordings.h"
#include "data/tables/event_tables.h"
#include "rank_process.h"

#include <neap/data.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum cli_encoded cli_encoded_kind(const char *dir)
{
	const struct neap_peers *peers = cli_peers();
	int64_t kind = INT64_MAX;

	if (!peers || peers->rank == 0)
		kind = neap_encode_is_events(dir)  ? CLI_EVENTS
		       : neap_encode_is_table(dir) ? CLI_TABLE
						   : CLI_RECORDINGS;
	if (peers)
		peers->least(peers->user, &kind, 1);
	return (enum cli_encoded)kind;
}

/* By kind: the heading of the options that are its own, and what an input of it is. */
static const struct {
	const char *group, *are, *contains;
} kinds[] = {
	[CLI_RECORDINGS] = {"The ear", "recordings of sound (.wav, .flac, .aiff)", "other files"},
	[CLI_EVENTS] = {"Events of cameras and the like",
		"events (" NEAP__EVENT_ENDINGS(NEAP__LISTED) ", .bin, .aedat)", "events"},
	[CLI_TABLE] = {"Tables of text", "tables (.csv, .tsv)", "tables"}};

static int is_file(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Whether an option that is off by default is on. */
static int is_given(const struct cli_option *o)
{
	if (o->kind == CLI_TEXT)
		return *(const char *const *)o->into != NULL;
	if (o->kind == CLI_NUMBER || o->kind == CLI_TIME)
		return *(const double *)o->into != 0;
	return *(const int *)o->into != 0; /* counts, flags and choices */
}

/* 1: the option gives sounds or events a class, but has the form for tables. */
static int is_class(const char *option)
{
	return strcmp(option, "labels") == 0 || strcmp(option, "target") == 0;
}

/* Refuses an option that is another kind's own. */
static int wrong_kind(
	enum cli_encoded kind, enum cli_encoded owner, const struct cli_option *o, const char *dir)
{
	char pattern[NEAP__PLAIN_TEXT], command[NEAP__PLAIN_TEXT - 200];
	const char *labels = is_class(o->name) ? *(const char *const *)o->into : NULL;
	const char *remedy = "Remove the option, or see docs/own-data.md for the kinds of data";
	if (owner == CLI_EVENTS && kind == CLI_TABLE &&
		neap__event_tables_advise(command, sizeof command, dir)) {
		snprintf(pattern, sizeof pattern,
			"Convert the tables to events, and repeat the command%s: %s",
			is_file(dir) ? " with the .npz file" : "", command);
		remedy = pattern;
	} else if (owner == CLI_EVENTS && kind == CLI_RECORDINGS &&
		   neap__event_texts_advise(command, sizeof command, dir)) {
		snprintf(pattern, sizeof pattern,
			"If each line%s is an event, t x y p, rename %s, and repeat the command%s: "
			"%s",
			is_file(dir) ? "" : " of its .txt files", is_file(dir) ? "it" : "them",
			is_file(dir) ? " with the new name" : "", command);
		remedy = pattern;
	} else if (owner == CLI_EVENTS)
		remedy = "Save the events as arrays t, x, y and p in .npz files (docs/events.md), "
			 "or "
			 "remove the option";
	else if (is_class(o->name) && strchr(*(const char *const *)o->into, '(')) {
		snprintf(pattern, sizeof pattern,
			"If it is a pattern of file names, pass --label %.140s",
			neap__quoted(*(const char *const *)o->into));
		remedy = pattern;
	} else if (labels && strcmp(o->name, "labels") == 0 && access(labels, R_OK) == 0 &&
		   kind == CLI_RECORDINGS) {
		neap__sort_command(command, sizeof command, labels, dir);
		snprintf(pattern, sizeof pattern,
			"Remove --labels, and encode the folder 'sorted', into which this command "
			"copies the recordings by class: %s",
			command);
		remedy = pattern;
	} else if (labels)
		remedy = "Remove the option: the class of a recording is the folder that it is in, "
			 "or the part of its name that --label finds";
	return cli_usage("encode", "--%s applies to %s, but '%s' contains %s. %s", o->name,
		kinds[owner].are, dir, kinds[kind].contains, remedy);
}

int cli_encoded_check(enum cli_encoded kind, const struct cli_option *options, const char *dir)
{
	int owner = -1;

	if (access(dir, R_OK) != 0)
		return CLI_DONE; /* which the reader refuses */
	for (const struct cli_option *o = options; o->name; o++) {
		if (o->kind == CLI_HEADING) {
			owner = CLI_TABLE;
			while (owner >= 0 && strcmp(kinds[owner].group, o->name) != 0)
				owner--;
		} else if (owner >= 0 && owner != (int)kind && is_given(o)) {
			return wrong_kind(kind, (enum cli_encoded)owner, o, dir);
		}
	}
	return CLI_DONE;
}

int cli_encoded_no_classes(const char *classes, const char *dir)
{
	char column[200] = "Leave";
	if (neap_encode_is_table(dir) && !strchr(classes, ','))
		snprintf(column, sizeof column,
			"If '%.60s' is a column, pass --target %.80s; else leave", classes,
			neap__word(classes));
	return cli_usage("encode",
		"--classes: '%s' is not a file. %s out --classes to use the classes that are "
		"found, or write one name per line to a file, echo %s | tr , '\\n' > "
		"classes.txt, and pass --classes classes.txt",
		classes, column, neap__quoted(classes));
}

int cli_encoded_several(const char *first, const char *second, int lists_columns)
{
	const char *dot = strrchr(second, '.');

	if (dot && strcmp(dot, ".h5") == 0 && access(second, F_OK) < 0)
		return cli_usage("encode",
			"'%s' does not exist. If it is the file to write, pass --out: neap encode "
			"%s --out %s",
			second, neap__quoted(first), neap__quoted(second));
	if ((access(first, F_OK) < 0) != (access(second, F_OK) < 0))
		return cli_usage("encode", "'%s' and '%s' are given, but there is no file '%s'. %s",
			first, second, access(first, F_OK) < 0 ? first : second,
			lists_columns ? "If it is in a list of names, separate them by commas, "
					"without blanks: --drop NAME,NAME"
				      : "Pass one file or folder, and the file to write with "
					"--out");
	if (dot && strcmp(dot, ".h5") == 0 && access(first, F_OK) == 0)
		return cli_usage("encode",
			"'%s' and '%s' are given, but one file or folder is encoded. If '%s' is "
			"the file to write, which exists: neap encode %s --out %s --force",
			first, second, second, neap__quoted(first), neap__quoted(second));
	if (neap_encode_is_table(second) && is_file(second) && neap_encode_is_table(first) &&
		is_file(first))
		return cli_usage("encode",
			"'%s' and '%s' are given, but one file or folder is encoded. Pass the "
			"folder that they are in, or encode each separately; if '%s' has "
			"the classes: neap encode %s --labels %s --out FILE.h5",
			first, second, second, neap__quoted(first), neap__quoted(second));
	if (neap_encode_is_table(second) && neap_encode_is_table(first) && is_file(second))
		return cli_usage("encode",
			"'%s' and '%s' are given, but one file or folder is encoded. If '%s' has "
			"the "
			"classes: neap encode %s --labels %s --out FILE.h5",
			first, second, second, neap__quoted(first), neap__quoted(second));
	return cli_usage("encode",
		"'%s' and '%s' are given, but one file or folder is encoded. Pass the folder that "
		"the files are in; --split selects some of them",
		first, second);
}

int cli_encoded_split(const char *split)
{
	char *end;
	double share = strtod(split, &end);

	if (end == split || *end || access(split, F_OK) == 0)
		return CLI_DONE;
	return cli_usage("encode",
		"--split: '%s' is a number, and a file that lists recordings is expected. To hold "
		"out a share, encode all recordings, and pass --validation %g to 'neap train'",
		split, share < 1 && share > 0.5 ? 1 - share : 0.2);
}
