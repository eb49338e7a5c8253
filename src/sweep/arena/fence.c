/* SPDX-License-Identifier: Apache-2.0 */
/* fence.c: waits for calls of a model that returned before their work was done. */
#include "sweep/arena/fence.h"
#include "sweep/trace/trace_ring.h"
#include "base/fail.h"
#include "base/print.h"
#include "sys/clock.h"

static void forget_rows(struct neap__fence *f)
{
	f->queued = f->rows = 0;
	f->stats = NULL;
	f->trace = NULL;
}

void neap__fence_begin_run(struct neap__fence *f)
{
	forget_rows(f);
	f->failed = 0;
}

static int row_of(const struct neap__fence *f, const double *seconds)
{
	int i = 0;
	while (i < f->rows && f->seconds[i] != seconds)
		i++;
	return i;
}

void neap__fence_before(struct neap__fence *f, const double *seconds)
{
	if (f->exact && f->rows > 0 && row_of(f, seconds) == f->rows)
		neap__fence_wait(f);
}

void neap__fence_after(struct neap__fence *f, struct neap_sweep_stats *stats,
	struct neap_trace *trace, double *seconds, double planned)
{
	if (!f->finish)
		return;
	f->queued = 1;
	int i = row_of(f, seconds);
	if (!seconds || i == NEAP__FENCE_ROWS)
		return;
	if (i == f->rows) {
		f->seconds[f->rows++] = seconds;
		f->planned[i] = 0;
	}
	f->planned[i] += planned;
	f->stats = stats;
	f->trace = trace;
}

/*
 * The work of several kinds of calls is one wait, which cannot tell them apart: each kind gets the
 * share that it was planned to take.
 */
static void charge(struct neap__fence *f, double start, double end)
{
	double sum = 0;
	for (int i = 0; i < f->rows; i++)
		sum += f->planned[i];
	for (int i = 0; i < f->rows; i++) {
		double share = sum > 0 ? f->planned[i] / sum : 1.0 / f->rows;
		*f->seconds[i] += share * (end - start);
		if (f->seconds[i] != &f->stats->copies)
			f->stats->compute += share * (end - start);
	}
	if (f->rows > 0)
		neap__trace_add(
			f->trace, &(struct neap__event){
					  .start = start, .end = end, .kind = NEAP__EVENT_FENCE});
}

/* Keeps a failure with its line. */
static void note(struct neap__fence *f, int rc)
{
	f->failed = rc < 0 ? rc : NEAP_EMODEL;
	if (rc < 0 && neap_detail()[0])
		neap__print(f->line, sizeof f->line, "%s", neap_detail());
	else if (rc < 0)
		neap__print(f->line, sizeof f->line, "the model's fence answered %d: %s", rc,
			neap_strerror(rc));
	else
		neap__print(f->line, sizeof f->line, "the model's fence answered %d", rc);
}

void neap__fence_wait(struct neap__fence *f)
{
	if (!f->queued)
		return;
	char before[NEAP__FENCE_LINE]; /* the line about what ends the run already */
	double start = neap__seconds();
	neap__print(before, sizeof before, "%s", neap_detail());
	neap_detail_set(NULL);
	int rc = f->finish(f->user);
	charge(f, start, neap__seconds());
	forget_rows(f);
	if (rc != 0 && !f->failed)
		note(f, rc);
	neap_detail_set(before);
}

int neap__fence_failure(const struct neap__fence *f)
{
	return neap__fail(f->failed, "%s", f->line);
}
