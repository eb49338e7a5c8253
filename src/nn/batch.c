/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch.c: a batch in a net: checks the batch, assigns its samples to groups, makes room, adds up
 * sizes, and adds up the gradients at the batch's end.
 */
#include "nn/batch.h"
#include "nn/core/cell.h"
#include "nn/gradients/deferred_sums.h"
#include "nn/gradients/outer_tiles.h"
#include "nn/group_sums.h"
#include "nn/layout.h"
#include "nn/peer_sum.h"
#include "base/checked.h"
#include "base/fail.h"
#include "ranks/rank_share.h"
#include "base/struct_size.h"
#include "sys/pool.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void neap__groups_free(struct neap_net *net)
{
	for (int g = 0; g < net->group_room; g++)
		neap__group_free(&net->groups[g]);
	for (int g = 0; g < net->grads_room; g++)
		neap__grads_free(&net->grads[g]);
	for (int i = 0; i < net->ndeferred; i++)
		neap__deferred_free(&net->deferred[i]);
	for (int i = 0; net->team && i < neap__thread_pool_threads(net->pool); i++)
		neap__outer_team_free(&net->team[i]);
	free(net->team);
	free(net->deferred);
	free(net->grads);
	free(net->groups);
	net->team = NULL;
	net->deferred = NULL;
	net->grads = NULL;
	net->groups = NULL;
	net->group_room = net->ngroups = net->grads_room = net->ngrads = net->ndeferred = 0;
}

static int is_of_steps(const struct neap_batch *batch)
{
	return batch->target == NEAP_TARGET_LABELS || batch->target == NEAP_TARGET_SERIES;
}

static int check_values(
	const struct neap_net *net, const struct neap_sequence *s, const float *values)
{
	size_t inputs = (size_t)net->options.inputs, count = inputs * (size_t)s->length;

	for (size_t i = 0; i < count; i++)
		if (!isfinite(values[i]))
			return neap__fail(NEAP_EUSAGE,
				"sample %lld, step %zu: input %zu is not a finite number",
				(long long)s->index, i / inputs, i % inputs);
	return 0;
}

static int check_events(const struct neap_net *net, const struct neap_sequence *s)
{
	long long index = (long long)s->index;

	for (int64_t t = 0; t < s->length; t++) {
		if (s->start[t] > s->start[t + 1])
			return neap__fail(NEAP_EUSAGE,
				"sample %lld: events of step %lld end before they start", index,
				(long long)t);
		for (uint32_t e = s->start[t]; e < s->start[t + 1]; e++)
			if (s->unit[e] >= net->options.inputs ||
				(e > s->start[t] && s->unit[e] <= s->unit[e - 1]))
				return neap__fail(NEAP_EUSAGE,
					"sample %lld, step %lld: units must ascend below %d; found "
					"%d",
					index, (long long)t, net->options.inputs, s->unit[e]);
	}
	return 0;
}

/*
 * Targets of steps: labels within the classes, and no more steps that count than the sample says; a
 * batch that is cut has less.
 */
static int check_steps(
	const struct neap_net *net, const struct neap_batch *batch, const struct neap_sequence *s)
{
	int classes = net->options.classes;
	int64_t counted = 0;

	for (int64_t t = 0; t < s->length && batch->target == NEAP_TARGET_LABELS; t++) {
		if (s->labels[t] >= classes)
			return neap__fail(NEAP_EUSAGE,
				"sample %lld, step %lld has label %d; the network has %d classes",
				(long long)s->index, (long long)t, s->labels[t], classes);
		counted += s->labels[t] >= 0;
	}
	for (int64_t t = 0; t < s->length && batch->target == NEAP_TARGET_SERIES; t++)
		counted += !isnan(s->series[t * classes]);
	return counted <= s->counted
		       ? 0
		       : neap__fail(NEAP_EUSAGE,
				 "sample %lld has %lld steps with a target, more than %lld",
				 (long long)s->index, (long long)counted, (long long)s->counted);
}

static int check_sample(
	const struct neap_net *net, const struct neap_batch *batch, const struct neap_sequence *s)
{
	long long index = (long long)s->index;

	if (s->length < 0 || s->length > batch->steps)
		return neap__fail(NEAP_EUSAGE, "sample %lld has %lld steps, but its batch has %lld",
			index, (long long)s->length, (long long)batch->steps);
	if (s->label >= net->options.classes)
		return neap__fail(NEAP_EUSAGE,
			"sample %lld has label %d; the network has %d classes", index, s->label,
			net->options.classes);
	if (s->label < 0 && !s->target && net->objective.loss && !is_of_steps(batch))
		return neap__fail(NEAP_EUSAGE, "sample %lld has neither label nor target", index);
	if (batch->windows)
		return 0; /* windows check their inputs when they read them */
	if (is_of_steps(batch))
		NEAP_TRY(check_steps(net, batch, s));
	return batch->values ? check_values(net, s, s->values) : check_events(net, s);
}

/* Whether the batch's inputs and targets are of the kinds that net and loss take. */
static int check_kinds(const struct neap_net *net, const struct neap_batch *batch)
{
	const struct neap_loss *loss = net->objective.loss;
	int numbers = batch->target == NEAP_TARGET_NUMBERS || batch->target == NEAP_TARGET_SERIES;

	if ((batch->values != 0) != (net->options.values != 0))
		return neap__fail(NEAP_EUSAGE, "the inputs are %s, but the network takes %s",
			batch->values ? "numbers" : "spikes",
			net->options.values ? "numbers" : "spikes");
	if ((unsigned)batch->target >= NEAP_TARGETS)
		return neap__fail(NEAP_EUSAGE, "a batch with targets of kind %d", batch->target);
	if (loss && is_of_steps(batch) && net->options.readout != NEAP_READ_STEP)
		return neap__fail(NEAP_EUSAGE,
			"the data has a target per step, which requires --readout step");
	if (loss && numbers && !loss->takes_numbers)
		return neap__fail(NEAP_EUSAGE,
			"the targets are numbers, but --loss %s requires classes; use mse",
			loss->name);
	return 0;
}

/* How a batch is cut: samples whose gradients are summed together, samples of a group, counts. */
struct sample_split {
	int per_sum, per_group, ngrads, ngroups;
};

/*
 * Samples that are summed together where the options do not say: more share reads of weights, fewer
 * give more threads work. In batches of LARGE_BATCH and more there is work enough for twice as
 * many. The numbers depend on the batch alone, so that the bits of gradients do not depend on
 * threads.
 */
enum { LARGE_BATCH = 64, SUM_SMALL = 8, SUM_LARGE = 16, SUM_DENSE = 32 };
/* Samples of a group of a dense net: a fourth of those summed together, within these. */
enum { DENSE_PARTS = 4, DENSE_LEAST = 4, DENSE_MOST = 8 };

static struct sample_split cut_of(const struct neap_net *net, int batch)
{
	int most = net->dense ? SUM_DENSE : batch < LARGE_BATCH ? SUM_SMALL : SUM_LARGE;
	struct sample_split d = {.per_sum = net->options.group ? net->options.group : most};

	d.per_sum = d.per_sum < batch ? d.per_sum : batch;
	d.per_group = d.per_sum;
	if (net->dense) {
		int part = (d.per_sum + DENSE_PARTS - 1) / DENSE_PARTS;
		part = part < DENSE_LEAST ? DENSE_LEAST : part;
		part = part > DENSE_MOST ? DENSE_MOST : part;
		d.per_group = part < d.per_sum ? part : d.per_sum;
	}
	return d;
}

/* Counts the groups of so many samples of a batch that is cut so. */
static void count_groups(struct sample_split *d, int samples)
{
	d->ngrads = (samples + d->per_sum - 1) / d->per_sum;
	int last = samples - (d->ngrads - 1) * d->per_sum;
	d->ngroups = samples == 0
			     ? 0
			     : (d->ngrads - 1) * ((d->per_sum + d->per_group - 1) / d->per_group) +
				       (last + d->per_group - 1) / d->per_group;
}

int neap_net_group(const struct neap_net *net, int samples)
{
	NEAP_NEED(net);
	return cut_of(net, samples > 0 ? samples : 1).per_sum;
}

/* How this process's part of a batch of so many samples is cut. */
static struct sample_split split_of(const struct neap_net *net, int whole)
{
	struct sample_split d = cut_of(net, whole);
	const struct neap__peer_room *room = net->peer_room;
	int first = 0, end = whole;

	if (room) {
		first = neap__rank_sample(room->rank, room->ranks, whole, d.per_sum);
		end = neap__rank_sample(room->rank + 1, room->ranks, whole, d.per_sum);
	}
	count_groups(&d, end - first);
	return d;
}

/* Makes the deferred sums: one a thread, or in a dense net one a struct neap__grads. */
static int make_deferred(struct neap_net *net, int samples)
{
	int threads = neap__thread_pool_threads(net->pool),
	    deferred = net->dense ? net->grads_room : threads;

	net->deferred = calloc((size_t)deferred, sizeof *net->deferred);
	if (net->dense)
		net->team = calloc((size_t)threads, sizeof *net->team);
	if (!net->deferred || (net->dense && !net->team))
		return neap__fail_errno(ENOMEM, "%d groups", deferred);
	for (; net->ndeferred < deferred; net->ndeferred++)
		NEAP_TRY(neap__deferred_make(net, &net->deferred[net->ndeferred], samples));
	for (int i = 0; i < threads && net->dense; i++)
		NEAP_TRY(neap__outer_team_make(
			net, &net->team[i], (int64_t)net->deferred->steps * samples));
	return 0;
}

/* A batch that is cut otherwise has memory of its own: room for both would be more than either. */
static int make_groups(struct neap_net *net, const struct sample_split *split)
{
	if (net->grads && split->per_sum <= net->grads_size && split->ngrads <= net->grads_room &&
		split->per_group <= net->group_size && split->ngroups <= net->group_room)
		return 0;
	const int size = split->per_group, per_sum = split->per_sum;
	const int room = split->ngroups > 0 ? split->ngroups : 1; /* of a rank without samples */
	const int sums = split->ngrads > 0 ? split->ngrads : 1;
	neap__groups_free(net);
	net->group_size = net->grads_size = 0;
	net->groups = calloc((size_t)room, sizeof *net->groups);
	net->grads = calloc((size_t)sums, sizeof *net->grads);
	if (!net->groups || !net->grads)
		return neap__fail_errno(ENOMEM, "%d groups", room);
	net->group_room = room;
	net->grads_room = sums;
	NEAP_TRY(make_deferred(net, per_sum));
	for (int g = 0; g < sums; g++)
		NEAP_TRY(neap__grads_make(net, &net->grads[g]));
	for (int g = 0; g < room; g++)
		NEAP_TRY(neap__group_make(net, &net->groups[g], size));
	net->group_size = size;
	net->grads_size = per_sum;
	return 0;
}

/* Bytes of the groups of a batch that is cut so, whose sums have `rows` rows of inputs each. */
static uint64_t split_bytes(const struct neap_net *net, const struct sample_split *split, int rows)
{
	int threads = neap__thread_pool_threads(net->pool);
	uint64_t sum = neap__sat_add(neap__grads_bytes(net),
		neap__sat_mul(net->grads->slot ? (uint64_t)rows : 0, neap__grads_row_bytes(net)));
	uint64_t bytes = neap__sat_mul((uint64_t)split->ngrads, sum);

	bytes = neap__sat_add(bytes,
		neap__sat_mul((uint64_t)split->ngroups, neap__group_bytes(net, split->per_group)));
	bytes = neap__sat_add(bytes, neap__sat_mul((uint64_t)(net->dense ? split->ngrads : threads),
					     neap__deferred_bytes(net, split->per_sum)));
	if (net->dense)
		bytes = neap__sat_add(
			bytes, neap__sat_mul((uint64_t)threads,
				       neap__outer_team_bytes(net,
					       (int64_t)net->deferred->steps * split->per_sum)));
	return bytes;
}

uint64_t neap__net_growth(const struct neap_net *net, const int *sizes, int count, int all_rows)
{
	struct sample_split now = {.per_sum = net->grads_size,
		.per_group = net->group_size,
		.ngrads = net->grads_room,
		.ngroups = net->group_room};
	int rows = 0, most;
	uint64_t held, largest = 0;

	for (int g = 0; g < net->grads_room; g++)
		rows = net->grads[g].input_room > rows ? net->grads[g].input_room : rows;
	held = split_bytes(net, &now, 0);
	for (int g = 0; g < net->grads_room; g++)
		held = neap__sat_add(held, neap__sat_mul((uint64_t)net->grads[g].input_room,
						   neap__grads_row_bytes(net)));
	most = all_rows ? net->options.inputs : rows;
	largest = split_bytes(net, &now, most);
	for (int i = 0; i < count; i++) {
		struct sample_split split = split_of(net, sizes[i] > 0 ? sizes[i] : 1);
		uint64_t bytes = split_bytes(net, &split, most);
		largest = bytes > largest ? bytes : largest;
	}
	return largest > held ? largest - held : 0;
}

static int make_samples(struct neap_net *net, int samples)
{
	if (samples <= net->sample_room)
		return 0;
	free(net->step_loss);
	free(net->step_right);
	free(net->prediction);
	free(net->answer);
	net->sample_room = 0;
	net->step_loss = malloc((size_t)samples * sizeof *net->step_loss);
	net->step_right = malloc((size_t)samples * sizeof *net->step_right);
	net->prediction = malloc((size_t)samples * sizeof *net->prediction);
	net->answer = malloc((size_t)samples * net->options.classes * sizeof *net->answer);
	if (!net->step_loss || !net->step_right || !net->prediction || !net->answer)
		return neap__fail_errno(ENOMEM, "batch of %d samples", samples);
	net->sample_room = samples;
	return 0;
}

/* Adds up the sizes of what a group's samples need, and clears what the group counts. */
static int fill(struct neap_net *net, struct neap__group *group)
{
	group->state_at = net->state_bytes;
	group->adjoint_at = net->adjoint_bytes;
	group->steps = 0;
	for (int s = 0; s < group->size; s++) {
		int64_t length = net->batch->sequences[group->first + s].length;
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
	memset(group->spikes, 0, (size_t)net->hidden * sizeof *group->spikes);
	group->support = group->recorded = 0;
	return 0;
}

/* Assigns the samples of the batch to groups and adds up the sizes of all. */
static int assign_samples(struct neap_net *net, const struct sample_split *split)
{
	uint64_t tape = NEAP__TAPE_HEAD, log = NEAP__TAPE_HEAD;
	struct neap__group *group = net->groups;

	net->state_bytes = net->adjoint_bytes = 0;
	net->sample_steps = 0;
	for (int g = 0; g < net->ngrads; g++) {
		struct neap__grads *grads = &net->grads[g];
		int left = net->batch->size - g * split->per_sum;
		grads->first = g * split->per_sum;
		grads->size = left < split->per_sum ? left : split->per_sum;
		NEAP_TRY(neap__grads_begin(net, grads));
		for (int s = 0; s < grads->size; s += split->per_group, group++) {
			left = grads->size - s;
			group->grads = grads;
			group->first = grads->first + s;
			group->size = left < split->per_group ? left : split->per_group;
			NEAP_TRY(fill(net, group));
			tape += NEAP__TAPE_GROUP + group->step_tape;
			log += NEAP__TAPE_GROUP + group->step_log;
		}
	}
	net->tape_max = tape;
	net->log_max = net->has_log ? log : 0;
	net->is_packed = net->has_strips = 0;
	net->fixed_tape = net->sample_steps == (double)net->batch->size * (double)net->batch->steps;
	for (int l = net->taped_from; l < net->nlayers - 1; l++)
		net->fixed_tape &= net->layers[l].dense;
	return 0;
}

/*
 * Estimates of what a step takes before a batch was recorded or logged: shares of the largest log
 * and of the largest sparse tape, measured on a net of the SPEECH recipe, and bytes of counts
 * beside.
 */
static const double log_share = 0.03, tape_share = 0.17;
enum { LOG_COUNTS = 4, TAPE_COUNTS = 8 };

/* Bytes of log a sample and step: measured in the batch that ends, or estimated. */
static void measure_log(struct neap_net *net)
{
	double bytes = 0, steps = 0;

	for (int g = 0; g < net->ngroups; g++) {
		bytes += net->groups[g].log_bytes;
		steps += net->groups[g].log_steps;
		net->groups[g].log_bytes = net->groups[g].log_steps = 0;
	}
	if (steps > 0)
		net->log_rate = bytes / steps;
	if (!(net->log_rate > 0))
		net->log_rate = LOG_COUNTS + log_share * (double)net->sample_log;
}

/* The same of tapes. */
static void measure_tape(struct neap_net *net)
{
	double bytes = 0, steps = 0;

	for (int g = 0; g < net->ngroups; g++) {
		bytes += net->groups[g].tape_bytes;
		steps += net->groups[g].tape_steps;
		net->groups[g].tape_bytes = net->groups[g].tape_steps = 0;
	}
	if (steps > 0)
		net->tape_rate = bytes / steps;
	if (net->tape_rate > 0)
		return;
	for (int l = net->taped_from; l < net->nlayers; l++) {
		const struct neap__layer *layer = &net->layers[l];
		double most = (double)neap__layer_tape(net, layer);
		int sparse = !layer->cell->readout && !layer->dense;
		net->tape_rate += sparse ? TAPE_COUNTS + tape_share * most : most;
	}
}

static void begin_dropout(struct neap_net *net)
{
	net->drops = net->can_drop && net->objective.dropout > 0;
	for (int i = 0; i < net->ntensors; i++)
		net->tensors[i].factor = 1;
	for (int l = 1; l < net->nlayers; l++)
		if (net->drops)
			net->tensors[net->layers[l].weight].factor =
				neap__dropout_scale(&net->layers[l - 1]);
	for (int g = 0; net->drops && g < net->ngroups; g++)
		net->ops->draw(net, &net->groups[g]);
}

int neap_net_begin(struct neap_net *net, const struct neap_batch *batch,
	const struct neap_objective *objective)
{
	NEAP_NEED(net);
	if (objective)
		NEAP_TRY(neap__struct_size(
			objective->size, sizeof *objective, sizeof *objective, "neap_objective"));
	const struct neap_peers *peers = objective ? objective->peers : NULL;
	if (!batch || batch->size < (peers ? 0 : 1) || batch->steps < 0 || batch->of < 0)
		return neap__fail(NEAP_EUSAGE, "the batch is empty");
	if (batch->inputs != net->options.inputs)
		return neap__fail(NEAP_EUSAGE, "the batch has %d inputs, but the network has %d",
			batch->inputs, net->options.inputs);
	measure_tape(net);
	measure_log(net);
	net->batch = NULL;
	net->objective = objective ? *objective
				   : (struct neap_objective){.size = sizeof(struct neap_objective)};
	NEAP_TRY(check_kinds(net, batch));
	for (int b = 0; b < batch->size; b++)
		NEAP_TRY(check_sample(net, batch, &batch->sequences[b]));
	int whole = batch->of > 0 ? batch->of : batch->size;
	struct sample_split split = cut_of(net, whole);
	count_groups(&split, batch->size);
	if (net->peer_room)
		net->peer_room->ended = 0;
	if (peers)
		NEAP_TRY(neap__peer_begin(net, batch, peers, split.per_sum));
	NEAP_TRY(make_groups(net, &split));
	NEAP_TRY(make_samples(net, batch->size > 0 ? batch->size : 1));
	net->ngroups = split.ngroups;
	net->ngrads = split.ngrads;
	net->batch = batch;
	net->events = batch->sequences;
	net->events_from = 0;
	net->events_to = batch->windows ? 0 : INT64_MAX;
	int rc = assign_samples(net, &split);
	if (rc < 0) {
		net->batch = NULL;
		return rc;
	}
	for (int l = 0; l < net->nlayers; l++)
		net->ops->leak(net, &net->layers[l]);
	begin_dropout(net);
	const struct neap_rate_penalty *p = &net->objective.rates;
	net->has_penalty = net->objective.loss && (p->upper_weight != 0 || p->lower_weight != 0 ||
							  p->l1 != 0 || p->l2 != 0);
	memset(net->step_loss, 0, (size_t)net->sample_room * sizeof *net->step_loss);
	memset(net->step_right, 0, (size_t)net->sample_room * sizeof *net->step_right);
	memset(net->tensors[0].grad, 0, net->elements * sizeof(double));
	memset(net->rate, 0, (size_t)net->nlayers * sizeof *net->rate);
	net->result = (struct neap_net_result){.size = sizeof(struct neap_net_result),
		.layers = net->nlayers - 1,
		.prediction = net->prediction,
		.answer = net->answer,
		.rate = net->rate};
	return 0;
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
	double rate = net->tape_rate, bytes = 0, steps = 0;
	double log_rate = net->log_rate, log_bytes = 0, log_steps = 0;

	for (int g = 0; g < net->ngroups; g++) {
		bytes += net->groups[g].tape_bytes;
		steps += net->groups[g].tape_steps;
		log_bytes += net->groups[g].log_bytes;
		log_steps += net->groups[g].log_steps;
	}
	if (log_steps > 0)
		log_rate = log_bytes / log_steps;
	if (steps > 0)
		rate = bytes / steps;
	NEAP_TRY(neap__struct_size(sizes->size, sizeof *sizes, sizeof *sizes, "neap_net_sizes"));
	*sizes = (struct neap_net_sizes){.size = sizeof(struct neap_net_sizes),
		.state = net->state_bytes,
		.adjoint = net->adjoint_bytes,
		.tape_max = net->tape_max,
		.log_max = net->log_max};
	/* A step's share of headers: a round has 8 steps or more; offsets take 4 or 8 bytes a
	 * group. */
	sizes->tape_mean = (size_t)(rate * alive) + NEAP__TAPE_HEAD / 8 +
			   (size_t)net->ngroups * NEAP__TAPE_GROUP / 4;
	if (sizes->tape_mean > net->tape_max || (net->batch && net->fixed_tape))
		sizes->tape_mean = net->tape_max;
	if (net->has_log)
		sizes->log_mean = (size_t)(log_rate * alive) + NEAP__TAPE_HEAD / 8 +
				  (size_t)net->ngroups * NEAP__TAPE_GROUP / 2;
	if (sizes->log_mean > net->log_max)
		sizes->log_mean = net->log_max;
	for (int i = 0; i < net->ntensors; i++)
		sizes->weights += (size_t)net->tensors[i].count * net->ops->real;
	sizes->grads =
		net->elements * sizeof(double) + (size_t)net->grads_room * neap__grads_bytes(net);
	for (int g = 0; g < net->grads_room; g++)
		sizes->grads += (size_t)net->grads[g].input_room * neap__grads_row_bytes(net);
	sizes->workspace = (size_t)net->group_room * net->group_memory + net->packed_bytes +
			   (size_t)neap__peer_room_bytes(net);
	sizes->workspace += (size_t)net->ndeferred * neap__deferred_bytes(net, net->grads_size);
	if (net->team)
		sizes->workspace += (size_t)neap__thread_pool_threads(net->pool) *
				    neap__outer_team_bytes(
					    net, (int64_t)net->deferred->steps * net->grads_size);
	return 0;
}

int neap_net_end(struct neap_net *net)
{
	NEAP_NEED(net);
	if (!net->batch)
		return 0;
	int rc = 0;
	if (!net->objective.peers)
		neap__gradient_sums(net);
	else if (net->peer_room->has_gradients)
		rc = neap__peer_gradients(net);
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
