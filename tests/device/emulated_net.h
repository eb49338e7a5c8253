/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated_net.h: a net of the CPU and the same net on the emulator, side by side: a forward and a
 * backward pass on both, and a comparison of all states, tapes, adjoints and gradients by memcmp.
 */
#ifndef NEAP_EMULATED_NET_H
#define NEAP_EMULATED_NET_H

#include "device/cluster_shape.h"
#include "device/device_steps.h"
#include "nn/nets.h"

enum { BLOCK = DEVICE_BLOCK_STEPS };

/* A net, its batch, and what the CPU computes with them. */
struct emulated_case {
	struct neap_net_options options;
	struct neap_objective objective;
	struct batch_room batch;
	/* Steps of a call on the device, from the start of each gradient block; 0: the block. */
	int cut;
	/* Bytes of a sample's tapes in a call, in largest tapes of a step; 0: as many as steps. */
	int share_steps;
	int window; /* 1: the events of each call alone are on the device */
	int pack;   /* 1: the tapes of each call are moved together */
	struct neap__cluster_limits clusters; /* `blocks` 0: none */
	/*
	 * Steps of a launch of a replay; above 0: a net that has a log is also replayed, which
	 * gives the same tapes and states. `shared`: bytes of shared memory of a block,
	 * `processors`: its blocks.
	 */
	int replay_steps, processors;
	unsigned shared;
	/*
	 * 1: what the emulator computes takes the place of what the CPU did, from the turn in the
	 * middle on from its own state, and later calls compare with that.
	 */
	int keeps;
	const struct neap_net *weights; /* whose weights the net gets; NULL: its own */
	/* Runs a kernel; NULL: the emulator does. */
	int (*launch)(void *user, const struct neap__device_launch *launch);
	void *user;

	struct neap_net *net;
	struct neap_net_sizes sizes;
	int blocks;
	/* After each gradient block forward, and before each backward: [blocks]. */
	unsigned char **state, **tape, **adjoint;
	unsigned char *turned;	/* the adjoint that the turn wrote */
	double spikes, support; /* of neap_net_result */
	double *count;		/* [hidden units] spikes */
	int replayed;		/* steps from a log */
	double near;		/* units inside the support, in all steps */
	double loss;
};

/* A case with `samples` samples of up to `steps` steps, of different lengths. */
struct emulated_case emulated_case_make(const char *spec, int samples, int steps, double rate);
/* Runs the net on the CPU with the arithmetic of AVX-512. From now on `c` stays where it is. */
void emulated_case_run(struct emulated_case *c);
void emulated_case_free(struct emulated_case *c);
/* Runs a case on both, fails if a bit differs, and frees it. NEAP_VERBOSE prints its activity. */
void emulated_case_assert(struct emulated_case *c);

/* The step after those of gradient block b. */
static inline int block_end(const struct emulated_case *c, int b)
{
	int end = (b + 1) * BLOCK, steps = (int)c->batch.batch.steps;
	return end < steps ? end : steps;
}

static inline void *copy_of(const void *from, size_t bytes)
{
	return memcpy(room_for(bytes), from, bytes);
}

/*
 * Runs the net on the emulator, threads in the order of `seed`. Returns NULL if all bits are those
 * of the CPU, or what differs first, one line.
 */
const char *emulated_case_compare(struct emulated_case *c, uint32_t seed);

/* Draws how calls divide the steps of a random case. */
void emulated_case_draw_calls(struct emulated_case *c, uint32_t *state);
/* Fails if emulated_case_compare finds a difference in random case `seed`, which has run. */
void emulated_case_agree(struct emulated_case *c, uint32_t seed);

/* Keeps what the emulator computes with the `math` of the options (`keeps`). */
void emulated_case_keep(struct emulated_case *c, enum neap_math math);
/* Whether emulated_case_compare finds nothing; in a child process, which may crash. */
int emulated_case_succeeds(struct emulated_case *c, uint32_t seed);

#endif
