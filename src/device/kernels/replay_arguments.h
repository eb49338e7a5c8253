/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_arguments.h: the arguments of the kernels of lif_replay.k; kernels.h includes it. A log
 * has a row per step, in which each recurrent layer has the bitmaps [samples][words] of its spikes.
 */
#ifndef NEAP_DEVICE_KERNELS_REPLAY_ARGUMENTS_H
#define NEAP_DEVICE_KERNELS_REPLAY_ARGUMENTS_H

/*
 * currents[t - from][sample][units]: what arrives at a layer of lif in steps [from, to). A block
 * computes DEVICE_STRIP units of every `parts`th pair of a step and a sample for each of its warps.
 */
struct replay_currents_arguments {
	struct neap__device_batch batch;
	struct neap__device_lif layer;
	int t0, from, to; /* t0: the first step of the range, to which `state` belongs */
	int parts, warps; /* warps: of a block */
	/* Rows of the recurrent weights and of the others that are copied to shared memory. */
	int held_own, held_below;
	int log_row;		      /* bytes from a step of the log to the next */
	DEVICE_POINTER(const u8) log; /* the bitmaps of the layer in step t0 */
	DEVICE_POINTER(const u8) state;
	DEVICE_POINTER(const u32) below_spikes; /* as of lif_forward */
	DEVICE_POINTER(const int) below_done;
	DEVICE_POINTER(float) currents;
};

/*
 * The same as lif_forward with tapes, of the steps [from, lif.t1) of a range that begins at lif.t0:
 * a call continues what the call before it wrote about the tapes.
 */
struct lif_replay_arguments {
	struct lif_forward_arguments lif;
	int from;
	DEVICE_POINTER(const float) currents; /* of replay_currents, of the same steps */
};

#endif
