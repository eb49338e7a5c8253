/* SPDX-License-Identifier: Apache-2.0 */
/* problem_options.c: the options that tell `neap plan` its problem, turned into one. */
#include "problem_options.h"

#include <string.h>

/* --tier, after those of the chain file. */
static int add_tiers(struct cli_question *q, int classic)
{
	struct neap_problem *p = &q->problem;
	if (p->ntiers + q->tiers.count > NEAP_TIERS_MAX)
		return cli_usage("plan", "--tier: at most %d tiers", NEAP_TIERS_MAX);
	for (int i = 0; i < q->tiers.count; i++) {
		int rc = cli_parse_tier(&p->tiers[p->ntiers++], q->tiers.text[i], classic, "plan");
		if (rc != CLI_DONE)
			return rc;
	}
	return CLI_DONE;
}

/* Everything but the budget and further tiers is in the file. */
static int complete_from_file(struct cli_question *q)
{
	struct neap_chain *c = &q->problem.chain;
	if (q->given.steps || q->given.slots || q->given.state || q->given.tape ||
		q->given.adjoint || q->given.record || q->given.advance || q->given.backward ||
		q->given.log || q->given.replay)
		return cli_usage("plan", "--chain: the file has the sizes and costs, no other "
					 "option than --memory goes with it");
	if (!q->given.memory)
		return cli_usage("plan", "--memory is missing");
	*c = (struct neap_chain){0};
	int rc = cli_chain_read(&q->chain, &q->problem, q->file, "plan");
	return rc == CLI_DONE ? add_tiers(q, 0) : rc;
}

/* T, or A,B. */
static int set_steps(struct cli_question *q)
{
	struct neap_chain *c = &q->problem.chain;
	size_t comma = strcspn(q->steps, ",");
	char first[32] = "";
	if (comma < sizeof first)
		memcpy(first, q->steps, comma);
	if (cli_parse_int(&c->steps, first) < 0 ||
		(q->steps[comma] && cli_parse_int(&c->join, q->steps + comma + 1) < 0))
		return cli_usage(
			"plan", "--steps: '%s' is not a whole number (or two: A,B)", q->steps);
	if (c->steps < 0 || c->steps > 1000000000000000)
		return cli_usage("plan", "--steps: %s is not between 0 and 1e+15", q->steps);
	if (q->steps[comma] && (c->join < 1 || c->steps < 1 || !q->given.slots))
		return cli_usage("plan", "--steps: two chains have 1 step at least each and go "
					 "with --slots");
	return CLI_DONE;
}

/* Turns what was said into a problem; CLI_DONE or one line. */
int cli_question_complete(struct cli_question *q)
{
	int rc = q->file ? complete_from_file(q) : q->given.steps ? set_steps(q) : CLI_DONE;
	if (q->file || rc != CLI_DONE)
		return rc;
	struct neap_chain *chain = &q->problem.chain;
	int classic = q->given.slots;

	if (!q->given.steps)
		return cli_usage("plan", "--steps is missing; 'neap plan --help' has examples");
	if (classic && (q->given.memory || q->given.state || q->given.tape || q->given.adjoint ||
			       q->given.log))
		return cli_usage("plan",
			"--slots counts checkpoints: --memory, --state, --tape, --adjoint and "
			"--log do not go with it");
	if (!classic && !(q->given.memory && q->given.state && q->given.tape))
		return cli_usage("plan", "--state, --tape and --memory are needed (or --slots)");
	if (classic) {
		chain->flags |= NEAP_CHAIN_CLASSIC;
		chain->state = 1;
		q->problem.memory = (uint64_t)q->slots;
		if (neap_strategy_traits(q->strategy) & NEAP_STRATEGY_TAPE_SLOTS)
			chain->flags |= NEAP_CHAIN_MIXED;
	} else {
		chain->live = chain->state;
		if (!q->given.adjoint)
			chain->adjoint = chain->state;
	}
	if (!q->given.record)
		chain->record = chain->advance;
	if (q->given.replay && !q->given.log)
		return cli_usage("plan", "--replay: there is nothing to replay without --log");
	if (!q->given.replay)
		chain->replay = q->given.log ? chain->record : 0;
	return add_tiers(q, classic);
}

int cli_question_asked(const struct cli_question *q)
{
	static const struct neap_params none;
	const struct neap_chain *c = &q->problem.chain;
	return q->given.steps || q->given.memory || q->given.slots || q->given.state ||
	       q->given.tape || q->given.adjoint || q->given.record || q->given.advance ||
	       q->given.backward || q->given.log || q->given.replay || q->strategy || q->file ||
	       q->tiers.count > 0 || c->tape_max || c->tape_mean || c->slot_write > 0 ||
	       c->slot_read > 0 || c->call > 0 || memcmp(&q->params, &none, sizeof none) != 0;
}

void cli_question_free(struct cli_question *q)
{
	cli_chain_free(&q->chain);
}
