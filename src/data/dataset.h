/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset.h: kinds of data sets. Each kind is one file (shd.c, randman.c) and one row in the table
 * of dataset.c; a kind gives functions that read samples whole and, where it can, in part.
 */
#ifndef NEAP_DATA_DATASET_H
#define NEAP_DATA_DATASET_H

#include "data/augment/sample_extent.h"
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <neap/data.h>

/* Events with spare memory, so that reading a whole epoch allocates a few times only. */
struct neap__event_buffer {
	struct neap_events events;
	int64_t room;
	/*
	 * 0; or the length of the steps into which the events will be sorted, in seconds, if that
	 * is all that they are read for: then a kind may give other times in the same steps, in any
	 * order but for the last, which has the largest.
	 */
	double dt;
};

/*
 * Makes room for `count` events, a quarter more than that (windows.c counts on it); keeps none
 * of the old ones. 0, NEAP_EOVERFLOW or -ENOMEM.
 */
int neap__event_buffer_reserve(struct neap__event_buffer *buffer, size_t count);
/* Makes room for `count` events by doubling and keeps what is there. 0 or -ENOMEM. */
int neap__event_buffer_grow(struct neap__event_buffer *buffer, int64_t count);
void neap__event_buffer_free(struct neap__event_buffer *buffer);

struct neap__dataset_ops {
	/* Fills in count, time, unit and duration; index is in range, the set's lock is held. */
	int (*read)(struct neap_dataset *set, int64_t index, struct neap__event_buffer *buffer);
	/* Frees what the kind owns, not the set itself. */
	void (*close)(struct neap_dataset *set);
	/* `extent` and `part` are NULL unless samples can be read in part. The lock is held. */
	int (*extent)(struct neap_dataset *set, int64_t index, struct neap__sample_extent *extent);
	/* Checks that `part` can read the sample, in memory that does not grow with it; or NULL. */
	int (*prepare)(struct neap_dataset *set, int64_t index);
	/*
	 * Reads the events of [from, to) seconds, and maybe some around them, in any order, into a
	 * buffer with room for `most`. 0, 1 with no events where there are more, or a negative
	 * code.
	 */
	int (*part)(struct neap_dataset *set, int64_t index, double from, double to, size_t most,
		struct neap__event_buffer *buffer);
	/*
	 * Of sets whose samples are rows of steps (info.steps > 0), NULL in others: rows of a
	 * sample; numbers[to - from][inputs] of its rows [from, to), where the inputs are values;
	 * their targets, as step_rows.h says. The lock is held by all but `length`.
	 */
	int64_t (*length)(const struct neap_dataset *set, int64_t index);
	int (*values)(
		struct neap_dataset *set, int64_t index, int64_t from, int64_t to, double *numbers);
	int (*targets)(struct neap_dataset *set, int64_t index, int64_t from, int64_t to,
		int32_t *labels, float *series);
	/* Of sets whose samples have numbers: reads all of them again, as target_units.h says. */
	int (*numbers)(struct neap_dataset *set);
	/* NULL where a set numbers its channels itself: numbers channels and classes as `names`. */
	int (*adopt)(struct neap_dataset *set, const char *const *names, int count);
};

enum { NEAP__PIECE_NUMBERS = 32768 /* that step_rows.c reads at a time, 256 KiB */ };

struct neap__coded_rows;

/* Attributes of a file of events: the sensor, its part, the pooling, the polarities. */
enum { NEAP__EVENT_NUMBERS = 8 };
extern const char *const neap__event_numbers[NEAP__EVENT_NUMBERS];

/* A kind embeds this as its first member; it comes from calloc. */
struct neap_dataset {
	const struct neap__dataset_ops *ops;
	pthread_mutex_t lock; /* one reader at a time: guards what ops->read changes */
	struct neap_dataset_info info;
	char *name;
	int32_t *label, *speaker; /* [samples]; NULL: none */
	char **class_names, **speaker_names;
	int nclass_names, nspeaker_names;
	char **feature_names; /* [nfeature_names] of numbers in a row; NULL: none are known */
	int nfeature_names;
	int *order; /* [nfeature_names] column of the file that is feature k; NULL: column k */
	double *unordered;   /* [nfeature_names] a row as it is in the file; with `order` */
	char *sample_column; /* of the table that the rows are from; NULL: none is known */
	/* The --missing by which values were filled in or rows left out; NULL: none were. */
	char *missing;
	int64_t filled,
		left_out;    /* by it: values, and rows with missing ones, of a table of text */
	char **sample_names; /* [samples] in that column; NULL: none */
	char *doubt;	     /* a line about its numbers for `predict`; NULL: none */
	/* Of samples that are rows of steps. */
	float *numbers;	       /* [samples][classes] NEAP_TARGET_NUMBERS; NULL: none */
	double *shift, *scale; /* [inputs] a value is (number - shift) scale; NULL: the number */
	/* Inputs with one value in all rows of which shift and scale are; those of another than 0.
	 */
	int constants, offsets, constant; /* and the first of them */
	/* [classes] targets that are numbers are (number - mean) / deviation; NULL: the number */
	double *target_mean, *target_deviation;
	int next;	   /* 1: the targets are the values of the step after */
	double *piece;	   /* step_rows.c: numbers as they are in the file */
	char slow[256];	   /* a line about what makes reading slow, and its mend; "": nothing */
	size_t read_bytes; /* that reading a part takes, beside `piece` and the result */
	struct neap_encoder_options encoder; /* of recordings, all set; size 0: unknown */
	/* Of events of a sensor: the attributes that `encode` writes; has_events 0: unknown. */
	double events[NEAP__EVENT_NUMBERS];
	int has_events;
	/* That events were encoded with, seconds; 0: that of the type of their times; has_ 0:
	 * unknown. */
	double time_unit;
	int has_time_unit;
	int from_first; /* 1: the events of each sample were encoded from its first one on */
	/* Where numbers become spikes (coded_rows.h), else NULL and 0: numbers in a row, which are
	   not info.inputs there, and steps that a row lasts. */
	struct neap__coded_rows *coded;
	int features;
	int64_t repeat;
};

/* Numbers in a row, of a set that has numbers. */
static inline int neap__features(const struct neap_dataset *set)
{
	return set->coded ? set->features : set->info.inputs;
}

struct neap__dataset_format {
	const char *name;
	/* Whether a data set's name asks for this kind. The last row takes all. */
	int (*takes)(const char *name);
	/* Gives a set with ops, info and label filled in; name and lock are the caller's. */
	int (*open)(struct neap_dataset **set, const char *name);
};

extern const struct neap__dataset_format neap__format_randman, neap__format_volleys,
	neap__format_h5_arrays, neap__format_npz_arrays, neap__format_text, neap__format_recording,
	neap__format_shd;

/* Whether a name is that of a recording: of a sound file, or "-". */
int neap__recording_named(const char *name);
/*
 * Opens one with settings of the caller's, else the default ones. 0, NEAP_EFORMAT, NEAP_EUSAGE or
 * -errno.
 */
int neap__recording_open(
	struct neap_dataset **out, const char *name, const struct neap_encoder_options *encoder);
/* The same of one that is heard later: the sample has no spikes, and no file is opened. */
int neap__recording_shape(
	struct neap_dataset **out, const char *name, const struct neap_encoder_options *encoder);

/*
 * NEAP_EFORMAT: "'PATH' PROBLEM. It holds ARRAYS. ", and Python that makes a file which is read, or
 * the command that reads this one.
 */
int neap__contents_refuse(const char *path, const char *problem);
/* The same of a file without events, alone or of a folder of recordings, or of one that training
 * reads as it is. */
int neap__contents_refuse_events(const char *path, const char *folder);
/* Whether training reads the array file as it is, and the line that refuses to encode it. */
int neap__contents_is_set(const char *path);
int neap__contents_refuse_set(const char *path);

/* Tries fn(arg) as neap_data_set_trial says: 0, or the signal that ended it. */
int neap__data_try(void (*fn)(void *arg), void *arg);

/*
 * Where the file of a set does not say how many channels there are, takes `given`; NEAP_EUSAGE
 * where that is 0 or less than the set has. 0 in any other set.
 */
int neap__dataset_channels(struct neap_dataset *set, int given);

/* Hashes labels, speakers and some of the data, so that data sets differ. 0 or a negative code. */
int neap__data_fingerprint(uint64_t *hash, struct neap_dataset *set);

/*
 * Of a text, else nothing: the last sample has one step more, of the last character, whose label is
 * -1, so that its answer is what comes next.
 */
void neap__text_go_on(struct neap_dataset *set);

/* 1: the answer to some sample is known. */
int neap__dataset_is_labelled(const struct neap_dataset *set);

/* 0, or NEAP_EFORMAT for a set without samples or classes, such as a recording. */
int neap__dataset_has_labels(const struct neap_dataset *set);

/*
 * neap_dataset_open; a recording is encoded with these settings. NULL: with the default ones.
 */
int neap__dataset_open_as(
	struct neap_dataset **out, const char *name, const struct neap_encoder_options *encoder);
/* The same of a recording that is heard later (live/live_sound.h): its settings are in `encoder`.
 */
int neap__dataset_open_live(
	struct neap_dataset **out, const char *name, const struct neap_encoder_options *encoder);

#define NEAP__TAKEN_TEXT 900
/* What is read of a table of text; borrowed. */
struct neap__table_choice {
	const char *const
		*names; /* [count] of the features, in their order; count 0: all columns */
	int count;
	const char *sample; /* the column that names samples, if the table has it; NULL: none */
	/* NULL, or the column of the model's targets, for advice; 1: answers are compared with it.
	 */
	const char *target;
	int judges;
	const char *missing; /* "previous", "zero" or "drop" as --missing; NULL: none is accepted */
};
/*
 * Opens a table of text, .csv or .tsv by its name, as a set without targets. `ignored` names the
 * columns that are no features ("": none). Without a column of samples the table is one sample.
 */
int neap__table_named(const char *name);
int neap__dataset_open_table(struct neap_dataset **out, const char *name,
	const struct neap__table_choice *choice, char ignored[NEAP__TAKEN_TEXT]);
/* The same but for the name and the lock of the set. */
int neap__table_set_open(struct neap_dataset **out, const char *name,
	const struct neap__table_choice *choice, char ignored[NEAP__TAKEN_TEXT]);

/* neap_dataset_read into a buffer that is used again. Takes the set's lock. */
int neap__dataset_read(struct neap_dataset *set, int64_t index, struct neap__event_buffer *buffer);

/* ops->extent, after ops->prepare if asked for and there; ops->part. Both take the set's lock. */
int neap__dataset_extent(
	struct neap_dataset *set, int64_t index, int prepare, struct neap__sample_extent *extent);
int neap__dataset_part(struct neap_dataset *set, int64_t index, double from, double to, size_t most,
	struct neap__event_buffer *buffer);

/* Sorts by (time, unit). 0 or -ENOMEM. */
int neap__events_sort(struct neap_events *events);

static inline void neap__names_free(char **names, int count)
{
	for (int i = 0; names && i < count; i++)
		free(names[i]);
	free(names);
}

/*
 * Moves those of `count` names behind the others of which no recording is whole (used[i] 0), and
 * numbers the samples of a writer anew: their classes, or their speakers. The names left in front,
 * or -ENOMEM.
 */
int neap__shd_leave_out(struct neap_shd_writer *writer, int are_speakers, char **names, int count,
	const unsigned char *used);

/*
 * Numbers the classes of a set as `names` does, by their names, and gives it those names. 1; 0
 * where the set or `names` has classes without a name, or labels are of steps: nothing changed;
 * NEAP_EUSAGE where samples have a class that is not in `names`, the classes of the owner; -ENOMEM.
 */
struct neap__class_owner {
	const char *name;
	const char *otherwise; /* an imperative: what to do if the classes are really others */
};
int neap__dataset_map_classes(struct neap_dataset *set, const char *const *names, int count,
	const struct neap__class_owner *owner);

/*
 * For data without known answers, such as recordings whose classes are the names of their files: if
 * none of the set's classes is in `names`, they become names of the samples, which lose their
 * labels; if some are not, their samples lose their labels. `line` has a warning. 1; 0 if nothing
 * changed; or -ENOMEM.
 */
int neap__dataset_forget_classes(
	struct neap_dataset *set, const char *const *names, int count, char line[NEAP__TAKEN_TEXT]);

/*
 * Puts into `room` the line that says which of the `count` names of classes the numbers of a set
 * without names are taken as. 1; 0 where nothing is to be said: the set has names or targets that
 * are numbers, or the names are the numbers.
 */
int neap__dataset_names_taken(char room[NEAP__TAKEN_TEXT], const struct neap_dataset *set,
	const char *const *names, int count);

#endif
