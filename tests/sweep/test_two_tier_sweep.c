/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sweeps through two tiers at once, memory that is filled again and again and a slow file: the
 * gradient is that of a sweep that stores everything, to the bit, also where records of either
 * tier are lost, refused or changed on the way.
 */
#include "chainmodel.h"

#include "store/fault_tier.h"
#include "sweep/sweep.h"

#define NEAR_MOST 16 /* of the records that the near tier has room for, one in so many is lost */

/* Seconds of a state to each tier; a step takes one. */
struct speeds {
	uint64_t capacity; /* bytes of the near tier */
	double near, far;
	int shared; /* both without a limit */
};

struct two_tier_case {
	struct model m;
	struct gradient want;
	struct neap_tier *tiers[2];
	struct neap__faults faults[2];
	struct neap_sweep *sweep;
};

static void open_case(
	struct two_tier_case *x, const struct speeds *speeds, int64_t steps, uint64_t states)
{
	static const double rate = WIDTH * sizeof(double);
	struct neap_tier *inner[2];
	model_init(&x->m, steps, test_seed(7));
	x->want = reference(&x->m);
	assert_int_equal(neap_tier_open_memory(&inner[0], speeds->capacity), 0);
	/* What a file stages would be worth more than what it adds to memory without a limit. */
	assert_int_equal(speeds->shared ? neap_tier_open_memory(&inner[1], NEAP_INFINITE)
					: neap_tier_open_file(&inner[1], "/var/tmp", NULL),
		0);
	for (int i = 0; i < 2; i++) {
		double slow = rate / (i ? speeds->far : speeds->near);
		assert_int_equal(neap__fault_open(&x->tiers[i], inner[i], &x->faults[i]), 0);
		neap_tier_set_rates(x->tiers[i], slow, slow, 0);
	}
	struct neap_step_ops ops = model_ops(&x->m, 0);
	struct neap_sweep_options o = {.size = sizeof o,
		FIXED_COSTS,
		.steps = steps,
		.memory = 1 << 14,
		.strategy = "auto",
		.params = {.effort = 100},
		.tiers = x->tiers,
		.ntiers = 2};
	/* What the tiers stage is known once there is a sweep. */
	assert_int_equal(neap_sweep_create(&x->sweep, &ops, &x->m, &o), 0);
	const struct neap_problem *p = neap_sweep_problem(x->sweep);
	o.memory = p->tiers[0].staging + p->tiers[1].staging + p->chain.adjoint + p->chain.live +
		   states * p->chain.state;
	neap_sweep_free(x->sweep);
	if (neap_sweep_create(&x->sweep, &ops, &x->m, &o) < 0)
		fail_msg("%s", neap_detail());
	neap__sweep_poison(x->sweep, 1);
}

static struct neap_sweep_stats run_case(struct two_tier_case *x)
{
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct gradient got;
	if (run_model(x->sweep, &x->m, &got, &stats) < 0 || x->m.broken[0])
		fail_msg("%s %s", neap_detail(), x->m.broken);
	assert_memory_equal(&got, &x->want, sizeof got);
	assert_true(stats.peak_measured <= stats.arena_bytes);
	return stats;
}

static void close_case(struct two_tier_case *x)
{
	neap_sweep_free(x->sweep);
	for (int i = 0; i < 2; i++)
		neap_tier_close(x->tiers[i]);
	model_fini(&x->m);
}

static const struct speeds kinds[] = {
	{.capacity = 1 << 12, .near = 1, .far = 20},
	{.capacity = 1 << 11, .near = 4, .far = 10},
	{.capacity = NEAP_INFINITE, .near = 50, .far = 100, .shared = 1},
};

static void both_tiers(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
		for (int64_t steps = 2000; steps <= 6000; steps *= 3) {
			struct two_tier_case x = {0};
			open_case(&x, &kinds[k], steps, 30);
			const struct neap_plan *plan = neap_sweep_plan(x.sweep);
			fprintf(stderr, "# %lld steps: tier %d, near %d, share %d\n",
				(long long)steps, plan->tier, plan->near.tier, plan->near.share);
			assert_true(plan->near.tier > 0);
			assert_int_equal(plan->near.share > 0, kinds[k].shared);
			struct neap_sweep_stats stats = run_case(&x);
			for (int i = 0; i < 2; i++) {
				assert_int_equal(stats.written[i], plan->tiers[i].written);
				assert_int_equal(stats.read[i], plan->tiers[i].read);
			}
			assert_int_equal(stats.recoveries, 0);
			run_case(&x); /* once more over the same records */
			close_case(&x);
		}
}

/* The n-th record of a tier fails in each of the ways there are. */
static void lost_records(void **state)
{
	(void)state;
	int64_t recoveries[2] = {0};
	for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
		for (int i = 0; i < 2; i++)
			for (int way = 0; way < 4; way++)
				for (int64_t n = 1; n <= NEAR_MOST; n += 5) {
					struct two_tier_case x = {0};
					struct neap__faults *f = &x.faults[i];
					int64_t *ways[] = {&f->lose_put, &f->corrupt_put,
						&f->fail_put, &f->fail_get};
					*ways[way] = n;
					open_case(&x, &kinds[k], 2000, 30);
					recoveries[i] += run_case(&x).recoveries;
					close_case(&x);
				}
	fprintf(stderr, "# recovered: %lld of the near tier, %lld of the far one\n",
		(long long)recoveries[0], (long long)recoveries[1]);
	assert_true(recoveries[0] > NEAR_MOST && recoveries[1] > NEAR_MOST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_tiers),
		cmocka_unit_test(lost_records),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
