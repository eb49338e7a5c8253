/* SPDX-License-Identifier: Apache-2.0 */
/* nir_export.c: a net as a graph of NIR (nir_model.h); neap_export. */
#include "train/nir/nir_model.h"
#include "train/model.h"
#include "train/model_file.h"
#include "nn/batch/norm_sums.h"
#include "nn/core/cell.h"
#include "nn/filter.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/struct_size.h"
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct exporting {
	struct neap__nir_graph *graph;
	const struct neap_net *net;
	struct neap__text *lost;
	int strict, before; /* before: the node that the next one follows */
	int input, *cell;   /* the Input; [layers] nodes of layers */
};

/* Why no node of NIR is such a cell. */
static const struct {
	const char *cell, *why;
} not_said[] = {
	{"alif", "no node's threshold is raised by its spikes"},
	{"adlif", "no node has an adaptation current"},
	{"seadlif", "no node has an adaptation current"},
	{"brf", "no node oscillates"},
	{"rnn", "its nodes with a state are linear between spikes"},
	{"lstm", "no node has gates"},
	{"gru", "no node has gates"},
	{"egru", "no node has gates"},
};

/* The unit (channel, y, x) of a graph that is unit i, (y, x, channel), of a convolution; NULL: i.
 */
static int64_t unit_of(const struct neap__plane *image, int64_t i)
{
	return image ? i % image->channels * image->height * image->width + i / image->channels : i;
}

/* The image of the units of a layer, if it is a convolution. */
static const struct neap__plane *plane_of(const struct neap__layer *layer)
{
	return layer->conv[0] ? &layer->plane : NULL;
}

static double element(const struct neap_param *p, int64_t i)
{
	return p->precision == NEAP_DOUBLE ? ((const double *)p->data)[i]
					   : (double)((const float *)p->data)[i];
}

/* Room for an array of so many dimensions; -ENOMEM. */
static int make_array(struct neap__nir_array *a, int dims, int64_t rows, int64_t columns)
{
	*a = (struct neap__nir_array){.dims = dims, .size = {rows, columns}};
	a->count = dims == 2 ? rows * columns : rows;
	a->data = calloc((size_t)a->count + 1, sizeof *a->data);
	return a->data ? 0 : neap__fail_errno(ENOMEM, "%lld numbers", (long long)a->count);
}

/*
 * Rows [from, to) of a tensor of the net turned, as NIR has it: [out][in]; a bias is a row.
 * `below`: the image whose units the rows are, where they are numbered as those of a convolution;
 * or NULL.
 */
static int tensor_rows(const struct exporting *e, int node, const char *param, int index,
	int64_t from, int64_t to, const struct neap__plane *below)
{
	struct neap_param p;
	struct neap__nir_array a;
	int is_row = strcmp(param, "bias") == 0;

	NEAP_TRY(neap_net_param(e->net, index, &p));
	NEAP_TRY(make_array(&a, is_row ? 1 : 2, p.columns, to - from));
	a.is_single = p.precision == NEAP_FLOAT;
	for (int64_t row = from; row < to; row++) {
		int64_t k = p.row_start ? p.row_start[row] : row * p.columns, first = k;
		int64_t end = p.row_start ? p.row_start[row + 1] : k + p.columns;
		int64_t in = unit_of(below, row - from);
		for (; k < end; k++) {
			int64_t column = p.column ? p.column[k] : k - first;
			a.data[is_row ? column : column * (to - from) + in] = element(&p, k);
		}
	}
	int rc = neap__nir_set(e->graph, node, param, &a);
	free(a.data);
	return rc;
}

static int tensor(const struct exporting *e, int node, const char *param, int index,
	const struct neap__plane *below)
{
	struct neap_param p;

	NEAP_TRY(neap_net_param(e->net, index, &p));
	return tensor_rows(e, node, param, index, 0, p.rows, below);
}

/* Gives a row of numbers the three dimensions of an image, if there is one. */
static void shape_row(struct neap__nir_array *a, const struct neap__plane *image)
{
	if (!image)
		return;
	a->dims = 3;
	a->size[0] = image->channels;
	a->size[1] = image->height;
	a->size[2] = image->width;
}

/* A parameter of a node: `value` for each of n units, which may be an image. */
static int row(const struct exporting *e, int node, const char *param, int64_t n, double value,
	const struct neap__plane *image)
{
	struct neap__nir_array a;

	NEAP_TRY(make_array(&a, 1, n, 0));
	shape_row(&a, image);
	for (int64_t i = 0; i < n; i++)
		a.data[i] = value;
	int rc = neap__nir_set(e->graph, node, param, &a);
	free(a.data);
	return rc;
}

/* The time constant that leaves as much in an Euler step as unit i's leak does. */
static double tau_of(const struct exporting *e, const struct neap__layer *layer, int leak, int i)
{
	const struct neap__leak *l = &layer->leaks[leak];
	double dt = e->net->options.dt,
	       tau = leak == NEAP__MEMBRANE_LEAK ? layer->tau : layer->tau_syn;
	struct neap_param p;

	if (l->tensor >= 0 && neap_net_param(e->net, l->tensor, &p) == 0)
		return dt * (1 + exp(element(&p, i)));
	return e->net->options.euler ? fmax(tau, dt) : -dt / expm1(-dt / tau);
}

/* A time constant of all units, and what the input is multiplied with: `gain` units of dt/tau. */
static int leak_rows(const struct exporting *e, const struct neap__layer *layer, int node, int leak,
	const char *tau, const char *gain)
{
	struct neap__nir_array a, b;

	NEAP_TRY(make_array(&a, 1, layer->n, 0));
	int rc = make_array(&b, 1, layer->n, 0);
	shape_row(&a, plane_of(layer));
	shape_row(&b, plane_of(layer));
	for (int i = 0; rc == 0 && i < layer->n; i++) {
		int64_t at = unit_of(plane_of(layer), i);
		a.data[at] = tau_of(e, layer, leak, i);
		b.data[at] = layer->cell->readout ? 1 : a.data[at] / e->net->options.dt;
	}
	if (rc == 0)
		rc = neap__nir_set(e->graph, node, tau, &a);
	if (rc == 0)
		rc = neap__nir_set(e->graph, node, gain, &b);
	free(a.data);
	free(b.data);
	return rc;
}

static int add(const struct exporting *e, const struct neap__layer *layer, const char *part,
	enum neap__nir_type type)
{
	char name[64];

	if (layer->cell->readout)
		neap__print(name, sizeof name, "readout%s%s", *part ? "." : "", part);
	else
		neap__print(name, sizeof name, "layer%d%s%s", layer->index, *part ? "." : "", part);
	return neap__nir_add_node(e->graph, name, type);
}

/* The reset of a layer that NIR has no word for: refused, or a line in *lost. */
static int check_reset(const struct exporting *e, const struct neap__layer *layer)
{
	static const char *const names[] = {NEAP_RESET_TABLE(NEAP_CHOICE_NAME)};
	static const char *const meanings[] = {"by subtraction, one step later",
		"to zero, one step later", "", "by subtraction, at once"};

	if (layer->reset == NEAP_RESET_HARD)
		return 0;
	if (e->strict)
		return neap__fail(NEAP_EUSAGE,
			"layer%d has reset=%s (%s), but NIR expresses only a reset to v_reset at "
			"once. Train with --reset hard, or pass --metadata to write the reset as "
			"metadata that only neap reads",
			layer->index, names[layer->reset], meanings[layer->reset]);
	return neap__text_add(e->lost, "%slayer%d resets %s", e->lost->length ? "; " : "",
		layer->index, meanings[layer->reset]);
}

static int check_cell(const struct neap__layer *layer)
{
	const char *name = layer->cell->name, *why = "no node is such a cell";

	if (strcmp(name, "lif") == 0 || strcmp(name, "cubalif") == 0 ||
		strcmp(name, "integrator") == 0 || layer->cell->readout)
		return 0;
	for (size_t i = 0; i < sizeof not_said / sizeof not_said[0]; i++)
		if (strcmp(name, not_said[i].cell) == 0)
			why = not_said[i].why;
	if (layer->program)
		why = "no node contains equations";
	return neap__fail(NEAP_EUSAGE,
		"layer%d is %s, which NIR cannot express: %s. PyTorch reads the weights from the "
		"run's "
		"model.safetensors (docs/weights.md)",
		layer->index, name, why);
}

/* The node with the state of a layer; its number. */
static int cell_node(struct exporting *e, const struct neap__layer *layer)
{
	int cuba = (layer->cell->traits & NEAP__HAS_SYNAPSE) != 0, rc, node;
	int spikes = (layer->cell->traits & NEAP__HAS_THRESHOLD) != 0;
	int pure = !layer->cell->readout && !cuba && layer->leaks[NEAP__MEMBRANE_LEAK].tensor < 0 &&
		   layer->leaks[NEAP__MEMBRANE_LEAK].start >= 1;
	enum neap__nir_type type = !spikes && pure ? NEAP__NIR_I
				   : !spikes	   ? NEAP__NIR_LI
				   : cuba	   ? NEAP__NIR_CUBALIF
				   : pure	   ? NEAP__NIR_IF
						   : NEAP__NIR_LIF;

	NEAP_TRY(node = add(e, layer, layer->cell->readout ? "" : "cell", type));
	if (pure)
		rc = row(e, node, "r", layer->n, 1 / e->net->options.dt, plane_of(layer));
	else
		rc = leak_rows(e, layer, node, NEAP__MEMBRANE_LEAK, cuba ? "tau_mem" : "tau", "r");
	if (rc == 0 && cuba)
		rc = leak_rows(e, layer, node, NEAP__SECOND_LEAK, "tau_syn", "w_in");
	if (rc == 0 && !pure)
		rc = row(e, node, "v_leak", layer->n, 0, plane_of(layer));
	if (rc == 0 && spikes)
		rc = row(e, node, "v_threshold", layer->n, layer->threshold, plane_of(layer));
	if (rc == 0 && spikes)
		rc = row(e, node, "v_reset", layer->n,
			layer->reset == NEAP_RESET_HARD ? layer->reset_value : 0, plane_of(layer));
	return rc < 0 ? rc : node;
}

/* Whole numbers as a parameter; one number is a scalar. */
static int whole(
	const struct exporting *e, int node, const char *param, int count, const int *sizes)
{
	double data[3];
	struct neap__nir_array a = {
		.dims = count > 1, .size = {count}, .count = count, .data = data};

	for (int i = 0; i < count; i++)
		data[i] = sizes[i];
	return neap__nir_set(e->graph, node, param, &a);
}

/* Adds a node behind the last. */
static int follow(struct exporting *e, const struct neap__layer *layer, const char *part,
	enum neap__nir_type type)
{
	int node;

	NEAP_TRY(node = add(e, layer, part, type));
	NEAP_TRY(neap__nir_add_edge(e->graph, e->before, node));
	return e->before = node;
}

static int windows_node(struct exporting *e, const struct neap__layer *layer, const char *part,
	const struct neap__windows *w)
{
	int node;

	NEAP_TRY(node = follow(e, layer, part,
			 w->by == NEAP__POOL_AVERAGE ? NEAP__NIR_AVGPOOL : NEAP__NIR_SUMPOOL));
	NEAP_TRY(whole(e, node, "kernel_size", 2, w->size));
	NEAP_TRY(whole(e, node, "stride", 2, w->stride));
	return whole(e, node, "padding", 2, w->pad);
}

static int pool_node(struct exporting *e, const struct neap__layer *layer)
{
	if (layer->pool.by == NEAP__POOL_MAX)
		return neap__fail(NEAP_EUSAGE,
			"layer%d has pooling=max, which NIR cannot express: it has sums and "
			"averages. "
			"Train with pooling=sum or pooling=avg",
			layer->index);
	const struct neap__layer *below = neap__source_of(layer, 0);
	if (below && !below->conv[0])
		return neap__fail(NEAP_EUSAGE,
			"layer%d pools the outputs of layer%d, which is not a convolution, so "
			"NIR "
			"has no image to pool. Train with a convolution below, or without pool=",
			layer->index, below->index);
	return windows_node(e, layer, "pool", &layer->pool);
}

/* Kernels as [out][in of a group][y][x]. */
static int kernels(const struct exporting *e, int node, const struct neap__layer *layer)
{
	int taps = layer->conv[0] * layer->conv[1], groups = layer->groups;
	int below = layer->from.channels / groups, own = layer->channels / groups;
	struct neap__nir_array a;
	struct neap_param p;

	NEAP_TRY(neap_net_param(e->net, layer->weight, &p));
	NEAP_TRY(make_array(&a, 1, p.count, 0));
	a.is_single = p.precision == NEAP_FLOAT;
	a.dims = 4;
	a.size[0] = layer->channels;
	a.size[1] = below;
	a.size[2] = layer->conv[0];
	a.size[3] = layer->conv[1];
	for (int64_t i = 0; i < p.count; i++) {
		int64_t row = i / p.columns, channel = row / taps;
		int64_t out = channel / below * own + i % p.columns;
		a.data[(out * below + channel % below) * taps + row % taps] = element(&p, i);
	}
	int rc = neap__nir_set(e->graph, node, "weight", &a);
	free(a.data);
	return rc;
}

/* What becomes b where a window adds it up `area` times, the last bit included where a number does.
 */
static double share(double b, double area)
{
	double c = b / area;
	const double other[] = {nextafter(c, -INFINITY), nextafter(c, INFINITY)};

	for (int i = 0; i < 2 && c * area != b; i++)
		if (other[i] * area == b)
			return other[i];
	return c;
}

/* A graph adds the bias before its pool, neap behind it. */
static int conv_bias(const struct exporting *e, int node, const struct neap__layer *layer)
{
	const struct neap__windows *w = &layer->conv_pool;
	struct neap__nir_array a;
	struct neap_param p;
	int any = 0;

	if (!w->size[0])
		return tensor(e, node, "bias", layer->bias, NULL);
	NEAP_TRY(neap_net_param(e->net, layer->bias, &p));
	for (int64_t i = 0; i < p.count; i++)
		any |= element(&p, i) != 0;
	if (any && (w->pad[0] || w->pad[1]))
		return neap__fail(NEAP_EUSAGE,
			"layer%d has conv_pool_pad and a bias. NIR adds the bias before the pool, "
			"whose windows at the border have fewer units. Train without "
			"conv_pool_pad",
			layer->index);
	NEAP_TRY(make_array(&a, 1, p.count, 0));
	for (int64_t i = 0; i < p.count; i++)
		a.data[i] = share(element(&p, i),
			w->by == NEAP__POOL_SUM ? (double)w->size[0] * w->size[1] : 1);
	int rc = neap__nir_set(e->graph, node, "bias", &a);
	free(a.data);
	return rc;
}

static int conv_node(struct exporting *e, const struct neap__layer *layer)
{
	const struct neap__plane in = neap__pooled_plane(layer);
	const int size[] = {in.height, in.width};
	int node;

	if (layer->wide)
		return neap__fail(NEAP_EUSAGE,
			"layer%d has conv_pooling=max, which NIR cannot express: it has sums and "
			"averages. Train with conv_pooling=sum or conv_pooling=avg",
			layer->index);
	if (layer->is_recurrent)
		return neap__fail(NEAP_EUSAGE,
			"layer%d is a convolution with recurrent connections, which no node of NIR "
			"has",
			layer->index);
	NEAP_TRY(node = follow(e, layer, "weight", NEAP__NIR_CONV2D));
	NEAP_TRY(kernels(e, node, layer));
	NEAP_TRY(conv_bias(e, node, layer));
	NEAP_TRY(whole(e, node, "input_shape", 2, size));
	NEAP_TRY(whole(e, node, "stride", 2, layer->stride));
	NEAP_TRY(whole(e, node, "padding", 2, layer->pad));
	NEAP_TRY(whole(e, node, "dilation", 2, layer->dilation));
	NEAP_TRY(whole(e, node, "groups", 1, &layer->groups));
	return layer->conv_pool.size[0] ? windows_node(e, layer, "sums_pool", &layer->conv_pool)
					: 0;
}

/* Weights of all pairs of units; an image that arrives is made a row first. */
static int affine_node(struct exporting *e, const struct neap__layer *layer)
{
	static const int first = 0, last = -1;
	int is_image = neap__from_conv(layer) || layer->pool.size[0], node;
	const struct neap__plane in = layer->pool.size[0]      ? neap__pooled_plane(layer)
				      : neap__from_conv(layer) ? neap__source_of(layer, 0)->plane
							       : (struct neap__plane){0};
	const int size[] = {in.channels, in.height, in.width};

	if (is_image) {
		NEAP_TRY(node = follow(e, layer, "flatten", NEAP__NIR_FLATTEN));
		NEAP_TRY(whole(e, node, "start_dim", 1, &first));
		NEAP_TRY(whole(e, node, "end_dim", 1, &last));
		NEAP_TRY(whole(e, node, "input_type", 3, size));
	}
	NEAP_TRY(node = follow(e, layer, "weight", NEAP__NIR_AFFINE));
	NEAP_TRY(tensor(e, node, "weight", layer->weight, neap__from_conv(layer) ? &in : NULL));
	return tensor(e, node, "bias", layer->bias, NULL);
}

static int add_recurrent(const struct exporting *e, const struct neap__layer *layer)
{
	int cell = e->cell[layer->index], other;

	if (!layer->is_recurrent)
		return 0;
	NEAP_TRY(other = add(e, layer, "recurrent", NEAP__NIR_LINEAR));
	NEAP_TRY(tensor(e, other, "weight", layer->recurrent, NULL));
	NEAP_TRY(neap__nir_add_edge(e->graph, cell, other));
	return neap__nir_add_edge(e->graph, other, cell);
}

static int source_node(const struct exporting *e, const struct neap__layer *layer, int source)
{
	int from = layer->source[source].layer;
	return from < 0 ? e->input : e->cell[from];
}

/* Marks what paths from layer `at` (-1: the inputs) reach without layer `missing`. */
static void reach(const struct neap_net *net, int at, int missing, unsigned char *found)
{
	for (int l = 0; l < net->nlayers; l++)
		for (int k = 0; k < net->layers[l].nsources; k++)
			if (net->layers[l].source[k].layer == at && l != missing && !found[l]) {
				found[l] = 1;
				reach(net, l, missing, found);
			}
}

/* In a graph, only what all paths from the Input pass is seen by layers below it one step later. */
static int check_back(const struct exporting *e, const struct neap__layer *layer, int source)
{
	unsigned char *found = calloc((size_t)e->net->nlayers, 1);
	int from = layer->source[source].layer;

	if (!found)
		return neap__fail_errno(ENOMEM, "network");
	reach(e->net, -1, layer->index, found);
	int is_open = found[from];
	free(found);
	return is_open ? neap__fail(NEAP_EUSAGE,
				 "layer%d receives layer%d, which the inputs also reach without "
				 "layer%d. NIR does not define that such a connection is one step "
				 "late",
				 layer->index, from, layer->index)
		       : 0;
}

/* Weights from one of several sources of a layer, behind it; the first has the bias. */
static int join_node(struct exporting *e, const struct neap__layer *layer, int source)
{
	static const int first = 0, last = -1;
	const struct neap__layer_source *s = &layer->source[source];
	const struct neap__layer *from = neap__source_of(layer, source);
	const struct neap__plane *units = from ? plane_of(from) : NULL;
	const struct neap__plane *image =
		!from && neap__has_filter(&e->net->layers[0]) ? &e->net->layers[0].from : units;
	int n = from ? from->n : e->net->options.inputs, node;
	char flat[24], late[24], weight[24];

	neap__print(flat, sizeof flat, "flatten%d", source);
	neap__print(late, sizeof late, "delay%d", source);
	neap__print(weight, sizeof weight, source ? "weight%d" : "weight", source);
	if (s->is_back)
		NEAP_TRY(check_back(e, layer, source));
	e->before = source_node(e, layer, source);
	int steps = s->is_delayed ? layer->delays.most : s->late;
	if (steps && !s->is_back) {
		NEAP_TRY(node = follow(e, layer, late, NEAP__NIR_DELAY));
		NEAP_TRY(row(e, node, "delay", n, steps * e->net->options.dt, units));
	}
	if (image) {
		const int size[] = {image->channels, image->height, image->width};
		NEAP_TRY(node = follow(e, layer, flat, NEAP__NIR_FLATTEN));
		NEAP_TRY(whole(e, node, "start_dim", 1, &first));
		NEAP_TRY(whole(e, node, "end_dim", 1, &last));
		NEAP_TRY(whole(e, node, "input_type", 3, size));
	}
	NEAP_TRY(node = follow(e, layer, weight, source ? NEAP__NIR_LINEAR : NEAP__NIR_AFFINE));
	NEAP_TRY(tensor_rows(e, node, "weight", layer->weight, s->row, s->row + n, units));
	if (!source)
		NEAP_TRY(tensor(e, node, "bias", layer->bias, NULL));
	return neap__nir_add_edge(e->graph, node, e->cell[layer->index]);
}

static int join_nodes(struct exporting *e, const struct neap__layer *layer)
{
	for (int k = 0; k < layer->nsources; k++)
		NEAP_TRY(join_node(e, layer, k));
	return add_recurrent(e, layer);
}

static int layer_nodes(struct exporting *e, const struct neap__layer *layer)
{
	int weight, cell, other;

	if (layer->cell->traits & NEAP__HAS_THRESHOLD)
		NEAP_TRY(check_reset(e, layer));
	if (layer->delays.tensor >= 0)
		return neap__fail(NEAP_EUSAGE,
			"layer %d has a delay per unit, delay=%d..%d, which the "
			"export to NIR does not support; train with one delay for all units, such "
			"as delay=%d",
			layer->index, layer->delays.least, layer->delays.most, layer->delays.most);
	if (layer->nsources > 1)
		return join_nodes(e, layer);
	int delay = layer->delays.most ? layer->delays.most : layer->source[0].late;
	e->before = source_node(e, layer, 0);
	if (delay) {
		NEAP_TRY(other = follow(e, layer, "delay", NEAP__NIR_DELAY));
		NEAP_TRY(row(e, other, "delay", layer->below, delay * e->net->options.dt,
			neap__from_conv(layer) ? &neap__source_of(layer, 0)->plane : NULL));
	}
	if (layer->pool.size[0])
		NEAP_TRY(pool_node(e, layer));
	NEAP_TRY(layer->conv[0] ? conv_node(e, layer) : affine_node(e, layer));
	weight = e->before;
	cell = e->cell[layer->index];
	NEAP_TRY(neap__nir_add_edge(e->graph, weight, cell));
	return add_recurrent(e, layer);
}

/* Logits of decays, which time constants give back but for their last bits. */
static int leak_meta(const struct exporting *e)
{
	struct neap__nir_array a;
	struct neap_param p;

	for (int i = 0; i < neap_net_params(e->net); i++) {
		NEAP_TRY(neap_net_param(e->net, i, &p));
		if (!p.is_leak)
			continue;
		if (e->graph->metas >= NEAP__NIR_META)
			return neap__fail(NEAP_EUSAGE,
				"the network has more than %d learned time constants, the limit of "
				"the export",
				NEAP__NIR_META);
		NEAP_TRY(make_array(&a, 1, p.columns, 0));
		a.is_single = p.precision == NEAP_FLOAT;
		for (int64_t k = 0; k < p.count; k++)
			a.data[k] = element(&p, k);
		int rc = neap__nir_add_numbers(e->graph, p.name, &a);
		free(a.data);
		NEAP_TRY(rc);
	}
	return 0;
}

/* Writes the settings of the net, whose weights and biases have taken up its norms. */
static int settings_meta(const struct exporting *e, const char *key, const char *settings)
{
	static const char norm[] = ":norm=batch";
	char *text = strdup(settings);

	if (!text)
		return neap__fail_errno(ENOMEM, "network");
	for (char *at; (at = strstr(text, norm));)
		memmove(at, at + sizeof norm - 1, strlen(at + sizeof norm - 1) + 1);
	int rc = neap__nir_add_text(e->graph, key, text);
	free(text);
	return rc;
}

static int metadata(const struct exporting *e, const struct neap__safetensors *file)
{
	double dt = e->net->options.dt;
	const struct neap__nir_array a = {.count = 1, .data = &dt};

	NEAP_TRY(neap__nir_add_numbers(e->graph, "dt", &a));
	NEAP_TRY(leak_meta(e));
	for (int i = 0; i < file->pairs; i++)
		if (strncmp(file->pair[i].key, "neap.", 5) == 0 &&
			e->graph->metas < NEAP__NIR_META &&
			strcmp(file->pair[i].key, "neap.settings") != 0)
			NEAP_TRY(settings_meta(e, file->pair[i].key, file->pair[i].value));
	return 0;
}

static int make_graph(struct exporting *e, const struct neap__safetensors *file)
{
	const struct neap_net *net = e->net;
	int end;

	NEAP_TRY(e->input = neap__nir_add_node(e->graph, "input", NEAP__NIR_INPUT));
	const struct neap__plane *from = &net->layers[0].from;
	const int shape[] = {from->channels, from->height, from->width};
	if (neap__has_filter(&net->layers[0]))
		NEAP_TRY(whole(e, e->input, "shape", 3, shape));
	else
		NEAP_TRY(row(e, e->input, "shape", 1, net->options.inputs, NULL));
	for (int l = 0; l < net->nlayers; l++) {
		NEAP_TRY(check_cell(&net->layers[l]));
		NEAP_TRY(e->cell[l] = cell_node(e, &net->layers[l]));
	}
	for (int l = 0; l < net->nlayers; l++)
		NEAP_TRY(layer_nodes(e, &net->layers[l]));
	NEAP_TRY(end = neap__nir_add_node(e->graph, "output", NEAP__NIR_OUTPUT));
	NEAP_TRY(row(e, end, "shape", 1, net->options.classes, NULL));
	NEAP_TRY(neap__nir_add_edge(e->graph, e->cell[net->nlayers - 1], end));
	return metadata(e, file);
}

int neap__nir_model_graph(struct neap__nir_graph *graph, const struct neap_net *net,
	const struct neap__safetensors *file, int strict, struct neap__text *lost)
{
	struct exporting e = {.graph = graph,
		.net = net,
		.lost = lost,
		.strict = strict,
		.cell = calloc((size_t)net->nlayers, sizeof *e.cell)};

	*graph = (struct neap__nir_graph){0};
	int rc = e.cell ? make_graph(&e, file) : neap__fail_errno(ENOMEM, "network");
	free(e.cell);
	return rc;
}

/* Makes the graph of the file and writes it. */
static int export_file(const struct neap__safetensors *file, const struct neap_export_options *o)
{
	struct neap__nir_graph graph = {0};
	struct neap__text lost = {0};
	struct neap_net_options options;
	struct neap_net *net;
	int64_t max_steps;

	NEAP_TRY(neap__model_open(&net, &options, &max_steps, file, 1, NULL, 0));
	neap__norm_fold(net);
	int rc = neap__nir_model_graph(&graph, net, file, !o->metadata, &lost);
	if (rc == 0)
		rc = neap__nir_write(&graph, o->nir);
	if (rc == 0 && lost.length && o->say)
		o->say(o->user, lost.data);
	neap__text_free(&lost);
	neap__nir_free(&graph);
	neap_net_free(net);
	return rc;
}

int neap_export(const struct neap_export_options *options)
{
	NEAP_NEED(options);
	struct neap__safetensors file = {0};
	struct neap_export_options o;

	NEAP_TRY(neap__struct_take(&o, sizeof o, options, "neap_export_options"));
	if (!o.model || !*o.model || !o.nir || !*o.nir)
		return neap__fail(NEAP_EUSAGE, "a model and a file to write are required");
	NEAP_TRY(neap__model_file_read(&file, o.model, NULL));
	int rc = export_file(&file, &o);
	neap__safetensors_free(&file);
	return rc < 0 && rc != -ENOSPC ? neap__fail_in(rc, "%s: ", o.model) : rc;
}
