/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_device_dense.c: layers of rnn, lstm, gru and egru on the emulator have the bits of the CPU's
 * net. With a number as argument, so many random nets in place of the few of the default run;
 * NEAP_SEED is the number of the first one.
 */
#include "emulated_net.h"
#include "random_device_net.h"

static const char *const cells[] = {"rnn", "lstm", "gru", "egru"};
static int random_cases = 3;

static void several_layers(void **arg)
{
	static const char *const specs[] = {"rnn:33:activation=relu,rnn:7,li",
		"gru:9,egru:17,lstm:3,li", "egru:7:surrogate=superspike,li",
		"egru:7:surrogate=sigmoid,egru:5:surrogate=gaussian:support=0.5,li",
		"egru:9:surrogate=slayer:support=1,egru:5:surrogate=double_gaussian,li",
		"egru:7:surrogate=boxcar:support=0.4,egru:9,li:tau=none"};

	(void)arg;
	for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
		struct emulated_case c = emulated_case_make(specs[i], 4, 40, 0.3);
		emulated_case_assert(&c);
	}
}

/* Units: a part of a tile, a tile and one more, more terms than a tile has, rows of big tiles. */
static void sizes(void **arg)
{
	static const int units[] = {1, 8, 9, 65, 130};
	char spec[40];

	(void)arg;
	for (int i = 0; i < 5; i++)
		for (int k = 0; k < 4; k++) {
			snprintf(spec, sizeof spec, "%s:%d,li", cells[k], units[i]);
			struct emulated_case c =
				emulated_case_make(spec, 3, units[i] > 9 ? 3 : 12, 0.3);
			emulated_case_assert(&c);
		}
}

/* Samples of more tiles than one, and groups of several parts whose outputs are counted. */
static void batches(void **arg)
{
	static const struct {
		int samples, group, steps;
	} batches[] = {{1, 0, 66}, {33, 0, 4}, {23, 11, 5}, {70, 33, 2}};

	(void)arg;
	for (int i = 0; i < 4; i++)
		for (int k = 0; k < 4; k++) {
			char spec[40];
			snprintf(spec, sizeof spec, "%s:7,li", cells[k]);
			struct emulated_case c =
				emulated_case_make(spec, batches[i].samples, batches[i].steps, 0.3);
			c.options.group = batches[i].group;
			emulated_case_assert(&c);
		}
}

static void readouts(void **arg)
{
	(void)arg;
	for (int kind = NEAP_READ_MEAN; kind <= NEAP_READ_SOFTMAX; kind++) {
		struct emulated_case c = emulated_case_make(
			kind & 1 ? "gru:4,li:tau=none" : "lstm:4,li", 4, 20, 0.2);
		c.options.readout = (enum neap_readout)kind;
		c.options.classes = kind == NEAP_READ_LAST ? 70 : 5;
		emulated_case_assert(&c);
	}
}

/* Calls of few steps, from tapes that are full before the end, with events of these steps alone. */
static void calls(void **arg)
{
	static const int cuts[] = {0, 1, 7, 40}, shares[] = {0, 1, 3, 20};

	(void)arg;
	for (int i = 0; i < 16; i += 3) {
		char spec[40];
		snprintf(spec, sizeof spec, "%s:4,%s:3,li", cells[i % 4], cells[(i + i / 4) % 4]);
		struct emulated_case c = emulated_case_make(spec, 3, 66, 0.2);
		c.cut = cuts[i / 4];
		c.share_steps = shares[i % 4];
		c.window = i & 1;
		c.pack = i >> 1 & 1;
		emulated_case_assert(&c);
	}
}

/*
 * Weights without all connections: of every cell, with and without dropout and delays, below and
 * above layers that have all; of none at all; events and numbers as inputs.
 */
static void densities(void **arg)
{
	static const char *const specs[] = {"rnn:33:density=0.4,li", "lstm:20:density=0.5,li",
		"gru:9:density=0.7,gru:20,li", "egru:20:density=0.5,egru:9:density=0.9,li",
		"egru:20:surrogate=superspike:density=0.3,li:density=0.5",
		"lstm:9,rnn:70:density=0.2:activation=relu,li", "lstm:20,li:density=0.3",
		"lstm:9,lstm:33:density=0.5:delay=1:dropout=0.3,li:density=0.5:delay=1",
		"gru:9:dropout=0.4,egru:20:density=0.5:dropout=0.4,gru:7:density=0.1,li",
		"rnn:9:density=0.001,gru:5:density=0.001,li:density=0.001",
		"gru:9:density=0.6,li:learn=tau:density=0.6"};

	(void)arg;
	for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++)
		for (int values = 0; values < 2; values++) {
			struct emulated_case c = emulated_case_make(specs[i], 5, 20, 0.3);
			if (values) {
				c.options.values = 1;
				batch_numbers(&c.batch, 3, 1, NEAP_TARGET_LABEL, c.options.classes);
			}
			c.objective.dropout = 1;
			c.options.classes = i & 2 ? 20 : 5; /* many: products of many steps */
			c.cut = i & 1 ? 7 : 0;
			emulated_case_assert(&c);
		}
}

/* Tensors that do not learn, and time steps for which surrogates would be scaled. */
static void scales(void **arg)
{
	struct emulated_case c = emulated_case_make("egru:4,gru:3,li", 3, 30, 0.2);

	(void)arg;
	c.options.dt = 3e-3;
	c.options.time_unit = 1e-3;
	emulated_case_assert(&c);
	c = emulated_case_make("egru:4,lstm:3,li", 3, 30, 0.2);
	c.options.freeze = "layer1,layer0.recurrent,layer0.weight";
	c.options.euler = 1;
	emulated_case_assert(&c);
}

/* A random layer, as text behind `spec`. */
static void add_gated_layer(char *spec, size_t room, uint32_t *state)
{
	static const char *const surrogates[] = {"", ":surrogate=boxcar",
		":surrogate=atan:support=0.7", ":surrogate=superspike", ":threshold=0.05",
		":threshold=0.4:width=0.2"};
	uint32_t cell = draw_below(state, 4);
	size_t used = strlen(spec);
	const char *more = cell == 3			       ? surrogates[draw_below(state, 6)]
			   : cell == 0 && draw_below(state, 2) ? ":activation=relu"
							       : "";

	used += (size_t)snprintf(spec + used, room - used, "%s:%d:scale=%d%s", cells[cell],
		1 + (int)draw_below(state, draw_below(state, 6) ? 20 : 80),
		1 + (int)draw_below(state, 4), more);
	if (draw_below(state, 4) == 0)
		used += (size_t)snprintf(
			spec + used, room - used, ":density=0.%d", 1 + (int)draw_below(state, 9));
	if (draw_below(state, 5) == 0)
		used += (size_t)snprintf(spec + used, room - used, ":dropout=0.4");
	snprintf(spec + used, room - used, ",");
}

static void random_nets(void **arg)
{
	uint32_t first = first_seed();

	(void)arg;
	for (uint32_t seed = first; seed < first + (uint32_t)random_cases; seed++) {
		uint32_t state = seed * 7919u + 1;
		char spec[400] = "";
		for (uint32_t layers = 1 + draw_below(&state, 3); layers > 0; layers--)
			add_gated_layer(spec, sizeof spec, &state);
		strcat(spec, draw_below(&state, 3) ? "li" : "li:tau=none");
		if (draw_below(&state, 4) == 0)
			strcat(spec, ":density=0.4");
		struct emulated_case c = emulated_case_make(spec, 1 + (int)draw_below(&state, 12),
			1 + (int)draw_below(&state, 80), 0.05 * draw_below(&state, 10));
		c.options.group = (int)draw_below(&state, 12);
		c.options.readout = (enum neap_readout)draw_below(&state, NEAP_READ_SOFTMAX + 1);
		emulated_case_draw_calls(&c, &state);
		c.objective.dropout = draw_below(&state, 2);
		c.options.freeze = draw_below(&state, 6) ? NULL : "layer0.bias,readout.weight";
		emulated_case_run(&c);
		emulated_case_agree(&c, seed);
		emulated_case_free(&c);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(several_layers),
		cmocka_unit_test(sizes),
		cmocka_unit_test(batches),
		cmocka_unit_test(readouts),
		cmocka_unit_test(calls),
		cmocka_unit_test(densities),
		cmocka_unit_test(scales),
		cmocka_unit_test(random_nets),
	};
	const struct CMUnitTest random[] = {cmocka_unit_test(random_nets)};

	if (argc < 2)
		return cmocka_run_group_tests_name("device_dense", all, NULL, NULL);
	random_cases = atoi(argv[1]);
	return cmocka_run_group_tests_name("device_dense_random", random, NULL, NULL);
}
