/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tier that hangs: waits give up once nothing was moved for a while, what was given up
 * is not touched when it comes after all, and nothing waits for it at the end. One that
 * is merely slow is waited for.
 */
#include "../test.h"

#include <errno.h>
#include <neap/tier.h>
#include <pthread.h>
#include "base/philox.h"
#include "store/mover.h"
#include "store/tier_state.h"
#include "sys/clock.h"
#include "store/stall_injection.h"

#define DISK "/var/tmp"
#define PATIENCE 0.2 /* seconds */
#define LONG 20	     /* the test is stuck */

enum { PLACES = 24, BYTES = 100000 };

static struct neap__stall_injection stalls;

static int blocks(void)
{
	const char *name = getenv("NEAP_IO");
	return name && strcmp(name, "sync") == 0;
}

/* A file tier under `stalls`; staging of so many bytes. */
static struct neap_tier *open_tier(uint64_t staging)
{
	struct neap_tier *tier;
	memset(&stalls, 0, sizeof stalls);
	neap__io_engine_stalls = &stalls;
	assert_int_equal(neap_tier_open_file(&tier, DISK, NULL), 0);
	neap__io_engine_stalls = NULL;
	neap_tier_lend(tier, staging);
	assert_int_equal(neap_tier_format(tier, BYTES, PLACES, NULL), 0);
	neap_tier_set_patience(tier, PATIENCE);
	return tier;
}

/* The next reads (writes), so many, hang. */
static void hang(int write, int64_t row)
{
	stalls.read = write ? 0 : atomic_load(&stalls.reads) + 1;
	stalls.write = write ? atomic_load(&stalls.writes) + 1 : 0;
	stalls.row = row;
	atomic_store(&stalls.released, 0);
}

static int64_t get(struct neap_tier *tier, int64_t place, uint64_t tag, void *into)
{
	int64_t ticket;
	assert_int_equal(neap_tier_get(tier, place, tag, into, BYTES, &ticket), 0);
	return ticket;
}

static int64_t put(struct neap_tier *tier, int64_t place, uint64_t tag, const void *from)
{
	int64_t ticket;
	assert_int_equal(neap_tier_put(tier, place, tag, from, BYTES, &ticket), 0);
	return ticket;
}

/* What hangs is let go, and all of it comes back. */
static void release(struct neap_tier *tier)
{
	double start = neap__seconds();
	atomic_store(&stalls.released, 1);
	while (neap_tier_holds_staging(tier)) {
		assert_true(neap__seconds() - start < LONG);
		neap__sleep(1e-3);
	}
}

/* A wait that must not give up, however busy the machine is. */
static int wait_long(struct neap_tier *tier, int64_t ticket)
{
	neap_tier_set_patience(tier, LONG);
	int rc = neap_tier_wait(tier, ticket);
	neap_tier_set_patience(tier, PATIENCE);
	return rc;
}

static void all_bytes(const unsigned char *data, unsigned char want)
{
	for (int i = 0; i < BYTES; i++)
		assert_int_equal(data[i], want);
}

static void late_get(void **state)
{
	static unsigned char data[BYTES], into[BYTES], other[BYTES];
	(void)state;
	if (blocks())
		skip();
	struct neap_tier *tier = open_tier(0);
	memset(data, 7, sizeof data);
	assert_int_equal(wait_long(tier, put(tier, 3, 33, data)), 0);
	assert_int_equal(wait_long(tier, put(tier, 4, 44, data)), 0);
	memset(into, 0xEE, sizeof into);
	hang(0, 1);
	double start = neap__seconds();
	int64_t ticket = get(tier, 3, 33, into);
	assert_int_equal(neap_tier_wait(tier, ticket), -ETIMEDOUT);
	double took = neap__seconds() - start;
	assert_true(took >= PATIENCE / 2 && took < LONG);
	assert_int_equal(neap_tier_wait(tier, ticket), NEAP_EUSAGE);
	assert_int_equal(neap_tier_holds_staging(tier), 1);
	memset(into, 0xEE, sizeof into);
	/* Others go on through the rest of the staging, the place's own record too. */
	assert_int_equal(wait_long(tier, get(tier, 4, 44, other)), 0);
	all_bytes(other, 7);
	assert_int_equal(wait_long(tier, get(tier, 3, 33, other)), 0);
	release(tier);
	all_bytes(into, 0xEE);
	assert_int_equal(wait_long(tier, get(tier, 3, 33, into)), 0);
	all_bytes(into, 7);
	neap_tier_close(tier);
}

static void late_put(void **state)
{
	static unsigned char data[BYTES], into[BYTES];
	int64_t ticket;
	(void)state;
	if (blocks())
		skip();
	struct neap_tier *tier = open_tier(0);
	memset(data, 7, sizeof data);
	hang(1, 1);
	assert_int_equal(neap_tier_wait(tier, put(tier, 3, 33, data)), -ETIMEDOUT);
	memset(data, 8, sizeof data);
	/* It may still land: nobody may use the place. */
	assert_int_equal(neap_tier_put(tier, 3, 34, data, BYTES, &ticket), -ETIMEDOUT);
	assert_int_equal(neap_tier_get(tier, 3, 33, into, BYTES, &ticket), -ETIMEDOUT);
	assert_int_equal(wait_long(tier, put(tier, 5, 55, data)), 0);
	release(tier);
	int rc = wait_long(tier, get(tier, 3, 33, into));
	assert_true(rc == NEAP_ELOST || rc == NEAP_ECORRUPT || rc == 0);
	if (rc == 0)
		all_bytes(into, 7);
	assert_int_equal(wait_long(tier, put(tier, 3, 34, data)), 0);
	assert_int_equal(wait_long(tier, get(tier, 3, 34, into)), 0);
	all_bytes(into, 8);
	neap_tier_close(tier);
}

/* What stands behind it in line is not lost with it. */
static void those_behind(void **state)
{
	static unsigned char data[BYTES], into[BYTES], other[BYTES];
	(void)state;
	if (blocks())
		skip();
	struct neap_tier *tier = open_tier(0);
	memset(data, 9, sizeof data);
	for (int64_t i = 0; i < 8; i++)
		assert_int_equal(wait_long(tier, put(tier, i, 90 + (uint64_t)i, data)), 0);
	hang(0, 1);
	int64_t first = get(tier, 0, 90, into);
	for (int64_t i = 1; i < 8; i++)
		assert_int_equal(wait_long(tier, get(tier, i, 90 + (uint64_t)i, other)), 0);
	/* A put of the place waits for the get, and for nothing once it is given up. */
	int64_t second = put(tier, 0, 91, data);
	assert_int_equal(neap_tier_wait(tier, first), -ETIMEDOUT);
	assert_int_equal(wait_long(tier, second), 0);
	release(tier);
	assert_int_equal(wait_long(tier, get(tier, 0, 91, other)), 0);
	neap_tier_close(tier);
}

/* What was not begun need not be made; what was is waited for. */
static void cancelled(void **state)
{
	static unsigned char data[BYTES], into[BYTES], other[BYTES];
	(void)state;
	if (blocks())
		skip();
	struct neap_tier *tier = open_tier(4096);
	memset(data, 6, sizeof data);
	assert_int_equal(wait_long(tier, put(tier, 0, 60, data)), 0);
	assert_int_equal(wait_long(tier, put(tier, 1, 61, data)), 0);
	neap_tier_set_patience(tier, 0);
	hang(0, 1);
	int64_t first = get(tier, 0, 60, into), second = get(tier, 1, 61, other);
	int64_t third = put(tier, 1, 62, data);
	while (!atomic_load(&stalls.stalled))
		neap__sleep(1e-4);
	assert_int_equal(neap__tier_cancel(tier, first), 0);
	assert_int_equal(neap__tier_cancel(tier, second), 1);
	assert_int_equal(neap_tier_wait(tier, second), NEAP_EUSAGE);
	memset(other, 0xEE, sizeof other);
	atomic_store(&stalls.released, 1);
	assert_int_equal(neap_tier_wait(tier, first), 0);
	assert_int_equal(neap_tier_wait(tier, third), 0);
	assert_int_equal(neap__tier_cancel(tier, first), 0);
	all_bytes(into, 6);
	all_bytes(other, 0xEE);
	neap_tier_close(tier);
}

/* Where all of the staging hangs the tier is gone, for twice the patience in all. */
static void gone(void **state)
{
	static unsigned char data[BYTES], into[BYTES];
	(void)state;
	if (blocks())
		skip();
	for (int write = 0; write < 2; write++) {
		struct neap_tier *tier = open_tier(4096);
		memset(data, 5, sizeof data);
		assert_int_equal(wait_long(tier, put(tier, 0, 50, data)), 0);
		hang(write, 1000);
		double start = neap__seconds();
		for (int64_t i = 1; i < 20; i++) {
			int64_t ticket = write ? put(tier, i, 50, data) : get(tier, 0, 50, into);
			assert_int_equal(neap_tier_wait(tier, ticket), -ETIMEDOUT);
		}
		double took = neap__seconds() - start;
		assert_true(took > PATIENCE && took < LONG / 2);
		print_message("# 19 transfers, none comes: %.2f s at a patience of %.2f s\n", took,
			PATIENCE);
		assert_int_equal(neap_tier_format(tier, BYTES, PLACES, NULL), -ETIMEDOUT);
		assert_int_equal(neap_tier_holds_staging(tier), 1);
		release(tier);
		neap_tier_set_patience(tier, LONG);
		assert_int_equal(neap_tier_format(tier, BYTES, PLACES, NULL), 0);
		assert_int_equal(wait_long(tier, put(tier, 2, 52, data)), 0);
		assert_int_equal(wait_long(tier, get(tier, 2, 52, into)), 0);
		all_bytes(into, 5);
		neap_tier_close(tier);
	}
}

/* Many requests behind each other, each quick, take longer than the patience. */
static void slow(void **state)
{
	static unsigned char data[BYTES];
	const double patience = 4 * PATIENCE;
	int64_t tickets[PLACES];
	(void)state;
	if (blocks())
		skip();
	struct neap_tier *tier = open_tier(0);
	neap_tier_set_patience(tier, patience);
	stalls.delay_us = (unsigned)(1e6 * patience / 8);
	double start = neap__seconds();
	for (int64_t i = 0; i < PLACES; i++)
		tickets[i] = put(tier, i, 7, data);
	neap__sleep(2 * patience);
	for (int64_t i = PLACES - 1; i >= 0; i--)
		assert_int_equal(neap_tier_wait(tier, tickets[i]), 0);
	assert_true(neap__seconds() - start > 2.5 * patience);
	neap_tier_close(tier);
}

/* Closing does not wait either; file and memory go when the last piece came back. */
static void close_while_it_hangs(void **state)
{
	static unsigned char data[BYTES], into[BYTES];
	(void)state;
	if (blocks())
		skip();
	for (int given_up = 0; given_up < 2; given_up++) {
		struct neap_tier *tier = open_tier(0);
		memset(data, 5, sizeof data);
		assert_int_equal(wait_long(tier, put(tier, 0, 50, data)), 0);
		hang(0, 3);
		int64_t ticket = get(tier, 0, 50, into);
		if (given_up)
			assert_int_equal(neap_tier_wait(tier, ticket), -ETIMEDOUT);
		while (!atomic_load(&stalls.stalled))
			neap__sleep(1e-4);
		double start = neap__seconds();
		neap_tier_close(tier);
		assert_true(neap__seconds() - start < LONG / 2);
		assert_int_equal(neap__movers_left(), 1);
		atomic_store(&stalls.released, 1);
		for (start = neap__seconds(); neap__movers_left(); neap__sleep(1e-3))
			assert_true(neap__seconds() - start < LONG);
	}
}

/* Without patience a wait ends when the tier comes back, and not before. */
static void *let_go_later(void *arg)
{
	(void)arg;
	neap__sleep(2 * PATIENCE);
	atomic_store(&stalls.released, 1);
	return NULL;
}

static void without_end(void **state)
{
	static unsigned char data[BYTES], into[BYTES];
	static const double never[] = {0, INFINITY};
	(void)state;
	if (blocks())
		skip();
	for (int i = 0; i < 2; i++) {
		pthread_t thread;
		struct neap_tier *tier = open_tier(0);
		neap_tier_set_patience(tier, never[i]);
		memset(data, 5, sizeof data);
		assert_int_equal(neap_tier_wait(tier, put(tier, 0, 50, data)), 0);
		hang(0, 1);
		int64_t ticket = get(tier, 0, 50, into);
		assert_int_equal(pthread_create(&thread, NULL, let_go_later, NULL), 0);
		assert_int_equal(neap_tier_wait(tier, ticket), 0);
		all_bytes(into, 5);
		pthread_join(thread, NULL);
		neap_tier_close(tier);
	}
}

/*
 * Anything hangs at any time and comes back at any other: what a get brings is what the
 * last put of its place wrote, or an error; memory that was given back stays as it is.
 */
enum { FLYING = 12, MOST = 30000, ROUNDS = 150 };

struct flight {
	int64_t ticket, place;
	uint64_t tag;
	int get, used;
	unsigned char data[MOST];
};

static void fill(unsigned char *data, uint64_t tag)
{
	for (uint64_t i = 0; i < MOST; i++)
		data[i] = (unsigned char)((i * 2654435761u + tag * 40503u) >> 9);
}

static int64_t waits, lates;

static struct flight flights[FLYING];
static unsigned char lost[ROUNDS + 1]; /* the put of this tag was given up */

static void land(struct neap_tier *tier, struct flight *f)
{
	static unsigned char want[MOST];
	int rc = neap_tier_wait(tier, f->ticket);
	waits++;
	lates += rc == -ETIMEDOUT;
	f->used = 0;
	if (!f->get && rc == -ETIMEDOUT)
		lost[f->tag] = 1;
	/* The put that it asks for may not have been waited for. */
	for (int i = 0; f->get && rc < 0 && i < FLYING; i++)
		if (flights[i].used && !flights[i].get && flights[i].tag == f->tag)
			land(tier, &flights[i]);
	if (f->get && rc == 0) {
		fill(want, f->tag);
		assert_memory_equal(f->data, want, MOST);
	} else if (f->get && rc != -ETIMEDOUT && !lost[f->tag]) {
		fail_msg("tag %llu: %d %s", (unsigned long long)f->tag, rc, neap_detail());
	}
	memset(f->data, 0xEE, MOST);
}

static void rest(void)
{
	for (int i = 0; i < FLYING; i++)
		for (int j = 0; !flights[i].used && j < MOST; j += 7)
			assert_int_equal(flights[i].data[j], 0xEE);
}

static uint64_t draws;

static uint64_t draw(uint64_t seed, uint64_t below)
{
	return neap__random_below(seed, NEAP__STREAM_TEST, 5, draws++, below);
}

static void one_storm(uint64_t seed)
{
	static const uint64_t stagings[] = {4096, 8192, 32768, 262144};
	uint64_t tags[PLACES] = {0};
	draws = 0;
	struct neap_tier *tier = open_tier(stagings[seed % 4]);
	neap_tier_set_patience(tier, 2e-3);
	memset(flights, 0, sizeof flights);
	memset(lost, 0, sizeof lost);
	for (int i = 0; i < FLYING; i++)
		memset(flights[i].data, 0xEE, MOST);
	for (int i = 0; i < ROUNDS; i++) {
		struct flight *f = &flights[draw(seed, FLYING)];
		if (draw(seed, 20) == 0)
			hang((int)draw(seed, 2), 1 + (int64_t)draw(seed, 6));
		if (draw(seed, 10) == 0)
			atomic_store(&stalls.released, 1);
		if (f->used) {
			land(tier, f);
			continue;
		}
		f->place = (int64_t)draw(seed, PLACES);
		f->get = tags[f->place] && draw(seed, 2);
		f->tag = f->get ? tags[f->place] : (uint64_t)i + 1;
		if (!f->get)
			fill(f->data, f->tag);
		int rc = f->get ? neap_tier_get(tier, f->place, f->tag, f->data, MOST, &f->ticket)
				: neap_tier_put(tier, f->place, f->tag, f->data, MOST, &f->ticket);
		f->used = rc == 0;
		if (rc == 0 && !f->get)
			tags[f->place] = f->tag;
		else if (rc < 0)
			memset(f->data, 0xEE, MOST);
		assert_true(rc == 0 || rc == -ETIMEDOUT);
		if (i % 16 == 0)
			rest();
	}
	for (int i = 0; i < FLYING; i++)
		if (flights[i].used)
			land(tier, &flights[i]);
	if (draw(seed, 2))
		release(tier);
	rest();
	neap_tier_close(tier);
	atomic_store(&stalls.released, 1);
}

static int storms = 40;

static void storm(void **state)
{
	uint64_t seed = test_seed(1);
	(void)state;
	if (blocks())
		skip();
	for (int i = 0; i < storms; i++) {
		one_storm(seed + (uint64_t)i);
		double start = neap__seconds();
		for (; neap__movers_left(); neap__sleep(1e-4)) /* those left behind */
			assert_true(neap__seconds() - start < LONG);
	}
	print_message("# %lld waits, %lld gave up\n", (long long)waits, (long long)lates);
	assert_true(storms < 40 || (lates > storms && lates < waits));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(late_get),
		cmocka_unit_test(late_put),
		cmocka_unit_test(those_behind),
		cmocka_unit_test(cancelled),
		cmocka_unit_test(gone),
		cmocka_unit_test(slow),
		cmocka_unit_test(close_while_it_hangs),
		cmocka_unit_test(without_end),
		cmocka_unit_test(storm),
	};
	if (argc > 1)
		storms = atoi(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
