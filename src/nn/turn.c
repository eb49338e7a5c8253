/* SPDX-License-Identifier: Apache-2.0 */
/* turn.c: the turn: answers, losses, the penalty on rates, and the first adjoint. */
#include "nn/core/cell.h"
#include "nn/batch/group_sums.h"
#include "nn/batch/peer_sum.h"
#include "nn/core/on_device.h"
#include "base/fail.h"

/* The penalty at rate r; *slope is its derivative. */
static double penalty_at(const struct neap_rate_penalty *p, double r, double *slope)
{
	double over = r > p->upper ? r - p->upper : 0, under = r < p->lower ? p->lower - r : 0;

	*slope = 2 * p->upper_weight * over - 2 * p->lower_weight * under + p->l1 + 2 * p->l2 * r;
	return p->upper_weight * over * over + p->lower_weight * under * under + p->l1 * r +
	       p->l2 * r * r;
}

/* The outputs of a unit over the batch, or over the batches of all ranks. */
static double sum_of(const struct neap_net *net, int unit)
{
	return net->objective.peers ? neap__peer_unit(net, unit)
				    : neap__unit_sum(net, unit, 0, net->ngrads);
}

/*
 * Fills in rates of layers and the gradient a spike; returns the penalty on the rates of all units
 * that spike. Numbers that other units give out are no spikes, and keep a gradient of 0.
 */
static double gather_rates(struct neap_net *net, double steps)
{
	double penalty = 0, all = 0;
	int unit = 0;

	for (int l = 0; l < net->nlayers - 1; l++) {
		int penalised = net->has_penalty && neap__layer_spikes(net, &net->layers[l]);
		double layer = 0;
		for (int j = 0; j < net->layers[l].n; j++, unit++) {
			double spikes = sum_of(net, unit), slope;
			layer += spikes;
			if (!penalised)
				continue;
			penalty += penalty_at(&net->objective.rates, spikes / steps, &slope);
			net->ops->penalty(net, l, j, slope / steps);
		}
		net->rate[l] = layer / steps / net->layers[l].n;
		all += layer;
	}
	net->result.spikes = net->hidden ? all / steps / net->hidden : 0;
	return penalty;
}

static int largest(const double *z, int n)
{
	int best = 0;
	for (int c = 1; c < n; c++)
		if (z[c] > z[best])
			best = c;
	return best;
}

/* What has a label, and what the net is right about: steps, or samples. */
static void judge(const struct neap_net *net, struct neap__peer_counts *counts)
{
	const struct neap_batch *batch = net->batch;

	for (int b = 0; b < batch->size; b++) {
		const struct neap_sequence *s = &batch->sequences[b];
		if (batch->target == NEAP_TARGET_LABELS) {
			counts->judged += s->counted;
			counts->right += net->step_right[b];
		} else if (batch->target == NEAP_TARGET_LABEL && s->label >= 0) {
			counts->judged++;
			counts->right += net->prediction[b] == s->label;
		}
	}
}

static int turn(struct neap_net *net, const void *state, void *adjoint, double *loss)
{
	const struct neap__layer *readout = &net->layers[net->nlayers - 1];
	int classes = net->options.classes, peers = net->objective.peers != NULL;
	struct neap__peer_counts counts = {0};
	double sum = 0;

	for (int g = 0; g < net->ngroups; g++) {
		struct neap__group *group = &net->groups[g];
		for (int s = 0; s < group->size; s++) {
			int b = group->first + s;
			double *z = net->answer + (size_t)b * classes;
			double value =
				neap__layer_code(net, readout)
					->turn(net, group, b,
						(const unsigned char *)state + group->state_at +
							s * net->sample_state,
						adjoint ? (unsigned char *)adjoint +
								  group->adjoint_at +
								  s * net->sample_adjoint
							: NULL,
						z);
			sum += value;
			if (peers)
				neap__peer_loss(net, b, value);
			net->prediction[b] = largest(z, classes);
			counts.correct += net->prediction[b] == net->batch->sequences[b].label;
		}
	}
	judge(net, &counts);
	counts.steps = (int64_t)net->sample_steps;
	if (peers) {
		net->peer_room->has_gradients = adjoint != NULL;
		NEAP_TRY(neap__peer_turn(net, &sum, &counts));
		NEAP_TRY(neap__peer_units(net));
	}
	net->whole_steps = counts.steps;
	net->result.penalty = gather_rates(net, counts.steps > 0 ? (double)counts.steps : 1);
	net->result.loss = sum / neap__whole_batch(net) + net->result.penalty;
	net->result.correct = (int)counts.correct;
	net->result.judged = counts.judged;
	net->result.right = counts.right;
	*loss = net->result.loss;
	return 0;
}

int neap_net_turn(void *user, const void *state, void *adjoint, double *loss)
{
	NEAP_NEED(user);
	struct neap_net *net = user;

	if (!net->batch)
		return neap__fail(NEAP_EUSAGE, "no batch was begun");
	NEAP_TRY(net->backend ? neap__on_device_turn(net, state, adjoint, loss, turn)
			      : turn(net, state, adjoint, loss));
	const struct neap__layer *readout = &net->layers[net->nlayers - 1];
	net->skips_readout = net->objective.readout_once && adjoint && readout->cell->readout &&
			     neap__layer_tape(net, readout) == 0;
	return 0;
}
