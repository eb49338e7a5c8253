/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiny random problems against the exhaustive optimum (exhaustive.h): no bound above
 * it, no plan below it, no plan where there is no schedule. Without a slow tier and
 * with one: synchronous or not, duplex or not, finite capacity, latency, staging,
 * free or at the cost of computing.
 *
 *     test_plan_exhaustive [ROUNDS]      NEAP_SEED repeats a run
 */
#include "exhaustive.h"

static int rounds = 2;
static struct tiny_search tiny_memory;

static struct totals {
	int problems, feasible, refused, large, bound_tight, auto_tight, auto_missing;
	double gap, worst_gap, loss, worst_loss;
} totals;

static void tell(const struct neap_problem *p, const struct tiny *k)
{
	fprintf(stderr,
		"# T=%d flags=%u pool=%lld S=%lld A=%lld f=%d r=%d b=%d save=%d load=%d call=%d; "
		"tier %d "
		"sync %d duplex %d room %lld out %g+%g/B in %g+%g/B lost %d+%d/B; memory %llu "
		"staging "
		"%llu\n",
		k->steps, p->chain.flags, (long long)k->pool, (long long)k->state,
		(long long)k->tape, k->f, k->r, k->b, k->save, k->load, k->price, k->tier, k->sync,
		k->duplex, (long long)k->room, k->out_fixed, k->out_byte, k->in_fixed, k->in_byte,
		k->lost_fixed, k->lost, (unsigned long long)p->memory,
		(unsigned long long)p->tiers[0].staging);
}

/* The optimum with the tier and its staging, or without. */
static double optimum(const struct tiny *k, uint64_t staging)
{
	struct tiny alone = *k, with = *k;
	double a = INFINITY, b;
	if (!k->tier || staging) {
		alone.tier = 0;
		a = tiny_solve(&tiny_memory, &alone);
	}
	with.pool -= (int64_t)staging;
	if (!k->tier || a < 0 || with.pool < 0)
		return a;
	b = tiny_solve(&tiny_memory, &with);
	return b < 0 ? b : fmin(a, b);
}

static struct neap_problem problem_of(const struct tiny *k)
{
	struct neap_problem p = NEAP_PROBLEM_INIT;
	struct neap_chain *c = &p.chain;
	c->steps = k->steps;
	c->state = (uint64_t)k->state;
	c->tape = k->classic ? 0 : (uint64_t)k->tape;
	c->advance = k->f;
	c->record = k->r;
	c->backward = k->b;
	c->slot_write = k->save;
	c->slot_read = k->load;
	c->call = k->price;
	p.memory = (uint64_t)(k->pool + (k->classic ? 0 : k->state)); /* the live state */
	if (k->classic)
		c->flags = NEAP_CHAIN_CLASSIC | (k->classic == 2 ? NEAP_CHAIN_MIXED : 0u);
	else if (!k->travel)
		c->flags = NEAP_CHAIN_TAPES_STAY;
	if (!k->tier)
		return p;
	add_tier(&p, (uint64_t)k->room, 0,
		(k->sync ? NEAP_TIER_SYNC : 0u) | (k->duplex ? NEAP_TIER_DUPLEX : 0u));
	p.tiers[0].write_fixed = k->out_fixed;
	p.tiers[0].read_fixed = k->in_fixed;
	p.tiers[0].write_rate = k->out_byte > 0 ? 1 / k->out_byte : 0;
	p.tiers[0].read_rate = k->in_byte > 0 ? 1 / k->in_byte : 0;
	p.tiers[0].cpu = k->lost;
	p.tiers[0].cpu_fixed = k->lost_fixed;
	return p;
}

/* The budget that auto names is the least at which there is a schedule. */
static void check_least(const struct neap_problem *p, const struct tiny *k)
{
	struct neap_plan plan = {.size = sizeof plan};
	struct tiny other = *k;
	uint64_t live = k->classic ? 0 : (uint64_t)k->state;
	assert_int_equal(neap_plan_make(&plan, p, "auto", NULL), 0);
	other.pool = (int64_t)plan.least_bytes - (int64_t)live;
	double there = other.pool < 0 ? INFINITY : optimum(&other, p->tiers[0].staging);
	other.pool--;
	double below = other.pool < 0 ? INFINITY : optimum(&other, p->tiers[0].staging);
	totals.refused++;
	totals.large += below < 0; /* not searched: not known */
	assert_int_equal(plan.least_bytes, neap_problem_least(p));
	if (plan.feasible || !plan.least_bytes || there == INFINITY ||
		(below != INFINITY && below >= 0)) {
		tell(p, k);
		fail_msg("auto: needs %llu: there %g, below %g",
			(unsigned long long)plan.least_bytes, there, below);
	}
}

static void check(const struct neap_problem *p, const struct tiny *k)
{
	double best = optimum(k, p->tiers[0].staging), bound = neap_bound(p);
	totals.problems++;
	if (best < 0) {
		totals.large++;
		return;
	}
	if (bound > best * (1 + 1e-9)) {
		tell(p, k);
		fail_msg("bound %.17g above the optimum %g", bound, best);
	}
	if (best == INFINITY)
		check_least(p, k);
	for (int i = 0; neap_strategy_name(i); i++) {
		struct neap_plan plan = {.size = sizeof plan};
		const char *name = neap_strategy_name(i);
		assert_int_equal(neap_plan_make(&plan, p, name, NULL), 0);
		int last = strcmp(name, "auto") == 0;
		if (plan.feasible && !(plan.makespan >= best * (1 - 1e-9))) {
			tell(p, k);
			fail_msg("%s: %.17g below the optimum %g", name, plan.makespan, best);
		}
		if (plan.feasible)
			assert_true(near(simulated(p, &plan).makespan, plan.makespan));
		if (plan.feasible)
			assert_int_equal(verified(p, &plan).peak_bytes, plan.peak_bytes);
		if (!last || best == INFINITY)
			continue;
		totals.feasible++;
		if (!plan.feasible) {
			totals.auto_missing++;
			tell(p, k);
			fprintf(stderr, "# auto: %s; possible in %g\n", plan.why, best);
			continue;
		}
		double loss = best > 0 ? plan.makespan / best - 1 : 0;
		double gap = bound > 0 ? best / bound - 1 : 0;
		totals.auto_tight += loss < 1e-9;
		totals.bound_tight += gap < 1e-9;
		totals.loss += loss;
		totals.gap += gap;
		totals.worst_gap = fmax(totals.worst_gap, gap);
		if (loss > totals.worst_loss) {
			totals.worst_loss = loss;
			tell(p, k);
			fprintf(stderr, "# auto (%s) %g, optimum %g, bound %g\n", plan.chosen,
				plan.makespan, best, bound);
		}
	}
}

static int upto(struct random *r, int most)
{
	return (int)below(r, most + 1);
}

static struct tiny random_tiny(struct random *r, int steps_most)
{
	struct tiny k = {.steps = 1 + upto(r, steps_most - 1), .room = 1 << 20, .travel = 1};
	k.state = 1 + upto(r, 3);
	k.tape = uniform(r) < 0.1 ? 0 : 1 + upto(r, 5);
	k.f = uniform(r) < 0.1 ? 0 : 1 + upto(r, 3);
	k.r = uniform(r) < 0.1 ? upto(r, 3) : k.f + (uniform(r) < 0.5 ? 0 : upto(r, 3));
	/* Tapes are dropped then: too many ways for long chains. A record of 0 is not charged. */
	if (k.r < k.f && (k.steps > 3 || k.r == 0))
		k.r = k.f;
	k.b = uniform(r) < 0.1 ? 0 : 1 + upto(r, 5);
	if (uniform(r) < 0.3) {
		k.save = upto(r, 3);
		k.load = upto(r, 3);
	}
	if (uniform(r) < 0.15) {
		k.classic = uniform(r) < 0.3 ? 2 : 1;
		k.state = k.tape = 1;
		k.travel = 0;
		k.pool = upto(r, k.steps);
	} else {
		k.travel = uniform(r) < 0.75;
		k.pool = uniform(r) < 0.1 ? upto(r, (int)(k.tape + k.state))
			 : uniform(r) < 0.4
				 ? k.tape + (uniform(r) < 0.5) * k.state + upto(r, (int)k.state)
				 : k.tape + upto(r, (int)((k.steps - 1) * k.tape + k.state));
	}
	return k;
}

/* Of draws of its own: what else is drawn stays as it was. */
static int random_price(const struct random *r)
{
	struct random own = {r->seed + 50, r->n};
	return uniform(&own) < 0.4 ? 1 + upto(&own, 3) : 0;
}

static void report(const char *what)
{
	const struct totals *t = &totals;
	fprintf(stderr, "# %s: %d problems, %d feasible, %d refused, %d too large\n", what,
		t->problems, t->feasible, t->refused, t->large);
	fprintf(stderr, "# bound tight in %d, %.1f%% below on average, %.0f%% at most\n",
		t->bound_tight, 100 * t->gap / t->feasible, 100 * t->worst_gap);
	fprintf(stderr, "# auto optimal in %d, %.2f%% above on average, %.0f%% at most\n",
		t->auto_tight, 100 * t->loss / t->feasible, 100 * t->worst_loss);
}

static void alone(void **state)
{
	(void)state;
	struct random r = {test_seed(21), 0};
	totals = (struct totals){0};
	for (int i = 0; i < 150 * rounds; i++) {
		struct tiny k = random_tiny(&r, 7);
		k.price = random_price(&r);
		struct neap_problem p = problem_of(&k);
		check(&p, &k);
	}
	report("no tier");
	assert_int_equal(totals.auto_missing, 0);
	assert_true(totals.large == 0);
}

static void with_tier(void **state)
{
	(void)state;
	struct random r = {test_seed(22), 0};
	totals = (struct totals){0};
	for (int i = 0; i < 60 * rounds; i++) {
		struct tiny k = random_tiny(&r, 4 + (uniform(&r) < 0.3));
		uint64_t staging = uniform(&r) < 0.15 ? (uint64_t)upto(&r, 3) : 0;
		k.tier = 1;
		k.sync = uniform(&r) < 0.3;
		k.duplex = uniform(&r) < 0.5;
		if (uniform(&r) < 0.4)
			k.room = upto(&r, k.steps * (int)(k.state + k.tape));
		if (uniform(&r) < 0.5)
			k.out_byte = upto(&r, 2), k.in_byte = upto(&r, 2);
		else
			k.out_byte = k.in_byte = upto(&r, 1);
		if (uniform(&r) < 0.4)
			k.out_fixed = upto(&r, 5), k.in_fixed = upto(&r, 5);
		if (uniform(&r) < 0.3)
			k.lost = 1 + upto(&r, 1);
		if (uniform(&r) < 0.3)
			k.lost_fixed = 1 + upto(&r, 2);
		k.price = random_price(&r);
		struct neap_problem p = problem_of(&k);
		p.tiers[0].staging = k.classic ? 0 : staging;
		check(&p, &k);
	}
	report("one tier");
	assert_int_equal(totals.auto_missing, 0);
	assert_true(totals.large <= totals.problems / 20);
}

/*
 * Few states fit, and a transfer takes as long as several steps: what lies between plans and bound
 * is the bound's. Plans are near the optimum.
 */
static void small_memory(void **state)
{
	(void)state;
	totals = (struct totals){0};
	int steps_most = rounds > 4 ? 7 : 5; /* a step more takes four times as long */
	for (int i = 0; i < 3 * 3 * 4 * 2; i++) {
		struct tiny k = {.steps = steps_most,
			.tier = 1,
			.room = 1 << 20,
			.travel = 1,
			.duplex = 1,
			.f = 1,
			.r = 1};
		k.state = i % 3 == 0 ? 3 : 1;
		k.tape = i % 3 == 2 ? 3 : 1; /* 1/3, 1 and 3 states */
		k.pool = k.tape + k.state * (i / 3 % 3);
		k.out_fixed = k.in_fixed = (double[]){0, 1, 2, 4}[i / 9 % 4];
		k.out_byte = k.in_byte = 1;
		k.b = 1 + i / 36;
		struct neap_problem p = problem_of(&k);
		check(&p, &k);
	}
	report("small memory");
	assert_int_equal(totals.auto_missing, 0);
	assert_true(totals.loss < 0.01 * totals.feasible);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(alone),
		cmocka_unit_test(with_tier),
		cmocka_unit_test(small_memory),
	};
	struct tiny_search *x = &tiny_memory;
	rounds = argc > 1 ? atoi(argv[1]) : rounds;
	x->spots = malloc(TINY_SPOTS * sizeof *x->spots);
	x->next = malloc(TINY_SPOTS * sizeof *x->next);
	x->time = malloc(TINY_SPOTS * sizeof *x->time);
	x->done = malloc(TINY_SPOTS);
	x->table = malloc(2 * TINY_SPOTS * sizeof *x->table);
	int failed = !x->spots || !x->next || !x->time || !x->done || !x->table ||
		     cmocka_run_group_tests(tests, NULL, NULL);
	free(x->spots);
	free(x->next);
	free(x->time);
	free(x->done);
	free(x->table);
	return failed;
}
