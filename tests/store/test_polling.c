/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits with a limit, questions that do not block, and states in spans, on tiers of memory and of
 * files and on one of one's own.
 */
#include "../test.h"

#include <errno.h>
#include <math.h>
#include <neap/machine.h>
#include <neap/tier.h>
#include "store/fault_tier.h"
#include "store/tier_state.h"
#include "store/stall_injection.h"
#include "sys/engine.h"

enum { BYTES = 3 << 20, PLACES = 4 };

static unsigned char from[BYTES], into[BYTES];

static void fill(void)
{
	for (size_t i = 0; i < BYTES; i++)
		from[i] = (unsigned char)(i * 2654435761u >> 11);
	memset(into, 0, sizeof into);
}

static struct neap_tier *opened(const char *kind)
{
	struct neap_tier *tier;
	int count = 1;
	assert_int_equal(neap_tiers_open(&tier, &count, kind, NULL), 0);
	assert_int_equal(neap_tier_format(tier, BYTES, PLACES, NULL), 0);
	return tier;
}

static void polled(struct neap_tier *tier, int64_t ticket)
{
	int answer;
	while ((answer = neap_tier_wait_for(tier, ticket, 1e-3)) == 0)
		;
	assert_int_equal(answer, 1);
}

static void polls(const char *kind)
{
	struct neap_tier *tier = opened(kind);
	int64_t ticket;
	int done;
	fill();
	assert_int_equal(neap_tier_put(tier, 1, 7, from, BYTES, &ticket), 0);
	while ((done = neap_tier_done(tier, ticket)) == 0)
		;
	assert_int_equal(done, 1);
	assert_int_equal(neap_tier_done(tier, ticket), 1); /* and takes nothing away */
	assert_int_equal(neap_tier_wait_for(tier, ticket, 0), 1);
	assert_int_equal(neap_tier_done(tier, ticket), NEAP_EUSAGE);
	assert_int_equal(neap_tier_wait_for(tier, ticket, 0), NEAP_EUSAGE);
	assert_int_equal(neap_tier_wait_for(tier, -1, 0), NEAP_EUSAGE);
	assert_int_equal(neap_tier_wait_for(tier, 0, NAN), NEAP_EUSAGE);
	assert_int_equal(neap_tier_get(tier, 1, 7, into, BYTES, &ticket), 0);
	polled(tier, ticket);
	assert_memory_equal(from, into, BYTES);
	assert_int_equal(neap_tier_get(tier, 1, 8, into, BYTES, &ticket), 0);
	int answer;
	while ((answer = neap_tier_wait_for(tier, ticket, 1e-3)) == 0)
		;
	assert_int_equal(answer, NEAP_ELOST); /* of another tag; told once */
	assert_int_equal(neap_tier_wait(tier, ticket), NEAP_EUSAGE);
	neap_tier_close(tier);
}

static void polls_memory(void **state)
{
	(void)state;
	polls("mem:64M");
}

static void polls_file(void **state)
{
	(void)state;
	polls("/var/tmp");
}

/* Pieces that stand still: a wait comes back in time, patience counts over many short waits. */
static void limits(void **state)
{
	struct neap__stall_injection stalls = {.write = 1};
	int64_t ticket;
	(void)state;
	neap__io_engine_stalls = &stalls;
	struct neap_tier *tier = opened("/var/tmp");
	neap__io_engine_stalls = NULL;
	if (strstr(neap_tier_about(tier), "sync")) {
		neap_tier_close(tier);
		skip();
	}
	fill();
	assert_int_equal(neap_tier_put(tier, 0, 7, from, BYTES, &ticket), 0);
	double start = neap_clock();
	assert_int_equal(neap_tier_wait_for(tier, ticket, 0.05), 0);
	double took = neap_clock() - start;
	assert_true(took >= 0.05 && took < 5);
	assert_int_equal(neap_tier_done(tier, ticket), 0);
	neap_tier_set_patience(tier, 0.4);
	int answer, waits = 0;
	while ((answer = neap_tier_wait_for(tier, ticket, 0.01)) == 0)
		waits++;
	assert_int_equal(answer, -ETIMEDOUT);
	assert_true(waits >= 2);
	atomic_store(&stalls.released, 1);
	neap_tier_close(tier);
}

/* A record of spans comes back in one piece, and the other way round, across pieces of a file. */
static void spans_of(const char *kind)
{
	struct neap_tier *tier = opened(kind);
	const size_t cuts[] = {0, 1, 4096, 300001, 2 << 20, BYTES};
	struct neap_span out[5], back[2] = {{into, 777}, {into + 777, BYTES - 777}};
	int64_t ticket;
	fill();
	for (int i = 0; i < 5; i++)
		out[i] = (struct neap_span){from + cuts[i], cuts[i + 1] - cuts[i]};
	assert_int_equal(neap_tier_put_spans(tier, 2, 7, out, 5, &ticket), 0);
	assert_int_equal(neap_tier_wait(tier, ticket), 0);
	assert_int_equal(neap_tier_get(tier, 2, 7, into, BYTES, &ticket), 0);
	assert_int_equal(neap_tier_wait(tier, ticket), 0);
	assert_memory_equal(from, into, BYTES);
	memset(into, 0, sizeof into);
	assert_int_equal(neap_tier_get_spans(tier, 2, 7, back, 2, &ticket), 0);
	assert_int_equal(neap_tier_wait(tier, ticket), 0);
	assert_memory_equal(from, into, BYTES);
	back[1].bytes++;
	assert_int_equal(neap_tier_put_spans(tier, 2, 7, back, 2, &ticket), NEAP_EUSAGE);
	assert_int_equal(neap_tier_put_spans(tier, PLACES, 7, out, 5, &ticket), NEAP_EUSAGE);
	assert_int_equal(neap_tier_put_spans(tier, 2, 7, out, 0, &ticket), NEAP_EUSAGE);
	assert_int_equal(neap_tier_put_spans(tier, 2, 7, NULL, 1, &ticket), NEAP_EUSAGE);
	neap_tier_close(tier);
}

static void spans(void **state)
{
	(void)state;
	spans_of("mem:64M");
	spans_of("/var/tmp");
}

/* Over a tier that has none of the slots, waits have no limit and spans are refused. */
static void without_slots(void **state)
{
	struct neap_tier *inner = opened("mem:64M"), *tier;
	struct neap__faults faults = {0};
	struct neap_span one = {from, BYTES};
	int64_t ticket;
	(void)state;
	assert_int_equal(neap__fault_open(&tier, inner, &faults), 0);
	assert_int_equal(neap_tier_format(tier, BYTES, PLACES, NULL), 0);
	assert_int_equal(neap_tier_put(tier, 0, 7, from, BYTES, &ticket), 0);
	assert_int_equal(neap_tier_done(tier, ticket), 1);
	assert_int_equal(neap_tier_wait_for(tier, ticket, 0), 1);
	assert_int_equal(neap_tier_put_spans(tier, 0, 7, &one, 1, &ticket), NEAP_EUSAGE);
	assert_non_null(strstr(neap_detail(), "in one piece"));
	neap_tier_close(tier);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(polls_memory),
		cmocka_unit_test(polls_file),
		cmocka_unit_test(limits),
		cmocka_unit_test(spans),
		cmocka_unit_test(without_slots),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
