/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_state.h: the structs of a net in either precision; numbers of the net's precision stand
 * behind `void *`. Samples form groups, and one thread carries a group through a range of steps. A
 * state or an adjoint of a batch is an array of groups; a group is an array of samples, each a
 * multiple of 64 bytes; a sample is an array of layers from the input up. Offsets in struct
 * neap__layer count from the start of a sample. A state of all zero bytes is the state at step 0.
 */
#ifndef NEAP_NN_CORE_NET_STATE_H
#define NEAP_NN_CORE_NET_STATE_H

#include <stddef.h>
#include <stdint.h>
#include <neap/net.h>
#include <neap/ports.h>
#include "nn/core/net_memory.h"
#include "sys/isa.h"

struct neap__thread_pool;
struct neap__kernels;
struct neap__tile_ops;
struct neap__cell;
struct neap__cell_program;
struct neap__at;
struct neap__view;
struct neap__deferred;
struct neap__outer_team;
struct neap__outer_tile;
struct neap__replay;
struct neap__peer_room;
struct neap__filter;

enum {
	/*
	 * Steps of a gradient block: sums within a block are made in the net's precision, sums of
	 * blocks in double, so that rounding does not grow with the length of the chain.
	 */
	NEAP__GRADIENT_BLOCK = 64,
	NEAP__TAPE_HEAD = 40,  /* bytes of the headers of a tape of one round (step_functions.c) */
	NEAP__TAPE_GROUP = 16, /* bytes a group adds to a round of one step: two offsets, rounded */
	NEAP__LAYERS_MOST = 64, /* layers of a net that has a log */
	/*
	 * Units of a layer: their numbers, and counts of them, have 16 bits, and a count of
	 * 0xFFFF marks a dense tape.
	 */
	NEAP__UNITS_MOST = 65535,
	/* Alignment of a layer in a state or adjoint, and of a sample, which is a cache line. */
	NEAP__LAYER_ALIGN = 16,
	NEAP__SAMPLE_ALIGN = 64,
	NEAP__LEAKS_MOST = 4,	 /* parameters that a cell has for each unit (struct neap__leak) */
	NEAP__SOURCES_MOST = 16, /* layers that a layer receives (chosen) */
	NEAP__DELAY_MOST = 127	 /* steps; a state has a bitmap a step */
};

/* A parameter tensor; struct neap_param shows it to the world. */
struct neap__param {
	char name[40];
	int64_t rows, columns, count; /* count: numbers stored, rows * columns where dense */
	size_t offset, row_offset;    /* first number and row, counted over all tensors */
	void *data;		      /* [count] */
	const void *in_use;  /* [count] what products use: data, or what a norm makes of it */
	double *grad;	     /* [count] complete after neap_net_end */
	uint32_t *row_start; /* [rows + 1] compressed rows; NULL when dense */
	uint16_t *column;    /* [count]; NULL when dense */
	const struct neap__filter *filter; /* its rows are shared by units; NULL: one a unit */
	const struct neap__layer
		*sources; /* a layer whose sources have rows each; NULL: one has all */
	int takes_spikes; /* all its inputs are spikes of the step or the one before: no factors */
	int is_leak;	  /* parameters of units (struct neap__leak) */
	int is_delay;	  /* steps */
	int is_frozen;	  /* it does not learn: its gradient is 0 */
	int is_rounded;	  /* its dense products round factors to bfloat16 (bf16_net.h) */
	int planes;    /* of its products in tiles (bf16_net.h): 1 in bf16, 3 in float; 0: none */
	double factor; /* multiplies its gradient, in the batch begun */
	double unit;   /* the number that stands for 1 (time_unit.h) */
};

/* The activations of an rnn, as the tables of net.h. */
/* clang-format off */
#define NEAP__ACTIVATION_TABLE(X) \
	X(NEAP__TANH, tanh, "tanh x") \
	X(NEAP__RELU, relu, "max(0, x)")
/* clang-format on */
#define NEAP_X(choice, name, meaning) choice,
enum neap__activation { NEAP__ACTIVATION_TABLE(NEAP_X) };
#undef NEAP_X

/* Pooling of what a layer receives, as the tables of net.h. Max: of equals the first, row by row.
 */
/* clang-format off */
#define NEAP__POOLING_TABLE(X) \
	X(NEAP__POOL_SUM, sum, "sum of the outputs") \
	X(NEAP__POOL_MAX, max, "largest output") \
	X(NEAP__POOL_AVERAGE, avg, "their mean")
/* clang-format on */
#define NEAP_X(choice, name, meaning) choice,
enum neap__pooling { NEAP__POOLING_TABLE(NEAP_X) };
#undef NEAP_X

/* Normalisation of the products of a layer, as the tables of net.h. */
/* clang-format off */
#define NEAP__NORM_TABLE(X) \
	X(NEAP__NORM_NONE, none, "none") \
	X(NEAP__NORM_BATCH, batch, "by the running statistics of the batches before")
/* clang-format on */
#define NEAP_X(choice, name, meaning) choice,
enum neap__norm_kind { NEAP__NORM_TABLE(NEAP_X) };
#undef NEAP_X

/* Batch normalisation (core/norm.h). */
struct neap__norm {
	enum neap__norm_kind kind;
	int scale, mean, variance; /* its tensors */
	int channels;		   /* of the convolution; of dense weights: units */
	double *factor;		   /* [channels] k, in the batch begun */
	double *found[2];	   /* [channels] mean and variance in the batch that ended */
	int has_found;
};

/* Windows of an image, along height and width; size 0: there are none. */
struct neap__windows {
	int size[2], stride[2], pad[2];
	enum neap__pooling by;
};

/* Units as an image. Those of a convolution are numbered (y, x, channel), inputs (channel, y, x).
 */
struct neap__plane {
	int channels, height, width; /* channels 0: there is none */
};

/* What a list of a layer's outputs holds. */
enum neap__outputs {
	NEAP__OUTPUT_SPIKES, /* the units that spiked; no numbers */
	NEAP__OUTPUT_VALUES, /* the units whose output is not 0, and their numbers */
	NEAP__OUTPUT_ALL     /* all units, and their numbers */
};

/*
 * Columns of a layer's products. In a cell's code they count in units of the layer's size n, in a
 * layer they are multiplied by n. All zero in a cell's code means 1, 1, 1, 0, 0.
 */
struct neap__widths {
	int in;		  /* columns of W */
	int own;	  /* columns of V */
	int sums;	  /* numbers of the row that all products are added to, and of d(in) */
	int own_at;	  /* first number of that row that V is added to */
	int candidate_at; /* the same of the second product (struct neap__cell_code) */
};

/* The leaks of a cell: that of the membrane (tau), then tau_syn or tau_adapt where it has one. */
enum { NEAP__MEMBRANE_LEAK, NEAP__SECOND_LEAK };

/* What a parameter p of a unit stands for, and what its rows of struct neap__leak hold. */
enum neap__leak_kind {
	NEAP__LEAK_DECAY,   /* sigmoid(p), what a step leaves: it, 1 - it, its derivative */
	NEAP__LEAK_TURN,    /* x = dt exp(p), the angle of a step: x, sqrt(1 - x^2), dx/dp */
	NEAP__LEAK_DAMPING, /* x = dt exp(p): x, 0, dx/dp */
	NEAP__LEAK_PLAIN    /* p: p, 0, 1 */
};

/* A parameter of each unit of a layer, most often a decay a step (leak.h). */
struct neap__leak {
	enum neap__leak_kind kind;
	const char *name; /* of its tensor */
	double start;	  /* the decay or value that the options say */
	int has_range;	  /* the units differ: low to high, values of the key */
	double low, high;
	int tensor;		    /* where it is learned, or has a range; -1: `start` */
	void *decay, *rest, *slope; /* [n] each, as its kind says; slope is 0 where it is fixed */
};

/* What a layer receives (nn/sources.h). */
struct neap__layer_source {
	int layer;   /* -1: the inputs */
	int row;     /* the first row of W of its units */
	int late;    /* 1: its outputs of the step before arrive */
	int is_back; /* 1: it is a layer above */
	/* Of layers with delays (delays.h), which delay their sources among the layers below: */
	int is_delayed;
	int delay_at;	/* the first of its units in struct neap__delays */
	size_t ring_at; /* the ring of its outputs in a sample's state */
};

/* Delays of the outputs that a layer receives from layers below, unit by unit (delays.h). */
struct neap__delays {
	int least, most; /* steps; most 0: there are none, but for the key `delay` of one step */
	int learns;
	int units;	   /* of all sources that are delayed */
	int tensor;	   /* of the delays [units]; -1: all are `most` */
	size_t adjoint_at; /* the ring of d(in) in a sample's adjoint */
	uint8_t *whole;	   /* [units] whole steps, in the batch begun */
	void *part;	   /* [units] the part of a step beyond these */
};

/* A layer; the last layer of a net is the readout. */
struct neap__layer {
	const struct neap__cell *cell;
	struct neap__cell_program *program; /* of a cell file; NULL: none */
	int index, n, below;		    /* n: units; below: units of all its sources */
	int nsources;
	struct neap__layer_source source[NEAP__SOURCES_MOST]; /* [nsources], ascending */
	int first_reader, last_reader; /* the layers that receive it are among these */
	int hidden_at;		       /* hidden units below it, in all */
	int is_recurrent, delay;
	struct neap__delays delays;
	enum neap_reset reset;
	int detach;
	enum neap_surrogate surrogate;
	double width, height, support, threshold, reset_value;
	double tau, scale, recurrent_scale, density, dropout;
	int said_scale, said_recurrent_scale;	/* the specification has these keys */
	enum neap_init init;			/* not NEAP_INIT_AUTO once the net is parsed */
	double tau_syn, tau_adapt, adapt, a, b; /* of cells that have them (spec.c) */
	enum neap__activation activation;

	/* Shared weights (nn/filter.h); sizes are height, width, and 0 where there is none. */
	int conv[2], stride[2], pad[2], dilation[2];
	int channels, groups;
	struct neap__windows pool, conv_pool; /* of what arrives; of the sums of a convolution */
	/* Of conv_pooling=max (core/sum_pool.h): the sums that are pooled, 0 where none are; their
	 * height and width; the number of the layer among those that pool sums. */
	int wide, sums[2], wide_index;
	struct neap__norm norm;
	struct neap__plane from, plane; /* what arrives, before pooling; its own units */
	struct neap__filter *filter;	/* NULL: no weights are shared */
	/* [widths.sums] its bias, repeated or with a norm, in the batch begun; NULL: its tensor is
	 */
	void *biases;
	/* Of max pooling (core/pooling.h): the pool of each unit [below], or where windows overlap
	 * the pools [pool_start[unit], pool_start[unit + 1]); the first unit of each pool. */
	const uint16_t *pooled, *pool_first;
	const uint32_t *pool_start; /* [below + 1]; NULL: a unit has one pool at most */
	int pools;

	enum neap_learn learn;
	double omega, gamma; /* of brf: the frequency; what a step leaves of q */
	int nleaks;	     /* parameters that each unit has */
	int ntaus;	     /* of these, learned where time constants are; others: by learn=all */
	struct neap__leak leaks[NEAP__LEAKS_MOST];
	double cut;   /* the surrogate is 0 beyond |u - threshold| > cut; may be infinite */
	double slope; /* multiplies its derivative (time_unit.h) */
	int smooth;   /* a spike is a number (struct neap_net_options) */
	int dense;    /* its tapes are dense: every unit counts as inside the support */
	enum neap__outputs outputs;
	int keeps_spikes;  /* outputs of the last step are part of the state */
	int keeps_support; /* so are the units that were inside the support */
	int logged;	   /* its spikes go into the log: not the readout alone sees them */
	int weight, recurrent, bias; /* indices of its tensors; recurrent may be -1 */
	int candidate;		     /* tensor of the second product; -1: none */
	struct neap__widths widths;
	int din_mask; /* of a step: where its d(in) is stored (deferred_sums.h); 0: it is not */

	/* Offsets in bytes. In a sample's state: */
	size_t state_at;   /* the cell's own numbers */
	size_t spikes_at;  /* bitmap of the last spikes, or the last outputs [n] where all are kept
			    */
	size_t support_at; /* bitmap of the units inside the support */
	size_t traces_at;  /* rows of n numbers, of leaks that are learned */
	/* In a sample's adjoint: d(in), widths.sums numbers, then what else the cell carries. */
	size_t adjoint_at;
};

/* Outputs of one layer, sample and step. */
struct neap__list {
	int count;
	const uint16_t *id; /* [count] units, ascending */
	const void *value;  /* [count] their numbers; NULL: ones */
	uint16_t *room;	    /* [n + NEAP__SPARE] ids that this list may fill in; NULL: borrowed */
	void *value_room;   /* [n] numbers, of layers whose outputs have some */
};

/*
 * Gradient sums of the samples that are summed together. Where the input weights are deferred
 * (deferred_sums.h) their sums have rows for those inputs alone that spike in these samples.
 */
struct neap__grads {
	int first, size; /* samples of the batch */
	void **part;	 /* [tensors] -> [count] sums of the gradient block in progress */
	double **total;	 /* the same shape: sums of the blocks before */
	uint8_t *dirty;	 /* [net->rows] a row of part is not zero; input weights: [input_rows] */
	int input_rows;	 /* of the sums of the input weights */
	uint16_t *input; /* [input_rows] the inputs that they belong to, ascending; or NULL */
	uint16_t *slot;	 /* [inputs] rows of the inputs that have one; NULL: every input has */
	int input_room;	 /* rows that `input_memory` holds */
	void *input_memory;
	void *memory;
};

/* Parts of samples in a group of a dense net at most (batch_groups.c); others have one. */
enum { NEAP__GROUP_PARTS = 2 };

/*
 * What one thread carries through a range: the samples of one struct neap__grads, or some of them
 * where the net is dense (outer_products.h). All its memory is made by neap_net_begin.
 */
struct neap__group {
	int first, size;	     /* samples of the batch */
	int64_t steps;		     /* of its longest sample */
	size_t state_at, adjoint_at; /* bytes before it in the batch's state and adjoint */
	struct neap__grads *grads;
	/* [part][net->hidden] sum of outputs of every unit, a part of the samples at a time, so
	 * that the sums do not depend on the size of a group; first passes only. */
	double *spikes;
	int per_part;	    /* samples */
	double support;	    /* units inside the support, over all steps recorded */
	double recorded;    /* units there were in these */
	double tape_bytes;  /* bytes of tape written */
	double tape_steps;  /* samples times steps that these are of */
	size_t step_tape;   /* bytes of the largest tape of a step, a multiple of 8 */
	size_t step_log;    /* the same of a log */
	int room;	    /* samples that there is memory for */
	size_t round_bytes; /* bytes written in the round in progress (step_functions.c) */
	double log_bytes;   /* as tape_bytes and tape_steps, of logs */
	double log_steps;
	struct neap__replay *replay; /* NULL: the net has no log */
	void *memory;		     /* of all arrays of the group */

	/* [parity of the step][sample * layers + layer]: outputs, and units inside the support. */
	struct neap__list *spike_lists[2], *support_lists[2];
	void *scratch[2]; /* rows as wide as the widest layer (net->row_bytes) */
	void *sums;	  /* [sample] such rows: forward the sums of a cell, backward dS */
	/* Of nets with a norm or with maxima of sums: rows of net->wide_bytes. [sample] W x alone;
	 * [layers with maxima][sample] gradients of the sums that are pooled. */
	void *products, *spread;
	struct neap__view *views; /* [layers][sample] */
	struct neap__at *at;	  /* [sample] those that have not ended, in order */
	void *sample_rows;	  /* [sample] struct neap__sample_rows of a product */
	void *inputs;		  /* [sample][inputs] a step's values, where a number is no float */
	struct neap__deferred *deferred; /* of the thread that works on it; dense nets: of grads */
	int step;			 /* row of steps in use in `deferred` */
	double *z, *dz;			 /* [classes] an answer and its gradient */
	/* Of nets with dropout. */
	struct {
		uint8_t *passes; /* [sample][hidden units] dropout lets the unit's outputs pass */
		uint16_t *ids;	 /* [sample][widest] scratch for the outputs that pass */
		void *values;	 /* [sample] rows of scratch for their numbers */
	} mask;
	/* Of nets with delays (core/delays.h). */
	struct {
		uint16_t *ids; /* [sample][widest] scratch for the outputs that arrive */
		void *values;  /* [sample] rows of scratch for their numbers */
	} late;
	/* Of nets with max pooling (core/pooling.h). */
	struct {
		int most;      /* the most units, inputs or pools of a layer */
		uint16_t *ids; /* [sample][most] scratch for the outputs that pass */
		void *values;  /* [sample][most] their numbers */
		int32_t *best; /* [pools of the layer that has most] zeros between calls */
		/* Of windows that overlap: [the most pools of a unit] */
		uint16_t *into;
		void *products;
	} pool;
};

/* What runs a group over a range; one table for each precision (precision_ops.h). */
struct neap__precision_ops {
	size_t real; /* bytes of a number */
	void (*advance)(struct neap_net *net, struct neap__group *group, unsigned char *state,
		int64_t t0, int64_t t1, int first);
	/* Writes a table of offsets [t1 - t0] and the tapes; returns the bytes, a multiple of 8. */
	size_t (*record)(struct neap_net *net, struct neap__group *group, unsigned char *state,
		int64_t t0, int64_t t1, int first, unsigned char *tape);
	/* The same of a log, and no tape. */
	size_t (*log)(struct neap_net *net, struct neap__group *group, unsigned char *state,
		int64_t t0, int64_t t1, int first, unsigned char *log);
	/* As record, from logs[t1 - t0], the log of a step each. */
	size_t (*replay)(struct neap_net *net, struct neap__group *group, unsigned char *state,
		int64_t t0, int64_t t1, const unsigned char *const *logs, unsigned char *tape);
	/* The kernels of an instruction set. */
	const struct neap__kernels *(*kernels)(enum neap__isa isa);
	/* Units that a replay goes through together; columns of a strip of a dense product. */
	int (*strip_units)(const struct neap_net *net);
	int (*strip_columns)(const struct neap_net *net);
	/* Sets the decays of a layer for the batch begun. */
	void (*leak)(struct neap_net *net, const struct neap__layer *layer);
	/* Repeats the bias of a layer whose units share it, for the batch begun. */
	void (*bias)(struct neap_net *net, const struct neap__layer *layer);
	/* Sets the delays of a layer for the batch begun. */
	void (*delays)(struct neap_net *net, const struct neap__layer *layer);
	/* Draws which units dropout lets pass in the batch begun. */
	void (*draw)(struct neap_net *net, struct neap__group *group);
	/* Brings the weights into the order that replay reads them in. */
	void (*pack)(struct neap_net *net);
	/* Brings the weights into the strips that dense products read. */
	void (*fill_strips)(struct neap_net *net);
	void (*backward)(struct neap_net *net, struct neap__group *group, unsigned char *adjoint,
		int64_t t1, int64_t t0, const unsigned char *tape, int64_t tape_t0);
	/* Of a dense net, after `backward` of all groups: gradients of its steps [t0, t1). */
	void (*add_tile)(struct neap_net *net, struct neap__grads *grads,
		const struct neap__outer_tile *tile, struct neap__outer_team *team, int64_t t1,
		int64_t t0);
	/* After `backward` of the first step: gradients of the outputs before it that were given.
	 */
	void (*add_first_outputs)(
		struct neap_net *net, struct neap__group *group, const unsigned char *adjoint);
	/* Writes the gradient of a group's state before the first step (core/port_rows.h). */
	void (*state_grads)(struct neap_net *net, struct neap__group *group,
		const unsigned char *adjoint, void *rows);
	/* Sets the gradient a spike of a unit gets from the penalty on rates. */
	void (*penalty)(struct neap_net *net, int layer, int unit, double value);
};

/* How a gradient check treats the spikes that a detached reset sees. */
enum neap__frozen {
	NEAP__LIVE,   /* no gradient check: resets see the spikes of the step */
	NEAP__FREEZE, /* the same, and the spikes are stored */
	NEAP__FROZEN  /* detached resets see the stored spikes */
};

struct neap__step_backend;

struct neap_net {
	struct neap_net_options options;
	struct neap__net_blocks blocks; /* all arrays that the pointers below refer to */
	char *spec;
	char *whole_spec; /* options.spec with the texts of its cell files; NULL: it names none */
	int nlayers;	  /* the readout included; hidden layers are nlayers - 1 */
	struct neap__layer *layers;
	int learns_from; /* the first layer that learns: nothing goes backward below */
	int taped_from;	 /* the first layer on tape: the one before, whose outputs are inputs */
	int ntensors;
	struct neap__param *tensors;
	size_t elements, rows; /* of all tensors; elements with padding between tensors */
	const struct neap__precision_ops *ops;
	const struct neap__kernels *kernels;
	const struct neap__tile_ops *tile_ops; /* options.products is NEAP_TILES; else NULL */
	struct neap__thread_pool *pool;
	uint16_t *identity; /* [widest, or inputs if values] 0, 1, 2, ... */
	int widest, hidden; /* units of the widest layer; hidden units in all */
	size_t row_bytes;   /* of a scratch row, as wide as the widest row of sums */

	const struct neap__step_backend *backend; /* what runs the steps; NULL: this processor */
	void *on_backend;			  /* first argument of its functions */
	void *device, *attached; /* of options.device (nn/core/on_device.h); NULL: none */
	/* The batch that follows, whose inputs a device copies ahead (neap__net_ahead). */
	struct {
		const struct neap_batch *(*ask)(void *user);
		void *user;
		const struct neap_batch *copied; /* NULL: none */
		int is_begun;			 /* neap_net_begin begins what was copied */
	} ahead;
	/* Parameters that stay on the device between batches (neap__on_device_keep). */
	struct {
		int kept;
		int is_here, is_there; /* the host's weights, or the device's, are the newest */
		double factor;	       /* the next update multiplies gradients by it: clipping */
	} parameters;
	void *turn_room; /* on a device: a copy of the state, then of the adjoint, for the turn */
	size_t turn_room_bytes;

	const struct neap_batch *batch;
	struct neap_ports ports; /* arrays of the caller; size 0: none */
	uint16_t *port_inputs;	 /* [inputs] 0, 1, 2, ..., once a gradient of inputs is wanted */
	/* Where the events of steps [events_from, events_to) are: a window, or the batch. */
	const struct neap_sequence *events;
	int64_t events_from, events_to;
	struct neap_objective objective; /* loss NULL: forward only */
	struct neap__group *groups;	 /* [group_room], each for group_size samples */
	int ngroups, group_room, group_size;
	struct neap__grads *grads; /* [grads_room], each for grads_size samples */
	int ngrads, grads_room, grads_size;
	struct neap__deferred *deferred; /* [threads]; dense nets: [grads_room] */
	int ndeferred;
	int dense; /* outputs of hidden layers are numbers of all units, weights dense rows */
	struct neap__outer_team *team;	/* [threads] of a dense net */
	struct neap__outer_tile *tiles; /* [ntiles] the tensors of a dense net, cut in tiles */
	int ntiles;
	int sample_room;
	size_t sample_state, sample_adjoint, sample_tape; /* bytes a sample */
	size_t state_bytes, adjoint_bytes, tape_max;	  /* bytes of the batch */
	double sample_steps;				  /* sum of lengths of the samples */
	int64_t whole_steps; /* the same of all ranks' samples; set by the turn */
	double tape_rate;    /* bytes a sample and step, measured; 0: not yet */
	double log_rate;     /* the same of logs */
	int can_drop;	     /* a layer has dropout */
	int has_delays;	     /* a layer has delays of its units */
	int has_norm;	     /* a layer has batch normalisation */
	int nwide;	     /* layers with maxima of the sums of a convolution */
	size_t wide_bytes;   /* of a row of products, where a layer makes them apart */
	int pools_most;	     /* pools of the layer with max pooling that has most; 0: none has */
	int pools_of_unit;   /* that a unit belongs to at most, where they overlap; 0: none do */
	int drops;	     /* dropout is on in the batch begun */
	int has_log;	     /* its spikes can be logged, and tapes replayed from them */
	size_t sample_log;   /* bytes a sample's log of a step takes at most */
	size_t log_max;
	size_t strip_units; /* units of a strip of `packed` */
	void **packed;	    /* [layers] weights as replay reads them, where has_log */
	int skips_readout;  /* objective.readout_once, and the turn was taken */
	int is_packed;	    /* `packed` holds the weights of the batch begun */
	/*
	 * [tensors] weights, and weights turned, as dense products read them: in strips, in pairs
	 * (is_rounded), or in planes (planes > 0); NULL: none do.
	 */
	void **strips, **turned;
	int has_strips; /* they hold the weights of the batch begun */
	int fixed_tape; /* every step's tape takes tape_max: dense, and no sample ends early */

	void **penalty; /* [layers] -> [n]: gradient a spike, when there is a penalty */
	int has_penalty;
	double *step_loss;   /* [sample] sum of losses over steps (readout `step`) */
	int64_t *step_right; /* [sample] steps whose label is the largest output */
	int *prediction;     /* [sample] */
	double *answer;	     /* [sample][classes] */
	double *rate;	     /* [layers] */
	struct neap_net_result result;
	struct neap__peer_room *peer_room; /* of batches that ranks share; NULL: none was */
	/*
	 * Numbers [slice_from, slice_to) of all tensors, whose gradients are complete after a
	 * batch that ranks share: all, or this rank's slice where keeps_slice is set.
	 */
	size_t slice_from, slice_to;
	int keeps_slice;

	enum neap__frozen frozen;
	double **frozen_spikes; /* [hidden layers][(sample * steps + t) * n + unit] */
};

/* The type of all numbers of the net; bf16 concerns the factors of some products only. */
static inline enum neap_precision neap__number_type(const struct neap_net *net)
{
	return net->options.precision == NEAP_DOUBLE ? NEAP_DOUBLE : NEAP_FLOAT;
}

/* Rows of the sums of a tensor's gradients. */
static inline int64_t neap__sum_rows(
	const struct neap_net *net, const struct neap__grads *grads, int tensor)
{
	return grads->slot && tensor == net->layers[0].weight ? grads->input_rows
							      : net->tensors[tensor].rows;
}

/* Numbers of such sums. */
static inline size_t neap__sum_count(
	const struct neap_net *net, const struct neap__grads *grads, int tensor)
{
	const struct neap__param *t = &net->tensors[tensor];
	return t->row_start ? (size_t)t->count
			    : (size_t)(neap__sum_rows(net, grads, tensor) * t->columns);
}

/* Numbers in group->spikes. */
static inline size_t neap__group_spikes(const struct neap_net *net)
{
	return (size_t)net->hidden * (net->dense ? NEAP__GROUP_PARTS : 1);
}

/* [net->hidden] sums of outputs of the part that sample `slot` of the group belongs to. */
static inline double *neap__unit_spikes(
	const struct neap_net *net, const struct neap__group *group, int slot)
{
	return group->spikes + (size_t)(slot / group->per_part) * (size_t)net->hidden;
}

/* Samples of the batch begun, those of other ranks included. */
static inline int neap__whole_batch(const struct neap_net *net)
{
	return net->batch->of > 0 ? net->batch->of : net->batch->size;
}

/* 1: a tensor with a row of its own for each unit below, of all columns. */
static inline int neap__has_plain_rows(const struct neap__param *tensor)
{
	return !tensor->row_start && !tensor->filter;
}

/* A source of the layer; NULL: the inputs. */
static inline const struct neap__layer *neap__source_of(const struct neap__layer *layer, int source)
{
	int l = layer->source[source].layer;
	return l < 0 ? NULL : layer + (l - layer->index);
}

/* 1: weights of the layer are shared, or what it receives is pooled. */
static inline int neap__has_filter(const struct neap__layer *layer)
{
	return layer->conv[0] > 0 || layer->pool.size[0] > 0;
}

/* Added to the variances of a norm, as in PyTorch. */
#define NEAP__NORM_EPSILON 1e-5

/* The channel of the first column of a row of weights that a norm scales. */
static inline int neap__norm_channel(const struct neap__layer *layer, int64_t row)
{
	int taps = layer->conv[0] * layer->conv[1];

	return taps ? (int)(row / taps) / (layer->from.channels / layer->groups) *
			       (layer->channels / layer->groups)
		    : 0;
}

/* 1: the products W x of a layer are made apart from its other sums. */
static inline int neap__is_apart(const struct neap__layer *layer)
{
	return layer->norm.kind != NEAP__NORM_NONE || layer->wide > 0;
}

/* Numbers of these products. */
static inline int neap__products_of(const struct neap__layer *layer)
{
	return layer->wide > 0 ? layer->wide : layer->n;
}

/* 1: inputs, outputs and gradients are arrays of the caller; the readout is not computed. */
static inline int neap__has_ports(const struct neap_net *net)
{
	return net->ports.size != 0;
}

/* Whether a batch has gradients: of a loss, or of a caller's outputs. */
static inline int neap__has_gradients(const struct neap_net *net)
{
	return net->objective.loss || neap__has_ports(net);
}

/*
 * The largest angle of a step of a unit that oscillates: at 1 its undamped oscillation ends, and
 * the derivative of sqrt(1 - x^2) is infinite (chosen).
 */
static inline double neap__most_turn(void)
{
	return 0.999;
}

/* 1: what the layer receives from layers below arrives after delays of their units. */
static inline int neap__has_delays(const struct neap__layer *layer)
{
	return layer->delays.most > 0;
}

/* How many parameters of units are learned: the first ones of `leaks`. */
static inline int neap__learned(const struct neap__layer *layer)
{
	return layer->learn == NEAP_LEARN_TAU	? layer->ntaus
	       : layer->learn == NEAP_LEARN_ALL ? layer->nleaks
						: 0;
}

/* 1: a parameter of the units is drawn from a range. */
static inline int neap__has_ranges(const struct neap__layer *layer)
{
	for (int l = 0; l < layer->nleaks; l++)
		if (layer->leaks[l].has_range)
			return 1;
	return 0;
}

/* The factor of outputs that dropout lets pass. */
static inline double neap__dropout_scale(const struct neap__layer *layer)
{
	return 1 / (1 - layer->dropout);
}

/* 1: the layer receives the layer below alone. */
static inline int neap__is_in_chain(const struct neap__layer *layer)
{
	return layer->nsources == 1 && layer->source[0].layer == layer->index - 1;
}

/* 1: all layers do. */
static inline int neap__is_chain(const struct neap_net *net)
{
	for (int l = 0; l < net->nlayers; l++)
		if (!neap__is_in_chain(&net->layers[l]))
			return 0;
	return 1;
}

#endif
