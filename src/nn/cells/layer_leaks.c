/* SPDX-License-Identifier: Apache-2.0 */
/* layer_leaks.c: the leaks of a layer from the values of its keys (cells.h). */
#include "nn/cells/cells.h"
#include "base/fail.h"

#include <math.h>

/* A decay below this leaves nothing of a membrane, and its logit nothing to learn from. */
#define LEARNED_LEAST 1e-9

/* The layer's next leak. */
static struct neap__leak *next_leak(
	struct neap__layer *layer, enum neap__leak_kind kind, const char *name, double start)
{
	struct neap__leak *leak = &layer->leaks[layer->nleaks++];

	leak->kind = kind;
	leak->name = name;
	leak->start = start;
	return leak;
}

/* Fills in the decay of the layer's next leak, `tensor`: what a step leaves of a number. */
static int decay_of(const struct neap_net *net, struct neap__layer *layer, const char *name,
	const char *tensor, double tau)
{
	struct neap__leak *leak = next_leak(layer, NEAP__LEAK_DECAY, tensor, 0);
	double dt = net->options.dt, *decay = &leak->start;
	int euler = net->options.euler && tau > 0;
	int needs_logit = leak->has_range || layer->learn != NEAP_LEARN_NONE;

	layer->ntaus = layer->nleaks;
	if (leak->has_range)
		tau = leak->low;
	if (euler && dt > tau)
		return neap__fail(NEAP_EUSAGE,
			"--net: %s is %g s, shorter than the time step of %g s, which --euler does "
			"not support. Use a shorter --dt, or remove --euler",
			name, tau, dt);
	*decay = euler ? 1 - dt / tau : exp(-dt / tau); /* tau 0: nothing is left */
	if (needs_logit && *decay < LEARNED_LEAST)
		return neap__fail(NEAP_EUSAGE,
			"--net: %s: %s is %g s, so short compared with the time step of %g s that "
			"nothing remains to learn from. Use a longer one, or remove %s",
			leak->has_range ? "LOW..HIGH" : "learn=tau", name, tau, dt,
			leak->has_range ? "the range" : "learn=tau");
	return 0;
}

/* The leaks of a cell that oscillates; dt omega is the sine of the angle of a step. */
static int oscillation_of(const struct neap_net *net, struct neap__layer *layer)
{
	double dt = net->options.dt, most = neap__most_turn() / dt;
	struct neap__leak *turn = next_leak(layer, NEAP__LEAK_TURN, "omega", layer->omega);
	double omega = turn->has_range ? turn->high : layer->omega;
	int euler = net->options.euler;

	next_leak(layer, NEAP__LEAK_DAMPING, "b", layer->b);
	layer->ntaus = layer->nleaks;
	layer->gamma = euler ? 1 - dt / layer->tau_adapt : exp(-dt / layer->tau_adapt);
	if (euler && dt > layer->tau_adapt)
		return neap__fail(NEAP_EUSAGE,
			"--net: tau_adapt is %g s, shorter than the time step of %g s, which "
			"--euler does not support. Use a shorter --dt, or remove --euler",
			layer->tau_adapt, dt);
	if (omega > most)
		return neap__fail(NEAP_EUSAGE,
			"--net: omega is %g radians per second; a time step of %g s allows at most "
			"%g. Use a smaller omega or a shorter --dt",
			omega, dt, most);
	return 0;
}

int neap__layer_leaks(const struct neap_net *net, struct neap__layer *layer)
{
	int where = layer->cell->traits;

	if (where & NEAP__HAS_LEAK)
		NEAP_TRY(decay_of(net, layer, "tau", "leak", layer->tau));
	if (where & NEAP__HAS_SYNAPSE)
		NEAP_TRY(decay_of(net, layer, "tau_syn", "leak_syn", layer->tau_syn));
	if (where & NEAP__HAS_ADAPTATION)
		NEAP_TRY(decay_of(net, layer, "tau_adapt", "leak_adapt", layer->tau_adapt));
	if (where & NEAP__HAS_SCALED_COUPLING) {
		next_leak(layer, NEAP__LEAK_PLAIN, "a", layer->a);
		next_leak(layer, NEAP__LEAK_PLAIN, "b", layer->b);
	}
	return where & NEAP__OSCILLATES ? oscillation_of(net, layer) : 0;
}
