/* SPDX-License-Identifier: Apache-2.0 */
/* nir_chain.c: the order of layers, and the arithmetic of their units (nir_chain.h). */
#include "train/nir/nir_chain.h"
#include "nn/core/net_state.h"
#include "base/checked.h"
#include "base/fail.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Factors this near to 1 are 1: r = tau/dt is so exact in files of 32 bits. */
#define NEAR_ONE 1e-6
/* A delay is a whole number of steps where it differs by less. */
#define NEAR_STEP 1e-3
/* The time constant of a node without a leak, so long that a step leaves everything. */
#define NO_LEAK 1e30

static int refuse(const struct neap__nir_sums *s, int node, const char *what)
{
	return neap__fail(
		NEAP_EFORMAT, "'%s': node '%.80s' %s", s->path, s->graph->node[node].name, what);
}

/* A parameter of unit i: a scalar is of all units; one that is missing has a fallback. */
static double value_of(
	const struct neap__nir_node *node, const char *name, int64_t i, double fallback)
{
	const struct neap__nir_array *a = neap__nir_param(node, name);
	return !a->data || a->count == 0 ? fallback : a->data[a->count > 1 ? i : 0];
}

/* The share dt/tau of a step. */
static int share_of(const struct neap__nir_sums *s, int index, const char *name, int64_t i,
	double dt, double *share)
{
	const struct neap__nir_node *node = &s->graph->node[index];
	double tau = value_of(node, name, i, 0);

	if (!(tau > 0))
		return refuse(s, index, "has a time constant of 0 or below; it must be positive");
	*share = dt / tau;
	/* A tau of one step may be less by rounding in a file of 32 bits. */
	if (*share > 1 && *share < 1 + NEAR_ONE)
		*share = 1;
	if (*share > 1)
		return neap__fail(NEAP_EFORMAT,
			"'%s': node '%.80s': %s is %g s, shorter than the time step of %g s. Pass "
			"a shorter --dt",
			s->path, node->name, name, tau, dt);
	return 0;
}

/* Gain, decays and potentials of unit i; the threshold may still be scaled to 1. */
static int unit(const struct neap__nir_sums *s, struct neap__nir_layer *l, int64_t i, double dt,
	double *threshold, double *reset)
{
	const struct neap__nir_node *node = &s->graph->node[l->node];
	double leak = value_of(node, "v_leak", i, 0), r = value_of(node, "r", i, 1), k = 0, ks = 1;
	int cuba = l->type == NEAP__NIR_CUBALIF;

	if (l->type != NEAP__NIR_IF)
		NEAP_TRY(share_of(s, l->node, cuba ? "tau_mem" : "tau", i, dt, &k));
	if (cuba)
		NEAP_TRY(share_of(s, l->node, "tau_syn", i, dt, &ks));
	l->decay[0][i] = 1 - k;
	l->decay[1][i] = 1 - ks;
	l->gain[i] = l->type == NEAP__NIR_LI   ? r
		     : l->type == NEAP__NIR_IF ? dt * r
		     : cuba		       ? k * r * ks * value_of(node, "w_in", i, 1)
					       : k * r;
	if (fabs(l->gain[i] - 1) < NEAR_ONE)
		l->gain[i] = 1;
	if (l->type == NEAP__NIR_LI && leak != 0)
		return refuse(s, l->node,
			"has a v_leak other than 0, which neap does not support in the last LI");
	*threshold = value_of(node, "v_threshold", i, 1) - leak;
	*reset = value_of(node, "v_reset", i, 0) - leak;
	if (!(*threshold > 0))
		return refuse(s, l->node, "has a v_threshold that is not above its v_leak");
	return 0;
}

/* Is a parameter the same of all units? */
static int is_same(const struct neap__nir_node *node, const char *name)
{
	const struct neap__nir_array *a = neap__nir_param(node, name);
	for (int64_t i = 1; i < a->count; i++)
		if (a->data[i] != a->data[0])
			return 0;
	return 1;
}

static int make_rows(const struct neap__nir_sums *s, struct neap__nir_layer *l)
{
	l->gain = calloc((size_t)l->n, sizeof *l->gain);
	l->decay[0] = calloc((size_t)l->n, sizeof *l->decay[0]);
	l->decay[1] = calloc((size_t)l->n, sizeof *l->decay[1]);
	return l->gain && l->decay[0] && l->decay[1] ? 0
						     : neap__fail_errno(ENOMEM, "'%s'", s->path);
}

static int units(const struct neap__nir_sums *s, struct neap__nir_layer *l, double dt)
{
	const struct neap__nir_node *node = &s->graph->node[l->node];
	const char *const taus[] = {l->type == NEAP__NIR_CUBALIF ? "tau_mem" : "tau", "tau_syn"};
	double *th = calloc((size_t)l->n, sizeof *th), *re = calloc((size_t)l->n, sizeof *re);
	int rc = th && re ? make_rows(s, l) : neap__fail_errno(ENOMEM, "'%s'", s->path), scaled = 0;

	for (int64_t i = 0; rc == 0 && i < l->n; i++)
		rc = unit(s, l, i, dt, &th[i], &re[i]);
	for (int64_t i = 1; rc == 0 && i < l->n; i++)
		scaled |= th[i] != th[0];
	for (int64_t i = 0; rc == 0 && scaled && i < l->n; i++) { /* in units of the threshold */
		l->gain[i] /= th[i];
		re[i] /= th[i];
		th[i] = 1;
	}
	for (int64_t i = 0; rc == 0 && l->feed->conv && i < l->n; i++) {
		int64_t channel = l->n / l->feed->conv->to.channels;
		if (l->gain[i] != l->gain[i / channel * channel])
			rc = refuse(s, l->node,
				"follows a convolution, but its r, time constants or thresholds "
				"differ between units of a channel; neap has one factor per "
				"channel");
	}
	for (int64_t i = 1; rc == 0 && i < l->n; i++)
		if (fabs(re[i] - re[0]) > NEAR_ONE * th[0])
			rc = refuse(s, l->node,
				"has a v_reset that differs between units; neap has one per layer");
	if (rc == 0) {
		l->threshold = th[0];
		l->reset_value = re[0];
	}
	for (int k = 0; k < 2; k++) {
		l->same[k] = is_same(node, taus[k]);
		l->tau[k] = value_of(node, taus[k], 0, NO_LEAK);
		if (l->tau[k] < dt) /* by rounding alone */
			l->tau[k] = dt;
	}
	free(th);
	free(re);
	return rc;
}

/* Splits what enters a node into what comes from below and from itself. */
static int split_terms(struct neap__nir_sums *s, struct neap__nir_layer *l, double dt)
{
	struct neap__nir_sum *sum = &s->sum[l->node];

	for (int i = 0; i < sum->terms; i++) {
		struct neap__nir_term *t = &sum->term[i];
		int own = t->source == l->node;
		struct neap__nir_term **to = own ? &l->own : &l->feed;
		double steps = round(t->delay / dt);
		int most = own ? 0 : t->conv || t->pool ? 1 : NEAP__DELAY_MOST;
		if (*to)
			return neap__fail(NEAP_EFORMAT,
				"'%s': outputs of '%.80s' and '%.80s' enter node '%.80s'; a layer "
				"of neap has one input layer, and itself",
				s->path, s->graph->node[(*to)->source].name,
				s->graph->node[t->source].name, s->graph->node[l->node].name);
		if (fabs(t->delay - steps * dt) > NEAR_STEP * dt || steps > most)
			return neap__fail(NEAP_EFORMAT,
				"'%s': node '%.80s' receives '%.80s' with a delay of %g s; %s, and "
				"a time step is %g s",
				s->path, s->graph->node[l->node].name,
				s->graph->node[t->source].name, t->delay,
				own	    ? "its own output arrives at the next step"
				: most == 1 ? "neap supports delays of 0 or 1 steps before a "
					      "convolution or a pool"
					    : "neap supports delays of 0 to 127 whole steps",
				dt);
		if (own && (t->conv || t->pool))
			return refuse(s, l->node,
				"receives itself through a convolution or a pool, which neap does "
				"not support");
		if (l->type == NEAP__NIR_LI && t->conv)
			return refuse(s, l->node,
				"follows a convolution, which neap supports only before nodes that "
				"spike");
		if (!own)
			l->delay = (int)steps;
		*to = t;
	}
	l->bias = sum->bias;
	for (int64_t i = 0; l->bias && l->feed && l->feed->conv && i < l->n; i++) {
		int64_t channel = l->n / l->feed->conv->to.channels;
		if (l->bias[i] != l->bias[i / channel * channel])
			return refuse(s, l->node,
				"follows a convolution, but its biases differ between units of a "
				"channel; neap has one per channel");
	}
	return l->feed ? 0 : refuse(s, l->node, "has no input except itself");
}

/* The node whose state the last node (the Output) shows, behind weights or not. */
static int find_next(const struct neap__nir_sums *s, int before, int *next)
{
	const struct neap__nir_graph *g = s->graph;

	*next = -1;
	for (int i = 0; i < g->nodes; i++) {
		if (i == before || g->node[i].type == NEAP__NIR_INPUT ||
			(!neap__nir_is_source(&g->node[i]) &&
				(g->node[i].type != NEAP__NIR_OUTPUT || g->node[i].inner)))
			continue;
		for (int k = 0; k < s->sum[i].terms; k++) {
			if (s->sum[i].term[k].source != before)
				continue;
			if (*next >= 0)
				return neap__fail(NEAP_EFORMAT,
					"'%s': both '%.80s' and '%.80s' receive node '%.80s'; the "
					"layers of a neap network form a chain",
					s->path, g->node[*next].name, g->node[i].name,
					g->node[before].name);
			*next = i;
			break;
		}
	}
	return *next >= 0 ? 0 : refuse(s, before, "is not connected to the Output");
}

static int is_identity(const struct neap__nir_layer *l)
{
	const struct neap__nir_term *t = l->feed;

	if (t->pool || t->conv)
		return 0;
	for (int64_t i = 0; t->weight && i < l->n; i++)
		for (int64_t k = 0; k < t->columns; k++)
			if (l->n != t->columns || t->weight[i * t->columns + k] != (i == k))
				return 0;
	for (int64_t i = 0; l->bias && i < l->n; i++)
		if (l->bias[i] != 0)
			return 0;
	return l->delay == 0;
}

/* The Output: LI before it is the readout; else one that leaks all at once shows what enters. */
static int finish(struct neap__nir_chain *chain, struct neap__nir_sums *s, int output, double dt)
{
	struct neap__nir_layer *last = &chain->layer[chain->layers];

	*last = (struct neap__nir_layer){
		.node = output, .type = NEAP__NIR_LI, .n = s->size[output]};
	NEAP_TRY(split_terms(s, last, dt));
	if (chain->layers == 0)
		return refuse(
			s, output, "is not connected to the Input through a node with a state");
	last->below = s->size[last->feed->source];
	if (last[-1].type == NEAP__NIR_LI) {
		if (!is_identity(last))
			return refuse(s, last[-1].node,
				"is an LI followed by weights; neap supports an LI as the last "
				"layer only");
		return 0;
	}
	last->node = -1;
	last->type = NEAP__NIR_LI;
	last->same[0] = last->same[1] = 1;
	last->tau[0] = dt;
	chain->layers++;
	NEAP_TRY(make_rows(s, last));
	for (int64_t i = 0; i < last->n; i++)
		last->gain[i] = 1;
	return 0;
}

static int find_layers(struct neap__nir_chain *chain, struct neap__nir_sums *s, double dt)
{
	const struct neap__nir_graph *g = s->graph;
	int at = -1, stateful = 0;

	for (int i = 0; i < g->nodes; i++) {
		if (g->node[i].type == NEAP__NIR_INPUT && !g->node[i].inner)
			at = i;
		else
			stateful += neap__nir_is_source(&g->node[i]);
	}
	chain->inputs = s->size[at];
	chain->layer = calloc((size_t)stateful + 2, sizeof *chain->layer);
	if (!chain->layer)
		return neap__fail_errno(ENOMEM, "'%s'", s->path);
	for (;;) {
		NEAP_TRY(find_next(s, at, &at));
		if (g->node[at].type == NEAP__NIR_OUTPUT)
			break;
		struct neap__nir_layer *l = &chain->layer[chain->layers];
		if (chain->layers > 0 && l[-1].type == NEAP__NIR_LI)
			return refuse(s, l[-1].node,
				"is an LI, but not the last node with a state; neap supports an LI "
				"as the last layer only");
		for (int k = 0; k < chain->layers; k++)
			if (chain->layer[k].node == at)
				return refuse(s, at,
					"is part of a cycle of layers; the layers of a neap "
					"network form a chain");
		*l = (struct neap__nir_layer){
			.node = at, .type = g->node[at].type, .n = s->size[at]};
		chain->layers++;
		NEAP_TRY(split_terms(s, l, dt));
		l->below = s->size[l->feed->source];
		if (l->own && l->type == NEAP__NIR_LI)
			return refuse(s, at,
				"is an LI with recurrent connections, which neap does not support");
		NEAP_TRY(units(s, l, dt));
	}
	if (chain->layers < stateful)
		return neap__fail(NEAP_EFORMAT,
			"'%s': %d of %d nodes with a state are not on the path from Input to "
			"Output",
			s->path, stateful - chain->layers, stateful);
	return finish(chain, s, at, dt);
}

int neap__nir_chain_make(struct neap__nir_chain *chain, struct neap__nir_sums *s, double dt)
{
	*chain = (struct neap__nir_chain){.is_single = 1};
	for (int i = 0; i < s->graph->nodes; i++) {
		const struct neap__nir_array *w = neap__nir_param(&s->graph->node[i], "weight");
		chain->is_single &= !w->data || w->is_single;
	}
	return find_layers(chain, s, dt);
}

void neap__nir_chain_free(struct neap__nir_chain *chain)
{
	for (int i = 0; i < chain->layers; i++) {
		free(chain->layer[i].gain);
		free(chain->layer[i].decay[0]);
		free(chain->layer[i].decay[1]);
	}
	free(chain->layer);
	*chain = (struct neap__nir_chain){0};
}
