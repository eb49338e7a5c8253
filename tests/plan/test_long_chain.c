/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of very many stages: a uniform sequence whose tapes vary with t. */
#include "plan_test.h"
#include "time_limit.h"
#include "count_heap.h"

#define STEPS 100000
#define STATE 4096

static double advance[STEPS], backward[STEPS + 1];
static uint64_t states[STEPS + 1], tapes[STEPS], largest[STEPS], mean[STEPS];
static struct neap_stages stages;

/* Firing rates rise and fall, with bursts. */
static struct neap_problem sequence(struct random *r, int64_t steps, uint32_t flags)
{
	struct neap_problem p = NEAP_PROBLEM_INIT;
	uint64_t all = 0, top = 0;
	for (int64_t i = 0; i <= steps; i++) {
		states[i] = STATE;
		backward[i] = 2;
	}
	for (int64_t i = 0; i < steps; i++) {
		double t = (double)i / (double)steps;
		double rate = 0.25 + 0.6 * fabs(sin(9 * t + 1)) + (sin(41 * t) > 0.8);
		advance[i] = 1;
		tapes[i] = (uint64_t)(4000 * rate * (0.8 + 0.4 * uniform(r)));
		tapes[i] += flags & NEAP_STAGES_TAPE_HOLDS_OUTPUT ? STATE : 0;
		all += tapes[i];
		top = tapes[i] > top ? tapes[i] : top;
	}
	for (int64_t i = 0; i < steps; i++) {
		largest[i] = top;
		mean[i] = all / (uint64_t)steps;
	}
	stages = (struct neap_stages){
		advance, NULL, backward, states, tapes, NULL, NULL, NULL, flags, 0};
	p.chain.steps = steps;
	p.chain.stages = &stages;
	return p;
}

static uint64_t all_tapes(int64_t steps)
{
	uint64_t all = 0;
	for (int64_t i = 0; i < steps; i++)
		all += tapes[i];
	return all;
}

static int ascending(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

/*
 * No schedule advances fewer steps: with Phi_t(p) = max(t p, Phi_{t-1}(p) + Phi_t(p - S))
 * bytes of tapes times the executions that are saved, t a step, and the smallest
 * tapes wherever they help, extra >= t (T - N(Phi_t / t)), N(x) tapes in x bytes.
 */
static double least_extra(int64_t steps, double pool)
{
	static uint64_t sorted[STEPS];
	int64_t slots = (int64_t)fmin(pool / STATE, 50000);
	double *phi = calloc((size_t)slots + 2, sizeof *phi), least = 0;
	memcpy(sorted, tapes, (size_t)steps * sizeof *tapes);
	qsort(sorted, (size_t)steps, sizeof *sorted, ascending);
	for (int64_t t = 1, n = 0; t < 1000 && n < steps; t++) {
		for (int64_t c = slots; c >= 0; c--)
			phi[c] = fmax((double)t * (pool - (double)c * STATE), phi[c] + phi[c + 1]);
		double left = phi[0] / (double)t;
		for (n = 0; n < steps && left >= (double)sorted[n]; n++)
			left -= (double)sorted[n];
		least = fmax(least, (double)(t * (steps - n)));
	}
	free(phi);
	return least;
}

/* Plans, verifies and simulates; all agree. */
static struct neap_plan checked(const struct neap_problem *p)
{
	struct neap_plan plan = {.size = sizeof plan};
	if (neap_plan_make(&plan, p, "chain", NULL) < 0)
		fail_msg("chain: %s", neap_detail());
	if (!plan.feasible)
		return plan;
	struct neap_verdict v = verified(p, &plan);
	assert_true(v.peak_bytes <= p->memory);
	assert_int_equal(v.peak_bytes, plan.peak_bytes);
	assert_int_equal(v.advance_steps, plan.advance_steps);
	assert_int_equal(v.backward_steps, p->chain.steps);
	assert_true(near(simulated(p, &plan).makespan, plan.makespan));
	return plan;
}

/* Sizes of every kind, all four flags: legal, and infeasible only below a budget that works. */
static void unequal(void **state)
{
	(void)state;
	struct random r = {test_seed(43), 0};
	static uint64_t temporary[STEPS + 1];
	for (int k = 0; k < 8; k++) {
		int64_t steps = 351 + below(&r, 600);
		struct neap_problem p = sequence(&r, steps, (uint32_t)k % 4);
		uint64_t scale = k % 3 == 2 ? (uint64_t)1 << 35 : 1, all = 0;
		for (int64_t i = 0; i <= steps; i++) {
			states[i] = scale * (uint64_t)below(&r, k % 5 ? 5000 : 1);
			temporary[i] = scale * (uint64_t)maybe(&r, 0.1, 3000);
			advance[i < steps ? i : 0] = (double)below(&r, 3);
			backward[i] = (double)below(&r, 4);
		}
		for (int64_t i = 0; i < steps; i++) {
			tapes[i] = states[i + 1] + scale * (uint64_t)below(&r, 9000);
			all += tapes[i] + states[i];
		}
		stages.backward_tmp = k % 2 ? temporary : NULL;
		stages.advance_tmp = k % 4 > 1 ? temporary : NULL;
		p.chain.adjoint = k % 7 == 3 ? scale * 2000 : 0;
		p.memory = 0;
		struct neap_plan plan = checked(&p);
		assert_true(plan.feasible || plan.least_bytes > 0);
		assert_int_equal(plan.least_bytes, neap_problem_least(&p));
		for (uint64_t more = 0; more < all; more += all / 2) {
			p.memory = plan.least_bytes + more;
			assert_true(checked(&p).feasible);
		}
	}
}

/* Never worse than as if every tape were the largest, feasible where that is. */
static void never_worse(void **state)
{
	(void)state;
	struct random r = {test_seed(41), 0};
	for (int k = 0; k < 8; k++) {
		struct neap_problem p = sequence(&r, 3000 + below(&r, 3000), (uint32_t)k % 4);
		double all = (double)all_tapes(p.chain.steps);
		p.memory = k < 4 ? 4 * STATE + (uint64_t)below(&r, 40000)
				 : (uint64_t)decades(&r, 60000, all / 3);
		struct neap_plan plan = checked(&p);
		stages.tape = largest;
		struct neap_plan uniform_plan = checked(&p);
		stages.tape = tapes;
		assert_true(plan.feasible || !uniform_plan.feasible);
		if (uniform_plan.feasible)
			assert_true(plan.makespan <= uniform_plan.makespan * (1 + 1e-12));
		if (!plan.feasible) {
			p.memory = plan.least_bytes;
			assert_true(checked(&p).feasible);
		}
	}
}

/* What a plan for tapes of the mean size takes in truth. */
static uint64_t peak_of_mean(const struct neap_problem *p)
{
	struct neap_stages even = stages;
	struct neap_problem assumed = *p;
	struct neap_verdict v = {.size = sizeof v};
	struct neap_schedule *s;
	even.tape = mean;
	assumed.chain.stages = &even;
	struct neap_plan plan = checked(&assumed);
	assert_int_equal(neap_schedule_open(&s, &assumed, &plan), 0);
	assert_int_equal(neap_verify(&v, p, s), 0);
	neap_schedule_close(s);
	return v.peak_bytes;
}

/* 10^5 steps: near the bound; a plan for the mean tape does not fit. */
static void full_length(void **state)
{
	(void)state;
	struct random r = {test_seed(42), 0};
	struct neap_problem p = sequence(&r, STEPS, 0);
	uint64_t all = all_tapes(STEPS);
	int overflows = 0;
	const uint64_t budgets[] = {
		10 * STATE + 5 * largest[0], 30 * largest[0], 1000 * largest[0], all / 10, all / 3};
	for (size_t k = 0; k < sizeof budgets / sizeof *budgets; k++) {
		double start = test_seconds();
		most = held;
		p.memory = budgets[k];
		struct neap_plan plan = checked(&p);
		double seconds = test_seconds() - start;
		assert_true(plan.feasible);
		double extra = (double)plan.advance_steps / STEPS;
		double bound = least_extra(STEPS, (double)p.memory - STATE) / STEPS;
		fprintf(stderr,
			"# %.5f of all tapes: %.3f extra steps a step, at least %.3f; "
			"%.2f s, %.1f MiB\n",
			(double)p.memory / (double)all, extra, bound, seconds,
			(double)most / (1 << 20));
		assert_true(most < (size_t)64 << 20);
		double above = (extra + 3) / (bound + 3) - 1;
		assert_true(extra >= bound && above < 0.5);
		assert_true(k < 2 || above < 0.02);
		overflows += peak_of_mean(&p) > p.memory;
	}
	fprintf(stderr, "# %d plans for the mean tape do not fit\n", overflows);
	assert_true(overflows > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unequal),
		cmocka_unit_test(never_worse),
		cmocka_unit_test(full_length),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
