/* SPDX-License-Identifier: Apache-2.0 */
/* compare.c: `neap compare`: runs one batch of real data under every strategy. */
#include "net_options.h"
#include "json_report.h"
#include "plan_command.h"
#include "process_report.h"

#include <inttypes.h>
#include <math.h>
#include <neap/machine.h>
#include <string.h>

static const char examples[] =
	"  neap compare train.h5 --memory 1M --slow /var/tmp\n"
	"  neap compare train.h5 --dt 0.1ms --memory 4M --slow /var/tmp --strategy double\n"
	"  neap compare randman:steps=10000 --net lif:256r,li --memory 2M --json\n";

/* The command line, which the options fill. */
static struct {
	struct neap_compare_options o;
	struct cli_net_choices choices;
	struct cli_list strategies;
	const char *chain, *save;
	int64_t seed;
	int json, verbose;
} given = {.o = {.size = sizeof given.o}, .seed = 1};

#define CLI_PARAMS given.o.sweep.params
/* clang-format off */
static const struct cli_option options[] = {
	CLI_NET_OPTIONS(given.o.net, given.choices),
	CLI_LOSS_OPTIONS(given.o.loss, given.o.rates),
	CLI_SWEEP_OPTIONS(given.o.sweep, given.chain),
	{.name = "strategy", .kind = CLI_LIST, .into = &given.strategies, .argument = "NAME",
		.help = "strategy to run, repeatable (default: all)", .names = neap_strategy_name},
	CLI_BATCH_OPTIONS(given.o, given.seed),
	CLI_GROUP("Measurement and output"),
	{.name = "repeats", .kind = CLI_COUNT, .into = &given.o.repeats, .argument = "N",
		.help = "forward and backward passes per strategy, of which the median is reported "
			"(default 1)", .low = 1, .high = 99},
	{.name = "journal", .kind = CLI_TEXT, .into = &given.o.sweep.journal, .argument = "DIR",
		.help = "folder of a journal from which a killed run continues; requires one "
			"--strategy (default: none)"},
	{.name = "journal-every", .kind = CLI_TIME, .into = &given.o.sweep.journal_seconds,
		.argument = "TIME", .help = "time between commits of the journal (default 30s)",
		.low = 1e-9, .high = 1e9},
	{.name = "no-reference", .kind = CLI_FLAG, .into = &given.o.no_reference,
		.help = "skip the reference that stores everything without a budget"},
	{.name = "reference-memory", .kind = CLI_SIZE, .into = &given.o.reference_memory,
		.argument = "BYTES",
		.help = "limit the reference that stores everything to the first steps that fit in "
			"this memory (default: none)",
		.low = 1},
	{.name = "trace", .kind = CLI_TEXT, .into = &given.o.sweep.trace, .argument = "FILE",
		.help = "write a trace of the last pass of each strategy, as trace events for "
			"Perfetto"},
	{.name = "save", .kind = CLI_TEXT, .into = &given.save, .argument = "FILE",
		.help = "write the plan that was run; requires one --strategy"},
	{.name = "verbose", .letter = 'v', .kind = CLI_FLAG, .into = &given.verbose,
		.help = "print the parts of the time of each strategy on a second line"},
	CLI_JSON_OPTION(given.json),
{0},
};
/* clang-format on */

static const struct cli_command command = {.name = "compare",
	.arguments = "DATA",
	.about = "runs one batch of real data with every strategy",
	.examples = examples,
	.options = options,
	.least = 1,
	.most = 1};

static int on_progress(void *user, const char *strategy, int done, int total)
{
	struct cli_progress *bar = user;
	if (strategy && bar->terminal)
		cli_progress_show(bar, done, total, strategy);
	else if (!strategy)
		cli_progress_clear(bar);
	return cli_interrupted();
}

static void on_line(void *user, const char *line)
{
	char room[NEAP__PLAIN_TEXT];

	if (cli_hides(line))
		return;
	cli_progress_clear(user);
	fprintf(stderr, "%s\n", neap__plain_text(room, line));
}

static void json_direction(struct neap__json *to, const char *name, double first, double last)
{
	neap__json_begin(to, name, '{');
	neap__json_number(to, "first_tenth", first);
	neap__json_number(to, "last_tenth", last);
	neap__json_number(to, "ratio", last / first);
	neap__json_end(to, '}');
}

/* Seconds a step along the sweep. */
static void json_pace(struct neap__json *to, const struct neap_pace *pace)
{
	if (pace->range == 0) {
		neap__json_null(to, "pieces");
		return;
	}
	neap__json_begin(to, "pieces", '{');
	neap__json_int(to, "steps", pace->range);
	json_direction(to, "forward", pace->forward_first, pace->forward_last);
	json_direction(to, "backward", pace->backward_first, pace->backward_last);
	neap__json_end(to, '}');
}

/* The parts of the seconds of a run: compute + copies + stall_measured is nearly all. */
static void json_times(struct neap__json *to, const struct neap_sweep_stats *stats)
{
	neap__json_number(to, "stall_measured", stats->stall);
	neap__json_begin(to, "stalls", '{');
	for (int i = 0; i < NEAP_STALLS; i++)
		neap__json_number(to, neap_stall_name(i), stats->stalls[i]);
	neap__json_end(to, '}');
	neap__json_number(to, "compute", stats->compute);
	neap__json_number(to, "compute_advance", stats->advance);
	neap__json_number(to, "compute_record", stats->record);
	neap__json_number(to, "compute_backward", stats->backward);
	neap__json_number(to, "slowdown", stats->slowdown);
	neap__json_number(to, "copies", stats->copies);
}

/* The keys of a run that was not possible, without values. */
static void json_missing(struct neap__json *to)
{
	static const char *const missing[] = {"peak_measured", "seconds", "stall_measured",
		"stalls", "compute", "slowdown", "copies", "resident_growth", "recoveries", "late",
		"overflows", "grad_hash"};

	for (size_t i = 0; i < sizeof missing / sizeof missing[0]; i++)
		neap__json_null(to, missing[i]);
}

/* What a run counted while it executed its plan. */
static void json_counts(struct neap__json *to, const struct neap_sweep_stats *stats)
{
	neap__json_number(to, "foreseen", stats->foreseen);
	neap__json_int(to, "replans", stats->replans);
	neap__json_bytes(to, "resident_growth", stats->resident_growth);
	neap__json_int(to, "recoveries", stats->recoveries);
	neap__json_int(to, "late", stats->late);
	neap__json_int(to, "overflows", stats->overflows);
	neap__json_int(to, "recomputed", stats->recomputed);
	if (stats->commits || stats->spared) {
		neap__json_int(to, "commits", stats->commits);
		neap__json_int(to, "spared", stats->spared);
		neap__json_number(to, "journal", stats->journal);
	}
}

static void json_run(struct neap__json *to, const struct neap_compare_result *result,
	const struct neap_compare_run *run)
{
	char hash[24];

	neap__json_begin(to, NULL, '{');
	/* A run's measured overhead replaces the plan's prediction. */
	cli_json_plan(to, &result->problem, &run->plan, !run->ran);
	if (run->reference)
		neap__json_text(to, "role", "reference");
	if (!run->ran) {
		json_missing(to);
		neap__json_end(to, '}');
		return;
	}
	neap__json_bytes(to, "peak_measured", run->stats.peak_measured);
	neap__json_number(to, "seconds", run->seconds);
	neap__json_number(to, "spread", run->spread);
	neap__json_number(to, "predicted", run->stats.predicted);
	neap__json_number(to, "pace", run->slowed);
	neap__json_number(to, "expected", run->expected);
	neap__json_number(to, "ratio", run->ratio);
	json_times(to, &run->stats);
	json_counts(to, &run->stats);
	neap__json_number(to, "loss", run->loss);
	neap__json_int(to, "steps", run->steps);
	neap__json_number(
		to, "seconds_per_step", run->steps > 0 ? run->seconds / (double)run->steps : NAN);
	neap__json_number(to, "input_wait", run->input_wait);
	json_pace(to, &run->pace);
	neap__json_number(to, "overhead", run->overhead);
	snprintf(hash, sizeof hash, "%016" PRIx64, run->grad_hash);
	neap__json_text(to, "grad_hash", hash);
	neap__json_end(to, '}');
}

/* The slow tiers as the plans assume them. */
static void json_tiers(struct neap__json *to, const struct neap_compare_result *result)
{
	const struct neap_problem *p = &result->problem;
	neap__json_begin(to, "tiers", '[');
	for (int i = 0; i < p->ntiers; i++) {
		neap__json_begin(to, NULL, '{');
		neap__json_text(to, "name", p->tiers[i].name);
		neap__json_text(to, "about", result->tier_about[i]);
		neap__json_number(to, "write", p->tiers[i].write_rate);
		neap__json_number(to, "read", p->tiers[i].read_rate);
		neap__json_number(to, "latency", p->tiers[i].write_fixed);
		neap__json_number(to, "cpu", p->tiers[i].cpu);
		neap__json_number(to, "cpu_fixed", p->tiers[i].cpu_fixed);
		neap__json_end(to, '}');
	}
	neap__json_end(to, ']');
	neap__json_begin(to, "tiers_lost", '[');
	for (int i = 0; i < result->tiers_lost; i++)
		neap__json_text(to, NULL, result->tier_lost[i]);
	neap__json_end(to, ']');
}

static void json_chain(struct neap__json *to, const struct neap_chain *c)
{
	neap__json_begin(to, "chain", '{');
	neap__json_bytes(to, "state", c->state);
	neap__json_bytes(to, "adjoint", c->adjoint);
	neap__json_bytes(to, "tape", c->tape);
	neap__json_bytes(to, "tape_mean", c->tape_mean ? c->tape_mean : c->tape);
	neap__json_bytes(to, "tape_max", c->tape_max);
	neap__json_number(to, "advance", c->advance);
	neap__json_number(to, "record", c->record);
	if (c->log) {
		neap__json_bytes(to, "log", c->log);
		neap__json_number(to, "replay", c->replay);
	}
	neap__json_number(to, "backward", c->backward);
	neap__json_number(to, "call", c->call);
	neap__json_end(to, '}');
}

static int print_json(
	const struct neap_compare_options *o, const struct neap_compare_result *result)
{
	struct neap__json report = {0}, *to = &report;
	struct neap_machine machine = {.size = sizeof machine};

	neap_machine_describe(&machine);
	neap__json_begin(to, NULL, '{');
	neap__json_text(to, "isa", machine.isa);
	neap__json_text(to, "data", o->data);
	neap__json_int(to, "batch", result->batch);
	neap__json_int(to, "steps", result->steps);
	neap__json_bytes(to, "budget", result->memory);
	json_chain(to, &result->problem.chain);
	json_tiers(to, result);
	neap__json_bytes(to, "data_bytes", result->data_bytes);
	neap__json_bytes(to, "input_bytes", result->data_bytes);
	neap__json_int(to, "window_steps", result->window_steps);
	neap__json_number(to, "input_wait", result->input_wait);
	cli_json_process(to, &result->process);
	cli_json_device(to, &result->device);
	neap__json_bytes(to, "weights_bytes", result->weights_bytes);
	neap__json_bytes(to, "grads_bytes", result->grads_bytes);
	neap__json_number(to, "spikes", result->spikes);
	neap__json_number(to, "support", result->support);
	neap__json_begin(to, "runs", '[');
	for (int i = 0; i < result->runs_count; i++)
		json_run(to, result, &result->runs[i]);
	neap__json_end(to, ']');
	neap__json_end(to, '}');
	return cli_json_print(to, "compare");
}

/* The parts of the seconds of a run, planned and measured. */
static void print_times(const struct neap_compare_run *run)
{
	const struct neap_sweep_stats *s = &run->stats;
	char a[24], b[24];
	printf("              computing %s, %s%s more than planned", neap__show_time(a, s->compute),
		s->slowdown < 0 ? "-" : "", neap__show_time(b, fabs(s->slowdown)));
	printf(" (%s to transfers); copies %s; waits", neap__show_time(a, s->predicted_lost),
		neap__show_time(b, s->copies));
	for (int i = 0; i < NEAP_STALLS; i++)
		printf("%s %s %s", i ? "," : "", neap_stall_name(i),
			neap__show_time(a, s->stalls[i]));
	printf(" (planned %s)", neap__show_time(a, s->predicted_stall));
	if (s->recoveries || s->late)
		printf("; %" PRId64 " recoveries, %" PRId64 " transfers late", s->recoveries,
			s->late);
	printf("\n");
}

/* What to do about a candidate that did not run, or why it never can; "": `what` has it all. */
static const char *hint(const char *what)
{
	return strncmp(what, "needs a slow tier", 17) == 0 ? ": add --slow DIR"
	       : strncmp(what, "needs a log", 11) == 0
		       ? " of spikes, which only plain layers of spiking cells have, without "
			 "--products tiles"
		       : "";
}

static void print_run(const struct neap_compare_run *run, int64_t steps)
{
	char predicted[24], planned[24], measured[24], slow[24], time[24], stall[24], params[160],
		over[24] = "-";
	const char *name = run->reference ? "reference" : run->plan.strategy;
	char cut[40] = "";

	if (!run->ran) {
		printf("%-13s %s%s\n", name, run->what, hint(run->what));
		return;
	}
	if (run->overhead < -0.0005)
		snprintf(over, sizeof over, "faster");
	else if (isfinite(run->overhead))
		snprintf(over, sizeof over, "%.1f%%", fabs(100 * run->overhead));
	neap__show_size(slow, run->plan.slow_bytes);
	cli_show_params(params, &run->plan.params);
	if (run->steps < steps)
		snprintf(cut, sizeof cut, " (%" PRId64 " steps)", run->steps);
	printf("%-13s %10s %10s %10s %10s %10s %9s %9s  %016" PRIx64 "  %s%s%s%s\n", name,
		neap__show_size(planned, run->plan.arena_bytes),
		neap__show_size(measured, run->stats.peak_measured),
		run->plan.slow_bytes ? slow : "-", neap__show_time(predicted, run->expected),
		neap__show_time(time, run->seconds), over, neap__show_time(stall, run->stats.stall),
		run->grad_hash,
		strcmp(run->plan.strategy, run->plan.chosen) ? run->plan.chosen : "",
		strcmp(run->plan.strategy, run->plan.chosen) ? " " : "", params, cut);
}

/* What "faster" in the table means, where a row has it. */
static void explain_faster(const struct neap_compare_result *result)
{
	const struct neap_compare_run *reference = NULL, *fastest = NULL;

	for (int i = 0; i < result->runs_count; i++) {
		const struct neap_compare_run *run = &result->runs[i];
		if (run->reference && run->ran)
			reference = run;
		if (run->overhead < -0.0005 && (!fastest || run->overhead < fastest->overhead))
			fastest = run;
	}
	if (!reference || !fastest)
		return;
	printf("faster: less time than the reference, at most %.0f%% less; ",
		-100 * fastest->overhead);
	if (reference->spread > 0)
		printf("the passes of the reference differ by %.0f%%\n", 100 * reference->spread);
	else
		printf("one pass is not a precise measurement; --repeats 5 reports the median of "
		       "5\n");
}

static int print_table(const struct neap_compare_result *result)
{
	const struct neap_chain *c = &result->problem.chain;
	const struct neap_tier_spec *tiers = result->problem.tiers;
	char state[24], tape[24], full[24], memory[24], f[24], r[24], b[24], inputs[24];
	char about[NEAP__PLAIN_TEXT];

	printf("%d samples, %" PRId64 " steps; state %s, tape %s per step", result->batch,
		result->steps, neap__show_size(state, c->state), neap__show_size(tape, c->tape));
	if (c->tape_max > c->tape) /* 0: all tapes have the same size */
		printf(" (at most %s)", neap__show_size(full, c->tape_max));
	printf("; budget %s\n", neap__show_size(memory, result->memory));
	if (result->window_steps)
		printf("inputs in windows of at most %" PRId64 " steps, %s in all\n",
			result->window_steps, neap__show_size(inputs, result->data_bytes));
	printf("per step: advance %s, record %s, backward %s; per call %s",
		neap__show_time(f, c->advance), neap__show_time(r, c->record),
		neap__show_time(b, c->backward), neap__show_time(inputs, c->call));
	if (!isnan(result->spikes))
		printf("; spikes %.2f%%, support %.2f%%", 100 * result->spikes,
			100 * result->support);
	printf("\n");
	for (int i = 0; i < result->problem.ntiers; i++)
		printf("%s: write %.0f MB/s, read %.0f MB/s, %s of computing per GiB\n",
			neap__plain_text(about, result->tier_about[i]), tiers[i].write_rate / 1e6,
			tiers[i].read_rate / 1e6, neap__show_time(f, tiers[i].cpu * 1073741824));
	if (c->log)
		printf("log of the spikes: %s per step, %s to rebuild the tape of a step\n",
			neap__show_size(full, c->log), neap__show_time(r, c->replay));
	printf("\n");
	printf("%-13s %10s %10s %10s %10s %10s %9s %9s  %-16s  %s\n", "strategy", "arena", "peak",
		"slow", "predicted", "time", "overhead", "stall", "gradients", "parameters");
	for (int i = 0; i < result->runs_count; i++) {
		print_run(&result->runs[i], result->steps);
		if (given.verbose && result->runs[i].ran)
			print_times(&result->runs[i]);
	}
	explain_faster(result);
	cli_print_device(&result->device);
	cli_print_process(&result->process, 1);
	return cli_finish("compare");
}

/* 1: all runs over the whole batch have the same bits in their gradients, as they must. */
static int same_gradients(const struct neap_compare_result *result)
{
	const struct neap_compare_run *first = NULL;
	for (int i = 0; i < result->runs_count; i++) {
		const struct neap_compare_run *run = &result->runs[i];
		if (!run->ran || run->steps != result->steps)
			continue;
		if (!first)
			first = run;
		if (run->grad_hash != first->grad_hash)
			return 0;
	}
	return 1;
}

/* What follows from the results of a comparison that was reported. CLI_DONE or one line. */
static int finish(const struct neap_compare_result *result)
{
	const struct neap_compare_run *last = &result->runs[result->runs_count - 1];

	if (!same_gradients(result)) {
		cli_usage("compare", "two strategies computed different gradients. This is a bug "
				     "in neap: please report it with this command line");
		return CLI_FAILED;
	}
	if (!given.save)
		return CLI_DONE;
	return last->ran ? cli_plan_save(&last->problem, &last->ended, 0, given.save, "compare")
			 : cli_usage("compare", "--save: %s", last->what);
}

static int run(const struct neap_compare_options *o, struct cli_progress *bar)
{
	struct neap_compare_result result = {.size = sizeof result};

	cli_progress_start(bar, "compare", "runs");
	cli_catch_signals();
	int rc = neap_compare(&result, o);
	cli_progress_clear(bar);
	if (rc < 0)
		return cli_fail("compare", rc);
	for (int i = 0; i < result.tiers_lost; i++)
		cli_usage("compare", "%s", result.tier_lost[i]);
	int code = given.json ? print_json(o, &result) : print_table(&result);
	if (o->sweep.trace && result.trace_dropped && !given.json)
		fprintf(stderr, "neap compare: %s: %" PRId64 " older events were dropped\n",
			o->sweep.trace, result.trace_dropped);
	if (code == CLI_DONE)
		code = finish(&result);
	neap_compare_result_free(&result);
	return code;
}

/* Defaults that compare shares with train. */
static void take_defaults(struct cli_progress *bar)
{
	const struct neap_train_options defaults = NEAP_TRAIN_OPTIONS_INIT;
	struct neap_compare_options *o = &given.o;

	o->net = defaults.net;
	o->loss = defaults.loss;
	o->rates = defaults.rates;
	o->batch = defaults.batch;
	o->sweep = defaults.sweep;
	o->seed = 1;
	o->progress = on_progress;
	o->say = on_line;
	o->user = bar;
	cli_net_choices_from(&given.choices, &o->net);
}

int cli_compare(int argc, char **argv)
{
	struct cli_progress bar = {0};
	struct neap_compare_options *o = &given.o;
	const char *names[CLI_LIST_MAX + 1] = {0}, *data[1];
	struct neap_problem costs = {.size = sizeof costs};

	take_defaults(&bar);
	int parsed = cli_parse(&command, argc, argv, data);

	if (parsed < 0)
		return CLI_ENDED(parsed);
	int code = cli_refuse_run(data[0], "compare");
	if (code == CLI_DONE)
		code = cli_costs_read(&o->sweep, &o->net, &costs, given.chain, "compare");
	if (code != CLI_DONE)
		return code;
	if (given.save && given.strategies.count != 1)
		return cli_usage("compare", "--save requires exactly one --strategy");
	o->data = data[0];
	o->seed = o->net.seed = (uint64_t)given.seed;
	code = cli_net_choices_into(&o->net, &given.choices, "compare");
	if (code != CLI_DONE)
		return code;
	for (int i = 0; i < given.strategies.count; i++)
		names[i] = given.strategies.text[i];
	if (given.strategies.count)
		o->strategies = names;
	return run(o, &bar);
}
