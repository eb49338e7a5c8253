/* SPDX-License-Identifier: Apache-2.0 */
/* cell_lists.c: lists of instructions from a graph; registers by linear scan (cell_program.h). */
#include "nn/cellfile/cell_program.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(NEAP__CELL_FROM <= 64, "rows are bits");

struct target {
	int node, row;
};

struct lister {
	struct neap_net *net;
	const struct neap__cell_graph *graph;
	struct neap__cell_program *program;
	int row[NEAP__CELL_NODES]; /* a node is in this row; -1: it is computed */
	uint8_t used[NEAP__CELL_NODES];
	int last_use[NEAP__CELL_NODES];	  /* the last node that has it as an operand */
	uint16_t place[NEAP__CELL_NODES]; /* an operand */
	int constant[NEAP__CELL_NODES];	  /* nodes of the constants so far */
	int owner[NEAP__CELL_REGISTERS];  /* node of a register; -1: free */
	struct neap__cell_instruction instruction[NEAP__CELL_NODES + NEAP__CELL_TO];
	int count;
};

/* The rows of leaves; tape rows replace what leads to them. */
static void place_rows(struct lister *w, int from_tape)
{
	static const int rows[NEAP__CELL_LEAVES] = {-1, NEAP__CELL_FROM_STATE, NEAP__CELL_FROM_IN,
		NEAP__CELL_FROM_LAST, NEAP__CELL_FROM_RESET_LAST, NEAP__CELL_FROM_HEIGHT,
		NEAP__CELL_FROM_DS, NEAP__CELL_FROM_DSTATE};
	const struct neap__cell_cut *cut = &w->program->cut;

	for (int i = 0; i < w->graph->count; i++) {
		const struct neap__cell_node *node = &w->graph->node[i];
		w->row[i] = node->op < NEAP__CELL_LEAVES && node->op != NEAP__CELL_CONST
				    ? rows[node->op] + node->a
				    : -1;
		if (from_tape && (node->op == NEAP__CELL_NOW || node->op == NEAP__CELL_RESET_NOW))
			w->row[i] = NEAP__CELL_FROM_NOW;
	}
	for (int k = 0; from_tape && k < cut->count; k++)
		w->row[cut->node[k]] = NEAP__CELL_FROM_TAPE + k;
}

/* Marks the nodes to compute, and who uses each last: a target is used at the end. */
static void mark(struct lister *w, const struct target *target, int targets)
{
	memset(w->used, 0, sizeof w->used);
	for (int t = 0; t < targets; t++) {
		w->used[target[t].node] = 1;
		w->last_use[target[t].node] = NEAP__CELL_NODES;
	}
	for (int i = w->graph->count - 1; i >= 0; i--)
		for (int k = 0; w->used[i] && w->row[i] < 0 &&
				k < neap__cell_operands(w->graph->node[i].op);
			k++) {
			int o = neap__cell_operand(&w->graph->node[i], k);
			if (!w->used[o])
				w->last_use[o] = i;
			w->used[o] = 1;
		}
}

static uint16_t constant(struct lister *w, int node)
{
	int i = 0;

	while (i < w->program->nconstants && w->constant[i] != node)
		i++;
	w->constant[i] = node;
	if (i == w->program->nconstants)
		w->program->nconstants++;
	return (uint16_t)(NEAP__CELL_CONSTANT + i);
}

/* A free register; -1: there is none. */
static int take_register(struct lister *w, int node)
{
	for (int i = 0; i < NEAP__CELL_REGISTERS; i++)
		if (w->owner[i] < 0) {
			w->owner[i] = node;
			return i;
		}
	return -1;
}

static int write_node(struct lister *w, int i)
{
	const struct neap__cell_node *node = &w->graph->node[i];
	struct neap__cell_instruction *to = &w->instruction[w->count];
	uint16_t place[3] = {0};
	int operands = neap__cell_operands(node->op);

	if (w->row[i] >= 0 || node->op == NEAP__CELL_CONST) {
		w->place[i] =
			w->row[i] >= 0 ? (uint16_t)(NEAP__CELL_ROW + w->row[i]) : constant(w, i);
		if (w->last_use[i] < NEAP__CELL_NODES || w->row[i] < 0)
			return 0;
		/* It is written to a row: the row that it is in may be overwritten before. */
		place[0] = w->place[i];
	}
	for (int k = 0; k < operands && w->row[i] < 0; k++)
		place[k] = w->place[neap__cell_operand(node, k)];
	for (int r = 0; r < NEAP__CELL_REGISTERS; r++)
		if (w->owner[r] >= 0 && w->last_use[w->owner[r]] == i)
			w->owner[r] = -1;
	int r = take_register(w, i);
	if (r < 0)
		return neap__fail(NEAP_EUSAGE,
			"%.200s: %s needs more than %d values at a time; simplify it",
			w->program->where, w->program->name, NEAP__CELL_REGISTERS);
	*to = (struct neap__cell_instruction){
		.op = (uint16_t)(w->row[i] >= 0 ? NEAP__CELL_CONST : node->op),
		.to = (uint16_t)r,
		.a = place[0],
		.b = place[1],
		.c = place[2]};
	w->count++;
	w->place[i] = (uint16_t)r;
	return 0;
}

static int write_list(struct lister *w, struct neap__cell_list *list, int from_tape,
	const struct target *target, int targets)
{
	place_rows(w, from_tape);
	mark(w, target, targets);
	memset(w->owner, -1, sizeof w->owner);
	w->count = 0;
	for (int i = 0; i < w->graph->count; i++)
		if (w->used[i])
			NEAP_TRY(write_node(w, i));
	for (int t = 0; t < targets; t++)
		w->instruction[w->count++] = (struct neap__cell_instruction){.op = NEAP__CELL_OPS,
			.to = (uint16_t)target[t].row,
			.a = w->place[target[t].node]};
	list->count = w->count;
	list->reads = 0;
	for (int i = 0; i < w->graph->count; i++)
		if (w->used[i] && w->row[i] >= 0)
			list->reads |= UINT64_C(1) << w->row[i];
	list->instruction = neap__net_get(w->net, (uint64_t)w->count, sizeof *list->instruction);
	if (!list->instruction)
		return neap__fail_errno(ENOMEM, "%s", w->program->name);
	memcpy(list->instruction, w->instruction, (size_t)w->count * sizeof *list->instruction);
	return 0;
}

static int write_constants(struct lister *w)
{
	int count = w->program->nconstants * NEAP__CELL_BLOCK;
	int is_double = w->net->options.precision == NEAP_DOUBLE;
	void *to = neap__net_get(
		w->net, (uint64_t)count + 1, is_double ? sizeof(double) : sizeof(float));

	if (!to)
		return neap__fail_errno(ENOMEM, "%s", w->program->name);
	for (int i = 0; i < count; i++) {
		double value = w->graph->node[w->constant[i / NEAP__CELL_BLOCK]].value;
		if (is_double)
			((double *)to)[i] = value;
		else
			((float *)to)[i] = (float)value;
	}
	w->program->constants = to;
	return 0;
}

static int write_lists(
	struct lister *w, const struct neap__cell_source *s, const struct neap__cell_derivative *d)
{
	struct neap__cell_program *p = w->program;
	struct target step[NEAP__CELL_TO], back[NEAP__CELL_TO];
	const struct target condition = {s->condition, NEAP__CELL_TO_CONDITION};
	int steps = 0, backs = 0;

	for (int k = 0; k < s->nstates; k++) {
		step[steps++] = (struct target){s->state[k].next, k};
		back[backs++] = (struct target){d->state[k], k};
	}
	p->condition_state = -1;
	for (int k = 0; k < s->nstates; k++)
		if (s->state[k].next == s->condition)
			p->condition_state = k;
	if (p->condition_state < 0)
		step[steps++] = condition;
	back[backs++] = (struct target){d->in, NEAP__CELL_TO_IN};
	if (p->returns_last)
		back[backs++] = (struct target){d->last, NEAP__CELL_TO_LAST};
	for (int k = 0; k < p->cut.count && !p->cut.is_sparse; k++)
		step[steps++] = (struct target){p->cut.node[k], NEAP__CELL_TO_TAPE + k};
	NEAP_TRY(write_list(w, &p->step, 0, step, steps));
	NEAP_TRY(write_list(w, &p->condition, 1, &condition, 1));
	NEAP_TRY(write_list(w, &p->back, 1, back, backs));
	return write_constants(w);
}

int neap__cell_lists_make(struct neap_net *net, struct neap__cell_program *program,
	const struct neap__cell_source *source, const struct neap__cell_derivative *derivative)
{
	struct lister *w = calloc(1, sizeof *w);

	if (!w)
		return neap__fail_errno(ENOMEM, "%s", program->name);
	w->net = net;
	w->graph = &source->graph;
	w->program = program;
	program->nconstants = 0;
	int rc = write_lists(w, source, derivative);
	free(w);
	return rc;
}
