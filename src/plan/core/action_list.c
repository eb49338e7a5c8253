/* SPDX-License-Identifier: Apache-2.0 */
/* action_list.c: a list that grows, and the schedule that plays it. */
#include "plan/core/action_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "base/grow.h"

void neap__action_list_add(struct neap__action_list *x, const struct neap_action *a)
{
	if (!x->error && neap__grow(&x->a, &x->room, x->n + 1, sizeof *x->a) < 0)
		x->error = neap__fail(-ENOMEM, "plan: out of memory");
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
	struct neap__action_list list;
	int64_t next;
};

#define HANDFUL 64 /* actions handed on at once */

static int refill(struct neap_schedule *s)
{
	struct list_reading *r = s->self;
	for (int i = 0; i < HANDFUL && r->next < r->list.n; i++)
		neap__emit(s, &r->list.a[r->next++]);
	return 0;
}

static void fini(struct neap_schedule *s)
{
	struct list_reading *r = s->self;
	neap__action_list_free(&r->list);
}

int neap__action_list_open(struct neap_schedule *s, struct neap__action_list *list)
{
	struct list_reading *r = calloc(1, sizeof *r);
	if (!r) {
		neap__action_list_free(list);
		return neap__fail(-ENOMEM, "schedule: out of memory");
	}
	r->list = *list;
	memset(list, 0, sizeof *list);
	s->self = r;
	s->refill = refill;
	s->fini = fini;
	return 0;
}
