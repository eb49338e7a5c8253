/* SPDX-License-Identifier: Apache-2.0 */
/* synthetic.c: the step functions of a synthetic model, and its sweeps. */
#include "study/synthetic.h"

#include <math.h>
#include <neap/machine.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"

#define REPEATS_MOST 15

/* A model and what its sweep has measured. */
struct synthetic_work {
	struct neap__synthetic model;
	double turned; /* clock at the last turn */
};

struct synthetic_timed {
	struct neap_sweep_stats stats;
	double forward;
};

void neap__synthetic_spend(double start, double seconds)
{
	while (seconds > 0 && neap_clock() - start < seconds)
		;
}

static int step_of(const void *state, int64_t t)
{
	int64_t at;
	memcpy(&at, state, sizeof at);
	return at == t ? 0 : neap__fail(NEAP_EMODEL, "a step from the wrong state");
}

static int advance(void *user, void *state, int64_t t0, int64_t t1, int first)
{
	double start = neap_clock();
	const struct neap__synthetic *m = &((const struct synthetic_work *)user)->model;
	(void)first;
	NEAP_TRY(step_of(state, t0));
	memcpy(state, &t1, sizeof t1);
	neap__synthetic_spend(start, m->advance * (double)(t1 - t0));
	return 0;
}

static int record(void *user, void *state, int64_t t0, int64_t t1, int first, void *tape,
	size_t room, size_t *used, int64_t *t_done)
{
	double start = neap_clock();
	const struct neap__synthetic *m = &((const struct synthetic_work *)user)->model;
	int64_t n = (int64_t)(room / m->tape);
	(void)first;
	NEAP_TRY(step_of(state, t0));
	n = n < t1 - t0 ? n : t1 - t0;
	for (int64_t i = 0; i < n; i++) {
		int64_t t = t0 + i;
		memset((char *)tape + (size_t)i * m->tape, (int)(t & 127), m->tape);
		memcpy((char *)tape + (size_t)i * m->tape, &t, sizeof t);
	}
	*used = (size_t)n * m->tape;
	*t_done = t0 + n;
	memcpy(state, t_done, sizeof *t_done);
	neap__synthetic_spend(start, m->record * (double)n);
	return 0;
}

static int turn(void *user, const void *state, void *adjoint, double *loss)
{
	struct synthetic_work *work = user;
	const struct neap__synthetic *m = &work->model;
	work->turned = neap_clock();
	NEAP_TRY(step_of(state, m->steps));
	memset(adjoint, 0, m->adjoint);
	memcpy(adjoint, &m->steps, sizeof m->steps);
	*loss = 0;
	return 0;
}

static int backward(void *user, void *adjoint, int64_t t1, int64_t t0, const void *tape)
{
	double start = neap_clock();
	const struct neap__synthetic *m = &((const struct synthetic_work *)user)->model;
	NEAP_TRY(step_of(adjoint, t1));
	for (int64_t t = t0; t < t1; t++)
		NEAP_TRY(step_of((const char *)tape + (size_t)(t - t0) * m->tape, t));
	memcpy(adjoint, &t0, sizeof t0);
	neap__synthetic_spend(start, m->backward * (double)(t1 - t0));
	return 0;
}

static int by_seconds(const void *a, const void *b)
{
	const struct synthetic_timed *x = a, *y = b;
	return (x->stats.seconds > y->stats.seconds) - (x->stats.seconds < y->stats.seconds);
}

int neap__synthetic_run(struct neap_sweep_stats *stats, struct neap_plan *plan,
	const struct neap__synthetic *model, uint64_t memory, const char *strategy,
	const struct neap_params *params, struct neap_tier *tier, int repeats)
{
	struct neap_step_ops ops = {.size = sizeof ops,
		.advance = advance,
		.record = record,
		.turn = turn,
		.backward = backward,
		.state_bytes = model->state,
		.adjoint_bytes = model->adjoint,
		.tape_bytes = model->tape};
	struct neap_sweep_options o = {.size = sizeof o,
		.steps = model->steps,
		.memory = memory,
		.strategy = strategy,
		.params = params ? *params : (struct neap_params){0},
		.ntiers = tier ? 1 : 0,
		.tiers = &tier,
		.advance = fmax(model->advance, 1e-9),
		.record = fmax(model->record, 1e-9),
		.backward = fmax(model->backward, 1e-9),
		.slot_write = model->slot_write,
		.slot_read = model->slot_read};
	struct synthetic_timed all[REPEATS_MOST];
	struct neap_sweep *sweep;
	struct synthetic_work work = {*model, 0};
	double loss;

	NEAP_TRY(neap_sweep_create(&sweep, &ops, &work, &o));
	*plan = *neap_sweep_plan(sweep);
	plan->actions = NULL; /* the sweep's */
	plan->action_count = 0;
	int rc = neap_sweep_touch(sweep);
	repeats = repeats < REPEATS_MOST ? repeats : REPEATS_MOST;
	for (int i = 0; rc == 0 && i < repeats; i++) {
		double start = neap_clock();
		all[i].stats.size = sizeof all[i].stats;
		rc = neap_sweep_run(sweep, NULL, NULL, &loss, &all[i].stats);
		all[i].forward = work.turned - start;
	}
	neap_sweep_free(sweep);
	NEAP_TRY(rc);
	qsort(all, (size_t)repeats, sizeof all[0], by_seconds);
	*stats = all[repeats / 2].stats;
	if (model->forward)
		*model->forward = all[repeats / 2].forward;
	return 0;
}
