/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deferred_sums.h: deferred sums of weight gradients. A spike's part in a gradient is a row of
 * d(in) added to a row of the gradient; added at once, every spike would read that row of the
 * gradient from far memory. Here the rows of d(in) of up to 64 steps are stored, events name the
 * row that they add, and at the end they are sorted by row of the gradient (a counting sort, which
 * keeps their order) and added row by row.
 *
 * A dense net stores its layers' outputs too, and takes the sum of outer products
 * (outer_products.h); the events of its inputs alone are deferred. Inputs that are numbers make
 * outer products with d(in) in any net.
 *
 * Every gradient is summed in the order in which events were appended, downwards in t and upwards
 * in samples, so that no bit depends on where sums are made.
 */
#ifndef NEAP_NN_GRADIENTS_DEFERRED_SUMS_H
#define NEAP_NN_GRADIENTS_DEFERRED_SUMS_H

#include <stddef.h>
#include <stdint.h>

struct neap_net;

/* A spike of unit `row`, and the stored row of d(in) that it adds. */
struct neap__deferred_event {
	uint32_t row, from;
};

struct neap__deferred {
	int samples, steps; /* room for so many samples, and steps beside the adjoint's own row */
	/*
	 * [layers][(steps + 1) * samples][stride] d(in); row step * samples + slot. Of layers whose
	 * weights are shared, which are added at once, the rows of the last two steps, or none
	 * (din_mask of struct neap__layer: 1 or 0, else -1).
	 */
	void **rows;
	void **outputs; /* [hidden layers], the same of outputs; of a dense net */
	struct neap__deferred_event **events; /* [tensors][room] */
	size_t *count, *room;		      /* [tensors] events there are, and fit */
	uint32_t *start, *from;		      /* of the sort: [rows + 1], [events] */
	uint16_t *row;			      /* [rows] of the gradient that have events */
	void *strip;			      /* scratch of kernels: [(steps + 1) * samples] */
	/* Of inputs that are numbers. In double: the steps' values, [(steps + 1) *
	 * samples][inputs]. */
	void *inputs;
	const void **x, **y; /* nets that are not dense: values and the d(in) of `terms` products */
	int terms;
	void *outer_room; /* scratch of kernels */
	void *memory;
};

enum { NEAP__INPUT_TILE = 256 /* rows of the input weights that are summed at a time */ };

/* 1: inputs are numbers that make outer products: their weights are dense rows. */
int neap__stores_inputs(const struct neap_net *net);

/* 1: spikes into dense rows; numbers and compressed rows are added at once. */
int neap__is_deferred(const struct neap_net *net, int tensor);
/* Steps whose rows are stored before they are added, for so many samples. */
int neap__deferred_steps(int samples);
/* Bytes from a stored row of a layer to the next. */
size_t neap__deferred_stride(const struct neap_net *net, int layer);
/* The same of outputs; where a layer has dropout, a row holds all and behind them those that pass.
 */
size_t neap__deferred_outputs_stride(const struct neap_net *net, int layer);
/* Memory for sums over at most `samples` samples. 0, or -ENOMEM. */
int neap__deferred_make(struct neap_net *net, struct neap__deferred *deferred, int samples);
void neap__deferred_free(struct neap_net *net, struct neap__deferred *deferred);
/* Bytes that neap__deferred_make takes; saturates. */
uint64_t neap__deferred_bytes(const struct neap_net *net, int samples);

#endif
