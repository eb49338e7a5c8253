/* SPDX-License-Identifier: Apache-2.0 */
/* concat.h: samples of one length made of recordings of one class and speaker, end to end. */
#ifndef NEAP_DATA_CONCAT_H
#define NEAP_DATA_CONCAT_H

#include "data/dataset.h"

/* All zero but writer and seconds to begin with. */
struct neap__concat {
	struct neap_shd_writer *writer;	  /* borrowed */
	double seconds;			  /* of a sample; 0: each recording is one */
	struct neap__event_buffer sample; /* what there is of the next one */
	int64_t written;		  /* samples */
	double left;			  /* seconds of audio that made no sample */
};

/* Adds a recording; the file gets a sample where one is complete, which ends exactly there. */
NEAP_API int neap__concat_add(struct neap__concat *concat, const struct neap_events *events);
/* What is left of the last class and speaker is dropped. */
NEAP_API void neap__concat_end(struct neap__concat *concat);

#endif
