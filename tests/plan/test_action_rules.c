/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of an action, asked of all three verifiers. Random schedules of equal steps,
 * most of them legal up to some action, are verified as equal steps, as a chain of equal
 * stages and as the first chain of a join. All must refuse the same action, but for the
 * rules that differ on purpose, which `differ` names. With the argument `dump` the program
 * prints every verdict and detail line instead, so that two builds can be compared.
 */
#include "chain_test.h"

enum { STEPS = 5, ACTIONS_MOST = 64, TICKETS = 3, PLACES = 4, SLOTS = 4 };

/* What a schedule has made so far, as far as is needed to propose a next action. */
struct sketch {
	int64_t live, slot[SLOTS], adjoint, place[2][PLACES]; /* -1: nothing */
	uint8_t tape[STEPS], log[STEPS];
	int turned;
	struct neap_action flight[TICKETS]; /* kind NEAP_ACTION_KINDS: none */
};

struct subject {
	struct neap_problem steps, stages, join;
	struct chain chain;
	int logs, tiers, unequal;
};

static void begin(struct sketch *x)
{
	memset(x, 0xff, sizeof *x);
	memset(x->tape, 0, sizeof x->tape);
	memset(x->log, 0, sizeof x->log);
	x->live = x->turned = 0;
	for (int i = 0; i < TICKETS; i++)
		x->flight[i].kind = NEAP_ACTION_KINDS;
}

/* An action that may come next; it need not be legal. */
static struct neap_action proposal(
	struct random *r, const struct sketch *x, const struct subject *s)
{
	struct neap_action a = {.kind = (uint8_t)below(r, s->tiers ? 11 : 7)};
	int64_t most = x->turned ? x->adjoint : STEPS, k;
	a.t0 = x->live;
	a.t1 = a.t0 + 1 + (s->tiers && below(r, 20) == 0);
	a.slot = below(r, SLOTS);
	a.place = below(r, PLACES);
	a.ticket = (int32_t)below(r, TICKETS);
	a.tier = 1;
	switch (a.kind) {
	case NEAP_ADVANCE:
		a.t1 = a.t0 + 1 + below(r, 3);
		a.payload = s->logs && below(r, 2) ? NEAP_LOG : NEAP_STATE;
		break;
	case NEAP_RECORD:
		a.payload = s->logs && a.t0 >= 0 && a.t0 < STEPS && x->log[a.t0] ? NEAP_LOG
										 : NEAP_STATE;
		break;
	case NEAP_TURN:
		a.t0 = a.t1 = STEPS;
		break;
	case NEAP_BACKWARD:
		a.t1 = most;
		a.t0 = most - 1 - (below(r, 4) == 0);
		break;
	case NEAP_LOAD:
	case NEAP_DROP:
		a.t0 = x->slot[a.slot];
		if (s->logs && a.kind == NEAP_DROP && below(r, 2)) {
			a.payload = NEAP_LOG;
			a.t0 = below(r, STEPS);
			a.t1 = a.t0 + 1;
		}
		break;
	case NEAP_PUT:
	case NEAP_GET:
		k = below(r, 3);
		a.payload = (uint8_t)(k == 2 && !s->logs ? 1 : k);
		if (a.payload != NEAP_STATE) {
			a.slot = 0;
			a.t0 = a.kind == NEAP_GET ? x->place[1][a.place] : below(r, STEPS);
			a.t1 = a.t0 + 1;
		} else if (a.kind == NEAP_GET) {
			a.t0 = x->place[0][a.place];
			a.slot = below(r, 3) ? a.slot : NEAP_LIVE;
		} else if (below(r, 2)) {
			a.slot = NEAP_LIVE;
		} else {
			a.t0 = x->slot[a.slot];
		}
		break;
	case NEAP_FORGET:
		a.payload = (uint8_t)below(r, 2 + s->logs);
		a.t0 = x->place[a.payload != NEAP_STATE][a.place];
		break;
	default:
		break;
	}
	return a;
}

static int in_flight(const struct sketch *x, int payload, int kind, int64_t number)
{
	for (int k = 0; k < TICKETS; k++) {
		const struct neap_action *f = &x->flight[k];
		if (f->kind == kind && (f->payload != NEAP_STATE) == (payload != NEAP_STATE) &&
			(payload == NEAP_STATE ? f->slot : f->t0) == number)
			return 1;
	}
	return 0;
}

static int place_in_flight(const struct sketch *x, const struct neap_action *a)
{
	for (int k = 0; k < TICKETS; k++)
		if (x->flight[k].kind != NEAP_ACTION_KINDS && x->flight[k].place == a->place)
			return 1;
	return 0;
}

static int any(const uint8_t *list, int64_t t0, int64_t t1)
{
	for (int64_t i = t0; i < t1; i++)
		if (list[i])
			return 1;
	return 0;
}

/* Legal as far as the sketch tells: most of what is proposed has to be thrown away. */
static int plausible(const struct sketch *x, const struct neap_action *a, const struct subject *s)
{
	int pinned = in_flight(x, NEAP_STATE, NEAP_PUT, NEAP_LIVE) ||
		     in_flight(x, NEAP_STATE, NEAP_GET, NEAP_LIVE);
	int ticket_free = x->flight[a->ticket].kind == NEAP_ACTION_KINDS;
	const uint8_t *there = a->payload == NEAP_LOG ? x->log : x->tape;
	int leaving = a->kind != NEAP_WAIT && a->payload != NEAP_STATE &&
		      (in_flight(x, a->payload, NEAP_PUT, a->t0) ||
			      in_flight(x, a->payload, NEAP_GET, a->t0));
	if (a->kind == NEAP_WAIT)
		return !ticket_free;
	if (a->t0 < 0 || a->t0 > STEPS || leaving)
		return 0;
	if ((a->kind <= NEAP_BACKWARD || a->payload != NEAP_STATE) && a->kind != NEAP_TURN &&
		(a->t0 >= STEPS || a->t1 > STEPS || a->t1 <= a->t0))
		return 0;
	switch (a->kind) {
	case NEAP_ADVANCE:
		return !pinned && (a->payload != NEAP_LOG || !any(x->log, a->t0, a->t1));
	case NEAP_RECORD:
		return !pinned && !any(x->tape, s->tiers ? a->t0 : 0, s->tiers ? a->t1 : STEPS);
	case NEAP_TURN:
		return !pinned && x->live == STEPS && !x->turned;
	case NEAP_BACKWARD:
		return !pinned && x->turned && x->tape[a->t0] && x->tape[a->t1 - 1] &&
		       !in_flight(x, NEAP_TAPE, NEAP_PUT, a->t0) &&
		       !in_flight(x, NEAP_TAPE, NEAP_GET, a->t0);
	case NEAP_SAVE:
		return x->slot[a->slot] < 0 && !in_flight(x, NEAP_STATE, NEAP_GET, a->slot) &&
		       !in_flight(x, NEAP_STATE, NEAP_GET, NEAP_LIVE) && !x->turned;
	case NEAP_LOAD:
		return !pinned && !in_flight(x, NEAP_STATE, NEAP_GET, a->slot);
	case NEAP_DROP:
		return a->payload == NEAP_LOG ? x->log[a->t0]
					      : !in_flight(x, NEAP_STATE, NEAP_PUT, a->slot);
	case NEAP_PUT:
		return ticket_free && x->place[a->payload != NEAP_STATE][a->place] < 0 &&
		       (a->payload == NEAP_STATE ? !pinned : there[a->t0]);
	case NEAP_GET:
		return ticket_free &&
		       (a->payload != NEAP_STATE
				       ? !there[a->t0]
				       : (a->slot == NEAP_LIVE ? !pinned : x->slot[a->slot] < 0));
	case NEAP_FORGET:
		return !place_in_flight(x, a);
	default:
		return 1;
	}
}

static void waited(struct sketch *x, const struct neap_action *f)
{
	if (f->payload != NEAP_STATE)
		(f->payload == NEAP_LOG ? x->log : x->tape)[f->t0] = f->kind == NEAP_GET;
	else if (f->kind == NEAP_GET)
		*(f->slot == NEAP_LIVE ? &x->live : &x->slot[f->slot]) = f->t0;
}

static void apply(struct sketch *x, const struct neap_action *a)
{
	switch (a->kind) {
	case NEAP_ADVANCE:
	case NEAP_RECORD:
		for (int64_t i = a->t0; i < a->t1; i++) {
			x->tape[i] |= a->kind == NEAP_RECORD;
			x->log[i] |= a->payload == NEAP_LOG;
		}
		x->live = a->t1;
		break;
	case NEAP_TURN:
		x->turned = 1;
		x->adjoint = STEPS;
		break;
	case NEAP_BACKWARD:
		memset(x->tape + a->t0, 0, (size_t)(a->t1 - a->t0));
		x->adjoint = a->t0;
		x->live = -1;
		break;
	case NEAP_SAVE:
		x->slot[a->slot] = a->t0;
		break;
	case NEAP_LOAD:
		x->live = a->t0;
		break;
	case NEAP_DROP:
		if (a->payload == NEAP_LOG)
			x->log[a->t0] = 0;
		else
			x->slot[a->slot] = -1;
		break;
	case NEAP_PUT:
	case NEAP_GET:
		x->flight[a->ticket] = *a;
		if (a->kind == NEAP_PUT)
			x->place[a->payload != NEAP_STATE][a->place] = a->t0;
		break;
	case NEAP_WAIT:
		waited(x, &x->flight[a->ticket]);
		x->flight[a->ticket].kind = NEAP_ACTION_KINDS;
		break;
	default:
		x->place[a->payload != NEAP_STATE][a->place] = -1;
		break;
	}
}

/* One field of an action to another number, most of them impossible ones. */
static void spoil(struct random *r, struct neap_action *a, const struct subject *s)
{
	int64_t more = below(r, 2) ? 1 : -1;
	switch (below(r, 8)) {
	case 0:
		a->t0 += more;
		break;
	case 1:
		a->t1 += more;
		break;
	case 2:
		a->slot = below(r, 3) ? below(r, SLOTS) : below(r, 2) ? -2 : INT64_C(1) << 40;
		break;
	case 3:
		a->place = below(r, 3) ? below(r, PLACES) : below(r, 2) ? -1 : INT64_MAX / 8;
		break;
	case 4:
		a->ticket = below(r, 2) ? (int32_t)below(r, TICKETS)
					: (below(r, 2) ? -1 : NEAP_TICKETS);
		break;
	case 5:
		a->tier = (uint16_t)(2 * below(r, 2));
		break;
	case 6:
		if (s->tiers && (a->kind == NEAP_PUT || a->kind == NEAP_GET))
			a->payload = (uint8_t)below(r, 4);
		else if (a->kind == NEAP_ADVANCE || (a->kind == NEAP_DROP && s->logs))
			a->payload = NEAP_LOG;
		break;
	default:
		a->kind = (uint8_t)below(r, s->tiers ? NEAP_ACTION_KINDS + 1 : NEAP_PUT);
		break;
	}
}

static int schedule_of(struct random *r, const struct subject *s, struct neap_action *list)
{
	struct sketch x;
	int n = 0, tries = 0, most = 4 + (int)below(r, ACTIONS_MOST - 8);
	begin(&x);
	while (n < most && tries++ < 4000 && x.adjoint != 0) {
		struct neap_action a = proposal(r, &x, s);
		int goal = a.kind == NEAP_RECORD || a.kind == NEAP_TURN || a.kind == NEAP_BACKWARD;
		if (!plausible(&x, &a, s) || (!goal && below(r, 3)))
			continue;
		apply(&x, &a);
		list[n++] = a;
	}
	for (int k = 0; k < TICKETS && n < ACTIONS_MOST; k++)
		if (x.flight[k].kind != NEAP_ACTION_KINDS && below(r, 8))
			list[n++] = (struct neap_action){.kind = NEAP_WAIT, .ticket = k};
	if (below(r, 3))
		spoil(r, &list[below(r, n)], s);
	return n;
}

struct reader {
	const struct neap_action *list;
	int64_t n, at;
};

static int read_next(void *user, struct neap_action *a)
{
	struct reader *x = user;
	if (x->at == x->n)
		return 0;
	*a = x->list[x->at++];
	return 1;
}

struct answer {
	int rc;
	int64_t read; /* actions pulled: of a refused schedule, up to the refused one */
	struct neap_verdict v;
	char text[200];
};

static struct answer ask(const struct neap_problem *p, const struct neap_action *list, int n)
{
	struct answer x;
	struct reader reader = {list, n, 0};
	struct neap_schedule *s = NULL;
	memset(&x, 0, sizeof x);
	x.v.size = sizeof x.v;
	assert_int_equal(neap_schedule_wrap(&s, read_next, NULL, &reader), 0);
	x.rc = neap_verify(&x.v, p, s);
	neap_schedule_close(s);
	x.read = reader.at;
	if (x.rc < 0)
		snprintf(x.text, sizeof x.text, "%s", neap_detail());
	return x;
}

static void print(const char *who, const struct answer *x)
{
	printf("%s %d %lld %s\n", who, x->rc, (long long)x->read, x->text);
	if (x->rc == 0)
		printf(" peak %llu arena %llu slots %lld actions %lld steps %lld %lld %lld "
		       "flights %lld tier %llu %llu %llu\n",
			(unsigned long long)x->v.peak_bytes, (unsigned long long)x->v.arena_bytes,
			(long long)x->v.slots, (long long)x->v.actions,
			(long long)x->v.advance_steps, (long long)x->v.record_steps,
			(long long)x->v.backward_steps, (long long)x->v.transfers_in_flight,
			(unsigned long long)x->v.tiers[0].peak_bytes,
			(unsigned long long)x->v.tiers[0].written,
			(unsigned long long)x->v.tiers[0].read);
}

/* One problem in three forms: equal steps, equal stages, and with a chain of one step beside it. */
static void subject_of(struct random *r, struct subject *s)
{
	memset(s, 0, sizeof *s);
	s->tiers = below(r, 3) > 0;
	s->logs = s->tiers && below(r, 3) == 0;
	s->unequal = below(r, 3) == 0;
	s->steps = unit_problem(STEPS, 100);
	s->steps.chain.adjoint = 2;
	s->steps.chain.tape = 3;
	s->steps.chain.log = s->logs ? 1 : 0;
	s->steps.chain.replay = s->logs ? 1 : 0;
	if (!s->tiers)
		s->steps = classic_problem(STEPS, 1000);
	s->join = classic_problem(STEPS, 1000);
	s->join.chain.join = 1;
	wire(&s->chain, STEPS);
	s->chain.stages.flags = s->unequal ? (uint32_t)below(r, 4) : 0;
	for (int i = 0; i <= STEPS; i++) {
		s->chain.state[i] = s->unequal ? (uint64_t)(1 + below(r, 9)) : 1;
		s->chain.advance[i] = s->chain.backward[i] = 1;
		s->chain.tape[i] = s->unequal ? (uint64_t)(9 + below(r, 9)) : 3;
		s->chain.advance_tmp[i] = s->unequal ? (uint64_t)below(r, 3) : 0;
		s->chain.backward_tmp[i] = s->unequal ? (uint64_t)below(r, 3) : 0;
	}
	s->stages = s->chain.p;
	s->stages.chain.adjoint = below(r, 2) ? 2 : 0;
	s->stages.memory = 1000;
	uint64_t capacity = s->unequal ? (uint64_t)(6 + below(r, 30)) : NEAP_INFINITE;
	if (s->tiers) {
		add_tier(&s->steps, capacity, 1, 0);
		add_tier(&s->stages, capacity, 1, 0);
	}
	if (s->unequal && s->tiers && below(r, 6) == 0)
		s->steps.chain.flags |= NEAP_CHAIN_TAPES_STAY,
			s->stages.chain.flags |= NEAP_CHAIN_TAPES_STAY;
}

/* The schedule as the first chain of a join, whose second chain has one step. */
static int joined(struct neap_action *to, const struct neap_action *from, int n)
{
	const int64_t start = STEPS + 1, slot = 500;
	const struct neap_action before[] = {
		{.kind = NEAP_SAVE, .slot = slot, .t0 = start},
		{.kind = NEAP_ADVANCE, .t0 = start, .t1 = start + 1},
	};
	const struct neap_action after[] = {
		{.kind = NEAP_LOAD, .slot = slot, .t0 = start},
		{.kind = NEAP_RECORD, .t0 = start, .t1 = start + 1},
		{.kind = NEAP_BACKWARD, .t0 = start, .t1 = start + 1},
	};
	memcpy(to, before, sizeof before);
	memcpy(to + 2, from, (size_t)n * sizeof *to);
	memcpy(to + 2 + n, after, sizeof after);
	for (int i = 2; i < n + 2; i++)
		if (to[i].kind == NEAP_TURN)
			to[i].t0 = start + 1;
	return n + 5;
}

/* Is it a rule that equal steps and stages (or joins) do not share? */
static int differ(const struct answer *steps, const struct answer *other)
{
	static const char *const only_steps[] = {
		"whole records", /* stages are recorded one by one */
		"more than one tape",
	};
	static const char *const only_others[] = {
		"undefined, needed at 5", "is at -1, needed at 5", /* x_L after the turn is gone */
	};
	const char *range = strstr(steps->text, "range [");
	long long t0, t1;
	if (range && sscanf(range, "range [%lld, %lld)", &t0, &t1) == 2 && t0 == t1)
		return 1; /* a join takes it for an action of no steps */
	for (int i = 0; i < 2; i++)
		if (strstr(steps->text, only_steps[i]) || strstr(other->text, only_others[i]))
			return 1;
	return 0;
}

static void compare(const struct answer *steps, const struct answer *stages)
{
	int same = steps->rc == stages->rc && steps->read == stages->read;
	if (!same && !differ(steps, stages))
		fail_msg("steps: %lld \"%s\"; stages: %lld \"%s\"", (long long)steps->read,
			steps->text, (long long)stages->read, stages->text);
	if (!same || steps->rc < 0)
		return;
	assert_int_equal(steps->v.actions, stages->v.actions);
	assert_int_equal(steps->v.slots, stages->v.slots);
	assert_int_equal(steps->v.advance_steps, stages->v.advance_steps);
	assert_int_equal(steps->v.record_steps, stages->v.record_steps);
	assert_int_equal(steps->v.backward_steps, stages->v.backward_steps);
	assert_int_equal(steps->v.transfers_in_flight, stages->v.transfers_in_flight);
	assert_int_equal(steps->v.tiers[0].written, stages->v.tiers[0].written);
	assert_int_equal(steps->v.tiers[0].read, stages->v.tiers[0].read);
}

/* Of a join the body alone counts: what comes after it has an end of its own. */
static void compare_join(const struct answer *steps, const struct answer *join, int n)
{
	int64_t refused = join->rc < 0 && join->read - 2 <= n ? join->read - 2 : n + 1;
	int64_t steps_refused =
		steps->rc < 0 && !strstr(steps->text, "schedule ends") ? steps->read : n + 1;
	if (refused != steps_refused && !differ(steps, join))
		fail_msg("steps: %lld \"%s\"; join: %lld \"%s\"", (long long)steps_refused,
			steps->text, (long long)refused, join->text);
}

static int dump;

static void all_agree(void **state)
{
	struct random r = {test_seed(41), 0};
	int legal = 0, illegal = 0, count = dump ? 60000 : 8000;
	(void)state;
	for (int k = 0; k < count; k++) {
		static struct neap_action list[ACTIONS_MOST], join[ACTIONS_MOST + 5];
		static struct subject s;
		subject_of(&r, &s);
		s.stages.chain.stages = &s.chain.stages;
		int n = schedule_of(&r, &s, list);
		struct answer steps = ask(&s.steps, list, n), stages = ask(&s.stages, list, n);
		struct answer other = {.v.size = sizeof other.v};
		if (!s.tiers)
			other = ask(&s.join, join, joined(join, list, n));
		legal += steps.rc == 0;
		illegal += steps.rc < 0 && !strstr(steps.text, "schedule ends");
		if (dump) {
			print("steps", &steps);
			print("stages", &stages);
			print("join", &other);
			continue;
		}
		if (!s.unequal && !s.logs)
			compare(&steps, &stages);
		if (!s.tiers)
			compare_join(&steps, &other, n);
	}
	fprintf(stderr, "# %d legal, %d with an illegal action\n", legal, illegal);
	assert_true(dump || (legal > count / 50 && illegal > count / 10));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_agree),
	};
	dump = argc > 1 && strcmp(argv[1], "dump") == 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
