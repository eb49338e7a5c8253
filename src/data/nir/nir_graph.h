/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nir_graph.h: networks in NIR, the Neuromorphic Intermediate Representation (Pedersen and others
 * 2024), a graph of nodes in an HDF5 file. Graphs within graphs are flattened as they are read: a
 * node within has the name OUTER/INNER, and Input and Output nodes of inner graphs pass on what
 * enters. Nodes that neap's layers cannot be are refused by name.
 */
#ifndef NEAP_DATA_NIR_GRAPH_H
#define NEAP_DATA_NIR_GRAPH_H

#include <stddef.h>
#include <stdint.h>
#include <neap/status.h>

enum { NEAP__NIR_DIMS = 4, NEAP__NIR_PARAMS = 7, NEAP__NIR_META = 256 };

/*
 * Types of nodes, X(NAME, name in files, parameters): numbers of which those that may be missing
 * have a question mark. Units are seconds; r, v_leak and the like have those of the membrane.
 */
/* clang-format off */
#define NEAP__NIR_TYPE_TABLE(X) \
	X(INPUT, "Input", "shape") \
	X(OUTPUT, "Output", "shape") \
	X(AFFINE, "Affine", "weight bias") \
	X(LINEAR, "Linear", "weight") \
	X(SCALE, "Scale", "scale") \
	X(CONV1D, "Conv1d", "weight bias? stride? padding? dilation? groups? input_shape?") \
	X(CONV2D, "Conv2d", "weight bias? stride? padding? dilation? groups? input_shape?") \
	X(SUMPOOL, "SumPool2d", "kernel_size stride padding") \
	X(AVGPOOL, "AvgPool2d", "kernel_size stride padding") \
	X(FLATTEN, "Flatten", "start_dim? end_dim? input_type?") \
	X(DELAY, "Delay", "delay") \
	X(LI, "LI", "tau r v_leak") \
	X(IF, "IF", "r v_threshold v_reset?") \
	X(LIF, "LIF", "tau r v_leak v_threshold v_reset?") \
	X(CUBALIF, "CubaLIF", "tau_mem tau_syn r v_leak v_threshold v_reset? w_in?") \
	X(I, "I", "r") \
	X(THRESHOLD, "Threshold", "threshold") \
	X(CUBALI, "CubaLI", "tau_mem tau_syn r v_leak w_in?")
/* clang-format on */
enum neap__nir_type {
#define NEAP__X(name, text, params) NEAP__NIR_##name,
	NEAP__NIR_TYPE_TABLE(NEAP__X)
#undef NEAP__X
		NEAP__NIR_TYPES
};
const char *neap__nir_type_name(enum neap__nir_type type);
/* Copies the name of a parameter; returns 0, or -1 beyond the last. *optional: it may be missing.
 */
int neap__nir_param_name(char room[16], enum neap__nir_type type, int index, int *optional);

/* Numbers of a parameter; data NULL: it is missing. A scalar has no dimension. */
struct neap__nir_array {
	int dims;
	int64_t size[NEAP__NIR_DIMS], count;
	int is_single; /* 32 bits in the file */
	double *data;
};

struct neap__nir_node {
	char *name;
	enum neap__nir_type type;
	int inner; /* an Input or Output of an inner graph */
	struct neap__nir_array param[NEAP__NIR_PARAMS];
};

struct neap__nir_edge {
	int from, to;
};

/* A text beside the graph, or numbers. */
struct neap__nir_meta {
	char *name, *text; /* text NULL: numbers */
	struct neap__nir_array array;
};

/* {0} to begin with; the functions below own all that it points to. */
struct neap__nir_graph {
	struct neap__nir_node *node;
	struct neap__nir_edge *edge;
	struct neap__nir_meta meta[NEAP__NIR_META];
	int nodes, edges, metas;
	int64_t node_room, edge_room;
};
void neap__nir_free(struct neap__nir_graph *graph);

/* The parameter of a node by its name; an empty one where its type has none of the name. */
const struct neap__nir_array *neap__nir_param(const struct neap__nir_node *node, const char *name);
/* A text or numbers beside the graph; NULL where there is none. */
const struct neap__nir_meta *neap__nir_meta(const struct neap__nir_graph *graph, const char *name);

/* Add a node (its number), an edge, numbers of a node, a text or numbers beside the graph. */
int neap__nir_add_node(struct neap__nir_graph *graph, const char *name, enum neap__nir_type type);
int neap__nir_add_edge(struct neap__nir_graph *graph, int from, int to);
int neap__nir_set(struct neap__nir_graph *graph, int node, const char *param,
	const struct neap__nir_array *array); /* copied */
int neap__nir_add_text(struct neap__nir_graph *graph, const char *name, const char *text);
int neap__nir_add_numbers(
	struct neap__nir_graph *graph, const char *name, const struct neap__nir_array *array);

/* 1: the file begins as HDF5 does. */
int neap__nir_takes(const char *path);
/*
 * Reads and checks a file: sizes against what is stored, edges against nodes. 0, or NEAP_EFORMAT
 * with a line that names file and node.
 */
int neap__nir_read(struct neap__nir_graph *graph, const char *path);
/* Writes a file, whole or not at all. 0 or a negative code. */
int neap__nir_write(const struct neap__nir_graph *graph, const char *path);

#endif
