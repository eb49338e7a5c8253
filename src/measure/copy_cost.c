/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy_cost.c: copies as a sweep makes them: the live state is in a near cache, while a slot is
 * where a pass over all slots has left it.
 */
#include "measure/copy_cost.h"
#include "base/checked.h"
#include "base/fail.h"
#include "sys/clock.h"
#include "sys/memory.h"
#include "store/tier_cost.h"

#include <string.h>

enum { REPEATS_MOST = 99 };

/* Copies to each slot once, or from each; seconds a copy. */
static double pass(char *live, char *slots, uint64_t bytes, uint64_t count, int write)
{
	double start = neap__seconds();
	for (uint64_t i = 0; i < count; i++) {
		char *slot = slots + i * bytes;
		memcpy(write ? slot : live, write ? live : slot, bytes);
		__asm__ volatile("" : : "r"(slot), "r"(live) : "memory");
	}
	return (neap__seconds() - start) / (double)count;
}

int neap__copy_cost_measure(struct neap_timing *write, struct neap_timing *read, uint64_t bytes,
	uint64_t memory, int repeats)
{
	double out[REPEATS_MOST], in[REPEATS_MOST];
	uint64_t region = memory < NEAP__MEASURE_MOST ? memory : NEAP__MEASURE_MOST;
	/* Of a state that two do not fit of, a part is copied, and counts in proportion. */
	uint64_t part = bytes <= region / 2 ? bytes : region / 2;
	uint64_t count = part > 0 ? region / part - 1 : 1;
	uint64_t all = neap__sat_mul(count + 1, part);
	double parts = part > 0 ? (double)bytes / (double)part : 0;
	void *pages;

	repeats = repeats < REPEATS_MOST ? repeats : REPEATS_MOST;
	NEAP_TRY(neap__map_pages(&pages, all));
	memset(pages, 1, all);
	char *live = pages, *slots = live + part;
	for (int i = 0; i < repeats; i++) {
		out[i] = parts * pass(live, slots, part, count, 1);
		in[i] = parts * pass(live, slots, part, count, 0);
	}
	neap__unmap_pages(pages, all);
	*write = neap__timing_of(out, repeats);
	*read = neap__timing_of(in, repeats);
	return 0;
}
