/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cell_check.c: the gradient check of a cell file when it is loaded (cell_derivative.h). The loss
 * is a random combination of the states after the step and the spikes, which are a sigmoid of the
 * spike condition. A detached reset uses spikes that do not change with the inputs.
 */
#include "nn/cellfile/cell_derivative.h"
#include "base/fail.h"
#include "base/philox.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	POINTS = 24,
	INPUTS = NEAP__CELL_STATES + 2, /* states, `in`, and the spikes of the step before */
	IN = NEAP__CELL_STATES,
	LAST
};

/* Relative; rounding of central differences leaves 1e-8, a wrong derivative is wrong by much more.
 */
static const double tolerance = 1e-5;

struct point {
	const struct neap__cell_source *source;
	double input[INPUTS], weight[NEAP__CELL_STATES], ds, reset_last, reset_now;
	int is_frozen; /* reset_now is that of the point itself */
	double value[NEAP__CELL_NODES];
};

static double evaluate_node(struct point *p, const struct neap__cell_node *node)
{
	double x = p->value[node->a] - p->source->threshold, s = 1 / (1 + exp(-x));

	switch (node->op) {
	case NEAP__CELL_CONST:
		return node->value;
	case NEAP__CELL_STATE:
		return p->input[node->a];
	case NEAP__CELL_IN:
		return p->input[IN];
	case NEAP__CELL_LAST:
		return p->input[LAST];
	case NEAP__CELL_RESET_LAST:
		return p->reset_last;
	case NEAP__CELL_DS:
		return p->ds;
	case NEAP__CELL_DSTATE:
		return p->weight[node->a];
	case NEAP__CELL_NOW:
		return s;
	case NEAP__CELL_RESET_NOW:
		if (!p->is_frozen)
			p->reset_now = s;
		return p->reset_now;
	case NEAP__CELL_HEIGHT:
		x = p->value[p->source->condition] - p->source->threshold;
		s = 1 / (1 + exp(-x));
		return s * (1 - s);
	default:
		return neap__cell_value(
			node->op, p->value[node->a], p->value[node->b], p->value[node->c]);
	}
}

static void evaluate(struct point *p)
{
	const struct neap__cell_graph *g = &p->source->graph;

	for (int i = 0; i < g->count; i++)
		p->value[i] = evaluate_node(p, &g->node[i]);
}

static double loss(struct point *p)
{
	double x = p->value[p->source->condition] - p->source->threshold, sum;

	sum = p->ds / (1 + exp(-x));
	for (int k = 0; k < p->source->nstates; k++)
		sum += p->weight[k] * p->value[p->source->state[k].next];
	return sum;
}

/* A random point: half of them are close to the states at step 0. */
static void place(struct point *p, int index)
{
	uint64_t at = (uint64_t)index * 64;
	double spread = index % 2 ? 1 : 0.1;

	for (int k = 0; k < INPUTS; k++) {
		double size =
			k < p->source->nstates ? 1 + 0.2 * fabs(p->source->state[k].start) : 1;
		p->input[k] = spread * size *
			      neap__random_normal(1, NEAP__STREAM_TEST, 0, at + (uint64_t)k);
	}
	p->input[LAST] = p->reset_last =
		neap__random_uniform(1, NEAP__STREAM_TEST, 1, (uint64_t)index);
	for (int k = 0; k < NEAP__CELL_STATES; k++)
		p->weight[k] = neap__random_normal(1, NEAP__STREAM_TEST, 2, at + (uint64_t)k);
	p->ds = neap__random_normal(1, NEAP__STREAM_TEST, 3, (uint64_t)index);
}

/* The relative error of a gradient, the best over four lengths of difference; NAN: not finite. */
static double error_of(struct point *p, int input, double gradient, double scale)
{
	static const double lengths[] = {1e-5, 1e-4, 1e-6, 1e-7};
	double x = p->input[input], error = NAN;

	for (int i = 0; i < 4; i++) {
		double h = lengths[i] * fmax(1, fabs(x)), up;
		p->input[input] = x + h;
		evaluate(p);
		up = loss(p);
		p->input[input] = x - h;
		evaluate(p);
		double numeric = (up - loss(p)) / (2 * h);
		double size = fmax(fmax(fabs(numeric), fabs(gradient)), 1e-6 * scale);
		double e = size > 0 ? fabs(numeric - gradient) / size : 0;
		/* Rounding of the loss limits what a difference can show. */
		double noise = 4e-16 * fabs(up) / h;
		e = fabs(numeric - gradient) < 8 * noise ? 0 : e;
		error = isnan(error) || e < error ? e : error;
	}
	p->input[input] = x;
	return error;
}

static int refuse(const struct point *p, const char *where, int input, double gradient)
{
	const struct neap__cell_source *s = p->source;
	const char *name = input == IN ? "in" : input == LAST ? "spike" : s->state[input].name;
	double value = input < IN ? p->input[input] + s->state[input].start : p->input[input];

	return neap__fail(NEAP_EUSAGE,
		"%.200s: the derivative of cell '%s' with respect to '%s' is %.6g at %s = %g and "
		"in = %g, which finite differences do not confirm. Replace expressions that jump "
		"or "
		"lose precision near this point",
		where, s->name, name, gradient, name, value, p->input[IN]);
}

static int check_point(
	struct point *p, const struct neap__cell_derivative *d, const char *where, int *finite)
{
	int nodes[INPUTS], nstates = p->source->nstates;
	double gradient[INPUTS], scale = 0;

	p->is_frozen = 0;
	evaluate(p);
	p->is_frozen = 1;
	memcpy(nodes, d->state, sizeof d->state);
	nodes[IN] = d->in;
	nodes[LAST] = d->last;
	for (int k = 0; k < INPUTS; k++) {
		gradient[k] = k < nstates || k >= IN ? p->value[nodes[k]] : 0;
		scale = fmax(scale, fabs(gradient[k]));
		if (!isfinite(gradient[k]) || !isfinite(loss(p)))
			return 0; /* too far from where the cell works */
	}
	for (int k = 0; k < INPUTS; k++) {
		if (k >= nstates && k < IN)
			continue;
		double error = error_of(p, k, gradient[k], scale);
		if (error > tolerance)
			return refuse(p, where, k, gradient[k]);
		*finite += !isnan(error);
	}
	return 0;
}

int neap__cell_derivative_check(const struct neap__cell_source *source,
	const struct neap__cell_derivative *derivative, const char *where)
{
	struct point *p = calloc(1, sizeof *p);
	int rc = 0, finite = 0;

	if (!p)
		return neap__fail_errno(ENOMEM, "gradient check of cell '%s'", source->name);
	p->source = source;
	for (int i = 0; i < POINTS && rc == 0; i++) {
		place(p, i);
		rc = check_point(p, derivative, where, &finite);
	}
	free(p);
	if (rc == 0 && !finite)
		rc = neap__fail(NEAP_EUSAGE,
			"%.200s: the step of cell '%s' has no finite value near the states at step "
			"0. Check divisions, logarithms and roots",
			where, source->name);
	return rc;
}
