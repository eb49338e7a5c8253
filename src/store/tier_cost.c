/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tier_cost.c: the seconds of a record as a straight line in its bytes, from small and large
 * records; and the transfer overhead. For the latter transfers that last longer than the
 * computation are issued, the computation runs, then the transfers are waited for. Each such run
 * is compared with a run without transfers just before.
 */
#include "store/tier_cost.h"
#include "base/checked.h"
#include "base/fail.h"
#include "store/tier_state.h"
#include "sys/clock.h"
#include "sys/memory.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum {
	SMALL = 4096,
	LARGE = 1 << 18,	/* bytes of records; a large one is at least this */
	BESIDE_SMALL = 1 << 14, /* of records that travel beside the computation */
	BESIDE_LARGE = 1 << 18,
	BESIDE = 8,	   /* their buffers and places */
	BESIDE_MOST = 240, /* and how many are issued at once */
	REPEATS_MOST = 99,
	RATE_SHARE = 16, /* of the memory: a record whose rate is measured, and its staging */
	RATE_PARTS = 4,	 /* of NEAP__MEASURE_MOST: such a record; two, and staging, are mapped */
	SHARE = 8,	 /* of the memory: all records beside a computation, and their staging */
};
#define NEVER 1e15  /* bytes a second that no medium reaches */
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

struct cost_line {
	double rate, fixed;
};

/* The time of a record as fixed + bytes / rate, from the rates of small and large ones. */
static struct cost_line line_of(double small_rate, double large_rate, uint64_t large)
{
	double small_time = SMALL / small_rate, large_time = (double)large / large_rate;
	double rate = ((double)large - SMALL) / (large_time - small_time);

	if (!(large_time > small_time) || !(rate < NEVER))
		return (struct cost_line){large_rate, 0}; /* noise: nothing is fixed */
	return (struct cost_line){rate, fmax(small_time - SMALL / rate, 0)};
}

/* An equal part of the memory that is there, in whole pages. */
static uint64_t part_of(uint64_t memory, int parts)
{
	return memory / (uint64_t)parts & ~UINT64_C(4095);
}

int neap__tier_cost_rates(const struct neap__tier_calls *calls, struct neap_calibrated_tier *cost,
	struct neap_tier *tier, uint64_t bytes, uint64_t memory, int repeats, double seconds)
{
	double write[REPEATS_MOST], read[REPEATS_MOST];
	double write_fixed[REPEATS_MOST], read_fixed[REPEATS_MOST];
	struct neap_tier_spec small, large;
	struct neap_calibrated_tier own;

	cost = cost ? cost : &own;
	neap_tier_describe(tier, SMALL, &small);
	uint64_t most = part_of(small.capacity, 4); /* two in flight, and what they take */
	most = most < part_of(memory, RATE_SHARE) ? most : part_of(memory, RATE_SHARE);
	most = most < NEAP__MEASURE_MOST / RATE_PARTS ? most : NEAP__MEASURE_MOST / RATE_PARTS;
	bytes = bytes < LARGE ? LARGE : bytes;
	bytes = bytes < most ? bytes : most;
	bytes = bytes > SMALL ? bytes : 2 * SMALL;
	repeats = repeats < REPEATS_MOST ? repeats : REPEATS_MOST;
	for (int i = 0; i < repeats; i++) {
		/* Where the tier is too small that is said of the larger ones. */
		NEAP_TRY(calls->measure(tier, bytes, seconds));
		neap_tier_describe(tier, bytes, &large);
		NEAP_TRY(calls->measure(tier, SMALL, seconds / 2));
		neap_tier_describe(tier, SMALL, &small);
		struct cost_line w = line_of(small.write_rate, large.write_rate, bytes);
		struct cost_line r = line_of(small.read_rate, large.read_rate, bytes);
		write[i] = w.rate;
		read[i] = r.rate;
		write_fixed[i] = w.fixed;
		read_fixed[i] = r.fixed;
	}
	cost->write = neap__timing_of(write, repeats);
	cost->read = neap__timing_of(read, repeats);
	cost->write_fixed = neap__timing_of(write_fixed, repeats).median;
	cost->read_fixed = neap__timing_of(read_fixed, repeats).median;
	neap_tier_set_rates(tier, cost->write.median, cost->read.median,
		(cost->write_fixed + cost->read_fixed) / 2);
	return 0;
}

/* Records that are moved beside the computation, each buffer several times. */
struct test_records {
	const struct neap__tier_calls *calls;
	unsigned char *data;
	uint64_t bytes; /* of one */
	int count;
	int64_t tickets[BESIDE_MOST];
};

static int transfer(struct neap_tier *tier, const struct test_records *r, int write, int64_t place,
	int64_t *ticket)
{
	unsigned char *data = r->data + (uint64_t)place * r->bytes;
	return write ? r->calls->put(tier, place, (uint64_t)place, data, r->bytes, ticket)
		     : r->calls->get(tier, place, (uint64_t)place, data, r->bytes, ticket);
}

/* Issues reads and writes in turn, of places that differ. */
static int issue(struct neap_tier *tier, struct test_records *records, int *issued)
{
	for (*issued = 0; *issued < records->count; (*issued)++) {
		int place = *issued % BESIDE;
		NEAP_TRY(transfer(tier, records, place % 2, place, &records->tickets[*issued]));
	}
	return 0;
}

/* Runs the computation with transfers beside it; gives its seconds and those of the transfers. */
static int together(struct neap_tier *tier, struct test_records *records,
	const struct neap__work *work, double *computing, double *moving)
{
	int issued, rc;
	double start = neap__seconds();

	rc = issue(tier, records, &issued);
	if (rc == 0)
		rc = work->run(work->user);
	*computing = neap__seconds() - start;
	for (int i = 0; i < issued; i++) {
		int answer = records->calls->wait(tier, records->tickets[i]);
		rc = rc < 0 ? rc : answer;
	}
	*moving = neap__seconds() - start;
	return rc;
}

/* Writes a record to every place, so that all can be read. */
static int put_all(struct neap_tier *tier, const struct test_records *records)
{
	int rc = 0;
	for (int64_t place = 0, ticket; rc == 0 && place < BESIDE; place++) {
		rc = transfer(tier, records, 1, place, &ticket);
		if (rc == 0)
			rc = records->calls->wait(tier, ticket);
	}
	return rc;
}

/*
 * Overhead of a record of one size: seconds that the computation loses by it, the share of the
 * tier's rate that is left beside the computation, and processor seconds of the transfer itself.
 */
struct record_overhead {
	double lost, slowed, busy;
};

static int transfers_only(struct neap_tier *tier, struct test_records *records, double *busy)
{
	double start = neap__cpu_seconds();
	int issued, rc = issue(tier, records, &issued);
	for (int i = 0; i < issued; i++) {
		int answer = records->calls->wait(tier, records->tickets[i]);
		rc = rc < 0 ? rc : answer;
	}
	*busy = (neap__cpu_seconds() - start) / records->count;
	return rc;
}

static int repeat(struct neap_tier *tier, struct test_records *records,
	const struct neap__work *work, const struct neap_tier_spec *spec, int repeats,
	struct record_overhead *overhead)
{
	double lost[REPEATS_MOST], share[REPEATS_MOST], busy[REPEATS_MOST];
	double undisturbed, computing, moving;
	double least = records->count / 2.0 *
		       (neap_tier_seconds(spec, 0, records->bytes) +
			       neap_tier_seconds(spec, 1, records->bytes));

	for (int i = 0; i < repeats; i++) {
		double start = neap__seconds();
		NEAP_TRY(work->run(work->user));
		undisturbed = neap__seconds() - start;
		NEAP_TRY(transfers_only(tier, records, &busy[i]));
		NEAP_TRY(together(tier, records, work, &computing, &moving));
		double part = fmin(computing / moving, 1); /* of the transfers, beside it */
		lost[i] = (computing - undisturbed) / (records->count * part);
		share[i] = fmin(least, moving) / moving;
	}
	overhead->lost = fmax(neap__timing_of(lost, repeats).median, 0);
	overhead->slowed = neap__timing_of(share, repeats).median;
	overhead->busy = neap__timing_of(busy, repeats).median;
	return 0;
}

void neap__tier_unmap(const struct neap_tier *tier, void *buffer, uint64_t bytes)
{
	const struct neap_memory_ops *memory = tier->ops.memory;
	if (memory)
		memory->unmap(memory->user, buffer, neap__round_up(bytes, 4096));
	else
		neap__unmap_pages(buffer, bytes);
}

int neap__tier_map(const struct neap_tier *tier, unsigned char **buffer, uint64_t bytes)
{
	const struct neap_memory_ops *memory = tier->ops.memory;
	if (!memory) {
		NEAP_TRY(neap__map_pages((void **)buffer, bytes));
		for (uint64_t i = 0; i < bytes; i++)
			(*buffer)[i] = (unsigned char)(i * 2654435761u >> 13);
		return 0;
	}
	uint64_t whole = neap__round_up(bytes, 4096);
	*buffer = memory->map(memory->user, whole);
	if (!*buffer)
		return neap__fail(
			-ENOMEM, "%s: no memory for records to measure with", tier->about);
	int rc = memory->fill(memory->user, *buffer, 0x5a, whole);
	if (rc < 0)
		neap__tier_unmap(tier, *buffer, bytes);
	return rc;
}

static int measure_overhead(const struct neap__tier_calls *calls, struct neap_tier *tier,
	uint64_t bytes, const struct neap__work *work, int repeats,
	struct record_overhead *overhead)
{
	struct neap_tier_spec spec;
	struct test_records records = {.calls = calls, .bytes = bytes};

	neap_tier_describe(tier, bytes, &spec);
	double each = fmax(neap_tier_seconds(&spec, 0, bytes), neap_tier_seconds(&spec, 1, bytes));
	double wanted = each > 0 ? OUTLAST * work->seconds / each : BESIDE_MOST;
	records.count = (int)fmax(fmin(wanted, BESIDE_MOST), BESIDE) & ~1;
	NEAP_TRY(calls->format(tier, bytes, BESIDE, NULL));
	NEAP_TRY(neap__tier_map(tier, &records.data, BESIDE * bytes));
	int rc = put_all(tier, &records);
	if (rc == 0)
		rc = repeat(tier, &records, work, &spec, repeats, overhead);
	neap__tier_unmap(tier, records.data, BESIDE * bytes);
	return rc;
}

uint64_t neap__tier_cost_left(uint64_t memory)
{
	return memory - 2 * (memory / SHARE);
}

int neap__tier_cost_beside(const struct neap__tier_calls *calls, struct neap__beside *beside,
	struct neap_tier *tier, const struct neap__work *work, uint64_t memory, int repeats)
{
	struct neap_tier_spec spec;
	struct record_overhead small, large;

	neap_tier_describe(tier, SMALL, &spec);
	uint64_t most = part_of(spec.capacity, 2 * BESIDE);
	most = most < part_of(memory, SHARE * BESIDE) ? most : part_of(memory, SHARE * BESIDE);
	uint64_t few = most < BESIDE_SMALL ? most : BESIDE_SMALL;
	uint64_t many = most < BESIDE_LARGE ? most : BESIDE_LARGE;
	*beside = (struct neap__beside){.slowed = 1, .busy = INFINITY};
	if (most < 4096 || tier->journalled)
		return 0;
	repeats = repeats < REPEATS_MOST ? repeats : REPEATS_MOST;
	NEAP_TRY(measure_overhead(calls, tier, few, work, repeats, &small));
	NEAP_TRY(measure_overhead(calls, tier, many, work, repeats, &large));
	if (many > few)
		beside->cpu = fmax(large.lost - small.lost, 0) / (double)(many - few);
	else
		beside->cpu = large.lost / (double)many;
	beside->busy = large.busy / (double)many;
	beside->cpu = fmin(beside->cpu, NEAP__LOST_MOST * beside->busy);
	beside->fixed = fmin(fmax(small.lost - beside->cpu * (double)few, 0), small.busy);
	beside->slowed = fmin(large.slowed, 1);
	neap_tier_set_cpu(tier, beside->cpu, beside->fixed);
	if (beside->slowed > 0)
		neap_tier_set_rates(tier, spec.write_rate * beside->slowed,
			spec.read_rate * beside->slowed, spec.write_fixed / beside->slowed);
	return 0;
}

int neap__tier_cost_measure(const struct neap__tier_calls *calls, struct neap_calibrated_tier *cost,
	struct neap_tier *tier, uint64_t bytes, const struct neap__work *work, uint64_t memory,
	int repeats, double seconds)
{
	const char *about = neap_tier_about(tier);
	size_t n = 0;

	bytes = bytes < LARGE ? LARGE : bytes;
	*cost = (struct neap_calibrated_tier){.record_bytes = bytes, .slowed = 1};
	for (; about[n] && n < sizeof cost->about - 1; n++)
		cost->about[n] = about[n];
	NEAP_TRY(neap__tier_cost_rates(calls, cost, tier, bytes, memory, repeats, seconds));
	struct neap__beside beside;
	NEAP_TRY(neap__tier_cost_beside(calls, &beside, tier, work, memory, repeats));
	cost->cpu = beside.cpu;
	cost->cpu_fixed = beside.fixed;
	cost->slowed = beside.slowed;
	return 0;
}
