/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counting rows of the lower bound (plan/bound/turn_levels.h, docs/lower-bound.md) against the
 * least forward executions after the turn (count_model.h), from what is held and on the tiers at
 * the turn and from the transfers that are left: for every configuration of tiny chains, for random
 * ones with tapes on the tier, and with a near tier.
 *
 *     test_bound_counts          what `make check` runs
 *     test_bound_counts all      every configuration of longer chains, and many more random ones
 */
#include "plan_test.h"
#include "count_model.h"
#include "plan/bound/turn_levels.h"

#define ABOUT 1e-9

static int all = 0;
static struct count_search search;

static struct totals {
	long cases, large, impossible, rows, met, estimates_false;
} totals;

/* What a row counts: tapes and states that are held, late states, and those of the far tier. */
struct counts {
	double forward; /* executions after the turn */
	double tapes, states, late, far_tapes, tape_writes, far, writes, reads;
};

static struct counts counts_of(const struct count_spot *s, int forward)
{
	struct counts c = {.forward = forward,
		.tapes = count_bits(s->tapes | s->near_tapes),
		.states = count_bits(s->held) + count_bits(s->near),
		.far_tapes = count_bits(s->far_tapes),
		.tape_writes = s->tape_writes,
		.far = count_bits(s->far),
		.writes = s->writes,
		.reads = s->reads};
	c.late = fmin(c.states, c.writes);
	return c;
}

/* By how much the left side of a row exceeds its right side; `late` as of neap__turn_level_row. */
static double excess(struct neap__turn_levels *x, struct neap__turn_level *v, int form, int64_t k,
	int late, const struct counts *c)
{
	struct neap__turn_row u = neap__turn_level_row(x, v, form, k, late);
	double right = u.constant + u.nm * c->tapes + u.nk * c->states + u.late * c->late;
	right += v->t * c->far_tapes + (v->t - 1) * c->tape_writes;
	if (form == NEAP__COUNT_READS)
		right += (v->q[0] - v->before) * c->far + v->before * c->reads;
	else
		right += v->sum * c->far + v->sum_before * c->writes;
	return v->t * x->steps - c->forward - right;
}

static void tell(const struct count_spot *s)
{
	const struct count_sizes *z = &search.size;
	fprintf(stderr,
		"# T=%d S=%d A=%d P=%d N=%d; held %x tapes %x far %x, tapes %x near %x, tapes %x; "
		"writes %d reads %d tape writes %d\n",
		s->left, z->state, z->tape, z->pool, z->near, s->held, s->tapes, s->far,
		s->far_tapes, s->near, s->near_tapes, s->writes, s->reads, s->tape_writes);
}

/* Every row of every level holds for a spot; one search. */
static void check(struct neap__turn_levels *x, const struct count_spot *s)
{
	int forward = count_least(&search, s), estimate_false = 0;
	totals.large += forward == -2;
	totals.impossible += forward == -1;
	if (forward < 0)
		return;
	struct counts c = counts_of(s, forward);
	totals.cases++;
	for (int i = 0; i < x->count; i++)
		for (int form = 0; form < NEAP__COUNT_FORMS; form++)
			for (int64_t k = -1; k <= x->level[i].last; k++) {
				struct neap__turn_level *v = &x->level[i];
				double over = excess(x, v, form, k, 1, &c);
				totals.rows++;
				totals.met += over > -ABOUT;
				if (over > ABOUT) {
					tell(s);
					fail_msg("t=%g form %d k=%lld: %d executions, %g more",
						v->t, form, (long long)k, forward, over);
				}
				estimate_false |= excess(x, v, form, k, 0, &c) > ABOUT;
			}
	totals.estimates_false += estimate_false;
}

static void levels_of(struct neap__turn_levels *x, int steps, struct count_sizes size)
{
	struct neap_chain c = {
		.steps = steps, .state = (uint64_t)size.state, .tape = (uint64_t)size.tape};
	search.size = size;
	assert_int_equal(neap__turn_levels_make(x, size.pool + size.near, &c), 0);
}

static void report(const char *what)
{
	fprintf(stderr,
		"# %s: %ld cases, %ld rows, %ld of them with equality; %ld cases impossible, %ld "
		"too "
		"large; rows without late states are false in %ld\n",
		what, totals.cases, totals.rows, totals.met, totals.impossible, totals.large,
		totals.estimates_false);
	totals = (struct totals){0};
}

/* All that can be held in addition to some sets of states on the tier, with every number of
 * transfers. */
static void every_configuration_of(int steps, struct count_sizes size)
{
	static const uint8_t far_sets[] = {0, 1, 2, 4, 5};
	struct neap__turn_levels x;
	int held_sets = 1;
	levels_of(&x, steps, size);
	for (int i = 0; i < steps; i++)
		held_sets *= 3;
	for (size_t f = 0; f < sizeof far_sets; f++)
		for (int n = 0; n < held_sets * 35; n++) {
			struct count_spot s = {.left = (uint8_t)steps,
				.live = COUNT_NO_LIVE,
				.far = far_sets[f],
				.writes = (uint8_t)(n / held_sets % 5),
				.reads = (uint8_t)(n / held_sets / 5)};
			for (int i = 0, rest = n % held_sets; i < steps; i++, rest /= 3) {
				s.held |= (uint8_t)((rest % 3 == 1) << i);
				s.tapes |= (uint8_t)((rest % 3 == 2) << i);
			}
			/* Each write is read. The first state is somewhere, or its tape is. */
			if (s.reads >= s.writes + count_bits(s.far) &&
				(s.held | s.tapes | s.far) & 1 && count_fits(&search, &s))
				check(&x, &s);
		}
	neap__turn_levels_free(&x);
}

static void every_configuration(void **state)
{
	static const struct {
		int steps;
		struct count_sizes size;
	} rows[] = {{4, {1, 1, 2, 0}}, {4, {1, 2, 3, 0}}, {4, {2, 1, 4, 0}}, {4, {2, 3, 4, 0}},
		{5, {1, 4, 4, 0}}, {5, {1, 2, 3, 0}}, {5, {1, 2, 4, 0}}, {5, {1, 3, 4, 0}},
		{5, {2, 3, 5, 0}}, {5, {2, 1, 3, 0}}, {5, {3, 2, 6, 0}}};
	(void)state;
	for (size_t i = 0; i < (all ? sizeof rows / sizeof rows[0] : 2); i++)
		every_configuration_of(rows[i].steps, rows[i].size);
	assert_true(totals.cases > 1000 && totals.large == 0);
	report("every configuration");
}

/* Each state or tape is put into one of the sets, or nowhere. */
static struct count_spot random_spot(struct random *r, int steps, int near)
{
	struct count_spot s = {.left = (uint8_t)steps, .live = COUNT_NO_LIVE};
	for (int i = 0; i < steps; i++) {
		uint8_t bit = (uint8_t)(1 << i);
		s.held |= uniform(r) < 0.4 ? bit : 0;
		s.far |= uniform(r) < 0.2 ? bit : 0;
		s.near |= near && uniform(r) < 0.3 ? bit : 0;
		double where = uniform(r);
		s.tapes |= where < 0.2 ? bit : 0;
		s.far_tapes |= where > 0.9 ? bit : 0;
		s.near_tapes |= near && where > 0.3 && where < 0.4 ? bit : 0;
	}
	if (!((s.held | s.far | s.near | s.tapes) & 1))
		s.held |= 1;
	s.writes = (uint8_t)below(r, 5);
	s.reads = (uint8_t)below(r, 8);
	s.tape_writes = (uint8_t)maybe(r, 0.5, (double)below(r, 3));
	return s;
}

static void random_ones(int rounds, int near, const char *what)
{
	struct random r = {test_seed(near ? 72 : 71), 0};
	for (int i = 0; i < rounds; i++) {
		int steps = 4 + (int)below(&r, near ? 1 + all : 2 + all);
		struct count_sizes size = {
			.state = 1 + (int)below(&r, 3), .tape = 1 + (int)below(&r, 5)};
		size.pool = size.tape + (int)below(&r, (near ? 2 : 4) * size.state + size.tape);
		size.near = near ? (int)below(&r, 2 * size.state + size.tape) : 0;
		struct neap__turn_levels x;
		levels_of(&x, steps, size);
		for (int tries = 0; tries < 100; tries++) {
			struct count_spot s = random_spot(&r, steps, near);
			if (!count_fits(&search, &s))
				continue;
			check(&x, &s);
			break;
		}
		neap__turn_levels_free(&x);
	}
	assert_true(totals.cases > rounds / 4);
	report(what);
}

static void random_configurations(void **state)
{
	(void)state;
	random_ones(all ? 20000 : 100, 0, "random");
}

/* Fast memory and a near tier are one pool of both sizes, whose transfers to the far tier count. */
static void near_tiers(void **state)
{
	(void)state;
	random_ones(all ? 5000 : 40, 1, "near tier");
}

/*
 * Two configurations that show what the term of late states is for, and what counts as late. In
 * the second no held state is written: the states that are written were computed from held ones.
 */
static void late_states(void **state)
{
	struct neap__turn_levels x;
	struct count_spot written = {
		.left = 5, .live = COUNT_NO_LIVE, .held = 1 | 4, .writes = 3, .reads = 4};
	struct count_spot moved = {
		.left = 6, .live = COUNT_NO_LIVE, .held = 1 | 2 | 16 | 32, .writes = 2, .reads = 2};
	(void)state;
	levels_of(&x, 5, (struct count_sizes){1, 4, 4, 0});
	assert_int_equal(count_least(&search, &written), 8);
	check(&x, &written);
	assert_int_equal(totals.estimates_false, 1);
	neap__turn_levels_free(&x);
	levels_of(&x, 6, (struct count_sizes){1, 3, 4, 0});
	struct counts c = counts_of(&moved, 10);
	assert_true(count_least(&search, &moved) <= 10);
	assert_true(x.level[2].t == 3);
	assert_true(excess(&x, &x.level[2], NEAP__COUNT_WRITES, 2, 1, &c) <= 0);
	c.late = 0;
	assert_true(excess(&x, &x.level[2], NEAP__COUNT_WRITES, 2, 1, &c) > 0);
	neap__turn_levels_free(&x);
	totals = (struct totals){0};
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(late_states),
		cmocka_unit_test(every_configuration),
		cmocka_unit_test(random_configurations),
		cmocka_unit_test(near_tiers),
	};
	(void)argv;
	all = argc > 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
