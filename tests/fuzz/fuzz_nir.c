/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_nir.c: graphs in NIR. The first byte says whether the rest makes a graph, of any types,
 * sizes and edges, or edits the texts and rows of a sound file. A graph that is accepted is a net.
 */
#include "fuzz_files.h"
#include "data/nir/nir_graph.h"
#include "train/model.h"
#include "train/nir/nir_model.h"

#include <string.h>

#define REGIONS 64

static struct fuzz_region regions[REGIONS];
static int nregions;
static uint8_t *sound;
static size_t sound_bytes;

static double number(struct fuzz_bytes *b)
{
	static const double odd[] = {
		0, 1, -1, 1e-3, 1e-4, 2e-4, 1e30, -1e-30, 1e300, 0.5, 10, 65536};
	unsigned v = fuzz_next(b);
	return v < 128 ? v / 64.0 - 0.5 : odd[v % (sizeof odd / sizeof odd[0])];
}

/* Numbers of some shape, or the shape that fits `n` and `m` more often than not. */
static void fill(struct neap__nir_graph *graph, int node, const char *param, int n, int m,
	struct fuzz_bytes *b)
{
	unsigned shape = fuzz_next(b);
	int matrix = strcmp(param, "weight") == 0;
	double data[64];
	struct neap__nir_array a = {.dims = matrix ? 2 : 1, .size = {n, m}, .data = data};

	if (matrix && shape % 16 > 10 && shape % 16 < 14) { /* of a convolution */
		a.dims = shape % 2 ? 4 : 3;
		a.size[0] = n;
		a.size[1] = 1 + shape / 128;
		a.size[2] = 1 + shape / 64 % 2;
		a.size[3] = 1 + shape / 32 % 2;
	}
	if (shape % 16 == 15)
		a.dims = (int)(shape / 16 % 3);
	if (shape % 16 == 14)
		a.size[0] = shape / 16 % 8;
	a.is_single = shape % 2;
	a.count = 1;
	for (int i = 0; i < a.dims; i++)
		a.count *= a.size[i];
	for (int64_t i = 0; i < a.count; i++)
		data[i] = number(b);
	if (strcmp(param, "shape") == 0 && shape % 16 < 12) {
		a.count = a.size[0] = 1;
		data[0] = n;
	}
	if (strcmp(param, "shape") == 0 && shape % 16 == 12) {
		a.count = a.size[0] = 3;
		data[0] = 1 + shape / 128;
		data[1] = 1 + shape / 64 % 2;
		data[2] = n;
	}
	FUZZ_CHECK(neap__nir_set(graph, node, param, &a) == 0, "%s", neap_detail());
}

static void make_graph(struct neap__nir_graph *graph, struct fuzz_bytes *b)
{
	static const int sizes[] = {1, 2, 3, 4, 4, 4, 8, 4};
	int nodes = 2 + (int)(fuzz_next(b) % 8), n = sizes[fuzz_next(b) % 8];
	char part[16], name[16];
	int optional;

	for (int i = 0; i < nodes; i++) {
		int type = i == 0	    ? NEAP__NIR_INPUT
			   : i == nodes - 1 ? NEAP__NIR_OUTPUT
					    : (int)(fuzz_next(b) % NEAP__NIR_TYPES);
		int m = fuzz_next(b) % 4 ? n : sizes[fuzz_next(b) % 8];
		snprintf(name, sizeof name, "n%d", i);
		FUZZ_CHECK(neap__nir_add_node(graph, name, (enum neap__nir_type)type) == i, "node");
		graph->node[i].inner = i > 0 && i < nodes - 1;
		for (int p = 0;
			neap__nir_param_name(part, (enum neap__nir_type)type, p, &optional) == 0;
			p++)
			if (!optional || fuzz_next(b) % 2)
				fill(graph, i, part, n, m, b);
		if (i > 0)
			FUZZ_CHECK(neap__nir_add_edge(graph, i - 1, i) == 0, "edge");
	}
	for (unsigned more = fuzz_next(b) % 6; more > 0; more--) {
		unsigned edge = fuzz_next(b);
		FUZZ_CHECK(neap__nir_add_edge(graph, (int)(edge % (unsigned)nodes),
				   (int)(edge / 16 % (unsigned)nodes)) == 0,
			"edge");
	}
	if (fuzz_next(b) % 4 == 0) {
		static const char *const nets[] = {"{}", "[]", "{\"net\":\"lif:4,li\"}"};
		double dt = number(b);
		const struct neap__nir_array a = {.count = 1, .data = &dt};
		neap__nir_add_numbers(graph, "dt", &a);
		neap__nir_add_text(graph, "neap.net", nets[fuzz_next(b) % 3]);
	}
}

/* A file with every type of node, as neap exports a net. */
static void make_file(const char *path)
{
	struct neap_net_options o = NEAP_NET_OPTIONS_INIT;
	struct neap__nir_graph graph;
	struct neap__safetensors none = {0};
	struct neap__text lost = {0};
	struct neap_net *net;

	o.spec = "lif:conv=2:channels=2:shape=2x3x3:reset=hard,"
		 "cubalif:4r:pool=2:reset=hard:delay=1,li";
	o.inputs = 18;
	o.classes = 2;
	o.threads = 1;
	FUZZ_CHECK(neap_net_create(&net, &o) == 0, "%s", neap_detail());
	FUZZ_CHECK(neap__nir_model_graph(&graph, net, &none, 1, &lost) == 0, "%s", neap_detail());
	FUZZ_CHECK(neap__nir_write(&graph, path) == 0, "%s", neap_detail());
	neap__nir_free(&graph);
	neap_net_free(net);
}

/* What is accepted is a net: its file opens as any model does. */
static void check(int rc, struct neap__safetensors *file)
{
	struct neap_net_options options;
	struct neap_net *net;
	int64_t max_steps;

	fuzz_line(rc);
	if (rc < 0)
		return;
	rc = neap__model_open(&net, &options, &max_steps, file, 1, NULL, 0);
	FUZZ_CHECK(rc == 0, "%s", neap_detail());
	neap_net_free(net);
	neap__safetensors_free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_bytes b = {data, size};
	unsigned mode = fuzz_next(&b);
	struct neap__safetensors file;
	struct neap__nir_graph graph = {0};
	const struct neap__nir_hints hints = {.dt = mode & 2 ? 1e-3 : 0};

	if (mode & 1) {
		make_graph(&graph, &b);
		check(neap__nir_model_of(&file, &graph, "graph", &hints), &file);
		neap__nir_free(&graph);
		return 0;
	}
	const char *path = fuzz_path("net.nir");
	if (!sound) {
		make_file(path);
		sound = fuzz_read(path, &sound_bytes);
		nregions = fuzz_heaps(sound, sound_bytes, regions, REGIONS);
		FUZZ_CHECK(nregions > 8, "%d regions", nregions);
	}
	uint8_t *copy = malloc(sound_bytes);
	FUZZ_CHECK(copy, "no memory");
	memcpy(copy, sound, sound_bytes);
	fuzz_edit(copy, regions, nregions, b.at, b.left);
	fuzz_write(path, copy, sound_bytes);
	free(copy);
	check(neap__nir_model_read(&file, path, &hints), &file);
	return 0;
}
