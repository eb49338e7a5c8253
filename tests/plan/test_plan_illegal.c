/* SPDX-License-Identifier: Apache-2.0 */
/* verify: every rule of plan.h has a case that breaks it, and random mutations. */
#include "plan_test.h"

struct list {
	const struct neap_action *actions;
	int64_t count, at;
};

static int list_next(void *user, struct neap_action *action)
{
	struct list *list = user;
	if (list->at == list->count)
		return 0;
	*action = list->actions[list->at++];
	return 1;
}

static int verify_list(const struct neap_problem *p, const struct neap_action *actions,
	int64_t count, struct neap_verdict *v)
{
	struct list list = {actions, count, 0};
	struct neap_schedule *s;
	struct neap_verdict unused = {.size = sizeof unused};
	assert_int_equal(neap_schedule_wrap(&s, list_next, NULL, &list), 0);
	int rc = neap_verify(v ? v : &unused, p, s);
	neap_schedule_close(s);
	return rc;
}

#define ADV(a, b)                                                                                  \
	{                                                                                          \
		.kind = NEAP_ADVANCE, .t0 = a, .t1 = b                                             \
	}
#define REC(a, b)                                                                                  \
	{                                                                                          \
		.kind = NEAP_RECORD, .t0 = a, .t1 = b                                              \
	}
#define BWD(a, b)                                                                                  \
	{                                                                                          \
		.kind = NEAP_BACKWARD, .t0 = a, .t1 = b                                            \
	}
#define TURN                                                                                       \
	{                                                                                          \
		.kind = NEAP_TURN                                                                  \
	}
#define SAVE(n, t)                                                                                 \
	{                                                                                          \
		.kind = NEAP_SAVE, .slot = n, .t0 = t                                              \
	}
#define LOAD(n, t)                                                                                 \
	{                                                                                          \
		.kind = NEAP_LOAD, .slot = n, .t0 = t                                              \
	}
#define DROP(n, t)                                                                                 \
	{                                                                                          \
		.kind = NEAP_DROP, .slot = n, .t0 = t                                              \
	}
#define TAPE(what, a, b, where, with)                                                              \
	{                                                                                          \
		.kind = NEAP_##what, .payload = NEAP_TAPE, .tier = 1, .t0 = a, .t1 = b,            \
		.place = where, .ticket = with                                                     \
	}
#define PUT(n, t, where, with)                                                                     \
	{                                                                                          \
		.kind = NEAP_PUT, .tier = 1, .slot = n, .t0 = t, .place = where, .ticket = with    \
	}
#define GET(n, t, where, with)                                                                     \
	{                                                                                          \
		.kind = NEAP_GET, .tier = 1, .slot = n, .t0 = t, .place = where, .ticket = with    \
	}
#define WAIT(with)                                                                                 \
	{                                                                                          \
		.kind = NEAP_WAIT, .ticket = with                                                  \
	}
#define FORGET(where, t)                                                                           \
	{                                                                                          \
		.kind = NEAP_FORGET, .tier = 1, .place = where, .t0 = t                            \
	}
#define END                                                                                        \
	{                                                                                          \
		.kind = 255                                                                        \
	}
#define L NEAP_LIVE

/* T = 4; `says` is part of the detail line, NULL: legal. */
static const struct {
	const char *name, *says;
	struct neap_action actions[16];
} cases[] = {
	{"store all", NULL, {REC(0, 4), TURN, BWD(0, 4), END}},
	{"in pieces", NULL, {REC(0, 2), REC(2, 4), TURN, BWD(2, 4), BWD(0, 2), END}},
	{"two at once", NULL, {REC(0, 2), REC(2, 4), TURN, BWD(0, 4), END}},
	{"a slot", NULL,
		{SAVE(0, 0), ADV(0, 2), REC(2, 4), TURN, BWD(2, 4), LOAD(0, 0), REC(0, 2),
			BWD(0, 2), END}},
	{"a place", NULL,
		{PUT(L, 0, 0, 0), WAIT(0), ADV(0, 2), REC(2, 4), TURN, GET(L, 0, 0, 0), BWD(2, 4),
			WAIT(0), FORGET(0, 0), REC(0, 2), BWD(0, 2), END}},
	{"read while written", NULL,
		{SAVE(0, 0), PUT(0, 0, 0, 0), ADV(0, 2), REC(2, 4), TURN, GET(L, 0, 0, 1),
			BWD(2, 4), WAIT(1), WAIT(0), REC(0, 2), BWD(0, 2), END}},
	{"load into nothing", NULL, {SAVE(0, 0), REC(0, 4), TURN, BWD(0, 4), LOAD(0, 0), END}},

	{"nothing", "without a turn", {END}},
	{"no turn", "before the turn", {REC(0, 4), BWD(0, 4), END}},
	{"early turn", "needed at 4", {REC(0, 3), TURN, END}},
	{"two turns", "second turn", {REC(0, 4), TURN, TURN, END}},
	{"no backward", "adjoint at 4", {REC(0, 4), TURN, END}},
	{"half a backward", "adjoint at 2", {REC(0, 2), REC(2, 4), TURN, BWD(2, 4), END}},
	{"split record", "whole records", {REC(0, 4), TURN, BWD(2, 4), BWD(0, 2), END}},
	{"no tape", "whole records", {ADV(0, 4), TURN, BWD(0, 4), END}},
	{"reversed twice", "adjoint is at 0",
		{REC(0, 2), REC(2, 4), TURN, BWD(2, 4), BWD(0, 2), BWD(0, 2), END}},
	{"wrong end", "adjoint is at 4", {REC(0, 2), REC(2, 4), TURN, BWD(0, 2), END}},
	{"recorded twice", "there already", {SAVE(0, 0), REC(0, 2), LOAD(0, 0), REC(0, 2), END}},
	{"backwards range", "not within", {ADV(2, 1), END}},
	{"empty range", "not within", {ADV(0, 0), END}},
	{"beyond the end", "not within", {REC(0, 5), END}},
	{"before the start", "not within", {ADV(-1, 1), END}},
	{"advance from elsewhere", "live state is at 0", {ADV(1, 2), END}},
	{"record from elsewhere", "live state is at 0", {REC(1, 2), END}},
	{"live after backward", "undefined",
		{REC(0, 2), REC(2, 4), TURN, BWD(2, 4), SAVE(0, 4), END}},
	{"save elsewhere", "live state is at 0", {SAVE(0, 1), END}},
	{"save over", "in use", {SAVE(0, 0), SAVE(0, 0), END}},
	{"save nowhere", "no slot", {SAVE(-2, 0), END}},
	{"load empty", "is empty", {LOAD(0, 0), END}},
	{"load other", "holds step 0", {SAVE(0, 0), LOAD(0, 1), END}},
	{"load dropped", "is empty", {SAVE(0, 0), DROP(0, 0), LOAD(0, 0), END}},
	{"drop empty", "is empty", {DROP(3, 0), END}},
	{"drop other", "holds step 0", {SAVE(0, 0), DROP(0, 1), END}},
	{"drop while leaving", "still leaving", {SAVE(0, 0), PUT(0, 0, 0, 0), DROP(0, 0), END}},
	{"advance while leaving", "still leaving", {PUT(L, 0, 0, 0), ADV(0, 1), END}},
	{"record while leaving", "still leaving", {PUT(L, 0, 0, 0), REC(0, 1), END}},
	{"load while leaving", "still leaving", {SAVE(0, 0), PUT(L, 0, 0, 0), LOAD(0, 0), END}},
	{"get over leaving", "still leaving", {PUT(L, 0, 0, 0), GET(L, 0, 0, 1), END}},
	{"backward while leaving", "still leaving",
		{REC(0, 4), TURN, PUT(L, 4, 0, 0), BWD(0, 4), END}},
	{"put wrong step", "live state is at 0", {PUT(L, 1, 0, 0), END}},
	{"put empty slot", "is empty", {PUT(0, 0, 0, 0), END}},
	{"put over a place", "in use", {PUT(L, 0, 0, 0), WAIT(0), PUT(L, 0, 0, 0), END}},
	{"put nowhere", "no place", {PUT(L, 0, -1, 0), END}},
	{"put beyond capacity", "capacity", {PUT(L, 0, 8, 0), END}},
	{"get nothing", "does not hold", {GET(L, 0, 0, 0), END}},
	{"get wrong step", "does not hold", {PUT(L, 0, 0, 0), WAIT(0), GET(L, 1, 0, 0), END}},
	{"get forgotten", "does not hold",
		{PUT(L, 0, 0, 0), WAIT(0), FORGET(0, 0), GET(L, 0, 0, 0), END}},
	{"get into a slot in use", "in use",
		{SAVE(0, 0), PUT(L, 0, 0, 0), WAIT(0), GET(0, 0, 0, 0), END}},
	{"use while arriving", "still arriving",
		{PUT(L, 0, 0, 0), WAIT(0), GET(L, 0, 0, 0), REC(0, 1), END}},
	{"load while arriving", "still arriving",
		{PUT(L, 0, 0, 0), WAIT(0), GET(0, 0, 0, 0), LOAD(0, 0), END}},
	{"load over arriving", "still arriving",
		{SAVE(0, 0), PUT(L, 0, 0, 0), WAIT(0), GET(L, 0, 0, 0), LOAD(0, 0), END}},
	{"get over arriving", "still arriving",
		{PUT(L, 0, 0, 0), WAIT(0), GET(L, 0, 0, 0), GET(L, 0, 0, 1), END}},
	{"turn while arriving", "still arriving",
		{PUT(L, 0, 0, 0), WAIT(0), REC(0, 4), GET(L, 0, 0, 0), TURN, END}},
	{"ticket twice", "ticket 0 is in flight",
		{SAVE(0, 0), PUT(0, 0, 0, 0), PUT(0, 0, 1, 0), END}},
	{"ticket too large", "no ticket", {PUT(L, 0, 0, NEAP_TICKETS), END}},
	{"ticket below 0", "no ticket", {PUT(L, 0, 0, -1), END}},
	{"wait for nothing", "not in flight", {WAIT(0), END}},
	{"wait twice", "not in flight", {PUT(L, 0, 0, 0), WAIT(0), WAIT(0), END}},
	{"never waited", "not waited for",
		{SAVE(0, 0), PUT(0, 0, 0, 0), REC(0, 4), TURN, BWD(0, 4), END}},
	{"forget nothing", "does not hold", {FORGET(0, 0), END}},
	{"forget other", "does not hold", {PUT(L, 0, 0, 0), WAIT(0), FORGET(0, 1), END}},
	{"forget in flight", "in flight", {PUT(L, 0, 0, 0), FORGET(0, 0), END}},
	{"no such tier", "no tier", {{.kind = NEAP_PUT, .tier = 2, .slot = L}, END}},
	{"tier 0", "no tier", {{.kind = NEAP_GET, .tier = 0, .slot = L}, END}},
	{"no such kind", "unknown", {{.kind = NEAP_ACTION_KINDS}, END}},
	{"logs where there are none", "no logs",
		{REC(0, 1), {.kind = NEAP_PUT, .payload = NEAP_LOG, .tier = 1, .t1 = 1}, END}},
	{"tapes out and back", NULL,
		{REC(0, 2), TAPE(PUT, 0, 2, 0, 0), REC(2, 4), TURN, WAIT(0), BWD(2, 4),
			TAPE(GET, 0, 2, 0, 0), WAIT(0), TAPE(FORGET, 0, 2, 0, 0), BWD(0, 2), END}},
	{"no tapes", "not there", {REC(0, 1), TAPE(PUT, 1, 2, 0, 0), END}},
	{"part of a record", "not there", {REC(0, 2), TAPE(PUT, 0, 1, 0, 0), END}},
	{"tapes beyond the chain", "range", {REC(0, 2), TAPE(PUT, 0, 9, 0, 0), END}},
	{"tapes sent twice", "still leaving",
		{REC(0, 2), TAPE(PUT, 0, 2, 0, 0), TAPE(PUT, 0, 2, 1, 1), END}},
	{"tapes reversed while leaving", "still leaving",
		{REC(0, 4), TURN, TAPE(PUT, 0, 4, 0, 0), BWD(0, 4), END}},
	{"tapes that left", "not there",
		{REC(0, 4), TURN, TAPE(PUT, 0, 4, 0, 0), WAIT(0), BWD(0, 4), END}},
	{"tapes that arrive", "not there",
		{REC(0, 4), TURN, TAPE(PUT, 0, 4, 0, 0), WAIT(0), TAPE(GET, 0, 4, 0, 0), BWD(0, 4),
			END}},
	{"tapes there and got", "there already",
		{REC(0, 4), TURN, TAPE(PUT, 0, 4, 0, 0), TAPE(GET, 0, 4, 0, 1), END}},
	{"recorded while arriving", "still arriving",
		{SAVE(0, 0), REC(0, 4), TURN, TAPE(PUT, 0, 4, 0, 0), WAIT(0), TAPE(GET, 0, 4, 0, 0),
			LOAD(0, 0), REC(0, 2), END}},
	{"half a tape record", "does not hold",
		{REC(0, 4), TURN, TAPE(PUT, 0, 4, 0, 0), WAIT(0), TAPE(GET, 0, 2, 0, 0), END}},
	{"a state where tapes are", "does not hold",
		{REC(0, 4), TAPE(PUT, 0, 4, 0, 0), WAIT(0), GET(L, 0, 0, 0), END}},
	{"tape place twice", "in use",
		{REC(0, 2), TAPE(PUT, 0, 2, 0, 0), REC(2, 4), TAPE(PUT, 2, 4, 0, 1), END}},
	{"tapes beyond capacity", "capacity", {REC(0, 4), TAPE(PUT, 0, 4, 2, 0), END}},
	{"tapes forgotten in flight", "in flight",
		{REC(0, 2), TAPE(PUT, 0, 2, 0, 0), TAPE(FORGET, 0, 2, 0, 0), END}},
};

static void every_rule(void **state)
{
	(void)state;
	struct neap_problem p = unit_problem(4, 100);
	add_tier(&p, 8, 1, 0); /* 8 states, or two records of four tapes */
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		int64_t count = 0;
		while (cases[i].actions[count].kind != 255)
			count++;
		int rc = verify_list(&p, cases[i].actions, count, NULL);
		if (!cases[i].says && rc < 0)
			fail_msg("%s: refused: %s", cases[i].name, neap_detail());
		if (cases[i].says && rc != NEAP_EILLEGAL)
			fail_msg("%s: not found out", cases[i].name);
		if (cases[i].says && !strstr(neap_detail(), cases[i].says))
			fail_msg("%s: \"%s\" does not say \"%s\"", cases[i].name, neap_detail(),
				cases[i].says);
	}
}

/* The layout's peak: slots are packed, gaps under the topmost tape count. */
static void peaks(void **state)
{
	(void)state;
	struct neap_problem p = unit_problem(4, 100);
	struct neap_verdict v = {.size = sizeof v};
	static const struct neap_action high[] = {
		SAVE(5, 0), REC(0, 2), REC(2, 4), TURN, BWD(2, 4), DROP(5, 0), BWD(0, 2)};
	p.chain.adjoint = 1000;
	p.chain.tape = 10;
	p.chain.tape_max = 17;
	assert_int_equal(verify_list(&p, high, 7, &v), 0);
	assert_int_equal(v.slots, 6);
	assert_int_equal(v.peak_bytes, 1000 + 1 + 1 + 40);
	assert_int_equal(v.arena_bytes, v.peak_bytes + 7);
	assert_int_equal(v.record_steps, 4);
	assert_int_equal(v.backward_steps, 4);
	assert_int_equal(v.actions, 7);

	/* Where tapes travel, those that are there count: two chunks of three. */
	static const struct neap_action away[] = {REC(0, 1), TAPE(PUT, 0, 1, 0, 0), REC(1, 2),
		TAPE(PUT, 1, 2, 1, 1), WAIT(0), REC(2, 4), WAIT(1), TURN, TAPE(GET, 1, 2, 1, 0),
		BWD(2, 4), WAIT(0), BWD(1, 2), TAPE(GET, 0, 1, 0, 1), WAIT(1), BWD(0, 1)};
	add_tier(&p, 100, 1, 0);
	assert_int_equal(verify_list(&p, away, 15, &v), 0);
	assert_int_equal(v.peak_bytes, 1000 + 1 + 30);
	assert_int_equal(v.tiers[0].written, 20);
	assert_int_equal(v.tiers[0].read, 20);
	assert_int_equal(v.tiers[0].peak_bytes, 20);
	p.chain.flags = NEAP_CHAIN_TAPES_STAY;
	assert_int_equal(verify_list(&p, away, 15, &v), NEAP_EILLEGAL);
}

static struct neap_action *collected(
	const struct neap_problem *p, const struct neap_plan *plan, int64_t *count)
{
	struct neap_schedule *s;
	int64_t room = 1 << 14;
	struct neap_action *list = calloc((size_t)room, sizeof *list);
	*count = 0;
	assert_int_equal(neap_schedule_open(&s, p, plan), 0);
	while (neap_schedule_next(s, &list[*count]) > 0)
		assert_true(++*count < room);
	neap_schedule_close(s);
	return list;
}

static int has_slot(int kind)
{
	return kind == NEAP_SAVE || kind == NEAP_LOAD || kind == NEAP_DROP || kind == NEAP_PUT ||
	       kind == NEAP_GET;
}

static int moves(int kind)
{
	return kind == NEAP_PUT || kind == NEAP_GET;
}

static int has_range(int kind)
{
	return kind == NEAP_ADVANCE || kind == NEAP_RECORD || kind == NEAP_BACKWARD;
}

/* A state that is saved and never used: `online` keeps x_0 whatever comes. */
static int is_idle_save(const struct neap_action *list, int64_t count, int64_t i)
{
	if (list[i].kind != NEAP_SAVE)
		return 0;
	for (int64_t j = i + 1; j < count; j++)
		if (has_slot(list[j].kind) && list[j].payload == NEAP_STATE &&
			list[j].slot == list[i].slot)
			return 0;
	return 1;
}

/*
 * Mutation m of action i: 0 drop, 1 repeat, 2.. alter a field. 0 where it does not
 * apply or leaves the schedule legal (an unneeded DROP, a repeated LOAD).
 */
static int mutate(struct neap_action *to, int64_t *count, int64_t i, int m)
{
	int kind = to[i].kind, idle = is_idle_save(to, *count, i);
	switch (m) {
	case 0:
		if (kind == NEAP_DROP || kind == NEAP_FORGET || idle)
			return 0;
		memmove(to + i, to + i + 1, (size_t)(*count - i - 1) * sizeof *to);
		--*count;
		return 1;
	case 1:
		if (kind == NEAP_LOAD)
			return 0;
		memmove(to + i + 1, to + i, (size_t)(*count - i) * sizeof *to);
		++*count;
		return 1;
	case 2:
		to[i].t0++;
		return kind != NEAP_TURN && kind != NEAP_WAIT;
	case 3:
		to[i].t0--;
		return kind != NEAP_TURN && kind != NEAP_WAIT;
	case 4:
		to[i].t1++;
		return has_range(kind);
	case 5:
		to[i].t1--;
		return has_range(kind);
	case 6:
		to[i].slot += 1000;
		return has_slot(kind) && to[i].payload == NEAP_STATE && !idle;
	case 7:
		to[i].place += 1000;
		return moves(kind) || kind == NEAP_FORGET;
	case 8:
		to[i].tier++;
		return moves(kind) || kind == NEAP_FORGET;
	case 9:
		to[i].ticket += 20;
		return moves(kind) || kind == NEAP_WAIT;
	default:
		return -1;
	}
}

static int64_t mutate_all(const struct neap_problem *p, const struct neap_plan *plan)
{
	int64_t count, tried = 0;
	struct neap_action *list = collected(p, plan, &count);
	struct neap_action *copy = calloc((size_t)count + 1, sizeof *copy);
	assert_int_equal(verify_list(p, list, count, NULL), 0);
	for (int64_t i = 0; i < count; i++) {
		int legal_known = 0;
		for (int m = 0; legal_known >= 0; m++) {
			int64_t changed = count;
			memcpy(copy, list, (size_t)count * sizeof *copy);
			legal_known = mutate(copy, &changed, i, m);
			if (legal_known <= 0)
				continue;
			tried++;
			int rc = verify_list(p, copy, changed, NULL);
			if (rc != NEAP_EILLEGAL)
				fail_msg("%s: action %lld (%s), mutation %d: not found out",
					plan->strategy, (long long)i,
					neap_action_name(list[i].kind), m);
		}
	}
	free(list);
	free(copy);
	return tried;
}

static void mutations(void **state)
{
	(void)state;
	struct random r = {test_seed(3), 0};
	int64_t tried = 0;
	for (int i = 0; i < 60; i++) {
		struct neap_problem p =
			unit_problem(2 + below(&r, 40), (uint64_t)(1 + below(&r, 20)));
		p.ntiers = 0;
		add_tier(&p, 100, uniform(&r) * 20, uniform(&r) < 0.3 ? NEAP_TIER_SYNC : 0);
		for (int n = 0; neap_strategy_name(n); n++) {
			struct neap_plan plan = {.size = sizeof plan};
			assert_int_equal(neap_plan_make(&plan, &p, neap_strategy_name(n), NULL), 0);
			if (plan.feasible)
				tried += mutate_all(&p, &plan);
		}
	}
	fprintf(stderr, "# %lld mutations, all found out\n", (long long)tried);
	assert_true(tried > 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_rule),
		cmocka_unit_test(peaks),
		cmocka_unit_test(mutations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
