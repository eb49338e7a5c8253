/* SPDX-License-Identifier: Apache-2.0 */
/* tried_plans.c: open addressing; a row's place follows from all words of its plan. */
#include "plan/blocks/tried_plans.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"

#define ROWS 8192 /* a power of two, four times the simulations of effort 2000; chosen */

/* The number of the row of a plan, or of the empty row where it belongs. */
static size_t find(const struct neap__tried_plans *t, const void *plan)
{
	uint64_t hash = 0;
	for (size_t i = 0; i < t->words; i++) {
		uint64_t word;
		memcpy(&word, (const char *)plan + 8 * i, sizeof word);
		hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 29;
	}
	size_t row = hash % ROWS;
	while (t->makespans[row] != 0 && memcmp(t->plans + row * t->words, plan, 8 * t->words) != 0)
		row = (row + 1) % ROWS;
	return row;
}

int neap__tried_plans_init(struct neap__tried_plans *t, size_t size)
{
	*t = (struct neap__tried_plans){.words = size / 8};
	t->makespans = calloc(ROWS, sizeof *t->makespans);
	t->plans = calloc(ROWS, size);
	return t->makespans && t->plans ? 0 : neap__fail(-ENOMEM, "plan: out of memory");
}

void neap__tried_plans_free(struct neap__tried_plans *t)
{
	free(t->makespans);
	free(t->plans);
}

double neap__tried_plans_makespan(const struct neap__tried_plans *t, const void *plan)
{
	return t->makespans[find(t, plan)];
}

void neap__tried_plans_add(struct neap__tried_plans *t, const void *plan, double makespan)
{
	size_t row = find(t, plan);
	if (t->count >= ROWS / 2)
		return;
	t->makespans[row] = makespan;
	memcpy(t->plans + row * t->words, plan, 8 * t->words);
	t->count++;
}
