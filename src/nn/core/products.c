/* SPDX-License-Identifier: Apache-2.0 */
/* products.c: cuts the samples of a product into runs of dense and of listed ones (products.h). */
#include "nn/core/products.h"
#include "kern/tiles/tiles.h"

#include <string.h>

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
	if (net->tensors[tensor].planes) {
		struct neap__planes planes = neap__planes_of(
			(const void *)m->w, m->rows, m->columns, net->tensors[tensor].planes);
		net->tile_ops->product(&planes, samples, count);
		return;
	}
	if (net->tensors[tensor].is_rounded) {
		struct neap__pairs pairs = {(const void *)m->w, m->rows, m->columns};
		net->kernels->bf16->product(&pairs, samples, count);
		return;
	}
	net->kernels->product(m, samples, count);
}

enum {
	TILE = 16,	  /* samples of a tile */
	TILE_UNITS = 512, /* gradients at a time: 32 KiB of stack (chosen) */
	PLANES = NEAP__TILE_PLANES
};

/*
 * Takes up to TILE samples whose lists name at least so many eighths of the rows; those that come
 * before are moved to *rest. Returns how many were taken; *samples and *count are what is left.
 */
static int take_dense(struct neap__sample_rows *taken, struct neap__sample_rows **samples,
	int *count, struct neap__sample_rows *rest, int *nrest, int rows, int eighths)
{
	int n = 0;

	for (; *count > 0 && n < TILE; (*samples)++, (*count)--)
		if (!(*samples)->v && (int64_t)(*samples)->count * 8 >= (int64_t)rows * eighths)
			taken[n++] = **samples;
		else
			rest[(*nrest)++] = **samples;
	return n;
}

/* Products with lists of spikes: those of many spikes in tiles, the others row by row. */
static void add_spikes(const struct neap_net *net, struct neap__sample_rows *samples, int count,
	int tensor, const struct neap__matrix *m)
{
	int rows = (int)net->tensors[tensor].rows, nrest = 0;
	struct neap__sample_rows taken[TILE], *rest = samples;
	struct neap__planes planes = neap__planes_of(net->strips[tensor], rows, m->columns, PLANES);

	for (int n;
		(n = take_dense(taken, &samples, &count, rest, &nrest, rows, NEAP__ADD_EIGHTHS));)
		net->tile_ops->product(&planes, taken, n);
	if (nrest)
		neap__rows(net->kernels, m)->add(m, rest, nrest);
}

/* Gradients of many units of up to TILE samples: of all units, of which those listed are added. */
static void dot_dense(
	const struct neap_net *net, const struct neap__sample_rows *samples, int count, int tensor)
{
	int rows = (int)net->tensors[tensor].rows, done[TILE] = {0};
	int terms = (int)net->tensors[tensor].columns;
	struct neap__planes m = neap__planes_of(net->turned[tensor], terms, rows, PLANES);
	struct neap__sample_rows all[TILE];
	real out[TILE][TILE_UNITS];

	for (int from = 0; from < rows; from += TILE_UNITS) {
		int units = rows - from < TILE_UNITS ? rows - from : TILE_UNITS;
		struct neap__planes part = neap__planes_part(&m, from, units);
		for (int s = 0; s < count; s++) {
			memset(out[s], 0, (size_t)units * sizeof(real));
			all[s] = (struct neap__sample_rows){
				.v = samples[s].in, .count = terms, .out = out[s]};
		}
		net->tile_ops->product(&part, all, count);
		for (int s = 0; s < count; s++)
			for (int *k = &done[s];
				*k < samples[s].count && samples[s].id[*k] < from + units; ++*k)
				samples[s].out[*k] += out[s][samples[s].id[*k] - from];
	}
}

/* The same of gradients: `v` is NULL in all samples. */
static void dot_support(const struct neap_net *net, struct neap__sample_rows *samples, int count,
	int tensor, const struct neap__matrix *m)
{
	int rows = (int)net->tensors[tensor].rows, nrest = 0;
	struct neap__sample_rows taken[TILE], *rest = samples;

	for (int n;
		(n = take_dense(taken, &samples, &count, rest, &nrest, rows, NEAP__DOT_EIGHTHS));)
		dot_dense(net, taken, n, tensor);
	if (nrest)
		neap__rows(net->kernels, m)->dot(m, rest, nrest);
}

void neap__products_add(const struct neap_net *net, struct neap__sample_rows *samples, int count,
	int tensor, int row)
{
	struct neap__matrix m = neap__weights(net, tensor, row);
	int rows = (int)net->tensors[tensor].rows;
	struct neap__strips s = {net->strips[tensor], rows, m.columns};

	if (net->tensors[tensor].planes == PLANES) {
		add_spikes(net, samples, count, tensor, &m);
		return;
	}
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

	if (net->tensors[tensor].planes == PLANES && s.w) {
		dot_support(net, samples, count, tensor, &m);
		return;
	}
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

/* The weights of a tensor whose products are computed in tiles. */
static void fill_planes(const struct neap_net *net, int tensor)
{
	const struct neap__param *t = &net->tensors[tensor];
	int rows = (int)t->rows, columns = (int)t->columns;

	if (net->strips[tensor])
		neap__planes_pack(net->strips[tensor], t->in_use, rows, columns, t->planes);
	if (net->turned[tensor])
		neap__planes_pack_turned(net->turned[tensor], t->in_use, rows, columns, t->planes);
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
		if (t->planes) {
			fill_planes(net, i);
			continue;
		}
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
