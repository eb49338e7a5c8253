/* SPDX-License-Identifier: Apache-2.0 */
/* tape_probe.c: the step functions that fill tape sizes while they record. */
#include "measure/tape_probe.h"
#include "nn/core/on_device.h"

static int probe_advance(void *user, void *state, int64_t t0, int64_t t1, int first)
{
	struct neap__tape_probe *probe = user;
	return neap_net_advance(probe->net, state, t0, t1, first);
}

static int probe_record(void *user, void *state, int64_t t0, int64_t t1, int first, void *tape,
	size_t room, size_t *used, int64_t *t_done)
{
	struct neap__tape_probe *probe = user;
	int rc = neap_net_record(probe->net, state, t0, t1, first, tape, room, used, t_done);
	if (rc >= 0 && probe->tapes)
		neap__tape_sizes_add(probe->tapes, t0, *t_done, *used);
	return rc;
}

static int probe_turn(void *user, const void *state, void *adjoint, double *loss)
{
	struct neap__tape_probe *probe = user;
	return neap_net_turn(probe->net, state, adjoint, loss);
}

static int probe_backward(void *user, void *adjoint, int64_t t1, int64_t t0, const void *tape)
{
	struct neap__tape_probe *probe = user;
	return neap_net_backward(probe->net, adjoint, t1, t0, tape);
}

static int probe_fence(void *user)
{
	const struct neap__tape_probe *probe = user;
	return neap__net_wait(probe->net);
}

static void probe_will_touch(void *user, int64_t t0, int64_t t1)
{
	const struct neap__tape_probe *probe = user;
	neap_net_will_touch(probe->net, t0, t1);
}

void neap__tape_probe_fill(struct neap_step_ops *ops)
{
	ops->advance = probe_advance;
	ops->record = probe_record;
	ops->turn = probe_turn;
	ops->backward = probe_backward;
	ops->will_touch = probe_will_touch;
	if (ops->fence)
		ops->fence = probe_fence;
	ops->grad_save = NULL;
	ops->grad_load = NULL;
	ops->advance_log = NULL; /* a replayed tape would count twice */
	ops->replay = NULL;
}
