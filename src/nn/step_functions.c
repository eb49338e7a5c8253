/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_functions.c: the step functions of a net: every group goes through the range on one thread.
 * A tape is a header and rounds; a round holds some steps of all groups, and its header names the
 * round before, since backward reads them last to first. Each group first writes where its largest
 * tapes would fit, then what was written is moved together. So `room` is never overstepped, and no
 * group waits for another one within a round. A log has the same form.
 */
#include "nn/batch/batch.h"
#include "nn/core/step_backend.h"
#include "nn/core/net_state.h"
#include "nn/gradients/deferred_sums.h"
#include "nn/gradients/outer_tiles.h"
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

/* What a round holds, and what makes it. */
enum tape_writing { RECORD, REPLAY, LOG };

struct range_job {
	struct neap_net *net;
	unsigned char *moving; /* state or adjoint */
	int64_t t0, t1;
	int first;
	unsigned char *tape; /* of the round, behind its header */
	const struct round_head *round;
	enum tape_writing writing;
	const struct tape_head *log; /* REPLAY */
	struct round_head *written;  /* the round of a writing in progress */
};

/*
 * Makes sure that there is a batch, and weights in strips. A step that runs for the first time
 * comes before a turn, which needs the readout. 0, or NEAP_EUSAGE.
 */
static int check_batch(struct neap_net *net, int first)
{
	if (!net->batch)
		return neap__fail(NEAP_EUSAGE, "no batch was begun");
	if (first)
		net->skips_readout = 0;
	if (!net->has_strips && !net->backend)
		net->ops->fill_strips(net);
	net->has_strips = 1;
	return 0;
}

static void advance_item(void *arg, int item, int thread)
{
	struct range_job *job = arg;
	struct neap_net *net = job->net;
	(void)thread;
	net->ops->advance(net, &net->groups[item], job->moving, job->t0, job->t1, job->first);
}

int neap_net_advance(void *user, void *state, int64_t t0, int64_t t1, int first)
{
	NEAP_NEED(user);
	struct neap_net *net = user;
	struct range_job job = {.net = net, .moving = state, .first = first};

	NEAP_TRY(check_batch(net, first));
	if (net->backend)
		return net->backend->advance(net->on_backend, state, t0, t1, first);
	for (job.t0 = t0; job.t0 < t1; job.t0 = job.t1) {
		NEAP_TRY(neap__net_window(net, job.t0));
		job.t1 = t1 < net->events_to ? t1 : net->events_to;
		neap__thread_pool_run(net->pool, net->ngroups, advance_item, &job);
	}
	return 0;
}

/* The most a group's tapes (or logs) of n steps take, their table included. */
static size_t group_room(const struct neap__group *group, int64_t n, enum tape_writing writing)
{
	size_t step = writing == LOG ? group->step_log : group->step_tape;
	return (((size_t)n * sizeof(uint32_t) + 7) & ~(size_t)7) + (size_t)n * step;
}

/* Where the group's log of each step of [t0, t1) is. */
static void find_logs(const unsigned char **logs, const struct range_job *job, int group)
{
	for (uint64_t at = job->log->last; at;) {
		const struct round_head *round =
			(const void *)((const char *)(const void *)job->log + at);
		const unsigned char *first = (const unsigned char *)round + round->group[group];
		const uint32_t *offset = (const uint32_t *)(const void *)first;
		for (int64_t t = round->t0; t < round->t1; t++)
			if (t >= job->t0 && t < job->t1)
				logs[t - job->t0] = first + offset[t - round->t0];
		at = round->previous;
	}
}

/* Where a group writes its tapes: behind the most that the groups before it can take. */
static unsigned char *room_of(const struct range_job *job, int group)
{
	unsigned char *tape = job->tape;
	for (int g = 0; g < group; g++)
		tape += group_room(&job->net->groups[g], job->t1 - job->t0, job->writing);
	return tape;
}

static void round_item(void *arg, int item, int thread)
{
	struct range_job *job = arg;
	struct neap_net *net = job->net;
	struct neap__group *group = &net->groups[item];
	const unsigned char *logs[NEAP__GRADIENT_BLOCK];
	unsigned char *tape = room_of(job, item);

	(void)thread;
	if (job->writing == REPLAY) {
		find_logs(logs, job, item);
		group->round_bytes =
			net->ops->replay(net, group, job->moving, job->t0, job->t1, logs, tape);
		return;
	}
	group->round_bytes = (job->writing == LOG ? net->ops->log : net->ops->record)(
		net, group, job->moving, job->t0, job->t1, job->first, tape);
}

enum { MOVED_BY_ONE_THREAD = 64 << 10 }; /* bytes that one thread moves as fast as several */

static void move_item(void *arg, int item, int thread)
{
	struct range_job *job = arg;
	unsigned char *to = (unsigned char *)job->written + job->written->group[item];
	const unsigned char *from = room_of(job, item);

	(void)thread;
	if (to != from)
		memmove(to, from, job->net->groups[item].round_bytes);
}

/* Moves what the groups wrote together: all at once where no group's goal overlaps another's
 * source. */
static void compact_round(struct range_job *job, size_t bytes)
{
	struct neap_net *net = job->net;

	if (net->ngroups > 1 && bytes > MOVED_BY_ONE_THREAD && job->tape + bytes <= room_of(job, 1))
		neap__thread_pool_run(net->pool, net->ngroups, move_item, job);
	else
		for (int g = 0; g < net->ngroups; g++)
			move_item(job, g, 0);
}

/* Writes the tapes or logs of the job's steps behind `round`; returns the bytes of the round. */
static size_t write_round(struct range_job *job, struct round_head *round, uint64_t previous)
{
	struct neap_net *net = job->net;
	size_t head = sizeof *round + (size_t)net->ngroups * sizeof round->group[0], end = head;

	job->written = round;
	job->tape = (unsigned char *)round + head;
	round->previous = previous;
	round->t0 = job->t0;
	round->t1 = job->t1;
	neap__thread_pool_run(net->pool, net->ngroups, round_item, job);
	for (int g = 0; g < net->ngroups; g++) {
		round->group[g] = end;
		end += net->groups[g].round_bytes;
	}
	compact_round(job, end - head);
	return end;
}

/* Writes rounds until t1, or until a step more might not fit; `most` bytes hold any step. */
static int write_rounds(struct range_job *job, int64_t t0, int64_t t1, size_t most, void *tape,
	size_t room, size_t *used, int64_t *t_done)
{
	struct neap_net *net = job->net;
	struct tape_head *head = tape;
	uint64_t at = sizeof *head, last = 0;
	int64_t t = t0;

	*used = 0;
	*t_done = t0;
	if (room < most)
		return 0;
	/* The first step needs no more than `most`, which has the header in it. */
	while (t < t1 && (room - at >= most || t == t0)) {
		uint64_t fit = room - at >= most ? (room - at) / most : 1;
		int64_t n = t1 - t < NEAP__GRADIENT_BLOCK ? t1 - t : NEAP__GRADIENT_BLOCK;
		NEAP_TRY(neap__net_window(net, t));
		n = n < net->events_to - t ? n : net->events_to - t;
		n = (uint64_t)n < fit ? n : (int64_t)fit;
		for (int g = 0; g < net->ngroups; g++) /* offsets have 32 bits */
			while (group_room(&net->groups[g], n, job->writing) > UINT32_MAX)
				n = (n + 1) / 2;
		job->t0 = t;
		job->t1 = t + n;
		size_t bytes =
			write_round(job, (struct round_head *)(void *)((char *)tape + at), last);
		last = at;
		at += bytes;
		t += n;
	}
	head->last = last;
	head->bytes = at;
	*used = at;
	*t_done = t;
	return 0;
}

static int write_tapes(struct range_job *job, int64_t t0, int64_t t1, void *tape, size_t room,
	size_t *used, int64_t *t_done)
{
	struct neap_net *net = job->net;

	/* Steps of a fixed size take that much, though steps of a round share a header. */
	if (net->fixed_tape && (uint64_t)(t1 - t0) > room / net->tape_max)
		t1 = t0 + (int64_t)(room / net->tape_max);
	NEAP_TRY(write_rounds(job, t0, t1, net->tape_max, tape, room, used, t_done));
	if (net->fixed_tape)
		*used = (size_t)(*t_done - t0) * net->tape_max;
	return 0;
}

int neap_net_record(void *user, void *state, int64_t t0, int64_t t1, int first, void *tape,
	size_t room, size_t *used, int64_t *t_done)
{
	NEAP_NEED(user);
	struct neap_net *net = user;
	struct range_job job = {.net = net, .moving = state, .first = first, .writing = RECORD};

	NEAP_TRY(check_batch(net, first));
	if (net->backend)
		return net->backend->record(
			net->on_backend, state, t0, t1, first, tape, room, used, t_done);
	return write_tapes(&job, t0, t1, tape, room, used, t_done);
}

static int check_log(struct neap_net *net, int first)
{
	NEAP_TRY(check_batch(net, first));
	return net->log_max ? 0 : neap__fail(NEAP_EUSAGE, "the net has no log of spikes");
}

int neap_net_advance_log(void *user, void *state, int64_t t0, int64_t t1, int first, void *log,
	size_t room, size_t *used, int64_t *t_done)
{
	NEAP_NEED(user);
	struct neap_net *net = user;
	struct range_job job = {.net = net, .moving = state, .first = first, .writing = LOG};

	NEAP_TRY(check_log(net, first));
	if (net->backend)
		return net->backend->advance_log(
			net->on_backend, state, t0, t1, first, log, room, used, t_done);
	return write_rounds(&job, t0, t1, net->log_max, log, room, used, t_done);
}

int neap_net_replay(void *user, void *state, int64_t t0, int64_t t1, const void *log,
	int64_t log_t0, void *tape, size_t room, size_t *used, int64_t *t_done)
{
	NEAP_NEED(user);
	struct neap_net *net = user;
	const struct tape_head *head = log;
	struct range_job job = {.net = net, .moving = state, .writing = REPLAY, .log = head};
	int64_t from = -1, to = -1;

	NEAP_TRY(check_log(net, 0));
	if (net->backend)
		return net->backend->record_log(
			net->on_backend, state, t0, t1, log, log_t0, tape, room, used, t_done);
	for (uint64_t at = head->last; at;) {
		const struct round_head *round = (const void *)((const char *)log + at);
		from = round->t0;
		to = to < 0 ? round->t1 : to;
		at = round->previous;
	}
	if (from != log_t0 || t0 < from || t1 > to)
		return neap__fail(NEAP_EMODEL,
			"the log has steps %lld to %lld, but steps %lld to %lld are to be replayed",
			(long long)from, (long long)to, (long long)t0, (long long)t1);
	if (!net->is_packed)
		net->ops->pack(net);
	net->is_packed = 1;
	return write_tapes(&job, t0, t1, tape, room, used, t_done);
}

static void backward_item(void *arg, int item, int thread)
{
	struct range_job *job = arg;
	struct neap_net *net = job->net;
	const unsigned char *tape = (const unsigned char *)job->round + job->round->group[item];
	struct neap__group *group = &net->groups[item];
	group->deferred = &net->deferred[net->dense ? group->grads - net->grads : thread];
	net->ops->backward(net, group, job->moving, job->t1, job->t0, tape, job->round->t0);
}

static void tile_item(void *arg, int item, int thread)
{
	struct range_job *job = arg;
	struct neap_net *net = job->net;
	net->ops->add_tile(net, &net->grads[item % net->ngrads], &net->tiles[item / net->ngrads],
		&net->team[thread], job->t1, job->t0);
}

/*
 * Reverses the steps of a round. In a dense net all groups go through as many steps as there is
 * room to store, not beyond the end of a gradient block; then the gradients of these are summed.
 */
static void reverse_round(struct range_job *job)
{
	struct neap_net *net = job->net;
	const struct round_head *round = job->round;

	for (job->t1 = round->t1; job->t1 > round->t0; job->t1 = job->t0) {
		job->t0 = round->t0;
		if (net->dense) {
			int64_t block = (job->t1 - 1) / NEAP__GRADIENT_BLOCK * NEAP__GRADIENT_BLOCK;
			int64_t most = job->t1 - net->deferred->steps;
			job->t0 = job->t0 > block ? job->t0 : block;
			job->t0 = job->t0 > most ? job->t0 : most;
		}
		neap__thread_pool_run(net->pool, net->ngroups, backward_item, job);
		if (net->dense)
			neap__thread_pool_run(net->pool, net->ngrads * net->ntiles, tile_item, job);
	}
}

int neap_net_backward(void *user, void *adjoint, int64_t t1, int64_t t0, const void *tape)
{
	NEAP_NEED(user);
	struct neap_net *net = user;
	const struct tape_head *head = tape;

	NEAP_TRY(check_batch(net, 0));
	if (net->backend)
		return net->backend->backward(net->on_backend, adjoint, t1, t0, tape);
	for (uint64_t at = t0 < t1 ? head->last : 0; at;) {
		const struct round_head *round = (const void *)((const char *)tape + at);
		struct range_job job = {.net = net, .moving = adjoint, .round = round};
		if (round->t1 != t1 || round->t0 < t0)
			return neap__fail(NEAP_EMODEL,
				"the tape has steps %lld to %lld, but steps %lld to %lld are to be "
				"reversed",
				(long long)round->t0, (long long)round->t1, (long long)t0,
				(long long)t1);
		NEAP_TRY(neap__net_window(net, t1 - 1));
		if (round->t0 < net->events_from)
			return neap__fail(NEAP_EMODEL, "a tape from step %lld was cut by a window",
				(long long)round->t0);
		reverse_round(&job);
		t1 = round->t0;
		at = round->previous;
	}
	if (t1 != t0)
		return neap__fail(NEAP_EMODEL,
			"the tape begins at step %lld, but step %lld was expected", (long long)t1,
			(long long)t0);
	if (net->ports.first_outputs && t0 == net->ports.first)
		for (int g = 0; g < net->ngroups; g++)
			net->ops->add_first_outputs(net, &net->groups[g], adjoint);
	return 0;
}
