/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deferred_sums.h: weight gradients that wait. A spike's part in a gradient is a row of d(in)
 * added to a row of the gradient; done at once, step by step, every spike would fetch
 * the gradient's row from far memory. Instead the rows of d(in) of up to 64 steps are
 * kept, spikes are noted with the row they add, and at the end they are sorted by
 * gradient row (a counting sort, which keeps their order) and added row by row.
 *
 * A dense net keeps its layers' outputs, too, and takes the sum of outer products
 * (outer_products.h); noted are the events of its inputs alone.
 *
 * Every gradient is summed in the order in which spikes were noted, downwards in t and
 * upwards in samples, so where the waiting ends changes no bit.
 */
#ifndef NEAP_NN_GRADIENTS_DEFERRED_SUMS_H
#define NEAP_NN_GRADIENTS_DEFERRED_SUMS_H

#include <stddef.h>
#include <stdint.h>

struct neap_net;

/* A spike of a unit, and the kept row of d(in) that it adds. */
struct neap__deferred_event {
	uint32_t row, from;
};

struct neap__deferred {
	int samples, steps; /* room for so many samples, and steps beside the one before */
	void **rows;	    /* [layers][(steps + 1) * samples][stride]; row step * samples + slot */
	void **outputs;	    /* the same of outputs, of a dense net's hidden layers */
	struct neap__deferred_event **events; /* [tensors] */
	size_t *count, *room;		      /* [tensors] */
	uint32_t *start, *from;		      /* of the sort: [rows + 1], [events] */
	uint16_t *row;			      /* [rows] */
	void *strip;			      /* scratch of kernels: [(steps + 1) * samples] */
	void *memory;
};

/* Bytes from one kept row of a layer to the next. */
size_t neap__deferred_stride(const struct neap_net *net, int layer);
/* The same of a row of outputs; where a layer has dropout, and of what goes up of them. */
size_t neap__deferred_outputs_stride(const struct neap_net *net, int layer);
/* Memory for sums over at most `samples` samples. */
int neap__deferred_make(struct neap_net *net, struct neap__deferred *deferred, int samples);
void neap__deferred_free(struct neap__deferred *deferred);
/* Bytes that it takes. */
size_t neap__deferred_bytes(const struct neap_net *net, int samples);

#endif
