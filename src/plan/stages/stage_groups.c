/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_groups.c: groups that hold even shares of steps and of tapes. The sizes of a group are
 * such that its stages never take more than what is counted for it.
 */
#include "plan/stages/stage_groups.h"

#include <errno.h>
#include <stdlib.h>
#include "base/fail.h"
#include "plan/core/stage_sizes.h"

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int allocate(struct neap__stage_groups *x, int64_t n)
{
	size_t rows = (size_t)n + 1;
	x->block = calloc(rows, 9 * sizeof(int64_t));
	if (!x->block)
		return neap__fail(-ENOMEM, "schedule: out of memory");
	x->advance = x->block;
	x->record = x->advance + rows;
	x->backward = x->record + rows;
	x->state = (uint64_t *)(x->backward + rows);
	x->tape = x->state + rows;
	x->advance_tmp = x->tape + rows;
	x->record_tmp = x->advance_tmp + rows;
	x->backward_tmp = x->record_tmp + rows;
	x->at = (int64_t *)(x->backward_tmp + rows);
	return 0;
}

static int64_t tape_of(const struct neap__stage_groups *x, const struct neap_chain *c, int64_t i)
{
	return x->largest ? x->largest : (int64_t)c->stages->tape[i];
}

/* A group begins where a state is small, at most a quarter of a group off. */
static void move_to_small_state(struct neap__stage_groups *x, const struct neap_chain *c, int64_t b)
{
	int64_t quarter = (x->at[b] - x->at[b - 1]) / 4, best = x->at[b];
	int64_t low = larger(x->at[b - 1] + 1, x->at[b] - quarter);
	int64_t high =
		x->at[b] + quarter < x->at[b + 1] - 1 ? x->at[b] + quarter : x->at[b + 1] - 1;
	for (int64_t i = low; i <= high; i++)
		if (c->stages->state[i] < c->stages->state[best])
			best = i;
	x->at[b] = best;
}

/* Where groups of the range begin; their number may be less than asked. */
static void divide(struct neap__stage_groups *x, const struct neap_chain *c,
	struct neap__stage_range range, int64_t most)
{
	double all = 0, seen = 0, stages = (double)(range.taped - range.first);
	for (int64_t i = range.first; i < range.taped; i++)
		all += (double)tape_of(x, c, i);
	for (int64_t i = range.first; i < range.taped; i++) {
		double before = (double)(i - range.first) / stages;
		double share = all > 0 ? seen / all : before;
		share = (share + before) / 2;
		if (stages <= (double)most || (x->n < most && share * (double)most >= (double)x->n))
			x->at[x->n++] = i;
		seen += (double)tape_of(x, c, i);
	}
	x->at[x->n] = range.taped;
	for (int64_t b = 1; b < x->n; b++)
		move_to_small_state(x, c, b);
	if (range.taped < range.end)
		x->at[++x->n] = range.end;
}

/* Bytes that going through a group takes, beyond those of its ends. */
static void measure(struct neap__stage_groups *x, const struct neap_chain *c, int64_t b)
{
	const struct neap_stages *s = c->stages;
	int64_t first = x->at[b], end = x->at[b + 1], tapes = 0;
	int64_t advancing = 0, recording = 0, reversing = 0;
	int holds = neap__tape_holds_output(s);
	for (int64_t k = first; k < end; k++) {
		int64_t kept = k > first ? (int64_t)s->state[k] : 0;
		int64_t output = (int64_t)s->state[k + 1], tape = tape_of(x, c, k);
		advancing = larger(advancing, kept + output + neap__stage_advance_tmp(s, k));
		recording = larger(recording,
			tapes + tape + (holds ? 0 : kept + output) + neap__stage_record_tmp(s, k));
		tapes += tape;
		reversing = larger(reversing, tapes + neap__stage_gradient(c, k) +
						      neap__stage_gradient(c, k + 1) +
						      neap__stage_backward_tmp(s, k));
		x->advance[b] += s->advance[k];
		x->record[b] += neap__stage_record(s, k);
		x->backward[b] += s->backward[k];
	}
	int64_t last = (int64_t)s->state[end];
	int64_t ends = neap__stage_gradient(c, first) + neap__stage_gradient(c, end);
	x->tape[b] = (uint64_t)tapes;
	x->advance_tmp[b] = (uint64_t)larger(advancing - last, 0);
	x->record_tmp[b] = (uint64_t)larger(recording - tapes - (holds ? 0 : last), 0);
	x->backward_tmp[b] = (uint64_t)larger(reversing - tapes - ends, 0);
}

int neap__stage_groups_make(struct neap__stage_groups *x, const struct neap_chain *c,
	struct neap__stage_range range, int64_t count, int64_t largest)
{
	const struct neap_stages *s = c->stages;
	*x = (struct neap__stage_groups){.largest = largest};
	NEAP_TRY(allocate(x, count + 1));
	divide(x, c, range, count);
	if (neap__backward_needs_input(s) && !neap__tape_holds_output(s) &&
		x->n < range.end - range.first)
		return neap__fail(NEAP_EINFEASIBLE, "groups keep no inputs");
	for (int64_t b = 0; b < x->n; b++)
		measure(x, c, b);
	for (int64_t b = 0; b <= x->n; b++)
		x->state[b] = s->state[x->at[b]];
	if (range.end == c->steps) {
		x->backward[x->n] = s->backward[c->steps];
		x->backward_tmp[x->n] = (uint64_t)neap__stage_backward_tmp(s, c->steps);
	}
	x->stages = (struct neap_stages){x->advance, x->record, x->backward, x->state, x->tape,
		x->advance_tmp, x->record_tmp, x->backward_tmp, s->flags, 0};
	return 0;
}

void neap__stage_groups_free(struct neap__stage_groups *x)
{
	free(x->block);
	x->block = NULL;
}
