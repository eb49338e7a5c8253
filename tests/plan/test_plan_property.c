/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must hold of every plan, on random problems: its schedule is legal and within
 * the budget, its numbers are those of verify and simulate, `auto` is never worse than
 * another, the bound never above any; and of every refusal: the budget that it names
 * works, one less does not, and where it names none no budget does.
 *
 *     test_plan_property                     what `make check` runs
 *     test_plan_property all                 twice as many
 *     test_plan_property wide [N [FIRST]]    problems FIRST.. of N of all kinds (wide.h)
 *
 * NEAP_SEED repeats a run; problem i of a seed is the same whatever N and FIRST are.
 */
#include "wide.h"

static int problem_number;

static void print_problem(const struct neap_problem *p)
{
	const struct neap_chain *c = &p->chain;
	fprintf(stderr,
		"# problem %d: T=%lld S=%llu A=%llu max=%llu adj=%llu live=%llu f=%g r=%g b=%g "
		"sw=%g sr=%g "
		"flags=%u join=%lld log=%llu rho=%g call=%g M=%llu\n",
		problem_number, (long long)c->steps, (unsigned long long)c->state,
		(unsigned long long)c->tape, (unsigned long long)c->tape_max,
		(unsigned long long)c->adjoint, (unsigned long long)c->live, c->advance, c->record,
		c->backward, c->slot_write, c->slot_read, c->flags, (long long)c->join,
		(unsigned long long)c->log, c->replay, c->call, (unsigned long long)p->memory);
	for (int i = 0; i < p->ntiers; i++)
		fprintf(stderr,
			"# tier cap=%llu w=%g r=%g wf=%g rf=%g staging=%llu flags=%u "
			"cpu=%g cpu_fixed=%g\n",
			(unsigned long long)p->tiers[i].capacity, p->tiers[i].write_rate,
			p->tiers[i].read_rate, p->tiers[i].write_fixed, p->tiers[i].read_fixed,
			(unsigned long long)p->tiers[i].staging, p->tiers[i].flags, p->tiers[i].cpu,
			p->tiers[i].cpu_fixed);
}

/* Each kind of finding once in full; how often it came at the end. */
#define FINDINGS 64
static struct finding {
	const char *strategy, *what;
	int line;
	int64_t count;
} findings[FINDINGS];
static int nfindings;

static void found(const struct neap_problem *p, const struct neap_plan *plan, const char *what,
	const char *detail, int line)
{
	int i = 0;
	while (i < nfindings &&
		(findings[i].line != line || strcmp(findings[i].strategy, plan->strategy) != 0))
		i++;
	if (i == FINDINGS)
		return;
	if (i < nfindings) {
		findings[i].count++;
		return;
	}
	findings[nfindings++] = (struct finding){plan->strategy, what, line, 1};
	print_problem(p);
	fprintf(stderr,
		"# %s (%s), chunk %lld, R %lld, k %lld, interval %lld, period %lld, tail %lld: "
		"%s: %s%s\n",
		plan->strategy, plan->chosen, (long long)plan->params.chunk,
		(long long)plan->params.remote_chunk, (long long)plan->params.checkpoints,
		(long long)plan->params.interval, (long long)plan->params.period,
		(long long)plan->params.tail, what, detail, plan->why);
}

static void no_findings(void)
{
	for (int i = 0; i < nfindings; i++)
		fprintf(stderr, "# %6lld times %s: %s\n", (long long)findings[i].count,
			findings[i].strategy, findings[i].what);
	int n = nfindings;
	nfindings = 0;
	assert_int_equal(n, 0);
}

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			found(p, plan, #condition, "", __LINE__);                                  \
	} while (0)

static void check_counts(const struct neap_problem *p, const struct neap_plan *plan)
{
	struct neap_schedule *s;
	struct neap_verdict v = {.size = sizeof v};
	if (neap_schedule_open(&s, p, plan) < 0) {
		found(p, plan, "open", neap_detail(), __LINE__);
		return;
	}
	if (neap_verify(&v, p, s) < 0)
		found(p, plan, "verify", neap_detail(), __LINE__);
	neap_schedule_close(s);
	char both[80];
	snprintf(both, sizeof both, "verified %llu, planned %llu ",
		(unsigned long long)v.peak_bytes, (unsigned long long)plan->peak_bytes);
	if (v.peak_bytes != plan->peak_bytes)
		found(p, plan, "peak_bytes", both, __LINE__);
	/* Long plans of blocks, of which a part was run, are given the whole budget. */
	CHECK(v.arena_bytes == plan->arena_bytes ||
		(v.actions > 1000000 && v.arena_bytes < plan->arena_bytes));
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
	char both[80];
	snprintf(both, sizeof both, "simulated %.17g, planned %.17g ", m.makespan, plan->makespan);
	if (!near(m.makespan, plan->makespan))
		found(p, plan, "makespan", both, __LINE__);
	CHECK(fabs(m.stall - plan->stall) <= 1e-9 * m.makespan);
	CHECK(near(m.makespan, m.advance + m.record + m.backward + m.copies + m.lost + m.stall));
	CHECK(plan->bound <= plan->makespan * (1 + 1e-12));
	for (int i = 0; i < p->ntiers; i++) {
		CHECK(m.tiers[i].written == plan->tiers[i].written);
		CHECK(m.tiers[i].read == plan->tiers[i].read);
	}
}

/* A budget that every schedule of the problem has room in. */
static uint64_t plenty(const struct neap_problem *p)
{
	const struct neap_chain *c = &p->chain;
	uint64_t tape = c->tape_max > c->tape ? c->tape_max : c->tape;
	uint64_t all =
		(c->state + tape) * (uint64_t)(c->steps + c->join + 2) + c->adjoint + c->live;
	for (int i = 0; i < p->ntiers; i++)
		all += p->tiers[i].staging;
	return all > p->memory ? all : p->memory;
}

static int feasible_with(const struct neap_problem *p, const struct neap_plan *plan,
	const struct neap_params *fixed, uint64_t memory)
{
	struct neap_problem other = *p;
	struct neap_plan again = {.size = sizeof again};
	other.memory = memory;
	CHECK(neap_plan_make(&again, &other, plan->strategy, fixed) == 0);
	return again.feasible;
}

static void check_refusal(
	const struct neap_problem *p, const struct neap_plan *plan, const struct neap_params *fixed)
{
	CHECK(plan->why[0] && plan->makespan == 0 && !plan->peak_bytes && !plan->slots);
	CHECK(plan->least_bytes == 0 || plan->least_bytes > p->memory);
	if (plan->least_bytes == 0) {
		CHECK(!feasible_with(p, plan, fixed, plenty(p)));
		return;
	}
	CHECK(feasible_with(p, plan, fixed, plan->least_bytes));
	CHECK(!feasible_with(p, plan, fixed, plan->least_bytes - 1));
}

/* How often each strategy planned, and why it did not, for the log. */
#define REASONS 12
static struct tally {
	int64_t planned, refused;
	double actions;
	struct {
		int64_t count;
		char why[100];
	} reasons[REASONS];
} tally[32];

static void count_refusal(struct tally *t, const struct neap_plan *plan)
{
	char why[100] = "";
	size_t n = 0;
	for (const char *c = plan->why; *c && n < sizeof why - 1; c++)
		if (*c < '0' || *c > '9')
			why[n++] = *c;
		else if (n == 0 || why[n - 1] != '#')
			why[n++] = '#';
	t->refused++;
	for (int i = 0; i < REASONS; i++) {
		if (t->reasons[i].count && i < REASONS - 1 && strcmp(t->reasons[i].why, why) != 0)
			continue;
		memcpy(t->reasons[i].why, why, sizeof why);
		t->reasons[i].count++;
		return;
	}
}

static void print_tally(void)
{
	for (int n = 0; neap_strategy_name(n); n++) {
		fprintf(stderr, "# %-12s %6lld plans, %6lld refused\n", neap_strategy_name(n),
			(long long)tally[n].planned, (long long)tally[n].refused);
		for (int i = 0; i < REASONS && tally[n].reasons[i].count; i++)
			fprintf(stderr, "#     %6lld %s\n", (long long)tally[n].reasons[i].count,
				tally[n].reasons[i].why);
	}
	memset(tally, 0, sizeof tally);
}

static struct neap_params random_params(struct random *r, int64_t steps)
{
	struct neap_params fixed = {0};
	if (uniform(r) < 0.3)
		fixed.chunk = 1 + below(r, steps + 2);
	if (uniform(r) < 0.2)
		fixed.checkpoints = 1 + below(r, steps + 2);
	if (uniform(r) < 0.2)
		fixed.remote_chunk = 1 + below(r, steps + 2);
	return fixed;
}

static void check_problem(const struct neap_problem *p, const struct neap_params *fixed)
{
	struct neap_plan plans[32], *plan;
	int n = 0, feasible = 0;
	for (; neap_strategy_name(n); n++) {
		plan = &plans[n];
		plan->size = sizeof *plan;
		int rc = neap_plan_make(plan, p, neap_strategy_name(n), fixed);
		if (rc < 0) {
			print_problem(p);
			fail_msg("%s: %s", neap_strategy_name(n), neap_detail());
		}
		feasible |= plan->feasible;
		if (!plan->feasible) {
			count_refusal(&tally[n], plan);
			check_refusal(p, plan, fixed);
			continue;
		}
		tally[n].planned++;
		if (p->chain.join)
			continue; /* two live states: there are no actions for them */
		check_counts(p, plan);
		check_times(p, plan);
	}
	plan = &plans[n - 1];
	CHECK(plan->feasible == feasible);
	for (int i = 0; i < n; i++)
		if (plans[i].feasible)
			CHECK(plan->makespan <= plans[i].makespan * (1 + 1e-11));
	struct neap_params free = {.effort = fixed->effort};
	if (memcmp(&free, fixed, sizeof free) == 0 && !p->chain.join)
		CHECK(plan->feasible == (p->memory >= neap_problem_least(p)));
}

static int whole = 1; /* 3: three times as many problems */

static void short_chains(void **state)
{
	(void)state;
	struct random r = {test_seed(1), 0};
	for (int i = 0; i < 2000 * whole; i++) {
		problem_number = i;
		struct neap_problem p = random_problem(&r, 300);
		struct neap_params fixed = random_params(&r, p.chain.steps);
		check_problem(&p, &fixed);
	}
	no_findings();
}

static void medium_chains(void **state)
{
	(void)state;
	struct random r = {test_seed(2), 0};
	for (int i = 0; i < 130 * whole; i++) {
		problem_number = i;
		struct neap_problem p = random_problem(&r, 20000);
		struct neap_params fixed = random_params(&r, p.chain.steps);
		check_problem(&p, &fixed);
	}
	no_findings();
}

/* The parameters chosen against every pair there is. */
static void best_parameters(void **state)
{
	static const char *const strategies[] = {"standard", "remote", "hierarchical", "double"};
	(void)state;
	struct random r = {test_seed(6), 0};
	double sum = 0, worst = 0;
	int count = 0;
	for (int i = 0; i < 100 * whole; i++) {
		struct neap_problem p = random_problem(&r, 60);
		if (p.chain.flags & NEAP_CHAIN_CLASSIC || p.ntiers == 0 || p.chain.steps < 1 ||
			p.chain.steps > 60)
			continue;
		for (int n = 0; n < 4; n++) {
			struct neap_plan plan = {.size = sizeof plan},
					 other = {.size = sizeof other};
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
	assert_true(count > 60);
	assert_true(sum / count < 0.005 && worst < 0.1);
}

static int wide_count = 120, wide_first;

/* Every parameter there is, one at a time or a few. */
static struct neap_params wide_params(struct random *r, int64_t steps)
{
	struct neap_params fixed = {.effort = chance(r, 0.97) ? 60 : 0};
	int64_t *const rows[] = {&fixed.chunk, &fixed.checkpoints, &fixed.remote_chunk,
		&fixed.interval, &fixed.period, &fixed.tail, &fixed.kept_tapes};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (chance(r, 0.3))
			*rows[i] = 1 + below(r, chance(r, 0.5) ? steps + 2 : 10);
	return fixed;
}

static void every_kind(void **state)
{
	(void)state;
	uint64_t seed = test_seed(31);
	for (int i = wide_first; i < wide_first + wide_count; i++) {
		struct random r = {seed, (uint64_t)i << 32};
		struct neap_problem p = wide_problem(&r);
		struct neap_params fixed = {.effort = chance(&r, 0.97) ? 60 : 0};
		if (chance(&r, 0.2))
			fixed = wide_params(&r, p.chain.steps);
		problem_number = i;
		check_problem(&p, &fixed);
	}
	print_tally();
	no_findings();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest wide[] = {cmocka_unit_test(every_kind)};
	if (argc > 1 && strcmp(argv[1], "wide") == 0) {
		wide_count = argc > 2 ? atoi(argv[2]) : 20000;
		wide_first = argc > 3 ? atoi(argv[3]) : 0;
		return cmocka_run_group_tests(wide, NULL, NULL);
	}
	if (argc > 1 && strcmp(argv[1], "all") == 0)
		whole = 3;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_chains),
		cmocka_unit_test(medium_chains),
		cmocka_unit_test(every_kind),
		cmocka_unit_test(best_parameters),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
