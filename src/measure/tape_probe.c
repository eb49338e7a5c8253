/* SPDX-License-Identifier: Apache-2.0 */
#include "measure/tape_probe.h"

static int watch_advance(void *user, void *state, int64_t t0, int64_t t1, int first)
{
	struct neap__tape_probe *w = user;
	return neap_net_advance(w->net, state, t0, t1, first);
}

static int watch_record(void *user, void *state, int64_t t0, int64_t t1, int first, void *tape,
	size_t room, size_t *used, int64_t *t_done)
{
	struct neap__tape_probe *w = user;
	int rc = neap_net_record(w->net, state, t0, t1, first, tape, room, used, t_done);
	if (rc >= 0 && w->tapes)
		neap__tape_sizes_add(w->tapes, t0, *t_done, *used);
	return rc;
}

static int watch_turn(void *user, const void *state, void *adjoint, double *loss)
{
	struct neap__tape_probe *w = user;
	return neap_net_turn(w->net, state, adjoint, loss);
}

static int watch_backward(void *user, void *adjoint, int64_t t1, int64_t t0, const void *tape)
{
	struct neap__tape_probe *w = user;
	return neap_net_backward(w->net, adjoint, t1, t0, tape);
}

static void watch_will_touch(void *user, int64_t t0, int64_t t1)
{
	const struct neap__tape_probe *w = user;
	neap_net_will_touch(w->net, t0, t1);
}

void neap__tape_sizes_watch(struct neap_step_ops *ops)
{
	ops->advance = watch_advance;
	ops->record = watch_record;
	ops->turn = watch_turn;
	ops->backward = watch_backward;
	ops->will_touch = watch_will_touch;
	ops->grad_save = NULL;
	ops->grad_load = NULL;
	ops->advance_log = NULL; /* tapes are looked at as they are recorded */
	ops->replay = NULL;
}
