/* SPDX-License-Identifier: Apache-2.0 */
/* report.c: the sections of the report, and the counts of points that agree with the model. */
#include "study/report.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/fail.h"
#include "sys/atomic_file.h"

#define PATH 4200
#define CLOSE 0.15 /* a time agrees with the model within this share of it */

static void say(const struct neap__study *s, const char *line)
{
	if (s->options.say)
		s->options.say(s->options.user, line);
}

void neap__report_machine(const struct neap__study *study, char *room, size_t size)
{
	struct neap_machine m = {.size = sizeof m};
	neap_machine_describe(&m);
	snprintf(room, size, "%s, %d processors, %.1f GiB, %s, kernels: %s%s%s", m.cpu,
		m.processors, (double)m.memory_total / 1073741824.0, m.os, m.isa,
		study->device[0] ? "; device: " : "", study->device);
}

/*
 * Counts the agreement of one row in fast memory: the planned peak against the measured one.
 * Where tapes vary, or logs, a peak is no more than within the budget.
 */
static void weigh_memory(struct neap__study *s, int row)
{
	struct neap__agreement *a = &s->agreement;
	double planned = neap__row_number(s, row, "peak_bytes");
	double peak = neap__row_number(s, row, "peak_measured");
	const char *strategy = neap__row_text(s, row, "strategy");
	int varies = neap__row_is(s, row, "tapes", "vary") ||
		     neap_strategy_traits(neap__row_text(s, row, "chosen")) & NEAP_STRATEGY_REPLAYS;
	if (!isfinite(peak) || (!varies && !isfinite(planned)))
		return;
	if (varies) {
		a->bounded++;
		a->within += peak <= neap__row_number(s, row, "memory") ||
			     strcmp(strategy, "reference") == 0;
		return;
	}
	int exact = fabs(planned - peak) < 0.5; /* numbers of a file: whole bytes */
	a->sizes++;
	a->exact += exact;
	if (!exact)
		neap__text_add(&a->table,
			"| %s %s | `%s` | fast memory | %.0f bytes | %.0f bytes | %+.1f%% |\n",
			s->experiment->name, neap__row_text(s, row, "point"), strategy, planned,
			peak, 100 * (peak / planned - 1));
}

/* The same in time: the predicted seconds against the measured ones. */
static void weigh_time(struct neap__study *s, int row)
{
	struct neap__agreement *a = &s->agreement;
	double model = neap__row_number(s, row, "predicted");
	double seconds = neap__row_number(s, row, "seconds");
	double ratio = neap__row_number(s, row, "ratio");
	if (!isfinite(model) || !isfinite(seconds) || model <= 0)
		return;
	double off = (isfinite(ratio) ? ratio : seconds / model) - 1;
	a->times++;
	a->close += fabs(off) <= CLOSE;
	if (fabs(off) > CLOSE)
		neap__text_add(&a->table, "| %s %s | `%s` | time | %.3g s | %.3g s | %+.0f%% |\n",
			s->experiment->name, neap__row_text(s, row, "point"),
			neap__row_text(s, row, "strategy"), model, seconds, 100 * off);
}

int neap__report_section(struct neap__study *study)
{
	neap__text_add(&study->report, "\n## %s: %s\n\n", study->experiment->name,
		study->experiment->about);
	NEAP_TRY(study->experiment->draw(study));
	neap__text_add(&study->report, "\nPoints: `%s.csv`.\n", study->experiment->name);
	for (int i = 0; i < neap__points_count(study->points); i++) {
		weigh_memory(study, i);
		weigh_time(study, i);
	}
	return 0;
}

void neap__report_missing(struct neap__study *study, int count)
{
	neap__text_add(&study->report, "\n## %s: %s\n\nNot measured: %d points are missing.\n",
		study->experiment->name, study->experiment->about, count);
}

int neap__study_figure(
	struct neap__study *study, struct neap__figure *figure, const char *format, ...)
{
	char name[64], finding[sizeof figure->title];
	va_list args;
	size_t n = 0;

	va_start(args, format);
	vsnprintf(finding, sizeof finding, format, args);
	va_end(args);
	for (const char *at = finding; *at; at++)
		if (*at != '`') /* marks names of code in the report alone */
			figure->title[n++] = *at;
	figure->title[n] = '\0';
	snprintf(name, sizeof name, "%s", figure->name);
	NEAP_TRY(neap__figure_end(figure, study->options.out, study->options.png));
	neap__text_add(&study->report, "\n![%s](%s.svg)\n\n%s\n", name, name, finding);
	return 0;
}

static void write_agreement(const struct neap__agreement *a, struct neap__text *out)
{
	if (a->sizes + a->times + a->bounded == 0)
		return;
	neap__text_add(out, "\n## Predictions compared with measurements\n\n");
	if (a->sizes)
		neap__text_add(out,
			"Peak of fast memory: equal to the plan, to the byte, in %d of %d "
			"points.\n",
			a->exact, a->sizes);
	if (a->bounded)
		neap__text_add(out,
			"\nPeak of fast memory, if tapes or logs vary in size: at most the "
			"budget in %d of %d points.\n",
			a->within, a->bounded);
	if (a->times)
		neap__text_add(out,
			"\nTime: within %.0f%% of the prediction in %d of %d points (goal: nine "
			"of ten points; %s). A table lists the others. `predicted` and "
			"`measured` belong to the repetition with the median time; "
			"`difference` is the median of the differences of the repetitions, "
			"if a point was repeated.\n",
			100 * CLOSE, a->close, a->times,
			10 * a->close >= 9 * a->times ? "reached" : "missed");
	if (a->table.length)
		neap__text_add(out,
			"\n| point | strategy | quantity | predicted | measured | difference "
			"|\n|---|---|---|---|---|---|\n%s",
			a->table.data);
}

int neap__report_write(struct neap__study *study)
{
	static const char *const scales[] = {"quick", "full", "tiny"};
	struct neap__text out = {0};
	char machine[640], path[PATH], line[PATH + 64];
	const char *device = study->options.device;

	neap__report_machine(study, machine, sizeof machine);
	neap__text_add(&out,
		"# Memory and time of checkpointing strategies, measured\n\n`neap study "
		"--%s%s%s`, slow memory in `%s`. %s.\nEach strategy has the same colour and "
		"mark in all figures.\n%s",
		scales[study->options.scale], device ? " --device " : "", device ? device : "",
		study->options.slow, machine, study->report.data ? study->report.data : "");
	write_agreement(&study->agreement, &out);
	snprintf(path, sizeof path, "%s/report.md", study->options.out);
	int rc = out.error || study->report.error ? neap__fail_errno(ENOMEM, "%s", path)
						  : neap__write_file(path, out.data, out.length);
	neap__text_free(&out);
	NEAP_TRY(rc);
	snprintf(line, sizeof line, "report: %s", path);
	say(study, line);
	return 0;
}
