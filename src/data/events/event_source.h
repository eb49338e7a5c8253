/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_source.h: samples of events as other programs keep them, read one after the other. A kind
 * of file is one file here, and opens a source; encode_events.c writes what comes of it.
 */
#ifndef NEAP_DATA_EVENTS_EVENT_SOURCE_H
#define NEAP_DATA_EVENTS_EVENT_SOURCE_H

#include <stdint.h>
#include <neap/data.h>

/* A sample. Pixels where the source has a sensor, else `x` is the channel. */
struct neap__raw_events {
	int64_t count, room;
	double *time; /* seconds */
	int32_t *x, *y;
	uint8_t *p;    /* 1: brighter */
	int without_y; /* 1: y is 0 because there is no such column */
	int label;
};
/* Seconds of the longest recording; a file with later events is damaged or has another unit. */
#define NEAP__EVENTS_LONGEST 1e6

/* Makes room for `count` events and keeps what is there. 0 or -ENOMEM. */
int neap__raw_events_grow(struct neap__raw_events *events, int64_t count);
/* Adds an event. 0, -ENOMEM, or NEAP_EFORMAT if it is later than NEAP__EVENTS_LONGEST. */
int neap__raw_events_add(
	struct neap__raw_events *events, double time, int x, int y, unsigned polarity);
void neap__raw_events_free(struct neap__raw_events *events);

/* A kind embeds this as its first member; it comes from calloc. */
struct neap__event_source {
	/* 1 and a sample, 0 at the end, or a negative code; *where is the sample's name. */
	int (*next)(struct neap__event_source *source, struct neap__raw_events *events,
		const char **where);
	/* Frees all, the source as well. */
	void (*close)(struct neap__event_source *source);
	int width, height;  /* of the sensor as far as the file or the kind says; 0: unknown */
	int files;	    /* 1: samples are files by themselves, or parts of these */
	int inputs;	    /* channels of a source without pixels; 0: unknown */
	int pixels;	    /* 1: x and y; 0: x is the channel */
	int polarities;	    /* 1: p is there */
	double time_unit;   /* given, seconds; 0: that of the type of the times. Known behind the
			       samples. */
	int recording;	    /* 1: an array file with one sample, whose class it does not give */
	char time_name[64]; /* of the array of times; "": the kind has a unit of its own */
	int reals;	    /* 1: times are no integers */
	char doubt[900]; /* a probable mistake in the order of the samples; "": none. Known behind
			    the samples. */
	int64_t samples;
	char **class_name; /* owned */
	int classes;
	int classes_found; /* 1: classes are what files there are, a damaged one is none */
};

struct neap__recordings_lines;

/* A .npz, .npy or HDF5 file; a folder of recordings or one of its files, whose report counts the
   files that were skipped. `folder`: that the array file is a recording of, or NULL. `lines`
   (recordings.h): NULL if errors are not shown. 0 or a negative code. */
int neap__array_events_open(struct neap__event_source **source, const char *path,
	const char *folder, const struct neap_event_options *options,
	const struct neap__recordings_lines *lines);
int neap__folder_events_open(struct neap__event_source **source, const char *path,
	const struct neap_event_options *options, struct neap_event_report *report,
	const struct neap__recordings_lines *lines);

/* aedat.c: events of [from, to] microseconds of a recording in AEDAT 3.1, relative to `from`. */
int neap__aedat_read(struct neap__raw_events *events, const char *path, int64_t from, int64_t to);

/* A file with one recording, of a kind that folder_events.c lists. */
struct neap__event_file {
	const char *path; /* borrowed */
	double time_unit; /* given, seconds; 0: by the type of the times */
	int from_first;	  /* 1: times may count from elsewhere */
	/* Set by the reader: */
	int width, height; /* of the sensor as far as the file specifies; 0: unknown */
	int reals;	   /* 1: times are no integers */
};

/*
 * Readers of a recording add its events to `events`, which is empty; NULL: they read the header
 * only. 0, NEAP_EFORMAT or -errno.
 */
typedef int neap__event_read(struct neap__raw_events *events, struct neap__event_file *file);
neap__event_read neap__nmnist_read;		     /* N-MNIST or N-Caltech101 */
neap__event_read neap__dat_read, neap__evt_raw_read; /* Prophesee */
neap__event_read neap__aedat4_read;
neap__event_read neap__event_text_read; /* lines "t x y p" */

/* ntidigits.c: 1 and a source if the HDF5 file is N-TIDIGITS, 0 if it is another file, or a
   negative code. */
int neap__ntidigits_open(struct neap__event_source **source, const char *path,
	const struct neap_event_options *options, struct neap_event_report *report);

#endif
