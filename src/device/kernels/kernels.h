/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.h: the kernels of a device, their arguments, and how they are launched. It is included by
 * the kernels and by the code that launches them; NEAP__DEVICE_KERNELS at the end lists all
 * kernels.
 *
 * A kernel has one argument, struct NAME_arguments, which is passed by value: the parameters of
 * cuLaunchKernel are void *args[] = {&arguments}. Pointers in it are addresses of device memory.
 *
 * The steps [t0, t1) of a net are one launch of lif_forward per hidden layer, from the input up, or
 * one of lif_backward per hidden layer, from the readout down. The readout is computed in the
 * launch of the last hidden layer. A block of threads computes one sample, and no block waits for
 * another. What layers hand to each other is in device memory, for at most as many steps as its
 * buffers hold:
 * - `spikes`, forward: a bitmap per step and sample, [t - t0 + 1][sample][words of the layer]. Row
 *   0 is that of t0 - 1, which layers above with a delay of one step receive at t0;
 * - `currents`, backward: d(in) of each step, [t1 - t][sample][units]. Row 0 is that of t1, since a
 *   spike at t1 - 1 meets the recurrent weights at t1.
 * Then gradient_rows adds the rows of the gradients, in an order that does not depend on threads.
 * Layers with delays have rings of what is on its way in states and adjoints; store_delays moves
 * d(in) there when nobody needs the rows of later steps any more.
 *
 * States and adjoints have the bytes of the CPU's net (nn/core/net_state.h). The tape of a step and
 * layer has the bytes of the CPU's (nn/cells/lif_tape.h); the tapes of a sample and layer follow
 * each other at tape + sample * share, and offset[sample * (most + 1) + t - t0] is where step t
 * begins.
 */
#ifndef NEAP_DEVICE_KERNELS_KERNELS_H
#define NEAP_DEVICE_KERNELS_KERNELS_H

#if defined(__OPENCL_VERSION__)
typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;
typedef long i64;
/* OpenCL allows no pointers in structures that are arguments; kernels cast the addresses. */
#define DEVICE_POINTER(type) ulong
#else
#include <stddef.h>
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef int64_t i64;
#if defined(__CUDACC__) || defined(__HIPCC__)
typedef unsigned long long u64;
#else
typedef uint64_t u64;
#endif
#define DEVICE_POINTER(type) type *
#endif

enum {
	DEVICE_READERS = 32,   /* threads of a block that compute the readout: a warp */
	DEVICE_DENSE = 0xffff, /* the count of units near the threshold that marks a dense tape */
	DEVICE_UNIT_THREADS = 992, /* the most threads that compute units: 1,024 less the readers */
	DEVICE_TWO_THREADS = 576,  /* of a block of which a multiprocessor runs two (dialect.h) */
	DEVICE_CLUSTER_THREADS = 576, /* of a block of a cluster, at most */
	DEVICE_CLUSTER_BLOCKS = 16,   /* of a cluster, at most: what H100 allows */
	DEVICE_CLUSTER_SLOTS = 16,    /* samples of a cluster, at most */
	DEVICE_PACK_PARTS = 4,	      /* blocks that move the tapes of a sample */
	DEVICE_TENSORS = 24,	      /* tensors of a launch of gradient_rows at most */
	DEVICE_LEAKS = 2,	      /* decays of a cell at most */
	DEVICE_BLOCK_STEPS =
		64, /* steps whose gradients are added in float (NEAP__GRADIENT_BLOCK) */
	DEVICE_SQUARES =
		512,	  /* gradients whose squares are added up in order (NEAP__SLICE_BLOCK) */
	DEVICE_TREE = 16, /* levels of a tree of sums: fewer than 2^16 groups */
	/*
	 * Blocks of kernels of dense products: a thread has one unit of one sample. The more alike
	 * both numbers are, the less a block reads; 8 units are a sector of 32 bytes of weights,
	 * and 512 units of 32 samples are 128 blocks, for 132 multiprocessors.
	 */
	DEVICE_TILE_THREADS = 128,
	DEVICE_TILE_UNITS = 8,
	DEVICE_TILE_SAMPLES = 16,
	DEVICE_TILE_TERMS = 64,	 /* that are in shared memory at a time, forward ... */
	DEVICE_BACK_TERMS = 128, /* ... and backward, where a thread has one sum */
	DEVICE_BIG_TILE = 64,	 /* rows and columns of products of many steps */
	DEVICE_BIG_TERMS = 16,
	/*
	 * The same for tensor cores, multiples of 64 of which 4 warps have chunks of 16, and 32 of
	 * big tiles; and numbers of a stage in shared memory, of which there are 3 with 38 to 56 KB
	 * in all: more would leave no room for two blocks of a multiprocessor.
	 */
	DEVICE_MATH_TERMS = 64,
	DEVICE_MATH_BACK_TERMS = 128,
	DEVICE_MATH_BIG_TERMS = 32,
	DEVICE_MATH_STAGES = 3,
	DEVICE_MATH_ROOM = DEVICE_TILE_SAMPLES * (DEVICE_MATH_TERMS + 4) +
			   (4 * DEVICE_TILE_UNITS + 8) * DEVICE_MATH_TERMS,
	DEVICE_MATH_BACK_ROOM =
		(DEVICE_TILE_SAMPLES + DEVICE_TILE_UNITS) * (DEVICE_MATH_BACK_TERMS + 4),
	DEVICE_MATH_BIG_ROOM = 2 * (DEVICE_BIG_TILE + 8) * DEVICE_MATH_BIG_TERMS,
	DEVICE_STRIP = 32,	 /* units of a block of replay_currents: a warp */
	DEVICE_STRIP_WARPS = 32, /* of such a block, at most */
	DEVICE_TURN_SIDE = 32,	 /* rows and columns of a block of turn_weights */
	DEVICE_DELAY_TERMS = 4	 /* terms that a block of delay_gradients computes at a time */
};

/* Bits of a weight without a connection, where there are places for all: those of no number. */
#define DEVICE_MISSING 0xffffffffu

/* How products of dS are added up (lif_backward.k). */
enum {
	DEVICE_BY_LANES, /* in 16 lanes of fused sums (kern/dots.c) */
	DEVICE_BY_CHAIN, /* in one chain of fused sums (kern/product.c) */
	DEVICE_BY_MASK	 /* one rounded product after the other, of the connections (masks.k) */
};

/* The choices of neap/net.h, in the order of its tables; device_net.c checks that. */
enum { DEVICE_SUBTRACT, DEVICE_ZERO, DEVICE_HARD, DEVICE_SOFT, DEVICE_RESETS };
enum { DEVICE_LIF, DEVICE_CUBALIF, DEVICE_ALIF, DEVICE_ADLIF };
enum {
	DEVICE_TRIANGLE,
	DEVICE_BOXCAR,
	DEVICE_SUPERSPIKE,
	DEVICE_SIGMOID,
	DEVICE_ATAN,
	DEVICE_GAUSSIAN,
	DEVICE_SLAYER,
	DEVICE_DOUBLE_GAUSSIAN,
	DEVICE_SURROGATES
};
enum {
	DEVICE_MEAN,
	DEVICE_SUM,
	DEVICE_LAST,
	DEVICE_MAX,
	DEVICE_STEP,
	DEVICE_SOFTMAX,
	DEVICE_READOUTS
};
enum { DEVICE_RNN, DEVICE_LSTM, DEVICE_GRU, DEVICE_EGRU };
/* How dense products are computed (enum neap_math). */
enum { DEVICE_EXACT, DEVICE_TF32X3, DEVICE_BF16 };
/* The optimizers (enum neap__update_rule). */
enum { DEVICE_ADAM, DEVICE_ADAMW, DEVICE_SGD };

/* The batch. */
struct neap__device_batch {
	int samples, group;		  /* group: samples whose gradients are added together */
	int sample_state, sample_adjoint; /* bytes */
	int inputs;
	int first_step; /* step whose events start[events_at[sample]] begins with */
	DEVICE_POINTER(const int) length;    /* [samples] steps */
	DEVICE_POINTER(const u32) events_at; /* [samples] where in `start` a sample begins */
	/*
	 * Events of step t of a sample: unit[start[k]] to unit[start[k + 1] - 1], where k is
	 * events_at[sample] + t - first_step.
	 */
	DEVICE_POINTER(const u32) start;
	DEVICE_POINTER(const u16) unit;
	/*
	 * [t - first_step][samples][inputs] numbers as inputs, 0 after the end of a sample; NULL:
	 * the inputs are events.
	 */
	DEVICE_POINTER(const float) values;
};

/*
 * Dropout (nn/core/dropout.h): outputs of units whose bit in passes[samples][words] is set go to
 * the layer above, multiplied by `scale`, for all steps. NULL: all go there as they are.
 */
struct neap__device_dropout {
	float scale;
	DEVICE_POINTER(const u32) passes;
};

/*
 * Delays of the outputs that a layer receives (nn/core/delays.h): output of unit i of step t
 * arrives in step t + whole[i] or, where delays are learned, the part 1 - part[i] of it arrives
 * then, and part[i] in the step after. most: the largest delay; 0: there are none, but for
 * `is_late`.
 */
struct neap__device_delays {
	int most, learns;
	int ring_at;	/* bytes in a sample's state: bitmaps of what is on its way */
	int adjoint_at; /* bytes in a sample's adjoint: d(in) of the next steps */
	DEVICE_POINTER(const u8) whole;	  /* [units below] steps */
	DEVICE_POINTER(const float) part; /* [units below]; not read if they do not learn */
};

/* A hidden layer; the symbols are those of nn/cells/ (lif.c, cubalif.c, alif.c, adlif.c). */
struct neap__device_lif {
	int cell;
	int units, below; /* below: units of the layer below, or inputs of the net */
	int is_first;	  /* its inputs are those of the net */
	int is_late;	  /* it receives what the layer below put out in the step before */
	int is_recurrent, is_dense, detach, keeps_spikes, keeps_support;
	int is_masked;	/* `weight` and `recurrent` have connections alone (masks.k) */
	int is_chained; /* the support has no end: DEVICE_BY_CHAIN, as in nn/core/products.c */
	int reset, surrogate;
	float beta, theta, to, cut, width, height;
	float rest;		 /* 1 - beta */
	float second;		 /* decay of the current (alpha) or of the adaptation (rho) */
	float adapt, a, b;	 /* kappa of alif; a and b of adlif */
	float slope;		 /* multiplies the surrogate's derivative */
	int state_at, spikes_at; /* bytes in a sample's state; at state_at: the rows of the cell */
	int support_at;
	int adjoint_at; /* bytes in a sample's adjoint: d(in), then the other rows */
	int learned;	/* decays that learn: both or none */
	int traces_at;	/* bytes in a sample's state: rows of traces (nn/cells/leak.h) */
	/* [3][units] of `beta` and of `second`, if they are those of each unit: decay, 1 - decay,
	 * derivative of the decay; NULL: all units have the same. */
	DEVICE_POINTER(const float) leak[DEVICE_LEAKS];
	DEVICE_POINTER(const float) weight;    /* [below][units] */
	DEVICE_POINTER(const float) recurrent; /* [units][units] */
	DEVICE_POINTER(const float) bias;      /* [units] */
	struct neap__device_delays delays;
	/* Of its own outputs and of those below: what dropout does with them on their way up. */
	struct neap__device_dropout drop, below_drop;
};

/*
 * A hidden layer of rnn, lstm, gru or egru; the symbols are those of nn/cells/. Columns are those
 * of struct neap__widths, counted in numbers.
 */
struct neap__device_dense {
	int cell;
	int units, below;
	int is_first, is_relu;
	int is_late;	   /* as of struct neap__device_lif */
	int in, own, sums; /* columns of W and of V, and of d(in) */
	int own_at, candidate_at;
	int tape;      /* numbers of a step's tape */
	int by_lanes;  /* dS adds up products in 16 lanes (kern/dots.c); 0: in one chain */
	int is_masked; /* weights have connections alone (masks.k); 0 where tensor cores multiply */
	int surrogate;
	float theta, cut, width, height;
	int state_at, outputs_at; /* bytes in a sample's state */
	int adjoint_at;		  /* bytes in a sample's adjoint: d(in), then other rows */
	DEVICE_POINTER(const float) weight;    /* [below][in] */
	DEVICE_POINTER(const float) recurrent; /* [units][own] */
	DEVICE_POINTER(const float) candidate; /* [units][units]; egru alone */
	DEVICE_POINTER(const float) bias;      /* [sums] */
	struct neap__device_dropout drop;      /* of its own outputs */
};

/* The readout, which is computed with the last hidden layer; of other layers `classes` is 0. */
struct neap__device_readout {
	int classes, kind;
	int is_late;		  /* as of a layer */
	int state_at, own_at;	  /* bytes in a sample's state: outputs, then what `kind` needs */
	int adjoint_at, steps_at; /* bytes in a sample's adjoint; steps_at: of DEVICE_MAX */
	int learned;		  /* 1: the decay learns */
	int is_masked;		  /* as of a layer */
	float decay, rest;
	DEVICE_POINTER(const float) leak; /* [3][classes], as of a layer; or NULL */
	struct neap__device_delays delays;
	DEVICE_POINTER(const float) weight; /* [units of the last hidden layer][classes] */
	DEVICE_POINTER(const float) bias;
};

/*
 * Steps [t0, t1) of a hidden layer forward, and of the readout above it. With a tape, a sample
 * stops before a step that may not fit in its share, and done[sample] is that step; the caller then
 * runs the range once more from the old state, up to the least of them.
 */
struct lif_forward_arguments {
	struct neap__device_batch batch;
	struct neap__device_lif layer;
	struct neap__device_readout readout;
	int t0, t1;
	int unit_threads; /* threads of a block that compute units: neap__device_unit_threads */
	DEVICE_POINTER(u8) state;
	DEVICE_POINTER(const u32) below_spikes; /* `spikes` of the layer below; not of the first */
	DEVICE_POINTER(const int) below_done;	/* `done` of the layer below; NULL: all steps */
	DEVICE_POINTER(u32) spikes;		/* written; NULL: nobody needs them */
	DEVICE_POINTER(float)
	outputs; /* [t - t0][sample][classes] of the readout; NULL: not needed */
	DEVICE_POINTER(float)
	factors; /* [t - t0][sample][classes]: dO times these is the gradient of a decay that
		    learns; NULL: there are no tapes, or it does not learn */
	DEVICE_POINTER(u8) tape;	/* NULL: no tapes are written */
	u32 share;			/* bytes of a sample's tapes, a multiple of 8 */
	int most;			/* steps that `offset` has room for */
	DEVICE_POINTER(u32) offset;	/* [samples][most + 1]; the last is the end */
	DEVICE_POINTER(int) done;	/* [samples] */
	DEVICE_POINTER(u32) bytes;	/* [samples] of all tapes */
	DEVICE_POINTER(u32) near_units; /* [samples] units inside the support, in all steps */
};

/*
 * Steps [t0, t1) of a hidden layer backward, from t1 - 1 down, all of one gradient block. Bit
 * (block_end - 1 - t) * group + place of the sample in its group of rows[group][unit] is set if the
 * unit spiked at step t.
 */
struct lif_backward_arguments {
	struct neap__device_batch batch;
	struct neap__device_lif layer;
	struct neap__device_readout readout;
	int t1, t0, block_end;
	int unit_threads;
	int above_units; /* units of the layer above, or classes */
	int above_late;	 /* they receive spikes of t at t + 1 */
	struct neap__device_delays above_delays;
	DEVICE_POINTER(u8) adjoint;
	DEVICE_POINTER(const float) above_weight; /* [units][above_units], with all places */
	int above_sums, own_sums;		  /* DEVICE_BY_LANES, ... */
	/* The same weights and the recurrent ones, turned, of sums that are not in lanes. */
	DEVICE_POINTER(const float) above_turned; /* [above_units][units] */
	DEVICE_POINTER(const float) own_turned;	  /* [units][units] */
	DEVICE_POINTER(const float)
	above; /* `currents` of the layer above; not below the readout */
	/*
	 * [t - t0][sample][classes] d loss / d output of the readouts `step` and `softmax`, which
	 * the host computes; -0 for a step without a loss, as adding it changes no bit.
	 */
	DEVICE_POINTER(const float) errors;
	DEVICE_POINTER(const float) penalty; /* [units] gradient per spike; NULL: no penalty */
	/* [t - t0][samples][units] d loss / d spike of the caller's outputs; NULL: there are none.
	 */
	DEVICE_POINTER(const float) given;
	DEVICE_POINTER(const u8) tape;
	u32 share;
	int most, tape_t0; /* of the call that wrote the tape */
	DEVICE_POINTER(const u32) offset;
	DEVICE_POINTER(float) currents;		/* written: [t1 - t0 + 1][samples][units] */
	DEVICE_POINTER(float) readout_currents; /* the same of the readout; [..][classes] */
	DEVICE_POINTER(u32) rows;		/* [groups][units][2 group]; zeroed before */
	/* Terms of the gradients of decays that learn: written as `currents`, from row 1 on. */
	DEVICE_POINTER(float) leak_terms[DEVICE_LEAKS];
	DEVICE_POINTER(const float) factors; /* as lif_forward wrote them */
	DEVICE_POINTER(float) readout_terms;
};

/*
 * Clusters of blocks for a layer, whose recurrent weights are spread over their shared memory.
 * `columns`, a multiple of 32: units of a block, the last of which may have fewer or none. blocks
 * 0: there are no clusters.
 */
struct neap__cluster_shape {
	int blocks, slots; /* slots: samples of a cluster */
	int columns, unit_threads;
};

/* The same as lif_forward and lif_backward, whose arguments these have, by clusters. */
struct lif_forward_cluster_arguments {
	struct lif_forward_arguments lif;
	struct neap__cluster_shape shape;
};

struct lif_backward_cluster_arguments {
	struct lif_backward_arguments lif;
	struct neap__cluster_shape shape;
	int stride; /* numbers from a row of weights in shared memory to the next */
};

#include "replay_arguments.h"

/*
 * to[rows][columns]: weights of a density below 1 with all places, from the connections: those of
 * row r are from[row_start[r]] to from[row_start[r + 1] - 1], in the columns column[...].
 */
struct spread_weights_arguments {
	int rows, columns;
	u32 missing;			     /* bits of places without a connection */
	DEVICE_POINTER(const u32) row_start; /* [rows + 1] */
	DEVICE_POINTER(const u16) column;
	DEVICE_POINTER(const float) from;
	DEVICE_POINTER(float) to;
};

/* to[columns][rows] = from[rows][columns] */
struct turn_weights_arguments {
	int rows, columns;
	DEVICE_POINTER(const float) from;
	DEVICE_POINTER(float) to;
};

/* Sets the bits of rows[group][input] for the input events of steps [t0, t1). */
struct input_rows_arguments {
	struct neap__device_batch batch;
	int t1, t0, block_end;
	DEVICE_POINTER(u32) rows; /* [groups][inputs][2 group]; zeroed before */
};

/* A tensor whose gradient is added to. */
struct neap__device_gradient {
	int first_block; /* of its rows * groups blocks of threads */
	int rows, columns;
	int late;	 /* 1: a spike at t meets d(in) of t + 1, as in recurrent weights */
	int width, from; /* numbers of a row of `currents`, and the first that is meant */
	float factor;
	/* Of a density below 1: `count` connections, as of spread_weights; NULL: all places. */
	int count;
	DEVICE_POINTER(const u32) row_start;
	DEVICE_POINTER(const u16) column;
	/* What d(in) is multiplied by: [t - t0][samples][rows] numbers as inputs, or with
	 * `are_outputs` [t1 - t][samples][rows]; NULL: 1. */
	int are_outputs;
	DEVICE_POINTER(const float) values;
	/* A spike of row i at t meets d(in) of t + whole[i], as of struct neap__device_delays. */
	struct neap__device_delays delays;
	DEVICE_POINTER(const u8) adjoint;     /* of all samples; where there are delays */
	DEVICE_POINTER(const float) currents; /* [t1 - t][samples][width] */
	DEVICE_POINTER(const u32) bits;	  /* [groups][rows][2 group]; NULL: all samples and steps */
	DEVICE_POINTER(const u32) passes; /* of dropout: samples without the bit of the row add 0 */
	DEVICE_POINTER(float) part;	  /* [groups][rows][columns] of the block in progress */
	DEVICE_POINTER(double) total;	  /* [groups][rows][columns] */
};

/*
 * Adds the rows of d(in) of steps [t0, t1) that `bits` selects to the gradients of tensors,
 * downwards in steps and upwards in samples, in float; at the end of a gradient block adds these
 * sums to those in double. One block of threads adds one row of one group.
 */
struct gradient_rows_arguments {
	struct neap__device_batch batch;
	int t1, t0, block_end;
	int fold; /* 1: t0 begins the gradient block */
	int tensors, blocks, threads;
	struct neap__device_gradient tensor[DEVICE_TENSORS];
};

/*
 * Adds to the gradients of the learned delays of a layer the terms of the spikes of steps [t0, t1):
 * bits, passes, part and total as of struct neap__device_gradient, but one number per unit. 32
 * threads compute a term, the products of a row of weights with d(in) of two steps.
 */
struct delay_gradients_arguments {
	struct neap__device_batch batch;
	int t1, t0, block_end, fold;
	int groups, units, width; /* units: of the layer below */
	int is_masked;		  /* `weight` lacks connections (masks.k) */
	float factor;
	struct neap__device_delays delays;
	DEVICE_POINTER(const u8) adjoint;
	DEVICE_POINTER(const float) currents; /* [t1 - t][samples][width] */
	DEVICE_POINTER(const float) weight;   /* [units][width] */
	DEVICE_POINTER(const u32) bits;	      /* [groups][units][2 group] */
	DEVICE_POINTER(const u32) passes;
	DEVICE_POINTER(float) part;   /* [groups][units] */
	DEVICE_POINTER(double) total; /* [groups][units] */
};

/* Puts d(in) of steps [t0, t1) of a layer with delays into the ring of its adjoint. */
struct store_delays_arguments {
	struct neap__device_batch batch;
	int t1, t0, width;
	struct neap__device_delays delays;
	DEVICE_POINTER(const float) currents; /* [t1 - t][samples][width] */
	DEVICE_POINTER(u8) adjoint;
};

/*
 * Layers of rnn, lstm, gru and egru. The steps [t0, t1) of a layer are, forward,
 *     dense_begin    outputs of step t0 - 1, and what is known of the tapes
 *     dense_inputs   b + W x of all steps from events, or dense_product from outputs below or
 * numbers dense_forward  V h and the cell: one launch for each step, two of egru dense_end outputs
 * of the last step to the state and then dense_product and dense_readout for the readout. Backward
 * they are dense_readout_back for the readout, and from the last layer down dense_adjoint   d(in)
 * of step t1, and after the steps that of t0 dense_backward  one launch for each step, two of egru
 * and then outer_products, and gradient_rows for the weights that events enter. `outputs` is [t -
 * t0 + 1][samples][units], `currents` [t1 - t][samples][sums].
 */
struct dense_begin_arguments {
	struct neap__device_batch batch;
	struct neap__device_dense layer;
	int t0, t1;
	DEVICE_POINTER(const u8) state;
	DEVICE_POINTER(float) outputs;
	u32 share; /* of tapes, as in lif_forward */
	int most;
	DEVICE_POINTER(u32) offset; /* NULL: there are no tapes */
	DEVICE_POINTER(int) done;
	DEVICE_POINTER(u32) bytes;
	DEVICE_POINTER(u32) near_units; /* zeroed; dense_forward of egru counts */
};

/* sums[t - t0][sample][in] = bias + the rows of weights of the events of a step. */
struct dense_inputs_arguments {
	struct neap__device_batch batch;
	struct neap__device_dense layer;
	int t0, t1;
	DEVICE_POINTER(float) sums;
};

/*
 * sums[row][columns] = bias + numbers[row][terms] . weight, for rows of all steps and samples. Rows
 * of samples that have ended are computed from what is there, and not used.
 */
struct dense_product_arguments {
	int rows, terms, columns;
	int width;     /* numbers from a row to the next */
	int turned;    /* 0: weight[terms][columns]; 1: weight[columns][terms] */
	int is_masked; /* as of struct neap__device_dense */
	DEVICE_POINTER(const float) numbers;
	DEVICE_POINTER(const float) weight;
	DEVICE_POINTER(const float) bias; /* NULL: 0 */
	DEVICE_POINTER(float) sums;
};

/* Step t of a layer; candidate 1: the second part of egru. */
struct dense_forward_arguments {
	struct neap__device_batch batch;
	struct neap__device_dense layer;
	int t0, t, candidate;
	DEVICE_POINTER(u8) state;
	DEVICE_POINTER(float) sums;	  /* of step t; egru keeps its gates there */
	DEVICE_POINTER(const float) from; /* outputs of step t - 1 */
	DEVICE_POINTER(float) to;	  /* outputs of step t */
	DEVICE_POINTER(float) gated;	  /* [samples][units] r y_{-1} of egru */
	DEVICE_POINTER(u8) tape;	  /* NULL: no tapes are written */
	u32 share;
	DEVICE_POINTER(u32) near_units;
};

struct dense_end_arguments {
	struct neap__device_batch batch;
	struct neap__device_dense layer;
	int t0, t1;
	DEVICE_POINTER(const float) outputs;
	DEVICE_POINTER(u8) state;
};

/* The readout of steps [t0, t1) from sums[t - t0][sample][classes]. */
struct dense_readout_arguments {
	struct neap__device_batch batch;
	struct neap__device_readout readout;
	int t0, t1;
	DEVICE_POINTER(const float) sums;
	DEVICE_POINTER(u8) state;
	DEVICE_POINTER(float) outputs; /* [t - t0][sample][classes]; NULL: not needed */
	DEVICE_POINTER(float) factors; /* as of lif_forward */
};

struct dense_readout_back_arguments {
	struct neap__device_batch batch;
	struct neap__device_readout readout;
	int t1, t0;
	DEVICE_POINTER(u8) adjoint;
	DEVICE_POINTER(const float) errors;	/* as in lif_backward */
	DEVICE_POINTER(float) readout_currents; /* written */
	DEVICE_POINTER(const float) factors;	/* as in lif_backward */
	DEVICE_POINTER(float) readout_terms;
};

struct dense_adjoint_arguments {
	struct neap__device_batch batch;
	struct neap__device_dense layer;
	int t1, t0, save; /* save 1: from `currents` to `adjoint`; 0: the other way */
	DEVICE_POINTER(u8) adjoint;
	DEVICE_POINTER(float) currents;
};

/* Step t of a layer backward; candidate 1: the second part of egru. */
struct dense_backward_arguments {
	struct neap__device_batch batch;
	struct neap__device_dense layer;
	int t1, t, candidate;
	int above_columns, above_width; /* of the layer above: columns of W, numbers of d(in) */
	int above_late;			/* it receives outputs of t at t + 1 */
	int above_masked;		/* as `is_masked` of the layer */
	int is_added; /* 1: `values` has W d(in) of the layer above (dense_product) */
	/* [samples][units] d loss / d output of the caller, of step t; NULL: there is none. */
	DEVICE_POINTER(const float) given;
	DEVICE_POINTER(u8) adjoint;
	DEVICE_POINTER(const float) above_weight; /* [units][above_columns] */
	DEVICE_POINTER(const float) above;	  /* its currents */
	DEVICE_POINTER(const u8) tape;
	u32 share;
	int most, tape_t0;
	DEVICE_POINTER(const u32) offset;
	DEVICE_POINTER(float) currents;
	DEVICE_POINTER(float) values; /* written: outputs [t1 - t][samples][units] */
	DEVICE_POINTER(float) gated;  /* written: r y_{-1} of egru, the same */
};

/* A tensor of weights that numbers enter, or a bias. */
struct neap__device_outer {
	int first_block; /* of its groups * tiles blocks of threads */
	int rows, columns;
	int late;	 /* 1: outputs of step t meet d(in) of t + 1 */
	int is_input;	 /* 1: `values` has the inputs of the net, [t - t0][samples][rows] */
	int width, from; /* of `currents`, as in struct neap__device_gradient */
	float factor;
	DEVICE_POINTER(const float) values; /* [t1 - t][samples][rows]; NULL: ones, of a bias */
	DEVICE_POINTER(const float) currents;
	DEVICE_POINTER(float) part; /* [groups][rows][columns], as there */
	DEVICE_POINTER(double) total;
};

/*
 * Adds the outer products of outputs or inputs and d(in) of steps [t0, t1), in the order of
 * gradient_rows, each fused with the sum. A block of threads adds a tile of one group.
 */
struct outer_products_arguments {
	struct neap__device_batch batch;
	int t1, t0, fold;
	int tensors, blocks;
	struct neap__device_outer tensor[DEVICE_TENSORS];
};

/* The same products on tensor cores (dense_math.k); math: DEVICE_TF32X3 or DEVICE_BF16. */
struct dense_product_math_arguments {
	struct dense_product_arguments exact;
	int math;
};

struct dense_forward_math_arguments {
	struct dense_forward_arguments exact;
	int math;
};

struct dense_backward_math_arguments {
	struct dense_backward_arguments exact;
	int math;
};

struct outer_products_math_arguments {
	struct outer_products_arguments exact;
	int math;
};

/*
 * Adds the outputs of each unit in steps [t0, t1) to count[groups][parts][units], steps upwards and
 * samples upwards in each part of `per_part` samples of a group.
 */
struct dense_counts_arguments {
	struct neap__device_batch batch;
	int units, t0, t1;
	int groups, parts, per_part;
	DEVICE_POINTER(const float) outputs; /* of step t0 */
	DEVICE_POINTER(double) count;
};

/* Adds the spikes of each unit in steps [t0, t1), in samples that have these steps, to
 * count[units]. */
struct spike_counts_arguments {
	struct neap__device_batch batch;
	int units, t0, t1;
	DEVICE_POINTER(const u32) spikes; /* as lif_forward writes it */
	DEVICE_POINTER(double) count;
};

/*
 * Copies the tapes of the samples of a layer, which lif_forward wrote with gaps between samples, to
 * a place without gaps, and their offsets, which count from that place.
 */
struct pack_tapes_arguments {
	int samples, steps; /* steps: t1 - t0 of the call that wrote the tapes */
	int most;
	u32 share;
	DEVICE_POINTER(const u8) tape;
	DEVICE_POINTER(const u32) offset;
	DEVICE_POINTER(const u32) start; /* [samples] bytes before those of a sample */
	DEVICE_POINTER(u8) to;
	DEVICE_POINTER(u32) to_offset; /* [samples][steps + 1] */
};

/* to[row][units]: the numbers of rows of samples that dropout lets pass, times `scale`; else 0. */
struct drop_outputs_arguments {
	int rows, samples, units; /* rows: of `samples` samples after one another */
	float scale;
	DEVICE_POINTER(const u32) passes; /* [samples][words of the units] */
	DEVICE_POINTER(const float) from;
	DEVICE_POINTER(float) to;
};

/* Copies a row of `words` words per sample between places whose rows have other distances. */
struct copy_rows_arguments {
	int samples, words;
	int from_row, to_row; /* words from a row to the next */
	DEVICE_POINTER(const u32) from;
	DEVICE_POINTER(u32) to;
};

/* A tensor that learns, of a table in device memory in the order of the net's tensors. */
struct neap__device_tensor {
	i64 offset;    /* of its first number, counted over all tensors and what is between them */
	i64 count;     /* of its numbers */
	double unit;   /* gradients are multiplied by it, weights are divided (time_unit.h) */
	double decays; /* multiplies the weight decay */
	DEVICE_POINTER(const double) total; /* [groups][count] */
	DEVICE_POINTER(float) weight;	    /* [count] */
};

/*
 * Adds up the gradients of all tensors over the groups, in the order of nn/batch/sum_tree.h, and
 * their squares in blocks of DEVICE_SQUARES numbers, counted over all tensors, in the order of the
 * CPU's (train/clip.c). A block of threads does such a block.
 */
struct sum_groups_arguments {
	int blocks, groups, tensors;
	DEVICE_POINTER(const struct neap__device_tensor) tensor; /* [tensors] */
	DEVICE_POINTER(double) gradient; /* written, where tensors have numbers */
	DEVICE_POINTER(double) square;	 /* written: [blocks] */
};

/*
 * An update of all tensors by an optimizer: in double, with the operations of the CPU's code
 * (train/rules: adam.c, adamw.c and sgd.c) in their order. `moment` has the first moments of adam
 * and adamw, or the momentum of sgd, in the order of the gradients.
 */
struct optimizer_step_arguments {
	i64 count; /* of numbers, counted over all tensors */
	int tensors, rule;
	double factor; /* multiplies the gradients first: clipping */
	double rate, weight_decay, momentum, beta1, beta2, epsilon;
	double first, second; /* bias corrections of adam and adamw */
	DEVICE_POINTER(const struct neap__device_tensor) tensor;
	DEVICE_POINTER(const double) gradient;
	DEVICE_POINTER(double) moment;
	DEVICE_POINTER(double) second_moment; /* NULL: sgd */
	DEVICE_POINTER(u32) infinite;	      /* set to 1 if a weight is no longer finite */
};

/* Bitmaps of spikes to numbers, for rows of all steps and samples. */
struct expand_spikes_arguments {
	int rows, units;
	DEVICE_POINTER(const u32) spikes; /* [rows][words] */
	DEVICE_POINTER(float) outputs;	  /* [rows][units] */
};

/* The gradient of the inputs of steps [t0, t1): W d(in) of the first layer. */
struct input_gradients_arguments {
	int samples, inputs;
	int t1, t0, first;		      /* first: the step of row 0 of `gradients` */
	int terms, width;		      /* columns of W; numbers of d(in) */
	DEVICE_POINTER(const float) currents; /* [t1 - t][samples][width] */
	DEVICE_POINTER(const float) weight;   /* [inputs][terms] */
	DEVICE_POINTER(float) gradients;      /* [t - first][samples][inputs] */
};

#if !defined(__OPENCL_VERSION__)

#include "launch_shapes.h"

/*
 * X(name, blocks, threads, bytes of shared memory): all kernels; `a` is a pointer to the arguments.
 */
/* clang-format off */
#define NEAP__DEVICE_KERNELS(X) \
	X(lif_forward, a->batch.samples, neap__device_lif_threads(a->unit_threads, &a->readout), \
		neap__shared_lif_forward(a)) \
	X(lif_backward, a->batch.samples, neap__device_lif_threads(a->unit_threads, &a->readout), \
		neap__shared_lif_backward(a)) \
	X(lif_forward_cluster, neap__cluster_blocks(&a->shape, a->lif.batch.samples), \
		neap__cluster_threads(&a->shape, a->lif.readout.classes), \
		neap__shared_lif_forward_cluster(a)) \
	X(lif_backward_cluster, neap__cluster_blocks(&a->shape, a->lif.batch.samples), \
		neap__cluster_threads(&a->shape, 0), neap__shared_lif_backward_cluster(a)) \
	X(replay_currents, a->parts * neap__device_tiles(1, 1, a->layer.units, DEVICE_STRIP), \
		a->warps * DEVICE_STRIP, neap__shared_array(a->held_own * DEVICE_STRIP, 4) + \
		neap__shared_array(a->held_below * DEVICE_STRIP, 4)) \
	X(lif_replay, a->lif.batch.samples, \
		neap__device_lif_threads(a->lif.unit_threads, &a->lif.readout), \
		neap__shared_lif_forward(&a->lif)) \
	X(spread_weights, a->rows, neap__device_threads(a->columns), 0) \
	X(turn_weights, neap__device_tiles(a->rows, DEVICE_TURN_SIDE, a->columns, DEVICE_TURN_SIDE), \
		256, neap__shared_array(DEVICE_TURN_SIDE * (DEVICE_TURN_SIDE + 1), 4)) \
	X(drop_outputs, a->rows, neap__device_threads(a->units), 0) \
	X(expand_spikes, a->rows, neap__device_threads(a->units), 0) \
	X(input_gradients, (a->t1 - a->t0) * neap__device_unit_tiles(a->samples, a->inputs), \
		DEVICE_TILE_THREADS, neap__shared_tile(DEVICE_TILE_SAMPLES, DEVICE_BACK_TERMS) + \
		neap__shared_tile(DEVICE_TILE_UNITS, DEVICE_BACK_TERMS)) \
	X(copy_rows, a->samples, neap__device_threads(a->words), 0) \
	X(sum_groups, a->blocks, DEVICE_SQUARES / 2, neap__shared_array(DEVICE_SQUARES, 8)) \
	X(optimizer_step, (int)((a->count + 255) / 256), 256, 0) \
	X(input_rows, a->batch.samples, 64, 0) \
	X(gradient_rows, a->blocks, a->threads, 0) \
	X(delay_gradients, a->groups * a->units, 32 * DEVICE_DELAY_TERMS, \
		neap__shared_array(4 * DEVICE_DELAY_TERMS, 4)) \
	X(store_delays, a->batch.samples, neap__device_threads(a->width), 0) \
	X(spike_counts, (a->units + 31) / 32, 1024, neap__shared_array(1024, 4)) \
	X(pack_tapes, a->samples * DEVICE_PACK_PARTS, 256, 0) \
	X(dense_begin, a->batch.samples, neap__device_threads(a->layer.units), 0) \
	X(dense_inputs, (a->t1 - a->t0) * a->batch.samples, neap__device_threads(a->layer.in), 0) \
	X(dense_product, neap__device_tiles(a->rows, DEVICE_BIG_TILE, a->columns, DEVICE_BIG_TILE), \
		DEVICE_TILE_THREADS, \
		2 * neap__shared_tile(DEVICE_BIG_TILE, DEVICE_BIG_TERMS)) \
	X(dense_forward, neap__device_unit_tiles(a->batch.samples, a->layer.units), \
		DEVICE_TILE_THREADS, neap__shared_tile(DEVICE_TILE_SAMPLES, DEVICE_TILE_TERMS) + \
		neap__shared_tile(4 * DEVICE_TILE_UNITS, DEVICE_TILE_TERMS) + \
		neap__shared_array(DEVICE_TILE_SAMPLES, 4)) \
	X(dense_end, a->batch.samples, neap__device_threads(a->layer.units), 0) \
	X(dense_readout, a->batch.samples, neap__device_threads(a->readout.classes), 0) \
	X(dense_readout_back, a->batch.samples, neap__device_threads(a->readout.classes), 0) \
	X(dense_adjoint, a->batch.samples, neap__device_threads(a->layer.sums), 0) \
	X(dense_backward, neap__device_unit_tiles(a->batch.samples, a->layer.units), \
		DEVICE_TILE_THREADS, neap__shared_tile(DEVICE_TILE_SAMPLES, DEVICE_BACK_TERMS) + \
		neap__shared_tile(DEVICE_TILE_UNITS, DEVICE_BACK_TERMS)) \
	X(outer_products, a->blocks, DEVICE_TILE_THREADS, \
		2 * neap__shared_tile(DEVICE_BIG_TILE, DEVICE_BIG_TERMS) + \
		2 * neap__shared_array(2 * DEVICE_BIG_TERMS, 4)) \
	X(dense_product_math, neap__device_tiles(a->exact.rows, DEVICE_BIG_TILE, a->exact.columns, \
		DEVICE_BIG_TILE), DEVICE_TILE_THREADS, neap__shared_math(DEVICE_MATH_BIG_ROOM)) \
	X(dense_forward_math, neap__device_unit_tiles(a->exact.batch.samples, a->exact.layer.units), \
		DEVICE_TILE_THREADS, neap__shared_math(DEVICE_MATH_ROOM) + \
		neap__shared_array(DEVICE_TILE_SAMPLES, 4)) \
	X(dense_backward_math, neap__device_unit_tiles(a->exact.batch.samples, \
		a->exact.layer.units), DEVICE_TILE_THREADS, neap__shared_math(DEVICE_MATH_BACK_ROOM)) \
	X(outer_products_math, a->exact.blocks, DEVICE_TILE_THREADS, \
		neap__shared_math(DEVICE_MATH_BIG_ROOM) + \
		2 * neap__shared_array(4 * DEVICE_MATH_BIG_TERMS, 4)) \
	X(dense_counts, a->groups * a->parts * ((a->units + 63) / 64), 64, 0)
#define NEAP_X(name, blocks, threads, shared) NEAP__KERNEL_##name,
/* clang-format on */
enum neap__device_kernel { NEAP__DEVICE_KERNELS(NEAP_X) NEAP__DEVICE_KERNEL_COUNT };
#undef NEAP_X

#endif

#endif
