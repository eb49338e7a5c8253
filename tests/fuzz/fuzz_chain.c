/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_chain.c: chain files, planned within a budget that follows from the text. */
#include "chain_file.h"
#include "fuzz.h"

/* From less than the least budget to more than all. */
static uint64_t budget(const struct neap_problem *p, uint64_t seed)
{
	uint64_t least = neap_problem_least(p);
	switch (seed >> 24 & 3) {
	case 0:
		return least;
	case 1:
		return least + least / 2;
	case 2:
		return 3 * (least & UINT64_MAX >> 4) + 100;
	default:
		return least - least / 16;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct neap_params params = {0};
	struct neap_problem problem = NEAP_PROBLEM_INIT;
	struct cli_chain chain;
	uint64_t seed = fuzz_seed(data, size);
	char *text = fuzz_text(data, size);
	int rc = cli_chain_parse(&chain, &problem, text, "chain.json", "plan");
	fuzz_refused(rc);
	/* The least budget of unequal stages is searched for. */
	int64_t most = problem.chain.stages ? 100 : 4096;
	if (rc == CLI_DONE && problem.chain.steps <= most && neap_problem_check(&problem) == 0) {
		problem.memory = budget(&problem, seed);
		fuzz_plan(&problem, &params, seed);
	}
	cli_chain_free(&chain);
	free(text);
	return 0;
}
