/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/core/action_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"

void neap__action_list_add(struct neap__action_list *x, const struct neap_action *a)
{
	if (x->n == x->room && !x->error) {
		int64_t room = x->room ? 2 * x->room : 256;
		struct neap_action *more = realloc(x->a, (size_t)room * sizeof *more);
		if (!more) {
			x->error = neap__fail(-ENOMEM, "plan: out of memory");
			return;
		}
		x->a = more;
		x->room = room;
	}
	if (!x->error)
		x->a[x->n++] = *a;
}

void neap__action_list_forward(struct neap__action_list *x, int kind, int64_t t0, int64_t t1)
{
	for (int64_t i = t0; i < t1; i++)
		neap__action_list_add(
			x, &(struct neap_action){.kind = (uint8_t)kind, .t0 = i, .t1 = i + 1});
}

void neap__action_list_slot(struct neap__action_list *x, int kind, int64_t slot, int64_t t)
{
	neap__action_list_add(
		x, &(struct neap_action){.kind = (uint8_t)kind, .slot = slot, .t0 = t, .t1 = t});
}

void neap__action_list_load_tape(struct neap__action_list *x, int64_t t)
{
	neap__action_list_add(x,
		&(struct neap_action){.kind = NEAP_LOAD, .payload = NEAP_TAPE, .t0 = t, .t1 = t});
}

void neap__action_list_free(struct neap__action_list *x)
{
	free(x->a);
	memset(x, 0, sizeof *x);
}

struct list_reading {
	struct neap__action_list script;
	int64_t next;
};

static int read_next(void *user, struct neap_action *a)
{
	struct list_reading *r = user;
	if (r->next == r->script.n)
		return 0;
	*a = r->script.a[r->next++];
	return 1;
}

int neap__action_list_measure(struct neap_plan *plan, const struct neap_problem *p,
	const struct neap__action_list *script)
{
	struct list_reading reading = {*script, 0};
	struct neap_schedule *s = NULL;
	struct neap_verdict v = {0};
	struct neap_simulation m = {0};
	NEAP_TRY(neap_schedule_wrap(&s, read_next, NULL, &reading));
	int rc = neap_verify(&v, p, s);
	reading.next = 0;
	if (rc == 0)
		rc = neap_simulate(&m, p, s);
	neap_schedule_close(s);
	NEAP_TRY(rc);
	if (v.peak_bytes > p->memory)
		return neap__fail(NEAP_EILLEGAL, "the plan takes %llu bytes",
			(unsigned long long)v.peak_bytes);
	plan->feasible = 1;
	plan->peak_bytes = v.peak_bytes;
	plan->arena_bytes = v.arena_bytes;
	plan->slots = v.slots;
	plan->advance_steps = v.advance_steps;
	plan->record_steps = v.record_steps;
	plan->makespan = m.makespan;
	plan->stall = m.stall;
	plan->lost = m.lost;
	plan->tier = 0;
	memcpy(plan->tiers, v.tiers, sizeof plan->tiers);
	for (int i = p->ntiers; i > 0; i--)
		if (v.tiers[i - 1].written || v.tiers[i - 1].read)
			plan->tier = i;
	return 0;
}

#define HANDFUL 64

static int refill(struct neap_schedule *s)
{
	struct list_reading *r = s->self;
	for (int i = 0; i < HANDFUL && r->next < r->script.n; i++)
		neap__emit(s, &r->script.a[r->next++]);
	return 0;
}

static void fini(struct neap_schedule *s)
{
	struct list_reading *r = s->self;
	neap__action_list_free(&r->script);
}

int neap__action_list_open(struct neap_schedule *s, struct neap__action_list *script)
{
	struct list_reading *r = calloc(1, sizeof *r);
	if (!r) {
		neap__action_list_free(script);
		return neap__fail(-ENOMEM, "schedule: out of memory");
	}
	r->script = *script;
	memset(script, 0, sizeof *script);
	s->self = r;
	s->refill = refill;
	s->fini = fini;
	return 0;
}
