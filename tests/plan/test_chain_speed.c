/* SPDX-License-Identifier: Apache-2.0 */
/* How long planning a chain whose steps differ takes, in seconds of one processor. */
#include "chain_test.h"
#include "time_limit.h"

#define STAGES 200

/* Layers of unequal sizes; `most` bytes a state. */
static void layers(struct chain *c, struct random *r, int64_t most)
{
	for (int64_t i = 0; i <= STAGES; i++) {
		c->state[i] = 1 + (uint64_t)below(r, most);
		c->backward[i] = (double)(1 + below(r, 6));
	}
	for (int64_t i = 0; i < STAGES; i++) {
		c->advance[i] = (double)(1 + below(r, 4));
		c->tape[i] = c->state[i + 1] + 1 + (uint64_t)below(r, 2 * most);
	}
	wire(c, STAGES);
}

/* Steps of a recurrent net, whose tapes vary. */
static void recurrent(struct chain *c, struct random *r)
{
	for (int64_t i = 0; i <= STAGES; i++) {
		c->state[i] = 65536;
		c->backward[i] = 1;
	}
	for (int64_t i = 0; i < STAGES; i++) {
		c->advance[i] = 1;
		c->tape[i] = 20000 + (uint64_t)below(r, 200000);
	}
	wire(c, STAGES);
	c->stages.flags = 0;
}

/* The least of several runs: others use the machine too. */
static double seconds(struct chain *c, uint64_t memory)
{
	double least = INFINITY;
	for (int run = 0; run < 5 && least > 0.4; run++) {
		double start = test_seconds();
		struct neap_plan plan = {.size = sizeof plan};
		c->p.memory = memory;
		assert_int_equal(neap_plan_make(&plan, &c->p, "chain", NULL), 0);
		assert_true(plan.feasible);
		least = fmin(least, test_seconds() - start);
	}
	return least;
}

static void within(struct chain *c, const char *name, uint64_t memory)
{
	double taken = seconds(c, memory);
	fprintf(stderr, "# %s: %d stages, %g bytes: %.3f s\n", name, STAGES, (double)memory, taken);
	test_limit(name, taken, 0.5);
}

static uint64_t all_bytes(const struct chain *c)
{
	uint64_t all = 0;
	for (int64_t i = 0; i < STAGES; i++)
		all += c->state[i] + c->tape[i];
	return all;
}

static void speed(void **state)
{
	static struct chain c;
	struct random r = {test_seed(31), 0};
	(void)state;
	layers(&c, &r, 6);
	within(&c, "layers of a few units", 500 + c.state[0]); /* a level each */
	layers(&c, &r, 6000000);
	within(&c, "layers of megabytes", all_bytes(&c) / 10);
	recurrent(&c, &r);
	within(&c, "recurrent steps", all_bytes(&c) / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(speed)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
