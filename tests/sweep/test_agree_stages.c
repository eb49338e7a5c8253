/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collective sweeps of stages and of branches: ranks as processes, each with stages of the same
 * sizes. Records of one rank are lost, damaged, late or refused, its tiers go for good, it is
 * interrupted or killed and all resume. In every callback the ranks compare which call it is.
 *   test_agree_stages [STARTS]     NEAP_SEED
 */
#include "random_stages.h"
#include "ranks.h"

#include "store/fault_tier.h"
#include "sweep/stages/stage_sweep.h"

static uint64_t rounds = 150;
static char folder[64];

struct start {
	uint64_t seed;
	int64_t stages;
	uint64_t sixteenths; /* of what keeps everything: the budget */
	const char *strategy;
	int ntiers, file, faulty_rank, gone, hangs, journal, mortal_rank;
	int64_t die_call, die_after, interrupt_call;
};

struct outcome {
	int created, rc;
	char line[300], broken[200];
	int64_t calls;
	struct stagegradient gradient, want;
	struct neap_sweep_stats stats;
};

static struct {
	int64_t starts, refused, lost, given_up, late, interrupted, killed, resumed;
} totals;

/* A rank's model, and when it is killed or interrupted. */
static struct spread_stages {
	struct stagemodel model;
	struct rank *rank;
	int64_t calls, die_call, interrupt_call;
} own;

static int meet_all(int kind, int64_t i, int first)
{
	const int64_t mine[] = {kind, i, first};
	int64_t all[RANKS_MOST * 3];
	if (++own.calls == own.die_call)
		kill(getpid(), SIGKILL);
	if (meet(own.rank, &own.rank->world->model, mine, sizeof mine, all) < 0)
		return -EIO;
	for (int k = 0; k < own.rank->world->ranks; k++)
		if (memcmp(all + 3 * k, mine, sizeof mine) != 0) {
			snprintf(own.model.broken, sizeof own.model.broken,
				"call %d of stage %lld, rank %d: %d of %lld", kind, (long long)i, k,
				(int)all[3 * k], (long long)all[3 * k + 1]);
			return -EPROTO;
		}
	return 0;
}

static int advance(void *user, int64_t i, const void *x, void *y, void *tmp, int first)
{
	int rc = meet_all(1, i, first);
	return rc < 0 ? rc : stagemodel_advance(user, i, x, y, tmp, first);
}

static int record(void *user, int64_t i, const void *x, void *y, void *tape, void *tmp, int first)
{
	int rc = meet_all(2, i, first);
	return rc < 0 ? rc : stagemodel_record(user, i, x, y, tape, tmp, first);
}

static int turn(void *user, const void *x, void *dx, void *tmp, double *loss)
{
	int rc = meet_all(3, 0, 0);
	return rc < 0 ? rc : stagemodel_turn(user, x, dx, tmp, loss);
}

static int backward(
	void *user, int64_t i, const void *x, const void *tape, void *dy, void *dx, void *tmp)
{
	int rc = meet_all(4, i, 0);
	return rc < 0 ? rc : stagemodel_backward(user, i, x, tape, dy, dx, tmp);
}

static int gather(void *user, int (*write)(void *, const void *, size_t), void *to)
{
	struct stagemodel *m = user;
	int rc = write(to, m->dw, sizeof m->dw);
	return rc < 0 ? rc : write(to, m->passed, sizeof m->passed);
}

static int scatter(void *user, int (*read)(void *, void *, size_t), void *from)
{
	struct stagemodel *m = user;
	int rc = read(from, m->dw, sizeof m->dw);
	return rc < 0 ? rc : read(from, m->passed, sizeof m->passed);
}

static int interrupted(void *user)
{
	(void)user;
	if (!own.interrupt_call || own.calls < own.interrupt_call)
		return 0;
	own.interrupt_call = 0;
	return 1;
}

static void draw_faults(const struct start *x, struct random *r, struct neap__faults *f)
{
	int64_t *const at[] = {
		&f->fail_put, &f->fail_get, &f->lose_put, &f->corrupt_put, &f->truncate_put};
	for (size_t i = 0; i < sizeof at / sizeof at[0]; i++)
		if (chance(r, 40))
			*at[i] = 1 + below(r, 12);
	f->row = below(r, 3);
	f->at_once = chance(r, 50);
	f->no_format = chance(r, 10);
	if (x->gone)
		f->gone_after = 1 + below(r, 12);
	if (x->hangs)
		*(chance(r, 50) ? &f->hang_put : &f->hang_get) = 1 + below(r, 4);
}

static void open_tiers(const struct start *x, const struct rank *r, struct random *d,
	struct neap_tier **tiers, struct neap__faults *faults)
{
	char suffix[8];
	snprintf(suffix, sizeof suffix, ".%d", r->rank);
	for (int i = 0; i < x->ntiers; i++) {
		struct neap_tier *inner;
		const struct neap_file_options o = {.size = sizeof o,
			.keep = (uint32_t)x->journal,
			.in_memory = 1,
			.page_cache = 1,
			.suffix = suffix};
		int rc = x->file && i == 0
				 ? neap_tier_open_file(&inner, folder, &o)
				 : neap_tier_open_memory(
					   &inner, chance(d, 60) ? NEAP_INFINITE
								 : (uint64_t)(1 + below(d, 9000)));
		RANK_NEEDS(rc == 0);
		double rate = 8.0 * 20 / (double)(1 + below(d, 8));
		neap_tier_set_rates(inner, rate, rate, chance(d, 30) ? 0.3 : 0);
		memset(&faults[i], 0, sizeof faults[i]);
		if (r->rank == x->faulty_rank)
			draw_faults(x, d, &faults[i]);
		RANK_NEEDS(neap__fault_open(&tiers[i], inner, &faults[i]) == 0);
	}
}

static uint64_t memory_of(const struct start *x, struct random *d)
{
	const struct stagemodel *m = &own.model;
	uint64_t bytes = 4096;
	for (int64_t i = 0; i < m->n; i++)
		bytes += m->tape[i] + m->state[i] + 128;
	return (bytes + 2 * m->adjoint_bytes) * x->sixteenths / 16 + (x->file ? 8192 : 0) +
	       (uint64_t)below(d, 2000);
}

static void run_rank(struct rank *r, void *user)
{
	const struct start *x = user;
	struct outcome *out = (struct outcome *)(void *)r->world->results[r->rank];
	struct random all = {x->seed, 0}, d = {x->seed * 16 + (uint64_t)r->rank + 1, 0};
	struct stagemodel *m = &own.model;
	struct neap_tier *tiers[2];
	struct neap__faults faults[2];
	struct neap_stage_sweep *sweep = NULL;
	char suffix[8];
	memset(out, 0, sizeof *out);
	memset(&own, 0, sizeof own);
	snprintf(suffix, sizeof suffix, ".%d", r->rank);
	own.rank = r;
	random_model(m, &all, x->stages, 40);
	for (int64_t i = 0; i < m->n; i++) {
		m->w[i] += 0.01 * r->rank;
		m->advance[i] *= 1 + 0.1 * (double)below(&d, 5);
		m->record[i] = m->advance[i] + 0.1;
	}
	stagemodel_reference(m, &out->want);
	if (r->rank == x->mortal_rank) {
		own.die_call = x->die_call;
		own.interrupt_call = x->interrupt_call;
		r->die_after = x->die_after;
	}
	open_tiers(x, r, &d, tiers, faults);
	struct neap_stage_ops ops = stagemodel_ops(m);
	ops.advance = advance;
	ops.record = record;
	ops.turn = turn;
	ops.backward = backward;
	ops.grad_save = gather;
	ops.grad_load = scatter;
	struct neap_sweep_options o = {.size = sizeof o,
		.steps = x->stages,
		.strategy = x->strategy,
		.memory = memory_of(x, &d),
		.params = {.effort = 40},
		.tiers = tiers,
		.ntiers = x->ntiers,
		.patience = x->hangs ? 0.004 : 0,
		.interrupted = interrupted};
	if (x->journal) {
		o.journal = folder;
		o.journal_in_memory = 1;
		o.journal_suffix = suffix;
		o.journal_seconds = -1;
	}
	RANK_HOOK(r, &o);
	out->created = neap_stage_sweep_create(&sweep, &ops, m, &m->stages, &o);
	if (out->created == 0) {
		neap__stage_sweep_poison(sweep, 1);
		out->rc = stagemodel_run(sweep, m, &out->gradient, &out->stats);
	}
	if (out->rc == NEAP_EINTERRUPTED && !m->broken[0]) {
		totals.interrupted++;
		out->rc = stagemodel_run(sweep, m, &out->gradient, &out->stats);
	}
	int rc = out->created < 0 ? out->created : out->rc;
	snprintf(out->line, sizeof out->line, "%s", rc < 0 ? neap_detail() : "");
	snprintf(out->broken, sizeof out->broken, "%s", m->broken);
	out->calls = own.calls;
	neap_stage_sweep_free(sweep);
	for (int i = 0; i < x->ntiers; i++)
		neap_tier_close(tiers[i]);
}

static const struct outcome *outcome_of(const struct world *w, int rank)
{
	return (const struct outcome *)(const void *)w->results[rank];
}

static const char *about(const struct start *x, int ranks)
{
	static char text[200];
	snprintf(text, sizeof text,
		"NEAP_SEED=%llu, %d ranks, %lld stages, %s, %d/16, %d tiers%s%s%s",
		(unsigned long long)x->seed, ranks, (long long)x->stages, x->strategy,
		(int)x->sixteenths, x->ntiers, x->gone ? ", gone" : "", x->hangs ? ", hangs" : "",
		x->journal ? ", journal" : "");
	return text;
}

static void check(const struct world *w, const struct start *x)
{
	const struct outcome *first = outcome_of(w, 0);
	for (int i = 0; i < w->ranks; i++) {
		const struct outcome *o = outcome_of(w, i);
		int differs = o->created != first->created || o->rc != first->rc ||
			      o->calls != first->calls;
		if (o->broken[0] || differs || (o->created < 0 && o->created != NEAP_EINFEASIBLE) ||
			(o->rc < 0 && o->rc != NEAP_EINFEASIBLE))
			fail_msg("%s: rank %d: %d %d %s %s", about(x, w->ranks), i, o->created,
				o->rc, o->line, o->broken);
		if (o->created == 0 && o->rc == 0 &&
			memcmp(&o->gradient, &o->want, sizeof o->want) != 0)
			fail_msg("%s: rank %d: gradient", about(x, w->ranks), i);
		totals.late += o->stats.late;
	}
	totals.refused += first->created < 0;
	totals.given_up += first->created == 0 && first->stats.recomputed > 0;
	totals.lost += first->stats.recoveries;
	totals.resumed += first->stats.spared > 0;
}

static void make_folder(void)
{
	snprintf(folder, sizeof folder, "/dev/shm/neap-stages-XXXXXX");
	if (mkdtemp(folder))
		return;
	snprintf(folder, sizeof folder, "/var/tmp/neap-stages-XXXXXX");
	assert_non_null(mkdtemp(folder));
}

static void (*runs)(struct rank *rank, void *user) = run_rank;

static void one_start(uint64_t seed)
{
	struct random d = {seed, 1000};
	struct world *w = make_world(1 + (int)below(&d, RANKS_MOST));
	struct start x = {.seed = seed,
		.stages = 2 + below(&d, 14),
		.sixteenths = (uint64_t)(3 + below(&d, 10)),
		.strategy = chance(&d, 50) ? "pofo" : "auto",
		.ntiers = (int)below(&d, 3),
		.file = chance(&d, 30),
		.faulty_rank = chance(&d, 80) ? (int)below(&d, w->ranks) : -1,
		.gone = chance(&d, 30),
		.hangs = chance(&d, 20),
		.mortal_rank = (int)below(&d, w->ranks)};
	if (chance(&d, 20))
		x.interrupt_call = 1 + below(&d, 20);
	x.journal = chance(&d, 30);
	int how = 0, kills = x.journal ? 1 + (int)below(&d, 3) : 0;
	do {
		int64_t at = kills > 0 ? 1 + below(&d, 3 * x.stages) : 0;
		x.die_call = chance(&d, 50) ? at : 0;
		x.die_after = x.die_call ? 0 : at;
		how = start_ranks(w, runs, &x);
		if (how && how != SIGKILL)
			fail_msg("%s: a rank ended with %d", about(&x, w->ranks), how);
		totals.killed += how == SIGKILL;
	} while (how && (kills--, 1));
	totals.starts++;
	check(w, &x);
	for (int i = 0; i < w->ranks && x.journal; i++) {
		char path[128];
		snprintf(path, sizeof path, "%s/neap.journal.%d", folder, i);
		unlink(path); /* of a run that was refused */
		snprintf(path, sizeof path, "%s/neap.slow.%d", folder, i);
		unlink(path);
	}
	free_world(w);
}

static void all_ranks_do_the_same(void **state)
{
	uint64_t seed = test_seed(1);
	(void)state;
	make_folder();
	for (uint64_t i = 0; i < rounds; i++)
		one_start(seed + i);
	print_message(
		"# %lld starts, %lld refused, %lld records lost, %lld with stages done again, "
		"%lld late, %lld killed, %lld resumed\n",
		(long long)totals.starts, (long long)totals.refused, (long long)totals.lost,
		(long long)totals.given_up, (long long)totals.late, (long long)totals.killed,
		(long long)totals.resumed);
	assert_true(totals.lost > 0 && totals.killed > 0 && totals.resumed > 0);
	assert_int_equal(rmdir(folder), 0);
}

/* Two branches that meet in the sum of their losses. */
static struct stagemodel pair[2];

static int join_advance(
	void *user, int branch, int64_t i, const void *x, void *y, void *tmp, int first)
{
	int rc = meet_all(10 + branch, i, first);
	(void)user;
	return rc < 0 ? rc : stagemodel_advance(&pair[branch], i, x, y, tmp, first);
}

static int join_record(
	void *user, int branch, int64_t i, const void *x, void *y, void *tape, void *tmp, int first)
{
	int rc = meet_all(20 + branch, i, first);
	(void)user;
	return rc < 0 ? rc : stagemodel_record(&pair[branch], i, x, y, tape, tmp, first);
}

static int join_turn(void *user, const void *const *x, void *const *dx, void *tmp, double *loss)
{
	int rc = meet_all(30, 0, 0);
	(void)user, (void)tmp;
	*loss = stage_loss(&pair[0], x[0], dx[0]) + stage_loss(&pair[1], x[1], dx[1]);
	return rc;
}

static int join_backward(void *user, int branch, int64_t i, const void *x, const void *tape,
	void *dy, void *dx, void *tmp)
{
	int rc = meet_all(40 + branch, i, 0);
	(void)user;
	return rc < 0 ? rc : stagemodel_backward(&pair[branch], i, x, tape, dy, dx, tmp);
}

static int join_gather(void *user, int (*write)(void *, const void *, size_t), void *to)
{
	int rc = gather(&pair[0], write, to);
	(void)user;
	return rc < 0 ? rc : gather(&pair[1], write, to);
}

static int join_scatter(void *user, int (*read)(void *, void *, size_t), void *from)
{
	int rc = scatter(&pair[0], read, from);
	(void)user;
	return rc < 0 ? rc : scatter(&pair[1], read, from);
}

static void draw_pair(const struct start *x, const struct rank *r, struct random *own_draws)
{
	struct random all = {x->seed, 0};
	for (int k = 0; k < 2; k++) {
		random_model(&pair[k], &all, 1 + x->stages / (1 + k), 30);
		pair[k].stages.flags = pair[0].stages.flags;
		pair[k].adjoint_bytes = 0;
		stagemodel_wire(&pair[k]);
		for (int64_t i = 0; i < pair[k].n; i++) {
			pair[k].w[i] += 0.01 * r->rank;
			pair[k].advance[i] *= 1 + 0.1 * (double)below(own_draws, 5);
			pair[k].record[i] = pair[k].advance[i] + 0.1;
		}
	}
}

static void run_join(struct rank *r, void *user)
{
	const struct start *x = user;
	struct outcome *out = (struct outcome *)(void *)r->world->results[r->rank];
	struct random d = {x->seed * 16 + (uint64_t)r->rank + 1, 0};
	struct stagegradient want[2];
	struct neap_join_sweep *sweep = NULL;
	struct neap_tier *tiers[2];
	struct neap__faults faults[2];
	double x0[2][512], dx0[2][512];
	char suffix[8];
	memset(out, 0, sizeof *out);
	out->stats.size = sizeof out->stats;
	memset(&own, 0, sizeof own);
	snprintf(suffix, sizeof suffix, ".%d", r->rank);
	own.rank = r;
	draw_pair(x, r, &d);
	if (r->rank == x->mortal_rank) {
		own.die_call = x->die_call;
		r->die_after = x->die_after;
	}
	open_tiers(x, r, &d, tiers, faults);
	for (int k = 0; k < 2; k++) {
		stagemodel_reference(&pair[k], &want[k]);
		stagemodel_restart(&pair[k]);
		stagemodel_start(&pair[k], x0[k]);
	}
	own.model = pair[0];
	const struct neap_branch branches[] = {
		{pair[0].n, &pair[0].stages}, {pair[1].n, &pair[1].stages}};
	const struct neap_join_ops ops = {.size = sizeof ops,
		.advance = join_advance,
		.record = join_record,
		.turn = join_turn,
		.backward = join_backward,
		.grad_save = join_gather,
		.grad_load = join_scatter};
	struct neap_sweep_options o = {.size = sizeof o,
		.memory = 2 * memory_of(x, &d),
		.params = {.effort = 40},
		.tiers = tiers,
		.ntiers = x->ntiers,
		.patience = x->hangs ? 0.004 : 0,
		.journal = x->journal ? folder : NULL,
		.journal_in_memory = 1,
		.journal_suffix = suffix,
		.journal_seconds = -1};
	RANK_HOOK(r, &o);
	own.model.broken[0] = '\0';
	out->created = neap_join_sweep_create(&sweep, &ops, NULL, branches, 2, &o);
	if (out->created == 0)
		out->rc = neap_join_sweep_run(sweep, (const void *[]){x0[0], x0[1]},
			(void *[]){dx0[0], dx0[1]}, &out->gradient.loss, &out->stats);
	snprintf(out->line, sizeof out->line, "%s", neap_detail());
	snprintf(out->broken, sizeof out->broken, "%.60s%.60s%.60s", own.model.broken,
		pair[0].broken, pair[1].broken);
	for (int k = 0; k < 2 && out->created == 0 && out->rc == 0; k++)
		if (memcmp(pair[k].dw, want[k].dw, sizeof want[k].dw) != 0 ||
			memcmp(dx0[k], want[k].dx, pair[k].state[0]) != 0)
			snprintf(out->broken, sizeof out->broken, "gradient of branch %d", k);
	memset(&out->gradient, 0, sizeof out->gradient);
	out->calls = own.calls;
	neap_join_sweep_free(sweep);
	for (int i = 0; i < x->ntiers; i++)
		neap_tier_close(tiers[i]);
}

static void branches_do_the_same(void **state)
{
	uint64_t seed = test_seed(1);
	(void)state;
	make_folder();
	runs = run_join;
	for (uint64_t i = 0; i < (rounds + 2) / 3; i++)
		one_start(seed + i);
	assert_int_equal(rmdir(folder), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_ranks_do_the_same), cmocka_unit_test(branches_do_the_same)};
	if (argc > 1)
		rounds = strtoull(argv[1], NULL, 10);
	return cmocka_run_group_tests_name("agree_stages", tests, NULL, NULL);
}
