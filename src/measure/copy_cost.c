/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy_cost.c: copies as a sweep makes them: the live state is in a near cache, while a slot is
 * where a pass over all slots has left it.
 */
#include "measure/copy_cost.h"
#include "nn/core/on_device.h"
#include "nn/step_memory.h"
#include "base/checked.h"
#include "base/fail.h"
#include "sys/clock.h"
#include "store/tier_cost.h"

enum { REPEATS_MOST = 99 };

struct slots {
	const struct neap_net *net;
	const struct neap_memory_ops *ops;
	char *live, *first;
	uint64_t bytes, count;
};

/* Copies to each slot once, or from each; *seconds a copy. */
static int pass(const struct slots *slots, int write, double *seconds)
{
	NEAP_TRY(neap__net_wait(slots->net)); /* devices copy while the host goes on */
	double start = neap__seconds();

	for (uint64_t i = 0; i < slots->count; i++) {
		char *slot = slots->first + i * slots->bytes;
		NEAP_TRY(neap__step_memory_move(slots->ops, write ? slot : slots->live,
			write ? slots->live : slot, slots->bytes));
		__asm__ volatile("" : : "r"(slot), "r"(slots->live) : "memory");
	}
	NEAP_TRY(neap__net_wait(slots->net));
	*seconds = (neap__seconds() - start) / (double)slots->count;
	return 0;
}

int neap__copy_cost_measure(struct neap_timing *write, struct neap_timing *read,
	const struct neap_net *net, uint64_t bytes, uint64_t memory, int repeats)
{
	const struct neap_memory_ops *ops = neap__net_memory(net);
	double out[REPEATS_MOST], in[REPEATS_MOST];
	uint64_t region = memory < NEAP__MEASURE_MOST ? memory : NEAP__MEASURE_MOST;
	/* Of a state that two do not fit of, a part is copied, and counts in proportion. */
	uint64_t part = bytes <= region / 2 ? bytes : region / 2;
	uint64_t count = part > 0 ? region / part - 1 : 1;
	uint64_t all = neap__sat_mul(count + 1, part);
	double parts = part > 0 ? (double)bytes / (double)part : 0;
	void *pages;
	int rc = 0;

	repeats = repeats < REPEATS_MOST ? repeats : REPEATS_MOST;
	NEAP_TRY(neap__step_memory_map(ops, &pages, all));
	struct slots slots = {.net = net,
		.ops = ops,
		.live = pages,
		.first = (char *)pages + part,
		.bytes = part,
		.count = count};
	rc = neap__step_memory_zero(
		ops, pages, all); /* pages that no one has touched are no memory yet */
	for (int i = 0; i < repeats && rc == 0; i++) {
		rc = pass(&slots, 1, &out[i]);
		out[i] *= parts;
		if (rc == 0)
			rc = pass(&slots, 0, &in[i]);
		in[i] *= parts;
	}
	neap__step_memory_unmap(ops, pages, all);
	NEAP_TRY(rc);
	*write = neap__timing_of(out, repeats);
	*read = neap__timing_of(in, repeats);
	return 0;
}
