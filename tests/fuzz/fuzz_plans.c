/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_plans.c: plans as text. What is read is written and read again, without a
 * difference, and its schedule holds whatever is said of it.
 */
#include "base/text.h"
#include "fuzz.h"
#include "plan/text/plan_parse.h"

#include <string.h>

#define ACTIONS_WALKED 3000
#define STEPS_TABLED 50 /* of strategies that fill tables again */

static int collect(void *user, const char *text, size_t length)
{
	return neap__text_add(user, "%.*s", (int)length, text);
}

/* Tables are as large as the chain and the effort ask for: not what is looked at here. */
static int costly(const char *text, size_t size)
{
	struct neap__parsed *x = calloc(1, sizeof *x);
	FUZZ_CHECK(x, "out of memory");
	int rc = neap__plan_parse(x, text, size);
	FUZZ_CHECK(rc <= 0 && (rc == 0 || neap_detail()[0]), "%d without a line", rc);
	const struct neap_plan *plan = &x->plan;
	const struct neap_chain *c = &x->problem.chain;
	int tables =
		rc == 0 && !plan->actions &&
		strstr("chain pofo auto async h-revolve disk-revolve periodic join", plan->chosen);
	int skip = tables && (c->steps + c->join > STEPS_TABLED || plan->params.effort > 16);
	neap__parsed_free(x);
	free(x);
	return skip;
}

static void again(const struct neap_saved *saved)
{
	struct neap_saved *second = NULL;
	struct neap__text a = {0}, b = {0};
	int rc = neap_plan_write(saved->plan, saved->problem, 0, collect, &a);
	FUZZ_CHECK(rc == 0, "write: %s", neap_detail());
	rc = neap_plan_read(&second, a.data, a.length, 0);
	FUZZ_CHECK(rc == 0, "read again: %s\n%s", neap_detail(), a.data);
	rc = neap_plan_write(second->plan, second->problem, 0, collect, &b);
	FUZZ_CHECK(rc == 0, "write again: %s", neap_detail());
	FUZZ_CHECK(strcmp(a.data, b.data) == 0, "not the same text:\n%s\n%s", a.data, b.data);
	neap_saved_free(second);
	neap__text_free(&a);
	neap__text_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct neap_saved *saved = NULL;
	char *text = fuzz_text(data, size);
	if (!costly(text, size)) {
		int rc = neap_plan_read(&saved, text, size, ACTIONS_WALKED);
		FUZZ_CHECK(rc == 0 || (rc < 0 && neap_detail()[0]), "%d without a line", rc);
		if (rc == 0) {
			again(saved);
			if (!saved->problem->chain.join)
				fuzz_schedule(saved->problem, saved->plan);
			neap_saved_free(saved);
		}
	}
	free(text);
	return 0;
}
