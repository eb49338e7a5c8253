/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plot.c: `neap plot`: loss, accuracy and rates of runs against epochs, as SVG or PNG
 * (figure_file.h).
 */
#include "cli.h"
#include "figure_file.h"
#include "metrics_file.h"
#include "svg_panels.h"

#include <stdlib.h>
#include <string.h>

#define RUNS_MOST 16
#define PANELS 3

static const char examples[] = "  neap plot run\n"
			       "  neap plot run-a run-b run-c --out loss.svg --log\n"
			       "  neap plot run --out run.png\n";

struct plotting {
	int runs, log;
	const char *run[RUNS_MOST];
	struct cli_metrics metrics[RUNS_MOST];
};

/* Without what paths have in front, unless that tells runs apart. */
static const char *label_of(const struct plotting *p, int run)
{
	const char *slash = strrchr(p->run[run], '/');
	const char *label = slash && slash[1] ? slash + 1 : p->run[run];

	for (int i = 0; i < p->runs; i++) {
		const char *other = strrchr(p->run[i], '/');
		if (i != run && strcmp(other ? other + 1 : p->run[i], label) == 0)
			return p->run[run];
	}
	return label;
}

static int has_numbers(const struct cli_metrics *m, enum cli_metric which)
{
	for (size_t i = 0; i < m->rows; i++)
		if (m->column[which][i] == m->column[which][i])
			return 1;
	return 0;
}

/* Series `which` of all runs, dashed or not, behind the *count that are there. */
static void add(struct cli_series *series, int *count, const struct plotting *p,
	enum cli_metric which, const char *name, int dashed)
{
	for (int r = 0; r < p->runs; r++) {
		const struct cli_metrics *m = &p->metrics[r];
		if (has_numbers(m, which))
			series[(*count)++] = (struct cli_series){.name = name,
				.colour = r,
				.dashed = dashed,
				.x = m->column[CLI_METRIC_epoch],
				.y = m->column[which],
				.count = m->rows};
	}
}

static void in_percent(struct cli_metrics *m, enum cli_metric which)
{
	for (size_t i = 0; i < m->rows; i++)
		m->column[which][i] *= 100;
}

static int make(
	const void *user, int (*write)(void *file, const char *text, size_t length), void *file)
{
	const struct plotting *p = user;
	struct cli_series series[PANELS][2 * RUNS_MOST];
	struct cli_legend legend[RUNS_MOST + 2];
	struct neap__text out = {0};
	char names[RUNS_MOST][NEAP__PLAIN_TEXT];
	int count[PANELS] = {0}, lines = 0;

	add(series[0], &count[0], p, CLI_METRIC_train_loss, "train_loss", 0);
	add(series[0], &count[0], p, CLI_METRIC_validation_loss, "validation_loss", 1);
	add(series[1], &count[1], p, CLI_METRIC_train_accuracy, "train_accuracy", 0);
	add(series[1], &count[1], p, CLI_METRIC_validation_accuracy, "validation_accuracy", 1);
	add(series[2], &count[2], p, CLI_METRIC_spikes, "spikes", 0);
	const struct cli_panel panels[PANELS] = {{.title = p->log ? "loss (logarithmic)" : "loss",
							 .log = p->log,
							 .series = series[0],
							 .count = count[0]},
		{.title = "accuracy (%)", .series = series[1], .count = count[1]},
		{.title = "units that spike in a step (%)",
			.zero = 1,
			.series = series[2],
			.count = count[2]}};
	for (int r = 0; r < p->runs; r++)
		legend[lines++] =
			(struct cli_legend){neap__plain_text(names[r], label_of(p, r)), r, 0};
	legend[lines++] = (struct cli_legend){"training", -1, 0};
	legend[lines++] = (struct cli_legend){"validation", -1, 1};
	int rc = cli_svg_panels(&out, p->runs > 1 ? "Training runs" : names[0], "epoch", panels,
		PANELS, legend, lines);
	if (rc == 0)
		rc = write(file, out.data, out.length);
	neap__text_free(&out);
	return rc;
}

static int plot(struct plotting *p, const char *out)
{
	char *own = NULL, room[NEAP__PLAIN_TEXT];

	for (int r = 0; r < p->runs; r++) {
		int rc = cli_metrics_read(&p->metrics[r], p->run[r], "plot");
		if (rc != CLI_DONE)
			return rc;
		in_percent(&p->metrics[r], CLI_METRIC_train_accuracy);
		in_percent(&p->metrics[r], CLI_METRIC_validation_accuracy);
		in_percent(&p->metrics[r], CLI_METRIC_spikes);
	}
	if (!out && p->runs == 1 && !cli_ends_in(p->run[0], ".csv")) {
		if (asprintf(&own, "%s/metrics.svg", p->run[0]) < 0)
			return cli_usage("plot", "not enough memory to draw");
		out = own;
	}
	if (!out)
		out = "runs.svg";
	int rc = cli_figure_write("out", out, "plot", make, p);
	if (rc == CLI_DONE && !cli_quiet && !cli_is_output(out)) {
		printf("%s\n", neap__plain_text(room, out));
		rc = cli_finish("plot");
	}
	free(own);
	return rc;
}

int cli_plot(int argc, char **argv)
{
	struct plotting p = {0};
	const char *out = NULL;
	/* clang-format off */
	const struct cli_option options[] = {
		CLI_GROUP("Output"),
		{.name = "out", .letter = 'o', .kind = CLI_TEXT, .into = &out,
			.argument = "F.svg|F.png",
			.help = "drawing to write, .svg or .png; -: SVG on standard output (default: "
				"metrics.svg in the folder of the run; for several runs, runs.svg here)"},
		{.name = "log", .kind = CLI_FLAG, .into = &p.log,
			.help = "plot losses on a logarithmic axis"},
		{0},
	};
	/* clang-format on */
	const struct cli_command command = {.name = "plot",
		.arguments = "RUN...",
		.about = "plots loss, accuracy and firing rates of one or more runs over epochs; "
			 "RUN is a folder of 'neap train', finished or not, or its metrics.csv",
		.examples = examples,
		.options = options,
		.least = 1,
		.most = RUNS_MOST};
	p.runs = cli_parse(&command, argc, argv, p.run);
	if (p.runs < 0)
		return CLI_ENDED(p.runs);
	if (out && !cli_is_output(out) && !cli_figure_named(out))
		return cli_usage(
			"plot", "--out: '%s' has an unknown ending; use .svg or .png", out);
	cli_catch_signals();
	int rc = plot(&p, out);
	for (int r = 0; r < p.runs; r++)
		cli_metrics_free(&p.metrics[r]);
	return rc;
}
