/* SPDX-License-Identifier: Apache-2.0 */
/* peer_sum.c: sums over the groups of all ranks (peer_sum.h). */
#include "nn/batch/peer_sum.h"
#include "nn/batch/group_sums.h"
#include "nn/batch/sum_tree.h"
#include "base/bump_alloc.h"
#include "base/fail.h"
#include "ranks/rank_share.h"
#include "base/struct_size.h"
#include "sys/pool.h"

#include <neap/peers.h>
#include <errno.h>
#include <string.h>

enum {
	/* Numbers that a rank sends or receives per round: 4 MiB bound the buffers; chosen. */
	ROUND_NUMBERS = (4 << 20) / sizeof(double),
	CHUNK = 8192 /* gradients that a thread adds up at a time, 64 KiB; chosen */
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

/* Takes the struct and all its arrays from a block. There are no more nodes than groups. */
static void take_all(
	const struct neap_net *net, struct neap__peer_room *room, struct neap__bump *from)
{
	uint64_t ranks = (uint64_t)room->ranks, groups = (uint64_t)room->groups;
	uint64_t most = neap__sat_mul(groups, net->elements + ranks);

	room->numbers = most < ROUND_NUMBERS ? most : ROUND_NUMBERS;
	/* A round has a number of every slice at least. */
	most = neap__sat_mul(groups, ranks);
	if (room->numbers < most)
		room->numbers = most;
	neap__bump_take(from, 1, sizeof *room);
	room->node = neap__bump_take(from, groups, sizeof *room->node);
	room->node_at = neap__bump_take(from, ranks + 1, sizeof *room->node_at);
	room->to = neap__bump_take(from, ranks, sizeof *room->to);
	room->from = neap__bump_take(from, ranks, sizeof *room->from);
	room->counts = neap__bump_take(from, ranks, sizeof *room->counts);
	room->shares = neap__bump_take(from, ranks, sizeof *room->shares);
	room->loss = neap__bump_take(from, (uint64_t)room->samples, sizeof *room->loss);
	room->units = neap__bump_take(from, groups * (uint64_t)net->hidden, sizeof *room->units);
	room->out = neap__bump_take(from, room->numbers, sizeof *room->out);
	room->in = neap__bump_take(from, room->numbers, sizeof *room->in);
	room->square =
		neap__bump_take(from, net->elements / NEAP__SLICE_BLOCK + 1, sizeof *room->square);
}

int neap__peer_room_make(
	struct neap_net *net, const struct neap_peers *peers, int samples, int groups)
{
	struct neap__peer_room *room = net->peer_room, measured;
	struct neap__bump measure = {0};

	if (room && room->ranks == peers->count && room->rank == peers->rank &&
		samples <= room->samples && groups <= room->groups)
		return 0;
	neap__net_put(net, room);
	net->peer_room = NULL;
	measured = (struct neap__peer_room){
		.ranks = peers->count, .rank = peers->rank, .samples = samples, .groups = groups};
	take_all(net, &measured, &measure);
	room = neap__net_get_zeroed(net, measure.used, 1);
	if (!room)
		return neap__fail_errno(ENOMEM, "%llu bytes for exchanges of %d ranks",
			(unsigned long long)measure.used, peers->count);
	*room = measured;
	take_all(net, room, &(struct neap__bump){(unsigned char *)room, 0});
	net->peer_room = room;
	return 0;
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
	size_t out = room->numbers / (size_t)most / (size_t)room->ranks;
	size_t in = room->numbers / (size_t)(room->nodes > 0 ? room->nodes : 1);
	room->round = out < in ? out : in;
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
		return neap__fail(
			NEAP_EUSAGE, "a batch that ranks share must specify its whole size");
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
	return neap__fail_in(rc, "the ranks failed to exchange %s: ", what);
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
	struct neap__peer_counts *all = room->counts;
	int rc = peers->all(peers->user, counts, sizeof *counts, all);

	*counts = (struct neap__peer_counts){0};
	for (int r = 0; r < room->ranks; r++) {
		counts->steps += all[r].steps;
		counts->correct += all[r].correct;
		counts->judged += all[r].judged;
		counts->right += all[r].right;
	}
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

/* A round: of every rank's slice the gradients from number `at` of the slice on. */
struct round {
	struct neap_net *net;
	size_t at;
};

/* What a round has of a rank's slice, counted over all tensors. */
struct slice_part {
	size_t first, count;
};

static struct slice_part part_of(const struct round *round, int rank)
{
	const struct neap__peer_room *room = round->net->peer_room;
	size_t first = neap__rank_number(rank, room->ranks, round->net->elements) + round->at;
	size_t end = neap__rank_number(rank + 1, room->ranks, round->net->elements);
	size_t left = first < end ? end - first : 0;

	return (struct slice_part){first, left < room->round ? left : room->round};
}

static int nodes_of(const struct neap__peer_room *room, int rank)
{
	return room->node_at[rank + 1] - room->node_at[rank];
}

static int chunks(size_t count)
{
	return (int)((count + CHUNK - 1) / CHUNK);
}

/*
 * Where a round has this rank's nodes of what a rank gets: its own part, which is not sent, lies
 * behind those of the others.
 */
static double *out_part(const struct round *round, int rank)
{
	const struct neap__peer_room *room = round->net->peer_room;
	size_t before = 0;

	for (int r = 0; r < room->ranks; r++)
		if (r != room->rank && (r < rank || rank == room->rank))
			before += part_of(round, r).count;
	return room->out + (size_t)nodes_of(room, room->rank) * before;
}

/* Makes this rank's nodes of a chunk of what a rank gets: its nodes stand one behind the other. */
static void make_chunk(void *arg, int item, int thread)
{
	const struct round *round = arg;
	struct neap_net *net = round->net;
	const struct neap__peer_room *room = net->peer_room;
	int own = room->node_at[room->rank], a_rank = chunks(room->round), rank = item / a_rank;
	struct slice_part part = part_of(round, rank);
	size_t from = (size_t)(item % a_rank) * CHUNK, to = from + CHUNK;
	double *out = out_part(round, rank);

	(void)thread;
	to = part.first + (to < part.count ? to : part.count);
	for (int n = own; n < room->node_at[room->rank + 1]; n++, out += part.count) {
		struct neap__sum_span span = {.first = room->node[n].first - room->first_group,
			.leaves = room->node[n].leaves,
			.at = part.first + from};
		for (; span.at < to; span.at += span.count) {
			const double *row = neap__span_sum(net, &span, to);
			double *at = out + (span.at - part.first);
			if (row)
				memcpy(at, row, span.count * sizeof *at);
			else
				memset(at, 0, span.count * sizeof *at);
		}
	}
}

/* Finishes the tree for numbers of this rank's slice. */
static void finish_chunk(void *arg, int item, int thread)
{
	const struct round *round = arg;
	const struct neap__peer_room *room = round->net->peer_room;
	struct slice_part part = part_of(round, room->rank);
	size_t from = (size_t)item * CHUNK;
	size_t count = part.count - from < CHUNK ? part.count - from : CHUNK;
	double *grad = round->net->tensors[0].grad + part.first + from;
	struct neap__sum_tree tree = {0};
	int first = room->node_at[room->rank], end = room->node_at[room->rank + 1];
	double *own = out_part(round, room->rank), *in = room->in;

	(void)thread;
	for (int n = 0; n < room->nodes; n++) {
		double **at = n >= first && n < end ? &own : &in;
		neap__sum_tree_add(
			&tree, *at + from, room->node[n].first, room->node[n].leaves, count);
		*at += part.count;
	}
	const double *sum = neap__sum_tree_end(&tree, count);
	for (size_t i = 0; sum && i < count; i++)
		grad[i] += sum[i];
}

static int run_round(struct round *round)
{
	struct neap_net *net = round->net;
	struct neap__peer_room *room = net->peer_room;
	const struct neap_peers *peers = net->objective.peers;
	size_t own = part_of(round, room->rank).count;

	neap__thread_pool_run(net->pool, room->ranks * chunks(room->round), make_chunk, round);
	for (int r = 0; r < room->ranks; r++) {
		size_t other = r != room->rank ? sizeof(double) : 0;
		room->to[r] = (size_t)nodes_of(room, room->rank) * part_of(round, r).count * other;
		room->from[r] = (size_t)nodes_of(room, r) * own * other;
	}
	int rc = peers->exchange(peers->user, room->out, room->to, room->in, room->from);
	if (rc == 0)
		neap__thread_pool_run(net->pool, chunks(own), finish_chunk, round);
	return rc;
}

/* Bytes of every rank's slice of so many numbers, into room->to. */
static const size_t *slices_of(struct neap_net *net, size_t numbers, size_t size)
{
	struct neap__peer_room *room = net->peer_room;

	for (int r = 0; r < room->ranks; r++)
		room->to[r] = size * (neap__rank_number(r + 1, room->ranks, numbers) -
					     neap__rank_number(r, room->ranks, numbers));
	return room->to;
}

/* Adds up the units inside the support, and those there were: whole numbers. */
static int add_support(struct neap_net *net)
{
	struct neap__peer_room *room = net->peer_room;
	const struct neap_peers *peers = net->objective.peers;
	double own[2] = {0}, (*all)[2] = room->shares;

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
	room->ended = rc == 0;
	return rc;
}

int neap__peer_gradients(struct neap_net *net)
{
	const struct neap__peer_room *room = net->peer_room;
	const struct neap_peers *peers = net->objective.peers;
	size_t most = 0;
	int rc = 0;

	for (int r = 0; r < room->ranks; r++) {
		size_t slice = neap__rank_number(r + 1, room->ranks, net->elements) -
			       neap__rank_number(r, room->ranks, net->elements);
		most = slice > most ? slice : most;
	}
	for (size_t at = 0; at < most && rc == 0; at += room->round) {
		struct round round = {net, at};
		rc = run_round(&round);
	}
	/* The gradient of a scale needs those of all its weights. */
	if (rc == 0 && (!net->keeps_slice || net->has_norm))
		rc = peers->gather(peers->user, net->tensors[0].grad,
			slices_of(net, net->elements, sizeof(double)));
	if (rc == 0)
		rc = add_support(net);
	return rc < 0 ? lost(rc, "gradients") : 0;
}
