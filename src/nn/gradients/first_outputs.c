/* SPDX-License-Identifier: Apache-2.0 */
/* first_outputs.c: recurrent gradients of the outputs before the first step (first_outputs.h). */
#include "nn/gradients/first_outputs.h"
#include "nn/gradients/backward.h"
#include "nn/gradients/weight_gradients.h"

void neap__first_outputs_add(
	struct neap_net *net, struct neap__group *group, const unsigned char *adjoint)
{
	const struct neap__layer *layer = &net->layers[net->nlayers - 2];
	struct neap__sample_rows *samples = group->sample_rows;
	const real *outputs = net->ports.first_outputs;

	if (layer->recurrent < 0 || net->tensors[layer->recurrent].is_frozen)
		return;
	for (int s = 0; s < group->size; s++) {
		const unsigned char *own =
			adjoint + group->adjoint_at + (size_t)s * net->sample_adjoint;
		samples[s] = (struct neap__sample_rows){.id = net->identity,
			.v = outputs + (size_t)(group->first + s) * layer->n,
			.count = layer->n,
			.in = (const real *)(const void *)(own + layer->adjoint_at) +
			      neap__column_of(layer, layer->recurrent)};
	}
	neap__weights_add_now(net, group, group->size, layer->recurrent, 0);
	if (group->first + group->size == group->grads->first + group->grads->size)
		neap__fold_tensor(net, group->grads, layer->recurrent);
}
