/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.h: a timeline of a sweep, as Chrome trace events (Perfetto opens them).
 *
 *     struct neap_trace *trace;
 *     neap_trace_create(&trace, "my model", 0);
 *     options.trace = trace;                      of neap_sweep_create
 *     neap_sweep_run(sweep, ...);                 the trace is of the last run
 *     neap_trace_write("sweep.json", &trace, 1);
 *     neap_trace_free(trace);
 *
 * The timeline has a track for the computation (advance, record, turn and backward with their
 * steps; waits with their reason; recoveries of states and tapes, around the calls that they
 * cause), a track for each channel of a tier (put and get with their bytes and their time in the
 * queue), and marks for overflows, lost records and replaced plans.
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
 * Creates a trace: a ring of `capacity` events (0: 65536) of 64 bytes each, all allocated and
 * touched at once. A sweep adds events without allocating, and drops the oldest when the ring is
 * full. `name` is copied. Returns 0 or a negative code.
 */
NEAP_API int neap_trace_create(struct neap_trace **trace, const char *name, int64_t capacity);
/* Returns the number of stored events of the last run. */
NEAP_API int64_t neap_trace_events(const struct neap_trace *trace);
/* Returns the number of events of the last run that were dropped. */
NEAP_API int64_t neap_trace_dropped(const struct neap_trace *trace);
/*
 * Writes the last runs of some traces as one JSON object, atomically: one process per trace, with
 * times from the start of its run; `otherData` has their totals and the numbers of dropped events.
 * Returns 0 or a negative code.
 */
NEAP_API int neap_trace_write(const char *path, struct neap_trace *const *traces, int count);
/* Frees a trace; NULL is allowed. */
NEAP_API void neap_trace_free(struct neap_trace *trace);

#ifdef __cplusplus
}
#endif
#endif
