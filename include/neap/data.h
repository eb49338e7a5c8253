/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data.h: recordings and data sets as spikes over time, and batches of them for a network: binned
 * into steps of dt, sorted by step, prepared in the background.
 *
 *     struct neap_dataset *set;
 *     neap_dataset_open(&set, "train.h5");
 *     struct neap_loader_options o = {.size = sizeof o, .batch = 32, .dt = 1e-3};
 *     struct neap_loader *loader;
 *     neap_loader_open(&loader, set, &o);
 *     neap_loader_start(loader, epoch, 0);
 *     const struct neap_batch *batch;
 *     while (neap_loader_next(loader, &batch) > 0)
 *             ...
 */
#ifndef NEAP_DATA_H
#define NEAP_DATA_H

#include <stddef.h>
#include <stdint.h>
#include <neap/peers.h>
#include <neap/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Kinds of targets: X(CHOICE, name, meaning). If targets are numbers, there is one per output of
 * the network.
 */
/* clang-format off */
#define NEAP_TARGET_TABLE(X) \
	X(NEAP_TARGET_LABEL, label, "a class a sample") \
	X(NEAP_TARGET_LABELS, labels, "a class a step") \
	X(NEAP_TARGET_NUMBERS, numbers, "numbers a sample") \
	X(NEAP_TARGET_SERIES, series, "numbers a step")
/* clang-format on */
#define NEAP_X(choice, name, meaning) choice,
/* Kind of the targets of a data set: NEAP_TARGET_TABLE lists the values. */
enum neap_target { NEAP_TARGET_TABLE(NEAP_X) NEAP_TARGETS };
#undef NEAP_X

/*
 * One sample of a batch. Its inputs are either spikes, unit[start[t] .. start[t+1]) in step t,
 * ascending and without duplicates, or numbers, values[t * inputs ..] in step t.
 */
struct neap_sequence {
	int64_t length;	       /* number of steps; later steps of the batch are masked */
	const uint32_t *start; /* [length + 1] */
	const uint16_t *unit;
	int label;	     /* -1 if there is none */
	const float *target; /* [outputs] NEAP_TARGET_NUMBERS; NULL otherwise */
	int64_t index;	     /* index of the sample in its data set */
	const float *values; /* [length][inputs] if the batch has values; NULL otherwise */
	/* [length] NEAP_TARGET_LABELS: a step with label -1 is masked, so it has no loss. */
	const int32_t *labels;
	/* [length][outputs] NEAP_TARGET_SERIES: a step whose first number is NaN is masked. */
	const float *series;
	int64_t counted; /* number of steps that are not masked, if targets are per step */
};

struct neap_windows;

/* The samples of one batch, and the type of their inputs and targets. */
struct neap_batch {
	int size;      /* samples */
	int inputs;    /* channels */
	int64_t steps; /* number of steps of the longest sample */
	const struct neap_sequence *sequences;
	size_t bytes; /* memory of the batch */
	/*
	 * Not NULL: a long batch, whose inputs and targets per step are read in windows; start,
	 * unit, values, labels and series of the sequences are NULL. Owned by the loader.
	 */
	struct neap_windows *windows;
	int values; /* 1: the inputs are numbers; 0: spikes */
	enum neap_target target;
	int of; /* size of the batch of which this is a part; 0: it is a whole batch */
};

/*
 * Steps [from, to) of a long batch: step t starts at sequences[i].start[t - from] in
 * sequences[i].unit; values, labels and series start with step `from`. length, label and the other
 * fields are only set in the batch.
 */
struct neap_window {
	int64_t from, to;
	const struct neap_sequence *sequences;
};

/*
 * Returns the window that contains step t, valid until the next call. from and to depend only on
 * the data and the loader's options; from is a multiple of 64, and so is to unless it is the last
 * step. Windows are read ahead in the direction in which they are requested. For one thread at a
 * time. Returns 0 or a negative code.
 */
NEAP_API int neap_windows_take(struct neap_windows *windows, int64_t t, struct neap_window *window);
/* Announces that steps [t0, t1) are next, from either end, so they are read ahead after a jump. */
NEAP_API void neap_windows_expect(struct neap_windows *windows, int64_t t0, int64_t t1);
/* Returns the total time in seconds that neap_windows_take waited for the reader. */
NEAP_API double neap_windows_waited(const struct neap_windows *windows);
/* Returns the maximum number of steps of a window. */
NEAP_API int64_t neap_windows_steps(const struct neap_windows *windows);

/* The events of one sample, sorted by time. Owned by the code that filled it in. */
struct neap_events {
	int64_t count;
	double *time; /* seconds */
	uint16_t *unit;
	double duration; /* seconds; 0: unknown */
	int label, speaker;
};

struct neap_dataset;

/* Properties of a data set, filled in by neap_dataset_info. */
struct neap_dataset_info {
	uint32_t size; /* sizeof(struct neap_dataset_info) */
	int64_t samples;
	int inputs; /* channels */
	int classes;
	int speakers;	  /* 0: unknown */
	double duration;  /* longest sample, seconds */
	int64_t events;	  /* total number; 0: not counted */
	const char *name; /* path, or "randman(...)"; owned by the data set */
	int values;	  /* 1: the inputs are numbers; 0: spikes */
	enum neap_target target;
	/*
	 * If samples are rows of steps, independent of dt: number of steps of the longest; 0:
	 * samples are measured in seconds. `classes` is the number of outputs if targets are
	 * numbers.
	 */
	int64_t steps;
	/*
	 * 1: the file does not specify the number of channels: `inputs` is the minimum for its
	 * spikes, and other files of the same data may have more.
	 */
	int inputs_least;
};

/*
 * Opens a data set: a file in the SHD layout; an HDF5 file of arrays of numbers (docs/data.md); or
 * "randman" or "randman:KEY=VALUE,..." for smooth random manifolds of spike times (Zenke and
 * Vogels, Neural Computation 33, 2021). Keys and their defaults: classes=10 units=70 dim=1 (of the
 * manifold) alpha=2 (smoothness) steps=100 (of 1 ms) samples=4000 seed=0 (for manifolds and points)
 * spikes=1 (per unit; each in a separate part of the steps, with a separate point) noise=0
 * (standard deviation of spike times in steps) part=train (or test: other points of the same
 * manifolds) first=0 (index of the first point) active=1 (share of each part of the steps in which
 * its spikes are: below 1, the units spike in bursts); or "volleys" or "volleys:KEY=VALUE,..." for
 * two volleys of spikes at some distance in time. Keys and their defaults: task=xor (whether the
 * two are of different groups of channels) or lag (their distance, one per class) gap=100 (shortest
 * distance in steps of 1 ms) apart=15 (steps between the distances of the classes) classes=4 (of
 * task=lag) units=10 (channels of each of two groups) noise=10 (additional spikes) samples=2000
 * seed=0 part=train first=0.
 *
 * Files: times have any floating-point type, units and labels any integer type. A file without the
 * attributes `inputs` and `longest` (neap writes them) is read completely once to find its longest
 * sample and its largest channel. Without `inputs` it has the 700 channels of SHD and SSC if it has
 * their /extra/keys and its largest channel is 350 to 699; else info.inputs_least is 1. Returns 0,
 * NEAP_EFORMAT or -errno; the detail line has the file, the data set and the fix.
 */
NEAP_API int neap_dataset_open(struct neap_dataset **set, const char *name);

/*
 * HDF5 1.10 may crash on a file with damaged structures. A program that must survive such files
 * sets a trial: before neap_dataset_open opens a file, it calls trial(fn, arg), which must run
 * fn(arg) in a child process and return 0, or the number of the signal that ended the child; the
 * file is then rejected. `neap` sets a trial. NULL (the initial setting): files are opened at once,
 * without a child process. Applies to the whole process; thread-safe.
 */
typedef int neap_data_trial(void (*fn)(void *arg), void *arg);
/* Sets the trial of the process; NULL: none. */
NEAP_API void neap_data_set_trial(neap_data_trial *trial);
/* Fills in `info`. Returns 0, or NEAP_EUSAGE if its size is wrong. */
NEAP_API int neap_dataset_info(const struct neap_dataset *set, struct neap_dataset_info *info);
/* Returns the class of a sample; -1 if there is none. */
NEAP_API int neap_dataset_label(const struct neap_dataset *set, int64_t index);
/* Returns the number of the speaker of a sample; -1 if unknown. */
NEAP_API int neap_dataset_speaker(const struct neap_dataset *set, int64_t index);
/* Returns the name of a class; NULL if unknown. Owned by the set. */
NEAP_API const char *neap_dataset_class_name(const struct neap_dataset *set, int label);
/* Returns the name of a speaker; NULL if unknown. Owned by the set. */
NEAP_API const char *neap_dataset_speaker_name(const struct neap_dataset *set, int speaker);
/* Reads one sample into `events`, to be freed with neap_events_free. Takes the set's lock. */
NEAP_API int neap_dataset_read(struct neap_dataset *set, int64_t index, struct neap_events *events);
/* Frees the arrays of `events`, not the structure itself. */
NEAP_API void neap_events_free(struct neap_events *events);
/* Closes a data set and frees it; NULL is allowed. */
NEAP_API void neap_dataset_close(struct neap_dataset *set);

/*
 * Splits samples in two, by seed or by speaker. The second part is a `fraction` of the samples,
 * stratified by class, or if `speaker` >= 0 the samples of that speaker. Returns ascending index
 * arrays, to be freed with free().
 */
NEAP_API int neap_dataset_split(const struct neap_dataset *set, double fraction, uint64_t seed,
	int speaker, int64_t **first, int64_t *nfirst, int64_t **second, int64_t *nsecond);

/*
 * Data augmentation: random changes of training samples, different in every epoch. They depend only
 * on (seed, epoch, sample), not on the batch, the window or the thread; label and index are
 * unchanged. Applied in the order of the fields; zero: off.
 */
struct neap_augment {
	/*
	 * Multiplies all times of a sample, and its length, by a random factor in [low, high], 0.01
	 * to 100.
	 */
	double stretch_low, stretch_high;
	/*
	 * Standard deviation in seconds of a normally distributed shift of each spike, rounded to
	 * whole steps. Spikes of a unit in the same step are merged; the sample keeps its length,
	 * and spikes outside it are dropped.
	 */
	double jitter;
	/*
	 * Shifts all units of a sample by a random integer in [-shift, shift]; units beyond the
	 * edges are dropped.
	 */
	int shift;
};

/*
 * Returns the name of a kind of spike encoding for numbers: `encode` of neap_train_options. NULL
 * beyond the end. Thread-safe.
 */
NEAP_API const char *neap_coding_name(int index);

struct neap_loader;

/* How a loader divides a data set into batches. */
struct neap_loader_options {
	uint32_t size; /* sizeof(struct neap_loader_options) */
	int batch;     /* samples; the last batch of an epoch may be smaller */
	double dt;     /* seconds per step */
	int64_t steps; /* samples are cut to this number of steps; 0: no limit */
	int shuffle;   /* 1: random order, by (seed, epoch) */
	uint64_t seed;
	const int64_t *index; /* samples to use, borrowed; NULL: all */
	int64_t count;
	/*
	 * Bound in bytes on the memory of long batches: a batch that needs more than half of it is
	 * read in windows, in that memory whatever its length; 0: 16 MiB.
	 */
	uint64_t window_bytes;
	struct neap_augment augment; /* uses `seed` and the epoch */
	/*
	 * The share of process number `rank` of `ranks` in every batch: whole groups of `group`
	 * samples, or `last_group` in a smaller last batch (0: the same). A share may be empty;
	 * neap_batch.of is the size of the whole batch. ranks 0: the whole batch.
	 */
	int rank, ranks, group, last_group;
	/*
	 * A batch of at most this number of bytes is held in memory as a whole, with the next one,
	 * even if it needs more than half of `window_bytes`; 0: not.
	 */
	uint64_t whole_bytes;
};

/* Opens a loader for a data set, which is borrowed until the loader is closed. */
NEAP_API int neap_loader_open(struct neap_loader **loader, struct neap_dataset *set,
	const struct neap_loader_options *options);
/* Returns the number of batches of an epoch, over all ranks. */
NEAP_API int64_t neap_loader_batches(const struct neap_loader *loader);
/* Starts an epoch at batch `first_batch`; an epoch in progress is dropped. */
NEAP_API int neap_loader_start(struct neap_loader *loader, int64_t epoch, int64_t first_batch);
/* Returns 1 and a batch, valid until the next call; 0 at the end of the epoch; or an error. */
NEAP_API int neap_loader_next(struct neap_loader *loader, const struct neap_batch **batch);
/* Stops the loader and frees it; NULL is allowed. */
NEAP_API void neap_loader_close(struct neap_loader *loader);

/*
 * Writes a file in the SHD layout: /spikes/times (float32), /spikes/units, /labels, /extra/keys,
 * /extra/speaker, and neap's own /extra/speaker_names and /extra/duration. Atomic: the file is
 * written under a temporary name, flushed, and renamed by finish, which always frees the writer.
 * After a failed add only abort is allowed.
 */
struct neap_shd_writer;
/* A number that is stored as an attribute of the file. */
struct neap_attribute {
	const char *name;
	double value;
};
/* Starts a file of `inputs` channels at `path`. */
NEAP_API int neap_shd_create(struct neap_shd_writer **writer, const char *path, int inputs);
/* Appends a sample. Returns 0 or a negative code. */
NEAP_API int neap_shd_add(struct neap_shd_writer *writer, const struct neap_events *events);
/* Writes the names and attributes, publishes the file and frees the writer. */
NEAP_API int neap_shd_finish(struct neap_shd_writer *writer, const char *const *class_names,
	int classes, const char *const *speaker_names, int speakers,
	const struct neap_attribute *attributes, int nattributes);
/* Removes the unfinished file and frees the writer; NULL is allowed. */
NEAP_API void neap_shd_abort(struct neap_shd_writer *writer);

/* Auditory model that encodes recordings as spikes. Zero means the default in brackets. */
struct neap_encoder_options {
	uint32_t size;	    /* sizeof(struct neap_encoder_options) */
	int channels;	    /* [128], at most 700 */
	double low, high;   /* Hz [80, 3600]; high at most 0.45 of the sampling rate */
	double rms;	    /* level to which every recording is scaled [0.05] */
	double preemphasis; /* [0.95]; negative: none */
	double gain;	    /* [20] */
	double tau;	    /* seconds [10e-3] */
	double refractory;  /* seconds [1e-3]; negative: none */
	double inhibition;  /* lateral inhibition [0.8]; negative: none */
	int span;	    /* range of the inhibition in channels [12] */
	int pool; /* adjacent channels whose spikes share one input [1], at most `channels` */
	double compression; /* exponent [0.3] */
};

/*
 * Encodes one recording of n samples at `rate` Hz as events, sorted by time. The model runs at 8
 * kHz (or high / 0.45, if that is more) whatever the rate. options NULL: the defaults. Thread-safe.
 * Returns 0 or a negative code.
 */
NEAP_API int neap_encode(struct neap_events *events, const float *samples, int64_t n, double rate,
	const struct neap_encoder_options *options);

/* How neap_encode_directory encodes recordings. */
struct neap_encode_options {
	uint32_t size; /* sizeof(struct neap_encode_options) */
	int threads;   /* 0: one per processor */
	/* Regular expressions (PCRE2) for the file name; group 1 is the name. */
	const char *label;		     /* NULL: the folder the file is in */
	const char *speaker;		     /* NULL: no speakers */
	struct neap_encoder_options encoder; /* its size need not be set */
	/*
	 * Seconds per sample: recordings of one class and speaker are concatenated and cut into
	 * samples; the rest is dropped. 0: a recording is a sample.
	 */
	double concat;
	/*
	 * Called when files are done; a non-zero result stops with NEAP_EINTERRUPTED. May be NULL.
	 */
	int (*progress)(void *user, int64_t done, int64_t total);
	void *user;
	int any_sound; /* 1: every kind of sound file libsndfile reads; 0: wav, flac, aiff */
	/*
	 * 1: a file that is not a recording, is damaged, or has a class not in `classes` is an
	 * error; 0: it is skipped and counted.
	 */
	int strict;
	const char *const *classes; /* names of the classes, in order; NULL: those found */
	int nclasses;
	/*
	 * Text files with one path below the folder per line: `split` lists the only recordings to
	 * use, `without` those to leave out.
	 */
	const char *const *split, *const *without;
	int nsplit, nwithout;
	/* Called with one line about each damaged file that is skipped. May be NULL. */
	void (*warn)(void *user, const char *line);
	/*
	 * The ranks that encode the recordings together, each with the same options and files;
	 * NULL: one process. The file is the same, byte for byte; rank 0 writes it. Collective.
	 */
	const struct neap_peers *peers;
	/* Called with a line about a probable mistake in the data. May be NULL. */
	void (*doubt)(void *user, const char *line);
};

enum { NEAP_SKIPPED_NAME = 128 /* bytes of a skipped file's name, including its end */ };

/* What neap_encode_directory read, wrote and skipped: counts and names. */
struct neap_encode_report {
	uint32_t size; /* sizeof(struct neap_encode_report) */
	int64_t files, events, samples;
	int classes, speakers;
	double seconds_of_audio;
	double seconds_left; /* of these, in no sample (concat) */
	double active;	     /* fraction of (channel, 1 ms) bins with a spike */
	/* Skipped files: not sound files by name; damaged; of other classes; not listed. */
	int64_t others, damaged, strangers, unlisted;
	char other[NEAP_SKIPPED_NAME]; /* the first of `others`, below the folder; "": none */
	int64_t silent;		       /* recordings without a spike */
	int64_t low_rates; /* skipped: their sampling rate is too low for options->encoder.high */
};

/*
 * Encodes all recordings below a folder into one file: those in `dir` (wav, flac, aiff), or the
 * single file `dir`, into `out`. The class of a recording is the name of the folder that contains
 * it ("recording" for the root folder), unless `label` is set. Classes are numbered in the order of
 * their names (numbers by value). Hidden files are skipped; other files that are not recordings are
 * skipped unless `strict` is set. options NULL: the defaults. Returns 0 or a negative code.
 */
NEAP_API int neap_encode_directory(struct neap_encode_report *report, const char *dir,
	const char *out, const struct neap_encode_options *options);

/* Which channels the two polarities of an event camera use. */
enum neap_polarity {
	NEAP_POLARITY_SPLIT, /* a channel for darker pixels, then one for brighter pixels */
	NEAP_POLARITY_MERGE, /* one channel per pixel */
	NEAP_POLARITY_ON,    /* only brighter pixels */
	NEAP_POLARITY_OFF,   /* only darker pixels */
};

/* How neap_encode_events converts event recordings. */
struct neap_event_options {
	uint32_t size;	   /* sizeof(struct neap_event_options) */
	int width, height; /* of the sensor in pixels; 0: from the file */
	int inputs;	   /* channels if events have no pixels; 0: from the file */
	/* Part of the sensor to use; width 0: all of it. Events outside it are dropped. */
	int crop_x, crop_y, crop_width, crop_height;
	int pool; /* side in pixels of the squares that share a channel; 0 and 1: none */
	enum neap_polarity polarity;
	double time_unit;	    /* seconds per unit of t; 0: 1e-6 for integers, 1 for others */
	const char *const *classes; /* as in neap_encode_options */
	int nclasses;
	/* As in neap_encode_options; for DVS Gesture, lists of trials. */
	const char *const *split, *const *without;
	int nsplit, nwithout;
	int strict;
	int (*progress)(void *user, int64_t done, int64_t total);
	void (*warn)(void *user, const char *line);
	void *user;
	const char *label; /* as in neap_encode_options, for folders except DVS Gesture */
	void (*doubt)(void *user, const char *line); /* as in neap_encode_options */
	/* 1: the times of a sample count from its first event, before crop and polarity. */
	int from_first;
};

/* What neap_encode_events read, wrote and skipped: counts and sizes. */
struct neap_event_report {
	uint32_t size; /* sizeof(struct neap_event_report) */
	int64_t samples, events;
	int64_t outside; /* events dropped by the crop or the polarity */
	int64_t damaged, others, strangers, unlisted; /* files skipped, as in neap_encode_report */
	int inputs, classes;
	int width, height;	       /* of the pooled channels; 0: no pixels */
	double longest;		       /* seconds */
	char other[NEAP_SKIPPED_NAME]; /* as in neap_encode_report */
	int64_t empty;		       /* samples without an event after crop and polarity */
};

/*
 * Returns 1 if neap_encode_events reads `path`, an array file or a folder of such files; else, or
 * if it is NULL, 0.
 */
NEAP_API int neap_encode_is_events(const char *path);

/*
 * Encodes samples of events into one file `out` in the SHD layout. Inputs: a .npz or HDF5 file of
 * arrays (docs/events.md); one recording as .npy of records, .npz or HDF5; a folder of such files
 * per class, or of recordings as Prophesee RAW or DAT, AEDAT 4 or text; a folder of N-MNIST or
 * N-Caltech101 (.bin); N-TIDIGITS; or the folder of DVS Gesture (AEDAT 3.1 with its labels). Pixel
 * (x, y) is channel y * width + x, after crop and pooling; the channels of all brighter pixels
 * follow those of all darker ones. options NULL: the defaults. Returns 0 or a negative code.
 */
NEAP_API int neap_encode_events(struct neap_event_report *report, const char *path, const char *out,
	const struct neap_event_options *options);

/* What is done about a cell of a feature that is empty, NaN or a mark such as NA, . or ?. */
enum neap_missing {
	NEAP_MISSING_ERROR,
	NEAP_MISSING_PREVIOUS, /* the value of the row above; a sample starts at its first row that
				  has all values */
	NEAP_MISSING_ZERO,
	NEAP_MISSING_DROP /* the row is left out */
};

/* How neap_encode_table reads text tables. */
struct neap_table_options {
	uint32_t size; /* sizeof(struct neap_table_options) */
	/*
	 * Source of the targets: label, a regular expression for the file name, as in
	 * neap_encode_options, without the others; labels, a text table with the names of samples
	 * in the first column and their targets in the others; targets, names of columns, separated
	 * by commas, of the table of labels if there is one. None: the folder of a file is its
	 * class.
	 */
	const char *label, *labels, *targets;
	const char *sample_column; /* column with the names of samples; NULL: a file is a sample */
	const char *dropped;	   /* columns to ignore, separated by commas */
	int numbers;		   /* 1: integer targets are numbers, not classes */
	int header; /* 1: files start with names of columns; -1: they do not; 0: they do if
		       a field of their first row is not a number */
	const char *const *classes; /* as in neap_encode_options */
	int nclasses;
	const char *const *split, *const *without; /* as in neap_encode_options */
	int nsplit, nwithout;
	int strict; /* 1: a file of a different kind or class is an error; 0: it is skipped */
	/*
	 * Called with the rows read and, in the second pass, their total number (else 0); a
	 * non-zero result stops with NEAP_EINTERRUPTED. May be NULL.
	 */
	int (*progress)(void *user, int64_t done, int64_t total);
	void *user;
	/* Called with a line about a probable mistake. May be NULL. */
	void (*warn)(void *user, const char *line);
	enum neap_missing missing;
};

/* What neap_encode_table read, wrote and skipped: counts and names. */
struct neap_table_report {
	uint32_t size; /* sizeof(struct neap_table_report) */
	int64_t files, samples;
	int64_t steps, longest;		     /* total number of rows; rows of the longest sample */
	int features;			     /* per row */
	int classes, numbers;		     /* per target; both 0: there is none */
	int step_targets;		     /* 1: targets are per step, 0: per sample */
	int64_t others, strangers, unlisted; /* files skipped, as in neap_encode_report */
	char other[NEAP_SKIPPED_NAME];	     /* as in neap_encode_report */
	char named[256];	  /* names of the first features, separated by commas; "": none */
	int64_t filled, left_out; /* by `missing`: cells filled in; rows left out */
};

/* Returns 1 if neap_encode_table reads `path`, a .csv or .tsv file or a folder of such; else 0. */
NEAP_API int neap_encode_is_table(const char *path);

/*
 * Encodes text tables into one HDF5 file of arrays. The tables are .csv or .tsv files
 * (docs/data.md); neap_dataset_open reads the file `out`. Rows are steps. Memory does not grow with
 * the number of rows, except for names of samples. Returns 0, NEAP_EFORMAT with file and line,
 * NEAP_EUSAGE, NEAP_EINTERRUPTED or -errno; the file is written atomically. options NULL: the
 * defaults. Thread-safe.
 */
NEAP_API int neap_encode_table(struct neap_table_report *report, const char *path, const char *out,
	const struct neap_table_options *options);

#ifdef __cplusplus
}
#endif
#endif
