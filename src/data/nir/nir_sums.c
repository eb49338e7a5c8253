/* SPDX-License-Identifier: Apache-2.0 */
/* nir_sums.c: products along the edges between sources (nir_sums.h). */
#include "data/nir/nir_sums.h"
#include "data/nir/nir_sizes.h"
#include "base/checked.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	ONE_TO_ONE_MOST = 4096, /* units; a layer of neap's needs all n x n weights */
	DELAYS_MOST = 16	/* different ones of a node */
};
/* Numbers that products may take in all: so many for each of the file's, and some more. */
#define ROOM_EACH 16
#define LEAST_ROOM 1e8
#define PRODUCT_MOST 4e9 /* multiplications of weights with weights */

enum { NEW, BUSY, DONE };

static int no_memory(const struct neap__nir_sums *s)
{
	return neap__fail_errno(ENOMEM, "'%s'", s->path);
}

/* A zeroed matrix or row; NULL without memory, or where products are larger than a file's due. */
static double *numbers(struct neap__nir_sums *s, int64_t rows, int64_t columns)
{
	size_t count, bytes;

	s->left -= (double)rows * (double)columns;
	if (s->left < 0 || neap__mul_size(&count, (size_t)rows, (size_t)columns) < 0 ||
		neap__mul_size(&bytes, count, sizeof(double)) < 0 || bytes > PTRDIFF_MAX)
		return NULL;
	return calloc(count ? count : 1, sizeof(double));
}

int neap__nir_is_source(const struct neap__nir_node *node)
{
	switch (node->type) {
	case NEAP__NIR_INPUT:
		return !node->inner;
	case NEAP__NIR_LI:
	case NEAP__NIR_IF:
	case NEAP__NIR_LIF:
	case NEAP__NIR_CUBALIF:
	case NEAP__NIR_CUBALI:
	case NEAP__NIR_I:
	case NEAP__NIR_THRESHOLD:
		return 1;
	default:
		return 0;
	}
}

static void free_term(struct neap__nir_term *term)
{
	free(term->weight);
	free(term->scale);
}

static void free_sum(struct neap__nir_sum *sum)
{
	for (int i = 0; i < sum->terms; i++)
		free_term(&sum->term[i]);
	free(sum->term);
	free(sum->bias);
	*sum = (struct neap__nir_sum){0};
}

/* Writes the weights of a term that is one to one as a matrix. 0, NEAP_EFORMAT or -ENOMEM. */
static int fill_term(struct neap__nir_sums *s, struct neap__nir_term *term)
{
	if (term->weight)
		return 0;
	if (term->columns > ONE_TO_ONE_MOST)
		return neap__nir_refuse(s, term->source,
			"is connected one to one: neap stores all n x n weights and supports at "
			"most 4096 units there");
	term->weight = numbers(s, term->columns, term->columns);
	if (!term->weight)
		return no_memory(s);
	for (int64_t i = 0; i < term->columns; i++)
		term->weight[i * term->columns + i] = 1;
	return 0;
}

/* sum += term, whose weights it takes. */
static int add_term(struct neap__nir_sums *s, struct neap__nir_sum *sum, struct neap__nir_term term)
{
	for (int i = 0; i < sum->terms; i++) {
		struct neap__nir_term *own = &sum->term[i];
		if (own->source != term.source || own->delay != term.delay)
			continue;
		if (own->pool || own->conv || term.pool || term.conv) {
			free_term(&term);
			return neap__nir_refuse(s, term.source,
				"reaches a node by two ways, one of them through a convolution or "
				"a pool; neap supports one");
		}
		int rc = fill_term(s, own);
		if (rc == 0)
			rc = fill_term(s, &term);
		for (int64_t k = 0; rc == 0 && k < sum->n * own->columns; k++)
			own->weight[k] += term.weight[k];
		free(term.weight);
		return rc;
	}
	struct neap__nir_term *more = realloc(sum->term, ((size_t)sum->terms + 1) * sizeof *more);
	if (!more) {
		free_term(&term);
		return no_memory(s);
	}
	sum->term = more;
	sum->term[sum->terms++] = term;
	return 0;
}

static int add_bias(struct neap__nir_sums *s, struct neap__nir_sum *sum, const double *bias)
{
	if (!bias)
		return 0;
	if (!sum->bias && !(sum->bias = numbers(s, sum->n, 1)))
		return no_memory(s);
	for (int64_t i = 0; i < sum->n; i++)
		sum->bias[i] += bias[i];
	return 0;
}

/* Copies the factors of a term's channels, times what a Scale node (NULL: none) multiplies by. */
static int pass_scale(struct neap__nir_sums *s, int node, const struct neap__nir_term *from,
	const struct neap__nir_array *by, struct neap__nir_term *to)
{
	int64_t channels = from->conv ? from->conv->to.channels : 0;

	to->scale = NULL;
	if (!from->scale && !by)
		return 0;
	if (!(to->scale = numbers(s, channels, 1)))
		return no_memory(s);
	int64_t area = s->size[node] / channels;
	for (int64_t c = 0; c < channels; c++) {
		double factor = !by ? 1 : by->data[by->count > 1 ? c * area : 0];
		for (int64_t i = 1; by && by->count > 1 && i < area; i++)
			if (by->data[c * area + i] != factor) {
				free(to->scale);
				to->scale = NULL;
				return neap__nir_refuse(s, node,
					"follows a convolution, but its factors differ between "
					"units of a channel; neap shares the weights of a channel");
			}
		to->scale[c] = (from->scale ? from->scale[c] : 1) * factor;
	}
	return 0;
}

/* A copy of a term behind a convolution or a pool, which only what pools may be before. */
static int pass_filter(struct neap__nir_sums *s, int node, const struct neap__nir_term *from,
	struct neap__nir_term *to)
{
	const struct neap__nir_filter *filter = &s->filter[node];

	*to = *from;
	to->weight = to->scale = NULL;
	if (from->weight)
		return neap__nir_refuse(s, node,
			"follows weights; neap supports a convolution or a pool only after the "
			"Input or a node with a state");
	if (filter->is_pool ? from->behind || (from->pool && !from->conv) : from->conv != NULL)
		return neap__nir_refuse(s, node,
			filter->is_pool ? "follows another pool; neap supports one before and one "
					  "behind a convolution"
					: "follows another convolution; neap supports it only "
					  "after the Input or a node with a state, with at most a "
					  "pool between");
	to->columns = s->size[node];
	if (!filter->is_pool) {
		to->conv = filter;
		return 0;
	}
	*(from->conv ? &to->behind : &to->pool) = filter;
	return pass_scale(s, node, from, NULL, to);
}

/* Row `i` of n x m weights times those of a term (NULL: one to one). */
static void multiply_row(double *row, int64_t i, const struct neap__nir_array *w, int64_t m,
	const struct neap__nir_term *from)
{
	int64_t columns = from->columns;

	if (!from->weight) {
		memcpy(row, w->data + i * columns, (size_t)columns * sizeof *row);
		return;
	}
	for (int64_t k = 0; k < m; k++) {
		double factor = w->data[i * m + k];
		const double *in = from->weight + k * columns;
		for (int64_t j = 0; factor != 0 && j < columns; j++)
			row[j] += factor * in[j];
	}
}

/* Row `i` of a term behind factors of each unit, one of all or none (1). */
static void scale_row(double *row, int64_t i, const struct neap__nir_array *scale,
	const struct neap__nir_term *from)
{
	double factor = scale->data ? scale->data[scale->count > 1 ? i : 0] : 1;

	if (!from->weight)
		row[i] = factor;
	for (int64_t j = 0; from->weight && j < from->columns; j++)
		row[j] = factor * from->weight[i * from->columns + j];
}

/* A copy of a term behind n x m weights (NULL: none) or behind factors of each unit (NULL: 1). */
static int pass_term(struct neap__nir_sums *s, int node, const struct neap__nir_term *from,
	int64_t m, struct neap__nir_term *to)
{
	const struct neap__nir_node *n = &s->graph->node[node];
	const struct neap__nir_array *w = neap__nir_param(n, "weight");
	const struct neap__nir_array *scale = neap__nir_param(n, "scale");
	int64_t rows = s->size[node], columns = from->columns;

	if (neap__nir_is_filter(n->type))
		return pass_filter(s, node, from, to);
	*to = *from;
	to->weight = to->scale = NULL;
	if (w->data && from->conv)
		return neap__nir_refuse(s, node,
			"follows a convolution; neap supports only a pool, a Scale or a node with "
			"a state there");
	if (from->conv)
		return pass_scale(s, node, from, scale->data ? scale : NULL, to);
	if (!w->data && !scale->data && !from->weight)
		return 0;
	if (w->data && from->weight && (double)rows * (double)m * (double)columns > PRODUCT_MOST)
		return neap__nir_refuse(s, node,
			"follows other weights, and their product is too large to compute");
	if (scale->data && !from->weight && columns > ONE_TO_ONE_MOST)
		return neap__nir_refuse(s, node,
			"scales more than 4096 units one to one, which neap does not support");
	to->weight = numbers(s, rows, columns);
	if (!to->weight)
		return no_memory(s);
	for (int64_t i = 0; i < rows; i++) {
		double *row = to->weight + i * columns;
		if (w->data)
			multiply_row(row, i, w, m, from);
		else
			scale_row(row, i, scale, from);
	}
	return 0;
}

/*
 * The bias behind a pool: one of all units of a channel times those of each window, where they are
 * equal, so that what an export divides comes back with the same bits.
 */
static void pool_bias(const struct neap__nir_filter *f, const double *in, double *out)
{
	for (int64_t i = 0; i < neap__nir_image_size(&f->to); i++) {
		int64_t c = i / (f->to.height * f->to.width), y = i / f->to.width % f->to.height;
		int64_t top = y * f->stride[0] - f->pad[0];
		int64_t left = i % f->to.width * f->stride[1] - f->pad[1];
		double sum = 0, first = 0, count = 0, area = (double)f->kernel[0] * f->kernel[1];
		int differ = 0;
		for (int64_t k = top > 0 ? top : 0; k < top + f->kernel[0] && k < f->from.height;
			k++)
			for (int64_t j = left > 0 ? left : 0;
				j < left + f->kernel[1] && j < f->from.width; j++) {
				double b = in[(c * f->from.height + k) * f->from.width + j];
				first = count == 0 ? b : first;
				differ |= b != first;
				sum += b;
				count++;
			}
		if (!differ)
			sum = first * count;
		out[i] = !f->is_average ? sum : !differ && count == area ? first : sum / area;
	}
}

/* The bias that leaves a node; *out from malloc, NULL: 0. */
static int pass_bias(
	struct neap__nir_sums *s, int node, const struct neap__nir_sum *in, double **out)
{
	const struct neap__nir_node *n = &s->graph->node[node];
	const struct neap__nir_array *w = neap__nir_param(n, "weight");
	const struct neap__nir_array *scale = neap__nir_param(n, "scale");
	const struct neap__nir_array *bias = neap__nir_param(n, "bias");

	*out = NULL;
	if (!in->bias && !bias->data)
		return 0;
	if (in->bias && neap__nir_is_filter(n->type) && !s->filter[node].is_pool)
		return neap__nir_refuse(s, node,
			"follows a bias; neap supports it only after a node with a "
			"state");
	if (!(*out = numbers(s, s->size[node], 1)))
		return no_memory(s);
	if (neap__nir_is_filter(n->type) && s->filter[node].is_pool) {
		pool_bias(&s->filter[node], in->bias, *out);
		return 0;
	}
	for (int64_t i = 0; neap__nir_is_filter(n->type) && i < s->size[node]; i++)
		(*out)[i] = bias->data[i / (s->size[node] / bias->count)];
	if (neap__nir_is_filter(n->type))
		return 0;
	for (int64_t i = 0; i < s->size[node]; i++) {
		double sum = 0;
		for (int64_t k = 0; w->data && in->bias && k < in->n; k++)
			sum += w->data[i * in->n + k] * in->bias[k];
		if (!w->data && in->bias)
			sum = in->bias[i] *
			      (scale->data ? scale->data[scale->count > 1 ? i : 0] : 1);
		(*out)[i] = sum + (bias->data ? bias->data[i] : 0);
	}
	return 0;
}

/* The delays of a node are 0 or more; behind one that is more, nothing shows at first. */
static int check_delays(const struct neap__nir_sums *s, int node, const double *bias)
{
	const struct neap__nir_array *a = neap__nir_param(&s->graph->node[node], "delay");

	for (int64_t i = 0; i < a->count; i++) {
		if (!(a->data[i] >= 0))
			return neap__nir_refuse(s, node, "has a negative delay");
		for (int64_t k = 0; bias && a->data[i] > 0 && k < s->size[node]; k++)
			if (bias[k] != 0 && (a->count == 1 || k == i))
				return neap__nir_refuse(s, node,
					"delays a bias, which neap adds in every step. Put the "
					"Delay "
					"before the weights");
	}
	return 0;
}

/* sum += a term behind a Delay: of each delay that its units have, one with these units. */
static int add_delayed(struct neap__nir_sums *s, int node, struct neap__nir_sum *sum,
	const struct neap__nir_term *in, int64_t n)
{
	const struct neap__nir_array *a = neap__nir_param(&s->graph->node[node], "delay");
	int differ = 0, found = 0;

	for (int64_t i = 1; i < a->count; i++)
		differ |= a->data[i] != a->data[0];
	if (differ && (in->conv || in->pool))
		return neap__nir_refuse(s, node,
			"delays the units of a convolution or a pool by different times, which "
			"neap "
			"does not support");
	for (int64_t i = 0; i < (differ ? a->count : 1); i++) {
		struct neap__nir_term term;
		int known = 0;
		for (int64_t k = 0; differ && k < i; k++)
			known |= a->data[k] == a->data[i];
		if (known)
			continue;
		if (++found > DELAYS_MOST)
			return neap__nir_refuse(s, node, "has more than 16 different delays");
		NEAP_TRY(pass_term(s, node, in, n, &term));
		int rc = differ ? fill_term(s, &term) : 0;
		for (int64_t k = 0; rc == 0 && differ && k < s->size[node]; k++)
			if (a->data[k] != a->data[i])
				memset(term.weight + k * term.columns, 0,
					(size_t)term.columns * sizeof *term.weight);
		if (rc < 0) {
			free_term(&term);
			return rc;
		}
		term.delay += a->count ? a->data[i] : 0;
		NEAP_TRY(add_term(s, sum, term));
	}
	return 0;
}

static int make_sum(struct neap__nir_sums *s, int node);

/* sum += what leaves a node. */
static int add_output(struct neap__nir_sums *s, int node, struct neap__nir_sum *sum)
{
	double *bias;

	if (neap__nir_is_source(&s->graph->node[node]))
		return add_term(
			s, sum, (struct neap__nir_term){.source = node, .columns = s->size[node]});
	if (s->graph->node[node].type == NEAP__NIR_OUTPUT && !s->graph->node[node].inner)
		return neap__nir_refuse(
			s, node, "is the Output of the graph, but has outgoing edges");
	NEAP_TRY(make_sum(s, node));
	const struct neap__nir_sum *in = &s->sum[node];
	NEAP_TRY(pass_bias(s, node, in, &bias));
	int rc = check_delays(s, node, bias);
	if (rc == 0)
		rc = add_bias(s, sum, bias);
	free(bias);
	for (int i = 0; rc == 0 && i < in->terms; i++)
		rc = add_delayed(s, node, sum, &in->term[i], in->n);
	return rc;
}

/* Fills in s->sum[node], once. */
static int make_sum(struct neap__nir_sums *s, int node)
{
	const struct neap__nir_graph *g = s->graph;
	const struct neap__nir_array *w = neap__nir_param(&g->node[node], "weight");

	if (s->state[node] == DONE)
		return 0;
	if (s->state[node] == BUSY)
		return neap__nir_refuse(
			s, node, "is part of a cycle without a node that has a state, such as LIF");
	s->state[node] = BUSY;
	s->sum[node].n = neap__nir_is_filter(g->node[node].type)
				 ? neap__nir_image_size(&s->filter[node].from)
			 : w->data ? w->size[1]
				   : s->size[node];
	for (int e = 0; e < g->edges; e++)
		if (g->edge[e].to == node)
			NEAP_TRY(add_output(s, g->edge[e].from, &s->sum[node]));
	s->state[node] = DONE;
	return 0;
}

int neap__nir_sums_make(
	struct neap__nir_sums *s, const struct neap__nir_graph *graph, const char *path)
{
	size_t n = (size_t)graph->nodes + 1;

	*s = (struct neap__nir_sums){.graph = graph,
		.path = path,
		.size = calloc(n, sizeof *s->size),
		.sum = calloc(n, sizeof *s->sum),
		.state = calloc(n, 1),
		.image = calloc(n, sizeof *s->image),
		.filter = calloc(n, sizeof *s->filter)};
	if (!s->size || !s->sum || !s->state || !s->image || !s->filter)
		return no_memory(s);
	NEAP_TRY(neap__nir_sizes(s));
	s->left = LEAST_ROOM;
	for (int i = 0; i < graph->nodes; i++)
		for (int p = 0; p < NEAP__NIR_PARAMS; p++)
			s->left += ROOM_EACH * (double)graph->node[i].param[p].count;
	for (int i = 0; i < graph->nodes; i++) {
		const struct neap__nir_node *node = &graph->node[i];
		int last = node->type == NEAP__NIR_OUTPUT && !node->inner;
		if (last || (neap__nir_is_source(node) && node->type != NEAP__NIR_INPUT))
			NEAP_TRY(make_sum(s, i));
	}
	return 0;
}

void neap__nir_sums_free(struct neap__nir_sums *s)
{
	for (int i = 0; s->sum && i < s->graph->nodes; i++)
		free_sum(&s->sum[i]);
	free(s->size);
	free(s->sum);
	free(s->state);
	free(s->image);
	free(s->filter);
	*s = (struct neap__nir_sums){0};
}
