/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep.c: makes a sweep: has it planned (sweep_plan.c), lays the arena out, makes the tables. All
 * of them are made here, so that a run allocates nothing.
 */
#include "sweep/sweep.h"
#include "sweep/arena/arena.h"
#include "sweep/costs/cost_watch.h"
#include "sweep/log_plan.h"
#include "sweep/infeasible.h"
#include "sweep/journal/journal_identity.h"
#include "sweep/steps/model_checks.h"
#include "sweep/sweep_options.h"
#include "sweep/sweep_plan.h"
#include "sweep/table_sizes.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "store/tier_state.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SPARE_EXTENTS 256 /* rows for pieces and states of recoveries, besides the plan's tapes */

static int check(const struct neap_step_ops *ops, const struct neap_sweep_options *o)
{
	if (!ops->advance || !ops->record || !ops->turn || !ops->backward)
		return neap__fail(NEAP_EUSAGE,
			"neap_step_ops: advance, record, turn and backward are required");
	if (ops->state_bytes == 0)
		return neap__fail(NEAP_EUSAGE, "neap_step_ops: state_bytes is 0");
	if (ops->tape_max_bytes && ops->tape_max_bytes < ops->tape_bytes)
		return neap__fail(NEAP_EUSAGE,
			"neap_step_ops: tape_max_bytes %zu is less than tape_bytes %zu",
			ops->tape_max_bytes, ops->tape_bytes);
	if (!ops->advance_log != !ops->replay || (ops->advance_log && ops->log_bytes == 0))
		return neap__fail(NEAP_EUSAGE,
			"neap_step_ops: advance_log, replay and log_bytes go together");
	if (ops->log_max_bytes && ops->log_max_bytes < ops->log_bytes)
		return neap__fail(NEAP_EUSAGE,
			"neap_step_ops: log_max_bytes %zu is less than log_bytes %zu",
			ops->log_max_bytes, ops->log_bytes);
	NEAP_TRY(neap__check_real("neap_step_ops", ops->adjoint_real, ops->adjoint_bytes));
	if (ops->record_steps < 0 || ops->record_steps % NEAP__RECORD_BLOCK != 0)
		return neap__fail(NEAP_EUSAGE,
			"neap_step_ops: record_steps is %lld. Set it to a multiple of %d, or to 0",
			(long long)ops->record_steps, NEAP__RECORD_BLOCK);
	if (ops->live_bytes && (!ops->save || !ops->load))
		return neap__fail(NEAP_EUSAGE,
			"neap_step_ops: live_bytes needs save and load: the state is elsewhere");
	NEAP_TRY(neap__sweep_options_check(o));
	if (o->ntiers < 0 || o->ntiers > NEAP_TIERS_MAX || (o->ntiers > 0 && !o->tiers))
		return neap__fail(NEAP_EUSAGE, "neap_sweep_options: %d tiers", o->ntiers);
	return 0;
}

/* Sets the offsets in the arena; only tiers that the schedule uses have staging. */
static int lay_out(struct neap_sweep *s)
{
	const struct neap_chain *chain = &s->problem.chain;
	struct neap__arena *arena = &s->arena;
	uint64_t at = 0;
	for (int i = 0; i < s->problem.ntiers; i++) {
		s->staging[i] = at;
		if (s->sizes.places[i] || s->sizes.tape_places[i])
			at = neap__sat_add(at, s->problem.tiers[i].staging);
	}
	arena->adjoint = at;
	arena->live = neap__sat_add(arena->adjoint, chain->adjoint);
	arena->tapes = neap__sat_add(arena->live, chain->live);
	arena->transit = arena->live;
	if (s->ops.live_bytes)
		arena->transit += neap__round_up(s->ops.live_bytes, 64);
	arena->state = chain->state;
	arena->bytes = s->plan.arena_bytes;
	if (chain->steps == 0)
		arena->bytes = arena->tapes; /* a plan of no steps counts nothing */
	if (arena->bytes > s->problem.memory)
		return neap__fail(NEAP_EINFEASIBLE,
			"a budget of %llu bytes does not hold the live state and its adjoint. Use "
			"at least %llu bytes",
			(unsigned long long)s->problem.memory, (unsigned long long)arena->bytes);
	if (arena->tapes > arena->bytes || arena->bytes > SIZE_MAX / 2)
		return neap__fail(NEAP_EILLEGAL,
			"the plan's arena of %llu bytes lacks room for "
			"the %llu of live state, adjoint and staging",
			(unsigned long long)arena->bytes, (unsigned long long)arena->tapes);
	if (neap__memory_is_foreign(&arena->memory))
		return 0;
	return neap__refuse_arena(arena->bytes, s->plan.strategy);
}

static void *table(int64_t rows, size_t bytes)
{
	return calloc((size_t)rows + 1, bytes);
}

static int make_tables(struct neap_sweep *s)
{
	struct neap__table_sizes *sizes = &s->sizes;
	/* Where extents are no stack, slots may lie among them. */
	int64_t extents = sizes->extents + (sizes->scattered ? sizes->slots : 0);
	NEAP_TRY(neap__arena_init(&s->arena, sizes->slots, extents + SPARE_EXTENTS));
	s->ranges = table(sizes->ranges, sizeof *s->ranges);
	s->pieces = table(sizes->pieces, sizeof *s->pieces);
	s->span_rows = table(sizes->span_rows, sizeof *s->span_rows);
	s->spans = table(sizes->span_rows * sizes->spans, sizeof *s->spans);
	/* A state that lies elsewhere is not seen. */
	if (s->options.check && !s->ops.live_bytes)
		NEAP_TRY(neap__state_hashes_init(
			&s->hashes, s->ops.ended ? 0 : s->problem.chain.steps));
	s->arena.poison = s->options.check;
	int made = s->ranges && s->pieces && s->span_rows && s->spans;
	for (int i = 0; i < s->problem.ntiers; i++) {
		s->state_records[i] = table(s->places[i], sizeof *s->state_records[i]);
		s->tape_records[i] = table(sizes->tape_places[i], sizeof *s->tape_records[i]);
		made = made && s->state_records[i] && s->tape_records[i];
	}
	return made ? 0 : neap__fail_errno(ENOMEM, "tables of a sweep");
}

static int grow_table(void *table, int64_t from, int64_t to, size_t bytes)
{
	void **rows = table;
	if (to <= from)
		return 0;
	char *more = realloc(*rows, ((size_t)to + 1) * bytes);
	if (!more)
		return neap__fail_errno(ENOMEM, "tables of a sweep");
	memset(more + (size_t)from * bytes, 0, ((size_t)(to - from) + 1) * bytes);
	*rows = more;
	return 0;
}

/* Rows of spans become longer, or more; those in flight keep their number and their spans. */
static int grow_spans(struct neap_sweep *s, int64_t rows, int64_t length, void **old)
{
	int64_t had = s->sizes.span_rows, was = s->sizes.spans;
	if (rows <= had && length <= was)
		return 0;
	rows = rows > had ? rows : had;
	length = length > was ? length : was;
	struct neap_span *spans = table(rows * length, sizeof *spans);
	if (!spans || grow_table(&s->span_rows, had, rows, sizeof *s->span_rows) < 0) {
		free(spans);
		return neap__fail_errno(ENOMEM, "tables of a sweep");
	}
	for (int64_t i = had; i < rows; i++)
		s->span_rows[s->free_span_rows++] = (int32_t)i;
	*old = s->spans;
	s->spans = spans;
	s->sizes.span_rows = rows;
	s->sizes.spans = length;
	return 0;
}

int neap__sweep_tables_grow(struct neap_sweep *s, const struct neap__table_sizes *sizes, void **old)
{
	struct neap__table_sizes *now = &s->sizes;
	int64_t slots = sizes->slots > now->slots ? sizes->slots : now->slots;
	int64_t extents = sizes->extents > now->extents ? sizes->extents : now->extents;
	NEAP_TRY(grow_table(&s->ranges, now->ranges, sizes->ranges, sizeof *s->ranges));
	NEAP_TRY(grow_table(&s->pieces, now->pieces, sizes->pieces, sizeof *s->pieces));
	NEAP_TRY(neap__arena_extend(
		&s->arena, slots, extents + (now->scattered ? slots : 0) + SPARE_EXTENTS));
	NEAP_TRY(grow_spans(s, sizes->span_rows, sizes->spans, old));
	int64_t places[NEAP_TIERS_MAX], tapes[NEAP_TIERS_MAX];
	memcpy(places, now->places, sizeof places);
	memcpy(tapes, now->tape_places, sizeof tapes);
	neap__table_sizes_join(now, sizes);
	memcpy(now->places, places, sizeof places);
	memcpy(now->tape_places, tapes, sizeof tapes);
	return 0;
}

static void free_tables(struct neap_sweep *s)
{
	neap__arena_fini(&s->arena);
	free(s->ranges);
	free(s->pieces);
	free(s->span_rows);
	free(s->spans);
	neap__replan_forget(s);
	neap_saved_free(s->agreed_plan);
	neap__tiers_drop(s->tiers, NEAP_TIERS_MAX);
	neap__state_hashes_free(&s->hashes);
	for (int i = 0; i < NEAP_TIERS_MAX; i++) {
		free(s->state_records[i]);
		free(s->tape_records[i]);
	}
}

/* The caller's struct may be gone. */
static void own_memory(struct neap_sweep *s)
{
	if (s->ops.memory)
		s->ops.memory = &s->arena.memory.ops;
}

/* Checks and describes; nothing here is the same on all ranks yet. */
static int describe_all(struct neap_sweep *s)
{
	NEAP_TRY(check(&s->ops, &s->options));
	NEAP_TRY(neap__memory_init(&s->arena.memory, s->ops.memory, s->ops.fence, s->user));
	own_memory(s);
	neap__sweep_options_own(&s->options);
	if (s->inherits)
		NEAP_TRY(neap__journal_needs(s->ops.grad_save && s->ops.grad_load));
	NEAP_TRY(neap__tiers_take(
		s->tiers, s->options.tiers, s->options.ntiers, s->claimed, s->ops.memory));
	s->options.tiers = NULL; /* the list is the caller's; the tiers are kept */
	struct neap_sweep_options o = s->options;
	o.tiers = s->tiers;
	neap__sweep_describe(&s->problem, &s->ops, &o, o.journal || s->inherits);
	s->record_block = s->ops.record_steps ? s->ops.record_steps : NEAP__RECORD_BLOCK;
	s->fixed = s->problem.chain.tape_max == 0;
	s->fixed_log = neap__worst_log(s) == s->problem.chain.log;
	return neap_problem_check(&s->problem);
}

/* Of ranks: refuses sweeps that are not the same; then all have the same problem. */
static int agree_on_sweep(struct neap_sweep *s, int rc)
{
	const struct neap_sweep_options *o = &s->options;
	const struct neap_step_ops *ops = &s->ops;
	const struct neap__agree_row rows[] = {
		{"steps", (uint64_t)o->steps},
		{"state_bytes", ops->state_bytes},
		{"adjoint_bytes", ops->adjoint_bytes},
		{"tape_bytes", ops->tape_bytes},
		{"tape_max_bytes", ops->tape_max_bytes},
		{"tape_mean_bytes", ops->tape_mean_bytes},
		{"log_bytes", ops->log_bytes},
		{"log_max_bytes", ops->log_max_bytes},
		{"live_bytes", ops->live_bytes},
		{"record_steps", (uint64_t)s->record_block},
		{"the number of slow tiers", (uint64_t)o->ntiers},
		{"having logs", ops->replay != NULL},
		{"telling the length", ops->ended != NULL},
		{"having a journal", o->journal != NULL},
		{"having a saved plan", o->saved != NULL},
		{"check", o->check != 0},
		{"giving costs", o->advance > 0 || o->record > 0 || o->backward > 0},
		{"the strategy", neap__agree_hash_name(o->strategy)},
		{"the parameters of the plan", neap__agree_hash(&o->params, sizeof o->params)},
	};
	NEAP_TRY(neap__agree_same(
		&s->agreement, NEAP__AGREE_OPTIONS, rc, rows, (int)(sizeof rows / sizeof rows[0])));
	return neap__agree_problem(&s->agreement, rc, &s->problem);
}

static int finish_tables(struct neap_sweep *s)
{
	neap__journal_identity_size(s);
	NEAP_TRY(lay_out(s));
	return make_tables(s);
}

/* Of ranks: what each made of the plan, or of the problem where there is none, must be the same. */
static int agree_on_tables(struct neap_sweep *s, int rc)
{
	const struct neap__table_sizes *v = &s->sizes;
	const int64_t tables[] = {
		v->slots, v->extents, v->ranges, v->pieces, v->spans, v->span_rows, v->scattered};
	const struct neap__agree_row rows[] = {
		{"the arena", s->arena.bytes},
		{"the tables of the plan", neap__agree_hash(tables, sizeof tables)},
	};
	return neap__agree_same(&s->agreement, NEAP__AGREE_CREATED, rc, rows, 2);
}

/* Plans the sweep and makes its tables. */
static int prepare(struct neap_sweep *s, const struct neap_step_ops *ops,
	const struct neap_sweep_options *options)
{
	NEAP_TRY(neap__struct_take(&s->ops, sizeof s->ops, ops, "neap_step_ops"));
	NEAP_TRY(neap__struct_take(&s->options, sizeof s->options, options, "neap_sweep_options"));
	neap__agree_take(&s->agreement, &s->options);
	int rc = describe_all(s);
	NEAP_TRY(neap__agrees(&s->agreement) ? agree_on_sweep(s, rc) : rc);
	NEAP_TRY(neap__journal_attach(s));
	NEAP_TRY(neap__sweep_make_plan(s));
	neap__log_plan(&s->problem, &s->plan, s->tiers, s->planning);
	rc = finish_tables(s);
	return neap__agrees(&s->agreement) ? agree_on_tables(s, rc) : rc;
}

/* `old`: a sweep whose journal the new one takes over, or NULL; `claimed`: it runs. */
static int create(struct neap_sweep **out, const struct neap_step_ops *ops, void *user,
	const struct neap_sweep_options *options, const struct neap_sweep *old, int claimed,
	int (*open)(void *user, struct neap_schedule **schedule), void *open_user)
{
	struct neap_sweep *s = calloc(1, sizeof *s);
	if (!s)
		return neap__fail_errno(ENOMEM, "sweep");
	s->user = user;
	s->open = open;
	s->open_user = open_user;
	s->inherits = old && old->journal.base.directory;
	s->claimed = claimed;
	int rc = prepare(s, ops, options);
	if (rc < 0) {
		neap_sweep_free(s);
		return rc;
	}
	*out = s;
	return 0;
}

int neap_sweep_create(struct neap_sweep **sweep, const struct neap_step_ops *ops, void *user,
	const struct neap_sweep_options *options)
{
	NEAP_NEED(sweep, ops, options);
	return create(sweep, ops, user, options, NULL, 0, NULL, NULL);
}

int neap__sweep_create_over(struct neap_sweep **sweep, const struct neap_step_ops *ops, void *user,
	const struct neap_sweep_options *options,
	int (*open)(void *user, struct neap_schedule **schedule), void *open_user)
{
	return create(sweep, ops, user, options, NULL, 0, open, open_user);
}

/* All but what other threads may look at becomes that of another sweep. */
static void become(struct neap_sweep *s, const struct neap_sweep *other)
{
	const size_t from = sizeof s->shared;
	memcpy((char *)s + from, (const char *)other + from, sizeof *s - from);
	own_memory(s);
	neap__sweep_publish(s);
}

/* The new sweep is made beside the old one, so that a refusal leaves that as it was. */
static int replan(struct neap_sweep *s, const struct neap_step_ops *ops,
	const struct neap_sweep_options *options, int claimed)
{
	struct neap_sweep *fresh = NULL;
	struct neap_sweep_options o;
	NEAP_TRY(neap__struct_take(&o, sizeof o, options, "neap_sweep_options"));
	o.journal = NULL;
	NEAP_TRY(create(&fresh, ops, s->user, &o, s, claimed, s->open, s->open_user));
	neap__journal_inherit(fresh, s);
	if (s->arena.base && !s->arena.staging_held &&
		neap__memory_is_same(&s->arena.memory, &fresh->arena.memory) &&
		s->arena.mapped >= fresh->arena.bytes &&
		s->arena.mapped <= neap__round_up(fresh->problem.memory, 4096)) {
		fresh->arena.base = s->arena.base;
		fresh->arena.mapped = s->arena.mapped;
		s->arena.base = NULL;
		s->arena.mapped = 0;
	}
	fresh->poisoned = s->poisoned;
	fresh->arena.poison |= s->poisoned;
	fresh->replanned = 1;
	free_tables(s);
	become(s, fresh);
	free(fresh);
	return 0;
}

int neap_sweep_replan(struct neap_sweep *s, const struct neap_step_ops *ops,
	const struct neap_sweep_options *options)
{
	NEAP_NEED(s, ops, options);
	NEAP_TRY(neap__gate_enter(&s->shared.gate, __func__, "sweep"));
	int rc = replan(s, ops, options, 0);
	neap__gate_leave(&s->shared.gate);
	return rc;
}

int neap__sweep_plan_anew(struct neap_sweep *s, const struct neap_sweep_options *options)
{
	const struct neap_step_ops ops = s->ops;
	const void *x0 = s->x0;
	double *loss = s->loss;
	int measured = s->measured, answer = s->ahead_answer;
	int64_t steps = s->measured_steps, ahead = s->ahead;
	NEAP_TRY(replan(s, &ops, options, 1));
	s->x0 = x0;
	s->loss = loss;
	s->measured = measured;
	s->measured_steps = steps;
	s->ahead = ahead;
	s->ahead_answer = answer;
	return 0;
}

void neap_sweep_free(struct neap_sweep *s)
{
	if (!s || neap__gate_enter(&s->shared.gate, __func__, "sweep") < 0)
		return;
	neap__journal_detach(s);
	free_tables(s);
	free(s);
}

const struct neap_plan *neap_sweep_plan(const struct neap_sweep *s)
{
	if (!s)
		return NULL;
	return &s->plan;
}

const struct neap_problem *neap_sweep_problem(const struct neap_sweep *s)
{
	if (!s)
		return NULL;
	return &s->problem;
}

void neap_sweep_watch(struct neap_sweep *s, int on)
{
	if (!s)
		return;
	atomic_store_explicit(&s->shared.watched, on, memory_order_relaxed);
}

void neap__sweep_poison(struct neap_sweep *s, int on)
{
	s->poisoned = on;
	s->arena.poison = on || s->options.check;
}

uint64_t neap_sweep_mapped(const struct neap_sweep *s)
{
	return s ? atomic_load_explicit(&s->shared.mapped, memory_order_relaxed) : 0;
}

void neap_sweep_release(struct neap_sweep *s)
{
	if (!s || neap__gate_enter(&s->shared.gate, __func__, "sweep") < 0)
		return;
	neap__arena_unmap(&s->arena);
	neap__sweep_publish(s);
	neap__gate_leave(&s->shared.gate);
}
