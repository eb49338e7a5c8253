/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clip.c: the norm of all gradients, and scaling them down to a limit. Squares are added up in
 * blocks of 512 gradients, counted over all tensors, and then the blocks; a block lies with one
 * rank, so that the order of sums does not depend on their number. If the sum exceeds the largest
 * double, it is recomputed from gradients times SMALL: with 64-bit numbers, gradients above
 * 1e154 have no square, but may have a norm.
 */
#include "train/optimizer.h"
#include "nn/core/net_state.h"
#include "nn/core/on_device.h"
#include "nn/batch/peer_sum.h"
#include "base/fail.h"
#include "ranks/rank_share.h"
#include "sys/pool.h"

#include <math.h>

/* A power of two, so that products are exact. Squares of the largest double times SMALL are below
 * 2^848, and 2^175 of them have a sum. */
#define SMALL 0x1p-600

/* The sum of squares of gradients [from, to) times `factor`; *tensor is one at or before the first
 * of them. */
static double squares(
	const struct neap_net *net, size_t from, size_t to, int *tensor, double factor)
{
	double sum = 0;

	for (int i = *tensor; i < net->ntensors && net->tensors[i].offset < to; i++) {
		const struct neap__param *t = &net->tensors[i];
		size_t end = t->offset + (size_t)t->count, k = from > t->offset ? from : t->offset;
		for (; k < end && k < to; k++) {
			double g = t->grad[k - t->offset] * factor * t->unit;
			sum += g * g;
		}
		*tensor = i;
	}
	return sum;
}

/* Kahan summation: there may be millions of blocks. */
struct kahan {
	double sum, lost;
};

static void add(struct kahan *k, double value)
{
	double term = value - k->lost, next = k->sum + term;
	/* Infinity minus infinity would make NaN of the next sum. */
	k->lost = isfinite(next) ? (next - k->sum) - term : 0;
	k->sum = next;
}

static size_t end_of(const struct neap_net *net, size_t at)
{
	return at + NEAP__SLICE_BLOCK < net->slice_to ? at + NEAP__SLICE_BLOCK : net->slice_to;
}

enum { BLOCKS = 16, ITEMS = 64 }; /* of an item; of a job */

/* Sums of squares of the blocks [first, first + BLOCKS * ITEMS) of all gradients. */
struct squares_job {
	const struct neap_net *net;
	size_t first;
	double factor;
	double square[BLOCKS * ITEMS];
};

static void squares_item(void *arg, int item, int thread)
{
	struct squares_job *job = arg;
	int tensor = 0;

	(void)thread;
	for (size_t b = (size_t)item * BLOCKS; b < ((size_t)item + 1) * BLOCKS; b++) {
		size_t at = (job->first + b) * NEAP__SLICE_BLOCK;
		if (at < job->net->elements)
			job->square[b] =
				squares(job->net, at, end_of(job->net, at), &tensor, job->factor);
	}
}

/* The sum of this process, whose threads make blocks that are added up in their order. */
static void sum_of_threads(struct kahan *k, const struct neap_net *net, double factor)
{
	size_t blocks = (net->elements + NEAP__SLICE_BLOCK - 1) / NEAP__SLICE_BLOCK;
	struct squares_job job = {.net = net, .factor = factor};

	for (; job.first < blocks; job.first += BLOCKS * ITEMS) {
		size_t left = blocks - job.first;
		left = left < BLOCKS * ITEMS ? left : BLOCKS * ITEMS;
		neap__thread_pool_run(
			net->pool, (int)((left + BLOCKS - 1) / BLOCKS), squares_item, &job);
		for (size_t b = 0; b < left; b++)
			add(k, job.square[b]);
	}
}

/* The sum over all ranks: each makes its blocks, and adds up all. */
static int sum_of_ranks(
	struct kahan *k, struct neap_net *net, const struct neap_peers *peers, double factor)
{
	struct neap__peer_room *room = net->peer_room;
	size_t blocks = (net->elements + NEAP__SLICE_BLOCK - 1) / NEAP__SLICE_BLOCK;
	int tensor = 0;

	for (size_t at = net->slice_from; at < net->slice_to; at += NEAP__SLICE_BLOCK)
		room->square[at / NEAP__SLICE_BLOCK] =
			squares(net, at, end_of(net, at), &tensor, factor);
	for (int r = 0; r < peers->count; r++) {
		size_t first = neap__rank_number(r, peers->count, net->elements);
		size_t end = neap__rank_number(r + 1, peers->count, net->elements);
		/* Slices begin with a block. */
		room->to[r] = ((end - first + NEAP__SLICE_BLOCK - 1) / NEAP__SLICE_BLOCK) *
			      sizeof *room->square;
	}
	int rc = peers->gather(peers->user, room->square, room->to);
	for (size_t b = 0; b < blocks && rc == 0; b++)
		add(k, room->square[b]);
	return rc;
}

/* The sum of blocks that the device made. */
static int sum_of_device(struct kahan *k, struct neap_net *net)
{
	const double *square;

	NEAP_TRY(neap__on_device_squares(net, &square));
	for (size_t at = 0; at < net->elements; at += NEAP__SLICE_BLOCK)
		add(k, *square++);
	return 0;
}

static void scale(struct neap_net *net, double factor)
{
	double *grad = net->tensors[0].grad;

	net->parameters.factor = factor; /* of the next update on a device */
	for (size_t i = net->slice_from; i < net->slice_to && !neap__on_device_keeps(net); i++)
		grad[i] *= factor;
}

/* The norm of all gradients times `factor`; devices, whose gradients are of 32 bits, take 1. */
static int norm_of(
	double *norm, struct neap_net *net, const struct neap_peers *peers, double factor)
{
	struct kahan k = {0};
	int rc = 0;

	if (neap__on_device_keeps(net))
		rc = sum_of_device(&k, net);
	else if (peers)
		rc = sum_of_ranks(&k, net, peers, factor);
	else
		sum_of_threads(&k, net, factor);
	*norm = sqrt(k.sum);
	return rc;
}

int neap__clip(double *norm, struct neap_net *net, double limit, const struct neap_peers *peers)
{
	int rc = norm_of(norm, net, peers, 1);

	if (rc == 0 && !isfinite(*norm) && !neap__on_device_keeps(net)) {
		rc = norm_of(norm, net, peers, SMALL);
		*norm /= SMALL;
	}
	if (rc < 0 || !(limit > 0) || !isfinite(*norm) || *norm <= limit)
		return rc;
	scale(net, limit / *norm);
	return 0;
}
