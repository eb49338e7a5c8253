/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.h: what a sweep did when, as Chrome trace events (Perfetto opens them).
 *
 *     struct neap_trace *trace;
 *     neap_trace_create(&trace, "my model", 0);
 *     options.trace = trace;                      of neap_sweep_create
 *     neap_sweep_run(sweep, ...);                 the last run stays in it
 *     neap_trace_write("sweep.json", &trace, 1);
 *     neap_trace_free(trace);
 *
 * A track for the computation (advance, record, turn, backward with their steps; waits
 * with their reason; recoveries of states and tapes around what they cost), one for each
 * channel of a tier (put and get with their bytes and how long they were queued), and
 * marks for overflows, lost records and plans made anew.
 */
#ifndef NEAP_TRACE_H
#define NEAP_TRACE_H

#include <stdint.h>
#include <neap/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct neap_trace;

/*
 * A ring of `capacity` events (0: 65536), 64 bytes each, all of it allocated and touched
 * here: a sweep adds to it without allocating, and drops the oldest when it is full.
 * `name` is copied.
 */
NEAP_API int neap_trace_create(struct neap_trace **trace, const char *name, int64_t capacity);
/* Number of stored events of the last run. */
NEAP_API int64_t neap_trace_events(const struct neap_trace *trace);
/* Number of events of the last run that were dropped. */
NEAP_API int64_t neap_trace_dropped(const struct neap_trace *trace);
/*
 * Writes the last runs of some traces as one JSON object, a process each, times from
 * the start of each run; `otherData` has their totals and what was dropped. The file is
 * whole or not there.
 */
NEAP_API int neap_trace_write(const char *path, struct neap_trace *const *traces, int count);
/* Frees a trace; NULL is allowed. */
NEAP_API void neap_trace_free(struct neap_trace *trace);

#ifdef __cplusplus
}
#endif
#endif
