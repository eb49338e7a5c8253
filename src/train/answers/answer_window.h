/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer_window.h: what a readout answers to the last few intervals of a sample. It is made of what
 * it answers to each of them alone, so that no step is kept.
 */
#ifndef NEAP_TRAIN_ANSWERS_ANSWER_WINDOW_H
#define NEAP_TRAIN_ANSWERS_ANSWER_WINDOW_H

#include <neap/net.h>

struct neap__answer_window {
	enum neap_readout readout;
	int classes;
	int64_t intervals; /* of a window */
	int64_t count;	   /* intervals so far */
	double *part;	   /* [intervals][classes] sums or maxima, the last ones as a ring */
	int64_t *steps;	   /* [intervals] of these */
};

/* 0, or NEAP_EUSAGE where `window` seconds are not a number of times `every`. */
int neap__answer_window_check(double window, double every);
/* 0 or -ENOMEM; free it in both cases. */
int neap__answer_window_init(struct neap__answer_window *window, double seconds, double every,
	enum neap_readout readout, int classes);
/* Adds the interval of `steps` steps that the state has come through, and begins the next one. */
void neap__answer_window_add(
	struct neap__answer_window *window, const struct neap_net *net, void *state, int64_t steps);
/* The answer [classes] to the window that ends with the last interval. */
void neap__answer_window_answer(const struct neap__answer_window *window, double *answer);
void neap__answer_window_free(struct neap__answer_window *window);

#endif
