/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c: `neap plan`: plans a chain by one strategy or by all, or checks a plan from a file. */
#include "plan_command.h"
#include "json_report.h"
#include "problem_options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct plan_request {
	struct cli_question q;
	const char *draw, *save, *load;
	int json, actions;
	struct cli_ranks ranks;
};

static const char examples[] =
	"  neap plan --steps 100000 --state 64K --tape 256K --memory 64M \\\n"
	"      --advance 1ms --backward 2ms \\\n"
	"      --tier disk:write=2G,read=1G,latency=100us --json\n"
	"  neap plan --steps 1000 --slots 10 --strategy revolve --json\n"
	"  neap plan --chain layers.json --memory 2G --strategy chain --save layers.plan\n"
	"  neap plan --load layers.plan --actions\n"
	"  neap plan --steps 32 --slots 4 --strategy revolve --draw revolve.svg\n"
	"  neap plan --steps 1000 --state 64K --tape 16K --memory 64M --advance 40us \\\n"
	"      --backward 120us --ranks 16 --parameters 630000 --batch 4096 --group 16\n";

static void json_chain(struct neap__json *to, const struct neap_chain *c, const char *file)
{
	neap__json_begin(to, "chain", '{');
	neap__json_int(to, "steps", c->steps);
	if (c->join)
		neap__json_int(to, "join", c->join);
	if (file)
		neap__json_text(to, "file", file);
	if (!c->stages) {
		neap__json_bytes(to, "state", c->state);
		neap__json_bytes(to, "tape", c->tape);
		if (c->tape_mean)
			neap__json_bytes(to, "tape_mean", c->tape_mean);
		neap__json_bytes(to, "adjoint", c->adjoint);
		neap__json_number(to, "advance", c->advance);
		neap__json_number(to, "record", c->record);
		neap__json_number(to, "backward", c->backward);
		if (c->log) {
			neap__json_bytes(to, "log", c->log);
			neap__json_number(to, "replay", c->replay);
		}
		if (c->call > 0)
			neap__json_number(to, "call", c->call);
		if (c->last > 0)
			neap__json_number(to, "last", c->last);
	}
	neap__json_end(to, '}');
}

static int print_json(const struct cli_plans *plans, const struct cli_ranks *ranks)
{
	struct neap__json report = {0}, *to = &report;
	int rc = CLI_DONE;

	neap__json_begin(to, NULL, '{');
	json_chain(to, &plans->problem->chain, plans->file);
	neap__json_bytes(to, "budget", plans->problem->memory);
	neap__json_begin(to, "plans", '[');
	for (int i = 0; i < plans->count && rc == CLI_DONE; i++) {
		neap__json_begin(to, NULL, '{');
		cli_json_plan(to, plans->problem, &plans->plan[i], 1);
		if (plans->seconds[i] >= 0)
			neap__json_number(to, "plan_seconds", plans->seconds[i]);
		rc = cli_plan_ranks_json(to, plans->problem, &plans->plan[i], ranks);
		neap__json_end(to, '}');
	}
	neap__json_end(to, ']');
	neap__json_end(to, '}');
	if (rc != CLI_DONE) {
		neap__json_free(to);
		return rc;
	}
	return cli_json_print(to, "plan");
}

static int make_plans(const struct cli_question *q, struct cli_plans *plans)
{
	for (int i = 0; neap_strategy_name(i) && plans->count < CLI_PLANS_MAX; i++) {
		const char *name = neap_strategy_name(i);
		if (q->strategy && strcmp(q->strategy, name) != 0)
			continue;
		struct neap_plan *plan = &plans->plan[plans->count];
		plan->size = sizeof *plan;
		double start = neap_clock();
		int rc = plans->count == 0 ? neap_plan_make(plan, &q->problem, name, &q->params)
					   : neap_plan_make_bounded(plan, &q->problem, name,
						     &q->params, plans->plan[0].bound);
		if (rc < 0)
			return cli_fail("plan", rc);
		plans->seconds[plans->count++] = neap_clock() - start;
	}
	if (plans->count > 0)
		return CLI_DONE;
	char all[512];
	return cli_usage("plan", "--strategy: '%s' is not one of %s", q->strategy,
		cli_show_names(all, sizeof all, neap_strategy_name));
}

/* Draws and saves the plan, which --draw, --save and --actions ask for. */
static int use_plan(const struct plan_request *r, const struct cli_plans *plans)
{
	const struct neap_plan *plan = &plans->plan[0];
	uint32_t flags = r->actions ? NEAP_WRITE_ACTIONS : 0;
	int rc = CLI_DONE;
	if (!plan->feasible)
		return cli_usage("plan", "%s is infeasible: %s%s", plan->strategy, plan->why,
			cli_why_hint(plan->why));
	if (r->draw)
		rc = cli_plan_draw(plans->problem, plan, r->draw);
	if (rc == CLI_DONE && r->save)
		rc = cli_plan_save(plans->problem, plan, flags, r->save, "plan");
	return rc;
}

/* No strategy has a plan: the least budget, if one is known. The report above has the reasons. */
static int no_plan(const struct cli_plans *plans)
{
	const struct neap_problem *p = plans->problem;
	int classic = (p->chain.flags & NEAP_CHAIN_CLASSIC) != 0;
	uint64_t least = 0;
	for (int i = 0; i < plans->count; i++) {
		if (plans->plan[i].feasible)
			return CLI_DONE;
		uint64_t bytes = plans->plan[i].least_bytes;
		least = bytes && (!least || bytes < least) ? bytes : least;
	}
	if (!least)
		return cli_usage("plan", "there is no plan: %s%s", plans->plan[0].why,
			cli_why_hint(plans->plan[0].why));
	return cli_usage("plan",
		"there is no plan for --%s %" PRIu64 ". Pass at least --%s %" PRIu64,
		classic ? "slots" : "memory", p->memory, classic ? "slots" : "memory", least);
}

/* Times of a chain whose steps were not measured mean little by themselves. */
static void note_times(const struct plan_request *r, const struct cli_plans *plans)
{
	const struct cli_question *q = &r->q;
	const struct neap_chain *c = &plans->problem->chain;
	int feasible = 0;

	for (int i = 0; i < plans->count; i++)
		feasible |= plans->plan[i].feasible;
	if (!feasible || r->load || q->file || cli_quiet || q->given[CLI_GIVEN_ADVANCE] ||
		q->given[CLI_GIVEN_BACKWARD] || (c->flags & NEAP_CHAIN_CLASSIC))
		return;
	printf("times: of steps that take %g s forward and %g s backward, the defaults; 'neap "
	       "calibrate DATA' and 'neap compare DATA' measure the times of a network (--advance, "
	       "--backward)\n",
		c->advance, c->backward);
}

static int answer(const struct plan_request *r, const struct cli_plans *plans)
{
	int rc = CLI_DONE;
	int to_output = cli_is_output(r->draw) + cli_is_output(r->save);
	if (to_output && to_output + r->actions + r->json > 1)
		return cli_usage("plan",
			"'-' is given more than once, or with --actions or --json. Only one of "
			"them can go to standard output; name a file for the others");
	if (r->draw || r->save || r->actions)
		rc = use_plan(r, plans);
	if (rc != CLI_DONE || to_output)
		return rc;
	if (r->actions)
		return cli_plan_actions(plans->problem, &plans->plan[0]);
	if (r->json)
		return print_json(plans, &r->ranks);
	if (plans->count > 1) {
		rc = cli_plans_table(plans);
		if (rc == CLI_DONE)
			note_times(r, plans);
		return rc == CLI_DONE ? no_plan(plans) : rc;
	}
	rc = cli_plan_details(plans->problem, &plans->plan[0]);
	if (rc == CLI_DONE)
		note_times(r, plans);
	if (rc == CLI_DONE && r->ranks.ranks.ranks)
		rc = cli_plan_ranks_print(plans->problem, &plans->plan[0], &r->ranks);
	return rc == CLI_DONE ? no_plan(plans) : rc;
}

static int answer_question(struct plan_request *r, struct cli_plans *plans)
{
	int rc = cli_question_complete(&r->q), code;
	if (rc == CLI_DONE && (code = neap_problem_check(&r->q.problem)) < 0)
		rc = cli_fail("plan", code);
	if (rc == CLI_DONE)
		rc = cli_plan_ranks_ask(&r->ranks);
	if ((r->draw || r->actions || r->save || r->ranks.ranks.ranks) && !r->q.strategy)
		r->q.strategy = "auto";
	plans->problem = &r->q.problem;
	plans->file = r->q.file;
	if (rc == CLI_DONE)
		rc = make_plans(&r->q, plans);
	return rc == CLI_DONE ? answer(r, plans) : rc;
}

static int answer_file(const struct plan_request *r, struct cli_plans *plans)
{
	struct neap_saved *saved = NULL;
	double start = neap_clock();
	if (cli_question_asked(&r->q))
		return cli_usage("plan", "--load: the file contains the problem and the strategy. "
					 "Remove the other options of the problem");
	int rc = cli_plan_load(&saved, r->load);
	if (rc != CLI_DONE)
		return rc;
	plans->problem = saved->problem;
	plans->plan[0] = *saved->plan;
	plans->seconds[0] = neap_clock() - start;
	plans->count = 1;
	rc = answer(r, plans);
	neap_saved_free(saved);
	return rc;
}

#define CLI_PARAMS r.q.params

int cli_plan(int argc, char **argv)
{
	struct plan_request r = {.q = CLI_QUESTION_INIT, .ranks = CLI_RANKS_INIT};
	/* clang-format off */
	const struct cli_option options[] = {
		CLI_QUESTION_OPTIONS(r.q),
		CLI_RANKS_OPTIONS(r.ranks),
		CLI_GROUP("Output"),
		{.name = "actions", .kind = CLI_FLAG, .into = &r.actions,
			.help = "print the schedule, one action per line"},
		{.name = "draw", .kind = CLI_TEXT, .into = &r.draw, .argument = "FILE.svg",
			.help = "draw the schedule as SVG"},
		{.name = "save", .kind = CLI_TEXT, .into = &r.save, .argument = "FILE",
			.help = "save the plan as text; with --actions, also the schedule"},
		{.name = "load", .kind = CLI_TEXT, .into = &r.load, .argument = "FILE",
			.help = "load and check a saved plan instead of computing one"},
		CLI_JSON_OPTION(r.json),
		{0},
	};
	/* clang-format on */
	const struct cli_command command = {.name = "plan",
		.arguments = "",
		.about = "plans a forward and backward pass over a chain of steps under a budget",
		.examples = examples,
		.options = options};
	int parsed = cli_parse(&command, argc, argv, NULL);

	if (parsed < 0)
		return CLI_ENDED(parsed);
	struct cli_plans *plans = calloc(1, sizeof *plans);
	int rc;
	if (!plans)
		return cli_fail("plan", -ENOMEM);
	if (r.json && r.actions)
		rc = cli_usage("plan", "--json and --actions cannot be combined; choose one");
	else
		rc = r.load ? answer_file(&r, plans) : answer_question(&r, plans);
	cli_question_free(&r.q);
	free(plans);
	return rc;
}
