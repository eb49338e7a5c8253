/* SPDX-License-Identifier: Apache-2.0 */
/* net_steps.c: the step functions of a net, and the timing of its first steps. */
#include "measure/net_steps.h"
#include "measure/batch_sampling.h"
#include "nn/core/step_backend.h"
#include "nn/core/net_state.h"
#include "nn/core/on_device.h"
#include "nn/step_memory.h"
#include "base/checked.h"
#include "base/fail.h"
#include "data/windows.h"
#include "store/tier_cost.h"
#include "sys/clock.h"
#include "sys/memory.h"
#include "sys/pool.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LOG_SPARE                                                                                  \
	16 /* a 16th more than the mean log is planned, so that noise does not overflow            \
	    */

static int fence(void *user)
{
	return neap__net_wait(user);
}

void neap__net_steps_fill(struct neap_step_ops *ops, const struct neap_net *net)
{
	struct neap_net_sizes sizes = {.size = sizeof sizes};
	neap_net_get_sizes(net, &sizes);
	*ops = (struct neap_step_ops){.size = sizeof *ops,
		.advance = neap_net_advance,
		.record = neap_net_record,
		.turn = neap_net_turn,
		.backward = neap_net_backward,
		.grad_save = neap_net_grad_save,
		.grad_load = neap_net_grad_load,
		.will_touch = neap_net_will_touch,
		.state_bytes = sizes.state,
		.adjoint_bytes = sizes.adjoint,
		.tape_bytes = sizes.tape_mean,
		.tape_max_bytes = sizes.tape_max};
	if (net->backend) {
		ops->memory = net->backend->memory;
		ops->record_steps = net->backend->record_steps;
		ops->fence = fence;
	}
	if (sizes.log_max == 0)
		return;
	ops->advance_log = neap_net_advance_log;
	ops->replay = neap_net_replay;
	ops->log_max_bytes = sizes.log_max;
	ops->log_bytes = sizes.log_mean + sizes.log_mean / LOG_SPARE;
	if (ops->log_bytes > ops->log_max_bytes)
		ops->log_bytes = ops->log_max_bytes;
}

/*
 * Bytes beyond those of one step. The other half is for what is mapped as well when transfers
 * overlap: records of 2 MiB (tier_cost.c), and staging of 2 or 4 MiB per tier (file_tier.c).
 */
#define MORE (NEAP__MEASURE_MOST / 2)

enum {
	LOGGED = 64, /* steps logged, then replayed, at a time */
	WARM = 16    /* steps before those that are timed; chosen */
};

/* Memory of one measurement, in pages of its own. */
struct step_buffers {
	size_t state, adjoint, tape, log;
	char *pages;
	size_t bytes;
};

/*
 * Maps room for states, adjoint, tapes of 64 steps and logs of as many, or of fewer, so that all of
 * it takes at most `memory` bytes, and at most MORE beyond what one step takes. Where a step's log
 * has no room in addition to its tape there is none.
 */
static int make_rooms(struct step_buffers *rooms, struct neap__costs *costs,
	const struct neap_net *net, uint64_t memory)
{
	struct neap_net_sizes sizes = {.size = sizeof sizes};

	neap_net_get_sizes(net, &sizes);
	uint64_t state = neap__round_up(sizes.state, 64), one = neap__round_up(sizes.tape_max, 64);
	uint64_t fixed = neap__sat_add(state, neap__round_up(sizes.adjoint, 64));
	uint64_t most = neap__sat_add(neap__sat_add(fixed, one), MORE);
	uint64_t all = memory < most ? memory : most;
	uint64_t left = all - all % 4096 > fixed ? all - all % 4096 - fixed : 0;
	uint64_t tape = neap__sat_mul(one, 64), log = neap__sat_mul(sizes.log_max, LOGGED);

	costs->tape = costs->tape_mean = (double)sizes.tape_max;
	if (one > left)
		return neap__fail(NEAP_EINFEASIBLE,
			"one step takes %llu bytes, more than the budget of %llu. Raise --memory",
			(unsigned long long)neap__sat_add(fixed, one), (unsigned long long)memory);
	if (log > 0 && neap__sat_add(state + log, tape) > left) {
		uint64_t half = left / 2 & ~UINT64_C(63), spare = half > state ? half - state : 0;
		log = log < spare ? log : spare;
	}
	if (log < sizes.log_max)
		log = 0;
	left -= log ? state + log : 0;
	if (one > left) { /* no log beside the tape */
		left += state + log;
		log = 0;
	}
	tape = tape < left ? tape : left & ~UINT64_C(63);
	*rooms = (struct step_buffers){.state = (size_t)state,
		.adjoint = (size_t)(fixed - state),
		.tape = (size_t)tape,
		.log = (size_t)log,
		.bytes = (size_t)(fixed + tape + (log ? state + log : 0))};
	return neap__step_memory_map(neap__net_memory(net), (void **)&rooms->pages, rooms->bytes);
}

/*
 * Logs and replays all steps, LOGGED at a time. The seconds that logging takes beyond an advance
 * count as a part of the replay, which it is done for.
 */
static int measure_log(struct neap__costs *costs, struct neap_net *net, int64_t steps,
	const struct step_buffers *rooms)
{
	char *state = rooms->pages, *tape = state + rooms->state + rooms->adjoint;
	char *log = tape + rooms->tape, *before = log + rooms->log;
	const struct neap_memory_ops *memory = neap__net_memory(net);
	double logging = 0, replaying = 0, bytes = 0, start;
	size_t used = 0;
	int64_t end, done;

	NEAP_TRY(neap__step_memory_zero(memory, state, rooms->state));
	for (int64_t t = 0; t < steps; t = end) {
		NEAP_TRY(neap__step_memory_move(memory, before, state, rooms->state));
		NEAP_TRY(neap__net_wait(net));
		start = neap__seconds();
		NEAP_TRY(neap_net_advance_log(net, state, t,
			steps - t > LOGGED ? t + LOGGED : steps, 0, log, rooms->log, &used, &end));
		NEAP_TRY(neap__net_wait(net));
		logging += neap__seconds() - start;
		bytes += (double)used;
		if (end <= t)
			return neap__fail(
				NEAP_EMODEL, "a log of %zu bytes holds no step", rooms->log);
		start = neap__seconds();
		for (int64_t at = t; at < end; at = done) {
			NEAP_TRY(neap_net_replay(
				net, before, at, end, log, t, tape, rooms->tape, &used, &done));
			if (done <= at)
				return neap__fail(NEAP_EMODEL, "a tape of %zu bytes holds no step",
					rooms->tape);
		}
		NEAP_TRY(neap__net_wait(net));
		replaying += neap__seconds() - start;
	}
	costs->log_mean = bytes / (double)steps;
	double more = logging / (double)steps - costs->advance;
	costs->replay = replaying / (double)steps + (more > 0 ? more : 0);
	return 0;
}

/*
 * Runs steps that are not timed: threads wake up, and of a batch in windows those of its first
 * steps and the next ones are read. The state is at its start afterwards.
 */
static int warm_up(struct neap_net *net, char *state, size_t state_bytes, int64_t steps)
{
	const struct neap_batch *batch = net->batch;

	NEAP_TRY(neap_net_advance(net, state, 0, steps < WARM ? steps : WARM, 0));
	if (batch && batch->windows)
		neap__windows_settle(batch->windows);
	NEAP_TRY(neap__step_memory_zero(neap__net_memory(net), state, state_bytes));
	return neap__net_wait(net);
}

/* Runs forward without and with tapes, then backward over the last range recorded. */
static int measure(struct neap__costs *costs, struct neap_net *net, int64_t steps,
	const struct step_buffers *rooms)
{
	char *state = rooms->pages, *adjoint = state + rooms->state;
	char *tape = adjoint + rooms->adjoint;
	int64_t t = 0, done = 0, last = 0;
	size_t used = 0;
	double loss, most = 0, all = 0, start;

	NEAP_TRY(warm_up(net, state, rooms->state, steps));
	start = neap__seconds();
	NEAP_TRY(neap_net_advance(net, state, 0, steps, 1));
	NEAP_TRY(neap__net_wait(net));
	costs->advance = (neap__seconds() - start) / (double)steps;
	NEAP_TRY(neap__step_memory_zero(neap__net_memory(net), state, rooms->state));
	NEAP_TRY(neap__net_wait(net));
	start = neap__seconds();
	for (; t < steps; t = done) {
		int64_t t1 = steps - t > 64 ? t + 64 : steps;
		NEAP_TRY(neap_net_record(net, state, t, t1, 0, tape, rooms->tape, &used, &done));
		if (done <= t)
			return neap__fail(
				NEAP_EMODEL, "a tape of %zu bytes holds no step", rooms->tape);
		if ((double)used / (double)(done - t) > most)
			most = (double)used / (double)(done - t);
		all += (double)used;
		last = t;
	}
	NEAP_TRY(neap__net_wait(net));
	costs->record = (neap__seconds() - start) / (double)steps;
	costs->tape = most;
	costs->tape_mean = all / (double)steps;
	NEAP_TRY(neap_net_turn(net, state, adjoint, &loss));
	start = neap__seconds();
	NEAP_TRY(neap_net_backward(net, adjoint, steps, last, tape));
	NEAP_TRY(neap__net_wait(net));
	costs->backward = (neap__seconds() - start) / (double)(steps - last);
	costs->replay = costs->record;
	return rooms->log ? measure_log(costs, net, steps, rooms) : 0;
}

int neap__net_steps_measure(struct neap__costs *costs, struct neap_net *net,
	const struct neap_batch *batch, const struct neap_objective *objective, int64_t steps,
	uint64_t memory)
{
	struct neap_batch cut;
	struct step_buffers rooms = {0};
	struct neap_sequence *sequences = calloc((size_t)batch->size, sizeof *sequences);
	int begun = 0, rc;

	*costs = (struct neap__costs){.advance = 1, .record = 1, .backward = 2, .replay = 1};
	if (!sequences)
		return neap__fail_errno(ENOMEM, "a batch of %d samples", batch->size);
	cut = neap__batch_cut(batch, sequences, steps);
	rc = neap_net_begin(net, &cut, objective);
	if (rc < 0 || cut.steps == 0)
		goto out;
	begun = 1;
	rc = make_rooms(&rooms, costs, net, memory);
	if (rc == 0)
		rc = measure(costs, net, cut.steps, &rooms);
out:
	neap__step_memory_unmap(neap__net_memory(net), rooms.pages, rooms.bytes);
	if (begun || rc == 0) {
		int ended = neap_net_end(net);
		rc = rc < 0 ? rc : ended;
	}
	free(sequences);
	return rc;
}

void neap__costs_in_order(struct neap__costs *costs)
{
	costs->advance = fmin(costs->advance, costs->record);
}

static int rounds(int groups, int threads)
{
	return (groups + threads - 1) / threads;
}

double neap__reading_cost(const struct neap_net *net, const struct neap_batch *batch)
{
	int threads = neap__thread_pool_threads(net->pool), processors = neap__processors();

	if (!batch->windows || net->device || threads < processors)
		return 0;
	double seconds = neap__windows_cost(batch->windows);
	if (threads > processors || threads == 1 || net->ngroups < 1)
		return seconds;
	return seconds *
	       (1 - (double)rounds(net->ngroups, threads) / rounds(net->ngroups, threads - 1));
}

void neap__costs_add_reading(struct neap__costs *costs, double seconds)
{
	costs->advance += seconds;
	costs->record += seconds;
	costs->backward += seconds;
}
