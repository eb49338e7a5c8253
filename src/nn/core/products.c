/* SPDX-License-Identifier: Apache-2.0 */
/* products.c: cuts the samples of a product into runs of dense and of listed ones (products.h). */
#include "nn/core/products.h"

/* How many samples from the first on list all rows, or where full is 0 do not. */
static int run_of(const struct neap__sample_rows *samples, int count, int rows, int full)
{
	int n = 0;
	while (n < count && (samples[n].count == rows) == full)
		n++;
	return n;
}

/* A dense product with a tensor's weights in strips, of samples that have all rows. */
static void multiply(const struct neap_net *net, const struct neap__sample_rows *samples, int count,
	int tensor, const struct neap__strips *m)
{
	if (net->tensors[tensor].is_rounded) {
		struct neap__pairs pairs = {(const void *)m->w, m->rows, m->columns};
		net->kernels->bf16->product(&pairs, samples, count);
		return;
	}
	net->kernels->product(m, samples, count);
}

void neap__products_add(const struct neap_net *net, struct neap__sample_rows *samples, int count,
	int tensor, int row)
{
	struct neap__matrix m = neap__weights(net, tensor, row);
	int rows = (int)net->tensors[tensor].rows;
	struct neap__strips s = {net->strips[tensor], rows, m.columns};

	for (int n, full = s.w != NULL; count > 0; samples += n, count -= n, full = !full) {
		n = s.w ? run_of(samples, count, rows, full) : count;
		if (n && full)
			multiply(net, samples, n, tensor, &s);
		else if (n)
			neap__rows(net->kernels, &m)->add(&m, samples, n);
	}
}

void neap__products_dot(const struct neap_net *net, struct neap__sample_rows *samples, int count,
	int tensor, int row)
{
	struct neap__matrix m = neap__weights(net, tensor, row);
	int rows = (int)net->tensors[tensor].rows;
	struct neap__strips s = {net->turned[tensor], m.columns, rows};

	for (int n, full = s.w != NULL; count > 0; samples += n, count -= n, full = !full) {
		n = s.w ? run_of(samples, count, rows, full) : count;
		for (int i = 0; i < n && full; i++)
			samples[i].v = samples[i].in;
		if (n && full)
			multiply(net, samples, n, tensor, &s);
		else if (n)
			neap__rows(net->kernels, &m)->dot(&m, samples, n);
	}
}

/* The weights of a tensor whose products round them. */
static void fill_rounded(const struct neap_net *net, int tensor)
{
	const struct neap__param *t = &net->tensors[tensor];
	int strip = net->kernels->bf16->columns;

	if (net->strips[tensor])
		neap__bf16_pack(
			net->strips[tensor], t->in_use, (int)t->rows, (int)t->columns, strip);
	if (net->turned[tensor])
		neap__bf16_pack_turned(
			net->turned[tensor], t->in_use, (int)t->rows, (int)t->columns, strip);
}

void neap__strips_fill(struct neap_net *net)
{
	int strip = net->kernels->product_columns;

	for (int i = 0; i < net->ntensors; i++) {
		const struct neap__param *t = &net->tensors[i];
		if (t->is_rounded) {
			fill_rounded(net, i);
			continue;
		}
		if (net->strips[i])
			neap__pack(net->strips[i], t->in_use, (int)t->rows, (int)t->columns, strip);
		if (net->turned[i])
			neap__pack_turned(
				net->turned[i], t->in_use, (int)t->rows, (int)t->columns, strip);
	}
}
