/* SPDX-License-Identifier: Apache-2.0 */
/* contents_advice.c: chooses the arrays that are inputs, targets and events, for the line that
 * refuses a file (contents.h). */
#include "data/formats/contents.h"
#include "data/dataset.h"
#include "data/event_names.h"
#include "data/missing_file.h"
#include "data/recordings.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/quote.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#define READABLE "This Python makes a file that 'neap train' reads: "
enum { EXPRESSION = 120, LIST = 220 /* bytes of the list of arrays in a line */ };

static const char *const inputs[] = {"x", "inputs", "input", "data", "features", "samples",
	"sequences", "series", "signals", "x_train", "train_x", "train_data", "arr_0", NULL};
static const char *const targets[] = {"y", "labels", "label", "targets", "target", "y_train",
	"train_y", "train_labels", "arr_1", NULL};

static int ends_in(const char *path, const char *ending)
{
	size_t n = strlen(path), e = strlen(ending);
	return n > e && strcasecmp(path + n - e, ending) == 0;
}

static int is_numpy(const char *path)
{
	return ends_in(path, ".npz") || ends_in(path, ".npy");
}

static const char *last_part(const char *name)
{
	const char *slash = strrchr(name, '/');
	return slash ? slash + 1 : name;
}

/* The array that goes by one of the names, with so many dimensions or of objects. */
static const struct neap__content *named(
	const struct neap__contents *c, const char *const *names, int least)
{
	for (int k = 0; names[k]; k++)
		for (int i = 0; i < c->count; i++)
			if (strcasecmp(last_part(c->item[i].name), names[k]) == 0 &&
				(c->item[i].dims >= least || c->item[i].object))
				return &c->item[i];
	return NULL;
}

static const struct neap__content *find_inputs(const struct neap__contents *c)
{
	const struct neap__content *x = named(c, inputs, 2);
	for (int i = 0; i < c->count && !x; i++)
		if (c->item[i].object || (c->item[i].dims >= 2 && !c->item[i].text))
			x = &c->item[i];
	return x && !x->text ? x : NULL;
}

static const char *reading(
	char room[EXPRESSION], const struct neap__content *item, const char *path)
{
	neap__print(room, EXPRESSION, item->name[0] ? "d[%s]%s" : "d",
		neap__python_quoted(item->name), is_numpy(path) ? "" : "[()]");
	return room;
}

/* "X float32 (60, 40, 3), y int64 (60)" */
static size_t list_all(char *room, size_t size, const struct neap__contents *c)
{
	size_t n = 0;
	int shown = 0;
	for (; shown < c->count && n < size && n < LIST; shown++) {
		const struct neap__content *item = &c->item[shown];
		n += (size_t)neap__print(room + n, size - n, "%s%s%s%s", shown ? ", " : "",
			item->name, item->name[0] ? " " : "", item->type);
		for (int d = 0; d < item->dims && n < size; d++)
			n += (size_t)neap__print(room + n, size - n, "%s%lld%s", d ? ", " : " (",
				(long long)item->size[d], d + 1 == item->dims ? ")" : "");
	}
	if (n < size && c->more + c->count - shown > 0)
		n += (size_t)neap__print(room + n, size - n, " and %lld more",
			(long long)(c->more + c->count - shown));
	return n;
}

/* Where the file comes from decides how targets are added to its inputs. */
static int advise_targets(char *room, size_t size, const struct neap__contents *c, const char *path)
{
	char code[NEAP__QUOTED_BYTES + 60];
	int has_x = 0, encoded = 0;
	for (int i = 0; i < c->count; i++) {
		const struct neap__content *item = &c->item[i];
		has_x |= strcmp(item->name, "x") == 0 && !item->text && !item->object &&
			 (item->dims == 2 || item->dims == 3);
		encoded |= !is_numpy(path) && strcmp(item->name, "lengths") == 0;
	}
	if (!has_x || named(c, targets, 1))
		return 0;
	neap__print(code, sizeof code,
		is_numpy(path) ? "numpy.savez('neap.npz', **numpy.load(%s), y=y)"
			       : "h5py.File(%s, 'a')['y'] = y",
		neap__python_quoted(path));
	neap__print(room, size,
		"%sdd an array 'y' with a class or numbers for each sample: %s. With --next-step, "
		"'neap train' needs no targets",
		encoded ? "If 'neap encode' wrote it from tables, encode them again with --target "
			  "NAME or --labels FILE.csv; else a"
			: "A",
		code);
	return 1;
}

/* Adds what the shape of the inputs leaves open. */
static void add_doubts(char *room, size_t size, const struct neap__content *x, const char *path)
{
	if (x->object && !x->name[0])
		neap__print(room, size,
			". If the objects are events of a sensor: neap encode %s --out FILE.h5",
			neap__quoted(path));
	if (x->dims > 3)
		neap__print(room, size,
			". If it is one recording of %lld steps, write .reshape(1, %lld, -1)",
			(long long)x->size[0], (long long)x->size[0]);
	if (x->dims == 2 && !x->object)
		neap__print(room, size,
			". Each row of x is a series of %lld steps; for %lld features in one step, "
			"save x[:, None]",
			(long long)x->size[1], (long long)x->size[1]);
}

/* Python that saves inputs, and targets if there are any, under the names that are read. */
static void advise_numbers(
	char *room, size_t size, const struct neap__contents *c, const char *path)
{
	char a[EXPRESSION], b[EXPRESSION], shape[60] = "";
	const struct neap__content *x = find_inputs(c), *y = named(c, targets, 1);
	if (advise_targets(room, size, c, path))
		return;
	if (!x) {
		neap__print(room, size,
			"Save numbers of shape (samples, steps, features) and a target for each "
			"sample: numpy.savez('neap.npz', x=x, y=y) (docs/data.md). Spikes and "
			"other "
			"events are saved as docs/own-data.md shows");
		return;
	}
	y = y == x ? NULL : y;
	int objects = x->object || (y && y->object), ragged = x->object && x->dims < 2;
	if (x->object && !ragged)
		neap__print(shape, sizeof shape, ".astype(float)");
	else if (x->dims > 3)
		neap__print(shape, sizeof shape, ".reshape(%lld, %lld, -1)", (long long)x->size[0],
			(long long)x->size[1]);
	size_t n = (size_t)neap__print(room, size,
		is_numpy(path) ? READABLE "d = numpy.load(%s%s); "
			       : READABLE "d = h5py.File(%s%s); ",
		neap__python_quoted(path), objects ? ", allow_pickle=True" : "");
	if (ragged && n < size)
		n += (size_t)neap__print(room + n, size - n,
			"x = list(%s); n = [len(s) for s in x]; x = [numpy.pad(s, [(0, max(n) - "
			"len(s))] + [(0, 0)] * (numpy.ndim(s) - 1)) for s in x]; ",
			reading(a, x, path));
	if (n < size)
		n += (size_t)neap__print(room + n, size - n,
			"numpy.savez('neap.npz', x=%s%s%s, y=%s%s)%s",
			ragged ? "x" : reading(a, x, path), shape, ragged ? ", lengths=n" : "",
			y ? reading(b, y, path) : "y", y && y->object ? ".astype(str)" : "",
			y ? ""
			  : ", where y has a class or numbers for each sample; for predict and "
			    "--next-step, leave out y=y");
	if (n < size)
		add_doubts(room + n, size - n, x, path);
}

/* Files of a folder that each have the steps of one recording: the command that stacks them. Two
 * columns may be spikes as well. */
static int advise_stack(char *room, size_t size, const struct neap__contents *c, const char *path,
	const char *folder)
{
	char a[EXPRESSION];
	const struct neap__content *x = find_inputs(c);
	const char *ending = ends_in(path, ".npy") ? "npy" : "npz";
	if (!x || x->object || x->dims < 2 || !is_numpy(path))
		return 0;
	size_t n = (size_t)neap__print(room, size,
		"If each file is one recording, of %lld steps in this one, this command stacks "
		"them, with the folders as classes, into a file that 'neap train' reads: "
		"python3 -c \"import glob, numpy; f = sorted(glob.glob(%s '/**/*.%s', "
		"recursive=True)); x = [%s for d in map(numpy.load, f)]; n = [len(s) for s in x]; "
		"numpy.savez('neap.npz', x=[numpy.pad(s.reshape(len(s), -1), [(0, max(n) - "
		"len(s)), (0, 0)]) for s in x], lengths=n, y=[g.split('/')[-2] for g in f])\"",
		(long long)x->size[0], neap__python_quoted(folder), ending, reading(a, x, path));
	if (x->dims == 2 && x->size[1] == 2 && !x->name[0] && n < size)
		neap__print(room + n, size - n,
			". If its columns are times and channels of spikes, this one saves files "
			"for 'neap encode': python3 -c \"import glob, numpy, os; [(numpy.savez("
			"f[:-4], times=e[:, 0], units=e[:, 1].astype(int)), os.rename(f, f + "
			"'.old')) for f in glob.glob(%s '/**/*.npy', recursive=True) for e in "
			"[numpy.load(f)]]\"",
			neap__python_quoted(folder));
	return 1;
}

/* Whether an array has events as rows of four numbers; `meant`: the file should have events. */
static int is_unnamed(const struct neap__contents *c, const struct neap__content *item, int meant)
{
	return item->dims == 2 && item->size[1] == 4 && !item->text &&
	       (strcasestr(item->name, "event") ||
		       (c->count == 1 && (meant || strncmp(item->type, "float", 5) != 0)));
}

#define COLUMNS "t=e[:, 0], x=e[:, 1], y=e[:, 2], p=e[:, 3])"

static void advise_columns(char *room, size_t size, const struct neap__content *item,
	const char *path, const char *folder)
{
	char a[EXPRESSION];
	size_t n = (size_t)neap__print(room, size,
		"Name its columns, here in the order t, x, y, p, which you may have to adapt (t in "
		"microseconds as integers, "
		"or in seconds as floats)");
	if (n < size && folder && ends_in(path, ".npy"))
		neap__print(room + n, size - n,
			" in each file, here in new files, with the old ones renamed: python3 -c "
			"\"import glob, numpy, os; [(numpy.savez(f[:-4] + '.npz', " COLUMNS
			", os.rename(f, f + '.old')) for f in glob.glob(%s '/**/*.npy', "
			"recursive=True) for e in [numpy.load(f)]]\"",
			neap__python_quoted(folder));
	else if (n < size && folder && is_numpy(path))
		neap__print(room + n, size - n,
			" in each file: python3 -c \"import glob, numpy; [numpy.savez(f, **{%s: "
			"e}, " COLUMNS
			" for f in glob.glob(%s '/**/*.npz', recursive=True) for d in "
			"[dict(numpy.load(f))] for e in [%s]]\"",
			neap__python_quoted(item->name), neap__python_quoted(folder),
			reading(a, item, path));
	else if (n < size && ends_in(path, ".npy"))
		neap__print(room + n, size - n,
			": python3 -c \"import numpy; f = %s; e = numpy.load(f); "
			"numpy.savez(f[:-4], " COLUMNS "\"",
			neap__python_quoted(path));
	else if (n < size)
		neap__print(room + n, size - n,
			is_numpy(path) ? ": d = numpy.load(%s); e = %s; "
					 "numpy.savez('neap.npz', " COLUMNS
				       : ": d = h5py.File(%s); e = %s; "
					 "numpy.savez('neap.npz', " COLUMNS,
			neap__python_quoted(path), reading(a, item, path));
}

enum { FILES = NEAP__QUOTED_BYTES + 60 };

/* Python's list of the file, or of all .npz files in the folder. */
static const char *npz_files(char room[FILES], const char *path, const char *folder)
{
	neap__print(room, FILES, folder ? "glob.glob(%s '/**/*.npz', recursive=True)" : "[%s]",
		neap__python_quoted(folder ? folder : path));
	return room;
}

/* The name of the array that is probably a column of events by its name, or NULL. */
static const char *guessed(const struct neap__contents *c, int column)
{
	static const char *const begins[NEAP__EVENT_COLUMNS][6] = {
		{"time", "ts", "stamp", "us", "t_"}, {"col", "xs", "x_", "px", "u"},
		{"row", "ys", "y_", "py", "v"}, {"pol", "p_", "sign", "on"}};
	for (const char *const *k = neap__event_names[column]; *k; k++)
		for (int i = 0; i < c->count; i++)
			if (c->item[i].dims == 1 && strcasecmp(c->item[i].name, *k) == 0)
				return c->item[i].name;
	for (int k = 0; k < 6 && begins[column][k]; k++)
		for (int i = 0; i < c->count; i++)
			if (c->item[i].dims == 1 && !c->item[i].text && !c->item[i].object &&
				strncasecmp(c->item[i].name, begins[column][k],
					strlen(begins[column][k])) == 0)
				return c->item[i].name;
	return NULL;
}

/* Arrays of events under other names: the command that adds them under those that are read. */
static void advise_names(char *room, size_t size, const struct neap__contents *c, const char *path,
	const char *folder)
{
	static const char key[] = "txyp";
	const char *name[NEAP__EVENT_COLUMNS];
	char pairs[330] = "", files[FILES];
	size_t n = 0;
	for (int i = 0; i < NEAP__EVENT_COLUMNS; i++)
		if ((name[i] = guessed(c, i)) != NULL && n < sizeof pairs)
			n += (size_t)neap__print(pairs + n, sizeof pairs - n, ", '%c': d[%s]",
				key[i], neap__python_quoted(name[i]));
	int lacks = !name[NEAP__EVENT_T] != !name[NEAP__EVENT_X];
	n = (size_t)neap__print(room, size,
		"%sSave the columns of the events as t, x, y and p, or as times and units for "
		"channels "
		"without pixels; times are microseconds as integers or seconds as floats "
		"(docs/events.md)",
		!lacks		      ? ""
		: name[NEAP__EVENT_T] ? "There is no array 'x'. "
				      : "There is no array 't'. ");
	if (n >= size)
		return;
	if (!name[NEAP__EVENT_T] || !name[NEAP__EVENT_X] || !ends_in(path, ".npz"))
		neap__print(room + n, size - n,
			": numpy.savez('neap.npz', t=..., x=..., y=..., p=...)");
	else
		neap__print(room + n, size - n,
			": python3 -c \"import glob, numpy; [numpy.savez(f, **{**d%s}) for f in "
			"%s for d in [dict(numpy.load(f))]]\"",
			pairs, npz_files(files, path, folder));
}

/* Pixels of events as pairs, (x, y): the command that takes them apart. 0: there are none. */
static int advise_pairs(char *room, size_t size, const struct neap__contents *c,
	const struct neap__content *t, const char *path, const char *folder)
{
	char files[FILES];
	for (int i = 0; i < c->count; i++) {
		const struct neap__content *item = &c->item[i];
		if (item->dims != 2 || item->size[1] != 2 || item->text ||
			item->size[0] != t->size[0] || !ends_in(path, ".npz"))
			continue;
		neap__print(room, size,
			"If '%s' has x and y of each event, save them as two arrays: python3 -c "
			"\"import glob, numpy; [numpy.savez(f, **{**d, 'x': d[%s][:, 0], 'y': "
			"d[%s][:, 1]}) for f in %s for d in [dict(numpy.load(f))]]\"",
			item->name, neap__python_quoted(item->name),
			neap__python_quoted(item->name), npz_files(files, path, folder));
		return 1;
	}
	return 0;
}

/* An array of objects, each with the events of a sample, as records or as rows of t, x, y, p. */
static int advise_objects(char *room, size_t size, const struct neap__content *item,
	const char *path, const char *labels)
{
	char a[EXPRESSION];
	neap__print(room, size,
		"This Python makes a file that 'neap encode' reads, if each object has the events "
		"of a sample, as records or in the order t, x, y, p: d = numpy.load(%s, "
		"allow_pickle=True); e = list(%s); c = numpy.concatenate(e); "
		"numpy.savez('neap.npz', "
		"**({k: c[k] for k in c.dtype.names} if c.dtype.names else dict(zip('txyp', "
		"c.T))), "
		"offsets=numpy.cumsum([0] + [len(s) for s in e]), labels=%s)%s",
		neap__python_quoted(path), reading(a, item, path), labels ? labels : "labels",
		labels ? "" : ". Set labels to the number or the name of the class of each sample");
	return 1;
}

/*
 * 1 and advice about events, if the file seems to hold some. `meant`: only events are read from it,
 * so arrays of events under other names are likely; `folder`: of recordings that it is in, or NULL.
 */
static int advise_events(char *room, size_t size, const struct neap__contents *c, const char *path,
	int meant, const char *folder)
{
	char a[EXPRESSION], channels[NEAP__CHANNELS_TEXT];
	int64_t samples;
	const struct neap__content *t = named(c, neap__event_names[NEAP__EVENT_T], 1);
	const struct neap__content *y = named(c, targets + 1, 1);
	int events = t && t->dims == 1 && !t->text;
	neap__print(a, sizeof a, y ? "d[%s]" : "labels", y ? neap__python_quoted(y->name) : "");
	if (t && t->object)
		return neap__print(room, size,
			"This Python makes a file that 'neap encode' reads: d = numpy.load(%s, "
			"allow_pickle=True); "
			"numpy.savez('neap.npz', **{k: numpy.concatenate(d[k]) for k in (%s, "
			"'x', "
			"'y', 'p')}, offsets=numpy.cumsum([0] + [len(s) for s in d[%s]]), "
			"labels=%s)",
			neap__python_quoted(path), neap__python_quoted(t->name),
			neap__python_quoted(t->name), a);
	if (events && meant && advise_pairs(room, size, c, t, path, folder))
		return 1;
	for (int i = 0; i < c->count; i++) {
		const struct neap__content *item = &c->item[i];
		if (item->object && item->dims == 1 &&
			(strcasestr(item->name, "event") || (meant && c->count == 1)))
			return advise_objects(room, size, item, path, y ? a : NULL);
		if (is_unnamed(c, item, meant)) {
			advise_columns(room, size, item, path, folder);
			return 1;
		}
		events |= item->has_t_and_x;
	}
	if (events && !meant)
		neap__print(room, size,
			"These seem to be events, which are converted by: neap encode %s --out "
			"FILE.h5%s",
			neap__quoted(path), neap__event_file_channels(channels, &samples, path));
	else if (meant && !find_inputs(c))
		advise_names(room, size, c, path, folder);
	else
		return 0;
	return 1;
}

/* Whether `train` reads the file: numbers in rows, or spikes as the Heidelberg Digits have them. */
static int is_for_training(const struct neap__contents *c)
{
	for (int i = 0; i < c->count; i++) {
		const struct neap__content *item = &c->item[i];
		if (strcmp(item->name, "spikes/times") == 0 ||
			(strcmp(item->name, "x") == 0 && !item->text && !item->object &&
				(item->dims == 2 || item->dims == 3)))
			return 1;
	}
	return 0;
}

static int refuse(const char *path, const char *problem, int meant, const char *folder)
{
	char advice[NEAP__DETAIL_BYTES] = "It contains ";
	struct neap__contents c;
	size_t n = strlen(advice), size = sizeof advice;
	neap__contents_list(&c, path);
	if (c.count) {
		n += list_all(advice + n, size - n, &c);
		n += (size_t)neap__print(advice + n, size - n, ". ");
	} else {
		n = 0;
	}
	if (!advise_events(advice + n, size - n, &c, path, meant, folder) &&
		!(folder && advise_stack(advice + n, size - n, &c, path, folder)))
		advise_numbers(advice + n, size - n, &c, path);
	return neap__fail(NEAP_EFORMAT, "'%s' %s. %s", path, problem, advice);
}

/* 1: an array file with the events of one recording. */
static int is_recording(const char *path)
{
	char channels[NEAP__CHANNELS_TEXT];
	struct neap__contents c;
	int64_t samples = 0;

	neap__contents_list(&c, path);
	const struct neap__content *t = named(&c, neap__event_names[NEAP__EVENT_T], 1);
	if (t && t->dims == 1 && !t->text && !t->object)
		neap__event_file_channels(channels, &samples, path);
	return samples == 1;
}

int neap__contents_refuse(const char *path, const char *problem)
{
	if (is_recording(path))
		return neap__recordings_lone(path, 1);
	return refuse(path, problem, 0, NULL);
}

int neap__contents_is_set(const char *path)
{
	static const char *const arrays[] = {".npz", ".h5", ".hdf5", NULL};
	struct neap__contents c;
	if (!neap__recordings_ends(path, arrays))
		return 0;
	neap__contents_list(&c, path);
	return is_for_training(&c);
}

int neap__contents_refuse_set(const char *path)
{
	return neap__fail(NEAP_EFORMAT,
		"'%s' is already a data set, so there is nothing to encode. Pass it to train: "
		"neap train %s",
		path, neap__quoted(path));
}

int neap__contents_refuse_events(const char *path, const char *folder)
{
	struct neap__contents c;
	neap__contents_list(&c, path);
	return is_for_training(&c)
		       ? neap__contents_refuse_set(path)
		       : refuse(path, "contains no events that can be encoded", 1, folder);
}

int neap__contents_set_in(char *room, size_t size, const char *folder)
{
	enum { LOOKS = 4 /* at files, each with HDF5 in a child process; chosen */ };
	struct neap__recordings all = {0};
	int looks = 0, found = 0;
	/* First files that are named as parts for training, then all. */
	for (int any = 0; neap__recordings_all(&all, folder) == 0 && any < 2 && !found; any++) {
		for (int64_t i = 0; i < all.count && looks < LOOKS && !found; i++) {
			const char *path = all.file[i].path;
			const char *name = neap__recordings_below(path, folder);
			if (all.file[i].stray ||
				!neap__recordings_ends(path, neap__event_endings) ||
				(!any && !strcasestr(name, "train")))
				continue;
			looks++;
			found = neap__contents_is_set(path);
			if (found)
				neap__print(room, size, "%s", path);
		}
		neap__recordings_free(&all);
	}
	neap__recordings_free(&all);
	return found;
}

static int is_hollow(const char *path)
{
	DIR *folder = opendir(path);
	const struct dirent *entry = NULL;

	while (folder && (entry = readdir(folder)) && entry->d_name[0] == '.')
		;
	if (folder)
		closedir(folder);
	return folder && !entry;
}

int neap__contents_refuse_folder(const char *path)
{
	char part[2][4096], option[NEAP__OPTION_TEXT], command[NEAP__DETAIL_BYTES];
	int parts = neap__recordings_parts(part[0], part[1], path);

	if (is_hollow(path))
		return neap__fail(-EISDIR,
			"the folder '%s' is empty. Put the data into it, or check the path", path);
	if (!parts && neap__contents_set_in(part[0], sizeof part[0], path))
		return neap__fail(-EISDIR, "'%s' is a folder. Pass the data set in it: %s", path,
			neap__quoted(part[0]));
	if (!parts && !neap__recordings_having(path, neap__sound_endings) &&
		!neap__recordings_having(path, neap__event_endings) &&
		!neap__recordings_having(path, neap__table_endings) &&
		neap__join_texts(command, sizeof command, path))
		return neap__fail(-EISDIR,
			"'%s' is a folder without data that encode reads. To learn its texts as "
			"one: %s; neap train --text all.txt",
			path, command);
	neap__recordings_option(option, parts ? part[0] : path, path);
	const char *missing = neap__tables_have_gaps(path) ? " --missing previous" : "";
	char labels[2][NEAP__LABELS_TEXT];
	neap__labels_option(labels[0], parts ? part[0] : path);
	if (parts)
		return neap__fail(-EISDIR,
			"'%s' is a folder. Encode its parts first, and train on the files: neap "
			"encode %s --out train.h5%s%s%s; neap encode %s --out test.h5%s%s%s; neap "
			"train train.h5 --test test.h5",
			path, neap__quoted(part[0]), labels[0], missing, option,
			neap__quoted(part[1]), neap__labels_option(labels[1], part[1]), missing,
			option);
	return neap__fail(-EISDIR,
		"'%s' is a folder. Encode it first: neap encode %s --out FILE.h5%s%s%s", path,
		neap__quoted(path), labels[0], missing, option);
}
