/* SPDX-License-Identifier: Apache-2.0 */
/* port_steps.c: arrays of a caller on a device (port_steps.h). */
#include "device/port_steps.h"
#include "base/fail.h"

/* Numbers of a step of all samples, of which a sample has `width`. */
static size_t step_of(const struct neap__device_net *net, int width)
{
	return (size_t)net->batch.samples * (size_t)width;
}

/* Numbers of d(in) of a hidden layer. */
static int width_of(const struct neap__device_net *net, int l)
{
	return net->dense ? net->dense[l].sums : net->lif[l].units;
}

int neap__device_port_outputs(const struct neap__device_net *net,
	const struct neap__device_launcher *on, const struct neap__device_room *room, int t0,
	int t1)
{
	const struct neap_ports *ports = &net->net->ports;
	int l = net->layers - 1, units = neap__device_units(net, l), samples = net->batch.samples;

	if (!ports->outputs)
		return 0;
	float *to = (float *)ports->outputs + (size_t)(t0 - ports->first) * step_of(net, units);
	if (net->dense) {
		struct copy_rows_arguments a = {.samples = (t1 - t0) * samples,
			.words = units,
			.from_row = units,
			.to_row = units,
			.from = (const u32 *)(const void *)(room->dense_outputs[l] +
							    step_of(net, units)),
			.to = (u32 *)(void *)to};
		return neap__launch_copy_rows(on, &a);
	}
	struct expand_spikes_arguments a = {.rows = (t1 - t0) * samples,
		.units = units,
		.spikes = room->spikes[l] + (size_t)samples * neap__device_words(units),
		.outputs = to};
	return neap__launch_expand_spikes(on, &a);
}

const float *neap__device_port_given(const struct neap__device_net *net, int l, int t)
{
	const struct neap_ports *ports = &net->net->ports;

	if (!ports->output_grads || l != net->layers - 1)
		return NULL;
	return (const float *)ports->output_grads +
	       (size_t)(t - ports->first) * step_of(net, neap__device_units(net, l));
}

static int give_inputs(const struct neap__device_net *net, const struct neap__device_launcher *on,
	const struct neap__device_room *room, int t0, int t1)
{
	const struct neap_ports *ports = &net->net->ports;
	const struct neap__param *weight = &net->net->tensors[net->net->layers[0].weight];
	struct input_gradients_arguments a = {.samples = net->batch.samples,
		.inputs = net->batch.inputs,
		.t1 = t1,
		.t0 = t0,
		.first = (int)ports->first,
		.terms = (int)weight->columns,
		.width = width_of(net, 0),
		.currents = room->currents[0],
		.weight = net->dense ? net->dense[0].weight : net->lif[0].weight,
		.gradients = ports->input_grads};

	return ports->input_grads ? neap__launch_input_gradients(on, &a) : 0;
}

/* A step of outer products: the outputs before the first step, and d(in) of this step. */
static int add_first(const struct neap__device_net *net, const struct neap__device_launcher *on,
	const struct neap__device_room *room, int t0, int t1)
{
	const struct neap_ports *ports = &net->net->ports;
	int l = net->layers - 1, tensor = net->net->layers[l].recurrent, width = width_of(net, l);

	if (!ports->first_outputs || t0 != ports->first || tensor < 0 ||
		net->net->tensors[tensor].is_frozen)
		return 0;
	const struct neap__param *t = &net->net->tensors[tensor];
	struct outer_products_arguments a = {.batch = net->batch,
		.t1 = t0,
		.t0 = t0 - 1,
		.fold = 1,
		.tensors = 1,
		.blocks = net->groups * neap__device_tiles((int)t->rows, DEVICE_BIG_TILE,
						(int)t->columns, DEVICE_BIG_TILE)};
	a.tensor[0] = (struct neap__device_outer){.rows = (int)t->rows,
		.columns = (int)t->columns,
		.late = 1,
		.is_input = 1,
		.width = width,
		.from = net->dense ? net->dense[l].own_at : 0,
		.factor = (float)t->factor,
		.values = ports->first_outputs,
		.currents = room->currents[l] + (size_t)(t1 - t0) * step_of(net, width),
		.part = room->part[tensor],
		.total = room->total[tensor]};
	return neap__launch_outer_products(on, &a);
}

int neap__device_port_gradients(const struct neap__device_net *net,
	const struct neap__device_launcher *on, const struct neap__device_room *room, int t0,
	int t1)
{
	NEAP_TRY(give_inputs(net, on, room, t0, t1));
	return add_first(net, on, room, t0, t1);
}
