/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tiercost.c: the time of a record as a straight line in its bytes, from small and large
 * ones, and how much transfers and a computation slow each other: transfers that last
 * longer than the computation are issued, then it runs, then the transfers are waited for.
 */
#include "train/tiercost.h"
#include "base/checked.h"
#include "base/fail.h"
#include "sys/clock.h"
#include "sys/memory.h"

#include <math.h>
#include <stdlib.h>

enum {
	SMALL = 4096,
	LARGE = 1 << 18, /* bytes of records; a large one is at least this */
	BESIDE = 16,	 /* records in flight beside the computation */
	REPEATS_MOST = 99,
};
#define BESIDE_MOST (UINT64_C(64) << 20) /* bytes of buffers beside the computation */
#define NEVER 1e15			 /* bytes a second that no medium reaches */
#define OUTLAST 1.5 /* transfers issued take this much longer than the computation */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

struct neap_timing neap__timing_of(double *values, int n)
{
	qsort(values, (size_t)n, sizeof *values, by_value);
	double median = n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
	return (struct neap_timing){median, median > 0 ? (values[n - 1] - values[0]) / median : 0};
}

static int transfer(struct neap_tier *tier, int write, int64_t place, void *data, uint64_t bytes,
	int64_t *ticket)
{
	return write ? neap_tier_put(tier, place, (uint64_t)place, data, bytes, ticket)
		     : neap_tier_get(tier, place, (uint64_t)place, data, bytes, ticket);
}

struct line {
	double rate, fixed;
};

/* The time of a record as fixed + bytes / rate, from the rates of small and large ones. */
static struct line line_of(double small_rate, double large_rate, uint64_t large)
{
	double small_time = SMALL / small_rate, large_time = (double)large / large_rate;
	double rate = ((double)large - SMALL) / (large_time - small_time);

	if (!(large_time > small_time) || !(rate < NEVER))
		return (struct line){large_rate, 0}; /* noise: nothing is fixed */
	return (struct line){rate, fmax(small_time - SMALL / rate, 0)};
}

static int rates(struct neap_calibrated_tier *cost, struct neap_tier *tier, uint64_t bytes,
	int repeats, double seconds)
{
	double write[REPEATS_MOST], read[REPEATS_MOST];
	double write_fixed[REPEATS_MOST], read_fixed[REPEATS_MOST];
	struct neap_tier_spec small, large;

	for (int i = 0; i < repeats; i++) {
		NEAP_TRY(neap_tier_measure(tier, SMALL, seconds / 2));
		neap_tier_describe(tier, SMALL, &small);
		NEAP_TRY(neap_tier_measure(tier, bytes, seconds));
		neap_tier_describe(tier, bytes, &large);
		struct line w = line_of(small.write_rate, large.write_rate, bytes);
		struct line r = line_of(small.read_rate, large.read_rate, bytes);
		write[i] = w.rate;
		read[i] = r.rate;
		write_fixed[i] = w.fixed;
		read_fixed[i] = r.fixed;
	}
	cost->write = neap__timing_of(write, repeats);
	cost->read = neap__timing_of(read, repeats);
	cost->write_fixed = neap__timing_of(write_fixed, repeats).median;
	cost->read_fixed = neap__timing_of(read_fixed, repeats).median;
	return 0;
}

/* Records that travel beside the computation. */
struct cargo {
	unsigned char *data;
	uint64_t bytes; /* of one */
	int64_t tickets[BESIDE];
};

static int issue(struct neap_tier *tier, struct cargo *cargo, int write, int *issued)
{
	for (*issued = 0; *issued < BESIDE; (*issued)++)
		NEAP_TRY(transfer(tier, write, *issued,
			cargo->data + (uint64_t)*issued * cargo->bytes, cargo->bytes,
			&cargo->tickets[*issued]));
	return 0;
}

/* One computation with transfers beside it: its seconds, and the transfers'. */
static int together(struct neap_tier *tier, struct cargo *cargo, int write,
	const struct neap__work *work, double *computing, double *moving)
{
	int issued, rc;
	double start = neap__seconds();

	rc = issue(tier, cargo, write, &issued);
	double begun = neap__seconds();
	if (rc == 0 && work)
		rc = work->run(work->user);
	*computing = neap__seconds() - begun;
	for (int i = 0; i < issued; i++) {
		int answer = neap_tier_wait(tier, cargo->tickets[i]);
		rc = rc < 0 ? rc : answer;
	}
	*moving = neap__seconds() - start;
	return rc;
}

/* What both lose in one direction: seconds of computing a byte, and the rate's share. */
static int beside(struct neap_tier *tier, struct cargo *cargo, int write,
	const struct neap__work *work, const struct line *line, int repeats, double *cpu,
	double *slowed)
{
	double lost[REPEATS_MOST], share[REPEATS_MOST], computing, moving;
	double all = BESIDE * (double)cargo->bytes;

	for (int i = 0; i < repeats; i++) {
		NEAP_TRY(together(tier, cargo, write, work, &computing, &moving));
		double part = fmin(computing / moving, 1); /* of the transfers, beside it */
		lost[i] = fmax(computing - work->alone, 0) / (all * part);
		share[i] = fmin(BESIDE * line->fixed + all / line->rate, moving) / moving;
	}
	*cpu = neap__timing_of(lost, repeats).median;
	*slowed = neap__timing_of(share, repeats).median;
	return 0;
}

static int interference(struct neap_calibrated_tier *cost, struct neap_tier *tier,
	const struct neap__work *work, int repeats)
{
	struct neap_tier_spec spec;
	struct cargo cargo;
	const struct line lines[2] = {
		{cost->read.median, cost->read_fixed}, {cost->write.median, cost->write_fixed}};
	double cpu[2], slowed[2], computing, moving;
	double rate = fmax(cost->write.median, cost->read.median);
	double wanted = fmin(OUTLAST * work->alone * rate, (double)BESIDE_MOST);

	neap_tier_describe(tier, 4096, &spec);
	wanted = fmin(wanted, (double)spec.capacity / 2);
	cargo.bytes = (uint64_t)(wanted / BESIDE) & ~UINT64_C(63);
	if (cargo.bytes < 4096)
		cargo.bytes = 4096;
	NEAP_TRY(neap_tier_format(tier, cargo.bytes, BESIDE, NULL));
	NEAP_TRY(neap__map_pages((void **)&cargo.data, BESIDE * cargo.bytes));
	for (uint64_t i = 0; i < BESIDE * cargo.bytes; i++)
		cargo.data[i] = (unsigned char)(i * 2654435761u >> 13);
	int rc = together(tier, &cargo, 1, NULL, &computing, &moving); /* there is what is read */
	for (int write = 1; rc == 0 && write >= 0; write--)
		rc = beside(tier, &cargo, write, work, &lines[write], repeats, &cpu[write],
			&slowed[write]);
	neap__unmap_pages(cargo.data, BESIDE * cargo.bytes);
	NEAP_TRY(rc);
	cost->cpu = (cpu[0] + cpu[1]) / 2;
	cost->slowed = fmin(slowed[0], slowed[1]);
	return 0;
}

int neap__tiercost_measure(struct neap_calibrated_tier *cost, struct neap_tier *tier,
	uint64_t bytes, const struct neap__work *work, int repeats, double seconds)
{
	const char *about = neap_tier_about(tier);
	size_t n = 0;

	bytes = bytes < LARGE ? LARGE : bytes;
	*cost = (struct neap_calibrated_tier){.record_bytes = bytes, .slowed = 1};
	for (; about[n] && n < sizeof cost->about - 1; n++)
		cost->about[n] = about[n];
	NEAP_TRY(rates(cost, tier, bytes, repeats, seconds));
	NEAP_TRY(interference(cost, tier, work, repeats));
	neap_tier_set_rates(tier, cost->write.median, cost->read.median,
		fmin(cost->write_fixed, cost->read_fixed));
	return 0;
}
