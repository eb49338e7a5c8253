/* SPDX-License-Identifier: Apache-2.0 */
/* port_rows.c: rows of the caller's arrays (port_rows.h). */
#include "nn/core/port_rows.h"
#include "nn/core/products.h"

#include <string.h>

void neap__port_outputs(const struct neap__at *at)
{
	const struct neap__list *now = at->now;
	int n = at->layer->n;
	real *to = (real *)at->net->ports.outputs + neap__port_at(at->net, at, n);
	const real *value = now->value;

	memset(to, 0, (size_t)n * sizeof *to);
	for (int k = 0; k < now->count; k++)
		to[now->id[k]] = value ? value[k] : 1;
}

void neap__port_input_grads(struct neap_net *net, struct neap__group *group, int alive)
{
	const struct neap__layer *layer = net->layers;
	struct neap__sample_rows *samples = group->sample_rows;
	int inputs = net->options.inputs;

	for (int i = 0; i < alive; i++) {
		const struct neap__at *at = &group->at[i];
		real *out = (real *)net->ports.input_grads + neap__port_at(net, at, inputs);
		memset(out, 0, (size_t)inputs * sizeof *out);
		samples[i] = (struct neap__sample_rows){.id = net->port_inputs,
			.count = inputs,
			.out = out,
			.in = (const real *)(const void *)(at->adjoint + layer->adjoint_at)};
	}
	neap__products_dot(net, samples, alive, layer->weight, 0);
}

/*
 * dh = V'd(own) + the extra row; what the cell carries has its gradient in rows of its adjoint.
 */
void neap__port_state_grads(
	struct neap_net *net, struct neap__group *group, const unsigned char *adjoint, void *rows)
{
	const struct neap__layer *layer = &net->layers[net->nlayers - 2];
	const struct neap__cell_code *code = neap__code(layer);
	struct neap__sample_rows *samples = group->sample_rows;
	size_t n = (size_t)layer->n, all = (size_t)net->batch->size * n;
	size_t extra_at = code->extra_at ? code->extra_at(layer) : 0;

	for (int s = 0; s < group->size; s++) {
		const unsigned char *own =
			adjoint + group->adjoint_at + (size_t)s * net->sample_adjoint;
		const real *din = (const real *)(const void *)(own + layer->adjoint_at);
		real *to = (real *)rows + (size_t)(group->first + s) * n;
		for (int r = 0; r < code->rows.state; r++, to += all)
			memcpy(to, din + (code->carried + r) * n, n * sizeof *to);
		memset(to, 0, n * sizeof *to);
		if (extra_at)
			memcpy(to, own + extra_at, n * sizeof *to);
		samples[s] = (struct neap__sample_rows){.id = net->identity,
			.count = layer->n,
			.out = to,
			.in = din + layer->widths.own_at};
	}
	neap__products_dot(net, samples, group->size, layer->recurrent, 0);
}
