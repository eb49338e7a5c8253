/* SPDX-License-Identifier: Apache-2.0 */
/*
 * study_sparsity.c: which strategy is the fastest at which activity, by cell: spiking units (lif),
 * with sparse and with dense tapes, their convolutions (conv), units that send numbers at events
 * (egru), and dense units with few to all weights (rnn). Inputs spike in 0.2% to 90% of the steps,
 * uniformly or in bursts. The budget is the memory that store-all takes for a tenth of the steps
 * with dense tapes.
 *
 * The spikes of the inputs and the scale of the weights set the activity of the units. About half
 * of the units of a net with random weights are inhibited; where nearly all are to spike, the
 * threshold is below the membrane potential after a reset.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/fail.h"
#include "study/experiment.h"
#include "study/net_cases.h"

#define UNITS 256
#define BATCH 2
#define MIB 1048576.0
#define SECONDS 9 /* of the rounds of a point, but at least 3 rounds */
#define BURST 0.1 /* share of the time between two spikes of an input in which bursts are */

#define LIF "lif:256r"
#define CONV "lif:shape=1x16x16:conv=5:pad=2:stride=2:channels=4"
#define EGRU "egru:256r:threshold=0.02"
#define RNN "rnn:256r"

enum { UNIFORM = 1, BURSTS = 2, DENSE = 4 };

static const struct sparsity_case {
	const char *cell, *spec;
	double density; /* of weights */
	double rate;	/* share of the steps in which an input spikes */
	double scale;	/* of weights */
	int kinds;	/* of inputs, and whether dense tapes are measured as well */
	int tiny;	/* those of them that the least study has */
} cases[] = {
	{"lif", LIF, 1, 0.004, 2, UNIFORM | BURSTS | DENSE, 0},
	{"lif", LIF, 1, 0.02, 2, UNIFORM | BURSTS | DENSE, UNIFORM | DENSE},
	{"lif", LIF, 1, 0.1, 2, UNIFORM | BURSTS | DENSE, 0},
	{"lif", LIF, 1, 0.4, 2, UNIFORM | BURSTS | DENSE, 0},
	{"lif", LIF ":reset=hard:threshold=-2", 1, 0.4, 1, UNIFORM | BURSTS | DENSE, 0},
	{"conv", CONV, 1, 0.002, 4, UNIFORM | BURSTS, 0},
	{"conv", CONV, 1, 0.02, 4, UNIFORM | BURSTS, BURSTS},
	{"conv", CONV, 1, 0.1, 4, UNIFORM | BURSTS, 0},
	{"conv", CONV, 1, 0.4, 4, UNIFORM | BURSTS, 0},
	{"conv", CONV ":reset=hard:threshold=-4", 1, 0.4, 2, UNIFORM | BURSTS, 0},
	{"egru", EGRU, 1, 0.002, 1, UNIFORM | BURSTS, 0},
	{"egru", EGRU, 1, 0.02, 1, UNIFORM | BURSTS, 0},
	{"egru", EGRU, 1, 0.1, 4, UNIFORM | BURSTS, 0},
	{"egru", EGRU, 1, 0.9, 4, UNIFORM, 0},
	{"rnn", RNN, 0.02, 0.02, 2, UNIFORM, UNIFORM},
	{"rnn", RNN, 0.1, 0.02, 2, UNIFORM, 0},
	{"rnn", RNN, 0.3, 0.02, 2, UNIFORM, 0},
	{"rnn", RNN, 1, 0.002, 2, UNIFORM, 0},
	{"rnn", RNN, 1, 0.02, 2, UNIFORM | BURSTS, 0},
	{"rnn", RNN, 1, 0.9, 2, UNIFORM, 0},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static const char *const cells[] = {"lif", "conv", "egru", "rnn", NULL};

/* A panel of the figure has the first SHOWN; the table has them all. */
static const char *const strategies[] = {
	"standard", "double", "stream", "replay", "auto", "revolve", NULL};
enum { SHOWN = 5 };

static int run(struct neap__study *study, const struct sparsity_case *c, int bursts, int dense)
{
	char spec[96], before[160];
	const int64_t steps = neap__study_scaled(study, 1000, 10000, 120);
	struct neap__netcase net = {.units = UNITS,
		.batch = BATCH,
		.steps = steps,
		.dense = 1,
		.spikes = (int)fmax(1, round(c->rate * (double)steps)),
		.active = bursts ? BURST : 1,
		.spec = spec,
		.scale = c->scale};
	struct neap_compare_result result = {.size = sizeof result};
	struct neap_compare_options o;
	struct neap__netroom room;
	struct neap_problem p = {.size = sizeof p};
	int rc = 0;

	if (strcmp(c->cell, "rnn") == 0)
		snprintf(spec, sizeof spec, "%s:density=%g", c->spec, c->density);
	else
		snprintf(spec, sizeof spec, "%s", c->spec);
	NEAP_TRY(neap__net_sizes(&p, study, &net));
	net.dense = dense;
	neap__net_options(&o, &room, study, &net);
	o.sweep.memory = (uint64_t)net.steps / 10 * p.chain.tape;
	o.strategies = strategies;
	o.repeats = (int)neap__study_scaled(study, 5, 9, 1);
	o.seconds = SECONDS;
	o.no_pace = 1;
	NEAP_TRY(neap_compare(&result, &o));
	for (int i = 0; rc == 0 && i < result.runs_count; i++) {
		const struct neap_compare_run *r = &result.runs[i];
		snprintf(before, sizeof before,
			"%s,%s,%g,%.4g,%.4g,%.4g,%llu,%llu,%d,%.4f,%.4f,%.4f,", c->cell,
			bursts ? "bursts" : "uniform", c->density,
			100.0 * net.spikes / (double)net.steps, 100 * result.spikes,
			100 * result.support, (unsigned long long)result.problem.chain.tape,
			(unsigned long long)p.chain.tape, r->rounds, r->round_overhead,
			r->round_least, r->round_most);
		rc = neap__net_row(study, before, &net, &result, r);
	}
	neap_compare_result_free(&result);
	return rc < 0 ? rc : neap__study_done(study);
}

static int point(struct neap__study *study, int number, int bursts, int dense)
{
	const struct sparsity_case *c = &cases[number];
	int rc = neap__study_point(study, "%s %d %s%s", c->cell, number,
		bursts ? "bursts" : "uniform", dense ? " dense" : "");
	return rc > 0 ? run(study, c, bursts, dense) : rc;
}

static int measure(struct neap__study *study)
{
	for (int i = 0; i < CASES; i++) {
		int kinds =
			study->options.scale == NEAP_STUDY_TINY ? cases[i].tiny : cases[i].kinds;
		for (int bursts = 0; bursts < 2; bursts++)
			if (kinds & (bursts ? BURSTS : UNIFORM))
				NEAP_TRY(point(study, i, bursts, 0));
		if (kinds & DENSE)
			NEAP_TRY(point(study, i, 0, 1));
	}
	return 0;
}

/* A row of a strategy in the point of row `at`; -1: it did not run. */
static int row_of(const struct neap__study *s, int at, const char *strategy)
{
	const char *name = neap__row_text(s, at, "point");
	for (int i = at; i < neap__points_count(s->points) && neap__row_is(s, i, "point", name);
		i++)
		if (neap__row_is(s, i, "strategy", strategy) &&
			isfinite(neap__row_number(s, i, "over")))
			return i;
	return -1;
}

/* Whether a row is the first one of a point: that of store-all. */
static int begins(const struct neap__study *s, int row)
{
	return neap__row_is(s, row, "strategy", "reference");
}

/* Whether the tapes of the point are dense by choice, though those of its cell can be sparse. */
static int is_dense(const struct neap__study *s, int row)
{
	const char *name = neap__row_text(s, row, "point");
	size_t n = strlen(name), m = strlen(" dense");
	return n > m && strcmp(name + n - m, " dense") == 0;
}

/* The fastest strategy of a point that is not a search over others. */
static int fastest(const struct neap__study *s, int at)
{
	int best = -1;
	for (int k = 0; strategies[k]; k++) {
		int i = neap_strategy_traits(strategies[k]) & NEAP_STRATEGY_CHOOSES
				? -1
				: row_of(s, at, strategies[k]);
		if (i >= 0 && (best < 0 || neap__row_number(s, i, "over") <
						   neap__row_number(s, best, "over")))
			best = i;
	}
	return best;
}

static void add_row(struct neap__study *s, int at)
{
	double overflows = 0;
	int best = fastest(s, at);

	neap__text_add(&s->report, "| %s | %s | %s%% | %s |", neap__row_text(s, at, "cell"),
		neap__row_text(s, at, "density"), neap__row_text(s, at, "inputs_active"),
		neap__row_text(s, at, "inputs"));
	if (neap__row_is(s, at, "cell", "rnn")) /* its outputs are numbers */
		neap__text_add(&s->report, " - | - |");
	else
		neap__text_add(&s->report, " %s%% | %s%% |", neap__row_text(s, at, "spikes"),
			neap__row_text(s, at, "support"));
	neap__text_add(&s->report, " %s | %.2f KiB | %.1f MiB |",
		neap__row_is(s, at, "tapes", "vary") ? "sparse" : "dense",
		neap__row_number(s, at, "tape") / 1024,
		neap__row_number(s, at, "peak_measured") / MIB);
	for (int k = 0; strategies[k]; k++) {
		int i = row_of(s, at, strategies[k]);
		if (i < 0) {
			neap__text_add(&s->report, " - |");
			continue;
		}
		neap__text_add(&s->report, " %+.0f%% (%+.0f to %+.0f) |",
			100 * neap__row_number(s, i, "over"), 100 * neap__row_number(s, i, "least"),
			100 * neap__row_number(s, i, "most"));
		overflows += neap__row_number(s, i, "overflows");
	}
	neap__text_add(&s->report, " `%s` | %.0f |\n",
		best < 0 ? "none" : neap__row_text(s, best, "strategy"), overflows);
}

static void table(struct neap__study *s)
{
	neap__text_add(&s->report,
		"\n| cell | density | inputs that spike | inputs | units that spike | non-zero "
		"surrogate | tapes | tape | store-all, no limit |");
	for (int k = 0; strategies[k]; k++)
		neap__text_add(&s->report, " `%s` |", strategies[k]);
	neap__text_add(&s->report,
		" fastest except `auto` | overflows |\n|---|---|---|---|---|---|---|---|---|");
	for (int k = 0; strategies[k]; k++)
		neap__text_add(&s->report, "---|");
	neap__text_add(&s->report, "---|---|\n");
	for (int i = 0; i < neap__points_count(s->points); i++)
		if (begins(s, i))
			add_row(s, i);
}

/* A range of numbers, with the activity at each end. */
struct sparsity_range {
	double low, high, at_low, at_high;
};

static void widen(struct sparsity_range *r, double value, double at)
{
	if (!(value >= r->low))
		r->low = value, r->at_low = at;
	if (!(value <= r->high))
		r->high = value, r->at_high = at;
}

/* Sizes of sparse tapes, relative to dense ones, for a cell and a kind of inputs. */
static void sizes(struct neap__study *s, struct neap__figure *f, const char *cell,
	const char *inputs, int shade, struct sparsity_range *range)
{
	char label[48];
	snprintf(label, sizeof label, "%s, %s", cell, inputs);
	neap__figure_series(f, NULL, shade, label, NEAP__MARKS | NEAP__LINE);
	for (int i = 0; i < neap__points_count(s->points); i++) {
		if (!begins(s, i) || is_dense(s, i) || !neap__row_is(s, i, "cell", cell) ||
			!neap__row_is(s, i, "inputs", inputs))
			continue;
		double share =
			100 * neap__row_number(s, i, "tape") / neap__row_number(s, i, "tape_dense");
		double at = neap__row_number(s, i, "spikes");
		neap__figure_xy(f, at, share);
		widen(range, share, at);
	}
}

static int draw_sizes(struct neap__study *s)
{
	struct neap__figure f;
	struct sparsity_range range = {NAN, NAN, 0, 0};

	neap__figure_begin(&f, "sparsity-tapes");
	neap__figure_panel(&f, "Size of a sparse tape", "spikes per unit and step (%)",
		"% of a dense tape", NEAP__LOG_X | NEAP__ZERO_Y);
	sizes(s, &f, "lif", "uniform", 0, &range);
	sizes(s, &f, "lif", "bursts", 1, &range);
	sizes(s, &f, "conv", "uniform", 2, &range);
	sizes(s, &f, "conv", "bursts", 3, &range);
	return neap__study_figure(s, &f,
		"A sparse tape of spiking units takes %.0f%% (at %.2g%% spikes) to %.0f%% (at "
		"%.2g%% spikes) of a dense one.",
		range.low, range.at_low, range.high, range.at_high);
}

/* The times of a strategy relative to store-all over the points of a cell, against `column`, into
 * the figure. */
static void overheads(struct neap__study *s, struct neap__figure *f, const char *cell,
	const char *column, const char *strategy)
{
	neap__figure_series(f, strategy, 0, NULL, NEAP__MARKS);
	for (int i = 0; i < neap__points_count(s->points); i++) {
		if (!begins(s, i) || is_dense(s, i) || !neap__row_is(s, i, "cell", cell))
			continue;
		int row = row_of(s, i, strategy);
		if (row >= 0)
			neap__figure_xy(f, neap__row_number(s, i, column),
				1 + neap__row_number(s, row, "over"));
	}
}

/*
 * The largest overhead of a strategy over the points whose tapes are as the cell stores them.
 * NAN: it does not fit in one of them.
 */
static double worst(const struct neap__study *s, const char *strategy, int *points)
{
	double most = -INFINITY;
	*points = 0;
	for (int i = 0; i < neap__points_count(s->points); i++) {
		if (!begins(s, i) || is_dense(s, i))
			continue;
		int row = row_of(s, i, strategy);
		if (row < 0)
			return NAN;
		most = fmax(most, neap__row_number(s, row, "over"));
		++*points;
	}
	return most;
}

static int draw_overheads(struct neap__study *s)
{
	struct neap__figure f;
	int points, others = 0;
	const double most = worst(s, "auto", &points);
	const char *best = NULL;
	double least = INFINITY;

	for (int k = 0; strategies[k]; k++) {
		double found = worst(s, strategies[k], &others);
		if (!(neap_strategy_traits(strategies[k]) & NEAP_STRATEGY_CHOOSES) && found < least)
			least = found, best = strategies[k];
	}
	neap__figure_begin(&f, "sparsity");
	for (int c = 0; cells[c]; c++) {
		int dense = strcmp(cells[c], "rnn") == 0;
		neap__figure_panel(&f, cells[c],
			dense ? "density of the weights" : "spikes per unit and step (%)",
			"time of store-all = 1", NEAP__LOG_X | NEAP__LOG_Y);
		for (int k = 0; k < SHOWN; k++)
			overheads(s, &f, cells[c], dense ? "density" : "spikes", strategies[k]);
	}
	return neap__study_figure(s, &f,
		"In 1/10 of the memory, `auto` takes at most %.0f%% more time than store-all "
		"in the %d cases other than lif with dense tapes; of the fixed strategies, `%s` "
		"has the smallest maximum: %.0f%%.",
		100 * most, points, best ? best : "none", 100 * least);
}

static int draw(struct neap__study *study)
{
	neap__text_add(&study->report,
		"Cells `" LIF "`, conv (`" CONV "`), `" EGRU "` and `rnn:256r` with the given "
		"density of weights, each with the readout `li`; batches of %d, %s steps, 256 "
		"inputs. An input spikes in the given share of the steps: once in each of the "
		"windows of equal length into which the sequence is divided, in any of its steps "
		"(uniform) or in its first tenth, as all other inputs (bursts). The threshold of "
		"the rows with the most spikes is below the potential after a reset. The budget is "
		"1/10 of the "
		"memory of store-all with dense tapes. `replay` stores the spikes and rebuilds "
		"the tapes from them. The strategies run in turns, at least 3 rounds, and more "
		"until %d s have passed. The overhead of a run is its time (wall-clock) relative "
		"to the run of store-all in the same round, with the same kind of tapes and "
		"without this budget; the table has the median of the rounds and, in brackets, "
		"the least and the most; `-`: the strategy does not fit the "
		"budget or does not apply. If a sparse tape is larger than planned and does not "
		"fit, its step is recomputed; `overflows` is the number of these tapes in the "
		"sweeps of all strategies.\n",
		BATCH, neap__row_text(study, 0, "steps"), SECONDS);
	table(study);
	NEAP_TRY(draw_sizes(study));
	return draw_overheads(study);
}

const struct neap__experiment neap__study_sparsity = {"sparsity",
	"activity, cells and density of weights: store, recompute or offload",
	"cell,inputs,density,inputs_active,spikes,support,tape,tape_dense,rounds,over,least,"
	"most," NEAP__NET_COLUMNS,
	measure, draw};
