/* SPDX-License-Identifier: Apache-2.0 */
/*
 * join_sweep.c: makes a sweep over branches that meet in one loss. The branches are laid in a row
 * (stage_layout.h), and a stage sweep is made of it: in sequence, in each order that may be best,
 * and, for two branches, interleaved. The plan that says that it is the fastest is kept.
 */
#include "sweep/stages/join_sweep.h"
#include "sweep/sweep_options.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/struct_size.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define IN_TURNS_MOST 10000 /* stages times stages, for which "auto" tries the strategy join */

/* The branches in the order of a layout, in a row. */
struct branch_row {
	struct neap_stages stages;
	double *seconds;
	uint64_t *bytes;
	int64_t n;
};

struct maker {
	struct neap_join_sweep *j;
	const struct neap_branch *branches;
	struct neap_sweep_options options;
	struct neap_stage_ops ops;
	int64_t refused; /* layouts that do not fit the budget */
	char least[200]; /* the first one's line */
	struct neap__agree_state agreement;
};

static int branch_of(const struct neap_join_sweep *j, int64_t *i)
{
	int k = neap__layout_branch(&j->layout, *i);
	*i -= j->layout.start[k];
	return j->layout.order[k];
}

static int advance(void *user, int64_t i, const void *x, void *y, void *tmp, int first)
{
	const struct neap_join_sweep *j = user;
	int branch = branch_of(j, &i);
	return j->ops.advance(j->user, branch, i, x, y, tmp, first);
}

static int record(void *user, int64_t i, const void *x, void *y, void *tape, void *tmp, int first)
{
	const struct neap_join_sweep *j = user;
	int branch = branch_of(j, &i);
	return j->ops.record(j->user, branch, i, x, y, tape, tmp, first);
}

/* Never called: neap__join_turn is. */
static int turn(void *user, const void *x, void *dx, void *tmp, double *loss)
{
	(void)user, (void)x, (void)dx, (void)tmp, (void)loss;
	return NEAP_EMODEL;
}

static int backward(
	void *user, int64_t i, const void *x, const void *tape, void *dy, void *dx, void *tmp)
{
	const struct neap_join_sweep *j = user;
	int branch = branch_of(j, &i);
	return j->ops.backward(j->user, branch, i, x, tape, dy, dx, tmp);
}

static int fence(void *join)
{
	const struct neap_join_sweep *j = join;
	return j->ops.fence(j->user);
}

static int save(void *user, int (*write)(void *, const void *, size_t), void *to)
{
	const struct neap_join_sweep *j = user;
	return j->ops.grad_save(j->user, write, to);
}

static int load(void *user, int (*read)(void *, void *, size_t), void *from)
{
	const struct neap_join_sweep *j = user;
	return j->ops.grad_load(j->user, read, from);
}

static int check_branches(const struct neap_branch *branches, int count)
{
	int64_t states = 0;
	if (count < 1 || count > NEAP_BRANCHES_MAX)
		return neap__fail(NEAP_EUSAGE,
			"neap_join_sweep_create: %d branches, 1 to %d can be", count,
			NEAP_BRANCHES_MAX);
	for (int k = 0; k < count; k++) {
		const struct neap_stages *stages = branches[k].stages;
		struct neap_problem problem = NEAP_PROBLEM_INIT;
		NEAP_NEED(stages);
		problem.chain.steps = branches[k].steps;
		problem.chain.stages = stages;
		int rc = neap_problem_check(&problem);
		if (rc < 0)
			return neap__fail_in(rc, "branch %d: ", k);
		if (stages->flags != branches[0].stages->flags)
			return neap__fail(NEAP_EUSAGE,
				"branch %d: its flags are %x, those of branch 0 are %x", k,
				stages->flags, branches[0].stages->flags);
		states += branches[k].steps + 1;
	}
	if (states > NEAP__STAGES_MOST)
		return neap__fail(NEAP_EUSAGE, "%lld stages and links, %d can be planned",
			(long long)states, NEAP__STAGES_MOST);
	return 0;
}

static int check(const struct neap_join_sweep *j, const struct neap_branch *branches, int count,
	const struct neap_sweep_options *o)
{
	const struct neap_join_ops *ops = &j->ops;
	if (!ops->advance || !ops->record || !ops->turn || !ops->backward)
		return neap__fail(NEAP_EUSAGE,
			"neap_join_ops: advance, record, turn and backward are required");
	NEAP_TRY(check_branches(branches, count));
	int join = o->strategy && strcmp(o->strategy, "join") == 0;
	if (join && count != 2)
		return neap__fail(
			NEAP_EUSAGE, "the strategy join is for 2 branches, not %d", count);
	if (join && (branches[0].steps == 0 || branches[1].steps == 0))
		return neap__fail(
			NEAP_EUSAGE, "the strategy join is for branches of one stage at least");
	if (join && o->ntiers > 0)
		return neap__fail(NEAP_EUSAGE, "the strategy join takes no slow tiers");
	if (join && o->saved)
		return neap__fail(NEAP_EUSAGE, "a plan of the strategy join cannot be a saved one");
	return 0;
}

/* Lays stage i of a branch at `at`; with i the number of its stages, its end and the link. */
static void lay_stage(const struct branch_row *row, const struct neap_branch *branch, int64_t i,
	int64_t at, const struct neap__stage_layout *layout, int k)
{
	const struct neap_stages *from = branch->stages, *to = &row->stages;
	int link = i == branch->steps && k + 1 < layout->branches, real = i < branch->steps;
	((uint64_t *)to->state)[at] = from->state[i];
	if (real) {
		((double *)to->advance)[at] = from->advance[i];
		((double *)to->record)[at] = neap__stage_record(from, i);
		((double *)to->backward)[at] = from->backward[i];
		((uint64_t *)to->tape)[at] = from->tape[i];
	}
	if (real || link) {
		uint64_t held = layout->held[link ? k + 1 : k];
		((uint64_t *)to->advance_tmp)[at] =
			held + (real ? (uint64_t)neap__stage_advance_tmp(from, i) : 0);
		((uint64_t *)to->record_tmp)[at] =
			held + (real ? (uint64_t)neap__stage_record_tmp(from, i) : 0);
		((uint64_t *)to->backward_tmp)[at] =
			layout->held[k] + (real ? (uint64_t)neap__stage_backward_tmp(from, i) : 0);
	}
}

static void free_row(struct branch_row *row)
{
	free(row->seconds);
	free(row->bytes);
}

/* Rows of n + 1 zeros each, which struct neap_stages points at. */
static int make_row(struct branch_row *row, const struct neap_branch *branches,
	const struct neap__stage_layout *layout)
{
	size_t rows = (size_t)layout->start[layout->branches];
	row->n = layout->start[layout->branches] - 1;
	row->seconds = calloc(3 * rows, sizeof *row->seconds);
	row->bytes = calloc(5 * rows, sizeof *row->bytes);
	if (!row->seconds || !row->bytes)
		return neap__fail_errno(ENOMEM, "tables of a sweep");
	row->stages = (struct neap_stages){.flags = branches[0].stages->flags,
		.advance = row->seconds,
		.record = row->seconds + rows,
		.backward = row->seconds + 2 * rows,
		.state = row->bytes,
		.tape = row->bytes + rows,
		.advance_tmp = row->bytes + 2 * rows,
		.record_tmp = row->bytes + 3 * rows,
		.backward_tmp = row->bytes + 4 * rows};
	return 0;
}

/* Fills the row, and what the layout holds. */
static void fill_row(struct branch_row *row, const struct neap_branch *branches,
	struct neap__stage_layout *layout, size_t adjoint)
{
	const struct neap_stages *first = branches[0].stages;
	struct neap_chain chain = {.stages = &row->stages, .adjoint = adjoint};
	/* What is laid aside depends on the sizes of all ends. */
	for (int pass = 0; pass < 2; pass++) {
		for (int k = 0; k < layout->branches; k++) {
			const struct neap_branch *branch = &branches[layout->order[k]];
			for (int64_t i = 0; i <= branch->steps; i++)
				lay_stage(row, branch, i, layout->start[k] + i, layout, k);
		}
		neap__layout_hold(layout, &chain);
	}
	for (int k = 0; k + 1 < layout->branches; k++) {
		int64_t link = neap__layout_end(layout, k);
		if (neap__tape_holds_output(&row->stages))
			row->bytes[row->n + 1 + link] = row->stages.state[link + 1];
	}
	int64_t loss = branches[0].steps;
	((double *)row->stages.backward)[row->n] = first->backward[loss];
	((uint64_t *)row->stages.backward_tmp)[row->n] =
		layout->turn_held + (uint64_t)neap__stage_backward_tmp(first, loss);
}

static void lay_out(struct neap__stage_layout *layout, const struct neap_branch *branches)
{
	layout->start[0] = 0;
	for (int k = 0; k < layout->branches; k++)
		layout->start[k + 1] = layout->start[k] + branches[layout->order[k]].steps + 1;
}

/*
 * Makes a sweep of a layout. What is laid aside lies there while states travel, and while an
 * earlier branch is passed again, which the plan does not count: where the budget is exceeded so,
 * the plan gets that much less of it.
 */
static int make(struct maker *m, struct neap__stage_layout *layout, struct neap_stage_sweep **sweep)
{
	struct neap_sweep_options o = m->options;
	struct branch_row row = {.n = 0};
	lay_out(layout, m->branches);
	int rc = make_row(&row, m->branches, layout);
	if (rc == 0)
		fill_row(&row, m->branches, layout, m->j->ops.adjoint_bytes);
	rc = neap__agree_code(&m->agreement, NEAP__AGREE_OPTIONS, rc);
	o.steps = row.n;
	if (layout->interleaved)
		o.ntiers = 0;
	if (rc == 0)
		rc = neap__stage_sweep_make(sweep, &m->ops, m->j, &row.stages, &o, layout, m->j, 0);
	if (rc == NEAP_EINFEASIBLE && layout->branches > 1 && layout->spare == 0 &&
		!layout->interleaved) {
		layout->spare = layout->held[layout->branches - 1];
		rc = neap__stage_sweep_make(sweep, &m->ops, m->j, &row.stages, &o, layout, m->j, 0);
	}
	free_row(&row);
	return rc;
}

/* Tries a layout, and keeps its sweep where it is faster than *best. */
static int try(
	struct maker *m, const struct neap__stage_layout *which, struct neap_stage_sweep **best)
{
	struct neap__stage_layout layout = *which;
	struct neap_stage_sweep *sweep = NULL;
	int rc = make(m, &layout, &sweep);
	if (rc == NEAP_EINFEASIBLE) {
		if (m->refused++ == 0)
			neap__print(m->least, sizeof m->least, "%s", neap_detail());
		return 0;
	}
	NEAP_TRY(rc);
	int better = !*best || sweep->plan.makespan < (*best)->plan.makespan;
	neap_stage_sweep_free(better ? *best : sweep);
	if (better)
		*best = sweep;
	return 0;
}

/* The branches turned round by `by`; of two, these are all orders. */
static struct neap__stage_layout rotated(int count, int by)
{
	struct neap__stage_layout layout = {.branches = count};
	for (int k = 0; k < count; k++)
		layout.order[k] = (uint8_t)((k + by) % count);
	return layout;
}

/* Is it worth to plan that branches go on in turns? Its tables grow with their product. */
static int in_turns(const struct maker *m, int count)
{
	return count == 2 && !m->options.saved && m->branches[0].steps > 0 &&
	       m->branches[1].steps > 0 &&
	       m->branches[0].steps <= IN_TURNS_MOST / m->branches[1].steps;
}

static int try_all(struct maker *m, int count, struct neap_stage_sweep **best)
{
	const char *strategy = m->options.strategy ? m->options.strategy : "auto";
	int join = strcmp(strategy, "join") == 0;
	for (int by = 0; by < count && !join; by++) {
		struct neap__stage_layout layout = rotated(count, by);
		NEAP_TRY(try(m, &layout, best));
		if (m->options.saved)
			break;
	}
	if (join || (strcmp(strategy, "auto") == 0 && in_turns(m, count))) {
		struct neap__stage_layout layout = rotated(2, 0);
		layout.interleaved = 1;
		NEAP_TRY(try(m, &layout, best));
	}
	return *best ? 0 : neap__fail(NEAP_EINFEASIBLE, "%s", m->least);
}

/* Is a layout that came from a file one of so many branches, each once? */
static int makes_sense(const struct neap__stage_layout *layout, int count)
{
	unsigned seen = 0;
	if (layout->branches != count || (layout->interleaved && count != 2))
		return 0;
	for (int k = 0; k < count; k++)
		if (layout->order[k] < count)
			seen |= 1u << layout->order[k];
	return seen == (1u << count) - 1;
}

/* The layout that a journal was made for, on all ranks. 1; 0: there is none; or a negative code. */
static int find_layout(struct maker *m, int count, const struct neap_sweep_options *o,
	struct neap__stage_layout *layout)
{
	int there = 0;
	memset(layout, 0, sizeof *layout);
	if (o->journal)
		there = neap__stage_journal_layout(
			o->journal, o->journal_suffix, o->journal_in_memory, layout);
	there = there > 0 ? makes_sense(layout, count) : there;
	if (!neap__agrees(&m->agreement))
		return there;
	NEAP_TRY(neap__agree_code(&m->agreement, NEAP__AGREE_JOURNAL, there));
	int64_t hash = there ? (int64_t)neap__agree_hash(layout, sizeof *layout) : 0;
	int64_t values[] = {hash, -hash};
	NEAP_TRY(neap__agree(&m->agreement, NEAP__AGREE_JOURNAL, values, 2));
	return there && values[0] == -values[1];
}

/* With a journal: the layout that it was made for, or the best, which the journal begins with. */
static int choose(struct maker *m, int count, const struct neap_sweep_options *o)
{
	struct neap_join_sweep *j = m->j;
	struct neap__stage_layout layout;
	int there = find_layout(m, count, o, &layout);
	NEAP_TRY(there);
	if (!there) {
		m->options.journal = NULL;
		NEAP_TRY(try_all(m, count, &j->stages));
		layout = j->stages->layout;
		if (o->journal) {
			neap_stage_sweep_free(j->stages);
			j->stages = NULL;
		}
	}
	m->options.journal = o->journal;
	if (!j->stages)
		NEAP_TRY(make(m, &layout, &j->stages));
	j->layout = j->stages->layout;
	return 0;
}

static int create(struct neap_join_sweep *j, const struct neap_join_ops *ops,
	const struct neap_branch *branches, int count, const struct neap_sweep_options *options)
{
	struct maker m = {.j = j, .branches = branches};
	NEAP_TRY(neap__struct_take(&j->ops, sizeof j->ops, ops, "neap_join_ops"));
	NEAP_TRY(neap__struct_take(&m.options, sizeof m.options, options, "neap_sweep_options"));
	neap__agree_take(&m.agreement, &m.options);
	NEAP_TRY(neap__agree_code(
		&m.agreement, NEAP__AGREE_OPTIONS, check(j, branches, count, &m.options)));
	neap__sweep_options_own(&m.options);
	m.ops = (struct neap_stage_ops){.size = sizeof m.ops,
		.advance = advance,
		.record = record,
		.turn = turn,
		.backward = backward,
		.adjoint_bytes = j->ops.adjoint_bytes,
		.adjoint_real = j->ops.adjoint_real,
		.memory = j->ops.memory,
		.fence = j->ops.fence ? fence : NULL,
		.grad_save = j->ops.grad_save ? save : NULL,
		.grad_load = j->ops.grad_load ? load : NULL};
	struct neap_sweep_options o = m.options;
	return choose(&m, count, &o);
}

int neap_join_sweep_create(struct neap_join_sweep **sweep, const struct neap_join_ops *ops,
	void *user, const struct neap_branch *branches, int count,
	const struct neap_sweep_options *options)
{
	NEAP_NEED(sweep, ops, branches, options);
	struct neap_join_sweep *j = calloc(1, sizeof *j);
	if (!j)
		return neap__fail_errno(ENOMEM, "sweep");
	j->user = user;
	int rc = create(j, ops, branches, count, options);
	if (rc < 0) {
		neap_join_sweep_free(j);
		return rc;
	}
	*sweep = j;
	return 0;
}

const struct neap_plan *neap_join_sweep_plan(const struct neap_join_sweep *j)
{
	return j ? neap_stage_sweep_plan(j->stages) : NULL;
}

const struct neap_problem *neap_join_sweep_problem(const struct neap_join_sweep *j)
{
	return j ? neap_stage_sweep_problem(j->stages) : NULL;
}

int neap_join_sweep_run(struct neap_join_sweep *j, const void *const *x0, void *const *dx0,
	double *loss, struct neap_sweep_stats *stats)
{
	NEAP_NEED(j);
	struct neap_stage_sweep *s = j->stages;
	NEAP_TRY(neap__gate_enter(&s->gate, __func__, "sweep"));
	for (int k = 0; k < s->layout.branches; k++) {
		s->x0[k] = x0 ? x0[s->layout.order[k]] : NULL;
		s->dx0[k] = dx0 ? dx0[s->layout.order[k]] : NULL;
	}
	int rc = neap__stage_sweep_run(s, loss, stats);
	neap__gate_leave(&s->gate);
	return rc;
}

void neap_join_sweep_free(struct neap_join_sweep *j)
{
	struct neap_stage_sweep *s = j ? j->stages : NULL;
	if (!j || (s && neap__gate_enter(&s->gate, __func__, "sweep") < 0))
		return;
	if (s)
		neap__gate_leave(&s->gate);
	neap_stage_sweep_free(s);
	free(j);
}

void neap__join_poison(struct neap_join_sweep *j, int on)
{
	neap__stage_sweep_poison(j->stages, on);
}
