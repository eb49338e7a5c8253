/* SPDX-License-Identifier: Apache-2.0 */
/* leak.c: decays of a batch, the passes over units that use them, and traces (leak.h). */
#include "nn/cells/leak.h"

#include <math.h>

/* The largest number below 1: a decay that rounds to 1 would never forget. */
static real below_one(void)
{
	return sizeof(real) == sizeof(double) ? (real)(1 - 0x1p-53) : (real)(1 - 0x1p-24);
}

/* As begin, of a parameter that is no decay. */
static void begin_other(const struct neap_net *net, const struct neap__layer *layer,
	const struct neap__leak *leak, const real *p)
{
	real *value = leak->decay, *rest = leak->rest, *slope = leak->slope;
	double most = neap__most_turn(), dt = net->options.dt;
	int is_plain = leak->kind == NEAP__LEAK_PLAIN, turns = leak->kind == NEAP__LEAK_TURN;

	for (int i = 0; i < layer->n; i++) {
		double x = is_plain ? (p ? (double)p[i] : leak->start)
				    : dt * (p ? exp((double)p[i]) : leak->start);
		int beyond = turns && x > most;
		if (beyond)
			x = most;
		value[i] = (real)x;
		rest[i] = turns ? (real)sqrt(1 - x * x) : 0;
		slope[i] = !p || beyond ? 0 : is_plain ? 1 : (real)x;
	}
}

void neap__leak_begin(struct neap_net *net, const struct neap__layer *layer)
{
	for (int l = 0; l < NEAP__LEAKS_MOST; l++) {
		const struct neap__leak *leak = &layer->leaks[l];
		real *decay = leak->decay, *rest = leak->rest, *slope = leak->slope;
		if (!decay)
			continue;
		const real *p = leak->tensor < 0 ? NULL : net->tensors[leak->tensor].data;
		if (leak->kind != NEAP__LEAK_DECAY) {
			begin_other(net, layer, leak, p);
			continue;
		}
		for (int i = 0; i < layer->n; i++) {
			double d = p ? 1 / (1 + exp(-(double)p[i])) : leak->start;
			double r = p ? 1 / (1 + exp((double)p[i])) : 1 - leak->start;
			decay[i] = p && d > (double)below_one() ? below_one() : (real)d;
			rest[i] = (real)r;
			slope[i] = p ? (real)(d * r) : 0;
		}
	}
}

void neap__leak_decay(const struct neap__at *at, int leak, real *u, const real *b)
{
	const struct neap__leak *own = &at->layer->leaks[leak];
	const real *decay = own->decay;

	if (own->tensor < 0) {
		at->net->kernels->decay(u, (real)own->start, b, at->layer->n);
		return;
	}
	for (int i = 0; i < at->layer->n; i++)
		u[i] = decay[i] * u[i] + b[i];
}

void neap__leak_scale(const struct neap__at *at, int leak, real *x)
{
	const struct neap__leak *own = &at->layer->leaks[leak];
	const real *decay = own->decay;

	if (own->tensor < 0) {
		at->net->kernels->scale(x, (real)own->start, at->layer->n);
		return;
	}
	for (int i = 0; i < at->layer->n; i++)
		x[i] *= decay[i];
}

void neap__leak_trace(const struct neap__at *at, int leak, real *trace, const real *x)
{
	const struct neap__leak *own = &at->layer->leaks[leak];
	const real *decay = own->decay, *slope = own->slope;

	for (int i = 0; i < at->layer->n; i++)
		trace[i] = decay[i] * trace[i] + slope[i] * x[i];
}

void neap__leak_add(
	const struct neap__at *at, int leak, const struct neap__view *view, const real *e)
{
	int tensor = at->layer->leaks[leak].tensor;
	real *sum = at->group->grads->part[tensor];
	const real *trace = view->trace[leak];
	const uint16_t *id = view->active_id;

	if (at->net->tensors[tensor].is_frozen)
		return;
	at->group->grads->dirty[at->net->tensors[tensor].row_offset] = 1;
	for (int k = 0; k < view->active; k++)
		sum[id[k]] += e[k] * trace[view->whole_trace ? id[k] : k];
}
