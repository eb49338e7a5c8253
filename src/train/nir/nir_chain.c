/* SPDX-License-Identifier: Apache-2.0 */
/* nir_chain.c: the order of layers, and the arithmetic of their units (nir_chain.h). */
#include "train/nir/nir_chain.h"
#include "train/nir/nir_order.h"
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
/* Layers that repeat others a step later, of a graph. */
enum {
	REPEATS_MOST = 128,
	REPEATED_MOST = 4096 /* units; such a layer has all n x n weights */
};
/* Weights of these layers, which a small file can ask for: 400 MB. */
#define REPEATED_WEIGHTS 1e8
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

/* Nodes whose outputs are numbers. */
static int is_number(enum neap__nir_type type)
{
	return type == NEAP__NIR_LI || type == NEAP__NIR_I || type == NEAP__NIR_CUBALI;
}

/* Gain, decays and potentials of unit i; the threshold may still be scaled to 1. */
static int unit(const struct neap__nir_sums *s, struct neap__nir_layer *l, int64_t i, double dt,
	double *threshold, double *reset)
{
	const struct neap__nir_node *node = &s->graph->node[l->node];
	double leak = value_of(node, "v_leak", i, 0), r = value_of(node, "r", i, 1), k = 0, ks = 1;
	int cuba = l->type == NEAP__NIR_CUBALIF, is_i = l->type == NEAP__NIR_I;
	int has_membrane = is_i || l->type == NEAP__NIR_IF;
	const char *tau = neap__nir_param(node, "tau_mem")->data ? "tau_mem" : "tau";

	if (l->type == NEAP__NIR_THRESHOLD)
		k = 1;
	else if (!has_membrane)
		NEAP_TRY(share_of(s, l->node, tau, i, dt, &k));
	if (cuba)
		NEAP_TRY(share_of(s, l->node, "tau_syn", i, dt, &ks));
	l->decay[0][i] = 1 - k;
	l->decay[1][i] = 1 - ks;
	l->gain[i] = l->is_readout  ? r
		     : has_membrane ? dt * r
		     : cuba	    ? k * r * ks * value_of(node, "w_in", i, 1)
				    : k * r;
	if (fabs(l->gain[i] - 1) < NEAR_ONE)
		l->gain[i] = 1;
	*threshold =
		value_of(node, l->type == NEAP__NIR_THRESHOLD ? "threshold" : "v_threshold", i, 1) -
		leak;
	*reset = l->type == NEAP__NIR_THRESHOLD ? 0 : value_of(node, "v_reset", i, 0) - leak;
	return 0;
}

/* The synapse of a CubaLI: i += ks (w_in I - i). */
static int synapse_unit(const struct neap__nir_sums *s, struct neap__nir_layer *l, int64_t i,
	double dt, double *threshold, double *reset)
{
	double ks = 1;

	NEAP_TRY(share_of(s, l->node, "tau_syn", i, dt, &ks));
	l->decay[0][i] = 1 - ks;
	l->gain[i] = ks * value_of(&s->graph->node[l->node], "w_in", i, 1);
	*threshold = 1;
	*reset = 0;
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

/* Expresses thresholds that differ in units of the threshold. */
static int scale_thresholds(
	const struct neap__nir_sums *s, struct neap__nir_layer *l, double *th, double *re)
{
	int scaled = 0;

	for (int64_t i = 1; i < l->n; i++)
		scaled |= th[i] != th[0];
	for (int64_t i = 0; scaled && i < l->n; i++) {
		if (!(th[i] > 0))
			return refuse(s, l->node,
				"has thresholds that differ between units, some of them not above "
				"its v_leak (or 0), which neap does not support");
		l->gain[i] /= th[i];
		re[i] /= th[i];
		th[i] = 1;
	}
	return 0;
}

static int units(
	const struct neap__nir_sums *s, struct neap__nir_layer *l, double dt, int is_synapse)
{
	const struct neap__nir_node *node = &s->graph->node[l->node];
	const struct neap__nir_filter *conv = neap__nir_conv(l);
	int has_mem = neap__nir_param(node, "tau_mem")->data != NULL;
	const char *const taus[] = {is_synapse ? "tau_syn"
				    : has_mem  ? "tau_mem"
					       : "tau",
		"tau_syn"};
	double *th = calloc((size_t)l->n, sizeof *th), *re = calloc((size_t)l->n, sizeof *re);
	int rc = th && re ? make_rows(s, l) : neap__fail_errno(ENOMEM, "'%s'", s->path);

	for (int64_t i = 0; rc == 0 && i < l->n; i++)
		rc = (is_synapse ? synapse_unit : unit)(s, l, i, dt, &th[i], &re[i]);
	if (rc == 0 && !is_number(l->type))
		rc = scale_thresholds(s, l, th, re);
	for (int64_t i = 0; rc == 0 && conv && i < l->n; i++) {
		int64_t channel = l->n / conv->to.channels;
		if (l->gain[i] != l->gain[i / channel * channel])
			rc = refuse(s, l->node,
				"follows a convolution, but its r, time constants or thresholds "
				"differ between units of a channel; neap has one factor per "
				"channel");
	}
	for (int64_t i = 1; rc == 0 && !is_number(l->type) && i < l->n; i++)
		if (fabs(re[i] - re[0]) > NEAR_ONE * fabs(th[0]))
			rc = refuse(s, l->node,
				"has a v_reset that differs between units; neap has one per layer");
	if (rc == 0) {
		l->threshold = th[0];
		l->reset_value = re[0];
	}
	for (int k = 0; k < 2; k++) {
		l->same[k] = is_same(node, taus[k]);
		l->tau[k] = value_of(node, taus[k], 0, NO_LEAK);
		if (l->type == NEAP__NIR_THRESHOLD || l->tau[k] < dt) /* by rounding alone */
			l->tau[k] = dt;
	}
	free(th);
	free(re);
	return rc;
}

/* ---- layers ---- */

/* What is known of a node of the graph while its layers are made. */
struct nir_place {
	int layer;  /* its layer; -1: it has none yet, or it is the Input */
	int repeat; /* the first layer that repeats it; -1: none */
	int repeats;
};

struct nir_making {
	struct neap__nir_chain *chain;
	struct neap__nir_sums *sums;
	struct neap__nir_order order;
	double dt;
	struct nir_place *place; /* [nodes] */
	int room;
};

/* The steps of a delay; -1: it is refused. */
static int steps_of(const struct nir_making *m, int node, const struct neap__nir_term *t)
{
	const struct neap__nir_graph *g = m->sums->graph;
	double steps = round(t->delay / m->dt);

	if (fabs(t->delay - steps * m->dt) > NEAR_STEP * m->dt)
		return neap__fail(NEAP_EFORMAT,
			       "'%s': node '%.80s' receives '%.80s' with a delay of %g s, which is "
			       "not a multiple of the time step of %g s",
			       m->sums->path, g->node[node].name, g->node[t->source].name, t->delay,
			       m->dt),
		       -1;
	if (steps > REPEATS_MOST)
		return neap__fail(NEAP_EFORMAT,
			       "'%s': node '%.80s' receives '%.80s' with a delay of %g s; neap "
			       "supports up to %d time steps of %g s",
			       m->sums->path, g->node[node].name, g->node[t->source].name, t->delay,
			       REPEATS_MOST, m->dt),
		       -1;
	return (int)steps;
}

/* 1: a layer can delay what its node receives by several steps itself. */
static int can_delay(
	const struct nir_making *m, int node, const struct neap__nir_term *t, int steps)
{
	return steps <= NEAP__DELAY_MOST && t->source != m->order.input &&
	       !is_number(m->sums->graph->node[t->source].type) &&
	       m->sums->graph->node[node].type != NEAP__NIR_CUBALI;
}

/*
 * `delay` of the layer of a node: 1 if all layers before it are seen at least one step late, and
 * more if all are seen so late and can be delayed. -1: refused.
 */
static int delay_of(const struct nir_making *m, int node)
{
	const struct neap__nir_sum *sum = &m->sums->sum[node];
	int late = 0, at_once = 0, common = -1;

	for (int i = 0; i < sum->terms; i++) {
		const struct neap__nir_term *t = &sum->term[i];
		int steps = steps_of(m, node, t);
		if (steps < 0)
			return -1;
		if (t->source == node || neap__nir_is_back(&m->order, t->source, node)) {
			if (steps > 0)
				return refuse(m->sums, node,
					       "is part of a cycle with a Delay; NIR does not "
					       "define "
					       "whether the edge that closes the cycle adds a "
					       "step"),
				       -1;
			continue;
		}
		if (t->source == m->order.input && steps == 0)
			continue; /* the inputs of a step are seen at once */
		int same = steps > 1 && can_delay(m, node, t, steps) &&
			   (common < 0 || common == steps);
		common = same ? steps : 0;
		late |= steps > 0;
		at_once |= steps == 0;
	}
	return common > 1 ? common : late && !at_once;
}

/* Layers that repeat a node for its readers; of the Input one more, which repeats it at once. */
static int count_repeats(struct nir_making *m)
{
	double weights = 0;
	int all = 0;

	for (int i = 0; i <= m->order.nodes; i++) {
		int node = i < m->order.nodes ? m->order.node[i] : m->order.output;
		const struct neap__nir_sum *sum = &m->sums->sum[node];
		int late = delay_of(m, node);
		if (late < 0)
			return NEAP_EFORMAT;
		for (int k = 0; k < sum->terms; k++) {
			struct nir_place *from = &m->place[sum->term[k].source];
			int steps = steps_of(m, node, &sum->term[k]);
			int repeats = steps - late + (sum->term[k].source == m->order.input);
			if (steps == 0 || repeats <= from->repeats)
				continue;
			if ((sum->term[k].conv || sum->term[k].pool))
				return refuse(m->sums, node,
					"receives a convolution or a pool with this delay; neap "
					"supports a delay of one step there, of more only of "
					"spikes, and none from the Input");
			double n = (double)m->sums->size[sum->term[k].source];
			weights += (repeats - from->repeats) * n * n;
			all += repeats - from->repeats;
			from->repeats = repeats;
		}
	}
	if (all > REPEATS_MOST)
		return neap__fail(NEAP_EFORMAT,
			"'%s': the delays of the graph take %d layers that repeat others; the "
			"limit "
			"is %d",
			m->sums->path, all, REPEATS_MOST);
	if (weights > REPEATED_WEIGHTS)
		return neap__fail(NEAP_EFORMAT,
			"'%s': the delays of the graph take layers with %.3g weights that repeat "
			"others; "
			"the limit is %.3g",
			m->sums->path, weights, REPEATED_WEIGHTS);
	m->room = all;
	return 0;
}

static struct neap__nir_layer *add_layer(
	struct nir_making *m, int node, enum neap__nir_type type, int64_t n)
{
	struct neap__nir_layer *l = &m->chain->layer[m->chain->layers++];

	*l = (struct neap__nir_layer){.node = node, .type = type, .n = n};
	l->same[0] = l->same[1] = 1;
	return l;
}

/* Layers that repeat what leaves a node, each a step after the one before it. */
static int repeat(struct nir_making *m, int node)
{
	struct nir_place *of = &m->place[node];
	const struct neap__nir_node *source = &m->sums->graph->node[node];
	int numbers = is_number(source->type);

	if (of->repeats > 0 && m->sums->size[node] > REPEATED_MOST)
		return refuse(m->sums, node,
			"is delayed, but has more units than the 4096 that neap supports there");
	of->repeat = of->repeats ? m->chain->layers : -1;
	for (int i = 0; i < of->repeats; i++) {
		int first = i == 0, origin = of->layer;
		struct neap__nir_layer *l = add_layer(
			m, -1, numbers ? NEAP__NIR_LI : NEAP__NIR_THRESHOLD, m->sums->size[node]);
		l->feeds = 1;
		l->feed[0] = (struct neap__nir_feed){.layer = first ? origin : m->chain->layers - 2,
			.origin = first ? origin : m->chain->layers - 2,
			.columns = l->n};
		l->below = l->n;
		l->delay = l->feed[0].layer >= 0;
		l->tau[0] = m->dt;
		l->threshold = 0.5;
		NEAP_TRY(make_rows(m->sums, l));
		for (int64_t k = 0; k < l->n; k++)
			l->gain[k] = 1;
	}
	return 0;
}

/* What numbers have in addition at their readers: W v_leak, as a membrane of neap begins at 0. */
static int add_leaks(const struct nir_making *m, struct neap__nir_layer *l, int node,
	const struct neap__nir_term *t)
{
	const struct neap__nir_node *source = &m->sums->graph->node[t->source];
	int any = 0, is_numeric = is_number(source->type);

	for (int64_t i = 0; is_numeric && i < m->sums->size[t->source]; i++)
		any |= value_of(source, "v_leak", i, 0) != 0;
	if (!any)
		return 0;
	if (t->source == node || t->delay > 0 || neap__nir_is_back(&m->order, t->source, node))
		return refuse(m->sums, t->source,
			"has a v_leak other than 0 and is seen later than at once, which neap does "
			"not support");
	if (!l->bias && !(l->bias = calloc((size_t)l->n, sizeof *l->bias)))
		return neap__fail_errno(ENOMEM, "'%s'", m->sums->path);
	for (int64_t i = 0; i < l->n; i++)
		for (int64_t k = 0; k < t->columns; k++) {
			double w = t->weight ? t->weight[i * t->columns + k] : (double)(i == k);
			l->bias[i] += w * value_of(source, "v_leak", k, 0);
		}
	return 0;
}

static int check_filter(const struct nir_making *m, const struct neap__nir_layer *l,
	const struct neap__nir_term *t, int own)
{
	int node = l->node >= 0 ? l->node : m->order.output;

	if (!t->conv && !t->pool)
		return 0;
	if (own)
		return refuse(m->sums, node,
			"receives itself through a convolution or a pool, which neap does not "
			"support");
	if (t->conv && is_number(l->type))
		return refuse(m->sums, node,
			"follows a convolution, which neap supports only before nodes that spike");
	if (t->pool && is_number(l->type) && !l->is_readout)
		return refuse(m->sums, node,
			"follows a pool, which neap supports only before nodes that spike");
	if (is_number(m->sums->graph->node[t->source].type))
		return refuse(m->sums, node,
			"receives an LI, I or CubaLI through a convolution or a pool, which neap "
			"supports only after nodes that spike");
	if (m->sums->sum[node].terms > 1 + (l->own != NULL))
		return refuse(m->sums, node,
			"receives a convolution or a pool and another node; neap supports one");
	return 0;
}

/* Adds a source of a layer in the order of layers. */
static int add_feed(
	const struct nir_making *m, struct neap__nir_layer *l, struct neap__nir_feed feed)
{
	int at = l->feeds, node = l->node >= 0 ? l->node : m->order.output;

	for (int i = 0; i < l->feeds; i++)
		if (l->feed[i].layer == feed.layer)
			return refuse(m->sums, node,
				"receives the same node at once and a step later, in a cycle; neap "
				"supports one of these");
	if (l->feeds == NEAP__NIR_FEEDS)
		return neap__fail(NEAP_EFORMAT,
			"'%s': node '%.80s' receives more than %d nodes or delays of nodes; the "
			"limit is %d",
			m->sums->path, m->sums->graph->node[node].name, NEAP__NIR_FEEDS,
			NEAP__NIR_FEEDS);
	while (at > 0 && l->feed[at - 1].layer > feed.layer) {
		l->feed[at] = l->feed[at - 1];
		at--;
	}
	l->feed[at] = feed;
	l->feeds++;
	l->below += feed.columns;
	return 0;
}

/* Adds the biases that enter node `node` to those of its layer. */
static int add_biases(const struct nir_making *m, struct neap__nir_layer *l, int node)
{
	const struct neap__nir_sum *sum = &m->sums->sum[node];

	for (int64_t i = 0; sum->bias && i < l->n; i++) {
		if (!l->bias && !(l->bias = calloc((size_t)l->n, sizeof *l->bias)))
			return neap__fail_errno(ENOMEM, "'%s'", m->sums->path);
		l->bias[i] += sum->bias[i];
	}
	const struct neap__nir_filter *conv = neap__nir_conv(l);
	for (int64_t i = 0; conv && l->bias && i < l->n; i++) {
		int64_t channel = l->n / conv->to.channels;
		if (l->bias[i] != l->bias[i / channel * channel])
			return refuse(m->sums, node,
				"follows a convolution, but its biases differ between units of a "
				"channel; neap has one per channel");
	}
	return 0;
}

/* Fills in what enters a layer, once all layers have their numbers. */
static int feed_layer(struct nir_making *m, struct neap__nir_layer *l)
{
	int node = l->node >= 0 ? l->node : m->order.output, late = delay_of(m, node);
	const struct neap__nir_sum *sum = &m->sums->sum[node];

	l->delay = late;
	/* What a CubaLI receives of itself enters its synapse, which is the layer before. */
	int is_cuba = l->node >= 0 && m->sums->graph->node[node].type == NEAP__NIR_CUBALI;
	for (int i = 0; i < sum->terms && !is_cuba; i++)
		if (sum->term[i].source == l->node)
			l->own = &sum->term[i];
	for (int i = 0; i < sum->terms; i++) {
		const struct neap__nir_term *t = &sum->term[i];
		const struct nir_place *from = &m->place[t->source];
		int own = t->source == l->node, is_input = t->source == m->order.input;
		int steps = steps_of(m, node, t), source = from->layer;
		NEAP_TRY(check_filter(m, l, t, own));
		NEAP_TRY(add_leaks(m, l, node, t));
		if (own && !is_cuba)
			continue;
		if (steps > 0 && is_input)
			source = from->repeat + steps - late;
		else if (steps > late)
			source = from->repeat + steps - late - 1;
		NEAP_TRY(add_feed(m, l,
			(struct neap__nir_feed){.layer = source,
				.term = t,
				.origin = is_input ? -1 : from->layer,
				.columns = m->sums->size[t->source]}));
	}
	if (l->feeds == 0 || (l->node >= 0 && l->feed[0].layer > l - m->chain->layer))
		return refuse(m->sums, node, "has no input except itself and nodes after it");
	return add_biases(m, l, node);
}

static int is_identity(const struct neap__nir_sum *sum)
{
	const struct neap__nir_term *t = sum->term;

	if (sum->terms != 1 || t->pool || t->conv || t->delay > 0)
		return 0;
	for (int64_t i = 0; t->weight && i < sum->n; i++)
		for (int64_t k = 0; k < t->columns; k++)
			if (sum->n != t->columns || t->weight[i * t->columns + k] != (i == k))
				return 0;
	for (int64_t i = 0; sum->bias && i < sum->n; i++)
		if (sum->bias[i] != 0)
			return 0;
	return 1;
}

/* 1: a node is the readout: an LI or a CubaLI that the Output shows, and no other node receives. */
static int is_readout(const struct nir_making *m, int node)
{
	const struct neap__nir_sums *s = m->sums;
	enum neap__nir_type type = s->graph->node[node].type;

	if ((type != NEAP__NIR_LI && type != NEAP__NIR_CUBALI) ||
		s->sum[m->order.output].terms != 1 ||
		s->sum[m->order.output].term[0].source != node ||
		!is_identity(&s->sum[m->order.output]))
		return 0;
	for (int64_t i = 0; i < s->size[node]; i++)
		if (value_of(&s->graph->node[node], "v_leak", i, 0) != 0)
			return 0;
	for (int i = 0; i < m->order.nodes; i++)
		for (int k = 0; k < s->sum[m->order.node[i]].terms; k++)
			if (s->sum[m->order.node[i]].term[k].source == node)
				return 0;
	return 1;
}

/* The layer of a CubaLI behind that of its synapse, one to one. */
static int follow_synapse(struct nir_making *m, int node, int is_last)
{
	struct neap__nir_layer *l = add_layer(m, node, NEAP__NIR_LI, m->sums->size[node]);

	l->is_readout = is_last;
	l->feeds = 1;
	l->below = l->n;
	l->feed[0] = (struct neap__nir_feed){
		.layer = m->chain->layers - 2, .origin = m->chain->layers - 2, .columns = l->n};
	if (l->n > REPEATED_MOST)
		return refuse(m->sums, node,
			"is a CubaLI of more than 4096 units, which neap does not support");
	return units(m->sums, l, m->dt, 0);
}

/* The readout of a graph that no LI ends: it leaks all at once, and so shows what enters. */
static int show_output(struct nir_making *m)
{
	int output = m->order.output;
	struct neap__nir_layer *l = add_layer(m, -1, NEAP__NIR_LI, m->sums->size[output]);

	l->is_readout = 1;
	l->tau[0] = m->dt;
	NEAP_TRY(make_rows(m->sums, l));
	for (int64_t i = 0; i < l->n; i++)
		l->gain[i] = 1;
	return feed_layer(m, l);
}

/* Numbers all layers: readouts last, layers that repeat a node behind it. */
static int number_layers(struct nir_making *m, int *readout)
{
	struct neap__nir_sums *s = m->sums;

	*readout = -1;
	NEAP_TRY(repeat(m, m->order.input));
	for (int i = 0; i < m->order.nodes; i++) {
		int node = m->order.node[i];
		enum neap__nir_type type = s->graph->node[node].type;
		if (is_readout(m, node)) {
			*readout = node;
			continue;
		}
		m->chain->layers += type == NEAP__NIR_CUBALI;
		m->place[node].layer = m->chain->layers++;
		NEAP_TRY(repeat(m, node));
	}
	return 0;
}

static int make_node(struct nir_making *m, int node, int layer, int is_last)
{
	enum neap__nir_type type = m->sums->graph->node[node].type;
	int is_cuba = type == NEAP__NIR_CUBALI, layers = m->chain->layers;
	int64_t n = m->sums->size[node];

	m->chain->layers = layer - is_cuba;
	struct neap__nir_layer *l = add_layer(m, node, is_cuba ? NEAP__NIR_LI : type, n);
	l->is_readout = is_last && !is_cuba;
	int rc = feed_layer(m, l);
	if (rc == 0)
		rc = units(m->sums, l, m->dt, is_cuba);
	if (rc == 0 && is_cuba)
		rc = follow_synapse(m, node, is_last);
	m->chain->layers = layers > m->chain->layers ? layers : m->chain->layers;
	return rc;
}

static int find_layers(struct nir_making *m)
{
	struct neap__nir_sums *s = m->sums;
	int readout;

	NEAP_TRY(neap__nir_order_make(&m->order, s));
	m->place = calloc((size_t)s->graph->nodes + 1, sizeof *m->place);
	if (!m->place)
		return neap__fail_errno(ENOMEM, "'%s'", s->path);
	for (int i = 0; i < s->graph->nodes; i++)
		m->place[i] = (struct nir_place){-1, -1, 0};
	NEAP_TRY(count_repeats(m));
	m->chain->inputs = s->size[m->order.input];
	m->chain->layer =
		calloc((size_t)(2 * m->order.nodes + m->room) + 2, sizeof *m->chain->layer);
	if (!m->chain->layer)
		return neap__fail_errno(ENOMEM, "'%s'", s->path);
	NEAP_TRY(number_layers(m, &readout));
	for (int i = 0; i < m->order.nodes; i++) {
		int node = m->order.node[i];
		if (node != readout)
			NEAP_TRY(make_node(m, node, m->place[node].layer, 0));
	}
	if (readout < 0)
		return show_output(m);
	int is_cuba = s->graph->node[readout].type == NEAP__NIR_CUBALI;
	return make_node(m, readout, m->chain->layers + is_cuba, 1);
}

int neap__nir_chain_make(struct neap__nir_chain *chain, struct neap__nir_sums *s, double dt)
{
	struct nir_making m = {.chain = chain, .sums = s, .dt = dt};

	*chain = (struct neap__nir_chain){.is_single = 1};
	for (int i = 0; i < s->graph->nodes; i++) {
		const struct neap__nir_array *w = neap__nir_param(&s->graph->node[i], "weight");
		chain->is_single &= !w->data || w->is_single;
	}
	int rc = find_layers(&m);
	neap__nir_order_free(&m.order);
	free(m.place);
	return rc;
}

void neap__nir_chain_free(struct neap__nir_chain *chain)
{
	for (int i = 0; i < chain->layers; i++) {
		free(chain->layer[i].gain);
		free(chain->layer[i].bias);
		free(chain->layer[i].decay[0]);
		free(chain->layer[i].decay[1]);
	}
	free(chain->layer);
	*chain = (struct neap__nir_chain){0};
}
