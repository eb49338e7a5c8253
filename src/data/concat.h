/* SPDX-License-Identifier: Apache-2.0 */
/*
 * concat.h: joins recordings of one class and speaker into samples of one length, so that long
 * samples of real events can be made from short recordings.
 */
#ifndef NEAP_DATA_CONCAT_H
#define NEAP_DATA_CONCAT_H

#include "data/dataset.h"

/* All zero but writer and seconds to begin with. */
struct neap__concat {
	struct neap_shd_writer *writer;	  /* borrowed */
	double seconds;			  /* of a sample; 0: each recording is one */
	struct neap__event_buffer sample; /* the unfinished one */
	int64_t written;		  /* samples */
	double left;			  /* seconds of audio that filled no sample */
};

/* Adds a recording. Each sample that it completes is written. 0 or a negative code. */
int neap__concat_add(struct neap__concat *concat, const struct neap_events *events);
/* Drops the unfinished sample and frees its memory. */
void neap__concat_end(struct neap__concat *concat);

#endif
