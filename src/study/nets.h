/* SPDX-License-Identifier: Apache-2.0 */
/* nets.h: real nets for time experiments: recurrent spiking units on randman. */
#ifndef NEAP_STUDY_NETS_H
#define NEAP_STUDY_NETS_H

#include "experiment.h"

struct neap__netcase {
	int units, batch;
	int64_t steps;
	int dense;    /* 1: tapes of one size; 0: sparse ones, which vary */
	int spikes;   /* of an input over all steps; 0: one in 50 steps */
	double scale; /* of the weights, which the activity follows; 0: 2 */
};

/* Options of neap_compare for a net; `room` holds what they point to. */
struct neap__netroom {
	char data[128], spec[64];
};
void neap__net_options(struct neap_compare_options *options, struct neap__netroom *room,
	const struct neap__study *study, const struct neap__netcase *net);

/*
 * The net's chain with costs (seconds a step, copies) and the slow directory's tier as
 * measured here.
 */
int neap__net_chain(struct neap_problem *problem, const struct neap__study *study,
	const struct neap__netcase *net);
/* Its sizes alone, where a slow tier takes no time: what least memory depends on. */
int neap__net_sizes(struct neap_problem *problem, const struct neap__study *study,
	const struct neap__netcase *net);

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
