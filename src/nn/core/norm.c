/* SPDX-License-Identifier: Apache-2.0 */
/* norm.c: weights of a batch, and sums of its products (norm.h). */
#include "nn/core/norm.h"

#include <math.h>

static double number(const struct neap_net *net, int tensor, int i)
{
	return (double)((const real *)net->tensors[tensor].data)[i];
}

void neap__norm_begin(struct neap_net *net, const struct neap__layer *layer)
{
	const struct neap__norm *norm = &layer->norm;
	const struct neap__param *t = &net->tensors[layer->weight];
	const real *w = t->data;
	real *to = (real *)(uintptr_t)t->in_use, *bias = layer->biases;

	for (int c = 0; c < norm->channels; c++) {
		double spread = sqrt(number(net, norm->variance, c) + NEAP__NORM_EPSILON);
		norm->factor[c] = number(net, norm->scale, c) / spread;
		bias[c] = (real)(number(net, layer->bias, c) -
				 norm->factor[c] * number(net, norm->mean, c));
	}
	for (int i = norm->channels; i < layer->n; i++)
		bias[i] = bias[i - norm->channels];
	for (int64_t row = 0; row < t->rows; row++) {
		const double *factor = norm->factor + neap__norm_channel(layer, row);
		int64_t first = t->row_start ? t->row_start[row] : row * t->columns;
		int64_t end = t->row_start ? t->row_start[row + 1] : first + t->columns;
		for (int64_t k = first; k < end; k++)
			to[k] = (real)(factor[t->column ? t->column[k] : k - first] * (double)w[k]);
	}
}

void neap__norm_count(const struct neap__at *at, const real *x)
{
	const struct neap__norm *norm = &at->layer->norm;
	double *sum = at->group->grads->total[norm->mean];
	double *square = at->group->grads->total[norm->variance];

	for (const real *end = x + neap__products_of(at->layer); x < end; x += norm->channels)
		for (int c = 0; c < norm->channels; c++) {
			double v = (double)x[c];
			sum[c] += v;
			square[c] += v * v;
		}
}
