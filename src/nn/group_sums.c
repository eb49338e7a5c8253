/* SPDX-License-Identifier: Apache-2.0 */
/* group_sums.c: sums over groups, made by a tree for each chunk of gradients (group_sums.h). */
#include "nn/group_sums.h"
#include "nn/sum_tree.h"
#include "sys/pool.h"

enum { CHUNK = 8192 }; /* gradients that a thread adds up at a time: 64 KiB */

/* Adds a row to gradients that begin at zero; a zero of either sign becomes the positive one. */
static void add_row(double *grad, const double *row, size_t count)
{
	for (size_t i = 0; row && i < count; i++)
		grad[i] += row[i];
}

/* Adds numbers [from, to) of the sums of a tensor. */
static void add_sums(struct neap_net *net, int tensor, size_t from, size_t to)
{
	struct neap__sum_tree tree = {0};

	for (int g = 0; g < net->ngrads; g++)
		neap__sum_tree_add(&tree, net->grads[g].total[tensor] + from, g, 1, to - from);
	add_row(net->tensors[tensor].grad + from, neap__sum_tree_end(&tree, to - from), to - from);
}

/* The sums of a row of input weights, of which a group has some: NULL where it has not. */
static double *row_of(const struct neap__grads *grads, int tensor, size_t row, size_t columns)
{
	int slot = grads->slot[row];

	if (slot >= grads->input_rows || grads->input[slot] != row)
		return NULL;
	return grads->total[tensor] + (size_t)slot * columns;
}

/* The same as add_sums for input weights of which groups have some rows. */
static void add_rows(struct neap_net *net, int tensor, size_t from, size_t to)
{
	const struct neap__param *t = &net->tensors[tensor];
	size_t columns = (size_t)t->columns;

	for (size_t row = from / columns, at = from; at < to; row++) {
		size_t end = (row + 1) * columns < to ? (row + 1) * columns : to;
		size_t first = at - row * columns;
		struct neap__sum_tree tree = {0};
		for (int g = 0; g < net->ngrads; g++) {
			double *sums = row_of(&net->grads[g], tensor, row, columns);
			neap__sum_tree_add(&tree, sums ? sums + first : NULL, g, 1, end - at);
		}
		add_row(t->grad + at, neap__sum_tree_end(&tree, end - at), end - at);
		at = end;
	}
}

static void add_chunk(void *arg, int item, int thread)
{
	struct neap_net *net = arg;
	size_t from = (size_t)item * CHUNK, to = from + CHUNK;

	(void)thread;
	for (int i = 0; i < net->ntensors; i++) {
		const struct neap__param *t = &net->tensors[i];
		size_t begin = t->offset, end = begin + (size_t)t->count;
		begin = begin > from ? begin : from;
		end = end < to ? end : to;
		if (begin >= end)
			continue;
		if (net->grads->slot && i == net->layers[0].weight)
			add_rows(net, i, begin - t->offset, end - t->offset);
		else
			add_sums(net, i, begin - t->offset, end - t->offset);
	}
}

void neap__gradient_sums(struct neap_net *net)
{
	neap__thread_pool_run(
		net->pool, (int)((net->elements + CHUNK - 1) / CHUNK), add_chunk, net);
}

double neap__unit_sum(const struct neap_net *net, int unit)
{
	struct neap__number_tree tree = {0};
	const struct neap__group *group = net->groups;

	for (int g = 0; g < net->ngrads; g++) {
		double sum = 0;
		for (; group < net->groups + net->ngroups && group->grads == &net->grads[g]; group++)
			sum += group->spikes[unit];
		neap__number_tree_add(&tree, sum, g, 1);
	}
	return neap__number_tree_end(&tree);
}
