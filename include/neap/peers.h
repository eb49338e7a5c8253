/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers.h: communication between processes that train one network together. The library contains no
 * network code: the caller implements this structure, with MPI or anything else, and passes it in
 * neap_train_options, neap_eval_options, neap_encode_options and neap_objective. Every process
 * (rank) makes the same calls with the same options; results are bit-identical for any number of
 * ranks.
 *
 *     static int least(void *comm, int64_t *v, int n)
 *     {
 *             return MPI_Allreduce(MPI_IN_PLACE, v, n, MPI_INT64_T, MPI_MIN, *(MPI_Comm *)comm)
 *                            ? -EIO : 0;
 *     }
 *
 * All functions except `leave` are collective: every rank calls the same function with matching
 * sizes, and each waits for the others. They are called on the thread that calls the library, never
 * by two threads at a time. They return 0 or a negative code, after which the ranks cannot
 * continue.
 */
#ifndef NEAP_PEERS_H
#define NEAP_PEERS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The collective operations that neap requires of a group of processes. */
struct neap_peers {
	uint32_t size;	 /* sizeof(struct neap_peers) */
	int rank, count; /* number of this process, from 0; number of processes */
	void *user;
	/* Replaces each of values[count] by its minimum over all ranks, on all ranks. */
	int (*least)(void *user, int64_t *values, int count);
	/* Gathers `bytes` of every rank, in the order of ranks, in `all`, on all ranks. */
	int (*all)(void *user, const void *own, size_t bytes, void *all);
	/*
	 * Sends to[r] bytes of `out` to rank r and receives from[r] bytes of rank r into `in`; the
	 * parts are contiguous, in the order of ranks.
	 */
	int (*exchange)(
		void *user, const void *out, const size_t *to, void *in, const size_t *from);
	/*
	 * `at` consists of contiguous parts of bytes[r]; part r is complete on rank r before the
	 * call, and on all ranks afterwards.
	 */
	int (*gather)(void *user, void *at, const size_t *bytes);
	/*
	 * Called when this rank ends a call with an error that the other ranks do not know of and
	 * would wait for: ends them. May not return. NULL: the caller handles this when the call
	 * returns.
	 */
	void (*leave)(void *user, int code);
};

/*
 * Communication between ranks in the batches of this session: the calls of neap_peers from the turn
 * of a batch to the agreement after its update. On the rank that arrives last, a call takes only
 * the time of the exchange, so `seconds` sums the minimum over ranks of each call;
 * neap_ranks_predict predicts it. The rest of `waited` is waiting for slower ranks.
 */
struct neap_exchange {
	int ranks; /* 0: one process, all numbers are 0 */
	uint32_t reserved;
	int64_t batches, calls; /* in all batches */
	double seconds, waited; /* seconds: equal on all ranks; waited: of this rank */
	uint64_t sent;		/* bytes sent by this rank */
};

#ifdef __cplusplus
}
#endif
#endif
