/* SPDX-License-Identifier: Apache-2.0 */
/* sample_figure.c: panels of the inputs, the layers and the readout of a sample
 * (sample_figure.h). */
#include "sample_figure.h"
#include "trace_lines.h"
#include "base/fail.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	COLOURED = 7, /* lines of a panel that are told apart */
	LINES = 7,    /* inputs and units that are drawn as lines; more are cells */
	SCORES = 64,  /* the same of the readout */
	NAME = 28,    /* bytes of a name that are shown */
	LABEL = 160,
	TITLE = 4 * LABEL,
	LEGEND = 80 /* lines of the legend at most */
};

/* What one panel shows. */
struct shown_part {
	char name[LABEL], title[LABEL]; /* the title stands beside the axis */
	int is_lines;
	struct cli_lines lines;
	struct cli_grid grid;
};

struct cli_sample_figure {
	char data[NAME + 4];
	int begun;
	int64_t sample, steps;
	double dt;
	int of_rows; /* the inputs are numbers: steps are counted, not timed */
	int parts;
	struct shown_part *part; /* inputs, hidden layers, readout */
	int classes;
	char (*class_name)[NAME + 4]; /* [classes] once an answer came */
	int label;		      /* of the answer; -1: none */
	int numbers;		      /* the targets are numbers */
	char answer[TITLE];
};

/* A name that has room in a figure: cut between characters, with dots where it is. */
static void shorten(char room[NAME + 4], const char *text)
{
	char plain[NEAP__PLAIN_TEXT];
	size_t n = 0;

	neap__escaped_text(plain, text);
	for (int bytes; plain[n] && (bytes = neap__utf8_bytes(plain + n)) > 0;) {
		if (n + (size_t)bytes > NAME) {
			snprintf(room, NAME + 4, "%.*s...", (int)n, plain);
			return;
		}
		n += (size_t)bytes;
	}
	snprintf(room, NAME + 4, "%.*s", (int)n, plain);
}

int cli_sample_figure_make(struct cli_sample_figure **into, const char *data)
{
	const char *slash = strrchr(data, '/');
	struct cli_sample_figure *f = calloc(1, sizeof *f);

	*into = f;
	if (!f)
		return neap__fail_errno(ENOMEM, "a figure");
	shorten(f->data, slash && slash[1] ? slash + 1 : data);
	return 0;
}

void cli_sample_figure_free(struct cli_sample_figure *f)
{
	if (!f)
		return;
	for (int i = 0; i < f->parts; i++) {
		cli_lines_free(&f->part[i].lines);
		cli_grid_free(&f->part[i].grid);
	}
	free(f->part);
	free(f->class_name);
	free(f);
}

/* A part that shows spikes, or numbers of so many units as lines or cells. */
static int make_part(struct shown_part *part, int64_t steps, int units, int spikes, int most)
{
	const char *of = strcmp(part->name, "input") == 0 ? " channel" : ", unit";

	part->is_lines = !spikes && units <= most;
	snprintf(part->title, sizeof part->title, "%.80s%s", part->name, part->is_lines ? "" : of);
	int rc = part->is_lines ? cli_lines_make(&part->lines, steps, units)
				: cli_grid_make(&part->grid, steps, units, !spikes);
	return rc < 0 ? neap__fail_errno(ENOMEM, "a figure") : 0;
}

static int begin(struct cli_sample_figure *f, const struct neap_step_view *v)
{
	int numbers = v->values != NULL;

	f->begun = 1;
	f->sample = v->sample;
	f->steps = v->steps;
	f->dt = v->dt;
	f->of_rows = numbers;
	f->part = calloc((size_t)v->layers + 1, sizeof *f->part);
	if (!f->part)
		return neap__fail_errno(ENOMEM, "a figure");
	f->parts = v->layers + 1;
	snprintf(f->part[0].name, LABEL, "input");
	NEAP_TRY(make_part(&f->part[0], v->steps, v->inputs, !numbers, LINES));
	for (int l = 0; l < v->layers; l++) {
		const struct neap_layer_view *layer = &v->layer[l];
		struct shown_part *part = &f->part[l + 1];
		int readout = l == v->layers - 1;
		if (readout)
			snprintf(part->name, LABEL, "readout");
		else
			snprintf(part->name, LABEL, "%s (%s)", layer->name, layer->cell);
		NEAP_TRY(make_part(part, v->steps, layer->units, !readout && layer->spikes >= 0,
			readout ? SCORES : LINES));
	}
	return 0;
}

static void add_number(struct shown_part *part, int64_t step, int unit, double value)
{
	if (part->is_lines)
		cli_lines_add(&part->lines, step, unit, value);
	else
		cli_grid_add(&part->grid, step, unit, value);
}

int cli_sample_figure_step(struct cli_sample_figure *f, const struct neap_step_view *v)
{
	if (!f->begun)
		NEAP_TRY(begin(f, v));
	if (v->sample != f->sample)
		return 0;
	for (int i = 0; i < v->events; i++)
		cli_grid_add(&f->part[0].grid, v->step, v->event[i], 1);
	for (int i = 0; i < v->inputs && v->values; i++)
		add_number(&f->part[0], v->step, i, (double)v->values[i]);
	for (int l = 0; l < v->layers; l++) {
		const struct neap_layer_view *layer = &v->layer[l];
		struct shown_part *part = &f->part[l + 1];
		if (layer->spikes < 0)
			for (int i = 0; i < layer->units; i++)
				add_number(part, v->step, i, layer->state[0][i]);
		for (int i = 0; i < layer->spikes; i++)
			cli_grid_add(&part->grid, v->step, layer->spike[i], 1);
	}
	return 0;
}

static const char *class_of(const struct neap_answer *a, int number, char room[NAME + 4])
{
	if (a->class_name[number])
		shorten(room, a->class_name[number]);
	else
		snprintf(room, NAME + 4, "%d", number);
	return room;
}

int cli_sample_figure_answer(struct cli_sample_figure *f, const struct neap_answer *a)
{
	char label[NAME + 4], prediction[NAME + 4];

	if (!f->begun || f->class_name || a->index != f->sample)
		return 0;
	f->class_name = calloc((size_t)a->classes, sizeof *f->class_name);
	if (!f->class_name)
		return neap__fail_errno(ENOMEM, "a figure");
	f->classes = a->classes;
	f->label = a->target == NEAP_TARGET_LABEL ? a->label : -1;
	f->numbers = a->target == NEAP_TARGET_NUMBERS || a->target == NEAP_TARGET_SERIES;
	for (int c = 0; c < a->classes; c++)
		class_of(a, c, f->class_name[c]);
	if (a->target != NEAP_TARGET_LABEL)
		return 0;
	if (a->label >= 0)
		snprintf(f->answer, sizeof f->answer, ": label %s, prediction %s",
			class_of(a, a->label, label), class_of(a, a->prediction, prediction));
	else
		snprintf(f->answer, sizeof f->answer, ": prediction %s",
			class_of(a, a->prediction, prediction));
	return 0;
}

/* The unit of the axis: of rows a step, else what leaves numbers short. */
static double time_scale(const struct cli_sample_figure *f, const char **name)
{
	double seconds = (double)f->steps * f->dt;

	*name = f->of_rows	  ? "step"
		: seconds >= 10	  ? "time (s)"
		: seconds >= 0.01 ? "time (ms)"
				  : "time (us)";
	return f->of_rows ? 1 : f->dt * (seconds >= 10 ? 1 : seconds >= 0.01 ? 1e3 : 1e6);
}

struct sample_drawing {
	struct cli_legend legend[LEGEND];
	char label[LEGEND][LABEL];
	int lines;
	int taken; /* colours of the readout and of the panels so far: the next one goes on */
};

static char *add_legend(struct sample_drawing *d, int colour)
{
	static char unused[LABEL];

	if (d->lines == LEGEND)
		return unused;
	d->legend[d->lines] = (struct cli_legend){.label = d->label[d->lines], .colour = colour};
	return d->label[d->lines++];
}

/* The lines of the legend that a part asks for; its colours begin with the `first`. */
static void explain(struct sample_drawing *d, const struct cli_sample_figure *f, int number,
	int coloured, int first)
{
	const struct shown_part *part = &f->part[number];
	int readout = number == f->parts - 1, others = part->lines.units - coloured;
	double reach = part->is_lines ? 0 : cli_grid_reach(&part->grid);

	for (int i = 0; i < coloured; i++) {
		int unit = part->lines.order[i];
		char *label = add_legend(d, (i + first) % COLOURED);
		if (readout && unit < f->classes)
			snprintf(label, LABEL, "readout: %s", f->class_name[unit]);
		else
			snprintf(label, LABEL, number ? "%.60s, unit %d" : "%.60s channel %d",
				part->name, unit);
	}
	if (part->is_lines && others > 0)
		snprintf(add_legend(d, CLI_GREY), LABEL, "readout: %d others", others);
	if (!part->is_lines && part->grid.heat)
		snprintf(add_legend(d, CLI_SCALE), LABEL, "%.60s: -%.3g to %.3g", part->name, reach,
			reach);
}

static int is_thinned(const struct shown_part *part)
{
	const struct cli_grid *g = &part->grid;
	return !part->is_lines && !g->heat && (g->columns < g->steps || g->rows < g->units);
}

/* The panel of a part, and what the legend says about it. */
static struct cli_panel panel_of(
	struct sample_drawing *d, struct cli_sample_figure *f, int number, double scale)
{
	struct shown_part *part = &f->part[number];
	struct cli_panel panel = {.title = part->title};
	int readout = number == f->parts - 1, coloured = COLOURED;
	int first = readout ? 0 : d->taken;

	if (part->is_lines && readout && f->class_name && f->label >= 0)
		part->lines.sum[f->label] = INFINITY; /* in colour, whatever it is */
	if (part->is_lines) {
		cli_lines_series(&part->lines, readout ? "readout" : "trace", scale, &coloured);
		for (int i = 0; i < part->lines.units; i++) {
			int *colour = &part->lines.series[i].colour;
			*colour = *colour == CLI_GREY ? CLI_GREY : (*colour + first) % COLOURED;
		}
		panel.series = part->lines.series;
		panel.count = part->lines.units;
	} else {
		coloured = 0;
		panel.grid = &part->grid;
		panel.grid_from = -0.5 * scale; /* a step lies in the middle of its cell */
		panel.grid_end = scale * ((double)f->steps - 0.5);
	}
	explain(d, f, number, coloured, first);
	d->taken += readout ? 0 : coloured;
	return panel;
}

static int draw(struct neap__text *out, struct cli_sample_figure *f, struct sample_drawing *d,
	struct cli_panel *panels)
{
	char title[2 * TITLE];
	const char *x_title;
	double scale = time_scale(f, &x_title);
	int thinned = 0;

	struct shown_part *last = &f->part[f->parts - 1];

	d->taken = last->is_lines ? last->lines.units : 0;
	if (f->numbers)
		snprintf(last->title, sizeof last->title, "readout, as learned");
	for (int i = 0; i < f->parts; i++) {
		panels[i] = panel_of(d, f, i, scale);
		thinned |= is_thinned(&f->part[i]);
	}
	if (thinned)
		snprintf(add_legend(d, -1), LABEL,
			"each cell shows several steps or units; darker cells have more spikes");
	snprintf(title, sizeof title, "Sample %lld of %s%s", (long long)f->sample, f->data,
		f->answer);
	return cli_svg_panels(out, title, x_title, panels, f->parts, d->legend, d->lines);
}

int cli_sample_figure_draw(
	const void *user, int (*write)(void *file, const char *text, size_t length), void *file)
{
	struct cli_sample_figure *f = (struct cli_sample_figure *)(uintptr_t)user;
	struct sample_drawing *d = calloc(1, sizeof *d);
	struct cli_panel *panels = calloc((size_t)f->parts + 1, sizeof *panels);
	struct neap__text out = {0};

	int rc = d && panels ? draw(&out, f, d, panels) : neap__fail_errno(ENOMEM, "a figure");
	if (rc == 0)
		rc = write(file, out.data, out.length);
	neap__text_free(&out);
	free(panels);
	free(d);
	return rc;
}
