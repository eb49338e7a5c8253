/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers.h: how processes that train one net together exchange numbers. The library knows no
 * network: a caller fills this structure, over MPI or anything else, and passes it in
 * neap_train_options, neap_eval_options, neap_encode_options and neap_objective. Every process, a
 * rank, makes the same calls with the same options; results are the same bits for any number of
 * ranks.
 *
 *     static int least(void *comm, int64_t *v, int n)
 *     {
 *             return MPI_Allreduce(MPI_IN_PLACE, v, n, MPI_INT64_T, MPI_MIN, *(MPI_Comm *)comm)
 *                            ? -EIO : 0;
 *     }
 *
 * All functions but `leave` are collective: every rank calls the same one with sizes that agree,
 * and each waits for the others. They are called on the thread that calls the library, and never
 * by two at a time. They return 0 or a negative code, after which the ranks cannot go on.
 */
#ifndef NEAP_PEERS_H
#define NEAP_PEERS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The collective operations that neap needs of a group of processes. */
struct neap_peers {
	uint32_t size;	 /* sizeof(struct neap_peers) */
	int rank, count; /* of this process, from 0; of all */
	void *user;
	/* Replaces each of values[count] by the least over all ranks, on all of them. */
	int (*least)(void *user, int64_t *values, int count);
	/* Puts `bytes` of every rank, in the order of ranks, into `all`, on all of them. */
	int (*all)(void *user, const void *own, size_t bytes, void *all);
	/*
	 * Sends to[r] bytes of `out` to rank r and receives from[r] bytes of rank r into `in`;
	 * parts lie one behind the other in the order of ranks.
	 */
	int (*exchange)(
		void *user, const void *out, const size_t *to, void *in, const size_t *from);
	/*
	 * `at` has parts of bytes[r], one behind the other; part r is complete on rank r, and
	 * afterwards on all.
	 */
	int (*gather)(void *user, void *at, const size_t *bytes);
	/*
	 * This rank ends a call with an error that the others do not know of, and would wait for
	 * it: ends them. May not come back. NULL: the caller sees to that when the call returns.
	 */
	void (*leave)(void *user, int code);
};

#ifdef __cplusplus
}
#endif
#endif
