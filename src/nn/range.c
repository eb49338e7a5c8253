/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The step functions: every group walks the range on one thread. A tape is a
 * header and rounds. A round holds some steps of all groups: each group first
 * writes where its largest tapes would fit, then what was written is moved
 * together, so that `room` is never overstepped and nothing is waited for
 * within a round.
 */
#include "nn/inside.h"
#include "base/fail.h"
#include "sys/pool.h"

#include <string.h>

struct tape_head {
	uint64_t last; /* offset of the last round */
	uint64_t bytes;
};

struct round_head {
	uint64_t previous; /* offset of the round before; 0: none */
	int64_t t0, t1;
	uint64_t group[]; /* offsets of the groups' tapes from here */
};

_Static_assert(sizeof(struct tape_head) + sizeof(struct round_head) == NEAP__TAPE_HEAD,
	"a tape of one step must fit in tape_max");

struct job {
	struct neap_net *net;
	unsigned char *moving; /* state or adjoint */
	int64_t t0, t1;
	int first;
	unsigned char *tape; /* of the round, behind its header */
	const struct round_head *round;
};

static void advance_item(void *arg, int item, int thread)
{
	struct job *job = arg;
	struct neap_net *net = job->net;
	(void)thread;
	net->engine->advance(net, &net->groups[item], job->moving, job->t0, job->t1, job->first);
}

int neap_net_advance(void *user, void *state, int64_t t0, int64_t t1, int first)
{
	struct neap_net *net = user;
	struct job job = {.net = net, .moving = state, .first = first};

	if (!net->batch)
		return neap__fail(NEAP_EUSAGE, "no batch was begun");
	for (job.t0 = t0; job.t0 < t1; job.t0 = job.t1) {
		NEAP_TRY(neap__net_window(net, job.t0));
		job.t1 = t1 < net->events_to ? t1 : net->events_to;
		neap__pool_run(net->pool, net->ngroups, advance_item, &job);
	}
	return 0;
}

/* The most a group's tapes of n steps take, their table included. */
static size_t group_room(const struct neap__group *group, int64_t n)
{
	return (((size_t)n * sizeof(uint32_t) + 7) & ~(size_t)7) + (size_t)n * group->step_tape;
}

static void record_item(void *arg, int item, int thread)
{
	struct job *job = arg;
	struct neap_net *net = job->net;
	struct neap__group *group = &net->groups[item];
	unsigned char *tape = job->tape;

	(void)thread;
	for (int g = 0; g < item; g++)
		tape += group_room(&net->groups[g], job->t1 - job->t0);
	group->round_bytes =
		net->engine->record(net, group, job->moving, job->t0, job->t1, job->first, tape);
}

/* Records [t0, t1) behind `round`; returns the bytes of the round. */
static size_t record_round(struct neap_net *net, void *state, int64_t t0, int64_t t1, int first,
	struct round_head *round, uint64_t previous)
{
	size_t head = sizeof *round + (size_t)net->ngroups * sizeof round->group[0];
	unsigned char *tape = (unsigned char *)round + head, *from = tape, *to = tape;
	struct job job = {
		.net = net, .moving = state, .t0 = t0, .t1 = t1, .first = first, .tape = tape};

	round->previous = previous;
	round->t0 = t0;
	round->t1 = t1;
	neap__pool_run(net->pool, net->ngroups, record_item, &job);
	for (int g = 0; g < net->ngroups; g++) {
		struct neap__group *group = &net->groups[g];
		memmove(to, from, group->round_bytes);
		round->group[g] = (uint64_t)(to - (unsigned char *)round);
		to += group->round_bytes;
		from += group_room(group, t1 - t0);
	}
	return (size_t)(to - (unsigned char *)round);
}

int neap_net_record(void *user, void *state, int64_t t0, int64_t t1, int first, void *tape,
	size_t room, size_t *used, int64_t *t_done)
{
	struct neap_net *net = user;
	struct tape_head *head = tape;
	uint64_t at = sizeof *head, last = 0;
	int64_t t = t0;

	*used = 0;
	*t_done = t0;
	if (!net->batch)
		return neap__fail(NEAP_EUSAGE, "no batch was begun");
	if (room < net->tape_max)
		return 0;
	while (t < t1 && room - at >= net->tape_max) {
		uint64_t fit = (room - at) / net->tape_max;
		int64_t n = t1 - t < NEAP__BLOCK ? t1 - t : NEAP__BLOCK;
		NEAP_TRY(neap__net_window(net, t));
		n = n < net->events_to - t ? n : net->events_to - t;
		n = (uint64_t)n < fit ? n : (int64_t)fit;
		for (int g = 0; g < net->ngroups; g++) /* offsets have 32 bits */
			while (group_room(&net->groups[g], n) > UINT32_MAX)
				n = (n + 1) / 2;
		struct round_head *round = (struct round_head *)(void *)((char *)tape + at);
		size_t bytes = record_round(net, state, t, t + n, first, round, last);
		last = at;
		at += bytes;
		t += n;
	}
	if (t == t0 && t0 < t1) { /* room for one step and the header, as promised */
		NEAP_TRY(neap__net_window(net, t));
		struct round_head *round = (struct round_head *)(void *)((char *)tape + at);
		size_t bytes = record_round(net, state, t, t + 1, first, round, last);
		last = at;
		at += bytes;
		t++;
	}
	head->last = last;
	head->bytes = at;
	*used = net->fixed_tape ? (size_t)(t - t0) * net->tape_max : at;
	*t_done = t;
	return 0;
}

static void backward_item(void *arg, int item, int thread)
{
	struct job *job = arg;
	struct neap_net *net = job->net;
	const unsigned char *tape = (const unsigned char *)job->round + job->round->group[item];
	(void)thread;
	net->engine->backward(net, &net->groups[item], job->moving, job->t1, job->t0, tape);
}

int neap_net_backward(void *user, void *adjoint, int64_t t1, int64_t t0, const void *tape)
{
	struct neap_net *net = user;
	const struct tape_head *head = tape;

	if (!net->batch)
		return neap__fail(NEAP_EUSAGE, "no batch was begun");
	for (uint64_t at = t0 < t1 ? head->last : 0; at;) {
		const struct round_head *round = (const void *)((const char *)tape + at);
		struct job job = {.net = net,
			.moving = adjoint,
			.t0 = round->t0,
			.t1 = round->t1,
			.round = round};
		if (round->t1 != t1 || round->t0 < t0)
			return neap__fail(NEAP_EMODEL,
				"tape holds steps %lld to %lld where %lld to %lld are to be "
				"reversed",
				(long long)round->t0, (long long)round->t1, (long long)t0,
				(long long)t1);
		NEAP_TRY(neap__net_window(net, t1 - 1));
		if (round->t0 < net->events_from)
			return neap__fail(NEAP_EMODEL, "a tape from step %lld was cut by a window",
				(long long)round->t0);
		neap__pool_run(net->pool, net->ngroups, backward_item, &job);
		t1 = round->t0;
		at = round->previous;
	}
	if (t1 != t0)
		return neap__fail(NEAP_EMODEL, "tape begins at step %lld, not %lld", (long long)t1,
			(long long)t0);
	return 0;
}

/* Value of the penalty at rate r, and its slope. */
static double penalty_at(const struct neap_rate_penalty *p, double r, double *slope)
{
	double over = r > p->upper ? r - p->upper : 0, under = r < p->lower ? p->lower - r : 0;

	*slope = 2 * p->upper_weight * over - 2 * p->lower_weight * under + p->l1 + 2 * p->l2 * r;
	return p->upper_weight * over * over + p->lower_weight * under * under + p->l1 * r +
	       p->l2 * r * r;
}

/* Rates of all hidden units; the penalty on them and its gradient a spike. */
static double gather_rates(struct neap_net *net)
{
	double penalty = 0, all = 0, steps = net->sample_steps > 0 ? net->sample_steps : 1;
	int unit = 0;

	for (int l = 0; l < net->nlayers - 1; l++) {
		double layer = 0;
		for (int j = 0; j < net->layers[l].n; j++, unit++) {
			double spikes = 0, slope;
			for (int g = 0; g < net->ngroups; g++)
				spikes += net->groups[g].spikes[unit];
			layer += spikes;
			if (!net->has_penalty)
				continue;
			penalty += penalty_at(&net->objective.rates, spikes / steps, &slope);
			net->engine->penalty(net, l, j, slope / steps);
		}
		net->rate[l] = layer / steps / net->layers[l].n;
		all += layer;
	}
	net->result.spikes = net->hidden ? all / steps / net->hidden : 0;
	return penalty;
}

static int largest(const double *z, int n)
{
	int best = 0;
	for (int c = 1; c < n; c++)
		if (z[c] > z[best])
			best = c;
	return best;
}

int neap_net_turn(void *user, const void *state, void *adjoint, double *loss)
{
	struct neap_net *net = user;
	int classes = net->options.classes, correct = 0;
	double sum = 0;

	if (!net->batch)
		return neap__fail(NEAP_EUSAGE, "no batch was begun");
	for (int g = 0; g < net->ngroups; g++) {
		struct neap__group *group = &net->groups[g];
		for (int s = 0; s < group->size; s++) {
			int b = group->first + s;
			double *z = net->answer + (size_t)b * classes;
			sum += net->engine->turn(net, group, b,
				(const unsigned char *)state + group->state_at +
					s * net->sample_state,
				adjoint ? (unsigned char *)adjoint + group->adjoint_at +
						  s * net->sample_adjoint
					: NULL,
				z);
			net->prediction[b] = largest(z, classes);
			correct += net->prediction[b] == net->batch->sequences[b].label;
		}
	}
	net->result.penalty = gather_rates(net);
	net->result.loss = sum / net->batch->size + net->result.penalty;
	net->result.correct = correct;
	*loss = net->result.loss;
	return 0;
}
