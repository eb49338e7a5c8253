/* SPDX-License-Identifier: Apache-2.0 */
/* problem_options.c: makes a problem of the options, or of a chain file. */
#include "problem_options.h"

#include <string.h>

/* --tier, after those of the chain file. */
static int add_tiers(struct cli_question *q, int classic)
{
	struct neap_problem *p = &q->problem;
	if (p->ntiers + q->tiers.count > NEAP_TIERS_MAX)
		return cli_usage("plan", "--tier is given more than %d times", NEAP_TIERS_MAX);
	for (int i = 0; i < q->tiers.count; i++) {
		int rc = cli_parse_tier(&p->tiers[p->ntiers++], q->tiers.text[i], classic, "plan");
		if (rc != CLI_DONE)
			return rc;
	}
	return CLI_DONE;
}

/* Is one of the first `count` options there? */
static int any_given(const struct cli_question *q, int count)
{
	for (int i = 0; i < count; i++)
		if (q->given[i])
			return 1;
	return 0;
}

/* Everything but the budget and further tiers is in the file. */
static int complete_from_file(struct cli_question *q)
{
	struct neap_chain *c = &q->problem.chain;
	if (any_given(q, CLI_GIVEN_IN_FILE))
		return cli_usage("plan", "--chain: the file contains all sizes and costs. Remove "
					 "the other options of the problem, except --memory");
	if (!q->given[CLI_GIVEN_MEMORY])
		return cli_usage("plan", "--memory is missing: pass the budget of fast memory, "
					 "such as --memory 64M");
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
	if (neap__units_count(&c->steps, first) < 0 ||
		(q->steps[comma] && neap__units_count(&c->join, q->steps + comma + 1) < 0))
		return cli_usage(
			"plan", "--steps: '%s' is not a whole number or a pair A,B", q->steps);
	if (c->steps < 0 || c->steps > (int64_t)CLI_STEPS_MOST)
		return cli_usage("plan",
			"--steps: %s is out of range; it must be between 0 and 1e+15", q->steps);
	if (q->steps[comma] && (c->join < 1 || c->steps < 1))
		return cli_usage("plan",
			"--steps: '%s': each of the two chains must have at least 1 step",
			q->steps);
	return CLI_DONE;
}

/* CLI_DONE, or one line about sizes that are missing or do not go together. */
static int check_sizes(const struct cli_question *q)
{
	static const struct {
		int given;
		const char *name;
	} needed[] = {{CLI_GIVEN_MEMORY, "--memory"}, {CLI_GIVEN_STATE, "--state"},
		{CLI_GIVEN_TAPE, "--tape"}};
	int classic = q->given[CLI_GIVEN_SLOTS];

	if (!q->given[CLI_GIVEN_STEPS])
		return cli_usage("plan",
			"--steps is missing: pass the number of steps and sizes in bytes, such as "
			"--steps 1000 --state 64K --tape 16K --memory 64M; 'neap calibrate "
			"DATA' measures the sizes of a network");
	if (classic && (q->given[CLI_GIVEN_MEMORY] || q->given[CLI_GIVEN_STATE] ||
			       q->given[CLI_GIVEN_TAPE] || q->given[CLI_GIVEN_ADJOINT] ||
			       q->given[CLI_GIVEN_LOG]))
		return cli_usage("plan", "--slots counts checkpoints, not bytes, and cannot be "
					 "combined with --memory, --state, --tape, --adjoint and "
					 "--log. Pass either --slots or sizes in bytes");
	for (size_t i = 0; !classic && i < sizeof needed / sizeof needed[0]; i++)
		if (!q->given[needed[i].given])
			return cli_usage("plan",
				"%s is missing: pass --memory, --state and --tape, such as "
				"--memory 64M --state 64K --tape 16K, or --slots instead",
				needed[i].name);
	if (q->given[CLI_GIVEN_REPLAY] && !q->given[CLI_GIVEN_LOG])
		return cli_usage("plan", "--replay has no effect without --log. Pass the size of a "
					 "log, or remove --replay");
	return CLI_DONE;
}

int cli_question_complete(struct cli_question *q)
{
	q->problem.size = sizeof q->problem;
	int rc = q->file		     ? complete_from_file(q)
		 : q->given[CLI_GIVEN_STEPS] ? set_steps(q)
					     : CLI_DONE;
	if (!q->file && rc == CLI_DONE)
		rc = check_sizes(q);
	if (q->file || rc != CLI_DONE)
		return rc;
	struct neap_chain *chain = &q->problem.chain;
	int classic = q->given[CLI_GIVEN_SLOTS];

	if (classic) {
		chain->flags |= NEAP_CHAIN_CLASSIC;
		chain->state = 1;
		q->problem.memory = (uint64_t)q->slots;
		if (neap_strategy_traits(q->strategy) & NEAP_STRATEGY_TAPE_SLOTS)
			chain->flags |= NEAP_CHAIN_MIXED;
	} else {
		chain->live = chain->state;
		if (!q->given[CLI_GIVEN_ADJOINT])
			chain->adjoint = chain->state;
	}
	if (!q->given[CLI_GIVEN_RECORD])
		chain->record = chain->advance;
	if (!q->given[CLI_GIVEN_REPLAY])
		chain->replay = q->given[CLI_GIVEN_LOG] ? chain->record : 0;
	return add_tiers(q, classic);
}

int cli_question_asked(const struct cli_question *q)
{
	static const struct neap_params none;
	return any_given(q, CLI_GIVENS) || q->strategy || q->file || q->tiers.count > 0 ||
	       memcmp(&q->params, &none, sizeof none) != 0;
}

void cli_question_free(struct cli_question *q)
{
	cli_chain_free(&q->chain);
}
