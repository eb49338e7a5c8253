/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch.c: a batch in a net: begins it, assigns its samples to groups, adds up sizes, takes windows
 * of its events, and adds up the gradients at its end.
 */
#include "nn/batch/batch.h"
#include "nn/batch/batch_checks.h"
#include "nn/batch/batch_groups.h"
#include "nn/batch/group_memory.h"
#include "nn/batch/group_sums.h"
#include "nn/batch/norm_sums.h"
#include "nn/batch/peer_sum.h"
#include "nn/core/cell.h"
#include "nn/core/on_device.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "ranks/rank_share.h"

#include <string.h>

/* Adds up the sizes of what a group's samples need, and clears what the group counts. */
static int fill(struct neap_net *net, const struct neap_batch *batch, struct neap__group *group)
{
	group->state_at = net->state_bytes;
	group->adjoint_at = net->adjoint_bytes;
	group->steps = 0;
	for (int s = 0; s < group->size; s++) {
		int64_t length = batch->sequences[group->first + s].length;
		group->steps = length > group->steps ? length : group->steps;
		net->sample_steps += (double)length;
	}
	net->state_bytes += group->size * net->sample_state;
	net->adjoint_bytes += group->size * net->sample_adjoint;
	group->step_tape = neap__round_up(group->size * net->sample_tape, 8);
	if (group->step_tape > UINT32_MAX / 2)
		return neap__fail(NEAP_EOVERFLOW,
			"the tape of a step of %d samples takes %zu bytes; use a smaller --group",
			group->size, group->step_tape);
	group->step_log = neap__round_up(group->size * net->sample_log, 8);
	memset(group->spikes, 0, neap__group_spikes(net) * sizeof *group->spikes);
	group->support = group->recorded = 0;
	return 0;
}

/* Assigns the samples of the batch to groups and adds up the sizes of all. */
static int assign_samples(struct neap_net *net, const struct neap_batch *batch,
	const struct neap__sample_split *split)
{
	uint64_t tape = NEAP__TAPE_HEAD, log = NEAP__TAPE_HEAD;
	struct neap__group *group = net->groups;

	net->state_bytes = net->adjoint_bytes = 0;
	net->sample_steps = 0;
	for (int g = 0; g < net->ngrads; g++) {
		struct neap__grads *grads = &net->grads[g];
		int left = batch->size - g * split->per_sum;
		grads->first = g * split->per_sum;
		grads->size = left < split->per_sum ? left : split->per_sum;
		for (int s = 0; s < grads->size; s += split->per_group, group++) {
			left = grads->size - s;
			group->grads = grads;
			group->first = grads->first + s;
			group->size = left < split->per_group ? left : split->per_group;
			group->per_part = split->per_part;
			NEAP_TRY(fill(net, batch, group));
			tape += NEAP__TAPE_GROUP + group->step_tape;
			log += NEAP__TAPE_GROUP + group->step_log;
		}
	}
	NEAP_TRY(neap__grads_begin(net, batch));
	net->tape_max = tape;
	net->log_max = net->has_log ? log : 0;
	net->is_packed = net->has_strips = net->skips_readout = 0;
	net->fixed_tape = net->sample_steps == (double)batch->size * (double)batch->steps;
	for (int l = net->taped_from; l < net->nlayers - 1; l++)
		net->fixed_tape &= net->layers[l].dense;
	return 0;
}

/* Sets each rate to that of the current batch, if steps of it were recorded or logged. */
static void measure_rates(const struct neap_net *net, double *tape_rate, double *log_rate)
{
	double tape_bytes = 0, tape_steps = 0, log_bytes = 0, log_steps = 0;

	for (int g = 0; g < net->ngroups; g++) {
		const struct neap__group *group = &net->groups[g];
		tape_bytes += group->tape_bytes;
		tape_steps += group->tape_steps;
		log_bytes += group->log_bytes;
		log_steps += group->log_steps;
	}
	if (tape_steps > 0)
		*tape_rate = tape_bytes / tape_steps;
	if (log_steps > 0)
		*log_rate = log_bytes / log_steps;
}

/*
 * Estimated size of a step before a batch was recorded or logged: a share of the largest log or the
 * largest sparse tape, plus the counts of spikes. The shares were measured on a net of the SPEECH
 * recipe; they only matter until the first batch has been recorded.
 */
static const double log_share = 0.03, tape_share = 0.17;
enum { LOG_COUNTS = 4, TAPE_COUNTS = 8 };

static double estimate_tape(const struct neap_net *net)
{
	double bytes = 0;

	for (int l = net->taped_from; l < net->nlayers; l++) {
		const struct neap__layer *layer = &net->layers[l];
		double most = (double)neap__layer_tape(net, layer);
		int sparse = !layer->cell->readout && !layer->dense;
		bytes += sparse ? TAPE_COUNTS + tape_share * most : most;
	}
	return bytes;
}

/* Keeps the bytes of tape and log per sample and step, measured so far or else estimated. */
static void keep_rates(struct neap_net *net)
{
	measure_rates(net, &net->tape_rate, &net->log_rate);
	for (int g = 0; g < net->ngroups; g++) {
		struct neap__group *group = &net->groups[g];
		group->tape_bytes = group->tape_steps = group->log_bytes = group->log_steps = 0;
	}
	if (!(net->tape_rate > 0))
		net->tape_rate = estimate_tape(net);
	if (!(net->log_rate > 0))
		net->log_rate = LOG_COUNTS + log_share * (double)net->sample_log;
}

static void begin_dropout(struct neap_net *net)
{
	net->drops = net->can_drop && net->objective.dropout > 0;
	for (int i = 0; i < net->ntensors; i++)
		net->tensors[i].factor = 1;
	for (int l = 0; l < net->nlayers && net->drops; l++) { /* of several sources: by rows */
		const struct neap__layer *layer = &net->layers[l];
		const struct neap__layer *from = neap__source_of(layer, 0);
		if (!from || layer->nsources > 1)
			continue;
		net->tensors[layer->weight].factor = neap__dropout_scale(from);
		if (neap__has_delays(layer) && layer->delays.tensor >= 0)
			net->tensors[layer->delays.tensor].factor = neap__dropout_scale(from);
	}
	for (int g = 0; net->drops && g < net->ngroups; g++)
		net->ops->draw(net, &net->groups[g]);
}

/* Zeroes what the batch will add up. */
static void clear_findings(struct neap_net *net)
{
	memset(net->step_loss, 0, (size_t)net->sample_room * sizeof *net->step_loss);
	memset(net->step_right, 0, (size_t)net->sample_room * sizeof *net->step_right);
	if (!neap__on_device_keeps(net))
		memset(net->tensors[0].grad, 0, net->elements * sizeof(double));
	memset(net->rate, 0, (size_t)net->nlayers * sizeof *net->rate);
	net->result = (struct neap_net_result){.size = sizeof(struct neap_net_result),
		.layers = net->nlayers - 1,
		.prediction = net->prediction,
		.answer = net->answer,
		.rate = net->rate};
}

/* Allocates everything that the batch needs, and assigns its samples. */
static int make_room(struct neap_net *net, const struct neap_batch *batch)
{
	const struct neap_peers *peers = net->objective.peers;
	int whole = batch->of > 0 ? batch->of : batch->size;
	struct neap__sample_split split = neap__split_samples(net, whole, batch->size);

	if (net->peer_room)
		net->peer_room->ended = 0;
	if (peers)
		NEAP_TRY(neap__peer_begin(net, batch, peers, split.per_sum));
	NEAP_TRY(neap__groups_make(net, &split));
	NEAP_TRY(neap__samples_make(net, batch->size > 0 ? batch->size : 1));
	net->ngroups = split.ngroups;
	net->ngrads = split.ngrads;
	return assign_samples(net, batch, &split);
}

int neap_net_begin(struct neap_net *net, const struct neap_batch *batch,
	const struct neap_objective *objective)
{
	NEAP_NEED(net);
	keep_rates(net);
	/* If this call fails, no batch is begun, and no result refers to freed arrays. */
	net->batch = NULL;
	net->result = (struct neap_net_result){.size = sizeof(struct neap_net_result)};
	net->objective = (struct neap_objective){.size = sizeof(struct neap_objective)};
	if (objective) {
		NEAP_TRY(neap__struct_size(objective->size,
			offsetof(struct neap_objective, readout_once), sizeof *objective,
			"neap_objective"));
		NEAP_TRY(neap__struct_take(
			&net->objective, sizeof net->objective, objective, "neap_objective"));
	}
	NEAP_TRY(neap__batch_check(net, batch));
	NEAP_TRY(make_room(net, batch));
	net->batch = batch;
	net->events = batch->sequences;
	net->events_from = 0;
	net->events_to = batch->windows ? 0 : INT64_MAX;
	for (int l = 0; l < net->nlayers; l++) {
		net->ops->leak(net, &net->layers[l]);
		net->ops->bias(net, &net->layers[l]);
		net->ops->delays(net, &net->layers[l]);
	}
	begin_dropout(net);
	const struct neap_rate_penalty *p = &net->objective.rates;
	net->has_penalty = net->objective.loss && (p->upper_weight != 0 || p->lower_weight != 0 ||
							  p->l1 != 0 || p->l2 != 0);
	clear_findings(net);
	int rc = neap__on_device_begin(net);
	if (rc < 0)
		net->batch = NULL;
	return rc;
}

int neap__net_window(struct neap_net *net, int64_t t)
{
	struct neap_window window;

	if (net->events_from <= t && t < net->events_to)
		return 0;
	net->events_to = 0;
	NEAP_TRY(neap_windows_take(net->batch->windows, t, &window));
	net->events = window.sequences;
	net->events_from = window.from;
	net->events_to = window.to;
	return 0;
}

void neap_net_will_touch(void *user, int64_t t0, int64_t t1)
{
	if (!user)
		return;
	const struct neap_net *net = user;

	if (net->batch && net->batch->windows)
		neap_windows_expect(net->batch->windows, t0, t1);
}

int neap_net_get_sizes(const struct neap_net *net, struct neap_net_sizes *sizes)
{
	NEAP_NEED(net, sizes);
	double alive =
		net->batch && net->batch->steps ? net->sample_steps / (double)net->batch->steps : 0;
	double tape_rate = net->tape_rate, log_rate = net->log_rate;

	measure_rates(net, &tape_rate, &log_rate);
	NEAP_TRY(neap__struct_size(sizes->size, sizeof *sizes, sizeof *sizes, "neap_net_sizes"));
	*sizes = (struct neap_net_sizes){.size = sizeof(struct neap_net_sizes),
		.state = net->state_bytes,
		.adjoint = net->adjoint_bytes,
		.tape_max = net->tape_max,
		.log_max = net->log_max};
	/* A step's share of headers: a round has 8 steps or more; offsets take 4 or 8 bytes a
	 * group. */
	sizes->tape_mean = (size_t)(tape_rate * alive) + NEAP__TAPE_HEAD / 8 +
			   (size_t)net->ngroups * NEAP__TAPE_GROUP / 4;
	if (sizes->tape_mean > net->tape_max || (net->batch && net->fixed_tape))
		sizes->tape_mean = net->tape_max;
	if (net->has_log)
		sizes->log_mean = (size_t)(log_rate * alive) + NEAP__TAPE_HEAD / 8 +
				  (size_t)net->ngroups * NEAP__TAPE_GROUP / 2;
	/* The logs of all steps on a device have one size. */
	if (sizes->log_mean > net->log_max || (net->batch && net->backend))
		sizes->log_mean = net->log_max;
	for (int i = 0; i < net->ntensors; i++)
		sizes->weights += (size_t)net->tensors[i].count * net->ops->real;
	sizes->grads =
		net->elements * sizeof(double) + (size_t)net->grads_room * neap__grads_bytes(net);
	for (int g = 0; g < net->grads_room; g++)
		if (net->grads[g].input_memory)
			sizes->grads += neap__input_rows_bytes(net, net->grads[g].input_room);
	/* The remainder: the three numbers add up to all allocated bytes. */
	sizes->workspace = net->blocks.bytes - sizes->weights - sizes->grads;
	return 0;
}

int neap_net_end(struct neap_net *net)
{
	NEAP_NEED(net);
	if (!net->batch)
		return 0;
	int rc = neap__on_device_end(net);
	if (rc < 0) {
		net->batch = NULL;
		return rc;
	}
	if (!net->objective.peers && !neap__on_device_keeps(net))
		neap__gradient_sums(net);
	else if (net->objective.peers && net->peer_room->has_gradients)
		rc = neap__peer_gradients(net);
	if (rc == 0 && (!net->objective.peers || net->peer_room->has_gradients))
		neap__norm_end(net);
	net->batch = NULL;
	return rc;
}

void neap__net_drop(struct neap_net *net)
{
	net->batch = NULL;
}

void neap__net_keep_slice(struct neap_net *net, int rank, int ranks)
{
	net->keeps_slice = 1;
	net->slice_from = neap__rank_number(rank, ranks, net->elements);
	net->slice_to = neap__rank_number(rank + 1, ranks, net->elements);
}
