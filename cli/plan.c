/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c: `neap plan`: a chain given by numbers, planned by one strategy or all. */
#include "question.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct request {
	struct cli_question q;
	const char *draw;
	int json, actions;
};

static const char examples[] =
	"  neap plan --steps 100000 --state 64K --tape 256K --memory 64M\n"
	"  neap plan --steps 100000 --state 64K --tape 256K --memory 64M --advance 1ms \\\n"
	"      --backward 2ms --tier disk:write=2G,read=1G,latency=100us --json\n"
	"  neap plan --steps 1000 --slots 10 --strategy revolve --json\n"
	"  neap plan --chain layers.json --memory 2G --strategy chain\n"
	"  neap plan --steps 32 --slots 4 --strategy revolve --draw revolve.svg\n";

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
	int rc = neap_schedule_open(&schedule, &r->q.problem, plan);

	if (rc < 0)
		return cli_fail("plan", rc);
	snprintf(title, sizeof title, "%s, %" PRId64 " steps", plan->chosen,
		r->q.problem.chain.steps);
	int n = snprintf(beside, sizeof beside, "%s.part", r->draw);
	FILE *file = n > 0 && (size_t)n < sizeof beside ? fopen(beside, "we") : NULL;
	if (!file) {
		neap_schedule_close(schedule);
		return cli_usage("plan", "--draw: cannot write '%s': %s", r->draw, strerror(errno));
	}
	rc = neap_draw(&r->q.problem, schedule, title, 0, write_text, file);
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
	int classic = r->q.given.slots;
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
	const struct neap_chain *c = &r->q.problem.chain;
	cJSON *o = cJSON_CreateObject(), *chain = cJSON_AddObjectToObject(o, "chain");

	cli_json_int(chain, "steps", c->steps);
	if (c->join)
		cli_json_int(chain, "join", c->join);
	if (r->q.file)
		cli_json_text(chain, "file", r->q.file);
	if (!c->stages) {
		cli_json_bytes(chain, "state", c->state);
		cli_json_bytes(chain, "tape", c->tape);
		cli_json_bytes(chain, "adjoint", c->adjoint);
		cli_json_number(chain, "advance", c->advance);
		cli_json_number(chain, "record", c->record);
		cli_json_number(chain, "backward", c->backward);
	}
	cli_json_bytes(o, "budget", r->q.problem.memory);
	cJSON *list = cJSON_AddArrayToObject(o, "plans");
	for (int i = 0; i < count; i++)
		cJSON_AddItemToArray(list, cli_json_plan(&r->q.problem, &plans[i], seconds[i]));
	return cli_json_print(o);
}

enum { PLANS_MAX = 32 };

static int make_plans(struct request *r, struct neap_plan *plans, double *seconds, int *count)
{
	*count = 0;
	for (int i = 0; neap_strategy_name(i) && *count < PLANS_MAX; i++) {
		const char *name = neap_strategy_name(i);
		if (r->q.strategy && strcmp(r->q.strategy, name) != 0)
			continue;
		double start = neap_clock();
		int rc = neap_plan_make(&plans[*count], &r->q.problem, name, &r->q.params);
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
	return cli_usage("plan", "--strategy: '%s' is none of %s", r->q.strategy, all);
}

static int answer(struct request *r)
{
	struct neap_plan plans[PLANS_MAX];
	double seconds[PLANS_MAX];
	int count, rc = neap_problem_check(&r->q.problem);

	if (rc < 0)
		return cli_fail("plan", rc);
	if ((r->draw || r->actions) && !r->q.strategy)
		r->q.strategy = "auto";
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
			return print_actions(&r->q.problem, &plans[0]);
	}
	return r->json ? print_json(r, plans, seconds, count) : print_table(r, plans, count);
}

int cli_plan(int argc, char **argv)
{
	struct request r = {.q = CLI_QUESTION_INIT};
	const struct cli_option options[] = {
		CLI_QUESTION_OPTIONS(r.q),
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
	int rc = cli_question_complete(&r.q);
	if (rc == CLI_DONE)
		rc = answer(&r);
	cli_question_free(&r.q);
	return rc;
}
