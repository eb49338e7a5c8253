/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gradient_state.c: what a net has gathered in the middle of a sweep, written to a journal and read
 * back: sums of gradients, those of the gradient block in progress too, what first passes counted,
 * and what the turn found. All of that lies where neap_net_begin put it, so that writing and
 * reading are one walk.
 */
#include "nn/core/net_state.h"
#include "nn/core/step_backend.h"
#include "base/fail.h"

struct gradient_mover {
	int (*write)(void *to, const void *from, size_t bytes); /* or: */
	int (*read)(void *from, void *to, size_t bytes);
	void *other;
	int rc; /* of the first call that failed */
};

static void move(struct gradient_mover *m, void *at, size_t bytes)
{
	if (m->rc == 0 && bytes > 0)
		m->rc = m->write ? m->write(m->other, at, bytes) : m->read(m->other, at, bytes);
}

static void move_grads(
	struct gradient_mover *m, const struct neap_net *net, struct neap__grads *grads)
{
	for (int i = 0; i < net->ntensors; i++) {
		size_t count = neap__sum_count(net, grads, i);
		move(m, grads->part[i], count * net->ops->real);
		move(m, grads->total[i], count * sizeof **grads->total);
	}
	move(m, grads->dirty, net->rows);
}

static void move_group(
	struct gradient_mover *m, const struct neap_net *net, struct neap__group *group)
{
	move(m, group->spikes, neap__group_spikes(net) * sizeof *group->spikes);
	move(m, &group->support, sizeof group->support);
	move(m, &group->recorded, sizeof group->recorded);
	move(m, &group->tape_bytes, sizeof group->tape_bytes);
	move(m, &group->tape_steps, sizeof group->tape_steps);
}

static int move_all(struct gradient_mover *m, struct neap_net *net)
{
	struct neap_net_result *result = &net->result;
	if (!net->batch)
		return neap__fail(NEAP_EUSAGE, "no batch was begun");
	size_t samples = (size_t)net->batch->size;
	for (int g = 0; g < net->ngrads; g++)
		move_grads(m, net, &net->grads[g]);
	for (int g = 0; g < net->ngroups; g++)
		move_group(m, net, &net->groups[g]);
	for (int l = 0; l < net->nlayers; l++)
		move(m, net->penalty[l], (size_t)net->layers[l].n * net->ops->real);
	move(m, net->step_loss, samples * sizeof *net->step_loss);
	move(m, net->step_right, samples * sizeof *net->step_right);
	move(m, net->prediction, samples * sizeof *net->prediction);
	move(m, net->answer, samples * (size_t)net->options.classes * sizeof *net->answer);
	move(m, net->rate, (size_t)net->nlayers * sizeof *net->rate);
	move(m, &result->loss, sizeof result->loss);
	move(m, &result->penalty, sizeof result->penalty);
	move(m, &result->correct, sizeof result->correct);
	move(m, &result->spikes, sizeof result->spikes);
	move(m, &result->judged, sizeof result->judged);
	move(m, &result->right, sizeof result->right);
	if (net->has_norm) /* what its statistics are means over */
		move(m, &net->whole_steps, sizeof net->whole_steps);
	return m->rc;
}

int neap_net_grad_save(void *user, int (*write)(void *to, const void *from, size_t bytes), void *to)
{
	NEAP_NEED(user, write);
	struct neap_net *net = user;
	struct gradient_mover m = {.write = write, .other = to};

	if (net->batch && net->backend) {
		NEAP_TRY(net->backend->fetch_counts(net->on_backend, net));
		NEAP_TRY(net->backend->fetch_sums(net->on_backend, net));
	}
	return move_all(&m, net);
}

int neap_net_grad_load(void *user, int (*read)(void *from, void *to, size_t bytes), void *from)
{
	NEAP_NEED(user, read);
	struct neap_net *net = user;
	struct gradient_mover m = {.read = read, .other = from};

	NEAP_TRY(move_all(&m, net));
	if (!net->backend)
		return 0;
	NEAP_TRY(net->backend->send_penalties(net->on_backend, net));
	return net->backend->send_sums(net->on_backend, net);
}
