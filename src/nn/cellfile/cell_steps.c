/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cell_steps.c: the functions of struct neap__cell_code of a cell file. State: its states, and the
 * spikes of the step before if it uses them. Adjoint: d(in), the gradients of the states, and that
 * of the spikes of the step before if there is one. Tape: if the spike condition is enough, as
 * lif's (lif_tape.h); else the rows of struct neap__cell_cut and a bitmap of the spikes of the step
 * before (in a smooth net a row).
 */
#include "nn/cellfile/cell_blocks.h"
#include "nn/cells/lif_tape.h"
#include "nn/cells/spiking.h"
#include "nn/core/forward.h"

#include <math.h>
#include <string.h>

/* Numbers of units as rows of a block: those of a list of units that are not in a list are 0. */
struct spread {
	const uint16_t *id;
	const real *value; /* of the units in the list; NULL: ones */
	int count, done;
};

static void spread_block(real *to, struct spread *from, int first, int n)
{
	int k = from->done;

	memset(to, 0, (size_t)n * sizeof *to);
	for (; k < from->count && from->id[k] < first + n; k++)
		to[from->id[k] - first] = from->value ? from->value[k] : 1;
	from->done = k;
}

static struct spread spread_list(const struct neap__list *list)
{
	return (struct spread){.id = list->id, .value = list->value, .count = list->count};
}

static real *row_of(unsigned char *at, const struct neap__layer *layer, int row)
{
	return (real *)(void *)at + (size_t)row * layer->n;
}

static int block_units(const struct neap__layer *layer, int first)
{
	int left = layer->n - first, most = neap__cell_block_units(layer->program);
	return left < most ? left : most;
}

/* Spikes of the step before in the step's last tape row. */
static void tape_last(const struct neap__at *at, unsigned char *to, size_t bytes)
{
	memset(to, 0, bytes);
	if (at->t == 0)
		return;
	if (at->layer->smooth)
		memcpy(to, at->prev->value, (size_t)at->layer->n * sizeof(real));
	for (int k = 0; k < at->prev->count && !at->layer->smooth; k++)
		to[at->prev->id[k] >> 3] |= (unsigned char)(1 << (at->prev->id[k] & 7));
}

/* 1: every unit counts as inside the support. */
static int takes_all(const struct neap__at *at)
{
	return at->layer->smooth || isinf(at->layer->cut) || at->net->options.dense;
}

/* Counts the units inside the support, and ends the tape whose rows are written. */
static size_t end_tape(const struct neap__at *at, const real *x, unsigned char *tape)
{
	const struct neap__layer *layer = at->layer;
	const struct neap__cell_cut *cut = &layer->program->cut;
	size_t rows = (size_t)cut->count * layer->n * sizeof(real);
	size_t bytes = neap__layer_tape(at->net, layer);
	real theta = (real)layer->threshold, width = (real)layer->cut;
	int near = 0;

	for (int i = 0; i < layer->n; i++)
		near += x[i] - theta <= width && theta - x[i] <= width;
	at->group->support += takes_all(at) ? layer->n : near;
	at->group->recorded += layer->n;
	if (cut->last)
		tape_last(at, tape + rows, bytes - rows);
	return bytes;
}

static size_t finish(struct neap__at *at, void *sums, unsigned char *tape)
{
	const struct neap__layer *layer = at->layer;
	const struct neap__cell_program *p = layer->program;
	real *x = at->group->scratch[0], last[NEAP__CELL_WIDE];
	int rows = p->cut.is_sparse ? 0 : p->cut.count;
	struct spread before = {0};
	const real *reset_last = NULL, *frozen = NULL;

	if (p->condition_state >= 0)
		x = row_of(at->state + layer->state_at, layer, p->condition_state);
	if (at->t > 0 && p->takes_last) {
		before = spread_list(at->prev);
		if (layer->smooth)
			reset_last = neap__reset_spikes(at, at->t - 1, at->prev->value);
	}
	if (layer->smooth)
		frozen = neap__reset_spikes(at, at->t, NULL);
	for (int first = 0, n; first < layer->n; first += n) {
		struct neap__cell_block block = {.at = at};
		n = block.count = block_units(layer, first);
		if (p->takes_last)
			spread_block(last, &before, first, n);
		for (int k = 0; k < p->nstates; k++)
			block.from[k] = block.to[k] =
				row_of(at->state + layer->state_at, layer, k) + first;
		block.from[NEAP__CELL_FROM_IN] = (real *)sums + first;
		block.from[NEAP__CELL_FROM_LAST] = last;
		block.from[NEAP__CELL_FROM_RESET_LAST] = reset_last ? reset_last + first : last;
		block.from[NEAP__CELL_FROM_FROZEN] = frozen ? frozen + first : NULL;
		block.to[NEAP__CELL_TO_CONDITION] = x + first;
		for (int k = 0; k < rows; k++)
			block.to[NEAP__CELL_TO_TAPE + k] =
				tape ? row_of(tape, layer, k) + first : NULL;
		neap__cell_block_run(tape ? NEAP__CELL_RECORD : NEAP__CELL_STEP, &block);
	}
	if (p->cut.is_sparse)
		return neap__spike(at, x, x, tape);
	neap__spike(at, x, x, NULL);
	return tape ? end_tape(at, x, tape) : 0;
}

/* Of a tape of rows: the rows of a block. */
static void tape_rows(struct neap__cell_block *block, const unsigned char *tape, int first)
{
	const struct neap__layer *layer = block->at->layer;
	int rows = layer->program->cut.is_sparse ? 0 : layer->program->cut.count;

	for (int k = 0; k < rows; k++)
		block->from[NEAP__CELL_FROM_TAPE + k] =
			(const real *)(const void *)tape + (size_t)k * layer->n + first;
}

/* Spikes of the step before, from the end of the tape. */
static void last_block(
	real *to, const struct neap__layer *layer, const unsigned char *tape, int first, int n)
{
	const unsigned char *bits =
		tape + (size_t)layer->program->cut.count * layer->n * sizeof(real);

	for (int i = first; i < first + n; i++)
		to[i - first] = layer->smooth ? ((const real *)(const void *)bits)[i]
					      : (real)(bits[i >> 3] >> (i & 7) & 1);
}

/* The spike condition of all units, on the tape or computed from it. */
static const real *condition(
	const struct neap__at *at, const unsigned char *tape, struct neap__view *view)
{
	const struct neap__layer *layer = at->layer;
	const struct neap__cell_program *p = layer->program;
	real *x = view->numbers[0], last[NEAP__CELL_WIDE];

	if (p->condition_row >= 0)
		return (const real *)(const void *)tape + (size_t)p->condition_row * layer->n;
	for (int first = 0, n; first < layer->n; first += n) {
		struct neap__cell_block block = {.at = at};
		n = block.count = block_units(layer, first);
		tape_rows(&block, tape, first);
		if (p->cut.last)
			last_block(last, layer, tape, first, n);
		block.from[NEAP__CELL_FROM_LAST] = block.from[NEAP__CELL_FROM_RESET_LAST] = last;
		block.to[NEAP__CELL_TO_CONDITION] = x + first;
		neap__cell_block_run(NEAP__CELL_CONDITION, &block);
	}
	return x;
}

static size_t view_rows(struct neap__at *at, const unsigned char *tape, struct neap__view *view)
{
	const struct neap__kernels *k = at->net->kernels;
	const struct neap__layer *layer = at->layer;
	struct neap__slope slope = neap__slope(layer);
	const real *x = condition(at, tape, view);
	int n = layer->n, near = n;

	view->outputs = tape;
	view->u = x;
	view->active_id = at->net->identity;
	if (layer->smooth) {
		k->integral[layer->surrogate](view->numbers[1], x, n, &slope);
		view->spikes = (struct neap__list){
			.count = n, .id = at->net->identity, .value = view->numbers[1]};
	} else if (takes_all(at)) {
		view->spikes = (struct neap__list){
			.count = k->spikes(view->ids[0], x, n, slope.theta), .id = view->ids[0]};
	} else {
		view->spikes = (struct neap__list){
			.count = k->support(view->ids[0], view->ids[1], view->numbers[2], &near, x,
				n, slope.theta, slope.cut),
			.id = view->ids[0]};
		view->active_id = view->ids[1];
		view->u = view->numbers[2];
	}
	view->active = near;
	return neap__layer_tape(at->net, layer);
}

static void backward(struct neap__at *at, const struct neap__view *view, void *ds)
{
	const struct neap__layer *layer = at->layer;
	const struct neap__cell_program *p = layer->program;
	unsigned char *adjoint = at->adjoint + layer->adjoint_at;
	real rows[5][NEAP__CELL_WIDE];
	struct spread from[] = {
		{.id = view->active_id, .value = neap__heights(at, view), .count = view->active},
		{.id = view->active_id, .value = ds, .count = view->active},
		spread_list(&view->spikes),
		{.id = view->active_id, .value = view->u, .count = view->active},
	};
	static const int to[] = {NEAP__CELL_FROM_HEIGHT, NEAP__CELL_FROM_DS, NEAP__CELL_FROM_NOW,
		NEAP__CELL_FROM_TAPE};

	for (int first = 0, n; first < layer->n; first += n) {
		struct neap__cell_block block = {.at = at};
		n = block.count = block_units(layer, first);
		for (int k = 0; k < 3 + p->cut.is_sparse; k++) {
			if (p->back.reads >> to[k] & 1)
				spread_block(rows[k], &from[k], first, n);
			block.from[to[k]] = rows[k];
		}
		if (!p->cut.is_sparse)
			tape_rows(&block, view->outputs, first);
		if (p->cut.last)
			last_block(rows[4], layer, view->outputs, first, n);
		block.from[NEAP__CELL_FROM_LAST] = block.from[NEAP__CELL_FROM_RESET_LAST] = rows[4];
		for (int k = 0; k < p->nstates; k++)
			block.from[NEAP__CELL_FROM_DSTATE + k] = block.to[k] =
				row_of(adjoint, layer, 1 + k) + first;
		block.to[NEAP__CELL_TO_IN] = row_of(adjoint, layer, 0) + first;
		if (p->returns_last)
			block.to[NEAP__CELL_TO_LAST] =
				row_of(adjoint, layer, 1 + p->nstates) + first;
		neap__cell_block_run(NEAP__CELL_BACK, &block);
	}
}

#define neap__cell_steps NEAP_R(neap__cell_steps)
void neap__cell_steps(struct neap__cell_code *code, int is_sparse)
{
	code->start = neap__start_bias;
	code->finish = finish;
	code->view = is_sparse ? neap__lif_view : view_rows;
	code->backward = backward;
	if (is_sparse)
		code->tape_max = neap__lif_tape_max;
}
