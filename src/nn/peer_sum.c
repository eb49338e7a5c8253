/* SPDX-License-Identifier: Apache-2.0 */
/* peer_sum.c: sums over the groups of all ranks (peer_sum.h). */
#include "nn/peer_sum.h"
#include "nn/group_sums.h"
#include "nn/sum_tree.h"
#include "base/bump_alloc.h"
#include "base/fail.h"
#include "ranks/rank_share.h"
#include "base/struct_size.h"
#include "sys/pool.h"

#include <neap/peers.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	ROUND_NUMBERS = (4 << 20) / sizeof(double), /* that a rank sends or receives in a round */
	CHUNK = 8192				    /* gradients that a thread adds up at a time */
};

/*
 * The nodes of groups [first, end) of so many, from left to right: each the largest that begins
 * there and lies within. Returns their number; node NULL: counts them.
 */
static int find_nodes(struct neap__peer_node *node, int first, int end, int groups)
{
	int count = 0;

	while (first < end) {
		int64_t size = 1;
		while (first % (2 * size) == 0 && size < groups) {
			int64_t to = first + 2 * size < groups ? first + 2 * size : groups;
			if (to > end)
				break;
			size *= 2;
		}
		int leaves = (int)(first + size < groups ? size : groups - first);
		if (node)
			node[count] = (struct neap__peer_node){first, leaves};
		count++;
		first += leaves;
	}
	return count;
}

/* Takes all arrays from a block. There are no more nodes than groups. */
static void take_all(
	const struct neap_net *net, struct neap__peer_room *room, struct neap__bump *from)
{
	uint64_t ranks = (uint64_t)room->ranks, groups = (uint64_t)room->groups;
	uint64_t most = neap__sat_mul(groups, net->elements + ranks);

	room->numbers = most < ROUND_NUMBERS ? most : ROUND_NUMBERS;
	room->numbers = room->numbers > groups ? room->numbers : groups;
	room->node = neap__bump_take(from, groups, sizeof *room->node);
	room->node_at = neap__bump_take(from, ranks + 1, sizeof *room->node_at);
	room->to = neap__bump_take(from, ranks, sizeof *room->to);
	room->from = neap__bump_take(from, ranks, sizeof *room->from);
	room->loss = neap__bump_take(from, (uint64_t)room->samples, sizeof *room->loss);
	room->units = neap__bump_take(from, groups * (uint64_t)net->hidden, sizeof *room->units);
	room->out = neap__bump_take(from, room->numbers, sizeof *room->out);
	room->in = neap__bump_take(from, room->numbers, sizeof *room->in);
}

int neap__peer_room_make(
	struct neap_net *net, const struct neap_peers *peers, int samples, int groups)
{
	struct neap__peer_room *room = net->peer_room, measured;
	struct neap__bump bump = {0};

	if (room && room->ranks == peers->count && room->rank == peers->rank &&
		samples <= room->samples && groups <= room->groups)
		return 0;
	neap__peer_room_free(net);
	measured = (struct neap__peer_room){
		.ranks = peers->count, .rank = peers->rank, .samples = samples, .groups = groups};
	take_all(net, &measured, &bump);
	room = malloc(sizeof *room);
	if (room)
		*room = measured;
	if (room && bump.used <= PTRDIFF_MAX)
		room->memory = aligned_alloc(64, bump.used);
	if (!room || !room->memory) {
		free(room);
		return neap__fail_errno(ENOMEM, "%llu bytes for exchanges of %d ranks",
			(unsigned long long)bump.used, peers->count);
	}
	memset(room->memory, 0, bump.used);
	room->bytes = bump.used;
	take_all(net, room, &(struct neap__bump){room->memory, 0});
	net->peer_room = room;
	return 0;
}

void neap__peer_room_free(struct neap_net *net)
{
	if (net->peer_room)
		free(net->peer_room->memory);
	free(net->peer_room);
	net->peer_room = NULL;
}

uint64_t neap__peer_room_bytes(const struct neap_net *net)
{
	return net->peer_room ? net->peer_room->bytes : 0;
}

/* Says who has what of a batch of so many samples of all ranks, in so many groups. */
static void deal(struct neap_net *net, int samples, int groups, int per_sum)
{
	struct neap__peer_room *room = net->peer_room;
	int most = 1;

	room->nodes = 0;
	room->ended = room->has_gradients = 0;
	room->whole = samples;
	room->per_sum = per_sum;
	for (int r = 0; r < room->ranks; r++) {
		int nodes = find_nodes(room->node + room->nodes,
			neap__rank_first(r, room->ranks, groups),
			neap__rank_first(r + 1, room->ranks, groups), groups);
		room->node_at[r] = room->nodes;
		room->nodes += nodes;
		most = nodes > most ? nodes : most;
	}
	room->node_at[room->ranks] = room->nodes;
	room->first_group = neap__rank_first(room->rank, room->ranks, groups);
	/* A slice has a part of count / ranks, rounded up. */
	size_t in = (room->numbers / (size_t)room->nodes - 1) * (size_t)room->ranks;
	room->round = room->numbers / (size_t)most;
	room->round = room->round < in ? room->round : in;
	room->round = room->round < net->elements ? room->round : net->elements;
	room->round = room->round > 0 ? room->round : 1;
}

int neap__peer_begin(struct neap_net *net, const struct neap_batch *batch,
	const struct neap_peers *peers, int per_sum)
{
	NEAP_TRY(neap__struct_size(peers->size, sizeof *peers, sizeof *peers, "neap_peers"));
	if (peers->count < 1 || peers->rank < 0 || peers->rank >= peers->count)
		return neap__fail(NEAP_EUSAGE, "rank %d of %d", peers->rank, peers->count);
	if (batch->of < 1)
		return neap__fail(NEAP_EUSAGE, "a batch that ranks share says no whole size");
	int first = neap__rank_sample(peers->rank, peers->count, batch->of, per_sum);
	int end = neap__rank_sample(peers->rank + 1, peers->count, batch->of, per_sum);
	if (batch->size != end - first)
		return neap__fail(NEAP_EUSAGE,
			"rank %d of %d has %d samples of a batch of %d, not %d", peers->rank,
			peers->count, end - first, batch->of, batch->size);
	int groups = (batch->of + per_sum - 1) / per_sum;
	NEAP_TRY(neap__peer_room_make(net, peers, batch->of, groups));
	deal(net, batch->of, groups, per_sum);
	return 0;
}

/* A call of a peer that failed. */
static int lost(int rc, const char *what)
{
	return neap__fail_in(rc, "the ranks cannot exchange %s: ", what);
}

void neap__peer_loss(struct neap_net *net, int sample, double value)
{
	net->peer_room->loss[net->peer_room->first_group * net->peer_room->per_sum + sample] =
		value;
}

int neap__peer_turn(struct neap_net *net, double *loss, struct neap__peer_counts *counts)
{
	struct neap__peer_room *room = net->peer_room;
	const struct neap_peers *peers = net->objective.peers;
	struct neap__peer_counts *all = calloc((size_t)room->ranks, sizeof *all);
	int rc;

	if (!all)
		return neap__fail_errno(ENOMEM, "counts of %d ranks", room->ranks);
	rc = peers->all(peers->user, counts, sizeof *counts, all);
	*counts = (struct neap__peer_counts){0};
	for (int r = 0; r < room->ranks; r++) {
		counts->steps += all[r].steps;
		counts->correct += all[r].correct;
		counts->judged += all[r].judged;
		counts->right += all[r].right;
	}
	free(all);
	for (int r = 0; r < room->ranks; r++) {
		int first = neap__rank_sample(r, room->ranks, room->whole, room->per_sum);
		int end = neap__rank_sample(r + 1, room->ranks, room->whole, room->per_sum);
		room->to[r] = (size_t)(end - first) * sizeof *room->loss;
	}
	if (rc == 0)
		rc = peers->gather(peers->user, room->loss, room->to);
	if (rc < 0)
		return lost(rc, "losses");
	*loss = 0;
	for (int i = 0; i < room->whole; i++)
		*loss += room->loss[i];
	return 0;
}

int neap__peer_units(struct neap_net *net)
{
	struct neap__peer_room *room = net->peer_room;
	const struct neap_peers *peers = net->objective.peers;
	size_t hidden = (size_t)net->hidden;

	for (int n = room->node_at[room->rank]; n < room->node_at[room->rank + 1]; n++)
		for (int unit = 0; unit < net->hidden; unit++)
			room->units[(size_t)n * hidden + unit] = neap__unit_sum(net, unit,
				room->node[n].first - room->first_group, room->node[n].leaves);
	for (int r = 0; r < room->ranks; r++)
		room->to[r] = (size_t)(room->node_at[r + 1] - room->node_at[r]) * hidden *
			      sizeof *room->units;
	int rc = peers->gather(peers->user, room->units, room->to);
	return rc < 0 ? lost(rc, "outputs of units") : 0;
}

double neap__peer_unit(const struct neap_net *net, int unit)
{
	const struct neap__peer_room *room = net->peer_room;
	struct neap__number_tree tree = {0};

	for (int n = 0; n < room->nodes; n++)
		neap__number_tree_add(&tree, room->units[(size_t)n * (size_t)net->hidden + unit],
			room->node[n].first, room->node[n].leaves);
	return neap__number_tree_end(&tree);
}

/* A round: gradients [at, at + count) of all, counted over all tensors. */
struct round {
	struct neap_net *net;
	size_t at, count;
};

/* The first of the gradients of a round that belongs to a rank, counted from the round's. */
static size_t slice_at(const struct round *round, int rank)
{
	int ranks = round->net->peer_room->ranks;
	return (size_t)((unsigned __int128)round->count * (unsigned)rank / (unsigned)ranks);
}

/* Writes sums of a node, of gradients [from, from + count) of the round, to the slices sent. */
static void put(const struct round *round, int own, const double *row, size_t from, size_t count)
{
	const struct neap__peer_room *room = round->net->peer_room;
	size_t nodes = (size_t)(room->node_at[room->rank + 1] - room->node_at[room->rank]);
	int rank = (int)((unsigned __int128)from * (unsigned)room->ranks / round->count);

	while (count > 0) {
		while (slice_at(round, rank + 1) <= from)
			rank++;
		size_t first = slice_at(round, rank), end = slice_at(round, rank + 1);
		size_t part = end - from < count ? end - from : count;
		double *to =
			room->out + nodes * first + (size_t)own * (end - first) + (from - first);
		if (row)
			memcpy(to, row, part * sizeof *to);
		else
			memset(to, 0, part * sizeof *to);
		row = row ? row + part : NULL;
		from += part;
		count -= part;
	}
}

/* Makes this rank's nodes of a chunk of the round. */
static void make_chunk(void *arg, int item, int thread)
{
	const struct round *round = arg;
	struct neap_net *net = round->net;
	const struct neap__peer_room *room = net->peer_room;
	size_t from = round->at + (size_t)item * CHUNK, end = round->at + round->count;
	size_t to = from + CHUNK < end ? from + CHUNK : end;
	int own = room->node_at[room->rank];

	(void)thread;
	for (int n = own; n < room->node_at[room->rank + 1]; n++) {
		struct neap__sum_span span = {.first = room->node[n].first - room->first_group,
			.leaves = room->node[n].leaves,
			.at = from};
		while (span.at < to) {
			const double *row = neap__span_sum(net, &span, to);
			put(round, n - own, row, span.at - round->at, span.count);
			span.at += span.count;
		}
	}
}

/* Finishes the tree for numbers of this rank's slice. */
static void finish_chunk(void *arg, int item, int thread)
{
	const struct round *round = arg;
	const struct neap__peer_room *room = round->net->peer_room;
	size_t first = slice_at(round, room->rank),
	       length = slice_at(round, room->rank + 1) - first;
	size_t from = (size_t)item * CHUNK;
	size_t count = length - from < CHUNK ? length - from : CHUNK;
	double *grad = round->net->tensors[0].grad + round->at + first + from;
	struct neap__sum_tree tree = {0};

	(void)thread;
	for (int n = 0; n < room->nodes; n++)
		neap__sum_tree_add(&tree, room->in + (size_t)n * length + from, room->node[n].first,
			room->node[n].leaves, count);
	const double *sum = neap__sum_tree_end(&tree, count);
	for (size_t i = 0; sum && i < count; i++)
		grad[i] += sum[i];
}

static int chunks(size_t count)
{
	return (int)((count + CHUNK - 1) / CHUNK);
}

static int run_round(struct round *round)
{
	struct neap_net *net = round->net;
	struct neap__peer_room *room = net->peer_room;
	const struct neap_peers *peers = net->objective.peers;
	size_t own = slice_at(round, room->rank + 1) - slice_at(round, room->rank);

	neap__thread_pool_run(net->pool, chunks(round->count), make_chunk, round);
	for (int r = 0; r < room->ranks; r++) {
		size_t nodes = (size_t)(room->node_at[room->rank + 1] - room->node_at[room->rank]);
		size_t theirs = (size_t)(room->node_at[r + 1] - room->node_at[r]);
		room->to[r] =
			nodes * (slice_at(round, r + 1) - slice_at(round, r)) * sizeof(double);
		room->from[r] = theirs * own * sizeof(double);
	}
	int rc = peers->exchange(peers->user, room->out, room->to, room->in, room->from);
	if (rc < 0)
		return rc;
	neap__thread_pool_run(net->pool, chunks(own), finish_chunk, round);
	for (int r = 0; r < room->ranks; r++)
		room->to[r] = (slice_at(round, r + 1) - slice_at(round, r)) * sizeof(double);
	return peers->gather(peers->user, net->tensors[0].grad + round->at, room->to);
}

/* Adds up the units inside the support, and those there were: whole numbers. */
static int add_support(struct neap_net *net)
{
	struct neap__peer_room *room = net->peer_room;
	const struct neap_peers *peers = net->objective.peers;
	double own[2] = {0}, (*all)[2] = calloc((size_t)room->ranks, sizeof *all);

	if (!all)
		return neap__fail_errno(ENOMEM, "counts of %d ranks", room->ranks);
	for (int g = 0; g < net->ngroups; g++) {
		own[0] += net->groups[g].support;
		own[1] += net->groups[g].recorded;
	}
	int rc = peers->all(peers->user, own, sizeof own, all);
	room->support = room->recorded = 0;
	for (int r = 0; r < room->ranks; r++) {
		room->support += all[r][0];
		room->recorded += all[r][1];
	}
	free(all);
	room->ended = rc == 0;
	return rc;
}

int neap__peer_gradients(struct neap_net *net)
{
	const struct neap__peer_room *room = net->peer_room;
	int rc = 0;

	for (size_t at = 0; at < net->elements && rc == 0; at += room->round) {
		size_t left = net->elements - at;
		struct round round = {net, at, left < room->round ? left : room->round};
		rc = run_round(&round);
	}
	if (rc == 0)
		rc = add_support(net);
	return rc < 0 ? lost(rc, "gradients") : 0;
}
