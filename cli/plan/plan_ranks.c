/* SPDX-License-Identifier: Apache-2.0 */
/* plan_ranks.c: what a plan takes on several ranks, for `neap plan --ranks`. */
#include "plan_command.h"
#include "json_report.h"

#include <inttypes.h>
#include <string.h>

int cli_plan_ranks_ask(struct cli_ranks *r)
{
	if (!r->ranks.ranks) {
		if (r->given)
			return cli_usage("plan",
				"--alpha, --beta, --parameters, --units, --tensors, "
				"--batch, --group and --threads require --ranks P");
		return CLI_DONE;
	}
	if (neap__units_rate(&r->ranks.rate, r->beta) < 0)
		return cli_usage("plan", "--beta: '%s' is not a rate, such as 12.5G/s", r->beta);
	return CLI_DONE;
}

static void print_text(const struct neap_ranks *q, const struct neap_ranks_cost *c)
{
	char computed[24], exchanged[24], bytes[24];

	printf("ranks         %d, %s computed and %s exchanged %s: efficiency %.1f%%\n", q->ranks,
		neap__show_time(computed, c->computed), neap__show_time(exchanged, c->exchanged),
		q->parameters ? "per batch" : "per forward and backward pass", 100 * c->efficiency);
	printf("messages      %" PRId64 " that a rank waits for, one after the other", c->messages);
	if (q->parameters)
		printf("; each rank sends %s", neap__show_size(bytes, c->sent));
	printf("\n");
	if (c->idle)
		printf("idle          %d ranks have no samples, because a batch of %d has too few "
		       "groups\n",
			c->idle, q->batch);
}

static int predict(struct neap_ranks_cost *cost, const struct neap_problem *problem,
	const struct neap_plan *plan, const struct cli_ranks *r)
{
	int rc = neap_ranks_predict(cost, problem, plan, &r->ranks);
	return rc < 0 ? cli_fail("plan", rc) : CLI_DONE;
}

int cli_plan_ranks_print(
	const struct neap_problem *problem, const struct neap_plan *plan, const struct cli_ranks *r)
{
	struct neap_ranks_cost cost = {.size = sizeof cost};
	int rc = plan->feasible ? predict(&cost, problem, plan, r) : CLI_DONE;

	if (rc == CLI_DONE && plan->feasible)
		print_text(&r->ranks, &cost);
	return rc == CLI_DONE ? cli_finish("plan") : rc;
}

int cli_plan_ranks_json(struct neap__json *to, const struct neap_problem *problem,
	const struct neap_plan *plan, const struct cli_ranks *r)
{
	struct neap_ranks_cost cost = {.size = sizeof cost};

	if (!r->ranks.ranks || !plan->feasible)
		return CLI_DONE;
	int rc = predict(&cost, problem, plan, r);
	if (rc != CLI_DONE)
		return rc;
	neap__json_begin(to, "ranks", '{');
	neap__json_int(to, "ranks", r->ranks.ranks);
	neap__json_number(to, "computed", cost.computed);
	neap__json_number(to, "exchanged", cost.exchanged);
	neap__json_number(to, "efficiency", cost.efficiency);
	neap__json_int(to, "messages", cost.messages);
	neap__json_bytes(to, "sent", cost.sent);
	neap__json_int(to, "idle", cost.idle);
	neap__json_end(to, '}');
	return CLI_DONE;
}
