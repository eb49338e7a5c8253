/* SPDX-License-Identifier: Apache-2.0 */
/* bench.c: `neap bench`: runs a benchmark (apps/bench) and prints its rows with their targets. */
#include "cli.h"
#include "json_report.h"

#include <math.h>
#include "bench/run_bench.h"
#include <string.h>

static const char examples[] = "  neap bench planner\n"
			       "  neap bench planner --only h-revolve --runs 9\n"
			       "  neap bench planner --json > planner.json\n"
			       "  neap bench auto\n"
			       "  neap bench kernels --only 'avx2 dots 512'\n"
			       "  neap bench cells --only lif\n"
			       "  neap bench store --dir /scratch\n";

struct benching {
	struct neap_machine machine;
	struct neap__json *report; /* NULL: a table */
	int count, missed;
};

static const char *show(char room[24], const struct neap_bench_row *row, double value)
{
	if (!isfinite(value))
		snprintf(room, 24, "-");
	else if (strcmp(row->unit, "s") == 0)
		neap__show_time(room, value);
	else if (strcmp(row->unit, "bytes") == 0)
		neap__show_size(room, (uint64_t)value);
	else
		snprintf(room, 24, "%.4g", value);
	return room;
}

static void write_row(struct neap__json *to, const struct neap_bench_row *row)
{
	neap__json_begin(to, NULL, '{');
	neap__json_text(to, "name", row->name);
	neap__json_text(to, "what", row->what);
	neap__json_text(to, "unit", row->unit);
	neap__json_number(to, "value", row->value);
	neap__json_number(to, "low", row->low);
	neap__json_number(to, "high", row->high);
	neap__json_int(to, "runs", row->runs);
	neap__json_number(to, "target", row->target);
	neap__json_bool(to, "met", row->met);
	for (int i = 0; i < row->nmore; i++)
		neap__json_number(to, row->more[i].name, row->more[i].value);
	neap__json_end(to, '}');
}

static void head(const struct neap_machine *m)
{
	char total[24];
	printf("# %s, %d processors, %s, %s, kernels: %s\n", m->cpu, m->processors,
		neap__show_size(total, m->memory_total), m->os, m->isa);
	printf("%-44s %10s %10s %10s %10s\n", "", "median", "least", "most", "target");
}

static int on_row(void *user, const struct neap_bench_row *row)
{
	struct benching *b = user;
	char value[24], low[24], high[24], target[24];
	b->count++;
	b->missed += !row->met;
	if (b->report) {
		write_row(b->report, row);
		return 0;
	}
	if (b->count == 1)
		head(&b->machine);
	printf("%-44s %10s %10s %10s %10s  %-4s  %s\n", row->name, show(value, row, row->value),
		show(low, row, row->low), show(high, row, row->high),
		show(target, row, row->target),
		!isfinite(row->target) ? ""
		: row->met	       ? "ok"
				       : "OVER",
		row->what);
	fflush(stdout);
	return 0;
}

static int interrupted(void *user)
{
	(void)user;
	return cli_interrupted();
}

static void write_machine(struct neap__json *to, const struct neap_machine *m)
{
	neap__json_begin(to, "machine", '{');
	neap__json_text(to, "cpu", m->cpu);
	neap__json_int(to, "processors", m->processors);
	neap__json_bytes(to, "memory", m->memory_total);
	neap__json_text(to, "os", m->os);
	neap__json_text(to, "isa", m->isa);
	neap__json_end(to, '}');
}

static int run(const char *name, const struct neap_bench_options *options, int json)
{
	struct neap__json report = {0}, *to = &report;
	struct benching b = {.report = json ? to : NULL, .machine = {.size = sizeof b.machine}};
	neap_machine_describe(&b.machine);
	neap__json_begin(to, NULL, '{');
	neap__json_text(to, "benchmark", name);
	write_machine(to, &b.machine);
	neap__json_begin(to, "rows", '[');
	cli_catch_signals();
	int rc = neap_bench_run(name, options, on_row, &b);
	neap__json_end(to, ']');
	neap__json_int(to, "missed", b.missed);
	neap__json_end(to, '}');
	if (rc == 0 && json)
		return cli_json_print(to, "bench");
	neap__json_free(to);
	if (rc < 0)
		return cli_fail("bench", rc);
	printf("%d rows, %d over their targets\n", b.count, b.missed);
	return cli_finish("bench");
}

int cli_bench(int argc, char **argv)
{
	struct neap_bench_options o = {.interrupted = interrupted};
	int json = 0;
	const char *name = NULL;
	/* clang-format off */
	const struct cli_option options[] = {
		CLI_GROUP("Rows and output"),
		{.name = "only", .kind = CLI_TEXT, .into = &o.only, .argument = "TEXT",
			.help = "run only rows whose name begins with TEXT (default: all)"},
		{.name = "runs", .kind = CLI_COUNT, .into = &o.runs, .argument = "N",
			.help = "runs per row, of which the median is reported (default: set by the "
				"benchmark)", .low = 1, .high = 101},
		{.name = "dir", .kind = CLI_TEXT, .into = &o.directory, .argument = "DIR",
			.help = "for 'store': directory on the disk to measure (default /var/tmp)"},
		CLI_JSON_OPTION(json),
		{0},
	};
	/* clang-format on */
	const struct cli_command command = {.name = "bench",
		.arguments = "NAME",
		.about = "runs a benchmark and compares it with its targets: 'planner' times "
			 "planning, 'auto' compares its plans with those of the best named "
			 "strategy, 'store' measures slow memory with each engine (and fio, if "
			 "installed), 'kernels' compares inner loops with the memory bandwidth and "
			 "multiplication rate of this machine, 'cells' compares cell files with "
			 "built-in cells",
		.examples = examples,
		.options = options,
		.most = 1};
	int parsed = cli_parse(&command, argc, argv, &name);
	if (parsed < 0)
		return CLI_ENDED(parsed);
	if (parsed == 0)
		return cli_usage("bench", "NAME is missing: pass planner, auto, store, arena, "
					  "kernels or cells, such as neap bench kernels");
	if (!neap_bench_about(name))
		return cli_unknown_name("bench", "", name, neap_bench_name);
	return run(name, &o, json);
}
