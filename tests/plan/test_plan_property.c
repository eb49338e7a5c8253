/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold of every plan, on random problems. NEAP_SEED repeats a run. */
#include "plan_test.h"

static void print_problem(const struct neap_problem *p)
{
	const struct neap_chain *c = &p->chain;
	fprintf(stderr,
		"# T=%lld S=%llu A=%llu max=%llu adj=%llu live=%llu f=%g r=%g b=%g sw=%g sr=%g "
		"flags=%u M=%llu\n",
		(long long)c->steps, (unsigned long long)c->state, (unsigned long long)c->tape,
		(unsigned long long)c->tape_max, (unsigned long long)c->adjoint,
		(unsigned long long)c->live, c->advance, c->record, c->backward, c->slot_write,
		c->slot_read, c->flags, (unsigned long long)p->memory);
	for (int i = 0; i < p->ntiers; i++)
		fprintf(stderr, "# tier cap=%llu w=%g r=%g wf=%g rf=%g staging=%llu flags=%u\n",
			(unsigned long long)p->tiers[i].capacity, p->tiers[i].write_rate,
			p->tiers[i].read_rate, p->tiers[i].write_fixed, p->tiers[i].read_fixed,
			(unsigned long long)p->tiers[i].staging, p->tiers[i].flags);
}

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			print_problem(p);                                                          \
			fail_msg("%s (%s), chunk %lld, R %lld, k %lld: %s", plan->strategy,        \
				plan->chosen, (long long)plan->params.chunk,                       \
				(long long)plan->params.remote_chunk,                              \
				(long long)plan->params.checkpoints, #condition);                  \
		}                                                                                  \
	} while (0)

static void check_counts(const struct neap_problem *p, const struct neap_plan *plan)
{
	struct neap_schedule *s;
	struct neap_verdict v;
	CHECK(neap_schedule_open(&s, p, plan) == 0);
	if (neap_verify(&v, p, s) < 0) {
		print_problem(p);
		fail_msg("%s, chunk %lld, R %lld, k %lld: %s", plan->strategy,
			(long long)plan->params.chunk, (long long)plan->params.remote_chunk,
			(long long)plan->params.checkpoints, neap_detail());
	}
	neap_schedule_close(s);
	CHECK(v.peak_bytes == plan->peak_bytes);
	CHECK(v.arena_bytes == plan->arena_bytes);
	CHECK(plan->arena_bytes <= p->memory);
	CHECK(v.slots == plan->slots);
	CHECK(v.advance_steps == plan->advance_steps);
	CHECK(v.record_steps == plan->record_steps);
	CHECK(v.backward_steps == p->chain.steps);
	CHECK(v.transfers_in_flight <= NEAP_TICKETS);
	uint64_t slow = 0;
	for (int i = 0; i < p->ntiers; i++) {
		CHECK(v.tiers[i].peak_bytes == plan->tiers[i].peak_bytes);
		CHECK(v.tiers[i].written == plan->tiers[i].written);
		CHECK(v.tiers[i].read == plan->tiers[i].read);
		CHECK(v.tiers[i].peak_bytes <= p->tiers[i].capacity);
		slow += v.tiers[i].peak_bytes;
	}
	CHECK(slow == plan->slow_bytes);
}

static void check_times(const struct neap_problem *p, const struct neap_plan *plan)
{
	struct neap_simulation m = simulated(p, plan);
	if (!near(m.makespan, plan->makespan))
		fprintf(stderr, "# simulated %.17g planned %.17g\n", m.makespan, plan->makespan);
	CHECK(near(m.makespan, plan->makespan));
	CHECK(fabs(m.stall - plan->stall) <= 1e-9 * m.makespan);
	CHECK(near(m.makespan, m.advance + m.record + m.backward + m.copies + m.stall));
	CHECK(plan->bound <= plan->makespan * (1 + 1e-12));
	for (int i = 0; i < p->ntiers; i++) {
		CHECK(m.tiers[i].written == plan->tiers[i].written);
		CHECK(m.tiers[i].read == plan->tiers[i].read);
	}
}

static void check_refusal(
	const struct neap_problem *p, const struct neap_plan *plan, const struct neap_params *fixed)
{
	CHECK(plan->why[0] && plan->makespan == 0 && !plan->peak_bytes && !plan->slots);
	CHECK(plan->least_bytes == 0 || plan->least_bytes > p->memory);
	if (plan->least_bytes == 0)
		return;
	struct neap_problem richer = *p;
	struct neap_plan again;
	richer.memory = plan->least_bytes;
	CHECK(neap_plan_make(&again, &richer, plan->strategy, fixed) == 0);
	CHECK(again.feasible);
}

static void check_problem(struct random *r, const struct neap_problem *p, int long_ones)
{
	struct neap_plan plans[32], *plan;
	struct neap_params fixed = {0};
	if (uniform(r) < 0.3)
		fixed.chunk = 1 + below(r, p->chain.steps + 2);
	if (uniform(r) < 0.2)
		fixed.checkpoints = 1 + below(r, p->chain.steps + 2);
	if (uniform(r) < 0.2)
		fixed.remote_chunk = 1 + below(r, p->chain.steps + 2);
	int n = 0, feasible = 0;
	for (; neap_strategy_name(n); n++) {
		plan = &plans[n];
		int rc = neap_plan_make(plan, p, neap_strategy_name(n), &fixed);
		if (rc < 0)
			fail_msg("%s: %s", neap_strategy_name(n), neap_detail());
		feasible |= plan->feasible;
		if (!plan->feasible) {
			check_refusal(p, plan, &fixed);
			continue;
		}
		if (plan->advance_steps > (long_ones ? 50000000 : 300000))
			continue;
		check_counts(p, plan);
		check_times(p, plan);
	}
	plan = &plans[n - 1];
	CHECK(plan->feasible == feasible);
	for (int i = 0; i < n; i++)
		if (plans[i].feasible)
			CHECK(plan->makespan <= plans[i].makespan * (1 + 1e-11));
	if (p->memory >= neap_problem_least(p) && !fixed.chunk && !fixed.checkpoints &&
		!fixed.remote_chunk)
		CHECK(feasible);
}

static void short_chains(void **state)
{
	(void)state;
	struct random r = {test_seed(1), 0};
	for (int i = 0; i < 6000; i++) {
		struct neap_problem p = random_problem(&r, 300);
		check_problem(&r, &p, 0);
	}
}

static void medium_chains(void **state)
{
	(void)state;
	struct random r = {test_seed(2), 0};
	for (int i = 0; i < 400; i++) {
		struct neap_problem p = random_problem(&r, 20000);
		check_problem(&r, &p, 0);
	}
}

/* The parameters chosen against every pair there is. */
static void best_parameters(void **state)
{
	static const char *const strategies[] = {"standard", "remote", "hierarchical", "double"};
	(void)state;
	struct random r = {test_seed(6), 0};
	double sum = 0, worst = 0;
	int count = 0;
	for (int i = 0; i < 300; i++) {
		struct neap_problem p = random_problem(&r, 60);
		if (p.chain.flags & NEAP_CHAIN_CLASSIC || p.ntiers == 0 || p.chain.steps < 1 ||
			p.chain.steps > 60)
			continue;
		for (int n = 0; n < 4; n++) {
			struct neap_plan plan, other;
			double best = INFINITY;
			assert_int_equal(neap_plan_make(&plan, &p, strategies[n], NULL), 0);
			for (int64_t c = 1; c <= p.chain.steps; c++)
				for (int64_t k = 1; k <= (n < 2 ? 1 : p.chain.steps); k++) {
					struct neap_params params = {.chunk = c};
					if (n == 2)
						params.checkpoints = k;
					else
						params.remote_chunk = k;
					assert_int_equal(
						neap_plan_make(&other, &p, strategies[n], &params),
						0);
					if (other.feasible)
						best = fmin(best, other.makespan);
				}
			assert_int_equal(plan.feasible, best < INFINITY);
			if (!plan.feasible || best == 0)
				continue;
			double loss = plan.makespan / best - 1;
			if (loss > worst) {
				worst = loss;
				fprintf(stderr, "# %s loses %.2f%%: c=%lld k=%lld R=%lld\n",
					strategies[n], 100 * loss, (long long)plan.params.chunk,
					(long long)plan.params.checkpoints,
					(long long)plan.params.remote_chunk);
				print_problem(&p);
			}
			sum += loss;
			count++;
		}
	}
	fprintf(stderr, "# %d plans lose %.3f%% on average, %.2f%% at most\n", count,
		100 * sum / count, 100 * worst);
	assert_true(count > 200);
	assert_true(sum / count < 0.005 && worst < 0.1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_chains),
		cmocka_unit_test(medium_chains),
		cmocka_unit_test(best_parameters),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
