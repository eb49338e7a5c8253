/* SPDX-License-Identifier: Apache-2.0 */
/* nir_order.c: paths between nodes with a state (nir_order.h). */
#include "train/nir/nir_order.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* More nodes than a net has layers, which bounds the time for paths that go round. */
enum { NODES_MOST = 1000 };

/* Edges between nodes of the order and its ends, by their source. */
struct paths {
	const struct neap__nir_sums *sums;
	int *start;	      /* [nodes + 1] the first edge from a node */
	int *to;	      /* [edges] */
	unsigned char *back;  /* [edges] it closes a cycle */
	unsigned char *found; /* [nodes] */
	int *next;	      /* [nodes] those to go on from */
};

static int refuse(const struct neap__nir_sums *s, int node, const char *what)
{
	return neap__fail(
		NEAP_EFORMAT, "'%s': node '%.80s' %s", s->path, s->graph->node[node].name, what);
}

/* Marks the nodes that paths from `from` reach without `missing`. */
static void reach(const struct paths *p, int from, int missing)
{
	int count = 0;

	memset(p->found, 0, (size_t)p->sums->graph->nodes);
	p->next[count++] = from;
	while (count > 0) {
		int at = p->next[--count];
		for (int e = p->start[at]; e < p->start[at + 1]; e++) {
			int to = p->to[e];
			if (to == missing || p->found[to])
				continue;
			p->found[to] = 1;
			p->next[count++] = to;
		}
	}
}

/* Lists the edges by their source (a counting sort). */
static void list_edges(struct paths *p)
{
	const struct neap__nir_sums *s = p->sums;
	int nodes = s->graph->nodes;

	for (int i = 0; i < nodes; i++)
		for (int k = 0; k < s->sum[i].terms; k++)
			p->start[s->sum[i].term[k].source + 1]++;
	for (int i = 0; i < nodes; i++) {
		p->start[i + 1] += p->start[i];
		p->next[i] = p->start[i];
	}
	for (int i = 0; i < nodes; i++)
		for (int k = 0; k < s->sum[i].terms; k++)
			p->to[p->next[s->sum[i].term[k].source]++] = i;
}

/* Finds the edges that close a cycle: without their end, no path from the Input leads to them. */
static void find_backs(const struct paths *p, const struct neap__nir_order *order)
{
	for (int i = 0; i < order->nodes; i++) {
		int node = order->node[i];
		reach(p, order->input, node);
		for (int k = 0; k < order->nodes; k++)
			for (int e = p->start[order->node[k]]; e < p->start[order->node[k] + 1];
				e++)
				if (p->to[e] == node && !p->found[order->node[k]])
					p->back[e] = 1;
	}
}

static int paths_make(struct paths *p, const struct neap__nir_sums *sums)
{
	size_t n = (size_t)sums->graph->nodes + 1, edges = 1;

	for (int i = 0; i < sums->graph->nodes; i++)
		edges += (size_t)sums->sum[i].terms;
	*p = (struct paths){.sums = sums,
		.start = calloc(n, sizeof *p->start),
		.to = calloc(edges, sizeof *p->to),
		.back = calloc(edges, 1),
		.found = calloc(n, 1),
		.next = calloc(n, sizeof *p->next)};
	if (!p->start || !p->to || !p->back || !p->found || !p->next)
		return neap__fail_errno(ENOMEM, "'%s'", sums->path);
	list_edges(p);
	return 0;
}

static void paths_free(struct paths *p)
{
	free(p->start);
	free(p->to);
	free(p->back);
	free(p->found);
	free(p->next);
}

/* All nodes with a state lie on paths from Input to Output. */
static int check_paths(const struct paths *p, const struct neap__nir_order *order)
{
	reach(p, order->input, -1);
	for (int i = 0; i < order->nodes; i++)
		if (!p->found[order->node[i]])
			return refuse(p->sums, order->node[i],
				"receives nothing from the Input, except through itself");
	for (int i = 0; i < order->nodes; i++) {
		reach(p, order->node[i], -1);
		if (!p->found[order->output])
			return refuse(p->sums, order->node[i], "is not connected to the Output");
	}
	return 0;
}

/* 1: a node waits for a node that has no place yet, but for edges that close a cycle. */
static int waits(const struct paths *p, const struct neap__nir_order *order, int node, int placed)
{
	for (int i = placed; i < order->nodes; i++)
		for (int e = p->start[order->node[i]]; e < p->start[order->node[i] + 1]; e++)
			if (p->to[e] == node && !p->back[e])
				return 1;
	return 0;
}

/* Moves the node at `from` to `to`, before it. */
static void move_up(struct neap__nir_order *order, int from, int to)
{
	int node = order->node[from];

	for (int i = from; i > to; i--) {
		order->node[i] = order->node[i - 1];
		order->place[order->node[i]] = i;
	}
	order->node[to] = node;
	order->place[node] = to;
}

static int sort(const struct paths *p, struct neap__nir_order *order)
{
	for (int placed = 0; placed < order->nodes; placed++) {
		int at = placed;
		while (at < order->nodes && waits(p, order, order->node[at], placed))
			at++;
		if (at == order->nodes)
			return refuse(p->sums, order->node[placed],
				"is part of a cycle that the Input enters at several nodes, so "
				"that the "
				"graph does not define which of them is one step late. neap "
				"supports "
				"cycles that all paths from the Input enter at the same node");
		move_up(order, at, placed);
	}
	return 0;
}

int neap__nir_order_make(struct neap__nir_order *order, const struct neap__nir_sums *s)
{
	const struct neap__nir_graph *g = s->graph;
	size_t n = (size_t)g->nodes + 1;
	struct paths paths;

	*order = (struct neap__nir_order){.node = calloc(n, sizeof *order->node),
		.place = calloc(n, sizeof *order->place),
		.input = -1,
		.output = -1};
	int rc = paths_make(&paths, s);
	if (rc == 0 && (!order->node || !order->place))
		rc = neap__fail_errno(ENOMEM, "'%s'", s->path);
	for (int i = 0; rc == 0 && i < g->nodes; i++) {
		order->place[i] = -1;
		if (g->node[i].type == NEAP__NIR_INPUT && !g->node[i].inner)
			order->input = i;
		else if (g->node[i].type == NEAP__NIR_OUTPUT && !g->node[i].inner)
			order->output = i;
		else if (neap__nir_is_source(&g->node[i])) {
			order->place[i] = order->nodes;
			order->node[order->nodes++] = i;
		}
	}
	if (rc == 0 && order->nodes > NODES_MOST)
		rc = neap__fail(NEAP_EFORMAT,
			"'%s': %d nodes with a state are more than the limit of %d", s->path,
			order->nodes, NODES_MOST);
	if (rc == 0)
		rc = check_paths(&paths, order);
	if (rc == 0)
		find_backs(&paths, order);
	if (rc == 0)
		rc = sort(&paths, order);
	paths_free(&paths);
	return rc;
}

void neap__nir_order_free(struct neap__nir_order *order)
{
	free(order->node);
	free(order->place);
	*order = (struct neap__nir_order){0};
}

int neap__nir_is_back(const struct neap__nir_order *order, int from, int to)
{
	return from != order->input && to != order->output && order->place[from] > order->place[to];
}
