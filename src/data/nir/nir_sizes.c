/* SPDX-License-Identifier: Apache-2.0 */
/* nir_sizes.c: how many numbers leave each node, and which images they form (nir_sizes.h). */
#include "data/nir/nir_sizes.h"
#include "base/fail.h"

#include <errno.h>

enum { UNITS_MOST = 65536 }; /* of any node */

int neap__nir_refuse(const struct neap__nir_sums *s, int node, const char *what)
{
	return neap__fail(
		NEAP_EFORMAT, "'%s': node '%.80s' %s", s->path, s->graph->node[node].name, what);
}

/* Number of outputs that a node declares; 0: the same as its inputs; -1: refused. */
static int64_t own_size(const struct neap__nir_sums *s, int index)
{
	const struct neap__nir_node *node = &s->graph->node[index];
	const struct neap__nir_array *a = neap__nir_param(node, "weight");
	int64_t n = 1;

	for (int p = 0; p < NEAP__NIR_PARAMS; p++)
		if (node->param[p].data && node->param[p].count == 0)
			return neap__nir_refuse(s, index, "has an empty parameter"), -1;
	if (node->type == NEAP__NIR_AFFINE || node->type == NEAP__NIR_LINEAR) {
		if (a->dims != 2)
			return neap__nir_refuse(s, index, "has weights that are not a matrix"), -1;
		return a->size[0];
	}
	if (neap__nir_is_filter(node->type))
		return 0; /* by what enters */
	if (node->type == NEAP__NIR_INPUT || node->type == NEAP__NIR_OUTPUT) {
		a = neap__nir_param(node, "shape");
		for (int64_t i = 0; i < a->count; i++) {
			if (!(a->data[i] >= 1 && a->data[i] <= UNITS_MOST) ||
				(double)n * a->data[i] > UNITS_MOST)
				return neap__nir_refuse(s, index,
					       "has a shape of 0 or more than 65536 units"),
				       -1;
			n *= (int64_t)a->data[i];
		}
		return a->count ? n : 0;
	}
	for (int p = 0; p < NEAP__NIR_PARAMS; p++) {
		a = &node->param[p];
		if (node->type == NEAP__NIR_FLATTEN || a->count <= 1)
			continue;
		if (n > 1 && a->count != n)
			return neap__nir_refuse(s, index, "has parameters of different sizes"), -1;
		n = a->count;
	}
	return n > 1 ? n : 0;
}

/* 1: as many numbers leave a node as enter, in the same places. */
static int keeps_image(enum neap__nir_type type)
{
	return type != NEAP__NIR_AFFINE && type != NEAP__NIR_LINEAR && type != NEAP__NIR_FLATTEN;
}

/* Hands size and image on along an edge. 1: something changed; NEAP_EFORMAT. */
static int hand_on(struct neap__nir_sums *s, int from, int to)
{
	const struct neap__nir_node *node = &s->graph->node[to];
	struct neap__nir_image image = s->image[from];

	if (neap__nir_is_filter(node->type)) {
		if (!image.channels) {
			image = neap__nir_said_image(node);
			if (s->size[from] == 0 || neap__nir_image_size(&image) != s->size[from])
				image.channels = 0;
		}
		if (s->size[to] || !image.channels)
			return 0;
		const char *wrong = neap__nir_filter_make(&s->filter[to], node, image);
		if (wrong)
			return neap__nir_refuse(s, to, wrong);
		s->image[to] = s->filter[to].to;
		if (s->image[to].height > UNITS_MOST || s->image[to].width > UNITS_MOST ||
			neap__nir_image_size(&s->image[to]) > UNITS_MOST)
			return neap__nir_refuse(s, to, "has more than 65536 units");
		s->size[to] = neap__nir_image_size(&s->image[to]);
		return 1;
	}
	int changed = s->size[to] == 0 && s->size[from] != 0;
	if (changed)
		s->size[to] = s->size[from];
	if (keeps_image(node->type) && image.channels && !s->image[to].channels &&
		s->size[to] == s->size[from]) {
		s->image[to] = image;
		changed = 1;
	}
	return changed;
}

/* Checks that all nodes have sizes, of which an edge joins equal ones. */
static int check_graph_sizes(const struct neap__nir_sums *s)
{
	const struct neap__nir_graph *g = s->graph;

	for (int i = 0; i < g->nodes; i++) {
		const struct neap__nir_array *bias = neap__nir_param(&g->node[i], "bias");
		int is_filter = neap__nir_is_filter(g->node[i].type);
		if (s->size[i] == 0)
			return neap__nir_refuse(s, i,
				is_filter ? "needs the channels, height and width of its input, "
					    "which no node specifies"
					  : "has no size, and none of its inputs has one");
		if (bias->data && !is_filter && bias->count != s->size[i])
			return neap__nir_refuse(
				s, i, "has a bias of another size than its weights");
	}
	for (int e = 0; e < g->edges; e++) {
		int from = g->edge[e].from, to = g->edge[e].to;
		const struct neap__nir_array *w = neap__nir_param(&g->node[to], "weight");
		int64_t wants = neap__nir_is_filter(g->node[to].type)
					? neap__nir_image_size(&s->filter[to].from)
				: w->data ? w->size[1]
					  : s->size[to];
		if (s->size[from] != wants)
			return neap__fail(NEAP_EFORMAT,
				"'%s': %lld numbers leave node '%.80s', %lld may enter '%.80s'",
				s->path, (long long)s->size[from], g->node[from].name,
				(long long)wants, g->node[to].name);
	}
	return 0;
}

int neap__nir_sizes(struct neap__nir_sums *s)
{
	const struct neap__nir_graph *g = s->graph;
	int changed = 1;

	for (int i = 0; i < g->nodes; i++) {
		s->size[i] = own_size(s, i);
		if (s->size[i] < 0)
			return NEAP_EFORMAT;
		if (s->size[i] > UNITS_MOST)
			return neap__nir_refuse(s, i, "has more than 65536 units");
		if (g->node[i].type == NEAP__NIR_INPUT)
			s->image[i] = neap__nir_input_image(neap__nir_param(&g->node[i], "shape"));
	}
	while (changed) {
		changed = 0;
		for (int e = 0; e < g->edges; e++) {
			int handed = hand_on(s, g->edge[e].from, g->edge[e].to);
			NEAP_TRY(handed);
			changed |= handed;
		}
	}
	return check_graph_sizes(s);
}
