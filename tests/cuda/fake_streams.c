/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_streams.c: a stream is a queue of jobs. A job is done when something waits for it or, if the
 * tests gave a seed, at a random earlier time.
 */
#include "fake_streams.h"

#include <stdlib.h>
#include <string.h>

#define KERNEL_SECONDS 1e-5
#define DEFAULT_NUMBER 100
#define COPY_SECONDS 5e-6 /* of a copy or fill, in addition to its bytes */

static struct CUstream_st *streams;
static int created, failed;
static uint64_t random_state;
static _Thread_local double host_seconds; /* of the calling thread */

static uint64_t dice(void)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return random_state >> 33;
}

void fake_streams_reset(void)
{
	created = failed = 0;
	random_state = fake_driver()->seed;
	host_seconds = 0;
}

int fake_failed(void)
{
	return failed;
}

struct CUstream_st *fake_stream_new(void)
{
	struct CUstream_st *stream = calloc(1, sizeof *stream);
	if (!stream)
		return NULL;
	stream->last = &stream->first;
	stream->number = created++;
	stream->next = streams;
	streams = stream;
	return stream;
}

struct CUstream_st *fake_default_stream(void)
{
	static struct CUstream_st *stream;
	if (!stream) {
		stream = fake_stream_new();
		stream->number = DEFAULT_NUMBER; /* streams of programs count from 0 */
		created--;
	}
	return stream;
}

void fake_stream_free(struct CUstream_st *stream)
{
	struct CUstream_st **link = &streams;
	fake_finish_stream(stream);
	while (*link != stream)
		link = &(*link)->next;
	*link = stream->next;
	free(stream);
}

struct fake_job *fake_queue(struct CUstream_st *stream, enum fake_job_kind kind)
{
	struct fake_job *job = stream ? calloc(1, sizeof *job) : NULL;
	if (!job)
		return NULL;
	job->kind = kind;
	fake_driver()->launches += kind == FAKE_LAUNCH;
	fake_driver()->copies += kind == FAKE_COPY;
	fake_driver()->fills += kind == FAKE_FILL;
	job->queued = host_seconds;
	*stream->last = job;
	stream->last = &job->next;
	return job;
}

static void release(struct fake_mark *mark)
{
	if (mark && --mark->users == 0)
		free(mark);
}

int fake_record(struct CUevent_st *event, struct CUstream_st *stream)
{
	struct fake_mark *mark = calloc(1, sizeof *mark);
	struct fake_job *job = mark ? fake_queue(stream, FAKE_RECORD) : NULL;
	if (!job) {
		free(mark);
		return -1;
	}
	*mark = (struct fake_mark){.users = 2, .stream = stream};
	release(event->mark);
	event->mark = job->mark = mark;
	return 0;
}

int fake_wait_for(struct CUstream_st *stream, const struct CUevent_st *event)
{
	if (!event->mark)
		return 0;
	struct fake_job *job = fake_queue(stream, FAKE_WAIT_FOR);
	if (!job)
		return -1;
	job->mark = event->mark;
	job->mark->users++;
	return 0;
}

void fake_event_free(struct CUevent_st *event)
{
	release(event->mark);
	free(event);
}

int fake_event_is_pending(const struct CUevent_st *event)
{
	const struct fake_mark *mark = event->mark;
	const struct fake_job *job = mark && !mark->done ? mark->stream->first : NULL;
	for (; job && job->mark != mark; job = job->next)
		if (job->kind != FAKE_RECORD)
			return 1;
	return 0;
}

/* Seconds that a job takes. A copy within the device is as fast as a kernel. */
static double duration(const struct fake_job *job)
{
	int bus = job->kind == FAKE_COPY && (fake_memory_is_host(job->to, job->bytes) ||
						    fake_memory_is_host(job->from, job->bytes));
	if (job->kind == FAKE_LAUNCH)
		return KERNEL_SECONDS;
	return bus ? COPY_SECONDS + (double)job->bytes / fake_driver()->bytes_a_second
		   : COPY_SECONDS;
}

static void launch(struct fake_job *job)
{
	const struct fake_kernel *kernel = job->kernel;
	void *arguments[FAKE_ARGUMENT_WORDS];
	for (int i = 0, word = 0; kernel->argument_bytes[i]; i++) {
		arguments[i] = &job->arguments[word];
		word += (kernel->argument_bytes[i] + 7) / 8;
	}
	kernel->run(kernel, arguments, &job->shape);
}

static void perform(struct CUstream_st *stream, struct fake_job *job)
{
	if (job->kind == FAKE_WAIT_FOR) {
		if (job->mark->seconds > stream->seconds)
			stream->seconds = job->mark->seconds;
		return;
	}
	if (job->kind == FAKE_RECORD) {
		job->mark->seconds = stream->seconds;
		job->mark->done = 1;
		return;
	}
	if (job->queued > stream->seconds)
		stream->seconds = job->queued;
	stream->seconds += duration(job);
	fake_driver()->stream_seconds[stream->number % 8] = stream->seconds;
	failed |= ++fake_driver()->jobs == fake_driver()->fail_job;
	if (job->kind == FAKE_COPY && job->bytes == fake_driver()->copy_bytes)
		failed |= ++fake_driver()->sized_copies == fake_driver()->fail_copy;
	if (failed)
		return;
	fake_memory_open();
	if (job->kind == FAKE_COPY)
		memcpy(job->to, job->from, job->bytes);
	else if (job->kind == FAKE_FILL)
		memset(job->to, job->byte, job->bytes);
	else
		launch(job);
}

/* Does the first job of a stream, and what it waits for on other streams. */
static void step(struct CUstream_st *stream)
{
	struct fake_job *job = stream->first;
	while (job->kind == FAKE_WAIT_FOR && !job->mark->done)
		step(job->mark->stream);
	perform(stream, job);
	stream->first = job->next;
	if (!stream->first)
		stream->last = &stream->first;
	release(job->mark);
	free(job);
}

/* Before a job that something waits for, others may be done. */
static void step_by_chance(struct CUstream_st *stream)
{
	fake_play();
	if (stream->first)
		step(stream);
}

void fake_finish_stream(struct CUstream_st *stream)
{
	while (stream->first)
		step_by_chance(stream);
	if (stream->seconds > host_seconds)
		host_seconds = stream->seconds;
}

void fake_finish_event(const struct CUevent_st *event)
{
	const struct fake_mark *mark = event->mark;
	if (!mark)
		return;
	while (!mark->done)
		step_by_chance(mark->stream);
	if (mark->seconds > host_seconds)
		host_seconds = mark->seconds;
}

void fake_finish_all(void)
{
	for (struct CUstream_st *stream = streams; stream; stream = stream->next)
		fake_finish_stream(stream);
}

static int is_blocked(const struct CUstream_st *stream)
{
	const struct fake_job *job = stream->first;
	return !job || (job->kind == FAKE_WAIT_FOR && !job->mark->done);
}

/* Does up to `most` jobs of the stream of that number, as far as they wait for nothing. */
static void play_stream(uint64_t number, uint64_t most)
{
	for (struct CUstream_st *stream = streams; stream; stream = stream->next)
		while ((uint64_t)stream->number == number && most > 0 && !is_blocked(stream)) {
			step(stream);
			most--;
		}
}

void fake_play(void)
{
	uint64_t seed = fake_driver()->seed;
	if (seed == 0 || created == 0)
		return;
	for (uint64_t number = 0; seed < FAKE_RANDOM_SEEDS && number < (uint64_t)created; number++)
		if (seed >> (number < 3 ? number : 2) & 1)
			play_stream(number, UINT64_MAX);
	if (seed >= FAKE_RANDOM_SEEDS && dice() % 8 < 1 + seed % 7)
		play_stream(dice() % (uint64_t)created, 1 + dice() % 4);
}
