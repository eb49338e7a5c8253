/* SPDX-License-Identifier: Apache-2.0 */
/* membrane_arrays.c: an array a row of a layer's state (membrane_arrays.h). */
#include "train/answers/membrane_arrays.h"
#include "train/answers/step_viewer.h"
#include "nn/core/cell.h"
#include "base/fail.h"
#include "base/print.h"

#include <errno.h>
#include <stdlib.h>

struct neap__membrane_row {
	char name[NEAP__LAYER_NAME + 16]; /* "layer0", "layer0.current" */
	int layer, state, array;
};

void neap__membrane_arrays_free(struct neap__membrane_arrays *a)
{
	free(a->row);
	free(a->room);
	a->row = NULL;
	a->room = NULL;
}

/* The arrays of a layer: the state that says most has the layer's name. */
static int add_layer(
	struct neap__membrane_arrays *a, const struct neap_net *net, int l, const char *type)
{
	const struct neap__layer *layer = &net->layers[l];
	const struct neap__shown *shown = neap__layer_code(net, layer)->shown;

	for (int i = 0; i < NEAP__SHOWN_MOST && shown[i].name; i++) {
		struct neap__membrane_row *row = &a->row[a->rows++];
		char name[NEAP__LAYER_NAME] = "readout";
		if (!layer->cell->readout)
			neap__print(name, sizeof name, "layer%d", l);
		neap__print(row->name, sizeof row->name, "%s%s%s", name, i ? "." : "",
			i ? shown[i].name : "");
		row->layer = l;
		row->state = i;
		NEAP_TRY(row->array = neap__npz_out_array(a->out, row->name, type, layer->n,
				 (size_t)layer->n * net->ops->real));
		neap__npz_out_samples(a->out, row->array, a->lengths);
	}
	return 0;
}

static int add_arrays(struct neap__membrane_arrays *a, const struct neap_net *net, int layer)
{
	const char *type = net->options.precision == NEAP_DOUBLE ? "<f8" : "<f4";
	int dt;

	a->row = calloc((size_t)net->nlayers * NEAP__SHOWN_MOST, sizeof *a->row);
	a->room = calloc((size_t)net->widest, sizeof *a->room);
	if (!a->row || !a->room)
		return neap__fail_errno(ENOMEM, "membranes");
	NEAP_TRY(a->samples = neap__npz_out_array(a->out, "samples", "<i8", 0, sizeof(int64_t)));
	NEAP_TRY(a->lengths = neap__npz_out_array(a->out, "lengths", "<i8", 0, sizeof(int64_t)));
	NEAP_TRY(dt = neap__npz_out_array(
			 a->out, "dt", "<f8", NEAP__NPZ_OUT_SCALAR, sizeof(double)));
	NEAP_TRY(neap__npz_out_row(a->out, dt, &net->options.dt));
	for (int l = 0; l < net->nlayers; l++)
		if (layer < 0 || l == layer)
			NEAP_TRY(add_layer(a, net, l, type));
	return 0;
}

/* Arrays of the archive beside those of layers. */
enum { OTHERS = 3 };

static int count_arrays(const struct neap_net *net, int layer)
{
	int count = OTHERS;

	for (int l = 0; l < net->nlayers; l++)
		for (int i = 0; i < NEAP__SHOWN_MOST && (layer < 0 || l == layer); i++)
			count += neap__layer_code(net, &net->layers[l])->shown[i].name != NULL;
	return count;
}

int neap__membrane_arrays_open(
	struct neap__membrane_arrays *a, const char *path, const struct neap_net *net, int layer)
{
	*a = (struct neap__membrane_arrays){0};
	if (count_arrays(net, layer) > NEAP__NPZ_OUT_MOST)
		return neap__fail(NEAP_EUSAGE,
			"the states of %d layers take more than %d arrays, the limit of an "
			"archive. Choose one with --layer",
			net->nlayers, NEAP__NPZ_OUT_MOST);
	NEAP_TRY(neap__npz_out_open(&a->out, path));
	int rc = add_arrays(a, net, layer);
	if (rc < 0) {
		neap__npz_out_abort(a->out);
		neap__membrane_arrays_free(a);
		a->out = NULL;
	}
	return rc < 0 ? rc : 0;
}

static int add_row(struct neap__membrane_arrays *a, const struct neap_step_view *view,
	const struct neap__membrane_row *row)
{
	const struct neap_layer_view *layer = &view->layer[row->layer];
	const double *numbers = layer->state[row->state];

	if (view->precision == NEAP_DOUBLE)
		return neap__npz_out_row(a->out, row->array, numbers);
	for (int i = 0; i < layer->units; i++)
		a->room[i] = (float)numbers[i];
	return neap__npz_out_row(a->out, row->array, a->room);
}

int neap__membrane_arrays_add(struct neap__membrane_arrays *a, const struct neap_step_view *view)
{
	if (view->step == 0) {
		NEAP_TRY(neap__npz_out_row(a->out, a->samples, &view->sample));
		NEAP_TRY(neap__npz_out_row(a->out, a->lengths, &view->steps));
	}
	for (int i = 0; i < a->rows; i++)
		NEAP_TRY(add_row(a, view, &a->row[i]));
	return 0;
}
