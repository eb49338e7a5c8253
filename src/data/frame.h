/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame.h: one batch and its memory: samples read, augmented and binned. Of a long
 * batch the frame holds lengths and labels; its events come in windows (windows.c).
 */
#ifndef NEAP_DATA_FRAME_H
#define NEAP_DATA_FRAME_H

#include "data/augment.h"
#include "data/bins.h"
#include "data/dataset.h"

/* Where the samples of a frame come from, and how. */
struct neap__source {
	struct neap_dataset *set; /* borrowed */
	int batch, inputs;
	double dt;
	const struct neap__augment *augment; /* borrowed; NULL: none */
	int64_t steps;			     /* cut samples beyond; 0: no limit */
	uint64_t window_bytes;		     /* a batch of more than half of it is long */
	const int *cancel;		   /* becomes 1 where nobody waits for the batch any more */
	struct neap__event_buffer *events; /* borrowed: of the sample being read */
};

/* Its memory only grows. */
struct neap__batch_frame {
	struct neap_batch batch;
	struct neap_sequence *sequence; /* [source.batch] */
	struct neap__bins bins;
	int is_long;
	int ready, rc;	  /* the loader's */
	char detail[512]; /* of rc, from the thread */
};

/* From all zero. -ENOMEM, which leaves nothing to free but what free frees. */
int neap__batch_frame_init(struct neap__batch_frame *frame, const struct neap__source *source);
/* A batch of the samples index[size]. NEAP_EINTERRUPTED when cancelled. */
int neap__batch_frame_fill(struct neap__batch_frame *frame, const struct neap__source *source,
	const int64_t *index, int size);
void neap__batch_frame_free(struct neap__batch_frame *frame);

#endif
