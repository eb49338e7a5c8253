/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random legal schedules, of no strategy: slots in any order, tapes kept across
 * whole reversals or sent and fetched meanwhile, states sent and fetched at any
 * moment, into slots and ahead into the live state; with tapes of any size and
 * faults. NEAP_SEED, NEAP_ROUNDS.
 */
#include "chainmodel.h"

#include "store/fault_tier.h"
#include "sweep/sweep_state.h"
#include "sweep/sweep.h"

#define ACTIONS 20000
#define SLOTS 24

struct source {
	int record; /* else a slot */
	int64_t id, t;
	int32_t ahead; /* ticket of a GET into the live state; -1: none */
};

struct pending {
	int32_t ticket;
	int64_t slot, t, place;
};

/* Tapes kept across a reversal. They are there (HOME), or on their way, or away. */
struct kept {
	int64_t t0, t1, place;
	int32_t ticket;
	enum { HOME, LEAVING, AWAY, COMING } where;
};

#define KEPT 400

struct maker {
	uint64_t seed, draws;
	int travel; /* tapes do */
	int64_t tape_places;
	struct kept kept[KEPT];
	int nkept;
	struct neap_action actions[ACTIONS];
	size_t count, at;
	int busy[SLOTS];
	int ticket_busy[NEAP_TICKETS];
	int64_t places;
	struct pending pending[SLOTS];
	int npending;
};

static uint64_t draw(struct maker *k, uint64_t n)
{
	return neap__random_below(k->seed, NEAP__STREAM_TEST, 77, k->draws++, n);
}

static void emit(struct maker *k, struct neap_action a)
{
	assert_true(k->count < ACTIONS);
	k->actions[k->count++] = a;
}

static int32_t ticket_of(struct maker *k)
{
	int32_t ticket = (int32_t)draw(k, NEAP_TICKETS);
	while (k->ticket_busy[ticket])
		ticket = (ticket + 1) % NEAP_TICKETS;
	k->ticket_busy[ticket] = 1;
	return ticket;
}

static void await(struct maker *k, int32_t ticket)
{
	emit(k, (struct neap_action){.kind = NEAP_WAIT, .tier = 1, .ticket = ticket});
	k->ticket_busy[ticket] = 0;
}

static int64_t slot_of(struct maker *k)
{
	int64_t slot = (int64_t)draw(k, SLOTS);
	for (int i = 0; i < SLOTS; i++, slot = (slot + 1) % SLOTS)
		if (!k->busy[slot]) {
			k->busy[slot] = 1;
			return slot;
		}
	return -1;
}

static void drop(struct maker *k, int64_t slot, int64_t t)
{
	emit(k, (struct neap_action){.kind = NEAP_DROP, .slot = slot, .t0 = t, .t1 = t});
	k->busy[slot] = 0;
}

static void settle_at(struct maker *k, int i)
{
	struct pending p = k->pending[i];
	k->pending[i] = k->pending[--k->npending];
	await(k, p.ticket);
	drop(k, p.slot, p.t);
}

static void settle_one(struct maker *k)
{
	settle_at(k, (int)draw(k, (uint64_t)k->npending));
}

static struct source store(struct maker *k, int64_t t)
{
	int64_t slot = slot_of(k);
	if (draw(k, 3) && k->npending)
		settle_one(k);
	if (slot >= 0)
		emit(k, (struct neap_action){.kind = NEAP_SAVE, .slot = slot, .t0 = t, .t1 = t});
	if (slot >= 0 && draw(k, 2))
		return (struct source){0, slot, t, -1};
	struct source s = {1, k->places++, t, -1};
	int32_t ticket = ticket_of(k);
	emit(k, (struct neap_action){.kind = NEAP_PUT,
			.tier = 1,
			.slot = slot >= 0 ? slot : NEAP_LIVE,
			.place = s.id,
			.t0 = t,
			.t1 = t,
			.ticket = ticket});
	if (slot >= 0)
		k->pending[k->npending++] = (struct pending){ticket, slot, t, s.id};
	else
		await(k, ticket);
	return s;
}

static int32_t get(struct maker *k, const struct source *s, int64_t slot)
{
	int32_t ticket = ticket_of(k);
	emit(k, (struct neap_action){.kind = NEAP_GET,
			.tier = 1,
			.slot = slot,
			.place = s->id,
			.t0 = s->t,
			.t1 = s->t,
			.ticket = ticket});
	return ticket;
}

static void fetch(struct maker *k, struct source *s)
{
	int64_t slot = s->id;
	if (s->record && s->ahead >= 0) {
		await(k, s->ahead);
		s->ahead = -1;
		return;
	}
	if (s->record && (draw(k, 2) || (slot = slot_of(k)) < 0)) {
		await(k, get(k, s, NEAP_LIVE));
		return;
	}
	if (s->record) {
		int32_t ticket = get(k, s, slot);
		if (k->npending && draw(k, 2))
			settle_one(k);
		await(k, ticket);
	}
	emit(k, (struct neap_action){.kind = NEAP_LOAD, .slot = slot, .t0 = s->t, .t1 = s->t});
	if (s->record)
		drop(k, slot, s->t);
}

static void release(struct maker *k, const struct source *s)
{
	for (int i = k->npending - 1; s->record && i >= 0; i--)
		if (k->pending[i].place == s->id)
			settle_at(k, i);
	if (s->record)
		emit(k, (struct neap_action){.kind = NEAP_FORGET,
				.tier = 1,
				.place = s->id,
				.t0 = s->t,
				.t1 = s->t});
	else
		drop(k, s->id, s->t);
}

static void range(struct maker *k, int kind, int64_t t0, int64_t t1)
{
	emit(k, (struct neap_action){.kind = (uint8_t)kind, .t0 = t0, .t1 = t1});
}

static void emit_tapes(struct maker *k, int kind, struct kept *x)
{
	emit(k, (struct neap_action){.kind = (uint8_t)kind,
			.payload = NEAP_TAPE,
			.tier = 1,
			.place = x->place,
			.t0 = x->t0,
			.t1 = x->t1,
			.ticket = x->ticket});
}

/* The next thing that can happen to kept tapes. */
static void move(struct maker *k, struct kept *x)
{
	if (x->where == HOME) {
		x->place = k->tape_places++;
		x->ticket = ticket_of(k);
		emit_tapes(k, NEAP_PUT, x);
		x->where = LEAVING;
	} else if (x->where == AWAY) {
		x->ticket = ticket_of(k);
		emit_tapes(k, NEAP_GET, x);
		x->where = COMING;
	} else {
		await(k, x->ticket);
		if (x->where == COMING && draw(k, 2))
			emit_tapes(k, NEAP_FORGET, x);
		x->where = x->where == LEAVING ? AWAY : HOME;
	}
}

/* Some of the kept tapes move, now and then. */
static void travel(struct maker *k)
{
	while (k->travel && k->nkept && draw(k, 3) == 0)
		move(k, &k->kept[draw(k, (uint64_t)k->nkept)]);
}

static void backward(struct maker *k, int64_t t0, int64_t t1, struct source *next)
{
	if (next && next->record && next->ahead < 0 && draw(k, 2))
		next->ahead = get(k, next, NEAP_LIVE);
	range(k, NEAP_BACKWARD, t0, t1);
	travel(k);
}

static void keep_tapes(struct maker *k, int64_t t0, int64_t t1)
{
	assert_true(k->nkept < KEPT);
	int64_t cut = t0 + (int64_t)draw(k, (uint64_t)(t1 - t0));
	if (cut > t0)
		range(k, NEAP_RECORD, t0, cut);
	range(k, NEAP_RECORD, cut, t1);
	k->kept[k->nkept++] = (struct kept){t0, t1, 0, 0, HOME};
	if (k->travel && draw(k, 2))
		move(k, &k->kept[k->nkept - 1]);
}

/* The tapes kept last come home, to be reversed. */
static void bring(struct maker *k)
{
	while (k->kept[k->nkept - 1].where != HOME)
		move(k, &k->kept[k->nkept - 1]);
	k->nkept--;
}

static void reverse(
	struct maker *k, struct source *s, int64_t t0, int64_t t1, int last, struct source *next)
{
	int64_t n = t1 - t0, mid = t0 + 1 + (int64_t)draw(k, (uint64_t)(n > 1 ? n - 1 : 1));
	fetch(k, s);
	if (n <= 3 || draw(k, (uint64_t)n) < 3) {
		int cut = n > 1 && draw(k, 2);
		if (cut)
			range(k, NEAP_RECORD, t0, mid);
		range(k, NEAP_RECORD, cut ? mid : t0, t1);
		if (last)
			range(k, NEAP_TURN, t1, t1);
		if (cut && draw(k, 2)) {
			backward(k, mid, t1, next);
			t1 = mid;
		}
		backward(k, t0, t1, next);
		return;
	}
	int keep = draw(k, 10) < 3;
	if (keep)
		keep_tapes(k, t0, mid);
	else
		range(k, NEAP_ADVANCE, t0, mid);
	struct source upper = store(k, mid);
	reverse(k, &upper, mid, t1, last, keep ? NULL : s);
	release(k, &upper);
	if (keep)
		bring(k);
	if (keep)
		backward(k, t0, mid, next);
	else
		reverse(k, s, t0, mid, 0, next);
}

static void make(struct maker *k, int64_t steps, uint64_t seed)
{
	*k = (struct maker){.seed = seed};
	k->travel = seed % 3 != 0;
	struct source start = store(k, 0);
	reverse(k, &start, 0, steps, 1, NULL);
	release(k, &start);
	while (k->npending)
		settle_one(k);
}

static int maker_next(void *user, struct neap_action *action)
{
	struct maker *k = user;
	if (k->at == k->count)
		return 0;
	*action = k->actions[k->at++];
	return 1;
}

static int maker_open(void *user, struct neap_schedule **schedule)
{
	struct maker *k = user;
	k->at = 0;
	return neap_schedule_wrap(schedule, maker_next, NULL, k);
}

static uint32_t varied(const struct model *m, int64_t t)
{
	return neap__random_below(m->seed, NEAP__STREAM_TEST, 2, (uint64_t)t / 17, 4) ? 2 : 90;
}

/* Bytes that count at most, however slots are numbered; verify counts gaps between them. */
static uint64_t exact_peak(const struct maker *k, const struct neap_problem *p)
{
	uint64_t used = p->chain.adjoint + p->chain.live, peak = used;
	uint64_t leaving[NEAP_TICKETS] = {0};
	for (size_t i = 0; i < k->count; i++) {
		const struct neap_action *a = &k->actions[i];
		uint64_t tapes = (uint64_t)(a->t1 - a->t0) * p->chain.tape;
		if (a->payload == NEAP_TAPE && a->kind == NEAP_PUT) {
			leaving[a->ticket] = tapes;
		} else if (a->payload == NEAP_TAPE) {
			used += a->kind == NEAP_GET ? tapes : 0;
		} else if (a->kind == NEAP_WAIT) {
			used -= leaving[a->ticket];
			leaving[a->ticket] = 0;
		} else if (a->kind == NEAP_SAVE || (a->kind == NEAP_GET && a->slot >= 0))
			used += p->chain.state;
		else if (a->kind == NEAP_DROP)
			used -= p->chain.state;
		else if (a->kind == NEAP_RECORD)
			used += tapes;
		else if (a->kind == NEAP_BACKWARD)
			used -= tapes;
		peak = used > peak ? used : peak;
	}
	return peak;
}

/*
 * A foreign engine at its laziest: a request is carried out, in order, when it
 * or a later one is waited for. Whoever touches a source or a destination too
 * early is caught every time, not by luck.
 */
#define LAZY 320

struct lazy {
	struct shelf {
		unsigned char *store;
		uint64_t *tags; /* of the places */
		uint64_t bytes;
	} shelves[2]; /* states, tapes */
	struct lazy_job {
		struct neap_span one;
		const struct neap_span *spans;
		int64_t place;
		uint64_t tag;
		int count, put, answer;
	} jobs[LAZY];
	int64_t begun, done;
};

static void lazy_shelf(struct shelf *shelf, uint64_t bytes, int64_t places)
{
	free(shelf->store);
	free(shelf->tags);
	shelf->store = calloc((size_t)places + 1, bytes);
	shelf->tags = calloc((size_t)places + 1, sizeof *shelf->tags);
	memset(shelf->tags, 0xff, (size_t)places * sizeof *shelf->tags);
	shelf->bytes = bytes;
}

static int lazy_format(void *self, uint64_t bytes, int64_t places, void *staging)
{
	struct lazy *lazy = self;
	(void)staging;
	lazy_shelf(&lazy->shelves[0], bytes, places);
	return 0;
}

static int lazy_format_tapes(void *self, uint64_t bytes, int64_t places, uint64_t staging)
{
	struct lazy *lazy = self;
	(void)staging;
	lazy_shelf(&lazy->shelves[1], bytes, places);
	return 0;
}

static struct lazy_job *lazy_post(
	struct lazy *lazy, int put, int64_t place, uint64_t tag, int64_t *ticket)
{
	*ticket = lazy->begun++;
	struct lazy_job *job = &lazy->jobs[*ticket % LAZY];
	*job = (struct lazy_job){.place = place, .tag = tag, .put = put};
	return job;
}

static int lazy_one(struct lazy_job *job, const void *at, uint64_t bytes)
{
	job->one = (struct neap_span){(void *)(uintptr_t)at, bytes};
	return 0;
}

static int lazy_put(
	void *self, int64_t place, uint64_t tag, const void *from, uint64_t bytes, int64_t *ticket)
{
	return lazy_one(lazy_post(self, 1, place, tag, ticket), from, bytes);
}

static int lazy_get(
	void *self, int64_t place, uint64_t tag, void *into, uint64_t bytes, int64_t *ticket)
{
	return lazy_one(lazy_post(self, 0, place, tag, ticket), into, bytes);
}

static int lazy_put_tapes(void *self, int64_t place, uint64_t tag, const struct neap_span *spans,
	int count, int64_t *ticket)
{
	struct lazy_job *job = lazy_post(self, 1, place, tag, ticket);
	job->spans = spans;
	job->count = count;
	return 0;
}

static int lazy_get_tapes(void *self, int64_t place, uint64_t tag, const struct neap_span *spans,
	int count, int64_t *ticket)
{
	struct lazy_job *job = lazy_post(self, 0, place, tag, ticket);
	job->spans = spans;
	job->count = count;
	return 0;
}

static void lazy_run(struct lazy *lazy, struct lazy_job *job)
{
	struct shelf *shelf = &lazy->shelves[job->spans != NULL];
	unsigned char *record = shelf->store + (uint64_t)job->place * shelf->bytes;
	const struct neap_span *spans = job->spans ? job->spans : &job->one;
	if (!job->put && shelf->tags[job->place] != job->tag) {
		job->answer = NEAP_ELOST;
		return;
	}
	for (int i = 0; i < (job->spans ? job->count : 1); record += spans[i++].bytes)
		memcpy(job->put ? record : spans[i].at, job->put ? spans[i].at : record,
			spans[i].bytes);
	shelf->tags[job->place] = job->tag;
}

static int lazy_wait(void *self, int64_t ticket)
{
	struct lazy *lazy = self;
	for (; lazy->done <= ticket; lazy->done++)
		lazy_run(lazy, &lazy->jobs[lazy->done % LAZY]);
	return lazy->jobs[ticket % LAZY].answer;
}

static void lazy_close(void *self)
{
	struct lazy *lazy = self;
	for (int i = 0; i < 2; i++) {
		free(lazy->shelves[i].store);
		free(lazy->shelves[i].tags);
	}
	free(lazy);
}

static int lazy_open(struct neap_tier **tier)
{
	static const struct neap_tier_ops ops = {.size = sizeof ops,
		.format = lazy_format,
		.put = lazy_put,
		.get = lazy_get,
		.wait = lazy_wait,
		.close = lazy_close,
		.format_tapes = lazy_format_tapes,
		.put_tapes = lazy_put_tapes,
		.get_tapes = lazy_get_tapes};
	static const struct neap_tier_spec spec = {.name = "lazy", .capacity = NEAP_INFINITE};
	return neap_tier_wrap(tier, &ops, &spec, calloc(1, sizeof(struct lazy)));
}

struct totals {
	int64_t actions, overflows, recoveries, runs;
};

static void check_round(uint64_t seed, int faulty, int vary, struct totals *totals)
{
	static struct maker k;
	struct neap__faults faults = {0};
	struct neap_tier *inner, *tier;
	struct neap_sweep *sweep;
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct gradient got;
	struct model m;
	uint64_t steps = 1 + neap__random_below(seed, NEAP__STREAM_TEST, 5, 0, 400);

	model_init(&m, (int64_t)steps, seed);
	make(&k, m.steps, seed);
	m.extra_most = vary ? 90 : 0;
	m.extra = varied;
	struct gradient want = reference(&m);
	struct neap_step_ops ops = model_ops(&m, vary ? 160 : 0);
	int lazy = seed % 2 == 0; /* it knows no damage, only refusals */
	assert_int_equal(
		lazy ? lazy_open(&inner) : neap_tier_open_memory(&inner, NEAP_INFINITE), 0);
	if (faulty) {
		int64_t *const rows[] = {&faults.fail_put, &faults.fail_get, &faults.gone_after,
			&faults.lose_put, &faults.corrupt_put, &faults.truncate_put};
		for (int i = 0; i < (lazy ? 3 : 6); i++)
			if (draw(&k, 3) == 0)
				*rows[i] = 1 + (int64_t)draw(&k, 40);
		faults.at_once = (int)draw(&k, 2);
	}
	assert_int_equal(neap__fault_open(&tier, inner, &faults), 0);
	struct neap_sweep_options o = {
		.size = sizeof o, .steps = m.steps, .tiers = &tier, .ntiers = 1};
	int rc = neap__sweep_create_over(&sweep, &ops, &m, &o, maker_open, &k);
	if (rc < 0)
		fail_msg("seed %llu: %s", (unsigned long long)seed, neap_detail());
	neap__sweep_poison(sweep, 1);
	const struct neap_problem *p = neap_sweep_problem(sweep);
	uint64_t peak = exact_peak(&k, p);
	assert_true(peak <= neap_sweep_plan(sweep)->peak_bytes);
	sweep->arena.bytes = peak + (vary ? p->chain.tape_max - p->chain.tape : 0);
	rc = run_model(sweep, &m, &got, &stats);
	if (rc < 0 || m.broken[0] || memcmp(&got, &want, sizeof got) != 0)
		fail_msg("seed %llu T=%lld: %d %s; %s", (unsigned long long)seed,
			(long long)m.steps, rc, rc < 0 ? neap_detail() : "gradient", m.broken);
	assert_true(stats.peak_measured <= stats.arena_bytes);
	assert_int_equal(stats.advance_steps + stats.record_steps,
		neap_sweep_plan(sweep)->advance_steps + neap_sweep_plan(sweep)->record_steps +
			stats.recomputed);
	if (!vary && !stats.recoveries) {
		assert_int_equal(stats.peak_measured, peak);
		assert_int_equal(stats.recomputed, 0);
	}
	totals->runs++;
	totals->actions += (int64_t)k.count;
	totals->overflows += stats.overflows;
	totals->recoveries += stats.recoveries;
	neap_sweep_free(sweep);
	neap_tier_close(tier);
	model_fini(&m);
}

static void random_schedules(void **state)
{
	const char *given = getenv("NEAP_ROUNDS");
	uint64_t seed = test_seed(1), rounds = given ? strtoull(given, NULL, 0) : 1500;
	(void)state;
	for (int mode = 0; mode < 4; mode++) {
		struct totals totals = {0};
		for (uint64_t i = 0; i < rounds; i++)
			check_round(seed + i, mode & 1, mode & 2, &totals);
		print_message("# %lld schedules, %lld actions, %lld overflows, %lld recoveries\n",
			(long long)totals.runs, (long long)totals.actions,
			(long long)totals.overflows, (long long)totals.recoveries);
		assert_true(rounds < 100 || (totals.recoveries > 0) == (mode & 1));
		assert_true(rounds < 100 || mode < 2 || totals.overflows > 0);
	}
}

/* A slot that is being sent moves to make room for tapes: only once it was sent. */
static void sent_slot_moves(void **state)
{
	static const struct neap_action actions[] = {
		{.kind = NEAP_SAVE, .slot = 0, .t0 = 0},
		{.kind = NEAP_PUT, .tier = 1, .slot = 0, .t0 = 0, .place = 0, .ticket = 1},
		{.kind = NEAP_WAIT, .ticket = 1},
		{.kind = NEAP_ADVANCE, .t0 = 0, .t1 = 10},
		{.kind = NEAP_SAVE, .slot = 1, .t0 = 10},
		{.kind = NEAP_PUT, .tier = 1, .slot = 1, .t0 = 10, .place = 1, .ticket = 2},
		{.kind = NEAP_DROP, .slot = 0, .t0 = 0},
		{.kind = NEAP_ADVANCE, .t0 = 10, .t1 = 12},
		{.kind = NEAP_RECORD, .t0 = 12, .t1 = 22},
		{.kind = NEAP_TURN, .t0 = 22, .t1 = 22},
		{.kind = NEAP_BACKWARD, .t0 = 12, .t1 = 22},
		{.kind = NEAP_WAIT, .ticket = 2},
		{.kind = NEAP_DROP, .slot = 1, .t0 = 10},
		{.kind = NEAP_GET, .tier = 1, .slot = NEAP_LIVE, .t0 = 10, .place = 1, .ticket = 3},
		{.kind = NEAP_WAIT, .ticket = 3},
		{.kind = NEAP_RECORD, .t0 = 10, .t1 = 12},
		{.kind = NEAP_BACKWARD, .t0 = 10, .t1 = 12},
		{.kind = NEAP_GET, .tier = 1, .slot = NEAP_LIVE, .t0 = 0, .place = 0, .ticket = 3},
		{.kind = NEAP_WAIT, .ticket = 3},
		{.kind = NEAP_RECORD, .t0 = 0, .t1 = 10},
		{.kind = NEAP_BACKWARD, .t0 = 0, .t1 = 10},
	};
	static struct maker k;
	struct neap_tier *tier;
	struct neap_sweep *sweep;
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct gradient got;
	struct model m;
	(void)state;
	memcpy(k.actions, actions, sizeof actions);
	k.count = sizeof actions / sizeof actions[0];
	model_init(&m, 22, 3);
	struct gradient want = reference(&m);
	struct neap_step_ops ops = model_ops(&m, 0);
	assert_int_equal(lazy_open(&tier), 0);
	struct neap_sweep_options o = {
		.size = sizeof o, .steps = m.steps, .tiers = &tier, .ntiers = 1};
	assert_int_equal(neap__sweep_create_over(&sweep, &ops, &m, &o, maker_open, &k), 0);
	neap__sweep_poison(sweep, 1);
	sweep->arena.bytes = exact_peak(&k, neap_sweep_problem(sweep));
	assert_int_equal(run_model(sweep, &m, &got, &stats), 0);
	assert_string_equal(m.broken, "");
	assert_memory_equal(&got, &want, sizeof got);
	assert_int_equal(stats.overflows, 0);
	assert_int_equal(stats.peak_measured, sweep->arena.bytes);
	neap_sweep_free(sweep);
	neap_tier_close(tier);
	model_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sent_slot_moves), cmocka_unit_test(random_schedules)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
