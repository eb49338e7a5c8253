/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experiment.h: the table of experiments behind run_study.h, and the functions that experiments
 * share. To add an experiment: a new file study_NAME.c with its points and its drawing, and a
 * line in NEAP__EXPERIMENT_TABLE.
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
	 * All work is done between these calls: `measure` also runs to count points.
	 */
	int (*measure)(struct neap__study *study);
	/* Figures, and the section of the report, from complete points. */
	int (*draw)(struct neap__study *study);
};

/*
 * X(row), in the order of the report. The row neap__study_NAME stands in study_NAME.c.
 */
#define NEAP__EXPERIMENT_TABLE(X)                                                                  \
	X(neap__study_schedules)                                                                   \
	X(neap__study_asymptotics)                                                                 \
	X(neap__study_length)                                                                      \
	X(neap__study_howfar)                                                                      \
	X(neap__study_truncated)                                                                   \
	X(neap__study_async)                                                                       \
	X(neap__study_sizes)                                                                       \
	X(neap__study_chunks)                                                                      \
	X(neap__study_remotes)                                                                     \
	X(neap__study_sparsity)                                                                    \
	X(neap__study_stability)

/* The same for studies of a device (neap_study_options.device), which run no others. */
#define NEAP__DEVICE_EXPERIMENT_TABLE(X) X(neap__study_device)

#define NEAP__X(row) extern const struct neap__experiment row;
NEAP__EXPERIMENT_TABLE(NEAP__X)
NEAP__DEVICE_EXPERIMENT_TABLE(NEAP__X)
#undef NEAP__X

/* How a study's points agree with the model: counts of points, for the end of the report. */
struct neap__agreement {
	struct neap__text table; /* a row for each point that the model misses */
	int sizes, exact;	 /* with a planned peak; of them as planned, to the byte */
	int bounded, within;	 /* where tapes or logs vary; of them within the budget */
	int times, close;	 /* with a predicted time; of them close to it */
};

/* A study at work. */
struct neap__study {
	struct neap_study_options options;
	const struct neap__experiment *experiment; /* the one at hand */
	struct neap__points *points;		   /* of the experiment at hand */
	char point[128];			   /* the name of the point at hand */
	int counting;				   /* 1: points are counted, not measured */
	int missing;				   /* points, of the experiments asked for */
	int done;				   /* points measured, of the missing ones */
	char device[320];			   /* its description; "": none */
	struct neap__text report;
	struct neap__agreement agreement;
};

/* 1: the point is to be measured now; 0: its rows are there, or it is only counted; or a code. */
int neap__study_point(struct neap__study *study, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* A row of the point at hand: values, separated by commas. */
int neap__study_row(struct neap__study *study, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* A value of a row as text: nothing if it is not finite. */
const char *neap__study_number(char room[32], double value);
/* The point is complete: its rows go to the file. */
int neap__study_done(struct neap__study *study);

/* Of quick, full, tiny, the one that is asked for. */
int64_t neap__study_scaled(
	const struct neap__study *study, int64_t quick, int64_t full, int64_t tiny);

/* Of long work within a point: an error if the user has interrupted the study. */
int neap__study_alive(struct neap__study *study);

/*
 * Ends a figure and puts it into the report. The text is the one finding that the figure shows, a
 * sentence with numbers of its points: the title of the figure and its caption.
 */
int neap__study_figure(struct neap__study *study, struct neap__figure *figure, const char *format,
	...) __attribute__((format(printf, 3, 4)));

/* Shorthands for the rows. */
const char *neap__row_text(const struct neap__study *study, int row, const char *column);
double neap__row_number(const struct neap__study *study, int row, const char *column);
int neap__row_is(const struct neap__study *study, int row, const char *column, const char *text);

/* A curve of a figure: rows with this `axis`, by the columns x and y. */
struct neap__curve {
	const char *axis, *x, *y;
	double unit; /* of y */
	int each;    /* 1: y per step */
};
/* Of strategies up to NULL, the first of which is the reference: marks, and lines of `model`,
 * which may be NULL. */
void neap__curves_draw(struct neap__study *study, struct neap__figure *figure,
	const char *const *strategies, const struct neap__curve *measured,
	const struct neap__curve *model);
/* The row of a strategy on this `axis` that ran with the least number in a column, or with `last`
 * the largest one; -1: there is none. */
int neap__row_at_end(const struct neap__study *study, const char *axis, const char *column,
	const char *strategy, int last);

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
