/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_pace.c: step functions that take the time at the ends of ranges; medians of the tenths. */
#include "measure/sweep_pace.h"
#include "sys/clock.h"

#include <math.h>
#include <stdlib.h>

static void mark(const struct neap__sweep_pace *p, struct neap__pace_marks *direction, int64_t t)
{
	if (direction->marks > NEAP__PACE_RANGES)
		return;
	direction->at[direction->marks] = t;
	direction->when[direction->marks++] = p->seconds ? p->seconds() : neap__seconds();
}

/* The first pass has reached step t. */
static void passed(struct neap__sweep_pace *p, int64_t t)
{
	if (p->range > 0 && (t >= p->forward.marks * p->range || t == p->steps))
		mark(p, &p->forward, t);
}

static int advance(void *user, void *state, int64_t t0, int64_t t1, int first)
{
	struct neap__sweep_pace *p = user;

	if (!first || p->range == 0)
		return p->ops.advance(p->user, state, t0, t1, first);
	while (t0 < t1) {
		int64_t end = (t0 / p->range + 1) * p->range;
		end = end < t1 ? end : t1;
		int rc = p->ops.advance(p->user, state, t0, end, first);
		if (rc != 0)
			return rc;
		passed(p, t0 = end);
	}
	return 0;
}

static int record(void *user, void *state, int64_t t0, int64_t t1, int first, void *tape,
	size_t room, size_t *used, int64_t *t_done)
{
	struct neap__sweep_pace *p = user;
	int rc = p->ops.record(p->user, state, t0, t1, first, tape, room, used, t_done);

	if (rc == 0 && first && *t_done > t0)
		passed(p, *t_done);
	return rc;
}

static int advance_log(void *user, void *state, int64_t t0, int64_t t1, int first, void *log,
	size_t room, size_t *used, int64_t *t_done)
{
	struct neap__sweep_pace *p = user;
	int rc = p->ops.advance_log(p->user, state, t0, t1, first, log, room, used, t_done);

	if (rc == 0 && first && *t_done > t0)
		passed(p, *t_done);
	return rc;
}

static int replay(void *user, void *state, int64_t t0, int64_t t1, const void *log, int64_t log_t0,
	void *tape, size_t room, size_t *used, int64_t *t_done)
{
	struct neap__sweep_pace *p = user;
	return p->ops.replay(p->user, state, t0, t1, log, log_t0, tape, room, used, t_done);
}

static int turn(void *user, const void *state, void *adjoint, double *loss)
{
	struct neap__sweep_pace *p = user;
	int rc = p->ops.turn(p->user, state, adjoint, loss);

	if (p->range > 0)
		mark(p, &p->backward, p->steps);
	return rc;
}

static int backward(void *user, void *adjoint, int64_t t1, int64_t t0, const void *tape)
{
	struct neap__sweep_pace *p = user;
	int rc = p->ops.backward(p->user, adjoint, t1, t0, tape);

	if (p->range > 0 && (p->steps - t0 >= p->backward.marks * p->range || t0 == 0))
		mark(p, &p->backward, t0);
	return rc;
}

static void will_touch(void *user, int64_t t0, int64_t t1)
{
	struct neap__sweep_pace *p = user;
	p->ops.will_touch(p->user, t0, t1);
}

static int grad_save(void *user, int (*write)(void *, const void *, size_t), void *to)
{
	struct neap__sweep_pace *p = user;
	return p->ops.grad_save(p->user, write, to);
}

static int grad_load(void *user, int (*read)(void *, void *, size_t), void *from)
{
	struct neap__sweep_pace *p = user;
	return p->ops.grad_load(p->user, read, from);
}

void neap__sweep_pace_wrap(struct neap__sweep_pace *p, struct neap_step_ops *ops, void *user)
{
	p->ops = *ops;
	p->user = user;
	ops->advance = advance;
	ops->record = record;
	ops->turn = turn;
	ops->backward = backward;
	ops->advance_log = ops->advance_log ? advance_log : NULL;
	ops->replay = ops->replay ? replay : NULL;
	ops->will_touch = ops->will_touch ? will_touch : NULL;
	ops->grad_save = ops->grad_save ? grad_save : NULL;
	ops->grad_load = ops->grad_load ? grad_load : NULL;
}

void neap__sweep_pace_start(struct neap__sweep_pace *p, int64_t steps)
{
	p->steps = steps;
	p->range =
		steps / NEAP__PACE_RANGES >= NEAP__PACE_RANGE_LEAST ? steps / NEAP__PACE_RANGES : 0;
	p->forward.marks = p->backward.marks = 0;
	if (p->range > 0)
		mark(p, &p->forward, 0);
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* Median seconds a step of ranges [from, to). */
static double median(const struct neap__pace_marks *direction, int from, int to)
{
	double each[NEAP__PACE_RANGES];
	int n = 0;

	for (int i = from; i < to; i++) {
		int64_t steps = llabs(direction->at[i + 1] - direction->at[i]);
		if (steps > 0)
			each[n++] = (direction->when[i + 1] - direction->when[i]) / (double)steps;
	}
	if (n == 0)
		return NAN;
	qsort(each, (size_t)n, sizeof *each, by_value);
	return n % 2 ? each[n / 2] : (each[n / 2 - 1] + each[n / 2]) / 2;
}

static void tenths(const struct neap__pace_marks *direction, double *first, double *last)
{
	int ranges = direction->marks - 1, tenth = ranges / 10;

	*first = *last = NAN;
	if (tenth < 1)
		return;
	*first = median(direction, 0, tenth);
	*last = median(direction, ranges - tenth, ranges);
}

void neap__sweep_pace_now(const struct neap__sweep_pace *p, struct neap_pace *pace)
{
	*pace = (struct neap_pace){.range = p->range};
	tenths(&p->forward, &pace->forward_first, &pace->forward_last);
	tenths(&p->backward, &pace->backward_first, &pace->backward_last);
}
