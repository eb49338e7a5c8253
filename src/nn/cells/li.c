/* SPDX-License-Identifier: Apache-2.0 */
/*
 * li.c: the leaky readout, and how its outputs over time become an answer:
 *     O = kappa O_{-1} + (1 - kappa) in, in = W_o S + b_o
 *     dO = e + kappa dO_{+1}; d(in) = (1 - kappa) dO
 * e_t is the gradient of the loss by O_t, without the leak. With p the softmax of the answer, y the
 * label as a one-hot vector, T the steps of the sample, and cross-entropy as the loss, e_t is
 *     mean (p - y)/T; sum p - y; last p - y at T - 1; max p - y at the step of the largest output;
 *     step (p_t - y)/T; softmax p_t (g - <g, p_t>), g = softmax(sum of p_t) - y
 * Where steps have targets of their own, y is that of step t, T counts the steps that have one, and
 * e_t of others is 0. Sums over time are kept in double.
 *
 * State: O, then an aggregate over time, by the kind of readout. Adjoint: d(in), dO, then
 * g = d loss / d answer over the batch, then for `max` the step of each class.
 *
 * Where kappa is learned (leak.h) its gradient is the sum of dO kappa' (O_{-1} - in). Every class
 * has an error in most steps, so that the factor of dO goes on tape, behind the outputs.
 */
#include "nn/cells/leak.h"
#include "nn/core/forward.h"

#include <float.h>
#include <math.h>
#include <string.h>

struct max {
	double value;
	int64_t step;
};

static size_t own_at(const struct neap__layer *layer)
{
	size_t bytes = (size_t)layer->n * sizeof(real);
	return layer->state_at + ((bytes + 7) & ~(size_t)7);
}

static void *own(unsigned char *state, const struct neap__layer *layer)
{
	return state + own_at(layer);
}

static int64_t *steps_of(unsigned char *adjoint, const struct neap__layer *layer)
{
	size_t bytes = 3 * (size_t)layer->n * sizeof(real);
	return (int64_t *)(void *)(adjoint + layer->adjoint_at + ((bytes + 7) & ~(size_t)7));
}

static void softmax(double *p, const real *o, int n)
{
	double top = (double)o[0], sum = 0;

	for (int c = 1; c < n; c++)
		top = (double)o[c] > top ? (double)o[c] : top;
	for (int c = 0; c < n; c++)
		sum += p[c] = exp((double)o[c] - top);
	for (int c = 0; c < n; c++)
		p[c] /= sum;
}

static void keep_none(struct neap__at *at, const real *o, void *to)
{
	(void)at, (void)o, (void)to;
}

static void keep_sum(struct neap__at *at, const real *o, void *to)
{
	double *sum = to;
	for (int c = 0; c < at->layer->n; c++)
		sum[c] += (double)o[c];
}

static void keep_max(struct neap__at *at, const real *o, void *to)
{
	struct max *max = to;
	for (int c = 0; c < at->layer->n; c++)
		if (at->t == 0 || (double)o[c] > max[c].value)
			max[c] = (struct max){(double)o[c], at->t};
}

/* The loss of an answer, as it is told, and its gradient in dz. */
static double loss_of(
	const struct neap_net *net, const double *z, int label, const float *target, double *dz)
{
	const struct neap_loss *loss = net->objective.loss;
	const double *deviation = net->objective.deviation;
	int classes = net->options.classes;
	double value = loss->value(classes, z, label, target, dz);

	return target && deviation && loss->in_units ? loss->in_units(classes, z, target, deviation)
						     : value;
}

/*
 * The loss of a step by its outputs o, and its gradient in at->group->dz; 0 where the step is
 * masked. The numbers of the outputs go to at->group->z.
 */
static int step_loss(struct neap__at *at, const real *o, int *label, double *value)
{
	const struct neap_net *net = at->net;
	const struct neap_sequence *here = &net->events[at->sample];
	size_t step = (size_t)(at->t - net->events_from), n = (size_t)at->layer->n;
	const float *target = at->sequence->target;

	*label = at->sequence->label;
	if (net->batch->target == NEAP_TARGET_LABELS)
		*label = here->labels[step];
	if (net->batch->target == NEAP_TARGET_SERIES) {
		*label = -1;
		target = here->series + step * n;
	}
	if (net->batch->target == NEAP_TARGET_LABELS ? *label < 0 : target && isnan(target[0]))
		return 0;
	for (size_t c = 0; c < n; c++)
		at->group->z[c] = (double)o[c];
	*value = loss_of(net, at->group->z, *label, target, at->group->dz);
	return 1;
}

static void keep_step(struct neap__at *at, const real *o, void *to)
{
	struct neap_net *net = at->net;
	const double *z = at->group->z;
	int label, best = 0;
	double value;

	keep_sum(at, o, to);
	if (!at->first || !net->objective.loss || !step_loss(at, o, &label, &value))
		return;
	net->step_loss[at->sample] += value;
	for (int c = 1; c < at->layer->n; c++)
		best = z[c] > z[best] ? c : best;
	net->step_right[at->sample] += best == label;
	if (net->objective.confusion && net->batch->target == NEAP_TARGET_LABELS)
		__atomic_fetch_add(&net->objective.confusion[(int64_t)label * at->layer->n + best],
			1, __ATOMIC_RELAXED);
}

static void keep_softmax(struct neap__at *at, const real *o, void *to)
{
	double *sum = to, *p = at->group->z;

	softmax(p, o, at->layer->n);
	for (int c = 0; c < at->layer->n; c++)
		sum[c] += p[c];
}

/* Errors: dO += d loss / d O_t. */
static void error_always(
	struct neap__at *at, const real *g, const real *o, const int64_t *steps, real *dout)
{
	(void)o, (void)steps;
	for (int c = 0; c < at->layer->n; c++)
		dout[c] += g[c];
}

static void error_last(
	struct neap__at *at, const real *g, const real *o, const int64_t *steps, real *dout)
{
	if (at->t == at->sequence->length - 1)
		error_always(at, g, o, steps, dout);
}

static void error_max(
	struct neap__at *at, const real *g, const real *o, const int64_t *steps, real *dout)
{
	(void)o;
	for (int c = 0; c < at->layer->n; c++)
		if (steps[c] == at->t)
			dout[c] += g[c];
}

/* Steps of a sample that have a loss, in the readout `step`. */
static double counted(const struct neap_net *net, const struct neap_sequence *sequence)
{
	int of_steps = net->batch->target == NEAP_TARGET_LABELS ||
		       net->batch->target == NEAP_TARGET_SERIES;
	int64_t steps = of_steps ? sequence->counted : sequence->length;
	return steps > 0 ? (double)steps : 1;
}

static void error_step(
	struct neap__at *at, const real *g, const real *o, const int64_t *steps, real *dout)
{
	const double *dz = at->group->dz;
	double weight = 1.0 / (counted(at->net, at->sequence) * neap__whole_batch(at->net)), value;
	int label;

	(void)g, (void)steps;
	if (!at->net->objective.loss || !step_loss(at, o, &label, &value))
		return;
	for (int c = 0; c < at->layer->n; c++)
		dout[c] += (real)(dz[c] * weight);
}

static void error_softmax(
	struct neap__at *at, const real *g, const real *o, const int64_t *steps, real *dout)
{
	double *p = at->group->z, mean = 0;

	(void)steps;
	softmax(p, o, at->layer->n);
	for (int c = 0; c < at->layer->n; c++)
		mean += (double)g[c] * p[c];
	for (int c = 0; c < at->layer->n; c++)
		dout[c] += (real)(p[c] * ((double)g[c] - mean));
}

/* By enum neap_readout. */
static const struct {
	size_t state; /* bytes a class, beside the outputs */
	int outputs;  /* go on tape */
	void (*keep)(struct neap__at *at, const real *o, void *to);
	void (*error)(struct neap__at *at, const real *g, const real *o, const int64_t *steps,
		real *dout);
} readouts[] = {
	[NEAP_READ_MEAN] = {sizeof(double), 0, keep_sum, error_always},
	[NEAP_READ_SUM] = {sizeof(double), 0, keep_sum, error_always},
	[NEAP_READ_LAST] = {0, 0, keep_none, error_last},
	[NEAP_READ_MAX] = {sizeof(struct max), 0, keep_max, error_max},
	[NEAP_READ_STEP] = {sizeof(double), 1, keep_step, error_step},
	[NEAP_READ_SOFTMAX] = {sizeof(double), 1, keep_softmax, error_softmax},
};

static size_t state_bytes(const struct neap_net *net, const struct neap__layer *layer)
{
	size_t bytes = ((size_t)layer->n * sizeof(real) + 7) & ~(size_t)7;
	return bytes + (size_t)layer->n * readouts[net->options.readout].state;
}

static size_t adjoint_bytes(const struct neap_net *net, const struct neap__layer *layer)
{
	size_t bytes = (3 * (size_t)layer->n * sizeof(real) + 7) & ~(size_t)7;
	int steps = net->options.readout == NEAP_READ_MAX;
	return bytes + (steps ? (size_t)layer->n * sizeof(int64_t) : 0);
}

static size_t tape_max(const struct neap_net *net, const struct neap__layer *layer)
{
	int rows = readouts[net->options.readout].outputs + neap__learned(layer);
	return (size_t)rows * (size_t)layer->n * sizeof(real);
}

static size_t finish(struct neap__at *at, void *sums, unsigned char *tape)
{
	const struct neap__layer *layer = at->layer;
	const struct neap__leak *leak = &layer->leaks[NEAP__MEMBRANE_LEAK];
	enum neap_readout kind = at->net->options.readout;
	size_t bytes = readouts[kind].outputs ? (size_t)layer->n * sizeof(real) : 0;
	const real *kappa = leak->decay, *rest = leak->rest, *slope = leak->slope, *in = sums;
	real *o = (real *)(void *)(at->state + layer->state_at);

	if (tape && neap__learned(layer)) {
		real *factor = (real *)(void *)(tape + bytes);
		for (int c = 0; c < layer->n; c++)
			factor[c] = slope[c] * (o[c] - in[c]);
	}
	for (int c = 0; c < layer->n; c++)
		o[c] = kappa[c] * o[c] + rest[c] * in[c];
	readouts[kind].keep(at, o, own(at->state, layer));
	if (!tape)
		return 0;
	memcpy(tape, o, bytes);
	return tape_max(at->net, layer);
}

static size_t view_tape(struct neap__at *at, const unsigned char *tape, struct neap__view *view)
{
	size_t bytes = tape_max(at->net, at->layer);

	view->outputs = tape;
	view->active = at->layer->n;
	view->active_id = at->net->identity;
	view->trace[NEAP__MEMBRANE_LEAK] = tape + bytes - (size_t)at->layer->n * sizeof(real);
	return bytes;
}

/* dO = e + kappa dO_{+1}; d(in) = (1 - kappa) dO */
static void backward(struct neap__at *at, const struct neap__view *view, void *ds)
{
	const struct neap__layer *layer = at->layer;
	unsigned char *adjoint = at->adjoint;
	int n = layer->n;
	real *din = (real *)(void *)(adjoint + layer->adjoint_at), *dout = din + n, *g = dout + n;
	const real *rest = layer->leaks[NEAP__MEMBRANE_LEAK].rest;

	(void)ds;
	neap__leak_scale(at, NEAP__MEMBRANE_LEAK, dout);
	readouts[at->net->options.readout].error(
		at, g, view->outputs, steps_of(adjoint, layer), dout);
	for (int c = 0; c < n; c++)
		din[c] = rest[c] * dout[c];
	if (neap__learned(layer))
		neap__leak_add(at, NEAP__MEMBRANE_LEAK, view, dout);
}

static void answer_of(
	const struct neap_net *net, int64_t length, const unsigned char *state, double *z)
{
	const struct neap__layer *layer = &net->layers[net->nlayers - 1];
	const real *o = (const real *)(const void *)(state + layer->state_at);
	const void *aggregate = state + own_at(layer);
	double steps = length > 0 ? (double)length : 1;

	for (int c = 0; c < layer->n; c++)
		switch (net->options.readout) {
		case NEAP_READ_LAST:
			z[c] = (double)o[c];
			break;
		case NEAP_READ_MAX:
			z[c] = ((const struct max *)aggregate)[c].value;
			break;
		case NEAP_READ_MEAN:
		case NEAP_READ_STEP:
			z[c] = ((const double *)aggregate)[c] / steps;
			break;
		default:
			z[c] = ((const double *)aggregate)[c];
		}
}

static void restart(const struct neap_net *net, unsigned char *state)
{
	const struct neap__layer *layer = &net->layers[net->nlayers - 1];
	enum neap_readout kind = net->options.readout;
	void *aggregate = own(state, layer);

	memset(aggregate, 0, (size_t)layer->n * readouts[kind].state);
	for (int c = 0; c < layer->n && kind == NEAP_READ_MAX; c++)
		((struct max *)aggregate)[c].value = -INFINITY;
}

static double turn(struct neap_net *net, struct neap__group *group, int sample,
	const unsigned char *state_, unsigned char *adjoint, double *answer)
{
	const struct neap__layer *layer = &net->layers[net->nlayers - 1];
	const struct neap_sequence *sequence = &net->batch->sequences[sample];
	const struct neap_loss *loss = net->objective.loss;
	enum neap_readout kind = net->options.readout;
	unsigned char *state = (unsigned char *)(uintptr_t)state_;
	double steps = sequence->length > 0 ? (double)sequence->length : 1, value = 0;
	double weight = 1.0 / neap__whole_batch(net);

	answer_of(net, sequence->length, state, answer);
	if (adjoint)
		memset(adjoint, 0, net->sample_adjoint);
	if (!loss)
		return 0;
	if (kind == NEAP_READ_STEP)
		value = net->step_loss[sample] / counted(net, sequence);
	else
		value = loss_of(net, answer, sequence->label, sequence->target, group->dz);
	if (kind == NEAP_READ_MEAN)
		weight /= steps;
	if (!adjoint)
		return value;
	real *g = (real *)(void *)(adjoint + layer->adjoint_at) + 2 * (size_t)layer->n;
	for (int c = 0; c < layer->n && kind != NEAP_READ_STEP; c++)
		g[c] = (real)(group->dz[c] * weight);
	if (kind == NEAP_READ_MAX)
		for (int c = 0; c < layer->n; c++)
			steps_of(adjoint, layer)[c] =
				((const struct max *)own(state, layer))[c].step;
	return value;
}

const struct neap__cell_code NEAP_R(neap__li) = {
	.state_bytes = state_bytes,
	.adjoint_bytes = adjoint_bytes,
	.tape_max = tape_max,
	.shown = {{"output", 0}},
	.start = neap__start_bias,
	.finish = finish,
	.view = view_tape,
	.backward = backward,
	.turn = turn,
	.answer = answer_of,
	.restart = restart,
};
