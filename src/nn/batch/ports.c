/* SPDX-License-Identifier: Apache-2.0 */
/* ports.c: the arrays of a caller in place of data set, readout and loss (neap/ports.h). */
#include "nn/batch/ports.h"
#include "nn/core/cell.h"
#include "nn/core/on_device.h"
#include "base/fail.h"
#include "base/struct_size.h"

_Static_assert(NEAP_PORTS_CONTINUED % NEAP__GRADIENT_BLOCK == 0,
	"gradients are folded at the first step of a gradient block");

#include <errno.h>
#include <math.h>
#include <string.h>

static int check_net(const struct neap_net *net)
{
	if (net->nlayers < 2)
		return neap__fail(NEAP_EUSAGE, "ports: the network has no hidden layer");
	for (int l = 0; l < net->nlayers; l++)
		if (neap__has_filter(&net->layers[l]) || net->layers[l].pooled)
			return neap__fail(NEAP_EUSAGE,
				"ports: layer %d has a convolution or pooling, which arrays of "
				"steps do not support",
				l);
	for (int l = 0; l < net->nlayers; l++)
		if (net->layers[l].norm.kind)
			return neap__fail(NEAP_EUSAGE,
				"ports: layer %d has norm=batch, which arrays of steps do not "
				"support",
				l);
	for (int l = 1; l < net->nlayers; l++)
		if (neap__has_delays(&net->layers[l]))
			return neap__fail(NEAP_EUSAGE,
				"ports: layer %d has a delay of up to %d steps, but arrays of "
				"steps support delays of 0 and 1",
				l, net->layers[l].delays.most);
	if (!neap__is_chain(net))
		return neap__fail(NEAP_EUSAGE,
			"ports: a layer receives other layers than the one below ('from'), which "
			"arrays of steps do not support");
	return 0;
}

/* The numbers of all inputs, which the products of their gradients list. */
static int list_inputs(struct neap_net *net)
{
	int inputs = net->options.inputs;

	if (net->port_inputs)
		return 0;
	net->port_inputs = neap__net_get(net, (uint64_t)inputs, sizeof *net->port_inputs);
	if (!net->port_inputs)
		return neap__fail_errno(ENOMEM, "ports");
	for (int i = 0; i < inputs; i++)
		net->port_inputs[i] = (uint16_t)i;
	return 0;
}

int neap_net_set_ports(struct neap_net *net, const struct neap_ports *ports)
{
	NEAP_NEED(net);
	if (!ports) {
		net->ports = (struct neap_ports){0};
		return 0;
	}
	struct neap_ports given;
	NEAP_TRY(neap__struct_take(&given, sizeof given, ports, "neap_ports"));
	ports = &given;
	NEAP_TRY(check_net(net));
	if (ports->samples < 1 || ports->steps < 1 ||
		(ports->first != 0 && ports->first != NEAP_PORTS_CONTINUED))
		return neap__fail(NEAP_EUSAGE,
			"ports: %d samples, %lld steps and first %lld; there must be at least one "
			"sample and one step, and first must be 0 or NEAP_PORTS_CONTINUED",
			ports->samples, (long long)ports->steps, (long long)ports->first);
	if (ports->inputs && !net->options.values)
		return neap__fail(NEAP_EUSAGE, "ports: inputs are numbers, but the network takes "
					       "spikes, which the batch contains");
	if (ports->first_outputs && net->nlayers != 2)
		return neap__fail(NEAP_EUSAGE,
			"ports: first_outputs of %d hidden layers; only one "
			"hidden layer can continue from given outputs",
			net->nlayers - 1);
	if (ports->input_grads && net->learns_from > 0)
		return neap__fail(NEAP_EUSAGE, "ports: the first layer is frozen, so inputs have "
					       "no gradient");
	if (net->batch &&
		(ports->samples != net->ports.samples || ports->steps != net->ports.steps ||
			ports->first != net->ports.first))
		return neap__fail(NEAP_EUSAGE,
			"ports: samples, steps and first must stay the same in a batch");
	if (ports->input_grads)
		NEAP_TRY(list_inputs(net));
	if (net->backend)
		NEAP_TRY(net->backend->stream(net->on_backend, ports->stream));
	net->ports = *ports;
	return 0;
}

static int is_finite(const struct neap_net *net, const void *numbers, size_t at)
{
	return net->options.precision == NEAP_DOUBLE ? isfinite(((const double *)numbers)[at])
						     : isfinite(((const float *)numbers)[at]);
}

int neap__ports_check(const struct neap_net *net, const struct neap_batch *batch)
{
	const struct neap_ports *ports = &net->ports;
	size_t inputs = (size_t)net->options.inputs, row = inputs * (size_t)ports->samples;

	if (batch->size != ports->samples || batch->windows || net->objective.peers)
		return neap__fail(NEAP_EUSAGE,
			"ports: the batch must be a whole one of %d samples in memory; it has %d",
			ports->samples, batch->size);
	for (int b = 0; b < batch->size; b++)
		if (batch->sequences[b].length != ports->first + ports->steps)
			return neap__fail(NEAP_EUSAGE,
				"ports: sample %d has %lld steps; all must have %lld", b,
				(long long)batch->sequences[b].length,
				(long long)(ports->first + ports->steps));
	if (net->backend) /* they are in memory of the device */
		return 0;
	for (size_t i = 0; ports->inputs && i < row * (size_t)ports->steps; i++)
		if (!is_finite(net, ports->inputs, i))
			return neap__fail(NEAP_EUSAGE,
				"step %zu, sample %zu: input %zu is not a finite number", i / row,
				i % row / inputs, i % inputs);
	return 0;
}

/* The only hidden layer, whose state is rows of numbers; NULL, with a reason. */
static const struct neap__layer *layer_of(const struct neap_net *net)
{
	const struct neap__layer *layer = &net->layers[0];

	if (net->nlayers != 2 || neap__layer_code(net, layer)->state_bytes || layer->program ||
		neap__learned(layer)) {
		neap__fail(NEAP_EUSAGE, "ports: only the state of a network with one hidden layer "
					"of a built-in cell without learned time constants can be "
					"read and set");
		return NULL;
	}
	return layer;
}

int neap_net_state_rows(const struct neap_net *net)
{
	NEAP_NEED(net);
	const struct neap__layer *layer = layer_of(net);

	return layer ? neap__layer_code(net, layer)->rows.state + layer->keeps_spikes : NEAP_EUSAGE;
}

/* What a copy of states goes through: for each sample its state and its part of a row. */
struct state_copy {
	const struct neap_net *net;
	const struct neap__layer *layer;
	unsigned char *state, *rows;
	int puts;
};

static void copy_bytes(const struct state_copy *c, unsigned char *state, unsigned char *row)
{
	size_t bytes = (size_t)c->layer->n * c->net->ops->real;
	memcpy(c->puts ? state : row, c->puts ? row : state, bytes);
}

static void copy_bits(const struct state_copy *c, unsigned char *bits, unsigned char *row)
{
	int is_double = c->net->options.precision == NEAP_DOUBLE;

	if (c->puts)
		memset(bits, 0, (size_t)(c->layer->n + 7) / 8);
	for (int i = 0; i < c->layer->n; i++) {
		float *f = (float *)(void *)row + i;
		double *d = (double *)(void *)row + i;
		unsigned char mask = (unsigned char)(1 << (i & 7));
		if (c->puts && (is_double ? *d != 0 : *f != 0))
			bits[i >> 3] |= mask;
		else if (!c->puts && is_double)
			*d = (bits[i >> 3] & mask) != 0;
		else if (!c->puts)
			*f = (bits[i >> 3] & mask) != 0;
	}
}

static int copy_states(const struct state_copy *c)
{
	const struct neap_net *net = c->net;
	const struct neap__layer *layer = c->layer;
	size_t row = (size_t)layer->n * net->ops->real;

	if (!net->batch)
		return neap__fail(NEAP_EUSAGE, "no batch was begun");
	for (int g = 0; g < net->ngroups; g++)
		for (int s = 0; s < net->groups[g].size; s++) {
			size_t b = (size_t)net->groups[g].first + s, all = net->batch->size * row;
			unsigned char *own =
				c->state + net->groups[g].state_at + (size_t)s * net->sample_state;
			unsigned char *to = c->rows + b * row;
			for (int r = 0; r < neap__layer_code(net, layer)->rows.state; r++)
				copy_bytes(c, own + layer->state_at + r * row, to + r * all);
			to += (size_t)neap__layer_code(net, layer)->rows.state * all;
			if (layer->keeps_spikes && layer->outputs == NEAP__OUTPUT_ALL)
				copy_bytes(c, own + layer->spikes_at, to);
			else if (layer->keeps_spikes)
				copy_bits(c, own + layer->spikes_at, to);
		}
	return 0;
}

int neap_net_state_get(const struct neap_net *net, const void *state, void *rows)
{
	NEAP_NEED(net, state, rows);
	struct state_copy c = {net, layer_of(net), (unsigned char *)(uintptr_t)state, rows, 0};
	struct neap_net *own = (struct neap_net *)(uintptr_t)net; /* its copy of a device's state */
	void *seen;

	if (!c.layer)
		return NEAP_EUSAGE;
	if (!net->batch)
		return neap__fail(NEAP_EUSAGE, "no batch was begun");
	NEAP_TRY(neap__on_device_state(own, &seen, c.state));
	c.state = seen;
	return copy_states(&c);
}

int neap_net_state_put(const struct neap_net *net, void *state, const void *rows)
{
	NEAP_NEED(net, state, rows);
	struct state_copy c = {net, layer_of(net), net->backend ? net->turn_room : state,
		(unsigned char *)(uintptr_t)rows, 1};

	if (!c.layer)
		return NEAP_EUSAGE;
	if (!net->batch)
		return neap__fail(NEAP_EUSAGE, "no batch was begun");
	memset(c.state, 0, net->state_bytes);
	NEAP_TRY(copy_states(&c));
	return neap__on_device_state_back((struct neap_net *)(uintptr_t)net, state);
}

/*
 * 1: gradients of the state are rows of the adjoint and a product with recurrent weights. Outputs
 * that are a membrane (integrator) also have a gradient through its leak.
 */
static int has_state_gradients(const struct neap_net *net, const struct neap__layer *layer)
{
	const struct neap__cell_code *code = neap__layer_code(net, layer);

	return code->outputs == NEAP__OUTPUT_ALL && layer->recurrent >= 0 && layer->candidate < 0 &&
	       !(layer->cell->traits & NEAP__HAS_LEAK) && (!code->rows.state || code->carried);
}

static int refuse_gradients(const struct neap__layer *layer)
{
	return neap__fail(NEAP_EUSAGE,
		"ports: gradients of the state of %s are not available; only rnn, lstm and gru "
		"have them",
		layer->cell->name);
}

/* Fills an adjoint in memory of the host. */
static int fill_adjoint(const struct neap_net *net, const struct neap__layer *layer,
	unsigned char *adjoint, const void *rows)
{
	const struct neap__cell_code *code = neap__layer_code(net, layer);
	size_t row = (size_t)layer->n * net->ops->real;

	memset(adjoint, 0, net->adjoint_bytes);
	if (!rows)
		return 0;
	if (!has_state_gradients(net, layer))
		return refuse_gradients(layer);
	for (int g = 0; g < net->ngroups; g++)
		for (int s = 0; s < net->groups[g].size; s++)
			for (int r = 0; r < code->rows.state; r++)
				memcpy(adjoint + net->groups[g].adjoint_at +
						(size_t)s * net->sample_adjoint +
						layer->adjoint_at + (code->carried + r) * row,
					(const unsigned char *)rows +
						((size_t)r * net->batch->size +
							net->groups[g].first + s) *
							row,
					row);
	return 0;
}

/* Where the host has a copy of an adjoint of the device; its own adjoints are there themselves. */
static unsigned char *adjoint_room(const struct neap_net *net, const void *adjoint)
{
	return net->backend ? (unsigned char *)net->turn_room + net->state_bytes
			    : (unsigned char *)(uintptr_t)adjoint;
}

int neap_net_state_adjoint(const struct neap_net *net, void *adjoint, const void *rows)
{
	NEAP_NEED(net, adjoint);
	const struct neap__layer *layer = rows ? layer_of(net) : net->layers;

	if (!layer)
		return NEAP_EUSAGE;
	if (!net->batch)
		return neap__fail(NEAP_EUSAGE, "no batch was begun");
	unsigned char *room = adjoint_room(net, adjoint);
	NEAP_TRY(fill_adjoint(net, layer, room, rows));
	if (!net->backend)
		return 0;
	const struct neap_memory_ops *memory = net->backend->memory;
	return memory->write(memory->user, adjoint, room, net->adjoint_bytes);
}

int neap_net_state_grads(struct neap_net *net, const void *adjoint, void *rows)
{
	NEAP_NEED(net, adjoint, rows);
	const struct neap__layer *layer = layer_of(net);

	if (!layer)
		return NEAP_EUSAGE;
	if (!net->batch)
		return neap__fail(NEAP_EUSAGE, "no batch was begun");
	if (!has_state_gradients(net, layer))
		return refuse_gradients(layer);
	unsigned char *room = adjoint_room(net, adjoint);
	if (net->backend) {
		const struct neap_memory_ops *memory = net->backend->memory;
		NEAP_TRY(memory->read(memory->user, room, adjoint, net->adjoint_bytes));
		net->ops->fill_strips(net);
	}
	for (int g = 0; g < net->ngroups; g++)
		net->ops->state_grads(net, &net->groups[g], room, rows);
	return 0;
}
