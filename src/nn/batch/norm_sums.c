/* SPDX-License-Identifier: Apache-2.0 */
/* norm_sums.c: from the sums of a batch to gradients and statistics (norm_sums.h). */
#include "nn/batch/norm_sums.h"
#include "nn/batch/group_sums.h"
#include "nn/core/net_state.h"

#include <math.h>
#include <string.h>

/* The share of a batch in the running statistics, as in PyTorch. */
#define SHARE 0.1

static double number(const struct neap_net *net, int tensor, int64_t i)
{
	const void *data = net->tensors[tensor].data;
	return net->options.precision == NEAP_DOUBLE ? ((const double *)data)[i]
						     : (double)((const float *)data)[i];
}

static void set_number(const struct neap_net *net, int tensor, int64_t i, double v)
{
	void *data = net->tensors[tensor].data;

	if (net->options.precision == NEAP_DOUBLE)
		((double *)data)[i] = v;
	else
		((float *)data)[i] = (float)v;
}

/*
 * With k = g / sqrt(v + epsilon), G the gradient of k W and B that of the bias b - k m:
 *     dW = k G; dg = (sum of W G over the channel's weights - m B) / sqrt(v + epsilon); db = B
 */
static void turn_gradients(const struct neap_net *net, const struct neap__layer *layer)
{
	const struct neap__norm *norm = &layer->norm;
	const struct neap__param *t = &net->tensors[layer->weight];
	const double *bias = net->tensors[layer->bias].grad;
	double *grad = t->grad, *scale = net->tensors[norm->scale].grad;

	for (int c = 0; c < norm->channels; c++)
		scale[c] = -number(net, norm->mean, c) * bias[c];
	for (int64_t row = 0; row < t->rows; row++) {
		int channel = neap__norm_channel(layer, row);
		int64_t first = t->row_start ? t->row_start[row] : row * t->columns;
		int64_t end = t->row_start ? t->row_start[row + 1] : first + t->columns;
		for (int64_t k = first; k < end; k++) {
			int c = channel + (int)(t->column ? t->column[k] : k - first);
			scale[c] += number(net, layer->weight, k) * grad[k];
			grad[k] *= norm->factor[c];
		}
	}
	for (int c = 0; c < norm->channels; c++)
		scale[c] = net->tensors[norm->scale].is_frozen
				   ? 0
				   : scale[c] / sqrt(number(net, norm->variance, c) +
							NEAP__NORM_EPSILON);
}

/* The sums of k x and of its square, to mean and variance of x; of channels that k stops: kept. */
static void take_statistics(const struct neap_net *net, struct neap__layer *layer)
{
	struct neap__norm *norm = &layer->norm;
	double *sum = net->tensors[norm->mean].grad, *square = net->tensors[norm->variance].grad;
	double count = (double)net->whole_steps * (neap__products_of(layer) / norm->channels);

	norm->has_found = count > 0;
	for (int c = 0; c < norm->channels; c++) {
		double k = norm->factor[c], mean = sum[c] / (count * k);
		double variance = square[c] / (count * k * k) - mean * mean;
		int known = k != 0 && isfinite(mean) && isfinite(variance);
		norm->found[0][c] = known ? mean : number(net, norm->mean, c);
		norm->found[1][c] = known ? fmax(variance, 0) : number(net, norm->variance, c);
		sum[c] = square[c] = 0;
	}
}

void neap__norm_end(struct neap_net *net)
{
	for (int l = 0; l < net->nlayers && net->has_norm; l++) {
		struct neap__layer *layer = &net->layers[l];
		if (!layer->norm.kind)
			continue;
		turn_gradients(net, layer);
		take_statistics(net, layer);
	}
}

void neap__norm_find(struct neap_net *net)
{
	neap__gradient_sums(net);
	neap__norm_end(net);
}

void neap__norm_move(struct neap_net *net)
{
	for (int l = 0; l < net->nlayers && net->has_norm; l++) {
		struct neap__norm *norm = &net->layers[l].norm;
		if (!norm->kind || !norm->has_found ||
			net->tensors[net->layers[l].weight].is_frozen)
			continue;
		const int tensors[] = {norm->mean, norm->variance};
		for (int i = 0; i < 2; i++)
			for (int c = 0; c < norm->channels; c++) {
				double v = number(net, tensors[i], c);
				set_number(net, tensors[i], c, v + SHARE * (norm->found[i][c] - v));
			}
		norm->has_found = 0;
	}
}

void neap__norm_fold(struct neap_net *net)
{
	for (int l = 0; l < net->nlayers; l++) {
		struct neap__layer *layer = &net->layers[l];
		struct neap__param *w = &net->tensors[layer->weight];
		if (!layer->norm.kind)
			continue;
		net->ops->bias(net, layer);
		memcpy(w->data, w->in_use, (size_t)w->count * net->ops->real);
		memcpy(net->tensors[layer->bias].data, layer->biases,
			(size_t)layer->norm.channels * net->ops->real);
		layer->norm.kind = NEAP__NORM_NONE;
	}
	net->has_norm = 0;
}

void neap__norm_start(struct neap_net *net, int layer)
{
	struct neap__norm *norm = &net->layers[layer].norm;
	double sum = 0;

	for (int c = 0; c < norm->channels; c++)
		sum += norm->found[1][c];
	if (!norm->has_found || !(sum > 0))
		return;
	for (int c = 0; c < norm->channels; c++) {
		set_number(net, norm->mean, c, norm->found[0][c]);
		set_number(net, norm->variance, c, norm->found[1][c]);
		set_number(net, norm->scale, c, sqrt(sum / norm->channels));
	}
	norm->has_found = 0;
}
