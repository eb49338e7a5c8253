/* SPDX-License-Identifier: Apache-2.0 */
/* step_viewer.c: rows of the state, and lists of the group (step_viewer.h). */
#include "train/answers/step_viewer.h"
#include "nn/core/cell.h"
#include "base/fail.h"
#include "base/print.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int neap__layer_has_spikes(const struct neap__layer *layer)
{
	return !layer->cell->readout && layer->outputs != NEAP__OUTPUT_ALL && !layer->smooth;
}

/* Fills in what of a layer is the same in every step; returns its numbers. */
static size_t describe(struct neap__step_viewer *v, int l, double *numbers)
{
	const struct neap__layer *layer = &v->net->layers[l];
	const struct neap__shown *shown = neap__layer_code(v->net, layer)->shown;
	size_t at = (size_t)l * NEAP__SHOWN_MOST, n = (size_t)layer->n;
	int states = 0;

	for (; states < NEAP__SHOWN_MOST && shown[states].name; states++) {
		v->state_name[at + (size_t)states] = shown[states].name;
		v->state[at + (size_t)states] = numbers + (size_t)states * n;
	}
	if (layer->cell->readout)
		neap__print(v->names[l], NEAP__LAYER_NAME, "readout");
	else
		neap__print(v->names[l], NEAP__LAYER_NAME, "layer%d", l);
	v->layers[l] = (struct neap_layer_view){.name = v->names[l],
		.cell = layer->cell->name,
		.units = layer->n,
		.spikes = -1,
		.states = states,
		.state_name = v->state_name + at,
		.state = v->state + at};
	return (size_t)states * n;
}

int neap__step_viewer_open(struct neap__step_viewer *v, const struct neap_net *net)
{
	size_t layers = (size_t)net->nlayers, units = 0;

	*v = (struct neap__step_viewer){.net = net};
	for (size_t l = 0; l < layers; l++)
		units += (size_t)net->layers[l].n;
	v->layers = calloc(layers, sizeof *v->layers);
	v->names = calloc(layers, sizeof *v->names);
	v->state_name = calloc(layers * NEAP__SHOWN_MOST, sizeof *v->state_name);
	v->state = calloc(layers * NEAP__SHOWN_MOST, sizeof *v->state);
	v->numbers = calloc(units * NEAP__SHOWN_MOST, sizeof *v->numbers);
	if (!v->layers || !v->names || !v->state_name || !v->state || !v->numbers) {
		neap__step_viewer_close(v);
		return neap__fail_errno(ENOMEM, "views of steps");
	}
	for (size_t l = 0, at = 0; l < layers; l++)
		at += describe(v, (int)l, v->numbers + at);
	v->view = (struct neap_step_view){.dt = net->options.dt,
		.inputs = net->options.inputs,
		.precision = neap__number_type(net),
		.layers = net->nlayers,
		.layer = v->layers};
	return 0;
}

void neap__step_viewer_close(struct neap__step_viewer *v)
{
	free(v->layers);
	free(v->names);
	free(v->state_name);
	free(v->state);
	free(v->numbers);
	*v = (struct neap__step_viewer){0};
}

static void copy_row(double *to, const struct neap_net *net, const void *from, int n)
{
	for (int i = 0; i < n; i++)
		to[i] = net->options.precision == NEAP_DOUBLE ? ((const double *)from)[i]
							      : (double)((const float *)from)[i];
}

/* `outputs`: of the layer in this step. */
static void look_at_layer(struct neap__step_viewer *v, int l, const unsigned char *state,
	const struct neap__list *outputs)
{
	const struct neap_net *net = v->net;
	const struct neap__layer *layer = &net->layers[l];
	const struct neap__cell_code *code = neap__layer_code(net, layer);
	struct neap_layer_view *view = &v->layers[l];

	for (int i = 0; i < view->states; i++) {
		int row = code->shown[i].row;
		size_t at = layer->state_at + (size_t)(row * layer->n) * net->ops->real;
		copy_row(v->numbers + (view->state[i] - v->numbers), net,
			row == NEAP__LAST_OUTPUTS ? outputs->value : state + at, layer->n);
	}
	if (!neap__layer_has_spikes(layer))
		return;
	view->spikes = outputs->count;
	view->spike = outputs->id;
}

/* Outputs on a device are in the state alone: spikes as bitmaps, numbers of all units as they are.
 */
static void take_outputs(
	const struct neap_net *net, struct neap__list *list, const unsigned char *state, int l)
{
	const struct neap__layer *layer = &net->layers[l];
	const unsigned char *last = state + layer->spikes_at;

	if (layer->outputs == NEAP__OUTPUT_ALL) {
		*list = (struct neap__list){.count = layer->n, .id = net->identity, .value = last};
		return;
	}
	list->count = 0;
	list->id = list->room;
	for (int i = 0; i < layer->n; i++)
		if (last[i / 8] >> (i % 8) & 1)
			list->room[list->count++] = (uint16_t)i;
}

int neap__step_viewer_sees(const struct neap_net *net)
{
	for (int l = 0; net->backend && l < net->nlayers - 1; l++)
		if (!net->layers[l].keeps_spikes)
			return neap__fail(NEAP_EUSAGE,
				"layer%d of '%s' does not keep the spikes of a step, so a device "
				"does "
				"not report them; leave --device out",
				l, net->spec);
	return 0;
}

const struct neap_step_view *neap__step_viewer_look(
	struct neap__step_viewer *v, const void *state, int64_t t)
{
	const struct neap_net *net = v->net;
	const struct neap_sequence *whole = &net->batch->sequences[0], *here = &net->events[0];
	const struct neap__group *group = &net->groups[0];
	int64_t at = t - net->events_from;

	v->view.sample = whole->index;
	v->view.step = t;
	v->view.steps = whole->length;
	if (net->options.values) {
		v->view.values = here->values + (size_t)at * (size_t)net->options.inputs;
	} else {
		v->view.events = (int)(here->start[at + 1] - here->start[at]);
		v->view.event = here->unit + here->start[at];
	}
	const unsigned char *own = (const unsigned char *)state + group->state_at;
	for (int l = 0; l < net->nlayers; l++) {
		struct neap__list of_device, *outputs = &group->spike_lists[t & 1][l];
		if (net->backend && l < net->nlayers - 1) {
			of_device = *outputs;
			take_outputs(net, &of_device, own, l);
			outputs = &of_device;
		}
		look_at_layer(v, l, own, outputs);
	}
	return &v->view;
}
