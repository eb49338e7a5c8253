/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collective sweeps: ranks as processes, whose states are spread over them. Drawn at random: ranks,
 * length, strategy, budgets, costs, capacities and rates that differ, tapes that vary, records of
 * one rank that are lost, damaged, late or refused, a tier that is gone for good, an interrupt of
 * one rank. All ranks make the same calls and have the gradient of the whole, to the bit; nothing
 * hangs.
 *   test_agree [STARTS]     NEAP_SEED
 */
#include "guard_memory.h"
#include "spreadmodel.h"

#include "store/fault_tier.h"
#include "store/tier_state.h"
#include "sweep/sweep.h"
#include "sys/memory.h"

static uint64_t rounds = 120;

/*
 * The linker puts these in place of the functions of that name (--wrap). A rank may have no memory
 * beyond the arena; and ranks take no transfer back, since each would find another answer.
 */
static int no_spare;
int __real_neap__map_partly(void **out, size_t bytes, size_t used);
int __wrap_neap__map_partly(void **out, size_t bytes, size_t used);
int __wrap_neap__map_partly(void **out, size_t bytes, size_t used)
{
	return no_spare ? -ENOMEM : __real_neap__map_partly(out, bytes, used);
}

int __wrap_neap__tier_cancel(struct neap_tier *tier, int64_t ticket);
int __wrap_neap__tier_cancel(struct neap_tier *tier, int64_t ticket)
{
	(void)tier, (void)ticket;
	fprintf(stderr, "# a rank takes a transfer back\n");
	_exit(8);
}

/* What a start is about, the same on all ranks. */
struct start {
	uint64_t seed;
	int64_t steps;
	const char *strategy;
	int ntiers, varies, replans, logs, unknown, costs, interrupt_rank, faulty_rank, gone, hangs,
		again, alone, no_spare;
	size_t mean;
	uint64_t
		capacity; /* of the tiers of the faulty rank, which has no other faults; 0: drawn */
	int64_t interrupt_at;
	/* What goes wrong otherwise. */
	int64_t fail_hook_at, tamper_at, fail_call_at;
	int no_leave;
	struct neap_sweep_options
		change[RANKS_MOST]; /* steps, memory, strategy of a rank, if set */
	size_t more_state[RANKS_MOST];
};

/* What became of a rank. */
struct outcome {
	int created, rc, interrupted;
	char line[300], broken[200];
	uint64_t hash, spare, place_bytes; /* bytes beyond the arena; of places, of all tiers */
	int64_t places[NEAP_TIERS_MAX];
	int64_t calls, agreements;
	struct spread_gradient gradient;
	struct neap_sweep_stats stats;
};

static struct {
	int64_t starts, refused, recoveries, overflows, late, interrupted, unknown, replayed;
} totals;

/* Draws of one stream: of all ranks, or of one. */
struct draws {
	uint64_t seed, count;
	uint32_t stream;
};

static uint64_t draw(struct draws *d, uint64_t n)
{
	return neap__random_below(d->seed, NEAP__STREAM_TEST, d->stream, d->count++, n);
}

static uint64_t draw_size(struct draws *d, unsigned doublings)
{
	uint64_t top = UINT64_C(1) << draw(d, doublings + 1);
	return top / 2 + 1 + draw(d, top - top / 2);
}

static void draw_faults(const struct start *x, struct draws *d, struct neap__faults *f)
{
	int64_t *const at[] = {
		&f->fail_put, &f->fail_get, &f->lose_put, &f->corrupt_put, &f->truncate_put};
	for (size_t i = 0; i < sizeof at / sizeof at[0]; i++)
		if (draw(d, 2))
			*at[i] = (int64_t)draw_size(d, 7);
	f->row = (int64_t)draw(d, 4);
	f->at_once = (int)draw(d, 2);
	f->code = draw(d, 2) ? -ENOSPC : 0;
	f->no_format = draw(d, 12) == 0;
	if (draw(d, 6) == 0)
		f->full_at = draw_size(d, 14);
	if (x->gone)
		f->gone_after = (int64_t)draw_size(d, 7);
	if (x->hangs)
		*(draw(d, 2) ? &f->hang_put : &f->hang_get) = (int64_t)draw_size(d, 3);
}

/* Tiers of this rank: of its own capacity and rates, memory or file. */
static void open_tiers(const struct start *x, const struct rank *r, struct draws *own,
	struct neap_tier **tiers, struct neap__faults *faults)
{
	for (int i = 0; i < x->ntiers; i++) {
		struct neap_tier *inner;
		struct neap_file_options o = {.size = sizeof o, .page_cache = draw(own, 4) == 0};
		if (x->capacity) {
			RANK_NEEDS(neap_tier_open_memory(&inner, r->rank == x->faulty_rank
									 ? x->capacity
									 : NEAP_INFINITE) == 0);
		} else if (draw(own, 3)) {
			uint64_t bytes = draw(own, 3) ? NEAP_INFINITE : draw_size(own, 18);
			RANK_NEEDS(neap_tier_open_memory(&inner, bytes) == 0);
		} else {
			o.capacity = draw(own, 3) ? UINT64_C(16) << 20 : 4096 * draw_size(own, 6);
			RANK_NEEDS(neap_tier_open_file(&inner, "/var/tmp", &o) == 0);
		}
		double rate = (double)draw_size(own, 34);
		neap_tier_set_rates(
			inner, rate, rate * (1 + (double)draw(own, 3)), draw(own, 2) ? 1e-5 : 0);
		memset(&faults[i], 0, sizeof faults[i]);
		if (r->rank == x->faulty_rank && !x->capacity)
			draw_faults(x, own, &faults[i]);
		RANK_NEEDS(neap__fault_open(&tiers[i], inner, &faults[i]) == 0);
	}
}

static struct neap_sweep_options options_of(const struct start *x, struct rank *r, struct spread *m,
	struct draws *own, struct neap_tier *const *tiers)
{
	struct draws all = {x->seed, 0, 41};
	struct neap_sweep_options o = {.size = sizeof o,
		.steps = x->steps,
		.memory = 500 + draw_size(&all, 13) + draw(own, 2) * draw_size(own, 12),
		.strategy = x->unknown ? "online" : x->strategy,
		.params = {.effort = 10},
		.tiers = tiers,
		.ntiers = x->ntiers,
		.patience = x->hangs ? 0.004 : 0,
		.no_replan = -x->replans,
		.interrupted = spread_interrupted,
		.interrupted_user = m};
	if (x->costs) {
		o.advance = 1e-6 * (double)draw_size(own, 6);
		o.record = o.advance * (1 + (double)draw(own, 3));
		o.backward = 1e-6 * (double)draw_size(own, 6);
	}
	const struct neap_sweep_options *change = &x->change[r->rank];
	o.steps = change->steps ? change->steps : o.steps;
	o.memory = change->memory ? change->memory : o.memory;
	o.strategy = change->strategy ? change->strategy : o.strategy;
	RANK_HOOK(r, &o);
	if (x->no_leave)
		o.leave = NULL;
	return o;
}

static void note(struct outcome *out, const struct spread *m, int rc)
{
	snprintf(out->line, sizeof out->line, "%s", rc < 0 ? neap_detail() : "");
	snprintf(out->broken, sizeof out->broken, "%s", m->broken);
	out->hash = m->hash;
	out->calls = m->calls;
	out->agreements = m->rank->agreements;
}

/* The budget that a refusal names, on all ranks. */
static uint64_t named_budget(void)
{
	const char *at = strstr(neap_detail(), "at least ");
	return at ? strtoull(at + strlen("at least "), NULL, 10) : 0;
}

static void run_rank(struct rank *r, void *user)
{
	const struct start *x = user;
	struct outcome *out = (struct outcome *)(void *)r->world->results[r->rank];
	struct draws own = {x->seed, 0, 50 + (uint32_t)r->rank};
	struct neap__faults faults[NEAP_TIERS_MAX];
	struct neap_tier *tiers[NEAP_TIERS_MAX];
	struct neap_sweep *sweep = NULL;
	struct spread m;
	memset(out, 0, sizeof *out);
	spread_init(&m, r, x->steps, x->seed);
	m.varies = x->varies;
	m.alone = x->alone;
	no_spare = x->no_spare && r->rank == x->faulty_rank;
	open_tiers(x, r, &own, tiers, faults);
	struct neap_sweep_options o = options_of(x, r, &m, &own, tiers);
	struct neap_step_ops ops = spread_ops(&m, x->mean);
	ops.state_bytes += x->more_state[r->rank];
	if (x->logs)
		spread_use_logs(&ops);
	if (x->unknown)
		ops.ended = spread_ended;
	if (r->rank == x->faulty_rank) {
		r->fail_at = x->fail_hook_at;
		r->tamper_at = x->tamper_at;
		m.fail_at = x->fail_call_at;
	}
	if (r->rank == x->interrupt_rank)
		m.interrupt_at = x->interrupt_at;
	out->created = neap_sweep_create(&sweep, &ops, &m, &o);
	for (int i = 0; out->created == NEAP_EINFEASIBLE && named_budget() && i < 4; i++) {
		o.memory = named_budget();
		out->created = neap_sweep_create(&sweep, &ops, &m, &o);
	}
	if (out->created == 0) {
		neap__sweep_poison(sweep, 1);
		for (int i = 0; i < x->ntiers; i++) {
			out->places[i] = sweep->places[i];
			out->place_bytes += sweep->tape_place_bytes[i];
		}
		out->rc = spread_run(sweep, &m, &out->gradient, &out->stats);
		out->spare = sweep->spare_bytes;
	}
	out->interrupted = out->rc == NEAP_EINTERRUPTED;
	note(out, &m, out->created < 0 ? out->created : out->rc);
	if (out->created == 0 && x->again && !m.broken[0] &&
		(out->rc == 0 || out->rc == NEAP_EINTERRUPTED)) {
		if (x->again == 2 && neap_sweep_replan(sweep, &ops, &o) < 0)
			snprintf(m.broken, sizeof m.broken, "replan: %.120s", neap_detail());
		else
			out->rc = spread_run(sweep, &m, &out->gradient, &out->stats);
		note(out, &m, out->rc);
	}
	neap_sweep_free(sweep);
	for (int i = 0; i < x->ntiers; i++)
		neap_tier_close(tiers[i]);
	free(m.passed);
}

static const struct outcome *outcome_of(const struct world *w, int rank)
{
	return (const struct outcome *)(const void *)w->results[rank];
}

static const char *about(const struct start *x, int ranks)
{
	static char text[300];
	snprintf(text, sizeof text,
		"NEAP_SEED=%llu, %d ranks, T=%lld %s, %d tiers, faulty rank %d%s%s%s%s%s",
		(unsigned long long)x->seed, ranks, (long long)x->steps, x->strategy, x->ntiers,
		x->faulty_rank, x->gone ? ", gone" : "", x->hangs ? ", hangs" : "",
		x->varies ? ", varies" : "", x->unknown ? ", unknown" : "",
		x->interrupt_at ? ", interrupted" : "");
	return text;
}

static void start(struct world *w, struct start *x)
{
	int how = start_ranks(w, run_rank, x);
	if (how)
		fail_msg("%s: a rank ended with %d", about(x, w->ranks), how);
}

/* All ranks have one answer, and made the same calls. */
static void check_same(const struct world *w, const struct start *x)
{
	const struct outcome *first = outcome_of(w, 0);
	for (int i = 0; i < w->ranks; i++) {
		const struct outcome *o = outcome_of(w, i);
		if (o->broken[0])
			fail_msg("%s: rank %d: %s (%s)", about(x, w->ranks), i, o->broken, o->line);
		if (o->created != first->created || o->rc != first->rc || o->hash != first->hash ||
			o->calls != first->calls || o->agreements != first->agreements ||
			o->place_bytes != first->place_bytes || o->spare != first->spare ||
			memcmp(o->places, first->places, sizeof o->places) != 0)
			fail_msg("%s: rank %d: %d %d %s, rank 0: %d %d %s", about(x, w->ranks), i,
				o->created, o->rc, o->line, first->created, first->rc, first->line);
	}
}

static void check_gradient(const struct world *w, const struct start *x)
{
	struct spread_gradient want[RANKS_MOST];
	spread_reference(x->steps, x->seed, w->ranks, x->alone, want);
	for (int i = 0; i < w->ranks; i++) {
		const struct outcome *o = outcome_of(w, i);
		if (o->rc < 0)
			fail_msg("%s: rank %d: %d %s", about(x, w->ranks), i, o->rc, o->line);
		if (memcmp(&o->gradient, &want[i], sizeof want[i]) != 0)
			fail_msg("%s: rank %d: gradient", about(x, w->ranks), i);
	}
}

static const char *draw_strategy(struct draws *d)
{
	int count = 0;
	while (neap_strategy_name(count))
		count++;
	return draw(d, 4) ? neap_strategy_name((int)draw(d, (uint64_t)count)) : "auto";
}

static struct start draw_start(uint64_t seed, int ranks)
{
	struct draws d = {seed, 0, 40};
	struct start x = {.seed = seed,
		.steps = (int64_t)draw_size(&d, 8) - (int64_t)draw(&d, 2),
		.strategy = draw_strategy(&d),
		.ntiers = draw(&d, 5) ? 1 + (int)draw(&d, 3) : 0,
		.varies = (int)draw(&d, 2),
		.mean = 104 + 8 * draw(&d, 4),
		.unknown = draw(&d, 7) == 0,
		.costs = draw(&d, 8) != 0,
		.faulty_rank = draw(&d, 5) ? (int)draw(&d, (uint64_t)ranks) : -1,
		.gone = draw(&d, 5) == 0,
		.hangs = draw(&d, 3) == 0,
		.again = (int)draw(&d, 4),
		.replans = (int)draw(&d, 2)};
	x.logs = draw(&d, 4) == 0 && !x.unknown;
	if (x.logs && draw(&d, 2))
		x.strategy = "replay";
	if (draw(&d, 5) == 0) {
		x.interrupt_rank = (int)draw(&d, (uint64_t)ranks);
		x.interrupt_at = (int64_t)draw_size(&d, 7);
		x.again = 1;
	}
	x.no_spare = draw(&d, 3) == 0;
	return x;
}

static void one_start(uint64_t seed)
{
	struct draws d = {seed, 0, 39};
	struct world *w = make_world(1 + (int)draw(&d, RANKS_MOST));
	struct start x = draw_start(seed, w->ranks);
	start(w, &x);
	check_same(w, &x);
	const struct outcome *o = outcome_of(w, 0);
	if (o->created == NEAP_EINFEASIBLE) {
		totals.refused++;
		assert_true(o->line[0]);
		for (int i = 1; i < w->ranks; i++)
			assert_string_equal(outcome_of(w, i)->line, o->line);
	} else if (o->created < 0) {
		fail_msg("%s: %d %s", about(&x, w->ranks), o->created, o->line);
	} else {
		check_gradient(w, &x);
		totals.starts++;
		totals.recoveries += o->stats.recoveries;
		totals.overflows += o->stats.overflows;
		totals.interrupted += o->interrupted;
		totals.unknown += x.unknown;
		totals.replayed += o->stats.replay_steps > 0;
		for (int i = 0; i < w->ranks; i++)
			totals.late += outcome_of(w, i)->stats.late;
	}
	free_world(w);
}

static void all_ranks_do_the_same(void **state)
{
	uint64_t seed = test_seed(1);
	(void)state;
	for (uint64_t i = 0; i < rounds; i++)
		one_start(seed + i);
	print_message(
		"# %lld starts, %lld plans refused, %lld recoveries, %lld overflows, %lld late, "
		"%lld interrupted, %lld of unknown length, %lld with steps replayed\n",
		(long long)totals.starts, (long long)totals.refused, (long long)totals.recoveries,
		(long long)totals.overflows, (long long)totals.late, (long long)totals.interrupted,
		(long long)totals.unknown, (long long)totals.replayed);
	assert_true(rounds < 100 ||
		    (totals.recoveries > 0 && totals.overflows > 0 && totals.interrupted > 0));
	assert_true(rounds < 1000 || (totals.late > 0 && totals.replayed > 0));
}

/* A plain start over tiers, for what goes wrong. */
static struct start plain(uint64_t seed)
{
	return (struct start){.seed = seed,
		.steps = 150,
		.strategy = "double",
		.ntiers = 1,
		.costs = 1,
		.faulty_rank = -1};
}

/* The hook fails on one rank: it leaves, and all end. */
static void hook_fails(void **state)
{
	(void)state;
	struct world *w = make_world(3);
	int ended = 0;
	for (int64_t at = 1; !ended; at += 1 + at / 8) {
		struct start x = plain(7);
		x.faulty_rank = (int)(at % 3);
		x.change[0].memory = x.change[1].memory = x.change[2].memory = 4000;
		x.fail_hook_at = at;
		start(w, &x);
		for (int i = 0; i < 3; i++) {
			const struct outcome *o = outcome_of(w, i);
			int rc = o->created < 0 ? o->created : o->rc;
			ended = rc == 0 && o->agreements < at;
			if (rc != -EIO && !ended)
				fail_msg("at %lld, rank %d: %d %s", (long long)at, i, rc, o->line);
			if (at < 9 && i == x.faulty_rank)
				assert_non_null(strstr(o->line, "agree answered -5"));
		}
	}
	assert_true(atomic_load(&w->left) > 0);
	free_world(w);
}

/* A rank that is elsewhere: all end with one line. */
static void stamps_differ(void **state)
{
	(void)state;
	struct world *w = make_world(3);
	int ended = 0;
	for (int64_t at = 1; !ended; at += 1 + at / 8) {
		struct start x = plain(8);
		x.faulty_rank = (int)(at % 3);
		x.change[0].memory = x.change[1].memory = x.change[2].memory = 4000;
		x.tamper_at = at;
		start(w, &x);
		check_same(w, &x);
		for (int i = 0; i < 3; i++) {
			const struct outcome *o = outcome_of(w, i);
			int rc = o->created < 0 ? o->created : o->rc;
			ended = rc == 0 && o->agreements < at;
			if (!ended &&
				(rc != NEAP_EILLEGAL ||
					!strstr(o->line, "the ranks went apart at agreement ")))
				fail_msg("at %lld, rank %d: %d %s", (long long)at, i, rc, o->line);
		}
	}
	assert_int_equal(atomic_load(&w->left), 0);
	free_world(w);
}

/* A callback fails on one rank alone; models that exchange nothing learn it without `leave`. */
static void callback_fails(void **state)
{
	(void)state;
	struct world *w = make_world(3);
	for (int64_t at = 1; at < 25; at += 1 + at / 4)
		for (int no_leave = 0; no_leave < 2; no_leave++) {
			struct start x = plain(9);
			x.faulty_rank = (int)(at % 3);
			x.change[0].memory = x.change[1].memory = x.change[2].memory = 4000;
			x.fail_call_at = at;
			x.no_leave = x.alone = no_leave;
			start(w, &x);
			for (int i = 0; i < 3; i++) {
				const struct outcome *o = outcome_of(w, i);
				/* Where the end is the next agreement, it has the code. */
				int fine = no_leave ? o->rc == NEAP_EILLEGAL || o->rc == -EDOM
						    : o->rc == (i == x.faulty_rank ? -EDOM : -EIO);
				if (o->created < 0 || !fine)
					fail_msg("at %lld, rank %d: %d %s", (long long)at, i, o->rc,
						o->line);
			}
		}
	free_world(w);
}

/* Sweeps that are not the same are refused on all ranks, with what differs. */
static void sweeps_differ(void **state)
{
	(void)state;
	struct world *w = make_world(2);
	static const struct {
		struct neap_sweep_options change;
		size_t more;
		const char *line;
	} rows[] = {
		{{.steps = 151}, 0, "the ranks differ in steps: 150 to 151"},
		{{.steps = 0}, 64, "the ranks differ in state_bytes: 80 to 144"},
		{{.strategy = "revolve"}, 0, "the ranks differ in the strategy"},
		{{.strategy = "none such"}, 0, ""},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		for (int rank = 0; rank < 2; rank++) {
			struct start x = plain(10);
			x.change[rank] = rows[i].change;
			x.more_state[rank] = rows[i].more;
			start(w, &x);
			check_same(w, &x);
			for (int k = 0; k < 2; k++) {
				const struct outcome *o = outcome_of(w, k);
				if (o->created != NEAP_EUSAGE || !strstr(o->line, rows[i].line))
					fail_msg("%s: %d %s", rows[i].line, o->created, o->line);
			}
		}
	free_world(w);
}

/* Where a rank has no memory beyond its arena, none has: what tiers lost is made again alike. */
static void a_rank_without_spare_memory(void **state)
{
	struct world *w = make_world(3);
	int had = 0;
	(void)state;
	if (memory_is_guarded()) /* such an arena has no memory to spare on any rank */
		skip();
	for (uint64_t k = 0; k < 8; k++) {
		struct start x = plain(36 + k / 2);
		x.strategy = "async";
		x.change[0].memory = x.change[1].memory = x.change[2].memory = 60000;
		x.faulty_rank = 1;
		x.gone = 1;
		x.no_spare = k % 2;
		start(w, &x);
		check_same(w, &x);
		check_gradient(w, &x);
		had += outcome_of(w, 0)->spare > 4096;
		assert_true(!x.no_spare || outcome_of(w, 0)->spare < 4096);
	}
	assert_true(had > 0);
	free_world(w);
}

/* A tier of one rank has room for few places: all have as many. */
static void a_rank_with_few_places(void **state)
{
	struct world *w = make_world(2);
	int64_t plenty = 0, fewer = 0;
	(void)state;
	for (uint64_t capacity = 40000; capacity >= 14000; capacity -= capacity / 16) {
		struct start x = plain(5);
		x.strategy = "replay";
		x.steps = 244;
		x.logs = 1;
		x.varies = 1;
		x.mean = 104;
		x.faulty_rank = 1;
		x.capacity = capacity;
		x.change[0].memory = x.change[1].memory = 6000;
		start(w, &x);
		check_same(w, &x);
		const struct outcome *o = outcome_of(w, 0);
		if (o->created == 0)
			check_gradient(w, &x);
		plenty = o->places[0] > plenty ? o->places[0] : plenty;
		fewer += o->created == 0 && o->places[0] < plenty;
	}
	assert_true(fewer > 0);
	free_world(w);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_ranks_do_the_same),
		cmocka_unit_test(a_rank_without_spare_memory),
		cmocka_unit_test(a_rank_with_few_places),
		cmocka_unit_test(hook_fails),
		cmocka_unit_test(stamps_differ),
		cmocka_unit_test(callback_fails),
		cmocka_unit_test(sweeps_differ),
	};
	if (argc > 1)
		rounds = strtoull(argv[1], NULL, 10);
	return cmocka_run_group_tests_name("agree", tests, NULL, NULL);
}
