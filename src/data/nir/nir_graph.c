/* SPDX-License-Identifier: Apache-2.0 */
/* nir_graph.c: the table of types, and graphs in memory (nir_graph.h). */
#include "data/nir/nir_graph.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name, *params;
} types[] = {
#define NEAP__X(name, text, params) {text, params},
	NEAP__NIR_TYPE_TABLE(NEAP__X)
#undef NEAP__X
};

const char *neap__nir_type_name(enum neap__nir_type type)
{
	return types[type].name;
}

int neap__nir_param_name(char room[16], enum neap__nir_type type, int index, int *optional)
{
	const char *at = types[type].params;

	for (; *at && index > 0; index--) {
		at += strcspn(at, " ");
		at += *at == ' ';
	}
	size_t n = strcspn(at, " ");
	if (n == 0)
		return -1;
	*optional = at[n - 1] == '?';
	n -= (size_t)*optional;
	memcpy(room, at, n);
	room[n] = '\0';
	return 0;
}

static int param_index(enum neap__nir_type type, const char *name)
{
	char room[16];
	int optional;

	for (int i = 0; neap__nir_param_name(room, type, i, &optional) == 0; i++)
		if (strcmp(room, name) == 0)
			return i;
	return -1;
}

void neap__nir_free(struct neap__nir_graph *graph)
{
	for (int i = 0; i < graph->nodes; i++) {
		free(graph->node[i].name);
		for (int p = 0; p < NEAP__NIR_PARAMS; p++)
			free(graph->node[i].param[p].data);
	}
	for (int i = 0; i < graph->metas; i++) {
		free(graph->meta[i].name);
		free(graph->meta[i].text);
		free(graph->meta[i].array.data);
	}
	free(graph->node);
	free(graph->edge);
	*graph = (struct neap__nir_graph){0};
}

const struct neap__nir_array *neap__nir_param(const struct neap__nir_node *node, const char *name)
{
	static const struct neap__nir_array none;
	int i = param_index(node->type, name);
	return i < 0 ? &none : &node->param[i];
}

const struct neap__nir_meta *neap__nir_meta(const struct neap__nir_graph *graph, const char *name)
{
	for (int i = 0; i < graph->metas; i++)
		if (strcmp(graph->meta[i].name, name) == 0)
			return &graph->meta[i];
	return NULL;
}

int neap__nir_add_node(struct neap__nir_graph *graph, const char *name, enum neap__nir_type type)
{
	char *copy = strdup(name);

	if (!copy || neap__grow(&graph->node, &graph->node_room, graph->nodes + 1,
			     sizeof *graph->node) < 0) {
		free(copy);
		return neap__fail_errno(ENOMEM, "node '%s'", name);
	}
	graph->node[graph->nodes] = (struct neap__nir_node){.name = copy, .type = type};
	return graph->nodes++;
}

int neap__nir_add_edge(struct neap__nir_graph *graph, int from, int to)
{
	if (neap__grow(&graph->edge, &graph->edge_room, graph->edges + 1, sizeof *graph->edge) < 0)
		return neap__fail_errno(ENOMEM, "%d edges", graph->edges);
	graph->edge[graph->edges++] = (struct neap__nir_edge){from, to};
	return 0;
}

static int copy_array(struct neap__nir_array *to, const struct neap__nir_array *from)
{
	size_t bytes;

	*to = *from;
	if (neap__mul_size(&bytes, (size_t)from->count, sizeof *to->data) < 0)
		return neap__fail(NEAP_EOVERFLOW, "%lld numbers", (long long)from->count);
	to->data = malloc(bytes ? bytes : 1);
	if (!to->data)
		return neap__fail_errno(ENOMEM, "%lld numbers", (long long)from->count);
	if (bytes)
		memcpy(to->data, from->data, bytes);
	return 0;
}

int neap__nir_set(struct neap__nir_graph *graph, int node, const char *param,
	const struct neap__nir_array *array)
{
	struct neap__nir_node *n = &graph->node[node];
	int i = param_index(n->type, param);

	if (i < 0)
		return neap__fail(NEAP_EUSAGE, "a node of type %s has no parameter %s",
			types[n->type].name, param);
	free(n->param[i].data);
	return copy_array(&n->param[i], array);
}

static struct neap__nir_meta *add_meta(struct neap__nir_graph *graph, const char *name)
{
	char *copy = graph->metas < NEAP__NIR_META ? strdup(name) : NULL;

	if (!copy)
		return NULL;
	graph->meta[graph->metas] = (struct neap__nir_meta){.name = copy};
	return &graph->meta[graph->metas++];
}

int neap__nir_add_text(struct neap__nir_graph *graph, const char *name, const char *text)
{
	struct neap__nir_meta *meta = add_meta(graph, name);

	if (!meta || !(meta->text = strdup(text)))
		return neap__fail_errno(ENOMEM, "metadata '%s'", name);
	return 0;
}

int neap__nir_add_numbers(
	struct neap__nir_graph *graph, const char *name, const struct neap__nir_array *array)
{
	struct neap__nir_meta *meta = add_meta(graph, name);

	return meta ? copy_array(&meta->array, array)
		    : neap__fail_errno(ENOMEM, "metadata '%s'", name);
}
