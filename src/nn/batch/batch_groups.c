/* SPDX-License-Identifier: Apache-2.0 */
/* batch_groups.c: divides a batch into groups and allocates them (batch_groups.h). */
#include "nn/batch/batch_groups.h"
#include "nn/batch/group_memory.h"
#include "nn/batch/peer_sum.h"
#include "nn/gradients/deferred_sums.h"
#include "nn/gradients/outer_tiles.h"
#include "base/checked.h"
#include "base/fail.h"
#include "ranks/rank_share.h"
#include "base/debug_log.h"
#include "sys/pool.h"

#include <errno.h>

/*
 * Samples per sum if --group is 0. More samples share each read of the weights; fewer give more
 * threads work. Batches of LARGE_BATCH and more have enough work for sums of twice the size. All
 * numbers are chosen, not tuned, and fixed: they must not depend on the number of threads, because
 * the bits of the gradients depend on them, and any other value changes these bits.
 */
enum { LARGE_BATCH = 64, SUM_SMALL = 8, SUM_LARGE = 16, SUM_DENSE = 32 };
/*
 * A dense net adds up its outputs in parts of a fourth of a sum, so that four threads can work on
 * one sum, but of at least PART_LEAST samples, because a matrix product reads all weights once per
 * group. A group is one part, or two if that leaves enough groups for all threads: groups do not
 * change bits, and twice the samples take 0.88 of the time each (LSTM of 512 units, AVX-512).
 * PART_LEAST and PART_MOST are chosen.
 */
enum { PART_LEAST = 4, PART_MOST = 8 };
static const double pair_time = 0.88;

static int part_of(int per_sum)
{
	int part = (per_sum + 3) / 4;

	part = part < PART_LEAST ? PART_LEAST : part;
	part = part > PART_MOST ? PART_MOST : part;
	return part < per_sum ? part : per_sum;
}

/* Parts per group: 2 if the threads then take less time for `sums` sums of `parts` parts. */
static int parts_of(const struct neap_net *net, int sums, int parts)
{
	int threads = neap__thread_pool_threads(net->pool);
	int single = sums * parts, pairs = sums * ((parts + 1) / 2);
	int rounds = (single + threads - 1) / threads,
	    rounds_of_pairs = (pairs + threads - 1) / threads;

	return parts > 1 && 2 * rounds_of_pairs * pair_time <= rounds ? NEAP__GROUP_PARTS : 1;
}

static struct neap__sample_split cut_of(const struct neap_net *net, int batch)
{
	int most = net->dense ? SUM_DENSE : batch < LARGE_BATCH ? SUM_SMALL : SUM_LARGE;
	struct neap__sample_split d = {.per_sum = net->options.group ? net->options.group : most};

	batch = batch > 1 ? batch : 1; /* per_sum is a divisor, also in an empty batch */
	d.per_sum = d.per_sum < batch ? d.per_sum : batch;
	d.per_group = d.per_part = d.per_sum;
	if (net->dense) {
		int sums = (batch + d.per_sum - 1) / d.per_sum;
		d.per_part = part_of(d.per_sum);
		d.per_group =
			d.per_part * parts_of(net, sums, (d.per_sum + d.per_part - 1) / d.per_part);
		d.per_group = d.per_group < d.per_sum ? d.per_group : d.per_sum;
	}
	return d;
}

int neap_net_group(const struct neap_net *net, int samples)
{
	NEAP_NEED(net);
	return cut_of(net, samples).per_sum;
}

struct neap__sample_split neap__split_samples(const struct neap_net *net, int whole, int own)
{
	struct neap__sample_split d = cut_of(net, whole);

	if (own == 0)
		return d;
	d.ngrads = (own + d.per_sum - 1) / d.per_sum;
	int last = own - (d.ngrads - 1) * d.per_sum;
	d.ngroups = (d.ngrads - 1) * ((d.per_sum + d.per_group - 1) / d.per_group) +
		    (last + d.per_group - 1) / d.per_group;
	return d;
}

/* The share of this rank in a batch of `whole` samples. */
static int share_of(const struct neap_net *net, int whole)
{
	const struct neap__peer_room *room = net->peer_room;
	int per_sum = cut_of(net, whole).per_sum;

	return !room ? whole
		     : neap__rank_sample(room->rank + 1, room->ranks, whole, per_sum) -
			       neap__rank_sample(room->rank, room->ranks, whole, per_sum);
}

static void free_groups(struct neap_net *net)
{
	for (int g = 0; g < net->group_room; g++)
		neap__group_free(net, &net->groups[g]);
	for (int g = 0; g < net->grads_room; g++)
		neap__grads_free(net, &net->grads[g]);
	for (int i = 0; i < net->ndeferred; i++)
		neap__deferred_free(net, &net->deferred[i]);
	for (int i = 0; net->team && i < neap__thread_pool_threads(net->pool); i++)
		neap__outer_team_free(net, &net->team[i]);
	neap__net_put(net, net->team);
	neap__net_put(net, net->deferred);
	neap__net_put(net, net->grads);
	neap__net_put(net, net->groups);
	net->team = NULL;
	net->deferred = NULL;
	net->grads = NULL;
	net->groups = NULL;
	net->group_room = net->ngroups = net->grads_room = net->ngrads = net->ndeferred = 0;
	net->group_size = net->grads_size = 0;
}

/* Number of deferred sums: one per thread, or in a dense net one per struct neap__grads. */
static int deferred_of(const struct neap_net *net, int sums)
{
	return net->dense ? sums : neap__thread_pool_threads(net->pool);
}

static int64_t terms_of(int samples)
{
	return (int64_t)neap__deferred_steps(samples) * samples;
}

static int make_deferred(struct neap_net *net, int samples)
{
	int threads = neap__thread_pool_threads(net->pool);
	int deferred = deferred_of(net, net->grads_room);

	net->deferred = neap__net_get_zeroed(net, (uint64_t)deferred, sizeof *net->deferred);
	if (net->dense)
		net->team = neap__net_get_zeroed(net, (uint64_t)threads, sizeof *net->team);
	if (!net->deferred || (net->dense && !net->team))
		return neap__fail_errno(ENOMEM, "%d groups", deferred);
	for (; net->ndeferred < deferred; net->ndeferred++)
		NEAP_TRY(neap__deferred_make(net, &net->deferred[net->ndeferred], samples));
	for (int i = 0; i < threads && net->dense; i++)
		NEAP_TRY(neap__outer_team_make(net, &net->team[i], terms_of(samples)));
	return 0;
}

/* Length of an array of groups, sums or samples; 1 for a rank without any: it is not NULL. */
static int room_of(int count)
{
	return count > 0 ? count : 1;
}

static int make_all(struct neap_net *net, const struct neap__sample_split *split)
{
	const int room = room_of(split->ngroups), sums = room_of(split->ngrads);

	net->groups = neap__net_get_zeroed(net, (uint64_t)room, sizeof *net->groups);
	net->grads = neap__net_get_zeroed(net, (uint64_t)sums, sizeof *net->grads);
	if (!net->groups || !net->grads)
		return neap__fail_errno(ENOMEM, "%d groups", room);
	net->group_room = room;
	net->grads_room = sums;
	NEAP_TRY(make_deferred(net, split->per_sum));
	for (int g = 0; g < sums; g++)
		NEAP_TRY(neap__grads_make(net, &net->grads[g]));
	for (int g = 0; g < room; g++)
		NEAP_TRY(neap__group_make(net, &net->groups[g], split->per_group));
	net->group_size = split->per_group;
	net->grads_size = split->per_sum;
	return 0;
}

int neap__groups_make(struct neap_net *net, const struct neap__sample_split *split)
{
	if (net->grads && split->per_sum <= net->grads_size && split->ngrads <= net->grads_room &&
		split->per_group <= net->group_size && split->ngroups <= net->group_room)
		return 0;
	neap__debug("batch: %d groups of at most %d samples, %d gradient sums of at most %d",
		split->ngroups, split->per_group, split->ngrads, split->per_sum);
	/* Freed first: the old and the new groups together could exceed the budget. */
	free_groups(net);
	int rc = make_all(net, split);
	if (rc < 0)
		free_groups(net);
	return rc;
}

/* Bytes that make_all allocates: all but the rows of inputs. */
static uint64_t split_bytes(const struct neap_net *net, const struct neap__sample_split *split)
{
	uint64_t room = (uint64_t)room_of(split->ngroups), sums = (uint64_t)room_of(split->ngrads);
	uint64_t deferred = (uint64_t)deferred_of(net, (int)sums);
	uint64_t threads = net->dense ? (uint64_t)neap__thread_pool_threads(net->pool) : 0;
	const struct {
		uint64_t count, size;
	} made[] = {
		{1, neap__block_bytes(room, sizeof *net->groups)},
		{1, neap__block_bytes(sums, sizeof *net->grads)},
		{1, neap__block_bytes(deferred, sizeof *net->deferred)},
		{threads > 0, neap__block_bytes(threads, sizeof *net->team)},
		{room, neap__group_bytes(net, split->per_group)},
		{sums, neap__grads_bytes(net)},
		{deferred, neap__deferred_bytes(net, split->per_sum)},
		{threads, neap__outer_team_bytes(net, terms_of(split->per_sum))},
	};
	uint64_t bytes = 0;

	for (size_t i = 0; i < sizeof made / sizeof made[0]; i++)
		bytes = neap__sat_add(bytes, neap__sat_mul(made[i].count, made[i].size));
	return bytes;
}

/* Bytes that neap__samples_make allocates; 0 samples: it was not called yet. */
static uint64_t sample_bytes(const struct neap_net *net, int samples)
{
	uint64_t rows = (uint64_t)samples, classes = (uint64_t)net->options.classes;

	if (samples == 0)
		return 0;
	return neap__block_bytes(rows, sizeof *net->step_loss) +
	       neap__block_bytes(rows, sizeof *net->step_right) +
	       neap__block_bytes(rows, sizeof *net->prediction) +
	       neap__block_bytes(rows, classes * sizeof *net->answer);
}

uint64_t neap__net_growth(const struct neap_net *net, const int *sizes, int count, int all_rows)
{
	struct neap__sample_split now = {.per_sum = net->grads_size,
		.per_group = net->group_size,
		.ngrads = net->grads_room,
		.ngroups = net->group_room};
	uint64_t held = 0, largest = 0, growth;
	int rows = 0, samples = net->sample_room;

	if (net->grads)
		held = largest = split_bytes(net, &now);
	for (int g = 0; g < net->grads_room; g++) {
		const struct neap__grads *grads = &net->grads[g];
		rows = grads->input_room > rows ? grads->input_room : rows;
		if (grads->input_memory)
			held = neap__sat_add(held, neap__input_rows_bytes(net, grads->input_room));
	}
	if (all_rows)
		rows = net->options.inputs;
	uint64_t row_bytes = neap__input_rows_bytes(net, rows);
	largest = neap__sat_add(largest, neap__sat_mul((uint64_t)net->grads_room, row_bytes));
	for (int i = 0; i < count; i++) {
		int own = share_of(net, room_of(sizes[i]));
		struct neap__sample_split split = neap__split_samples(net, room_of(sizes[i]), own);
		uint64_t bytes = neap__sat_mul((uint64_t)room_of(split.ngrads), row_bytes);
		bytes = neap__sat_add(bytes, split_bytes(net, &split));
		largest = bytes > largest ? bytes : largest;
		samples = room_of(own) > samples ? room_of(own) : samples;
	}
	growth = largest > held ? largest - held : 0;
	return neap__sat_add(
		growth, sample_bytes(net, samples) - sample_bytes(net, net->sample_room));
}

int neap__samples_make(struct neap_net *net, int samples)
{
	uint64_t rows = (uint64_t)samples, classes = (uint64_t)net->options.classes;

	if (samples <= net->sample_room)
		return 0;
	neap__net_put(net, net->step_loss);
	neap__net_put(net, net->step_right);
	neap__net_put(net, net->prediction);
	neap__net_put(net, net->answer);
	net->sample_room = 0;
	net->step_loss = neap__net_get(net, rows, sizeof *net->step_loss);
	net->step_right = neap__net_get(net, rows, sizeof *net->step_right);
	net->prediction = neap__net_get(net, rows, sizeof *net->prediction);
	net->answer = neap__net_get(net, rows, classes * sizeof *net->answer);
	if (!net->step_loss || !net->step_right || !net->prediction || !net->answer)
		return neap__fail_errno(ENOMEM, "batch of %d samples", samples);
	net->sample_room = samples;
	return 0;
}
