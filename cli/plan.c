/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c: `neap plan`: a chain given by numbers, planned by one strategy or all. */
#include "chainfile.h"
#include "cli.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct request {
	struct neap_problem problem;
	struct neap_params params;
	const char *strategy, *draw, *file, *steps;
	struct cli_chain chain;
	struct cli_list tiers;
	int64_t slots;
	int json, actions;
	struct {
		int steps, memory, slots, state, tape, adjoint, record, advance, backward;
	} given;
};

static const char examples[] =
	"  neap plan --steps 100000 --state 64K --tape 256K --memory 64M\n"
	"  neap plan --steps 100000 --state 64K --tape 256K --memory 64M --advance 1ms \\\n"
	"      --backward 2ms --tier disk:write=2G,read=1G,latency=100us --json\n"
	"  neap plan --steps 1000 --slots 10 --strategy revolve --json\n"
	"  neap plan --chain layers.json --memory 2G --strategy chain\n"
	"  neap plan --steps 32 --slots 4 --strategy revolve --draw revolve.svg\n";

/* --tier, after those of the chain file. */
static int add_tiers(struct request *r, int classic)
{
	struct neap_problem *p = &r->problem;
	if (p->ntiers + r->tiers.count > NEAP_TIERS_MAX)
		return cli_usage("plan", "--tier: at most %d tiers", NEAP_TIERS_MAX);
	for (int i = 0; i < r->tiers.count; i++) {
		int rc = cli_parse_tier(&p->tiers[p->ntiers++], r->tiers.text[i], classic, "plan");
		if (rc != CLI_DONE)
			return rc;
	}
	return CLI_DONE;
}

/* Everything but the budget and further tiers is in the file. */
static int complete_from_file(struct request *r)
{
	struct neap_chain *c = &r->problem.chain;
	if (r->given.steps || r->given.slots || r->given.state || r->given.tape ||
		r->given.adjoint || r->given.record || r->given.advance || r->given.backward)
		return cli_usage("plan", "--chain: the file has the sizes and costs, no other "
					 "option than --memory goes with it");
	if (!r->given.memory)
		return cli_usage("plan", "--memory is missing");
	*c = (struct neap_chain){0};
	int rc = cli_chain_read(&r->chain, &r->problem, r->file, "plan");
	return rc == CLI_DONE ? add_tiers(r, 0) : rc;
}

/* T, or A,B. */
static int set_steps(struct request *r)
{
	struct neap_chain *c = &r->problem.chain;
	size_t comma = strcspn(r->steps, ",");
	char first[32] = "";
	if (comma < sizeof first)
		memcpy(first, r->steps, comma);
	if (cli_parse_int(&c->steps, first) < 0 ||
		(r->steps[comma] && cli_parse_int(&c->join, r->steps + comma + 1) < 0))
		return cli_usage(
			"plan", "--steps: '%s' is not a whole number (or two: A,B)", r->steps);
	if (c->steps < 0 || c->steps > 1000000000000000)
		return cli_usage("plan", "--steps: %s is not between 0 and 1e+15", r->steps);
	if (r->steps[comma] && (c->join < 1 || c->steps < 1 || !r->given.slots))
		return cli_usage("plan", "--steps: two chains have 1 step at least each and go "
					 "with --slots");
	return CLI_DONE;
}

/* Turns what was said into a problem; CLI_DONE or one line. */
static int complete(struct request *r)
{
	int rc = r->file ? complete_from_file(r) : r->given.steps ? set_steps(r) : CLI_DONE;
	if (r->file || rc != CLI_DONE)
		return rc;
	struct neap_chain *chain = &r->problem.chain;
	int classic = r->given.slots;

	if (!r->given.steps)
		return cli_usage("plan", "--steps is missing; 'neap plan --help' has examples");
	if (classic && (r->given.memory || r->given.state || r->given.tape || r->given.adjoint))
		return cli_usage("plan",
			"--slots counts checkpoints: --memory, --state, --tape and "
			"--adjoint do not go with it");
	if (!classic && !(r->given.memory && r->given.state && r->given.tape))
		return cli_usage("plan", "--state, --tape and --memory are needed (or --slots)");
	if (classic) {
		chain->flags |= NEAP_CHAIN_CLASSIC;
		chain->state = 1;
		r->problem.memory = (uint64_t)r->slots;
		if (r->strategy && strcmp(r->strategy, "mixed") == 0)
			chain->flags |= NEAP_CHAIN_MIXED;
	} else {
		chain->live = chain->state;
		if (!r->given.adjoint)
			chain->adjoint = chain->state;
	}
	if (!r->given.record)
		chain->record = chain->advance;
	return add_tiers(r, classic);
}

static int print_actions(const struct neap_problem *problem, const struct neap_plan *plan)
{
	struct neap_schedule *schedule;
	struct neap_action a;
	int rc = neap_schedule_open(&schedule, problem, plan);

	if (rc < 0)
		return cli_fail("plan", rc);
	while ((rc = neap_schedule_next(schedule, &a)) > 0) {
		printf("%-8s", neap_action_name(a.kind));
		switch (a.kind) {
		case NEAP_ADVANCE:
		case NEAP_RECORD:
		case NEAP_BACKWARD:
			printf(" %" PRId64 " %" PRId64, a.t0, a.t1);
			break;
		case NEAP_PUT:
		case NEAP_GET:
			printf(" %s at %" PRId64 " tier %d place %" PRId64 " ticket %d",
				a.payload == NEAP_TAPE ? "tape" : "state", a.t0, a.tier, a.place,
				a.ticket);
			if (a.slot == NEAP_LIVE)
				printf(" live");
			else
				printf(" slot %" PRId64, a.slot);
			break;
		case NEAP_WAIT:
			printf(" ticket %d", a.ticket);
			break;
		case NEAP_FORGET:
			printf(" tier %d place %" PRId64, a.tier, a.place);
			break;
		case NEAP_TURN:
			break;
		default:
			printf(" state at %" PRId64 " slot %" PRId64, a.t0, a.slot);
			break;
		}
		putchar('\n');
	}
	neap_schedule_close(schedule);
	return rc < 0 ? cli_fail("plan", rc) : cli_finish("plan");
}

static int write_text(void *file, const char *text, size_t length)
{
	return fwrite(text, 1, length, file) == length ? 0 : -errno;
}

/* Draws beside the name and renames, so that a failure leaves nothing. */
static int draw(const struct request *r, const struct neap_plan *plan)
{
	struct neap_schedule *schedule;
	char beside[4096], title[200];
	int rc = neap_schedule_open(&schedule, &r->problem, plan);

	if (rc < 0)
		return cli_fail("plan", rc);
	snprintf(
		title, sizeof title, "%s, %" PRId64 " steps", plan->chosen, r->problem.chain.steps);
	int n = snprintf(beside, sizeof beside, "%s.part", r->draw);
	FILE *file = n > 0 && (size_t)n < sizeof beside ? fopen(beside, "we") : NULL;
	if (!file) {
		neap_schedule_close(schedule);
		return cli_usage("plan", "--draw: cannot write '%s': %s", r->draw, strerror(errno));
	}
	rc = neap_draw(&r->problem, schedule, title, 0, write_text, file);
	neap_schedule_close(schedule);
	int closed = fclose(file);
	if (rc >= 0 && closed == 0 && rename(beside, r->draw) == 0)
		return CLI_DONE;
	int err = errno;
	remove(beside);
	if (rc == NEAP_EUSAGE)
		return cli_fail("plan", rc);
	return cli_usage("plan", "--draw: cannot write '%s': %s", r->draw, strerror(err));
}

static void print_row(const struct neap_plan *plan, const char *best, int classic)
{
	char peak[24], slow[24], time[24], params[160];
	const char *mark = best && strcmp(best, plan->strategy) == 0 ? "*" : " ";

	if (!plan->feasible) {
		printf("%s %-13s %s\n", mark, plan->strategy, plan->why);
		return;
	}
	if (classic)
		snprintf(peak, sizeof peak, "%" PRIu64, plan->peak_bytes);
	else
		cli_show_size(peak, plan->peak_bytes);
	cli_show_size(slow, plan->slow_bytes);
	printf("%s %-13s %10s %10s %12s %8.2f%% %8.2f%%  %s\n", mark, plan->strategy, peak,
		plan->slow_bytes ? slow : "-", cli_show_time(time, plan->makespan),
		100 * plan->overhead, 100 * plan->gap, cli_show_params(params, &plan->params));
}

static int print_table(const struct request *r, const struct neap_plan *plans, int count)
{
	int classic = r->given.slots;
	const char *best = NULL;

	for (int i = 0; i < count; i++)
		if (strcmp(plans[i].strategy, "auto") == 0 && plans[i].feasible)
			best = plans[i].chosen;
	printf("  %-13s %10s %10s %12s %9s %9s\n", "strategy", classic ? "slots" : "peak", "slow",
		"makespan", "overhead", "to bound");
	for (int i = 0; i < count; i++)
		print_row(&plans[i], best, classic);
	return cli_finish("plan");
}

static int print_json(
	const struct request *r, const struct neap_plan *plans, const double *seconds, int count)
{
	const struct neap_chain *c = &r->problem.chain;
	cJSON *o = cJSON_CreateObject(), *chain = cJSON_AddObjectToObject(o, "chain");

	cli_json_int(chain, "steps", c->steps);
	if (c->join)
		cli_json_int(chain, "join", c->join);
	if (r->file)
		cli_json_text(chain, "file", r->file);
	if (!c->stages) {
		cli_json_bytes(chain, "state", c->state);
		cli_json_bytes(chain, "tape", c->tape);
		cli_json_bytes(chain, "adjoint", c->adjoint);
		cli_json_number(chain, "advance", c->advance);
		cli_json_number(chain, "record", c->record);
		cli_json_number(chain, "backward", c->backward);
	}
	cli_json_bytes(o, "budget", r->problem.memory);
	cJSON *list = cJSON_AddArrayToObject(o, "plans");
	for (int i = 0; i < count; i++)
		cJSON_AddItemToArray(list, cli_json_plan(&r->problem, &plans[i], seconds[i]));
	return cli_json_print(o);
}

enum { PLANS_MAX = 32 };

static int make_plans(struct request *r, struct neap_plan *plans, double *seconds, int *count)
{
	*count = 0;
	for (int i = 0; neap_strategy_name(i) && *count < PLANS_MAX; i++) {
		const char *name = neap_strategy_name(i);
		if (r->strategy && strcmp(r->strategy, name) != 0)
			continue;
		double start = neap_clock();
		int rc = neap_plan_make(&plans[*count], &r->problem, name, &r->params);
		if (rc < 0)
			return cli_fail("plan", rc);
		seconds[(*count)++] = neap_clock() - start;
	}
	if (*count > 0)
		return CLI_DONE;
	char all[256] = "";
	for (int i = 0; neap_strategy_name(i); i++) {
		size_t n = strlen(all);
		snprintf(all + n, sizeof all - n, "%s%s", i ? ", " : "", neap_strategy_name(i));
	}
	return cli_usage("plan", "--strategy: '%s' is none of %s", r->strategy, all);
}

static int answer(struct request *r)
{
	struct neap_plan plans[PLANS_MAX];
	double seconds[PLANS_MAX];
	int count, rc = neap_problem_check(&r->problem);

	if (rc < 0)
		return cli_fail("plan", rc);
	if ((r->draw || r->actions) && !r->strategy)
		r->strategy = "auto";
	if (r->json && r->actions)
		return cli_usage("plan", "--json and --actions do not go together");
	rc = make_plans(r, plans, seconds, &count);
	if (rc != CLI_DONE)
		return rc;
	if (r->draw || r->actions) {
		if (!plans[0].feasible)
			return cli_usage(
				"plan", "%s is infeasible: %s", plans[0].strategy, plans[0].why);
		if (r->draw && (rc = draw(r, &plans[0])) != CLI_DONE)
			return rc;
		if (r->actions)
			return print_actions(&r->problem, &plans[0]);
	}
	return r->json ? print_json(r, plans, seconds, count) : print_table(r, plans, count);
}

int cli_plan(int argc, char **argv)
{
	struct request r = {.problem.chain = {.advance = 1, .backward = 2}};
	struct neap_chain *c = &r.problem.chain;
	const struct cli_option options[] = {
		{"steps", CLI_TEXT, &r.steps, "T",
			"length of the chain; A,B: two chains that meet in one loss", 0, 0, NULL,
			&r.given.steps},
		{"chain", CLI_TEXT, &r.file, "FILE", "chain file (JSON) instead of these numbers",
			0, 0, NULL, NULL},
		{"state", CLI_SIZE, &c->state, "BYTES", "state", 1, 9e18, NULL, &r.given.state},
		{"tape", CLI_SIZE, &c->tape, "BYTES", "tape of a step", 0, 9e18, NULL,
			&r.given.tape},
		{"tape-max", CLI_SIZE, &c->tape_max, "BYTES",
			"largest tape of a step, where they vary", 0, 9e18, NULL, NULL},
		{"adjoint", CLI_SIZE, &c->adjoint, "BYTES", "adjoint (default: the state's)", 0,
			9e18, NULL, &r.given.adjoint},
		{"memory", CLI_SIZE, &r.problem.memory, "BYTES", "budget of fast memory", 0, 9e18,
			NULL, &r.given.memory},
		{"slots", CLI_INT, &r.slots, "C",
			"classic problem: C checkpoints, the initial state's included", 0, 1e15,
			NULL, &r.given.slots},
		{"advance", CLI_TIME, &c->advance, "TIME", "a step forward (default 1s)", 0, 1e12,
			NULL, &r.given.advance},
		{"record", CLI_TIME, &c->record, "TIME",
			"a step forward with tape (default: advance)", 0, 1e12, NULL,
			&r.given.record},
		{"backward", CLI_TIME, &c->backward, "TIME", "a step backward (default 2s)", 0,
			1e12, NULL, &r.given.backward},
		{"slot-write", CLI_TIME, &c->slot_write, "TIME", "copy of a state into a slot", 0,
			1e12, NULL, NULL},
		{"slot-read", CLI_TIME, &c->slot_read, "TIME", "copy of a state out of a slot", 0,
			1e12, NULL, NULL},
		{"tier", CLI_LIST, &r.tiers, "NAME:...",
			"slow tier: capacity=,write=,read=,latency= (or slots=), sync, duplex", 0,
			0, NULL, NULL},
		{"strategy", CLI_TEXT, &r.strategy, "NAME", "one strategy (default: all)", 0, 0,
			NULL, NULL},
		CLI_PARAM_OPTIONS(r.params),
		{"effort", CLI_INT, &r.params.effort, "N",
			"simulations that auto may spend (default 2000)", 1, 1e9, NULL, NULL},
		{"actions", CLI_FLAG, &r.actions, NULL, "print the schedule, an action a line", 0,
			0, NULL, NULL},
		{"draw", CLI_TEXT, &r.draw, "FILE.svg", "draw the schedule", 0, 0, NULL, NULL},
		{"json", CLI_FLAG, &r.json, NULL, "one JSON object on standard output", 0, 0, NULL,
			NULL},
		{0},
	};
	const struct cli_command command = {.name = "plan",
		.arguments = "",
		.about = "plans a chain of steps under a budget",
		.examples = examples,
		.options = options};
	int parsed = cli_parse(&command, argc, argv, NULL);

	if (parsed < 0)
		return CLI_ENDED(parsed);
	int rc = complete(&r);
	if (rc == CLI_DONE)
		rc = answer(&r);
	cli_chain_free(&r.chain);
	return rc;
}
