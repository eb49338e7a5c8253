/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame.h: one batch and its memory: samples that are read, augmented and binned. Of a long batch
 * the frame holds lengths and labels only; its events come in windows (windows.h).
 */
#ifndef NEAP_DATA_FRAME_H
#define NEAP_DATA_FRAME_H

#include "data/augment/augment.h"
#include "data/bins.h"
#include "data/dataset.h"

/*
 * Where the samples of a frame come from, and how. Spikes of samples that are rows of steps have
 * times in steps, so that dt is 1 there.
 */
struct neap__source {
	struct neap_dataset *set; /* borrowed */
	int batch, inputs;
	double dt;
	const struct neap__augment *augment; /* borrowed; NULL: none */
	int64_t steps;			     /* cut samples beyond; 0: no limit */
	uint64_t whole_bytes;		     /* a batch of more is long */
	const int *cancel;		     /* becomes 1 where the batch is no longer wanted */
	struct neap__event_buffer *events;   /* borrowed: of the sample being read */
};

/* Values and targets of the steps of a batch, one sample behind the other. */
struct neap__step_store {
	int64_t room; /* steps that each array that is used holds */
	float *values;
	int32_t *labels;
	float *series;
};

/* Its memory never shrinks. */
struct neap__batch_frame {
	struct neap_batch batch;
	struct neap_sequence *sequence; /* [source.batch] */
	struct neap__bins bins;
	struct neap__step_store rows;
	int is_long;
	int ready, rc;	  /* of the loader: 1 when filled; the code of filling */
	char detail[512]; /* of rc, from the thread */
};

/* Makes a frame that is all zero; 0 or -ENOMEM. Free it in both cases. */
int neap__batch_frame_init(struct neap__batch_frame *frame, const struct neap__source *source);
/* Fills the frame with samples index[size]. 0, NEAP_EINTERRUPTED when cancelled, or another code.
 */
int neap__batch_frame_fill(struct neap__batch_frame *frame, const struct neap__source *source,
	const int64_t *index, int size);
void neap__batch_frame_free(struct neap__batch_frame *frame);

/*
 * Extent and steps of a sample as a frame will hold it; `prepare`: checks that it can be read in
 * part. Of a set whose samples can be. 0 or a negative code with the sample's number.
 */
int neap__sample_size(const struct neap__source *source, int64_t index, int prepare,
	struct neap__sample_extent *extent, int64_t *length);

#endif
