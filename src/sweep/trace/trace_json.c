/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_json.c: writes a trace as JSON of the trace event format, the object form. Transfers of
 * one channel that overlap get tracks of their own, as few as possible, so that the events of
 * each track nest.
 */
#include "sweep/trace/trace_ring.h"
#include "base/fail.h"
#include "base/print.h"
#include "sys/atomic_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define LANES 64   /* tracks of a channel at most; transfers beyond share the last */
#define ROOM 65536 /* bytes of text before it is written */
#define LINE 1024  /* bytes of one event at most */

struct trace_writing {
	struct neap__atomic_file *file;
	int rc, first;
	size_t used;
	char text[ROOM];
};

static void flush(struct trace_writing *w)
{
	if (w->rc == 0)
		w->rc = neap__atomic_file_write(w->file, w->text, w->used);
	w->used = 0;
}

static void print(struct trace_writing *w, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void print(struct trace_writing *w, const char *format, ...)
{
	va_list args;
	if (ROOM - w->used < LINE)
		flush(w);
	va_start(args, format);
	int n = neap__vprint(w->text + w->used, LINE, format, args);
	va_end(args);
	w->used += (size_t)(n < LINE ? n : LINE - 1);
}

/* Names come from the caller: quotes, backslashes and what is not plain become '_'. */
static const char *plain(char room[64], const char *name)
{
	int n = 0;
	for (; name[n] && n < 63; n++)
		room[n] = name[n] < ' ' || name[n] > '~' || name[n] == '"' || name[n] == '\\'
				  ? '_'
				  : name[n];
	room[n] = '\0';
	return room;
}

static void begin(struct trace_writing *w)
{
	print(w, "%s\n", w->first ? "" : ",");
	w->first = 0;
}

static void name_track(struct trace_writing *w, int pid, int tid, const char *name)
{
	begin(w);
	print(w,
		"{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"thread_name\",\"args\":"
		"{\"name\":\"%s\"}}",
		pid, tid, name);
	begin(w);
	print(w,
		"{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"thread_sort_index\",\"args\":"
		"{\"sort_index\":%d}}",
		pid, tid, tid);
}

static int channel_of(const struct neap__event *e)
{
	return 2 * (e->tier - 1) + !(e->flags & NEAP__EVENT_PUT);
}

static int track(int channel, int lane)
{
	return 2 + channel * LANES + lane;
}

static double micros(const struct neap_trace *t, double at)
{
	return (at - t->origin) * 1e6;
}

static const char *kind_name(uint32_t kind)
{
	static const char *const names[NEAP__EVENTS] = {
		[NEAP__EVENT_ADVANCE] = "advance",
		[NEAP__EVENT_RECORD] = "record",
		[NEAP__EVENT_REPLAY] = "replay",
		[NEAP__EVENT_TURN] = "turn",
		[NEAP__EVENT_BACKWARD] = "backward",
		[NEAP__EVENT_COPY] = "copy",
		[NEAP__EVENT_FENCE] = "fence",
		[NEAP__EVENT_RECOVER] = "recover",
		[NEAP__EVENT_REFILL] = "refill",
		[NEAP__EVENT_OVERFLOW] = "overflow",
		[NEAP__EVENT_LOST] = "lost record",
		[NEAP__EVENT_REPLAN] = "replan",
	};
	return names[kind];
}

/* Writes an event of the first track: computation, waits and marks. */
static void write_computing(
	struct trace_writing *w, const struct neap_trace *t, int pid, const struct neap__event *e)
{
	int waits = e->kind >= NEAP__EVENT_WAIT && e->kind < NEAP__EVENT_TRANSFER;
	begin(w);
	if (e->kind > NEAP__EVENT_TRANSFER)
		print(w, "{\"ph\":\"i\",\"s\":\"t\",\"pid\":%d,\"tid\":1,\"ts\":%.3f,", pid,
			micros(t, e->start));
	else
		print(w, "{\"ph\":\"X\",\"pid\":%d,\"tid\":1,\"ts\":%.3f,\"dur\":%.3f,", pid,
			micros(t, e->start), (e->end - e->start) * 1e6);
	if (waits)
		print(w, "\"cat\":\"wait\",\"name\":\"wait: %s\",\"args\":{",
			neap_stall_name((int)(e->kind - NEAP__EVENT_WAIT)));
	else
		print(w, "\"cat\":\"%s\",\"name\":\"%s\",\"args\":{",
			e->kind <= NEAP__EVENT_BACKWARD ? "compute" : "sweep", kind_name(e->kind));
	print(w, "\"t0\":%lld,\"t1\":%lld", (long long)e->t0, (long long)e->t1);
	if (waits && e->tier > 0)
		print(w, ",\"payload\":\"%s\",\"tier\":%d",
			e->flags & NEAP__EVENT_TAPES ? "tape" : "state", e->tier);
	print(w, "}}");
}

static void write_transfer(struct trace_writing *w, const struct neap_trace *t, int pid, int lane,
	const struct neap__event *e)
{
	begin(w);
	print(w,
		"{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"cat\":\"transfer\","
		"\"name\":\"%s %s\",\"args\":{\"t0\":%lld,\"t1\":%lld,\"bytes\":%llu,"
		"\"queued_us\":%.3f,\"failed\":%s%s}}",
		pid, track(channel_of(e), lane), micros(t, e->start), (e->end - e->start) * 1e6,
		e->flags & NEAP__EVENT_PUT ? "put" : "get",
		e->flags & NEAP__EVENT_TAPES ? "tape" : "state", (long long)e->t0, (long long)e->t1,
		(unsigned long long)e->bytes, (e->start - e->queued) * 1e6,
		e->flags & NEAP__EVENT_FAILED ? "true" : "false",
		e->flags & NEAP__EVENT_LATE ? ",\"late\":true" : "");
}

static int by_start(const void *a, const void *b)
{
	const struct neap__event *x = *(struct neap__event *const *)a;
	const struct neap__event *y = *(struct neap__event *const *)b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->end < y->end) -
	       (x->end > y->end); /* an event that contains others comes first */
}

static void write_events(
	struct trace_writing *w, const struct neap_trace *t, int pid, struct neap__event **sorted)
{
	double ends[2 * NEAP_TIERS_MAX][LANES] = {{0}};
	int lanes[2 * NEAP_TIERS_MAX] = {0};
	int64_t n = neap_trace_events(t);
	char room[64], name[80];
	for (int64_t i = 0; i < n; i++)
		sorted[i] = &t->ring[i];
	qsort(sorted, (size_t)n, sizeof(struct neap__event *), by_start);
	for (int64_t i = 0; i < n; i++) {
		const struct neap__event *e = sorted[i];
		if (e->kind != NEAP__EVENT_TRANSFER) {
			write_computing(w, t, pid, e);
			continue;
		}
		int channel = channel_of(e), lane = 0;
		while (lane < LANES - 1 && lane < lanes[channel] && ends[channel][lane] > e->start)
			lane++;
		if (lane == lanes[channel]) {
			neap__print(name, sizeof name, "%s %s", plain(room, t->tiers[e->tier - 1]),
				e->flags & NEAP__EVENT_PUT ? "writes" : "reads");
			name_track(w, pid, track(channel, lane), name);
			lanes[channel]++;
		}
		ends[channel][lane] = e->end;
		write_transfer(w, t, pid, lane, e);
	}
}

static void write_totals(struct trace_writing *w, const struct neap_trace *t, int first)
{
	const struct neap_sweep_stats *s = &t->stats;
	char room[64];
	print(w, "%s\n{\"name\":\"%s\",\"strategy\":\"%s\",\"events\":%lld,\"dropped\":%lld,",
		first ? "" : ",", plain(room, t->name), t->strategy,
		(long long)neap_trace_events(t), (long long)neap_trace_dropped(t));
	print(w, "\"seconds\":%.9g,\"predicted\":%.9g,\"compute\":%.9g,\"copies\":%.9g,",
		s->seconds, s->predicted, s->compute, s->copies);
	print(w, "\"slowdown\":%.9g,\"stall\":%.9g,\"stalls\":{", s->slowdown, s->stall);
	for (int i = 0; i < NEAP_STALLS; i++)
		print(w, "%s\"%s\":%.9g", i ? "," : "", neap_stall_name(i), s->stalls[i]);
	print(w, "},\"recoveries\":%lld,\"late\":%lld,\"overflows\":%lld}",
		(long long)s->recoveries, (long long)s->late, (long long)s->overflows);
}

static void write_all(struct trace_writing *w, struct neap_trace *const *traces, int count,
	struct neap__event **sorted)
{
	char room[64];
	print(w, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
	w->first = 1;
	for (int i = 0; i < count; i++) {
		begin(w);
		print(w,
			"{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\",\"args\":"
			"{\"name\":\"%s\"}}",
			i + 1, plain(room, traces[i]->name));
		name_track(w, i + 1, 1, "computing");
		write_events(w, traces[i], i + 1, sorted);
	}
	print(w, "],\n\"otherData\":{\"sweeps\":[");
	for (int i = 0; i < count; i++)
		write_totals(w, traces[i], i == 0);
	print(w, "]}}\n");
	flush(w);
}

int neap_trace_write(const char *path, struct neap_trace *const *traces, int count)
{
	NEAP_NEED(path);
	int64_t most = 1;
	for (int i = 0; i < count; i++)
		if (neap_trace_events(traces[i]) > most)
			most = neap_trace_events(traces[i]);
	struct neap__event **sorted = malloc((size_t)most * sizeof *sorted);
	struct trace_writing *w = calloc(1, sizeof *w);
	int rc = sorted && w ? 0 : neap__fail_errno(ENOMEM, "trace");
	if (rc == 0)
		rc = neap__atomic_file_open(&w->file, path);
	if (rc == 0) {
		write_all(w, traces, count, sorted);
		rc = w->rc;
		if (rc < 0)
			neap__atomic_file_abort(w->file);
		else
			rc = neap__atomic_file_commit(w->file);
	}
	free(sorted);
	free(w);
	return rc;
}
