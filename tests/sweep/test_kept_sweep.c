/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sweeps by plans that keep states in fast memory beyond the turn and never write them: the
 * gradient is that of a sweep that stores everything, to the bit, also where records are lost,
 * refused or changed on the way, or arrive late.
 */
#include "chainmodel.h"

#include "lazy_tier.h"
#include "store/fault_tier.h"
#include "sweep/sweep.h"

#define RECORDS 20 /* of the first records, one in so many is lost */
#define STATES 20  /* in fast memory */

struct kept_case {
	struct model m;
	struct gradient want;
	struct neap_tier *tier;
	struct neap__faults faults;
	struct neap_sweep *sweep;
};

/* Takes over `inner`; a state takes `tau` seconds each way, and a step takes one. */
static void open_case(struct kept_case *x, struct neap_tier *inner, int64_t steps, double tau)
{
	model_init(&x->m, steps, test_seed(7));
	x->want = reference(&x->m);
	assert_int_equal(neap__fault_open(&x->tier, inner, &x->faults), 0);
	double rate = WIDTH * sizeof(double) / tau;
	neap_tier_set_rates(x->tier, rate, rate, 0);
	struct neap_step_ops ops = model_ops(&x->m, 0);
	struct neap_sweep_options o = {.size = sizeof o,
		FIXED_COSTS,
		.steps = steps,
		.memory = 1 << 14,
		.strategy = "auto",
		.tiers = &x->tier,
		.ntiers = 1};
	/* What the tier stages is known once there is a sweep. */
	assert_int_equal(neap_sweep_create(&x->sweep, &ops, &x->m, &o), 0);
	const struct neap_problem *p = neap_sweep_problem(x->sweep);
	o.memory = p->tiers[0].staging + p->chain.adjoint + p->chain.live + STATES * p->chain.state;
	neap_sweep_free(x->sweep);
	if (neap_sweep_create(&x->sweep, &ops, &x->m, &o) < 0)
		fail_msg("%s", neap_detail());
	neap__sweep_poison(x->sweep, 1);
	assert_int_equal(neap_sweep_plan(x->sweep)->blocks.inner, NEAP_BLOCKS_KEPT);
}

static struct neap_sweep_stats run_case(struct kept_case *x)
{
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct gradient got;
	if (run_model(x->sweep, &x->m, &got, &stats) < 0 || x->m.broken[0])
		fail_msg("%s %s", neap_detail(), x->m.broken);
	assert_memory_equal(&got, &x->want, sizeof got);
	assert_true(stats.peak_measured <= stats.arena_bytes);
	return stats;
}

static void close_case(struct kept_case *x)
{
	neap_sweep_free(x->sweep);
	neap_tier_close(x->tier);
	model_fini(&x->m);
}

static void kept_states(void **state)
{
	(void)state;
	for (int lazy = 0; lazy < 2; lazy++)
		for (int64_t steps = 1000; steps <= 2000; steps *= 2) {
			struct kept_case x = {0};
			struct neap_tier *inner;
			assert_int_equal(lazy ? lazy_open(&inner, NEAP_INFINITE)
					      : neap_tier_open_memory(&inner, NEAP_INFINITE),
				0);
			open_case(&x, inner, steps, 100);
			const struct neap_plan *plan = neap_sweep_plan(x.sweep);
			struct neap_sweep_stats stats = run_case(&x);
			assert_int_equal(stats.written[0], plan->tiers[0].written);
			assert_int_equal(stats.read[0], plan->tiers[0].read);
			assert_int_equal(stats.advance_steps, plan->advance_steps);
			assert_int_equal(stats.recoveries, 0);
			run_case(&x); /* once more over the same records */
			close_case(&x);
		}
}

/* The n-th record fails in each of the ways there are. */
static void lost_records(void **state)
{
	(void)state;
	int64_t recoveries = 0;
	for (int way = 0; way < 4; way++)
		for (int64_t n = 1; n <= RECORDS; n += 6) {
			struct kept_case x = {0};
			struct neap__faults *f = &x.faults;
			int64_t *ways[] = {
				&f->lose_put, &f->corrupt_put, &f->fail_put, &f->fail_get};
			*ways[way] = n;
			struct neap_tier *inner;
			assert_int_equal(neap_tier_open_memory(&inner, NEAP_INFINITE), 0);
			open_case(&x, inner, 1000, 100);
			recoveries += run_case(&x).recoveries;
			close_case(&x);
		}
	fprintf(stderr, "# recovered: %lld\n", (long long)recoveries);
	assert_true(recoveries > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kept_states),
		cmocka_unit_test(lost_records),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
