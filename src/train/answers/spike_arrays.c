/* SPDX-License-Identifier: Apache-2.0 */
/* spike_arrays.c: columns of spikes, and what layers and samples there are (spike_arrays.h). */
#include "train/answers/spike_arrays.h"
#include "train/answers/layer_choice.h"
#include "train/answers/step_viewer.h"
#include "nn/core/net_state.h"
#include "base/fail.h"
#include "base/print.h"

/* Names as UCS4, and sizes, of all hidden layers: `layer` counts in them. */
static int add_layers(struct neap__npz_out *out, const struct neap_net *net)
{
	uint32_t row[NEAP__LAYER_NAME];
	char name[NEAP__LAYER_NAME];
	int names, units;

	NEAP_TRY(names = neap__npz_out_array(out, "layers", "<U24", 0, sizeof row));
	NEAP_TRY(units = neap__npz_out_array(out, "units", "<i4", 0, sizeof(int32_t)));
	for (int l = 0; l < net->nlayers - 1; l++) {
		int32_t n = net->layers[l].n;
		int length = neap__print(name, sizeof name, "layer%d", l);
		for (int i = 0; i < NEAP__LAYER_NAME; i++)
			row[i] = i < length ? (unsigned char)name[i] : 0;
		NEAP_TRY(neap__npz_out_row(out, names, row));
		NEAP_TRY(neap__npz_out_row(out, units, &n));
	}
	return 0;
}

static int add_arrays(struct neap__spike_arrays *a, const struct neap_net *net)
{
	int dt;

	NEAP_TRY(a->sample = neap__npz_out_array(a->out, "sample", "<i8", 0, sizeof(int64_t)));
	NEAP_TRY(a->step = neap__npz_out_array(a->out, "step", "<i8", 0, sizeof(int64_t)));
	NEAP_TRY(a->layers_at = neap__npz_out_array(a->out, "layer", "<i4", 0, sizeof(int32_t)));
	NEAP_TRY(a->unit = neap__npz_out_array(a->out, "unit", "<i4", 0, sizeof(int32_t)));
	NEAP_TRY(add_layers(a->out, net));
	NEAP_TRY(a->samples = neap__npz_out_array(a->out, "samples", "<i8", 0, sizeof(int64_t)));
	NEAP_TRY(a->lengths = neap__npz_out_array(a->out, "lengths", "<i8", 0, sizeof(int64_t)));
	NEAP_TRY(dt = neap__npz_out_array(
			 a->out, "dt", "<f8", NEAP__NPZ_OUT_SCALAR, sizeof(double)));
	return neap__npz_out_row(a->out, dt, &net->options.dt);
}

int neap__spike_arrays_open(
	struct neap__spike_arrays *a, const char *path, const struct neap_net *net, int layer)
{
	*a = (struct neap__spike_arrays){.layer = layer};
	NEAP_TRY(neap__layer_choice_spikes(net, layer));
	NEAP_TRY(neap__npz_out_open(&a->out, path));
	int rc = add_arrays(a, net);
	if (rc < 0) {
		neap__npz_out_abort(a->out);
		a->out = NULL;
	}
	return rc < 0 ? rc : 0;
}

static int add_spike(struct neap__spike_arrays *a, const struct neap_step_view *view, int32_t layer,
	int32_t unit)
{
	NEAP_TRY(neap__npz_out_row(a->out, a->sample, &view->sample));
	NEAP_TRY(neap__npz_out_row(a->out, a->step, &view->step));
	NEAP_TRY(neap__npz_out_row(a->out, a->layers_at, &layer));
	return neap__npz_out_row(a->out, a->unit, &unit);
}

int neap__spike_arrays_add(struct neap__spike_arrays *a, const struct neap_step_view *view)
{
	if (view->step == 0) {
		NEAP_TRY(neap__npz_out_row(a->out, a->samples, &view->sample));
		NEAP_TRY(neap__npz_out_row(a->out, a->lengths, &view->steps));
	}
	for (int l = 0; l < view->layers; l++) {
		const struct neap_layer_view *layer = &view->layer[l];
		for (int i = 0; i < layer->spikes && (a->layer < 0 || a->layer == l); i++)
			NEAP_TRY(add_spike(a, view, l, layer->spike[i]));
	}
	return 0;
}
