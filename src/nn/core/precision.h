/* SPDX-License-Identifier: Apache-2.0 */
/* precision.h: what the files compiled once a precision share. */
#ifndef NEAP_NN_CORE_PRECISION_H
#define NEAP_NN_CORE_PRECISION_H

#include "kern/kern.h"
#include "nn/cells/cells.h"
#include "nn/core/net_state.h"

#define neap__precision_ops_this NEAP_R(neap__precision_ops)

enum { NEAP__PRECISION = sizeof(real) == sizeof(double) ? NEAP_DOUBLE : NEAP_FLOAT };

static inline const struct neap__cell_code *neap__code(const struct neap__layer *layer)
{
	return layer->cell->code[NEAP__PRECISION];
}

static inline struct neap__matrix neap__weights(const struct neap_net *net, int tensor)
{
	const struct neap__param *t = &net->tensors[tensor];
	return (struct neap__matrix){.w = t->data,
		.columns = (int)t->columns,
		.row_start = t->row_start,
		.column = t->column};
}

static inline const struct neap__row_ops *neap__rows(
	const struct neap__kernels *k, const struct neap__matrix *m)
{
	return &k->rows[m->row_start != NULL];
}

static inline struct neap__slope neap__slope(const struct neap__layer *layer)
{
	return (struct neap__slope){.theta = (real)layer->threshold,
		.width = (real)layer->width,
		.height = (real)layer->height,
		.cut = (real)layer->cut};
}

static inline struct neap__list *neap__list_of(
	struct neap__list *lists, const struct neap_net *net, int s, int l)
{
	return &lists[(size_t)s * net->nlayers + l];
}

static inline struct neap__list neap__input_events(
	const struct neap_net *net, int sample, int64_t t)
{
	const struct neap_sequence *events = &net->events[sample];
	const uint32_t *start = events->start + (t - net->events_from);
	return (struct neap__list){
		.count = (int)(start[1] - start[0]), .id = events->unit + start[0]};
}

/* Scratch of the sample in a slot: rows as wide as the widest layer. */
static inline real *neap__scratch_row(const struct neap_net *net, void *rows, int slot)
{
	return (real *)(void *)((char *)rows + (size_t)slot * net->row_bytes);
}

static inline struct neap__view *neap__view_of(const struct neap__at *at, int layer)
{
	return &at->group->views[(size_t)layer * at->group->room + at->slot];
}

static inline int64_t neap__length_of(
	const struct neap_net *net, const struct neap__group *group, int s)
{
	return net->batch->sequences[group->first + s].length;
}

/* Sums that begin with the bias: a `start` of struct neap__cell_code. */
#define neap__start_bias NEAP_R(neap__start_bias)
void *neap__start_bias(struct neap__at *at, void *row);

/* spike_lists.c: the spikes of the step before t0, and of t1 - 1, from the states and into them. */
#define neap__group_load NEAP_R(neap__group_load)
#define neap__group_save NEAP_R(neap__group_save)
void neap__group_load(
	struct neap_net *net, struct neap__group *group, unsigned char *state, int64_t t0);
void neap__group_save(struct neap_net *net, struct neap__group *group, unsigned char *state,
	int64_t t0, int64_t t1);

/* products.c: rows of kern.h's struct neap__row_ops, or dense products; shares may change. */
#define neap__products_add NEAP_R(neap__products_add)
#define neap__products_dot NEAP_R(neap__products_dot)
#define neap__strips_fill NEAP_R(neap__strips_fill)
void neap__products_add(
	const struct neap_net *net, struct neap__sample_rows *samples, int count, int tensor);
void neap__products_dot(
	const struct neap_net *net, struct neap__sample_rows *samples, int count, int tensor);
/* Brings the weights into strips. */
void neap__strips_fill(struct neap_net *net);

/* forward.c */
#define neap__group_alive NEAP_R(neap__group_alive)
#define neap__group_step NEAP_R(neap__group_step)
#define neap__tapes_begin NEAP_R(neap__tapes_begin)
#define neap__tapes_end NEAP_R(neap__tapes_end)
#define neap__advance_group NEAP_R(neap__advance_group)
#define neap__record_group NEAP_R(neap__record_group)
#define neap__log_group NEAP_R(neap__log_group)
/* Fills in group->at for the samples that have a step t, in their order; returns how many. */
int neap__group_alive(struct neap_net *net, struct neap__group *group, int64_t t);
/*
 * All samples by one step; returns the bytes of tape. walked: what ends the step of a sample
 * in a hidden layer that walked; NULL: none did.
 */
size_t neap__group_step(struct neap_net *net, struct neap__group *group, unsigned char *state,
	int64_t t, int first, unsigned char *tape,
	size_t (*walked)(struct neap__at *at, unsigned char *tape));
/* The table of offsets before the tapes of n steps, cleared; what is written, rounded up. */
size_t neap__tapes_begin(unsigned char *tape, int64_t n);
size_t neap__tapes_end(unsigned char *tape, size_t bytes);
/* Rows of struct neap__precision_ops. */
void neap__advance_group(struct neap_net *net, struct neap__group *group, unsigned char *state,
	int64_t t0, int64_t t1, int first);
size_t neap__record_group(struct neap_net *net, struct neap__group *group, unsigned char *state,
	int64_t t0, int64_t t1, int first, unsigned char *tape);
size_t neap__log_group(struct neap_net *net, struct neap__group *group, unsigned char *state,
	int64_t t0, int64_t t1, int first, unsigned char *log);

/*
 * weight_gradients.c: begin with the adjoint of a range's end; step before each step that a sample
 * has; keep each sample's d(in) when its cell has made it; then add; end adds up all that
 * waits.
 */
#define neap__weights_begin NEAP_R(neap__weights_begin)
#define neap__weights_step NEAP_R(neap__weights_step)
#define neap__weights_store NEAP_R(neap__weights_store)
#define neap__weights_add NEAP_R(neap__weights_add)
#define neap__weights_add_now NEAP_R(neap__weights_add_now)
#define neap__weights_end NEAP_R(neap__weights_end)
#define neap__bias_add NEAP_R(neap__bias_add)
#define neap__deferred_din NEAP_R(neap__deferred_din)
#define neap__outputs_store NEAP_R(neap__outputs_store)
void neap__weights_begin(
	struct neap_net *net, struct neap__group *group, const unsigned char *adjoint);
void neap__weights_step(struct neap_net *net, struct neap__group *group);
void neap__weights_store(const struct neap__at *at);
/*
 * The gradient of a layer's tensor that carries the spikes of layer `from` (-1: the
 * inputs) into d(in) of this step, or (next) of the one after it.
 */
void neap__weights_add(struct neap_net *net, struct neap__group *group, int alive,
	const struct neap__layer *layer, int tensor, int from, int next);
/* The same of the shares in group->shares, at once. */
void neap__weights_add_now(struct neap_net *net, struct neap__group *group, int count, int tensor);
void neap__weights_end(struct neap_net *net, struct neap__group *group);
void neap__bias_add(struct neap_net *net, struct neap__group *group, int alive,
	const struct neap__layer *layer);
/* A layer's d(in) one step later. */
const real *neap__deferred_din(const struct neap__at *at, int layer);
/* Of a dense net: the outputs of the step. */
void neap__outputs_store(const struct neap__at *at);

/* event_lists.c: rows of d(in) and outputs, of a sample's row and a step counted from the range's
 * end. */
#define neap__deferred_row NEAP_R(neap__deferred_row)
#define neap__deferred_outputs NEAP_R(neap__deferred_outputs)
#define neap__column_of NEAP_R(neap__column_of)
#define neap__event_list_append NEAP_R(neap__event_list_append)
#define neap__event_list_sum NEAP_R(neap__event_list_sum)
real *neap__deferred_row(const struct neap_net *net, const struct neap__deferred *deferred,
	int layer, int step, int row);
/* up: what of the outputs goes up. */
real *neap__deferred_outputs(const struct neap_net *net, const struct neap__deferred *deferred,
	int layer, int step, int row, int up);
/* Where in d(in) the columns of a tensor begin. */
int neap__column_of(const struct neap__layer *layer, int tensor);
/* The spikes of a list, which add row `from` of d(in). */
void neap__event_list_append(
	struct neap__deferred *deferred, int tensor, const struct neap__list *list, uint32_t from);
/* Adds what was noted of a tensor; `source_rows` rows of d(in) are in use. */
void neap__event_list_sum(struct neap_net *net, struct neap__grads *grads,
	struct neap__deferred *deferred, int layer, int tensor, int source_rows);

/* backward.c: rows of struct neap__precision_ops. */
#define neap__backward_group NEAP_R(neap__backward_group)
#define neap__fold_tensor NEAP_R(neap__fold_tensor)
void neap__backward_group(struct neap_net *net, struct neap__group *group, unsigned char *adjoint,
	int64_t t1, int64_t t0, const unsigned char *tape, int64_t tape_t0);
/* The sums of a block, of `count` numbers of a tensor, go to those of the blocks before. */
#define neap__fold_part NEAP_R(neap__fold_part)
void neap__fold_part(const struct neap_net *net, struct neap__grads *grads, int tensor, int64_t at,
	int64_t count);
/* The sums of a block of a tensor go to those of the blocks before. */
void neap__fold_tensor(struct neap_net *net, struct neap__grads *grads, int tensor);

/* outer_products.c: a row of struct neap__precision_ops. */
#define neap__outer_tile_add NEAP_R(neap__outer_tile_add)
void neap__outer_tile_add(struct neap_net *net, struct neap__grads *grads,
	const struct neap__outer_tile *tile, struct neap__outer_team *team, int64_t t1, int64_t t0);

/* replay_steps.c: rows of struct neap__precision_ops. */
#define neap__replay_group NEAP_R(neap__replay_group)
#define neap__pack_net NEAP_R(neap__pack_net)
size_t neap__replay_group(struct neap_net *net, struct neap__group *group, unsigned char *state,
	int64_t t0, int64_t t1, const unsigned char *const *logs, unsigned char *tape);
void neap__pack_net(struct neap_net *net);

/* leak.c: a row of struct neap__precision_ops. */
#define neap__leak_begin NEAP_R(neap__leak_begin)
void neap__leak_begin(struct neap_net *net, const struct neap__layer *layer);

/* dropout.c */
#define neap__dropout_draw NEAP_R(neap__dropout_draw)
#define neap__drops NEAP_R(neap__drops)
#define neap__dropout_list NEAP_R(neap__dropout_list)
#define neap__dropout_raise NEAP_R(neap__dropout_raise)
#define neap__dropout_gradient NEAP_R(neap__dropout_gradient)
/* A row of struct neap__precision_ops: which units of the group's samples are kept. */
void neap__dropout_draw(struct neap_net *net, struct neap__group *group);
/* Does the batch begun drop outputs of a layer? */
int neap__drops(const struct neap_net *net, const struct neap__layer *layer);
/* What of a layer's outputs goes up, as it is, and then raised; in scratch of the slot. */
struct neap__list neap__dropout_list(const struct neap_net *net, const struct neap__group *group,
	const struct neap__layer *layer, int slot, const struct neap__list *outputs);
void neap__dropout_raise(const struct neap_net *net, const struct neap__group *group,
	const struct neap__layer *layer, int slot, struct neap__list *list);
/* The same of outputs of all units: what goes up, raised by `scale`; 0 where nothing does. */
#define neap__dropout_all NEAP_R(neap__dropout_all)
void neap__dropout_all(real *to, const struct neap_net *net, const struct neap__group *group,
	const struct neap__layer *layer, int slot, const real *outputs, real scale);
/* What comes down to the active units, in place. */
void neap__dropout_gradient(const struct neap_net *net, const struct neap__group *group,
	const struct neap__layer *layer, int slot, const struct neap__view *view, real *ds);

#define neap__turn_sample NEAP_R(neap__turn_sample)
double neap__turn_sample(struct neap_net *net, struct neap__group *group, int sample,
	const unsigned char *state, unsigned char *adjoint, double *answer);

#endif
