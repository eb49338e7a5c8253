/* SPDX-License-Identifier: Apache-2.0 */
/* readout_steps.c: runs the CPU's readout on outputs of a device (readout_steps.h). */
#include "device/readout_steps.h"
#include "nn/core/cell.h"
#include "base/subnormals.h"

#include <string.h>

/* Calls `visit` for each sample and step of [t0, t1) that exists, and its row of [steps][samples].
 */
static void visit_steps(const struct neap_net *net, int t0, int t1, struct neap__at *at,
	void (*visit)(struct neap__at *at, size_t row, void *arg), void *arg)
{
	unsigned mode = neap__subnormals_off(); /* as in the threads of the CPU's net */

	for (int t = t0; t < t1; t++)
		for (int g = 0; g < net->ngroups; g++)
			for (int s = 0; s < net->groups[g].size; s++) {
				at->group = &net->groups[g];
				at->slot = s;
				at->sample = net->groups[g].first + s;
				at->sequence = &net->batch->sequences[at->sample];
				at->t = t;
				size_t row = (size_t)(t - t0) * (size_t)net->batch->size +
					     (size_t)at->sample;
				if (t < at->sequence->length)
					visit(at, row, arg);
			}
	neap__subnormals_restore(mode);
}

struct keeping {
	const struct neap__cell_code *code;
	const float *outputs;
	unsigned char *state;
};

static void keep_step(struct neap__at *at, size_t row, void *arg)
{
	const struct keeping *k = arg;
	size_t n = (size_t)at->layer->n;
	float *decay = at->layer->leaks[NEAP__MEMBRANE_LEAK].decay;
	float *rest = at->layer->leaks[NEAP__MEMBRANE_LEAK].rest;
	const float *outputs = k->outputs + row * n;

	at->state = k->state + (size_t)at->sample * at->net->sample_state;
	at->sums = (void *)(uintptr_t)outputs;
	for (size_t c = 0; c < n; c++) {
		decay[c] = 0; /* what arrives is the output */
		rest[c] = 1;
	}
	k->code->finish(at, at->sums, NULL);
	memcpy(at->state + at->layer->state_at, outputs, n * sizeof *outputs);
}

void neap__device_keep_outputs(const struct neap__device_net *device, const float *outputs, int t0,
	int t1, int first, unsigned char *state)
{
	const struct neap_net *net = device->net;
	struct neap__layer layer = net->layers[net->nlayers - 1];
	struct neap__leak *leak = &layer.leaks[NEAP__MEMBRANE_LEAK];
	struct keeping k = {neap__layer_code(net, &layer), outputs, state};
	struct neap__at at = {
		.net = (struct neap_net *)(uintptr_t)net, .layer = &layer, .first = first};

	leak->decay = net->groups[0].scratch[0];
	leak->rest = net->groups[0].scratch[1];
	visit_steps(net, t0, t1, &at, keep_step, &k);
}

struct erring {
	const struct neap__cell_code *code;
	const float *outputs;
	const unsigned char *adjoint;
	size_t adjoint_at;
	float *errors, *work;
};

/* dO = -0 before the step: what the loss adds to it is the error. */
static void err_step(struct neap__at *at, size_t row, void *arg)
{
	const struct erring *e = arg;
	size_t n = (size_t)at->layer->n, of_sample = (size_t)at->sample * at->net->sample_adjoint;
	struct neap__view view = {.outputs = e->outputs + row * n};
	float *output = e->work + n;

	for (size_t c = 0; c < n; c++)
		output[c] = -0.0f;
	memcpy(e->work + 2 * n, e->adjoint + of_sample + e->adjoint_at + 2 * n * sizeof *output,
		n * sizeof *output);
	at->adjoint = (unsigned char *)e->work;
	e->code->backward(at, &view, NULL);
	memcpy(e->errors + row * n, output, n * sizeof *output);
}

void neap__device_errors(const struct neap__device_net *device, const float *outputs, int t0,
	int t1, const unsigned char *adjoint, float *errors, float *work)
{
	const struct neap_net *net = device->net;
	struct neap__layer layer = net->layers[net->nlayers - 1];
	struct erring e = {
		neap__layer_code(net, &layer), outputs, adjoint, layer.adjoint_at, errors, work};
	struct neap__at at = {.net = (struct neap_net *)(uintptr_t)net, .layer = &layer};

	layer.adjoint_at = 0; /* work is the adjoint of the readout alone */
	visit_steps(net, t0, t1, &at, err_step, &e);
}
