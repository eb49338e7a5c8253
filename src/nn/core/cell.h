/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cell.h: what a cell gives to the code that runs a net. A step goes layer by layer over the
 * samples of a group. Products with weights are made outside the cell, for all samples at once, so
 * that a row of weights is read once for all of them; a cell does what is left of one step of one
 * sample. Results of a sample must not depend on the other samples, nor on their order.
 *
 * Symbols of all cells: x what enters, in = W x + V S_{-1} + b its products with weights, U the
 * membrane, S the spikes (or outputs), H the step function, theta the threshold, s' the surrogate
 * derivative at U - theta. dX is the gradient of the loss with respect to X. An index -1 or +1 is
 * the step before or after; no index, the step itself. gS is what S gets from the layer above.
 * Terms marked (R) are dropped where the reset is detached. A unit is inside the support (`near` in
 * the code) where |U - theta| <= cut: elsewhere s' is 0.
 */
#ifndef NEAP_NN_CORE_CELL_H
#define NEAP_NN_CORE_CELL_H

#include "nn/core/net_state.h"

/* Where a cell works: one sample, layer and step. */
struct neap__at {
	struct neap_net *net;
	struct neap__group *group;
	const struct neap__layer *layer;
	const struct neap_sequence *sequence;
	int sample, slot; /* its number in the batch, and in the group */
	int64_t t;
	int first;		       /* the step is made for the first time: losses count */
	unsigned char *state;	       /* of the sample; forward only */
	unsigned char *adjoint;	       /* of the sample; backward only */
	void *sums;		       /* [widths.sums] of the layer's products; forward only */
	const struct neap__list *prev; /* own outputs of the step before */
	struct neap__list *now;	       /* own outputs: `finish` fills them in */
	const struct neap__list *near_prev; /* units inside the support in the step before */
	struct neap__list *near_now;	    /* units inside the support: `finish` fills them in */
};

/* What a tape says about one layer, sample and step. */
struct neap__view {
	struct neap__list spikes;  /* outputs of the step */
	struct neap__list prev;	   /* of the step before; reset to zero only */
	int active;		   /* units whose outputs can get a gradient: inside the support */
	const uint16_t *active_id; /* [active] */
	const void *u;		   /* [active] their membranes, or what the threshold sees */
	int npre;
	const uint16_t *pre_id; /* [npre] */
	const void *pre;	/* [npre] membranes before a reset to zero */
	const void *outputs;	/* what else the cell wrote */
	/* Of leaks that are learned: [active], or [n] where whole_trace. */
	const void *trace[NEAP__LEAKS_MOST];
	int whole_trace;
	struct neap__list
		gated;	  /* what entered the second product: the units that get a gradient */
	uint16_t *ids[3]; /* scratch [n + NEAP__SPARE] each */
	void *numbers[3]; /* scratch [n + NEAP__SPARE] each */
};

/* Where three parts of a tape go that lists units (`listed` of struct neap__cell_code). */
struct neap__listing {
	void *membranes;	 /* [near] */
	uint16_t *spikes, *near; /* [spikes], [near] */
};

enum { NEAP__SHOWN_MOST = 2, NEAP__LAST_OUTPUTS = -1 };

/* A row of numbers [n] that a cell shows of its state after a step. */
struct neap__shown {
	const char *name; /* NULL ends a table */
	int row;	  /* of the state's rows; NEAP__LAST_OUTPUTS: the outputs of all units */
};

/*
 * The code of a cell in one precision; sizes are in bytes, tapes aligned to a number. Optional
 * functions are NULL where a cell has none.
 */
struct neap__cell_code {
	struct neap__widths widths;
	enum neap__outputs outputs;
	int has_candidate; /* a second product, with gated outputs of the step before */
	int is_dense;	   /* every tape takes tape_max */
	/*
	 * Rows of n numbers that a state, an adjoint and the largest tape take; state_bytes,
	 * adjoint_bytes and tape_max say so instead where they are not NULL.
	 */
	struct {
		int state, adjoint, tape;
	} rows;
	/*
	 * First row of the adjoint, of those that hold the gradients of the state's rows at the
	 * step before; 0: no rows do.
	 */
	int carried;
	int traces; /* rows of n numbers in a state, where all time constants are learned */
	/* What is worth a look after a step, the row that says most first. */
	struct neap__shown shown[NEAP__SHOWN_MOST];
	size_t (*state_bytes)(const struct neap_net *net, const struct neap__layer *layer);
	size_t (*adjoint_bytes)(const struct neap_net *net, const struct neap__layer *layer);
	size_t (*tape_max)(const struct neap_net *net, const struct neap__layer *layer);
	/* Optional: offset in a sample's adjoint of a row [n] that is added to dS; 0: none. */
	size_t (*extra_at)(const struct neap__layer *layer);

	/*
	 * Forward. `start` returns the row that the products are added to (W x first, then
	 * V S_{-1}), filled with what comes before them: the bias, or a decayed state. The row
	 * lies in the state, or is `row`, scratch of widths.sums numbers. `finish` makes the
	 * rest of the step: moves the state, fills in at->now, and where tape is not NULL writes
	 * the step's tape. Returns the bytes of the tape, a multiple of a number's.
	 */
	void *(*start)(struct neap__at *at, void *row);
	size_t (*finish)(struct neap__at *at, void *sums, unsigned char *tape);
	/*
	 * Optional: a step together with its products (core/whole_steps.h). `leaks` fills in the
	 * constants of a struct neap__leak_step (kern.h), and returns 0 where the layer cannot be
	 * computed so. `stepped` ends the step as `finish` does, once that kernel has moved the
	 * membranes and filled in at->now and at->near_now; values: membranes of the latter.
	 */
	int (*leaks)(const struct neap__layer *layer, void *step);
	size_t (*stepped)(struct neap__at *at, const void *values, unsigned char *tape);
	/*
	 * has_candidate only, between the products: returns the list that enters the second
	 * product; `room` is scratch [n] for its numbers.
	 */
	struct neap__list (*gate)(struct neap__at *at, void *sums, void *room);
	/* NEAP__OUTPUT_VALUES only: fills in the numbers of the listed units, from the state. */
	void (*recall)(const struct neap__layer *layer, const unsigned char *state,
		struct neap__list *list);

	/*
	 * Backward. `view` reads a tape back and returns its bytes. Then dS of the active units is
	 * summed up from the layer above, recurrent weights, penalty and extra row. `backward`
	 * turns d(in), and what else the adjoint holds, from step t + 1 to t; ds[k] is the
	 * gradient that reaches the output of the k-th active unit, the reset's part excluded, and
	 * may be changed. Gradients of weights are made outside, from d(in) and the lists.
	 */
	size_t (*view)(struct neap__at *at, const unsigned char *tape, struct neap__view *view);
	void (*backward)(struct neap__at *at, const struct neap__view *view, void *ds);
	/*
	 * has_candidate only, after `backward`: q[k] is the product of the candidate's d(in) with
	 * the row of view->gated.id[k]. Fills in what follows from q, and in view->gated the list
	 * that entered the product, for the gradient of its weights.
	 */
	void (*ungate)(struct neap__at *at, struct neap__view *view, const void *q);

	/*
	 * Replay from a log; a net has a log where all its hidden cells have these four.
	 * `walk` fills in the constants of a struct neap__membrane_walk (kern.h), which makes the
	 * membranes of many steps; `walked` ends a step as `finish` does, from membranes [n] before
	 * the reset, which it may change. `lists` says whether a tape of so many spikes and units
	 * inside the support holds these units alone, and no membranes of others; `listed` then
	 * writes that tape but for three parts, which go where `to` says, in the order membranes,
	 * spikes, units. Returns the bytes of the tape.
	 */
	void (*walk)(const struct neap__layer *layer, void *walk);
	size_t (*walked)(struct neap__at *at, void *membranes, unsigned char *tape);
	int (*lists)(
		const struct neap_net *net, const struct neap__layer *layer, int spikes, int near);
	size_t (*listed)(const struct neap__layer *layer, int spikes, int near, unsigned char *tape,
		struct neap__listing *to);

	/*
	 * Readouts only: answer[classes] and loss of one sample, at the turn; fills in the sample's
	 * adjoint where it is not NULL.
	 */
	double (*turn)(struct neap_net *net, struct neap__group *group, int sample,
		const unsigned char *state, unsigned char *adjoint, double *answer);
	/* Readouts only: the answer of a sample whose state has made so many steps. */
	void (*answer)(const struct neap_net *net, int64_t steps, const unsigned char *state,
		double *answer);
	/* Readouts only: lets the answer begin anew with the next step; outputs go on. */
	void (*restart)(const struct neap_net *net, unsigned char *state);
};

/* What a cell is, and which keys of the specification it has: the table of keys is in spec.c. */
enum neap__trait {
	NEAP__READOUT = 1,
	NEAP__HIDDEN = 1 << 1,
	NEAP__HAS_LEAK = 1 << 2,	     /* tau, learn */
	NEAP__HAS_THRESHOLD = 1 << 3,	     /* threshold and surrogate */
	NEAP__HAS_RESETS = 1 << 4,	     /* reset, reset_value */
	NEAP__HAS_DETACH = 1 << 5,	     /* detach */
	NEAP__HAS_SYNAPSE = 1 << 6,	     /* tau_syn */
	NEAP__HAS_ADAPTATION = 1 << 7,	     /* tau_adapt */
	NEAP__HAS_RAISED_THRESHOLD = 1 << 8, /* adapt: spikes raise the threshold */
	NEAP__HAS_COUPLING = 1 << 9,	     /* a, b: membrane and spikes feed the adaptation */
	NEAP__HAS_ACTIVATION = 1 << 10,	     /* activation */
	NEAP__IS_RECURRENT = 1 << 11,	     /* r or not */
	NEAP__HAS_RESET_KEY = 1 << 12,	     /* reset and reset_value, as keys alone; not zero */
	NEAP__HAS_SURROGATE = 1 << 13,	     /* the surrogate without a threshold: cell files */
	NEAP__HAS_FILTER = 1 << 14,	     /* conv and its keys: one row of sums, of its units */
	NEAP__HAS_SCALED_COUPLING = 1 << 15, /* a, b times 1 - decay; reset to 0 at once */
	NEAP__OSCILLATES = 1 << 16,	     /* omega, b, tau_adapt; spikes damp, nothing resets */
};

/* A row of the table of cells (cells.h). */
struct neap__cell {
	const char *name;
	int traits; /* of enum neap__trait */
	int readout;
	const struct neap__cell_code *code[2]; /* NEAP_FLOAT, NEAP_DOUBLE */
};

/* The threshold of a cell by default. The state of egru stays between -1 and 1. */
static inline double neap__cell_threshold(const struct neap__cell *cell)
{
	int gated = NEAP__IS_RECURRENT | NEAP__HAS_THRESHOLD;

	return (cell->traits & gated) == gated ? 0.1 : 1;
}

/* A layer's code in the net's precision. */
static inline const struct neap__cell_code *neap__layer_code(
	const struct neap_net *net, const struct neap__layer *layer)
{
	return layer->cell->code[neap__number_type(net)];
}

/* 1: the outputs of a hidden layer are spikes, 0: numbers, which no penalty on rates acts on. */
static inline int neap__layer_spikes(const struct neap_net *net, const struct neap__layer *layer)
{
	return neap__layer_code(net, layer)->outputs == NEAP__OUTPUT_SPIKES;
}

/* 1: some hidden layer's outputs are spikes. */
static inline int neap__net_spikes(const struct neap_net *net)
{
	for (int l = 0; l < net->nlayers - 1; l++)
		if (neap__layer_spikes(net, &net->layers[l]))
			return 1;
	return 0;
}

/* The most bytes of tape that a sample's step takes in a layer. */
static inline size_t neap__layer_tape(const struct neap_net *net, const struct neap__layer *layer)
{
	const struct neap__cell_code *code = neap__layer_code(net, layer);
	return code->tape_max ? code->tape_max(net, layer)
			      : (size_t)code->rows.tape * layer->n * net->ops->real;
}

#endif
