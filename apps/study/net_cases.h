/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_cases.h: the nets of the experiments, recurrent spiking units on the data set randman: their
 * options, their chains as measured here, single sweeps of them, and rows of comparisons.
 */
#ifndef NEAP_STUDY_NET_CASES_H
#define NEAP_STUDY_NET_CASES_H

#include "study/experiment.h"

struct neap__netcase {
	int units, batch;
	int64_t steps;
	int dense;	  /* 1: tapes of one size; 0: sparse ones, which vary */
	int spikes;	  /* of an input over all steps; 0: one in 50 steps */
	double active;	  /* share of the time between two spikes of an input in which they are */
	const char *spec; /* layers; NULL: recurrent spiking ones */
	/* Of weights, recurrent weights and spikes, which set the activity; 0: 2, 0.3 and 1. */
	double scale, recurrent, threshold;
};

/* Options of neap_compare for a net; they point into `room`. */
struct neap__netroom {
	char data[160], spec[96];
};
void neap__net_options(struct neap_compare_options *options, struct neap__netroom *room,
	const struct neap__study *study, const struct neap__netcase *net);

/*
 * The net's chain with costs (seconds a step, copies) and the slow directory's tier as
 * measured here.
 */
int neap__net_chain(struct neap_problem *problem, const struct neap__study *study,
	const struct neap__netcase *net);
/* The net's chain with sizes alone, and a slow tier that takes no time: enough for least memory. */
int neap__net_sizes(struct neap_problem *problem, const struct neap__study *study,
	const struct neap__netcase *net);

/*
 * Chunks of sqrt(T S/A) steps, which take the least memory (S and A: bytes of a state and a tape),
 * with so many checkpoints offloaded at a time; remote 1: in remote chunks of sqrt(T) steps.
 */
struct neap_params neap__least_chunks(
	const struct neap_problem *p, int64_t checkpoints, int remote);

/*
 * One sweep, planned with nominal costs: for memory and bits, not for times. memory 0: the
 * least that the parameters can do with; tier as for neap__net_sizes.
 */
int neap__net_sweep(struct neap_sweep_stats *stats, struct neap_plan *plan,
	const struct neap__study *study, const struct neap__netcase *net, const char *strategy,
	const struct neap_params *params, uint64_t memory);

/* Sets *values to all gradients, one after the other, which the caller frees. Their number. */
int64_t neap__net_gradient(const struct neap_net *net, double **values);
/* Cosine of two gradients, and |g - whole| / |whole|. */
void neap__net_distance(
	const double *whole, const double *g, int64_t count, double *cosine, double *error);

/*
 * Columns of a comparison's row, and the row: "" where it did not run. predicted is the
 * plan's time at the machine's pace beside the sweep (neap_compare_run.expected), ratio
 * the median of measured over predicted.
 */
#define NEAP__NET_COLUMNS                                                                          \
	"strategy,chosen,units,steps,tapes,memory,peak_bytes,peak_measured,slow_bytes,predicted,"  \
	"seconds,ratio,pace,spread,overhead,resident,stall,overflows,recoveries,grad_hash"
int neap__net_row(struct neap__study *study, const char *before, const struct neap__netcase *net,
	const struct neap_compare_result *result, const struct neap_compare_run *run);

/* All the rows of one comparison, each after `before` ("a,b," or ""). */
int neap__net_rows(struct neap__study *study, const char *before, const struct neap__netcase *net,
	const struct neap_compare_options *options);

#endif
