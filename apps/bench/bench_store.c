/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_store.c: the rate of the file tier through each I/O engine, with records hashed and
 * copied, beside the rate of fio on the same disk in the same run, with blocks of the same size
 * and as many in flight. Blocks are written for the first time (the file system marks each as
 * written), written again, and read. Both programs wait until the file system has discarded
 * the blocks of the file before. The last row counts the bytes of a large slow file that stay in
 * the page cache.
 */
#include "bench/benchmark.h"
#include <neap/machine.h>

#include <errno.h>
#include <math.h>
#include <neap/tier.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/fail.h"
#include "bench/fio.h"
#include "store/tier_state.h"
#include "sys/engine.h"
#include "sys/memory.h"
#include "sys/scratch.h"

#define RECORD ((UINT64_C(4) << 20) - 64) /* with its trailer 4 MiB */
#define WHOLE (UINT64_C(4) << 20)
#define BLOCK (UINT64_C(256) << 10)
#define GIB 1073741824.0
#define CACHED_MOST (16.0 * 1024 * 1024) /* bytes of a slow file in the page cache */

enum {
	RECORDS = 256, /* of a pass */
	LARGE = 1024,  /* of the large file */
	DEPTH = 8,     /* blocks in flight, as the file tier has them */
	IN_FLIGHT = 4, /* records that were asked for and not waited for */
	FRESH = 0,
	AGAIN,
	READ,
	PASSES,
};

/* Engines of the table that are measured, at most. */
enum { ENGINES_MOST = 8 };
static int engines(void)
{
	int n = 0;
	while (n < ENGINES_MOST && neap__io_engine_name(n))
		n++;
	return n;
}

static const char *const passes[PASSES] = {"write, fresh blocks", "write", "read"};

/* A run of everything: rates of fio and of each engine. */
struct sample {
	struct neap__moved fio[PASSES], own[ENGINES_MOST][PASSES];
};

struct bench {
	const char *directory;
	uint64_t room;	     /* bytes free there */
	unsigned char *data; /* IN_FLIGHT records */
	int no_fio, works[ENGINES_MOST];
	struct sample samples[NEAP__BENCH_RUNS_MOST];
};

static int move(struct bench *b, struct neap_tier *tier, int write, int64_t records,
	struct neap__moved *moved)
{
	int64_t ticket[IN_FLIGHT], waited = 0;
	double start = neap_clock(), cpu = neap_cpu_clock();
	int rc = 0;
	for (int64_t i = 0; i < records + IN_FLIGHT && rc == 0; i++) {
		if (i >= IN_FLIGHT)
			rc = neap_tier_wait(tier, ticket[waited++ % IN_FLIGHT]);
		if (i >= records || rc < 0)
			continue;
		void *at = b->data + (uint64_t)(i % IN_FLIGHT) * WHOLE;
		rc = write ? neap_tier_put(tier, i, (uint64_t)i, at, RECORD, &ticket[i % IN_FLIGHT])
			   : neap_tier_get(
				     tier, i, (uint64_t)i, at, RECORD, &ticket[i % IN_FLIGHT]);
	}
	double bytes = (double)records * (double)WHOLE;
	moved->rate = bytes / (neap_clock() - start);
	moved->cpu = (neap_cpu_clock() - cpu) / bytes;
	return rc;
}

/* Three passes of one engine; it may not work here, which is no failure. */
static int run_engine(
	const struct neap__bench *bench, struct bench *b, int engine, struct neap__moved *moved)
{
	struct neap_tier *tier;
	NEAP_TRY(neap__bench_stopped(bench));
	setenv("NEAP_IO", neap__io_engine_name(engine), 1);
	int rc = neap_tier_open_file(&tier, b->directory, NULL);
	if (rc == NEAP_EUSAGE && strstr(neap_detail(), "does not work here"))
		return 0;
	NEAP_TRY(rc);
	b->works[engine] = 1;
	rc = neap__scratch_settle(b->directory);
	if (rc == 0)
		rc = neap_tier_format(tier, RECORD, RECORDS, NULL);
	for (int pass = 0; pass < PASSES && rc == 0; pass++) {
		rc = move(b, tier, pass != READ, RECORDS, &moved[pass]);
		rc = rc < 0 ? rc : neap__bench_stopped(bench);
	}
	neap_tier_close(tier);
	return rc;
}

static int run_fio(const struct neap__bench *bench, struct bench *b, struct neap__moved *moved)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/neap-fio-%ld", b->directory, (long)getpid());
	struct neap__fio fio = {path, RECORDS * WHOLE, BLOCK, DEPTH};
	int rc = neap__scratch_settle(b->directory);
	for (int pass = 0; pass < PASSES && rc == 0; pass++)
		rc = neap__fio_run(&moved[pass], &fio, pass != READ);
	unlink(path);
	NEAP_TRY(neap__bench_stopped(bench)); /* whatever has become of fio */
	b->no_fio = rc == -ENOENT;
	return b->no_fio ? 0 : rc;
}

static void add(struct neap_bench_row *row, const char *name, double value)
{
	row->more[row->nmore].name = name;
	row->more[row->nmore++].value = value;
}

/* One engine, one pass: fio's rate over ours, run by run. */
static int report(struct neap__bench *bench, const struct bench *b, int runs, int engine, int pass)
{
	struct neap_bench_row row = {.unit = "ratio"}, own = {0}, own_cpu = {0}, fio = {0};
	double ratio[NEAP__BENCH_RUNS_MOST], rate[NEAP__BENCH_RUNS_MOST];
	double cpu[NEAP__BENCH_RUNS_MOST], peer[NEAP__BENCH_RUNS_MOST];
	for (int i = 0; i < runs; i++) {
		const struct neap__moved *m = &b->samples[i].own[engine][pass];
		peer[i] = b->no_fio ? NAN : b->samples[i].fio[pass].rate / GIB;
		rate[i] = m->rate / GIB;
		cpu[i] = m->cpu * GIB;
		ratio[i] = peer[i] / rate[i];
	}
	neap__bench_sample(&row, ratio, runs);
	neap__bench_sample(&own, rate, runs);
	neap__bench_sample(&own_cpu, cpu, runs);
	neap__bench_sample(&fio, peer, runs);
	row.target = engine == 0 && !b->no_fio ? 1 / 0.9 : NAN;
	snprintf(row.name, sizeof row.name, "%s %s", neap__io_engine_name(engine), passes[pass]);
	char beside[48] = "no fio here";
	if (!b->no_fio)
		snprintf(beside, sizeof beside, "fio %.2f", fio.value);
	snprintf(row.what, sizeof row.what,
		"%.2f GiB/s, %s; 256K blocks, %d in flight; %.2f s of processor a GiB", own.value,
		beside, DEPTH, own_cpu.value);
	add(&row, "rate", own.value * GIB);
	add(&row, "fio_rate", fio.value * GIB);
	add(&row, "cpu_seconds_a_gib", own_cpu.value);
	add(&row, "fio_cpu_seconds_a_gib",
		b->no_fio ? NAN : b->samples[runs - 1].fio[pass].cpu * GIB);
	add(&row, "block", (double)BLOCK);
	add(&row, "depth", DEPTH);
	return neap__bench_row(bench, &row);
}

static int wants(const struct neap__bench *bench, int engine, int pass)
{
	char name[48];
	snprintf(name, sizeof name, "%s %s", neap__io_engine_name(engine), passes[pass]);
	return neap__bench_wants(bench, name);
}

static int needs(const struct bench *b, int64_t records)
{
	if (b->room >= (uint64_t)records * WHOLE)
		return 0;
	return neap__fail(NEAP_EUSAGE,
		"--dir: '%s' has %llu bytes free, but %llu are needed. Free space there, or choose "
		"another directory",
		b->directory, (unsigned long long)b->room,
		(unsigned long long)((uint64_t)records * WHOLE));
}

static int speeds(struct neap__bench *bench, struct bench *b)
{
	int runs = neap__bench_runs(bench, 5), wanted[ENGINES_MOST] = {0}, any = 0;
	for (int engine = 0; engine < engines(); engine++) {
		for (int pass = 0; pass < PASSES; pass++)
			wanted[engine] |= wants(bench, engine, pass);
		any |= wanted[engine];
	}
	NEAP_TRY(any ? needs(b, RECORDS) : 0);
	for (int i = 0; i < runs && any; i++) {
		NEAP_TRY(run_fio(bench, b, b->samples[i].fio));
		for (int engine = 0; engine < engines(); engine++)
			if (wanted[engine])
				NEAP_TRY(run_engine(bench, b, engine, b->samples[i].own[engine]));
	}
	for (int engine = 0; engine < engines(); engine++)
		for (int pass = 0; pass < PASSES; pass++)
			if (b->works[engine] && wants(bench, engine, pass))
				NEAP_TRY(report(bench, b, runs, engine, pass));
	return 0;
}

/* 4 GiB written and read: what of them stays in the page cache. */
static int page_cache(struct neap__bench *bench, struct bench *b)
{
	struct neap_bench_row row = {
		.name = "page cache", .unit = "bytes", .target = CACHED_MOST, .runs = 1};
	struct neap__moved moved;
	struct neap_tier *tier;
	uint64_t cached = 0;
	if (!neap__bench_wants(bench, row.name))
		return 0;
	NEAP_TRY(needs(b, LARGE));
	NEAP_TRY(neap_tier_open_file(&tier, b->directory, NULL));
	int rc = neap_tier_format(tier, RECORD, LARGE, NULL);
	if (rc == 0)
		rc = move(b, tier, 1, LARGE, &moved);
	if (rc == 0)
		rc = move(b, tier, 0, LARGE, &moved);
	if (rc == 0)
		rc = neap__tier_cached(tier, &cached);
	snprintf(row.what, sizeof row.what, "of 4 GiB: %.90s", neap_tier_about(tier));
	neap_tier_close(tier);
	NEAP_TRY(rc);
	row.value = row.low = row.high = (double)cached;
	return neap__bench_row(bench, &row);
}

static int run(struct neap__bench *bench)
{
	const char *forced = getenv("NEAP_IO");
	char *kept = forced ? strdup(forced) : NULL;
	struct bench *b = calloc(1, sizeof *b);
	if (!b)
		return neap__fail_errno(ENOMEM, "benchmark store");
	b->directory = bench->options.directory ? bench->options.directory : "/var/tmp";
	struct neap_tier *tier;
	struct neap_tier_spec spec;
	int rc = neap_tier_open_file(&tier, b->directory, NULL); /* fio would make one */
	if (rc == 0) {
		neap_tier_describe(tier, RECORD, &spec);
		b->room = spec.capacity;
		neap_tier_close(tier);
		rc = neap__map_pages((void **)&b->data, IN_FLIGHT * WHOLE);
	}
	for (uint64_t i = 0; rc == 0 && i < IN_FLIGHT * WHOLE; i++)
		b->data[i] = (unsigned char)(i * 2654435761u >> 13);
	if (rc == 0)
		rc = speeds(bench, b);
	if (kept)
		setenv("NEAP_IO", kept, 1);
	else
		unsetenv("NEAP_IO");
	if (rc == 0)
		rc = page_cache(bench, b);
	neap__unmap_pages(b->data, IN_FLIGHT * WHOLE);
	free(b);
	free(kept);
	return rc;
}

const struct neap__benchmark neap__bench_store = {
	"store", "slow memory in files: each engine, beside fio; the page cache", run};
