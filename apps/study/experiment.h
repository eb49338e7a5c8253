/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experiment.h: the table of experiments behind study.h, and what they share. To add
 * one: a new file with its points and its drawing, a row in run_study.c.
 */
#ifndef NEAP_STUDY_EXPERIMENT_H
#define NEAP_STUDY_EXPERIMENT_H

#include <neap/machine.h>
#include "study/run_study.h"
#include <neap/train.h>
#include "base/text.h"
#include "study/figure.h"
#include "study/points.h"

struct neap__study;

struct neap__experiment {
	const char *name;
	const char *about;   /* one line */
	const char *columns; /* of its CSV, after "point" */
	/*
	 * Goes through its points in a fixed order:
	 *     if ((rc = neap__study_point(study, "T=%d %s", ...)) > 0)
	 *             ... measure, neap__study_row(), then neap__study_done()
	 * All the work is done between, for it is also called to count them.
	 */
	int (*measure)(struct neap__study *study);
	/* Figures, and the section of the report, from complete points. */
	int (*draw)(struct neap__study *study);
};

extern const struct neap__experiment neap__study_schedules, neap__study_asymptotics,
	neap__study_length, neap__study_howfar, neap__study_truncated, neap__study_async,
	neap__study_sizes, neap__study_chunks, neap__study_remotes, neap__study_sparsity,
	neap__study_stability;

/* An experiment at work. */
struct neap__study {
	struct neap_study_options options;
	const struct neap__experiment *experiment;
	struct neap__points *points;
	char point[128];
	int counting; /* 1: points are counted, not measured */
	int missing;  /* points, of the experiments asked for */
	int done;     /* of them */
	int undrawn;  /* figures, for want of gnuplot */
	int unpainted;
	struct neap__text report;
	struct neap__text agreement; /* points that the model misses */
	int exact, sizes, within, bounded, close, times;
};

/* 1: the point is to be measured now; 0: it is there, or only counted; or a code. */
int neap__study_point(struct neap__study *study, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* A row of the point at hand: values, separated by commas. */
int neap__study_row(struct neap__study *study, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The point is complete: its rows go to the file. */
int neap__study_done(struct neap__study *study);

/* Of quick, full, tiny, the one that is asked for. */
int64_t neap__study_scaled(
	const struct neap__study *study, int64_t quick, int64_t full, int64_t tiny);

/* Ends a figure and puts it into the report with a caption. */
int neap__study_figure(struct neap__study *study, struct neap__figure *figure, const char *caption);

/* Shorthands for the rows. */
const char *neap__row_text(const struct neap__study *study, int row, const char *column);
double neap__row_number(const struct neap__study *study, int row, const char *column);
int neap__row_is(const struct neap__study *study, int row, const char *column, const char *text);

/*
 * The exponent a of y = c x^a by least squares over the logarithms of n points; those
 * not above 0 are left out. NaN for fewer than two.
 */
double neap__fit_power(const double *x, const double *y, int n);

/*
 * The plan that takes the least memory a strategy can do with under these parameters,
 * and sets problem->memory to that. `plan->feasible` is 0 where nothing does.
 */
int neap__plan_least(struct neap_plan *plan, struct neap_problem *problem, const char *strategy,
	const struct neap_params *params);

#endif
