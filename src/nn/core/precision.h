/* SPDX-License-Identifier: Apache-2.0 */
/*
 * precision.h: short ways to the parts of a net, for the files that are compiled once for each
 * precision (kern/real.h). Everything here is inline.
 */
#ifndef NEAP_NN_CORE_PRECISION_H
#define NEAP_NN_CORE_PRECISION_H

#include <string.h>
#include "kern/kern.h"
#include "nn/core/cell.h"

enum { NEAP__PRECISION = sizeof(real) == sizeof(double) ? NEAP_DOUBLE : NEAP_FLOAT };

static inline const struct neap__cell_code *neap__code(const struct neap__layer *layer)
{
	return layer->cell->code[NEAP__PRECISION];
}

/* The weights of a tensor from a row on. */
static inline struct neap__matrix neap__weights(const struct neap_net *net, int tensor, int row)
{
	const struct neap__param *t = &net->tensors[tensor];
	const real *w = t->in_use;
	return (struct neap__matrix){.w = t->row_start ? w : w + (size_t)row * (size_t)t->columns,
		.columns = (int)t->columns,
		.row_start = t->row_start ? t->row_start + row : NULL,
		.column = t->column,
		.filter = t->filter};
}

static inline const struct neap__row_ops *neap__rows(
	const struct neap__kernels *k, const struct neap__matrix *m)
{
	return &k->rows[m->filter ? 2 : m->row_start != NULL];
}

/* The bias [widths.sums] of a layer. */
static inline const real *neap__biases(const struct neap_net *net, const struct neap__layer *layer)
{
	return layer->biases ? layer->biases : net->tensors[layer->bias].data;
}

static inline struct neap__slope neap__slope(const struct neap__layer *layer)
{
	return (struct neap__slope){.theta = (real)layer->threshold,
		.width = (real)layer->width,
		.height = (real)layer->height,
		.cut = (real)layer->cut};
}

/* The list of layer l of the sample in slot s. */
static inline struct neap__list *neap__list_of(
	struct neap__list *lists, const struct neap_net *net, int s, int l)
{
	return &lists[(size_t)s * net->nlayers + l];
}

/* Input events of step t; `sample` counts in the batch. */
static inline struct neap__list neap__input_events(
	const struct neap_net *net, int sample, int64_t t)
{
	const struct neap_sequence *events = &net->events[sample];
	const uint32_t *start = events->start + (t - net->events_from);
	return (struct neap__list){
		.count = (int)(start[1] - start[0]), .id = events->unit + start[0]};
}

/*
 * Input values of step t, in the net's precision: the batch's own or the caller's (neap/ports.h);
 * numbers that are no floats are in `room`.
 */
static inline const real *neap__input_values(
	const struct neap_net *net, int sample, int64_t t, real *room)
{
	size_t n = (size_t)net->options.inputs;
	const struct neap_ports *ports = &net->ports;

	if (ports->inputs) {
		size_t row = (size_t)(t - ports->first) * ports->samples + sample;
		const real *own = (const real *)ports->inputs + row * n;
		return sizeof(real) == sizeof(float) ? own : memcpy(room, own, n * sizeof *own);
	}
	const float *from = net->events[sample].values + (size_t)(t - net->events_from) * n;

	if (sizeof(real) == sizeof(float))
		return (const real *)(const void *)from;
	for (size_t i = 0; i < n; i++)
		room[i] = (real)from[i];
	return room;
}

/* The same as a list of all channels. */
static inline struct neap__list neap__input_list(
	const struct neap_net *net, int sample, int64_t t, real *room)
{
	return (struct neap__list){.count = net->options.inputs,
		.id = net->identity,
		.value = neap__input_values(net, sample, t, room)};
}

/* The scratch row of a slot: as wide as the widest layer. */
static inline real *neap__scratch_row(const struct neap_net *net, void *rows, int slot)
{
	return (real *)(void *)((char *)rows + (size_t)slot * net->row_bytes);
}

static inline struct neap__view *neap__view_of(const struct neap__at *at, int layer)
{
	return &at->group->views[(size_t)layer * at->group->room + at->slot];
}

/* Steps of the sample in slot s. */
static inline int64_t neap__length_of(
	const struct neap_net *net, const struct neap__group *group, int s)
{
	return net->batch->sequences[group->first + s].length;
}

/* Where in d(in) the columns of a tensor begin. */
static inline int neap__column_of(const struct neap__layer *layer, int tensor)
{
	return tensor == layer->recurrent   ? layer->widths.own_at
	       : tensor == layer->candidate ? layer->widths.candidate_at
					    : 0;
}

#endif
