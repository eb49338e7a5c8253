/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of graphs in NIR: what is written is read back; cut short anywhere, with bytes changed,
 * with hostile sizes or with nodes that no layer can be, they are refused with one line.
 */
#include "train/runs.h"
#include "data/nir/nir_graph.h"
#include "sys/atomic_file.h"
#include "sys/child_trial.h"
#include "base/text.h"
#include "train/model.h"
#include "train/nir/nir_model.h"
#include "train/settings.h"

#include <neap/data.h>

static struct neap_net_options options_of(const char *spec)
{
	struct neap_net_options o = NEAP_NET_OPTIONS_INIT;
	o.spec = spec;
	o.inputs = 5;
	o.classes = 3;
	o.threads = 1;
	o.precision = NEAP_DOUBLE;
	return o;
}

static struct neap_net *make_net(const char *spec)
{
	struct neap_net_options o = options_of(spec);
	struct neap_net *net;
	if (neap_net_create(&net, &o) < 0)
		fail_msg("%s", neap_detail());
	return net;
}

static void graph_of(struct neap__nir_graph *graph, const char *spec)
{
	const struct neap__safetensors none = {0};
	struct neap__text lost = {0};
	struct neap_net *net = make_net(spec);
	assert_int_equal(neap__nir_model_graph(graph, net, &none, 1, &lost), 0);
	assert_null(lost.data);
	neap_net_free(net);
}

#define NET "lif:6r:reset=hard,cubalif:4:reset=hard:delay=1:learn=tau,li"

static void there_and_back(void **state)
{
	struct neap__nir_graph graph, back;

	(void)state;
	graph_of(&graph, NET);
	assert_int_equal(neap__nir_write(&graph, in_folder("net.nir")), 0);
	assert_int_equal(neap__nir_takes(in_folder("net.nir")), 1);
	assert_int_equal(neap__nir_read(&back, in_folder("net.nir")), 0);
	assert_int_equal(back.nodes, graph.nodes);
	assert_int_equal(back.edges, graph.edges);
	assert_int_equal(back.metas, graph.metas);
	for (int i = 0; i < graph.nodes; i++) {
		const struct neap__nir_node *a = &graph.node[i], *b = NULL;
		for (int k = 0; k < back.nodes; k++) /* HDF5 has its own order */
			if (strcmp(back.node[k].name, a->name) == 0)
				b = &back.node[k];
		assert_non_null(b);
		assert_int_equal(a->type, b->type);
		for (int p = 0; p < NEAP__NIR_PARAMS; p++) {
			assert_int_equal(a->param[p].count, b->param[p].count);
			assert_int_equal(a->param[p].dims, b->param[p].dims);
			if (a->param[p].count)
				assert_memory_equal(a->param[p].data, b->param[p].data,
					(size_t)a->param[p].count * sizeof(double));
		}
	}
	/* The same graph makes the same bytes. */
	assert_int_equal(neap__nir_write(&graph, in_folder("again.nir")), 0);
	same_files("net.nir", "again.nir");
	neap__nir_free(&graph);
	neap__nir_free(&back);
}

static int trial(void (*fn)(void *arg), void *arg)
{
	return neap__child_trial(fn, arg, 10, NULL);
}

/* Opens a file of these bytes; what is refused has one line. */
static int opens(const char *data, size_t bytes)
{
	const struct neap__nir_hints hints = {.dt = 1e-3};
	struct neap__safetensors file;
	FILE *f = fopen(in_folder("cut.nir"), "w");

	assert_int_equal(fwrite(data, 1, bytes, f), bytes);
	fclose(f);
	int rc = neap__nir_model_read(&file, in_folder("cut.nir"), &hints);
	if (rc == 0)
		neap__safetensors_free(&file);
	else
		assert_true(*neap_detail() && !strchr(neap_detail(), '\n'));
	return rc;
}

/* Cut short anywhere, and with each byte of the structures changed. */
static void damaged(void **state)
{
	struct neap__nir_graph graph;
	char *data;
	size_t bytes;
	int refused = 0, tried = 0;

	(void)state;
	neap_data_set_trial(trial);
	graph_of(&graph, "lif:3:reset=hard,li");
	assert_int_equal(neap__nir_write(&graph, in_folder("sound.nir")), 0);
	neap__nir_free(&graph);
	assert_int_equal(neap__read_file(&data, &bytes, in_folder("sound.nir"), 1 << 24), 0);
	assert_int_equal(opens(data, bytes), 0);
	for (size_t n = 0; n < bytes; n += n < 64 ? 1 : 197)
		assert_true(opens(data, n) < 0);
	char *copy = malloc(bytes);
	for (size_t at = 0; at < bytes; at += at < 100 ? 5 : 97) {
		memcpy(copy, data, bytes);
		copy[at] = (char)(copy[at] ^ (at % 3 ? 0xFF : 0x10));
		refused += opens(copy, bytes) < 0;
		tried++;
	}
	print_message("# %d of %d changed bytes are refused\n", refused, tried);
	assert_true(refused > 0 && refused < tried);
	free(copy);
	free(data);
	neap_data_set_trial(NULL);
}

/* Graphs that are no net of neap's: a change of a sound one, and what the line names. */
struct wrong {
	const char *node, *param;
	int64_t at; /* the number that changes; -1: all */
	double value;
	const char *says;
};

static void refused_graphs(void **state)
{
	static const struct wrong cases[] = {
		{"layer0.cell", "tau", 2, 0, "'layer0.cell' has a time constant"},
		{"layer0.cell", "tau", 2, -1, "'layer0.cell' has a time constant"},
		{"layer0.cell", "tau", 0, 5e-4,
			"'layer0.cell': tau is 0.0005 s, shorter than the time step"},
		{"layer1.cell", "tau_syn", 1, 1e-4, "'layer1.cell': tau_syn is 0.0001 s"},
		{"layer0.cell", "v_threshold", 1, -1, "'layer0.cell' has thresholds that differ"},
		{"layer0.cell", "v_leak", 1, 2, "'layer0.cell' has thresholds that differ"},
		{"layer0.cell", "v_reset", 1, 0.5, "a v_reset that differs"},
		{"layer1.delay", "delay", -1, 130e-3, "neap supports up to 128 time steps"},
		{"layer1.delay", "delay", -1, 1.5e-3, "which is not a multiple of the time step"},
		{"layer1.delay", "delay", -1, -1e-3, "has a negative delay"},
		{"input", "shape", 0, 7, "7 numbers leave node 'input', 5 may enter"},
		{"input", "shape", 0, 1e9, "'input' has a shape"},
		{"output", "shape", 0, 0, "'output' has a shape"},
	};
	const struct neap__nir_hints hints = {.dt = 1e-3};

	(void)state;
	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
		struct neap__nir_graph graph;
		struct neap__safetensors file;
		int found = 0;
		graph_of(&graph, NET);
		for (int i = 0; i < graph.nodes; i++) {
			if (strcmp(graph.node[i].name, cases[c].node) != 0)
				continue;
			const struct neap__nir_array *a =
				neap__nir_param(&graph.node[i], cases[c].param);
			for (int64_t k = 0; k < a->count; k++)
				if (cases[c].at < 0 || k == cases[c].at) {
					a->data[k] = cases[c].value;
					found = 1;
				}
		}
		assert_true(found);
		int rc = neap__nir_model_of(&file, &graph, "net.nir", &hints);
		if (rc >= 0 || !strstr(neap_detail(), cases[c].says))
			fail_msg("%d: %s", (int)c, rc < 0 ? neap_detail() : "accepted");
		neap__nir_free(&graph);
	}
}

/* Edges that make no chain of layers. */
static void refused_edges(void **state)
{
	static const struct {
		const char *from, *to, *says;
	} cases[] = {
		{"layer0.cell", "readout.weight",
			"6 numbers leave node 'layer0.cell', 4 may enter"},
		{"layer1.cell", "layer0.recurrent", "4 numbers leave"},
		{"input", "layer1.delay", "5 numbers leave"},
		{"layer0.recurrent", "layer1.delay", NULL}, /* V S + S: another matrix */
		{"output", "output", "is the Output of the graph, but has outgoing"},
		{"layer0.recurrent", "layer0.recurrent", "cycle"},
		{"readout", "output", NULL}, /* twice: the readout times 2 */
	};
	const struct neap__nir_hints hints = {.dt = 1e-3};

	(void)state;
	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
		struct neap__nir_graph graph;
		struct neap__safetensors file;
		int a = -1, b = -1;
		graph_of(&graph, NET);
		for (int i = 0; i < graph.nodes; i++) {
			a = strcmp(graph.node[i].name, cases[c].from) ? a : i;
			b = strcmp(graph.node[i].name, cases[c].to) ? b : i;
		}
		assert_int_equal(neap__nir_add_edge(&graph, a, b), 0);
		int rc = neap__nir_model_of(&file, &graph, "net.nir", &hints);
		if (cases[c].says && (rc >= 0 || !strstr(neap_detail(), cases[c].says)))
			fail_msg("%d: %s", (int)c, rc < 0 ? neap_detail() : "accepted");
		if (rc == 0)
			neap__safetensors_free(&file);
		neap__nir_free(&graph);
	}
}

/* Metadata that asks for a net as large as it likes makes none. */
static void hostile_metadata(void **state)
{
	static const char *const nets[] = {"", "{", "[]", "{\"net\": 3}",
		"{\"net\":\"lif:65535r,lif:65535r,li\",\"precision\":\"double\"}"};
	double dt = 1e-3;
	const struct neap__nir_array one = {.count = 1, .data = &dt};
	const struct neap__nir_hints hints = {0};

	(void)state;
	for (size_t c = 0; c < sizeof nets / sizeof nets[0]; c++) {
		struct neap__nir_graph graph;
		struct neap__safetensors file;
		graph_of(&graph, "lif:6r:reset=hard,li");
		assert_int_equal(neap__nir_add_numbers(&graph, "dt", &one), 0);
		assert_int_equal(neap__nir_add_text(&graph, "neap.net", nets[c]), 0);
		assert_int_equal(neap__nir_model_of(&file, &graph, "net.nir", &hints), 0);
		assert_non_null(strstr(neap__safetensors_meta(&file, "neap.net"), "lif:6r:"));
		neap__safetensors_free(&file);
		neap__nir_free(&graph);
	}
}

/* One delay for all units comes back; delays of their own are refused. */
static void delays(void **state)
{
	static const char *const specs[] = {
		"lif:6r:reset=hard,lif:4:reset=hard:delay=127,li:delay=2",
		"lif:6:reset=hard,li:delay=0..4", "lif:6:reset=hard,li:delay=1..4:learn"};

	(void)state;
	for (int i = 0; i < 3; i++) {
		const struct neap__safetensors none = {0};
		const struct neap__nir_hints hints = {.dt = 1e-3};
		struct neap__nir_graph graph = {0};
		struct neap__safetensors file;
		struct neap__text lost = {0};
		struct neap_net *net = make_net(specs[i]);
		int rc = neap__nir_model_graph(&graph, net, &none, 1, &lost);
		assert_int_equal(rc, i ? NEAP_EUSAGE : 0);
		if (i)
			assert_non_null(strstr(neap_detail(), "a delay per unit"));
		if (rc == 0) {
			assert_int_equal(neap__nir_model_of(&file, &graph, "net.nir", &hints), 0);
			const char *spec = neap__safetensors_meta(&file, "neap.net");
			assert_non_null(strstr(spec, ":delay=127"));
			assert_non_null(strstr(spec, ":delay=2"));
			neap__safetensors_free(&file);
		}
		neap__nir_free(&graph);
		neap__text_free(&lost);
		neap_net_free(net);
	}
}

/* A Delay behind the Input becomes layers that repeat the inputs, one for each step and one that
 * repeats them at once. */
static void delayed_inputs(void **state)
{
	const struct neap__nir_hints hints = {.dt = 1e-3};
	double late[5];

	(void)state;
	for (int steps = 1; steps < 5; steps++) {
		struct neap__nir_graph graph;
		struct neap__safetensors file;
		int input = -1, layers = 1;
		graph_of(&graph, "lif:6:reset=hard,lif:4:reset=hard,li");
		for (int k = 0; k < 5; k++)
			late[k] = steps * 1e-3;
		const struct neap__nir_array delay = {
			.dims = 1, .size = {5}, .count = 5, .data = late};
		int node = neap__nir_add_node(&graph, "late", NEAP__NIR_DELAY);
		assert_int_equal(neap__nir_set(&graph, node, "delay", &delay), 0);
		for (int i = 0; i < graph.nodes; i++)
			input = graph.node[i].type == NEAP__NIR_INPUT ? i : input;
		for (int i = 0; i < graph.edges; i++)
			if (graph.edge[i].from == input)
				graph.edge[i].from = node;
		assert_int_equal(neap__nir_add_edge(&graph, input, node), 0);
		if (neap__nir_model_of(&file, &graph, "net.nir", &hints) < 0)
			fail_msg("%s", neap_detail());
		for (const char *c = strstr(neap__safetensors_meta(&file, "neap.net"), "lif:");
			*c && *c != '"'; c++)
			layers += *c == ',';
		assert_int_equal(layers, 3 + steps);
		neap__safetensors_free(&file);
		neap__nir_free(&graph);
	}
}

/* A layer may receive a later one of which the inputs reach nothing without it, whatever else its
 * own input feeds. */
static void connections_back(void **state)
{
	static const struct {
		const char *spec;
		int rc;
	} cases[] = {
		{"lif:6:reset=hard,lif:4:reset=hard:from=layer0+layer2,lif:4:reset=hard,li", 0},
		{"lif:6:reset=hard,lif:4:reset=hard:from=layer0+layer2,lif:4:reset=hard:from="
		 "layer0+"
		 "layer1,li",
			NEAP_EUSAGE},
	};

	(void)state;
	for (int i = 0; i < 2; i++) {
		const struct neap__safetensors none = {0};
		struct neap__nir_graph graph = {0};
		struct neap__text lost = {0};
		struct neap_net *net = make_net(cases[i].spec);
		assert_int_equal(neap__nir_model_graph(&graph, net, &none, 1, &lost), cases[i].rc);
		if (cases[i].rc)
			assert_non_null(strstr(neap_detail(), "the inputs also reach"));
		neap__nir_free(&graph);
		neap__text_free(&lost);
		neap_net_free(net);
	}
}

/* 1: the model of a graph is the network of its metadata; 0: the one of its nodes, or refused. */
static int is_described(const struct neap__nir_graph *graph, const char *text)
{
	const struct neap__nir_hints hints = {0};
	struct neap__safetensors file;

	if (neap__nir_model_of(&file, graph, "net.nir", &hints) < 0)
		return 0;
	int same = strcmp(neap__safetensors_meta(&file, "neap.net"), text) == 0;
	neap__safetensors_free(&file);
	return same;
}

/* The network of the metadata is taken only while no node contradicts it; nodes are changed one
 * number at a time. */
static void contradicted_metadata(void **state)
{
	static const char *const specs[] = {
		"lif:conv=2x1:channels=2:shape=1x5x1:dilation=2x1:pad=1x0:conv_pool=2x1:reset=hard,"
		"cubalif:4r:reset=hard:delay=3,li",
		"lif:pool=2x1:pooling=avg:conv=1:channels=2:shape=1x5x1:reset=hard,li:pool=2x1:"
		"pool_stride=1"};
	double dt = 1e-3;
	const struct neap__nir_array one = {.count = 1, .data = &dt};
	int changes = 0;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct neap__nir_graph graph;
		struct neap_net_options o = options_of(specs[i]);
		struct neap__json json = {0};
		graph_of(&graph, specs[i]);
		neap__settings_write_net(&json, &o);
		const char *text = json.text.data;
		assert_int_equal(neap__nir_add_numbers(&graph, "dt", &one), 0);
		assert_int_equal(neap__nir_add_text(&graph, "neap.net", text), 0);
		if (!is_described(&graph, text))
			fail_msg("%s is not taken", text);
		for (int n = 0; n < graph.nodes; n++)
			for (int p = 0; p < NEAP__NIR_PARAMS; p++) {
				struct neap__nir_array *a = &graph.node[n].param[p];
				char name[16];
				int optional;
				if (graph.node[n].type == NEAP__NIR_FLATTEN)
					continue;
				if (neap__nir_param_name(name, graph.node[n].type, p, &optional) <
						0 ||
					strcmp(name, "weight") == 0 || strcmp(name, "bias") == 0 ||
					strncmp(name, "input_", 6) ==
						0) /* follow from other nodes */
					continue;
				for (int64_t k = 0; k < a->count; k++)
					/* A padding of -1 is "same", which may be 0. */
					for (int more = a->data[k] > 0 ? -1 : 1; more <= 1;
						more += 2) {
						double was = a->data[k];
						a->data[k] +=
							more * (was > 0 && was < 1 ? was / 2 : 1);
						if (is_described(&graph, text))
							fail_msg("%s.%s[%d] %g, not %g",
								graph.node[n].name, name, (int)k,
								a->data[k], was);
						a->data[k] = was;
						changes++;
					}
			}
		neap__nir_free(&graph);
		neap__text_free(&json.text);
	}
	assert_true(changes > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(there_and_back),
		cmocka_unit_test(damaged), cmocka_unit_test(refused_graphs),
		cmocka_unit_test(refused_edges), cmocka_unit_test(hostile_metadata),
		cmocka_unit_test(delays), cmocka_unit_test(delayed_inputs),
		cmocka_unit_test(connections_back), cmocka_unit_test(contradicted_metadata)};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
