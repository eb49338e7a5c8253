/* SPDX-License-Identifier: Apache-2.0 */
/* answer_arrays.h: answers as arrays of NumPy in one archive, a row an answer. */
#ifndef NEAP_TRAIN_ANSWERS_ANSWER_ARRAYS_H
#define NEAP_TRAIN_ANSWERS_ANSWER_ARRAYS_H

#include "data/npy/npz_out.h"

#include <neap/train.h>

/* What the arrays hold: as neap_eval_options.arrays says. */
struct neap__answer_shape {
	enum neap_target target;
	int of_steps, classes;
	int timed;		  /* answers are decisions, which have a time */
	char *const *class_name;  /* [classes] NULL: a class has its number as name */
	char *const *sample_name; /* [samples] NULL: samples have no names */
	int64_t samples;
};

struct neap__answer_arrays {
	struct neap__npz_out *out;
	int sample, recording, time, step, label, prediction,
		scores; /* numbers of arrays; -1: there is none */
	char names_type[16], recording_type[16];
	size_t recording_longest; /* characters */
};

/* Begins the archive, which the caller ends; after a failure there is nothing to end. */
int neap__answer_arrays_open(struct neap__answer_arrays *arrays, const char *path,
	const struct neap__answer_shape *shape);
int neap__answer_arrays_add(struct neap__answer_arrays *arrays, const struct neap_answer *answer);

#endif
