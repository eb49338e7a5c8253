/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_state.h: a net as the files of this folder see it, in either precision
 * (numbers of the net's precision stand behind void *).
 *
 * Samples form groups; one thread carries a group through a range of steps.
 * Layout of a state or an adjoint: groups, in them samples (each a multiple of
 * 64 bytes), in them layers from the input up. Offsets in struct neap__layer
 * count from the start of a sample. A state of all zero bytes is the one at
 * step 0.
 */
#ifndef NEAP_NN_CORE_NET_STATE_H
#define NEAP_NN_CORE_NET_STATE_H

#include <stddef.h>
#include <stdint.h>
#include <neap/net.h>
#include "sys/isa.h"

struct neap__thread_pool;
struct neap__kernels;
struct neap__cell;
struct neap__events;
struct neap__deferred;
struct neap__outer_team;
struct neap__outer_tile;
struct neap__replay;

enum {
	NEAP__GRADIENT_BLOCK = 64, /* steps whose weight gradients are summed together */
	NEAP__TAPE_HEAD = 40,	   /* headers of a tape of one round */
	NEAP__TAPE_GROUP = 16,	   /* a group's offset in a round, and of its first step */
	NEAP__LAYERS_MOST = 64,	   /* of a net that has a log */
	NEAP__LEAKS_MOST = 2	   /* time constants of a cell */
};

/* One parameter tensor; struct neap_param shows it to the world. */
struct neap__param {
	char name[40];
	int64_t rows, columns, count;
	size_t offset, row_offset; /* first element and row, counted over all tensors */
	void *data;
	double *grad;
	uint32_t *row_start; /* compressed rows; NULL when dense */
	uint16_t *column;
	double deviation; /* of the initial normal distribution; 0: starts at zero */
	int takes_spikes; /* and no numbers */
	int is_leak;	  /* logits of decays */
	double factor;	  /* of its gradient, in the batch begun */
};

enum neap__activation { NEAP__TANH, NEAP__RELU };

/* What the lists of a layer's outputs hold. */
enum neap__outputs {
	NEAP__OUTPUT_SPIKES, /* spikes: units alone */
	NEAP__OUTPUT_VALUES, /* the units that are not 0, and their numbers */
	NEAP__OUTPUT_ALL     /* all units, and their numbers */
};

/*
 * The row of a cell's sums, in sizes of the layer: as many columns as W, V and the row
 * itself have, and where those of V and of a second product begin. All zero: 1, 1, 1, 0, 0.
 */
struct neap__widths {
	int in, own, sums, own_at, candidate_at;
};

/* A decay a step of each unit (leak.h): by tau, and by tau_syn or tau_adapt. */
enum { NEAP__MEMBRANE_LEAK, NEAP__SECOND_LEAK };
struct neap__leak {
	double start;		    /* by the time constant given */
	int tensor;		    /* its logits, where it is learned; -1: fixed */
	void *decay, *rest, *slope; /* [n]: decay, 1 - decay, d decay / d logit (fixed: 0) */
};

/* A layer, the readout included (the last one). */
struct neap__layer {
	const struct neap__cell *cell;
	int index, n, below; /* units, units of the layer below */
	int hidden_at;	     /* hidden units below it, in all */
	int is_recurrent, delay;
	enum neap_reset reset;
	int detach;
	enum neap_surrogate surrogate;
	double width, height, support, threshold, reset_value;
	double tau, scale, recurrent_scale, density, dropout;
	double tau_syn, tau_adapt, adapt, a, b; /* of cells that have them */
	enum neap__activation activation;

	enum neap_learn learn;
	int nleaks; /* time constants of the cell */
	struct neap__leak leaks[NEAP__LEAKS_MOST];
	double cut;	   /* the surrogate is 0 beyond |u - threshold| > cut; may be infinite */
	int smooth, dense; /* dense: every unit counts as inside the support */
	enum neap__outputs outputs;
	int keeps_spikes;	     /* the last step's spikes are part of the state */
	int keeps_support;	     /* so are the units that were inside the support */
	int logged;		     /* spikes go into the log: others than the readout see them */
	int weight, recurrent, bias; /* tensors; recurrent may be -1 */
	int candidate;		     /* tensor of the second product; -1: none */
	struct neap__widths at;	     /* columns, and where they begin */

	size_t state_at;   /* the cell's own numbers */
	size_t spikes_at;  /* bitmap of the last spikes, or n numbers where outputs are */
	size_t support_at; /* bitmap */
	size_t traces_at;  /* rows of n numbers, of leaks that are learned */
	size_t adjoint_at; /* d(in), at.sums numbers, then what else the cell carries */
};

/* Spikes of one layer, sample and step: `count` ascending ids; value NULL: ones. */
struct neap__list {
	int count;
	const uint16_t *id;
	const void *value;
	uint16_t *room;	  /* ids this list may fill in; NULL when borrowed */
	void *value_room; /* n numbers, where outputs are */
};

/* Gradient sums of the samples that are summed together. */
struct neap__grads {
	int first, size; /* samples of the batch */
	void *part;	 /* sums of the block of steps being reversed, all tensors */
	double *total;	 /* sums of the blocks before */
	uint8_t *dirty;	 /* a row of part is not zero; one byte a row, all tensors */
	void *memory;
};

/*
 * What one thread carries through a range: the samples of one struct neap__grads, or some
 * of them where the net is `dense` (outer_products.h).
 */
struct neap__group {
	int first, size; /* samples of the batch */
	int64_t steps;	 /* of its longest sample */
	size_t state_at, adjoint_at;
	struct neap__grads *grads;
	double *spikes; /* spikes of every hidden unit, first passes only */
	double support; /* units inside the support, and how many were asked */
	double recorded;
	double tape_bytes; /* written by record, and for how many samples and steps */
	double tape_steps;
	size_t step_tape;   /* the largest tape of a step, a multiple of 8 */
	size_t step_log;    /* the same of a log */
	int room;	    /* samples there is memory for */
	size_t round_bytes; /* used in the round of record in progress */
	double log_bytes;   /* as tape_bytes, tape_steps */
	double log_steps;
	struct neap__replay *replay; /* of a net that has a log */
	void *memory;		     /* all the above and below */

	/* lists[parity of the step][sample * layers + layer] */
	struct neap__list *spike_lists[2], *support_lists[2];
	/* Scratch rows, as wide as the widest layer (neap_net.row_bytes). */
	void *wide[2];
	void *sums;		  /* [sample] of products: forward into a cell, backward into dS */
	struct neap__view *views; /* [layers][sample] */
	struct neap__at *at;	  /* [sample] those that have not ended */
	void *sample_rows;	  /* [sample] struct neap__sample_rows */
	struct neap__deferred *deferred; /* of the thread that works on it, or of its grads */
	int step;			 /* rows in use there */
	double *z, *dz;			 /* [classes] */
	/* Of nets that drop: which units are kept, and scratch for what of their outputs goes up.
	 */
	struct {
		uint8_t *passes; /* [sample][hidden units] */
		uint16_t *ids;	 /* [sample][widest] */
		void *values;	 /* [sample] scratch rows */
	} mask;
};

/* What a tape says about one layer, sample and step. */
struct neap__view {
	struct neap__list spikes, prev; /* prev: of the step before, reset to zero only */
	int active;			/* units inside the support */
	const uint16_t *active_id;
	const void *u; /* their membranes */
	int npre;
	const uint16_t *pre_id;
	const void *pre; /* membranes before a reset to zero */
	const void *outputs;
	const void *trace[NEAP__LEAKS_MOST]; /* of leaks that are learned, at the active units */
	int whole_trace;		     /* or of all units */
	struct neap__list gated; /* what entered the second product; its ids to be asked for dS */
	uint16_t *ids[3];	 /* scratch [n] each */
	void *numbers[3];	 /* scratch [n] each */
};

/* Where a cell works: one sample, layer and step. */
struct neap__at {
	struct neap_net *net;
	struct neap__group *group;
	const struct neap__layer *layer;
	const struct neap_sequence *sequence;
	int sample, slot; /* in the batch, in the group */
	int64_t t;
	int first;
	unsigned char *state;		    /* of the sample, forward */
	unsigned char *adjoint;		    /* of the sample, backward */
	void *sums;			    /* forward: of the layer's products */
	const struct neap__list *below;	    /* spikes that enter */
	const struct neap__list *prev;	    /* own spikes of the step before */
	struct neap__list *now;		    /* own spikes: filled in */
	const struct neap__list *near_prev; /* units inside the support, likewise */
	struct neap__list *near_now;
};

/* Where the parts of a tape go that lists units (struct neap__cell_code). */
struct neap__listing {
	void *membranes;
	uint16_t *spikes, *near;
};

/*
 * A cell in one precision. Sizes are in bytes. A step goes layer by layer over the
 * samples of a group, and so that a weight row serves all of them the products with
 * weights are made outside the cell, for all samples at once:
 *
 * forward: `start` for each sample gives the row that the products are added to, W x
 * first, then V S_{-1}: begun with what comes before them (the bias, a decayed state).
 * It lies in the state, or is `row`, scratch as wide as the layer. `finish` for each
 * sample does the rest from there: fills in at->now and, when tape is not NULL, writes
 * the step's tape there (aligned to a number) and returns its size, a multiple of a
 * number.
 *
 * backward: `view` reads that tape back. Then dS of the active units is summed up from
 * the layer above, recurrent weights, penalty and the extra row. `backward` turns d(in)
 * and what else the adjoint holds from step t+1 to t; ds[k] is the gradient that
 * reaches the spikes of the k-th active unit, the reset's part excluded. Gradients of
 * weights are made outside from d(in) and the lists.
 *
 * What a sample gets must not depend on the others, nor on the order they come in.
 */
struct neap__cell_code {
	struct neap__widths widths;
	enum neap__outputs outputs;
	int has_candidate; /* a second product, with gated outputs of the step before */
	int is_dense;	   /* every tape takes tape_max */
	/* Rows of n numbers that a state, an adjoint, the largest tape takes; or a function says.
	 */
	struct {
		int state, adjoint, tape;
	} rows;
	int traces; /* rows of a state where the leaks are learned */
	size_t (*state_bytes)(const struct neap_net *net, const struct neap__layer *layer);
	size_t (*adjoint_bytes)(const struct neap_net *net, const struct neap__layer *layer);
	size_t (*tape_max)(const struct neap_net *net, const struct neap__layer *layer);
	/* Optional [0]: where in a sample's adjoint numbers stand that feed dS beside the rows. */
	size_t (*extra_at)(const struct neap__layer *layer);
	void *(*start)(struct neap__at *at, void *row);
	size_t (*finish)(struct neap__at *at, void *sums, unsigned char *tape);
	/*
	 * Optional, for layers whose spikes were logged [none: such a net has no log]:
	 * fills in the constants of a struct neap__membrane_walk, which makes the membranes of many
	 * steps; and what finish does from there, which may change them.
	 */
	void (*walk)(const struct neap__layer *layer, void *walk);
	size_t (*walked)(struct neap__at *at, void *membranes, unsigned char *tape);
	/*
	 * With it: whether a tape of so many spikes and units inside the support has these units
	 * alone, and no membranes of others; and that tape but for these three, which go where
	 * `to` then says: membranes first, then spikes, then units. Returns its bytes.
	 */
	int (*lists)(
		const struct neap_net *net, const struct neap__layer *layer, int spikes, int near);
	size_t (*listed)(const struct neap__layer *layer, int spikes, int near, unsigned char *tape,
		struct neap__listing *to);
	/* NEAP__OUTPUT_VALUES only: fills in the numbers of the units listed, from the state. */
	void (*recall)(const struct neap__layer *layer, const unsigned char *state,
		struct neap__list *list);
	/*
	 * has_candidate only. Forward, between the products: the list that enters the second
	 * one; `room` is scratch [n]. Backward, after `backward`: q are the products of the
	 * candidate's d(in) with the rows of view->gated; fills in what follows from them, and
	 * the list again, for the gradient of weights.
	 */
	struct neap__list (*gate)(struct neap__at *at, void *sums, void *room);
	void (*ungate)(struct neap__at *at, struct neap__view *view, const void *q);
	size_t (*view)(struct neap__at *at, const unsigned char *tape, struct neap__view *view);
	void (*backward)(struct neap__at *at, const struct neap__view *view, void *ds);
};

/* What a cell is, and which keys of the specification string it has. */
enum neap__trait {
	NEAP__READOUT = 1,
	NEAP__HIDDEN = 1 << 1,
	NEAP__HAS_LEAK = 1 << 2,      /* tau */
	NEAP__HAS_THRESHOLD = 1 << 3, /* threshold and surrogate */
	NEAP__HAS_RESETS = 1 << 4,    /* ways to reset */
	NEAP__HAS_DETACH = 1 << 5,
	NEAP__HAS_SYNAPSE = 1 << 6,	     /* tau_syn */
	NEAP__HAS_ADAPTATION = 1 << 7,	     /* tau_adapt */
	NEAP__HAS_RAISED_THRESHOLD = 1 << 8, /* a threshold that spikes raise: adapt */
	NEAP__HAS_COUPLING = 1 << 9,	     /* adaptation by membrane and spikes: a, b */
	NEAP__HAS_ACTIVATION = 1 << 10,	     /* activation */
	NEAP__IS_RECURRENT = 1 << 11,	     /* is recurrent, r or not */
};

/* A row of the table in cells.c. */
struct neap__cell {
	const char *name;
	int traits; /* of enum neap__trait */
	int readout;
	const struct neap__cell_code *code[2]; /* by enum neap_precision */
};

const struct neap__cell *neap__cell_find(const char *name, size_t length);
/* NULL beyond the end. */
const struct neap__cell *neap__cell_at(int index);

/* What runs a group over a range; one for each precision. */
struct neap__precision_ops {
	size_t real;
	void (*advance)(struct neap_net *net, struct neap__group *group, unsigned char *state,
		int64_t t0, int64_t t1, int first);
	/* Writes a table of offsets [t1 - t0] and the tapes; returns the bytes, a multiple of 8. */
	size_t (*record)(struct neap_net *net, struct neap__group *group, unsigned char *state,
		int64_t t0, int64_t t1, int first, unsigned char *tape);
	/* The same of a log, and no tape. */
	size_t (*log)(struct neap_net *net, struct neap__group *group, unsigned char *state,
		int64_t t0, int64_t t1, int first, unsigned char *log);
	/* As record, from logs[t1 - t0], a step's each. */
	size_t (*replay)(struct neap_net *net, struct neap__group *group, unsigned char *state,
		int64_t t0, int64_t t1, const unsigned char *const *logs, unsigned char *tape);
	/* The kernels of an instruction set. */
	const struct neap__kernels *(*kernels)(enum neap__isa isa);
	int (*strip)(const struct neap_net *net); /* units that replay goes through together */
	/* The decays of a layer in the batch begun. */
	void (*leak)(struct neap_net *net, const struct neap__layer *layer);
	/* Which units dropout keeps in it. */
	void (*draw)(struct neap_net *net, struct neap__group *group);
	/* Brings the weights into the order that replay, and dense products, read them in. */
	void (*pack)(struct neap_net *net);
	void (*fill_strips)(struct neap_net *net);
	int (*strip_columns)(const struct neap_net *net); /* of dense products */
	void (*backward)(struct neap_net *net, struct neap__group *group, unsigned char *adjoint,
		int64_t t1, int64_t t0, const unsigned char *tape, int64_t tape_t0);
	/* Of a dense net, after backward of all groups: gradients of its steps [t0, t1). */
	void (*add_tile)(struct neap_net *net, struct neap__grads *grads,
		const struct neap__outer_tile *tile, struct neap__outer_team *team, int64_t t1,
		int64_t t0);
	/* Answer and loss of one sample; fills in its adjoint, when there is one. */
	double (*turn)(struct neap_net *net, struct neap__group *group, int sample,
		const unsigned char *state, unsigned char *adjoint, double *answer);
	/* The penalty's gradient a spike: net->penalty. */
	void (*penalty)(struct neap_net *net, int layer, int unit, double value);
};
extern const struct neap__precision_ops neap__precision_ops_float, neap__precision_ops_double;

/* How a gradient check treats the spikes that a detached reset sees. */
enum neap__frozen { NEAP__LIVE, NEAP__FREEZE, NEAP__FROZEN };

struct neap_net {
	struct neap_net_options options;
	char *spec;
	int nlayers; /* readout included; hidden layers are nlayers - 1 */
	struct neap__layer *layers;
	int ntensors;
	struct neap__param *tensors;
	size_t elements, rows; /* of all tensors */
	const struct neap__precision_ops *ops;
	const struct neap__kernels *kernels;
	struct neap__thread_pool *pool;
	uint16_t *identity; /* 0, 1, 2, ... up to the widest layer */
	int widest, hidden; /* units of the widest layer; hidden units in all */
	size_t row_bytes;   /* of a scratch row, as wide as the widest row of sums */

	const struct neap_batch *batch;
	/* Where the events of steps [events_from, events_to) are: a window, or the batch. */
	const struct neap_sequence *events;
	int64_t events_from, events_to;
	struct neap_objective objective; /* loss NULL: forward only */
	struct neap__group *groups;
	int ngroups, group_room, group_size;
	struct neap__grads *grads;
	int ngrads, grads_room, grads_size;
	struct neap__deferred *deferred; /* [threads], or [grads_room], for grads_size samples */
	int ndeferred;
	int dense; /* outputs of hidden layers are numbers of all units, weights dense rows */
	struct neap__outer_team *team;	/* [threads] where dense */
	struct neap__outer_tile *tiles; /* the work on a struct neap__grads, cut in pieces */
	int ntiles;
	int sample_room;
	size_t sample_state, sample_adjoint, sample_tape;
	size_t state_bytes, adjoint_bytes, tape_max, group_memory;
	double sample_steps; /* sum of lengths */
	double tape_rate;    /* bytes a sample and step, measured; 0: not yet */
	double log_rate;     /* the same of logs */
	int can_drop;	     /* a layer has dropout */
	int drops;	     /* and it is on in the batch begun */
	int has_log;	     /* its spikes can be logged, and tapes replayed from them */
	size_t sample_log, log_max, strip;
	void **packed; /* [layers] weights as replay reads them, where has_log */
	size_t packed_bytes;
	int is_packed; /* they are those of the batch begun */
	/* [tensors] weights, and weights turned, as dense products read them; NULL: none do. */
	void **strips, **turned;
	int has_strips; /* they are those of the batch begun */
	int fixed_tape; /* every step's tape takes tape_max: dense, and no sample ends early */

	void **penalty; /* [layers]: gradient a spike, when there is a penalty */
	int has_penalty;
	double *step_loss; /* [sample]: sum of losses over steps (step readout) */
	int *prediction;
	double *answer, *rate;
	struct neap_net_result result;

	enum neap__frozen frozen;
	double **frozen_spikes; /* [hidden layers][(sample * steps + t) * n + unit] */
};

/* Decays of a layer that are learned. */
static inline int neap__learned(const struct neap__layer *layer)
{
	return layer->learn == NEAP_LEARN_TAU ? layer->nleaks : 0;
}

/* By what dropout raises the outputs that it lets through. */
static inline double neap__dropout_scale(const struct neap__layer *layer)
{
	return 1 / (1 - layer->dropout);
}

/* Makes sure that the events of step t are there: of a long batch, takes its window. */
int neap__net_window(struct neap_net *net, int64_t t);
/* Fills in options and layers from the specification string. */
int neap__net_parse(struct neap_net *net);
/* Makes, fills in and names the tensors. */
int neap__net_tensors(struct neap_net *net);
/* Room for the weights in the order of a replay, and in strips. */
int neap__net_packed(struct neap_net *net);
void neap__packed_free(struct neap_net *net);
/* Offsets and sizes of a sample's state, adjoint and tape. */
int neap__net_layout(struct neap_net *net);
/* The most bytes of tape that a sample's step takes in a layer. */
size_t neap__layer_tape(const struct neap_net *net, const struct neap__layer *layer);
/* The memory of gradients, and of a group of at most `samples` samples. */
int neap__grads_make(struct neap_net *net, struct neap__grads *grads);
void neap__grads_free(struct neap__grads *grads);

int neap__group_make(struct neap_net *net, struct neap__group *group, int samples);
void neap__group_free(struct neap__group *group);
/* All of them. */
void neap__groups_free(struct neap_net *net);

#endif
