/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data.h: recordings and data sets as spikes in time, and batches of them as a
 * net wants them: binned at dt, sorted by step, prepared in the background.
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
 * What a net is to answer: X(CHOICE, name, meaning). Where targets are numbers there are as many
 * as the net has outputs.
 */
/* clang-format off */
#define NEAP_TARGET_TABLE(X) \
	X(NEAP_TARGET_LABEL, label, "a class a sample") \
	X(NEAP_TARGET_LABELS, labels, "a class a step") \
	X(NEAP_TARGET_NUMBERS, numbers, "numbers a sample") \
	X(NEAP_TARGET_SERIES, series, "numbers a step")
/* clang-format on */
#define NEAP_X(choice, name, meaning) choice,
/* What a net learns to predict: NEAP_TARGET_TABLE lists the values. */
enum neap_target { NEAP_TARGET_TABLE(NEAP_X) NEAP_TARGETS };
#undef NEAP_X

/*
 * One sample of a batch. Its inputs are spikes, units[start[t] .. start[t+1]) in step t, ascending,
 * each once; or numbers, values[t * inputs ..] in step t.
 */
struct neap_sequence {
	int64_t length;	       /* steps; beyond it the sample is masked */
	const uint32_t *start; /* [length + 1] */
	const uint16_t *unit;
	int label;	     /* -1 when there is none */
	const float *target; /* [outputs] NEAP_TARGET_NUMBERS; NULL otherwise */
	int64_t index;	     /* number of the sample in its data set */
	const float *values; /* [length][inputs] where the batch has values; NULL otherwise */
	/* [length] NEAP_TARGET_LABELS: a step of label -1 is masked: it has no loss. */
	const int32_t *labels;
	/* [length][outputs] NEAP_TARGET_SERIES: a step whose first number is NaN is masked. */
	const float *series;
	int64_t counted; /* steps that are not masked, where targets are of steps */
};

struct neap_windows;

/* The samples of one batch, and the type of their inputs and targets. */
struct neap_batch {
	int size;      /* samples */
	int inputs;    /* channels */
	int64_t steps; /* of the longest sample */
	const struct neap_sequence *sequences;
	size_t bytes; /* memory the batch takes */
	/* Not NULL: a long batch, whose inputs and targets of steps come in windows; start, unit,
	   values, labels and series of the sequences are NULL. Owned by the loader. */
	struct neap_windows *windows;
	int values; /* 1: the inputs are numbers; 0: spikes */
	enum neap_target target;
	int of; /* samples of the batch that this is a part of; 0: it is whole */
};

/*
 * Steps [from, to) of a long batch: sequences[i].start[t - from] is where step t
 * begins in sequences[i].unit; values, labels and series begin with step `from`. length, label and
 * the like are the batch's to tell.
 */
struct neap_window {
	int64_t from, to;
	const struct neap_sequence *sequences;
};

/*
 * The window that holds step t, valid until the next call; from and to depend on the
 * data and the loader's options alone, from is a multiple of 64 and to one or the last
 * step. Windows are read ahead in the direction they are asked for in. One thread asks.
 */
NEAP_API int neap_windows_take(struct neap_windows *windows, int64_t t, struct neap_window *window);
/* Steps [t0, t1) come next, from either end: where that is a jump, it is read ahead. */
NEAP_API void neap_windows_expect(struct neap_windows *windows, int64_t t0, int64_t t1);
/* Seconds that neap_windows_take waited for the reader, in all. */
NEAP_API double neap_windows_waited(const struct neap_windows *windows);
/* Steps of a window at most. */
NEAP_API int64_t neap_windows_steps(const struct neap_windows *windows);

/* The events of one sample, sorted by time. Owned by whoever filled it in. */
struct neap_events {
	int64_t count;
	double *time; /* seconds */
	uint16_t *unit;
	double duration; /* seconds; 0: unknown */
	int label, speaker;
};

struct neap_dataset;

/* Numbers and sizes of a data set, filled in by neap_dataset_info. */
struct neap_dataset_info {
	uint32_t size; /* sizeof(struct neap_dataset_info) */
	int64_t samples;
	int inputs; /* channels */
	int classes;
	int speakers;	  /* 0: unknown */
	double duration;  /* longest sample, seconds */
	int64_t events;	  /* in all; 0: not counted */
	const char *name; /* path, or "randman(...)"; owned by the data set */
	int values;	  /* 1: the inputs are numbers; 0: spikes */
	enum neap_target target;
	/*
	 * Where samples are rows of steps, whatever dt: steps of the longest; 0: samples last
	 * seconds. `classes` is the number of outputs where targets are numbers.
	 */
	int64_t steps;
	/* 1: the file does not say how many channels there are: `inputs` is the least that holds
	   its spikes, another part of the data may have more. */
	int inputs_least;
};

/*
 * Opens a file in the SHD layout; an HDF5 file of arrays of numbers (docs/data.md); or "randman" or
 * "randman:KEY=VALUE,..." for smooth random manifolds of spike times (Zenke and Vogels, Neural
 * Computation 33, 2021). Keys and their defaults: classes=10 units=70 dim=1 (of the manifold)
 * alpha=2 (smoothness) steps=100 (of 1 ms) samples=4000 seed=0 (of manifolds and points) spikes=1
 * (a unit; each in its share of the steps, at a point of its own) noise=0 (standard deviation of
 * spike times in steps) part=train (or test: other points of the same manifolds) first=0 (point)
 *
 * Files: times of any floating-point, units and labels of any integer type. A file
 * without the attributes `inputs` and `longest` (neap writes them) is read through
 * once to find its longest sample and its largest channel. Without `inputs` it has the 700 channels
 * of SHD and SSC where it has their /extra/keys and no channel beyond; else info.inputs_least is 1.
 * NEAP_EFORMAT or -errno; the detail line names file, data set and mend.
 */
NEAP_API int neap_dataset_open(struct neap_dataset **set, const char *name);

/*
 * HDF5 1.10 may crash on a file whose structures are damaged. A program that wants to survive such
 * files sets a trial: before neap_dataset_open opens a file it has trial(fn, arg) run fn(arg) in a
 * child process, and refuses the file where the answer is not 0 but the signal that ended the
 * child. `neap` sets one. NULL, as at the start: files are opened at once, and no process is made.
 * For the whole process; thread-safe.
 */
typedef int neap_data_trial(void (*fn)(void *arg), void *arg);
/* Sets the trial of the process; NULL: none. */
NEAP_API void neap_data_set_trial(neap_data_trial *trial);
/* Fills in `info`. 0, or NEAP_EUSAGE for another size. */
NEAP_API int neap_dataset_info(const struct neap_dataset *set, struct neap_dataset_info *info);
/* The class of a sample; -1 if there is none. */
NEAP_API int neap_dataset_label(const struct neap_dataset *set, int64_t index);
/* The number of the speaker of a sample; -1 if unknown. */
NEAP_API int neap_dataset_speaker(const struct neap_dataset *set, int64_t index);
/* Name of a class; NULL if unknown. Owned by the set. */
NEAP_API const char *neap_dataset_class_name(const struct neap_dataset *set, int label);
/* Name of a speaker; NULL if unknown. Owned by the set. */
NEAP_API const char *neap_dataset_speaker_name(const struct neap_dataset *set, int speaker);
/* Reads one sample; gives `events`, to be freed by neap_events_free. Takes the set's lock. */
NEAP_API int neap_dataset_read(struct neap_dataset *set, int64_t index, struct neap_events *events);
/* Frees the arrays of `events`, not the structure itself. */
NEAP_API void neap_events_free(struct neap_events *events);
/* Closes a data set and frees it; NULL is allowed. */
NEAP_API void neap_dataset_close(struct neap_dataset *set);

/*
 * Splits samples in two by seed (`fraction` of them, stratified by class, go to
 * the second part) or by speaker (`speaker` >= 0: the second part is that
 * speaker's). Gives ascending index arrays, to be freed with free().
 */
NEAP_API int neap_dataset_split(const struct neap_dataset *set, double fraction, uint64_t seed,
	int speaker, int64_t **first, int64_t *nfirst, int64_t **second, int64_t *nsecond);

/*
 * Training samples varied anew in every epoch. What becomes of a sample is a function of
 * (seed, epoch, sample) alone, whatever the batch, the window or the thread; label and
 * index stay. Applied in this order; zero: off.
 */
struct neap_augment {
	/* All times of a sample, and its length, times a draw in [low, high], 0.01 to 100. */
	double stretch_low, stretch_high;
	/*
	 * Each spike moves by a normal draw of this standard deviation in seconds, rounded to
	 * whole steps. Spikes of a unit that meet in a step become one; the sample
	 * keeps its length, and spikes that leave it are dropped.
	 */
	double jitter;
	/* All units of a sample move by a whole number in [-shift, shift]; beyond the edges
	   they are dropped. */
	int shift;
};

/*
 * The kinds of rules by which numbers become spikes: `encode` of neap_train_options. NULL beyond
 * the end. Thread-safe.
 */
NEAP_API const char *neap_coding_name(int index);

struct neap_loader;

/* How a loader cuts a data set into batches. */
struct neap_loader_options {
	uint32_t size; /* sizeof(struct neap_loader_options) */
	int batch;     /* samples; the last batch of an epoch may be smaller */
	double dt;     /* seconds a step */
	int64_t steps; /* cut samples beyond; 0: no limit */
	int shuffle;   /* 1: order by (seed, epoch) */
	uint64_t seed;
	const int64_t *index; /* samples to use, borrowed; NULL: all */
	int64_t count;
	/*
	 * Bound in bytes on what long batches take: one that would take more than half of
	 * it is read in windows, in so much memory whatever its length; 0: 16 MiB.
	 */
	uint64_t window_bytes;
	struct neap_augment augment; /* by `seed` and the epoch started */
	/*
	 * The share that one of `ranks` processes, number `rank`, has of every batch: whole groups
	 * of `group` samples, and of `last_group` in a last batch that is smaller (0: the same).
	 * A share may be empty; neap_batch.of is the size of the whole. ranks 0: all of it.
	 */
	int rank, ranks, group, last_group;
};

/* Opens a loader over a data set, which is borrowed until the loader is closed. */
NEAP_API int neap_loader_open(struct neap_loader **loader, struct neap_dataset *set,
	const struct neap_loader_options *options);
/* Batches of an epoch, of all ranks. */
NEAP_API int64_t neap_loader_batches(const struct neap_loader *loader);
/* Begins an epoch at batch `first_batch`; a running one is dropped. */
NEAP_API int neap_loader_start(struct neap_loader *loader, int64_t epoch, int64_t first_batch);
/* 1 and a batch, valid until the next call; 0 at the end of the epoch; or an error. */
NEAP_API int neap_loader_next(struct neap_loader *loader, const struct neap_batch **batch);
/* Stops the loader and frees it; NULL is allowed. */
NEAP_API void neap_loader_close(struct neap_loader *loader);

/*
 * Writes the SHD layout: /spikes/times (float32), /spikes/units, /labels, /extra/keys,
 * /extra/speaker, and neap's own /extra/speaker_names and /extra/duration. Whole or
 * not at all: written beside the name, flushed, renamed by finish, which frees the
 * writer in any case. After a failed add only abort is left.
 */
struct neap_shd_writer;
/* A number that is stored as an attribute of the file. */
struct neap_attribute {
	const char *name;
	double value;
};
/* Starts a file of `inputs` channels at `path`. */
NEAP_API int neap_shd_create(struct neap_shd_writer **writer, const char *path, int inputs);
/* Appends a sample. */
NEAP_API int neap_shd_add(struct neap_shd_writer *writer, const struct neap_events *events);
/* Writes the names and attributes, publishes the file and frees the writer. */
NEAP_API int neap_shd_finish(struct neap_shd_writer *writer, const char *const *class_names,
	int classes, const char *const *speaker_names, int speakers,
	const struct neap_attribute *attributes, int nattributes);
/* Removes the unfinished file and frees the writer; NULL is allowed. */
NEAP_API void neap_shd_abort(struct neap_shd_writer *writer);

/* Auditory model: recordings to spikes. Zero means the default in brackets. */
struct neap_encoder_options {
	uint32_t size;	    /* sizeof(struct neap_encoder_options) */
	int channels;	    /* [128], at most 700 */
	double low, high;   /* Hz [80, 3600]; high at most 0.45 of the sampling rate */
	double rms;	    /* level every recording is set to [0.05] */
	double preemphasis; /* [0.95]; negative: none */
	double gain;	    /* [20] */
	double tau;	    /* seconds [10e-3] */
	double refractory;  /* seconds [1e-3]; negative: none */
	double inhibition;  /* lateral inhibition [0.8]; negative: none */
	int span;	    /* its reach in channels [12] */
	double compression; /* exponent [0.3] */
};

/*
 * One recording of n samples at `rate` Hz. Gives events (time-sorted). Thread-safe.
 * The model runs at 8 kHz (or high / 0.45, if that is more) whatever the rate.
 * NULL options stand for the defaults.
 */
NEAP_API int neap_encode(struct neap_events *events, const float *samples, int64_t n, double rate,
	const struct neap_encoder_options *options);

/* How neap_encode_directory encodes recordings. */
struct neap_encode_options {
	uint32_t size; /* sizeof(struct neap_encode_options) */
	int threads;   /* 0: one a processor */
	/* Regular expressions (PCRE2) on the file name; group 1 is the name. */
	const char *label;		     /* NULL: the folder the file is in */
	const char *speaker;		     /* NULL: no speakers */
	struct neap_encoder_options encoder; /* its size need not be set */
	/*
	 * Seconds of a sample: recordings of a class and speaker end to end, cut where a
	 * sample is full; what fills none is dropped. 0: a recording is a sample.
	 */
	double concat;
	/* Called as files finish; non-zero stops with NEAP_EINTERRUPTED. May be NULL. */
	int (*progress)(void *user, int64_t done, int64_t total);
	void *user;
	int any_sound; /* 1: every kind of sound file libsndfile reads; 0: wav, flac, aiff */
	/* 1: a file that is no recording, is damaged, or is of no class in `classes` is an error;
	   0: it is skipped and counted. */
	int strict;
	const char *const *classes; /* names of the classes in their order; NULL: those found */
	int nclasses;
	/* Text files of paths below the folder, a line each: of these recordings alone, and
	 * without those. */
	const char *const *split, *const *without;
	int nsplit, nwithout;
	/* Called with one line about each damaged file that is skipped. May be NULL. */
	void (*warn)(void *user, const char *line);
	/*
	 * The ranks that encode the recordings together, each with these options and the same
	 * files; NULL: alone. The file has the same bytes; rank 0 writes it. Collective.
	 */
	const struct neap_peers *peers;
};

enum { NEAP_SKIPPED_NAME = 128 /* bytes of a skipped file's name, its end included */ };

/* What neap_encode_directory read, wrote and skipped. */
struct neap_encode_report {
	uint32_t size; /* sizeof(struct neap_encode_report) */
	int64_t files, events, samples;
	int classes, speakers;
	double seconds_of_audio;
	double seconds_left; /* of it, in no sample (concat) */
	double active;	     /* share of (channel, 1 ms) bins with a spike */
	/* Files that were skipped: no sound by their names, damaged, of other classes, not listed.
	 */
	int64_t others, damaged, strangers, unlisted;
	char other[NEAP_SKIPPED_NAME]; /* the first of `others`, below the folder; "": none */
	int64_t silent;		       /* recordings without a spike */
};

/*
 * All recordings below `dir` (wav, flac, aiff), or the one file that it names, to one file at
 * `out`. Classes are numbered in the order of their names (numbers by value). Hidden
 * files are skipped; any other that is not a recording is skipped, unless `strict`. NULL
 * options stand for the defaults.
 */
NEAP_API int neap_encode_directory(struct neap_encode_report *report, const char *dir,
	const char *out, const struct neap_encode_options *options);

/* Which channels the two polarities of an event camera use. */
enum neap_polarity {
	NEAP_POLARITY_SPLIT, /* a channel for darker pixels, then one for brighter ones */
	NEAP_POLARITY_MERGE, /* one channel a pixel */
	NEAP_POLARITY_ON,    /* brighter alone */
	NEAP_POLARITY_OFF,   /* darker alone */
};

/* How neap_encode_events converts event recordings. */
struct neap_event_options {
	uint32_t size;	   /* sizeof(struct neap_event_options) */
	int width, height; /* of the sensor in pixels; 0: what the file says */
	int inputs;	   /* channels where events have no pixels; 0: what the file says */
	/* The part of the sensor that counts; width 0: all of it. Events outside are dropped. */
	int crop_x, crop_y, crop_width, crop_height;
	int pool; /* pixels of a square that share a channel, on a side; 0 and 1: none do */
	enum neap_polarity polarity;
	double time_unit;	    /* seconds of a number in t; 0: 1e-6 of integers, 1 of others */
	const char *const *classes; /* as in neap_encode_options */
	int nclasses;
	const char *const *split, *const *without; /* the same; of DVS Gesture, its trials */
	int nsplit, nwithout;
	int strict;
	int (*progress)(void *user, int64_t done, int64_t total);
	void (*warn)(void *user, const char *line);
	void *user;
	const char *label; /* as in neap_encode_options, of folders but that of DVS Gesture */
};

/* What neap_encode_events read, wrote and skipped. */
struct neap_event_report {
	uint32_t size; /* sizeof(struct neap_event_report) */
	int64_t samples, events;
	int64_t outside; /* events that the crop or the polarity dropped */
	int64_t damaged, others, strangers, unlisted; /* files skipped, as in neap_encode_report */
	int inputs, classes;
	int width, height;	       /* of the channels, pooled; 0: without pixels */
	double longest;		       /* seconds */
	char other[NEAP_SKIPPED_NAME]; /* as in neap_encode_report */
	int64_t empty;		       /* samples without an event after crop and polarity */
};

/* Whether a path is one that neap_encode_events reads: an array file, or a folder of such. NULL:
 * no. */
NEAP_API int neap_encode_is_events(const char *path);

/*
 * Samples of events to one file at `out` in the SHD layout: a .npz or HDF5 file of arrays
 * (docs/events.md), one recording as .npy of records, .npz or HDF5, or a folder of such files for
 * each class; a folder of N-MNIST or N-Caltech101 (.bin), or the folder of DVS Gesture (AEDAT 3.1
 * with its labels). Pixel (x, y) is channel y * width + x, after crop and pooling; the channels
 * of brighter pixels follow those of all darker ones. NULL options stand for the defaults.
 */
NEAP_API int neap_encode_events(struct neap_event_report *report, const char *path, const char *out,
	const struct neap_event_options *options);

/* How neap_encode_table reads tables of text. */
struct neap_table_options {
	uint32_t size; /* sizeof(struct neap_table_options) */
	/*
	 * What a sample's target is, one of these: a regular expression on the file's name, as in
	 * neap_encode_options; a table of text whose first column names samples, whose others are
	 * their targets; columns, by names with commas between. None: the folder a file is in.
	 */
	const char *label, *labels, *targets;
	const char *sample_column; /* whose fields name samples; NULL: a file is a sample */
	const char *dropped;	   /* columns that do not count, with commas between */
	int numbers;		   /* 1: whole numbers are targets as numbers, not classes */
	int header; /* 1: files begin with names of columns; -1: they do not; 0: where
		       a field of their first row is no number */
	const char *const *classes; /* as in neap_encode_options */
	int nclasses;
	const char *const *split, *const *without; /* the same */
	int nsplit, nwithout;
	int strict; /* 1: a file of another kind or class is an error; 0: it is skipped */
	/* Called with rows read, and in the second reading all there are (else 0); non-zero stops
	   with NEAP_EINTERRUPTED. May be NULL. */
	int (*progress)(void *user, int64_t done, int64_t total);
	void *user;
	/* Called with a line about what is probably a mistake. May be NULL. */
	void (*warn)(void *user, const char *line);
};

/* What neap_encode_table read, wrote and skipped. */
struct neap_table_report {
	uint32_t size; /* sizeof(struct neap_table_report) */
	int64_t files, samples;
	int64_t steps, longest;		     /* rows in all; of the longest sample */
	int features;			     /* of a row */
	int classes, numbers;		     /* of a target; both 0: there is none */
	int step_targets;		     /* 1: targets are of steps, 0: of samples */
	int64_t others, strangers, unlisted; /* files skipped, as in neap_encode_report */
	char other[NEAP_SKIPPED_NAME];	     /* likewise */
	char named[256]; /* names of the first features, with commas between; "": none */
};

/* Whether a path is one that neap_encode_table reads: a .csv or .tsv, a folder of such. NULL: no.
 */
NEAP_API int neap_encode_is_table(const char *path);

/*
 * Tables of text (.csv, .tsv; docs/data.md) to one HDF5 file of arrays at `out`, which
 * neap_dataset_open reads. Rows are steps. Memory does not grow with their number, but for names of
 * samples. 0, NEAP_EFORMAT with file and line, NEAP_EUSAGE, NEAP_EINTERRUPTED or -errno; nothing is
 * half-written. Thread-safe. NULL options stand for the defaults.
 */
NEAP_API int neap_encode_table(struct neap_table_report *report, const char *path, const char *out,
	const struct neap_table_options *options);

#ifdef __cplusplus
}
#endif
#endif
