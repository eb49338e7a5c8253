/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grouped_chain.c: blocks that hold even shares of steps and of tapes, and the schedule of
 * blocks written out stage by stage. The sizes of a block are such that its stages never take
 * more than the tables count.
 */
#include "plan/stages/grouped_chain.h"

#include <errno.h>
#include <stdlib.h>
#include "base/fail.h"
#include "plan/stages/long_chain.h"
#include "plan/core/stage_sizes.h"

#define BLOCKS 128 /* whose tables take some 50 MB and a fifth of a second */

struct grouped {
	struct neap_stages stages;
	double *advance, *record, *backward;
	uint64_t *state, *tape, *advance_tmp, *record_tmp, *backward_tmp;
	int64_t *at; /* [n + 1] first stage of a block */
	int64_t n;
	int64_t largest;	    /* tape, as which each counts; 0: as they are */
	struct neap_schedule *plan; /* of blocks */
	void *block;
};

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int allocate(struct grouped *x, int64_t n)
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

static int64_t tape_of(const struct grouped *x, const struct neap_chain *c, int64_t i)
{
	return x->largest ? x->largest : (int64_t)c->stages->tape[i];
}

/* Where blocks begin; their number may be less than asked. */
static void divide(struct grouped *x, const struct neap_chain *c, int64_t blocks)
{
	double all = 0, seen = 0;
	for (int64_t i = 0; i < c->steps; i++)
		all += (double)tape_of(x, c, i);
	for (int64_t i = 0; i < c->steps; i++) {
		double share = all > 0 ? seen / all : (double)i / (double)c->steps;
		share = (share + (double)i / (double)c->steps) / 2;
		if (x->n < blocks && share * (double)blocks >= (double)x->n)
			x->at[x->n++] = i;
		seen += (double)tape_of(x, c, i);
	}
	x->at[x->n] = c->steps;
}

/* Bytes that going through a block takes, beyond those of its ends. */
static void measure(struct grouped *x, const struct neap_chain *c, int64_t b)
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

static int group(struct grouped *x, const struct neap_chain *c)
{
	const struct neap_stages *s = c->stages;
	NEAP_TRY(allocate(x, BLOCKS));
	divide(x, c, BLOCKS);
	for (int64_t b = 0; b < x->n; b++)
		measure(x, c, b);
	for (int64_t b = 0; b <= x->n; b++)
		x->state[b] = s->state[x->at[b]];
	x->backward[x->n] = s->backward[c->steps];
	x->backward_tmp[x->n] = (uint64_t)neap__stage_backward_tmp(s, c->steps);
	x->stages = (struct neap_stages){x->advance, x->record, x->backward, x->state, x->tape,
		x->advance_tmp, x->record_tmp, x->backward_tmp, s->flags, 0};
	return 0;
}

/* An action on blocks is one on their stages. */
static int refill(struct neap_schedule *s)
{
	struct grouped *x = s->self;
	struct neap_action a;
	int rc = neap_schedule_next(x->plan, &a);
	if (rc <= 0)
		return rc;
	a.t0 = x->at[a.t0];
	a.t1 = x->at[a.t1];
	neap__emit(s, &a);
	return 0;
}

static void fini(struct neap_schedule *s)
{
	struct grouped *x = s->self;
	neap_schedule_close(x->plan);
	free(x->block);
}

int neap__grouped_chain_open(struct neap_schedule *s)
{
	const struct neap_chain *c = &s->problem.chain;
	struct neap_problem blocks = s->problem;
	struct neap_plan plan = s->plan;
	if (neap__backward_needs_input(c->stages) && !neap__tape_holds_output(c->stages))
		return neap__fail(NEAP_EINFEASIBLE, "blocks keep no inputs");
	struct grouped *x = s->self = calloc(1, sizeof *x);
	if (!x)
		return neap__fail(-ENOMEM, "schedule: out of memory");
	s->refill = refill;
	s->fini = fini;
	for (int64_t i = 0; i < c->steps && plan.variant == NEAP__LONG_CHAIN_BLOCKS_WORST; i++)
		x->largest = larger(x->largest, (int64_t)c->stages->tape[i]);
	NEAP_TRY(group(x, c));
	blocks.chain.steps = x->n;
	blocks.chain.stages = &x->stages;
	return neap__schedule_open_row(&x->plan, s->row, &blocks, &plan);
}
