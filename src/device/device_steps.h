/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_steps.h: steps of a whole net on a device, as launches of kernels: forward with or without
 * tapes, and backward with the gradients. The caller owns all device memory, and launches in order
 * on one stream. No function waits for the device.
 */
#ifndef NEAP_DEVICE_DEVICE_STEPS_H
#define NEAP_DEVICE_DEVICE_STEPS_H

#include "device/device_net.h"
#include "device/launches.h"

/*
 * Device memory that steps work with, addresses of the device. Arrays [layers] count hidden layers,
 * arrays [tensors] the tensors of the net. No call forward has more than `steps` steps, and no call
 * backward more than DEVICE_BLOCK_STEPS.
 */
struct neap__device_room {
	int steps;
	int replay_steps;	 /* of a launch of a replay, at most DEVICE_BLOCK_STEPS */
	u32 **spikes;		 /* [layers][steps + 1][samples][words] */
	float **currents;	 /* [layers][DEVICE_BLOCK_STEPS + 1][samples][units] */
	float *outputs;		 /* [steps][samples][classes]; NULL: nobody needs them */
	float *factors;		 /* the same, of tapes: as of struct neap__device_tapes */
	float *readout_currents; /* [DEVICE_BLOCK_STEPS + 1][samples][classes] */
	float *errors;	       /* [t - t0][samples][classes] of the readouts `step` and `softmax` */
	u32 **rows;	       /* [layers][groups][units][2 group] */
	u32 *input_rows;       /* [groups][inputs][2 group] */
	void *row_bits;	       /* `rows` of all layers and `input_rows`, in one block ... */
	size_t row_bytes;      /* ... of so many bytes */
	const float **penalty; /* [layers][units]; NULL: no penalty on rates */
	double **count;	       /* [layers][counts][units] spikes or outputs (neap__device_counts) */
	/*
	 * Terms of the gradients of decays that learn, [DEVICE_BLOCK_STEPS + 1][samples][units] as
	 * `currents`: of decay k of layer l at [DEVICE_LEAKS * l + k], and last of the readout.
	 */
	float **leak_terms;
	float **part;	/* [tensors][groups][count] of a gradient block; zero before the first */
	double **total; /* [tensors][groups][count] complete at step 0; zero before the first */
	/* [tensors] weights in other forms, where they are needed: columns as rows (turn_weights),
	 * and with all places (spread_weights) from the connections of each row. */
	float **turned, **spread;
	const u32 **row_start;
	const u16 **column;

	/* Of nets of rnn, lstm, gru and egru, whose `currents` have the columns `sums` of a layer:
	 */
	float **dense_outputs; /* [layers][steps + 1][samples][units] */
	float *sums;	       /* [steps][samples][most columns of W of a layer or the readout] */
	float *passed;	       /* [DEVICE_BLOCK_STEPS + 1][samples][most units]: after dropout */
	float *gated;	       /* [samples][most units] */
	float **values;	       /* [layers][DEVICE_BLOCK_STEPS + 1][samples][units] */
	float **gated_values;  /* the same, of egru */
};

/* The tapes of steps [t0, t1), written by one call. */
struct neap__device_tapes {
	int t0, t1, most; /* most: steps that `offset` has room for */
	float *factors;	  /* [t1 - t0][samples][classes] of a decay of the readout that learns */
	struct neap__device_layer_tapes {
		u8 *tape;
		u32 share;   /* bytes per sample, a multiple of 8 */
		u32 *offset; /* [samples][most + 1] */
		int *done;   /* [samples] the step before which a sample stopped */
		u32 *bytes;  /* [samples] */
		u32 *near;   /* [samples] units inside the support */
	} * layer;	     /* [layers] */
};

/*
 * Moves `state` from step t0 to t1. tapes NULL: none are written. Otherwise their steps are
 * [t0, t1), and the state is valid only if `done` of all samples and layers is t1: else the caller
 * repeats the call from a copy of the old state with t1 the least of them. counts: spikes are added
 * to room->count. Returns 0, or the code of a launch.
 */
int neap__device_forward(const struct neap__device_net *net, const struct neap__device_launcher *on,
	const struct neap__device_room *room, u8 *state, int t0, int t1,
	const struct neap__device_tapes *tapes);

/*
 * Bytes of a step's log of a net that can be logged (neap__device_logs): of each recurrent layer
 * the bitmaps [samples][words] of its spikes.
 */
size_t neap__device_log_row(const struct neap__device_net *net);
/* Writes the log of steps [t0, t1), of which `forward` was the last call. */
int neap__device_write_log(const struct neap__device_net *net,
	const struct neap__device_launcher *on, const struct neap__device_room *room, int t0,
	int t1, u8 *log);
/*
 * The same as neap__device_forward with tapes, from the log of the steps from t0 on. It needs the
 * room of a backward pass, `currents`, between calls of which nothing is there.
 */
int neap__device_replay(const struct neap__device_net *net, const struct neap__device_launcher *on,
	const struct neap__device_room *room, u8 *state, int t0, int t1,
	const struct neap__device_tapes *tapes, const u8 *log);

/*
 * Copies the tapes of each layer to `to`[layers].tape without gaps, and their offsets, [samples]
 * [steps + 1], to `to`[layers].offset. start[layers][samples], on the device: how many bytes the
 * samples before have.
 */
int neap__device_pack(const struct neap__device_net *net, const struct neap__device_launcher *on,
	const struct neap__device_tapes *tapes, const u32 *start,
	const struct neap__device_layer_tapes *to);

/* Adds the spikes of steps [t0, t1), of which `forward` was the last call, to room->count. */
int neap__device_count(const struct neap__device_net *net, const struct neap__device_launcher *on,
	const struct neap__device_room *room, int t0, int t1);

/*
 * Moves `adjoint` from step t1 to t0 and adds to the gradients. `tapes` have these steps; all are
 * of one gradient block: steps from a multiple of DEVICE_BLOCK_STEPS to the next. Returns 0, or the
 * code of a launch.
 */
int neap__device_backward(const struct neap__device_net *net,
	const struct neap__device_launcher *on, const struct neap__device_room *room, u8 *adjoint,
	int t1, int t0, const struct neap__device_tapes *tapes);

#endif
