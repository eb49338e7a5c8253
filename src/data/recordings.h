/* SPDX-License-Identifier: Apache-2.0 */
/* recordings.h: the recordings of a folder, with class and speaker by their names. */
#ifndef NEAP_DATA_RECORDINGS_H
#define NEAP_DATA_RECORDINGS_H

#include <stddef.h>
#include <stdint.h>
#include <neap/data.h>

struct neap__name_list;

struct neap__recording {
	char *path;    /* begins with `dir` */
	char *label;   /* name of its class */
	char *speaker; /* or NULL */
	int class_number, speaker_number;
	int stray; /* 1: hidden, 2: a link to nothing, a socket and the like: never a recording */
};

struct neap__recordings {
	struct neap__recording *file; /* sorted by path */
	int64_t count, room;
	char **classes, **speakers; /* names, sorted: numbers by value, before words */
	int nclasses, nspeakers;
};

/*
 * Errors whose line proposes what to do. The proposal opens other files, perhaps with the same
 * reader, so a reader gets this table from whoever shows the line; NULL: a plain line.
 */
struct neap__recordings_lines {
	/* A file by itself that is of no kind to be encoded. */
	int (*wrong_file)(const char *path);
	/* --label without a group. */
	int (*no_group)(
		const struct neap__recordings *all, const char *label, const char *const *endings);
	/* A file in the folder itself, whose class nothing shows. */
	int (*no_class)(const struct neap__recordings *all, const char *path, const char *dir,
		const char *const *endings);
	/* An array file, of a folder of recordings or NULL, without arrays of events. */
	int (*no_events)(const char *path, const char *folder);
};
/* recordings_advice.c. All give NEAP_EUSAGE or NEAP_EFORMAT. */
extern const struct neap__recordings_lines neap__recordings_lines;

/* Which files count, and what their classes are; all pointers are borrowed and may be NULL. */
struct neap__recordings_choice {
	/* Regular expressions (name_pattern.h) on the file name whose group 1 is the name; NULL:
	   the folder a file is in, and no speakers. */
	const char *label, *speaker;
	const char *const *endings; /* ".wav", ...; NULL ends; files of others do not count */
	const struct neap__name_list *only;    /* paths below `dir` that count */
	const struct neap__name_list *without; /* that do not */
	const char *apart; /* a file that does not count, wherever it is: the table of labels */
	const char *const *classes; /* all there are, in their order */
	int nclasses;
	int nameless; /* 1: files have no classes, and all are number -1 */
	int strict;   /* 1: a file that does not count by its ending or class is refused */
	const struct neap__recordings_lines *lines;
	/* Set by find: files of other endings and hidden ones, of other classes, outside the lists.
	 */
	int64_t others, strangers, unlisted;
	char other[NEAP_SKIPPED_NAME]; /* the first of the others, below `dir`; "": none */
};

/*
 * Endings of files that contain one recording of events: X(comma, ending), the first without a
 * comma. NEAP__LISTED makes the list for messages.
 */
#define NEAP__EVENT_ENDINGS(X)                                                                     \
	X("", ".npz")                                                                              \
	X(", ", ".npy")                                                                            \
	X(", ", ".h5")                                                                             \
	X(", ", ".hdf5")                                                                           \
	X(", ", ".aedat4")                                                                         \
	X(", ", ".dat")                                                                            \
	X(", ", ".raw")                                                                            \
	X(", ", "events.txt")
#define NEAP__LISTED(comma, ending) comma ending

/* Endings of the files of a kind; NULL ends. */
extern const char *const neap__sound_endings[], *const neap__table_endings[],
							*const neap__event_endings[];

/*
 * Walks `dir`, or takes it alone where it is a file. Hidden files do not count, `strict` or not;
 * hidden folders are passed over. NEAP_EUSAGE, NEAP_EFORMAT or -errno.
 */
int neap__recordings_find(struct neap__recordings *recordings, const char *dir,
	struct neap__recordings_choice *choice);
/* All files below `dir`, sorted by path, hidden ones as strays. 0 or a negative code. */
int neap__recordings_all(struct neap__recordings *recordings, const char *dir);
/* For recordings that are parts of one file: adds one by its name; and numbers the classes and
 * speakers of all, whose labels are set, as find does. 0 or a negative code. */
int neap__recordings_add(struct neap__recordings *recordings, const char *name);
int neap__recordings_number(struct neap__recordings *recordings, const char *dir,
	struct neap__recordings_choice *choice);
/* Counts the files with one of the endings below `dir`, and in it, if `flat` is not NULL. */
int64_t neap__recordings_count(const char *dir, const char *const *endings, int64_t *flat);
/* 1: a table below `path` has missing values; `path` may be a table. tables/table_gaps.c. */
int neap__tables_have_gaps(const char *path);
/*
 * The table (tables/label_table.h) that lists labels for most files of a folder: one in it, or,
 * unless `inside`, next to it. Its path goes to room[size]: 1; 0 and "": there is none. The same of
 * a file by itself. tables/label_files.c.
 */
int neap__labels_of(char *room, size_t size, const char *dir, int inside);
int neap__labels_of_file(char *room, size_t size, const char *path);
/* " --labels TABLE" if the folder has tables whose classes no folder names, but such a table; else
 * "". */
#define NEAP__LABELS_TEXT 640
const char *neap__labels_option(char room[NEAP__LABELS_TEXT], const char *dir);
/* 1: the table lists labels for most files of the folder. */
int neap__labels_name(const char *path, const char *dir);
/*
 * 1: the table at `path` has the column `room` (text, in the first line), whose first field is the
 * name of a sample that the table of labels lists.
 */
int neap__labels_column(char *room, size_t size, const char *path, const char *labels);
/* 1: the first row of the table has the field, which is `bytes` of `text`. */
int neap__table_has_column(const char *path, const char *text, size_t bytes);
/* 1: the path has one of the endings. */
int neap__recordings_ends(const char *path, const char *const *endings);
/* Files below the folder `dir` that have one of the endings (NULL: any); 0 as well where it cannot
 * be read. */
int64_t neap__recordings_having(const char *dir, const char *const *endings);
/* Of a folder of events: " --sensor WIDTHxHEIGHT" or " --inputs N", with what its events need at
 * least if they can be read, or "" if the files have both. */
#define NEAP__CHANNELS_TEXT 60
const char *neap__event_channels(char room[NEAP__CHANNELS_TEXT], const char *dir);
/* The same of a file; *samples: of it, 0 if unknown. */
const char *neap__event_file_channels(
	char room[NEAP__CHANNELS_TEXT], int64_t *samples, const char *path);
/* The options that encoding the folder needs as far as its files show, " --label 'PATTERN'"; or "".
 * `all`: the folder whose events are all encoded, of which this may be a part. */
#define NEAP__OPTION_TEXT 600
const char *neap__recordings_option(char room[NEAP__OPTION_TEXT], const char *dir, const char *all);
/* The same of --label alone, which sounds and arrays in the folder itself need: no folder names
 * their class. If their names do not either, it is what to do instead, behind a comma. */
const char *neap__recordings_label(char room[NEAP__OPTION_TEXT], const char *dir);
/* wrong_file of neap__recordings_lines. */
int neap__recordings_wrong_file(const char *path);
/* Refuses a recording, of sound (`events` 0) or of events, where a data set is expected; with the
 * folder of classes that it is in, if there is one. Opens files of events. NEAP_EFORMAT. */
int neap__recordings_lone(const char *path, int events);
/* The same for a table, or a table of labels. tables/lone_table.c. Opens no file with HDF5. */
int neap__table_lone(const char *path);
/* The folder of class folders that the file is in: 1 and its path; 0: none. */
int neap__recordings_above(char *room, size_t size, const char *path, const char *const *endings);
/* 1: by its ending, the file is a text. */
int neap__recordings_text(const char *path);
/* 1: by its ending, encode reads the file. */
int neap__recordings_read(const char *path);
/* Whether `path` is a folder. */
int neap__recordings_folder(const char *path);
/*
 * A copy of the name of the folder that contains the file, which is the class of a file that is
 * encoded by itself; the same for all paths of the file. "recording" for the root, which has no
 * name. 0 or a negative code.
 */
int neap__recordings_folder_name(char **out, const char *path);
/* 1: the folder has folders 'train' and 'test', and the path of the latter is in `test`. */
int neap__recordings_parts(char train[4096], char test[4096], const char *path);
/* 1: the folder is called as such a part. */
int neap__recordings_is_part(const char *path);
/* The path of a file below `dir`, as lists of files have it; its last part where they are one. */
const char *neap__recordings_below(const char *path, const char *dir);
/* Sorts by class, speaker and path. */
void neap__recordings_sort(struct neap__recordings *recordings);
void neap__recordings_free(struct neap__recordings *recordings);

#endif
