/* SPDX-License-Identifier: Apache-2.0 */
/* engine.h: what the files compiled once a precision share. */
#ifndef NEAP_NN_ENGINE_H
#define NEAP_NN_ENGINE_H

#include "kern/kern.h"
#include "nn/cells.h"
#include "nn/inside.h"

#define neap__engine_this NEAP_R(neap__engine)

enum { NEAP__PRECISION = sizeof(real) == sizeof(double) ? NEAP_DOUBLE : NEAP_FLOAT };

static inline const struct neap__cell_code *neap__code(const struct neap__layer *layer)
{
	return layer->cell->code[NEAP__PRECISION];
}

static inline struct neap__matrix neap__weights(const struct neap_net *net, int tensor)
{
	const struct neap__tensor *t = &net->tensors[tensor];
	return (struct neap__matrix){.w = t->data,
		.columns = (int)t->columns,
		.row_start = t->row_start,
		.column = t->column};
}

static inline const struct neap__rows *neap__rows(
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

/* Adds the rows of a list to y. */
static inline void neap__gather(const struct neap__kernels *k, const struct neap_net *net,
	int tensor, const struct neap__list *list, real *y)
{
	struct neap__matrix m = neap__weights(net, tensor);
	neap__rows(k, &m)->add(y, &m, list->id, list->value, list->count);
}

#define neap__turn_sample NEAP_R(neap__turn_sample)
double neap__turn_sample(struct neap_net *net, struct neap__group *group, int sample,
	const unsigned char *state, unsigned char *adjoint, double *answer);

#endif
