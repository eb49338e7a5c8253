/* SPDX-License-Identifier: Apache-2.0 */
/* group_sums.c: sums over groups, made by a tree for each chunk of gradients (group_sums.h). */
#include "nn/batch/group_sums.h"
#include "nn/batch/sum_tree.h"
#include "sys/pool.h"

enum { CHUNK = 8192 }; /* gradients that a thread adds up at a time: 64 KiB */

/* The sums of a row of input weights, of which a group has some: NULL where it has not. */
static double *row_of(const struct neap__grads *grads, int tensor, size_t row, size_t columns)
{
	int slot = grads->slot[row];

	if (slot >= grads->input_rows || grads->input[slot] != row)
		return NULL;
	return grads->total[tensor] + (size_t)slot * columns;
}

/* The tensor that has a gradient, or the padding before it; ntensors: that behind all. */
static int tensor_of(const struct neap_net *net, size_t at)
{
	int i = 0;
	while (i < net->ntensors && at >= net->tensors[i].offset + (size_t)net->tensors[i].count)
		i++;
	return i;
}

const double *neap__span_sum(struct neap_net *net, struct neap__sum_span *span, size_t to)
{
	int tensor = tensor_of(net, span->at);
	size_t end = tensor < net->ntensors ? net->tensors[tensor].offset : to;
	struct neap__sum_tree tree = {0};

	if (tensor == net->ntensors || span->at < end) { /* padding */
		span->count = (end < to ? end : to) - span->at;
		return NULL;
	}
	const struct neap__param *t = &net->tensors[tensor];
	size_t first = span->at - t->offset, columns = (size_t)t->columns, row = 0;
	int in_rows = net->grads->slot && tensor == net->layers[0].weight;
	end = t->offset + (size_t)t->count;
	if (in_rows) { /* one row of input weights */
		row = first / columns;
		first -= row * columns;
		end = t->offset + (row + 1) * columns;
	}
	span->count = (end < to ? end : to) - span->at;
	for (int g = span->first; g < span->first + span->leaves; g++) {
		const struct neap__grads *grads = &net->grads[g];
		double *sums = in_rows ? row_of(grads, tensor, row, columns) : grads->total[tensor];
		neap__sum_tree_add(
			&tree, sums ? sums + first : NULL, g - span->first, 1, span->count);
	}
	return neap__sum_tree_end(&tree, span->count);
}

/* Gradients begin at zero: a sum that is zero of either sign becomes the positive one. */
static void add_chunk(void *arg, int item, int thread)
{
	struct neap_net *net = arg;
	size_t from = (size_t)item * CHUNK;
	size_t to = from + CHUNK < net->elements ? from + CHUNK : net->elements;
	struct neap__sum_span span = {.leaves = net->ngrads, .at = from};
	double *grad = net->tensors[0].grad;

	(void)thread;
	for (; span.at < to; span.at += span.count) {
		const double *sum = neap__span_sum(net, &span, to);
		for (size_t i = 0; sum && i < span.count; i++)
			grad[span.at + i] += sum[i];
	}
}

void neap__gradient_sums(struct neap_net *net)
{
	neap__thread_pool_run(
		net->pool, (int)((net->elements + CHUNK - 1) / CHUNK), add_chunk, net);
}

double neap__unit_sum(const struct neap_net *net, int unit, int first, int leaves)
{
	struct neap__number_tree tree = {0};

	for (int g = 0, i = 0; g < first + leaves; g++) {
		const struct neap__grads *grads = &net->grads[g];
		double sum = 0;
		for (; i < net->ngroups && net->groups[i].grads == grads; i++)
			for (int s = 0; g >= first && s < net->groups[i].size;
				s += net->groups[i].per_part)
				sum += neap__unit_spikes(net, &net->groups[i], s)[unit];
		if (g >= first)
			neap__number_tree_add(&tree, sum, g - first, 1);
	}
	return neap__number_tree_end(&tree);
}
