/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate.h: forward passes over a data set, for validation, test and neap_eval. */
#ifndef NEAP_TRAIN_EVALUATE_H
#define NEAP_TRAIN_EVALUATE_H

#include <neap/train.h>
#include "data/sound/live_sound.h"
#include "train/ranks/rank_start.h"

/* What is evaluated on what, and who is told. */
struct neap__evaluation {
	struct neap_net *net;
	const struct neap_net_options *options; /* of the net */
	const struct neap_loss *loss;
	struct neap_loader *loader;
	int64_t total;						       /* samples, for progress */
	int (*progress)(void *user, int64_t done, int64_t total);      /* may be NULL */
	int (*advanced)(void *user, double done, int64_t total);       /* may be NULL */
	int (*answered)(void *user, const struct neap_answer *answer); /* may be NULL */
	void *user;
	char **class_name;	   /* [classes], for answers; NULL: none is known */
	char **sample_name;	   /* [samples] of the data set; NULL: none */
	struct neap__ranks *ranks; /* share every batch, as the loader does; NULL: alone */
	enum neap_target target;   /* of answers */
	int of_steps;		   /* 1: an answer a step; batches have one sample */
	/* After every step; batches have one sample. May be NULL. */
	int (*stepped)(void *user, const struct neap_step_view *view);
	/* [classes] of the targets that the net learned (target_units.h); NULL: their own units */
	const double *mean, *deviation;
	int normalised; /* 1: the loss is told of the targets as they were learned */
	double every;	/* seconds between decisions; 0: none */
	double window;	/* seconds that a decision is about; 0: the sample so far */
	const struct neap__live_sound_options *live; /* NULL: samples come from the loader */
	int softmax;				     /* 1: scores of answers are probabilities */
	const struct neap_eval_result *so_far;	     /* set by neap__evaluate */
};

/*
 * Runs all batches of a loader's first epoch forward and adds up their results. The sums do not
 * depend on threads or ranks. Collective; `answered` is called on rank 0. 0 or a negative code.
 */
int neap__evaluate(struct neap_eval_result *result, const struct neap__evaluation *evaluation);

/*
 * Reports that the steps before t of a batch are done. 0, or NEAP_EINTERRUPTED if the caller ends
 * the evaluation. Ranks ask between batches instead, where they agree on the end.
 */
int neap__evaluation_look(
	const struct neap__evaluation *evaluation, const struct neap_batch *batch, int64_t t);

/* The root of the mean square of the outputs' deviations; 0 where `deviation` is NULL. */
double neap__mean_deviation(const double *deviation, int outputs);
/* The share that is right; NaN where nothing was judged. */
double neap__accuracy(int64_t right, int64_t judged);

/* Sets the 95% score interval of the share k / n of successes (Wilson 1927). */
void neap__wilson(double *low, double *high, int64_t k, int64_t n);

/* The name of a sample; NULL: it has none. */
static inline const char *neap__sample_name(const struct neap__evaluation *e, int64_t index)
{
	return e->sample_name ? e->sample_name[index] : NULL;
}

/* Returns a batch of a data set with fewer channels as one of the net's; fills `into`. */
const struct neap_batch *neap__widen(
	struct neap_batch *into, const struct neap_batch *batch, int inputs);

#endif
