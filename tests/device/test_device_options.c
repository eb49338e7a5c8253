/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_device_options.c: options of nets that have kernels or tables of their own: numbers as
 * inputs, dropout and delays of a step. On the emulator they have the bits of the CPU's net. With a
 * number as argument, so many random nets in place of the few of the default run; NEAP_SEED is the
 * number of the first one.
 */
#include "emulated_net.h"
#include "random_device_net.h"

static int random_cases = 6;

/* Numbers in place of the events of a case. */
static void give_numbers(struct emulated_case *c)
{
	c->options.values = 1;
	batch_numbers(&c->batch, 3, 1, NEAP_TARGET_LABEL, c->options.classes);
}

/* Inputs of less than a tile and of more; every cell. */
static void numbers(void **arg)
{
	static const char *const specs[] = {"lif:40r,li", "lif:70:reset=zero,lif:9r:reset=hard,li",
		"cubalif:33r,li", "alif:20r,li", "adlif:21r,li", "rnn:20,li", "lstm:9,gru:7,li",
		"egru:17,li"};

	(void)arg;
	for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
		struct emulated_case c = emulated_case_make(specs[i], 5, 70, 0.2);
		give_numbers(&c);
		c.cut = i % 2 ? 27 : 0;
		c.window = i % 2;
		emulated_case_assert(&c);
	}
}

/* Dropout of some layers, with penalties on rates; the last layer's outputs go to the readout. */
static void dropout(void **arg)
{
	static const char *const specs[] = {"lif:40r:dropout=0.5,li",
		"lif:33:dropout=0.2,lif:40r:reset=zero:dropout=0.7,li",
		"cubalif:33r,alif:20r:dropout=0.3,adlif:9:dropout=0.1,li", "rnn:20:dropout=0.4,li",
		"lstm:9:dropout=0.3,gru:17:dropout=0.6,li",
		"egru:17:dropout=0.5,gru:9:dropout=0.5,egru:33:dropout=0.3,lstm:5,li"};

	(void)arg;
	for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
		struct emulated_case c = emulated_case_make(specs[i], 5, 70, 0.2);
		c.objective.dropout = 1 + (unsigned)i;
		c.options.classes = i % 2 ? 5 : 20; /* many: products of many steps */
		c.objective.rates = (struct neap_rate_penalty){.upper = 0.1, .upper_weight = 3};
		c.cut = i % 2 ? 27 : 0;
		emulated_case_assert(&c);
	}
}

/* Layers and readouts that receive outputs a step later. */
static void delays(void **arg)
{
	static const char *const specs[] = {"lif:40r,li:delay=1", "lif:33,lif:40r:delay=1,li",
		"lif:9:reset=zero:dropout=0.3,alif:40r:delay=1:dropout=0.2,lif:9:delay=1,li",
		"lstm:20,rnn:9:delay=1,li",
		"gru:9:dropout=0.3,egru:17:delay=1:dropout=0.2,li:delay=1",
		"egru:7,lstm:5:delay=1,li:delay=1"};

	(void)arg;
	for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
		struct emulated_case c = emulated_case_make(specs[i], 5, 70, 0.2);
		c.objective.dropout = 1;
		c.options.classes = i % 2 ? 5 : 20;
		c.cut = i % 2 ? 27 : 0;
		c.window = i % 2;
		emulated_case_assert(&c);
	}
}

/* Decays that learn, and decays of a range; every cell and reset, sparse and dense tapes. */
static void unit_decays(void **arg)
{
	static const char *const specs[] = {"lif:40r:learn=tau,li",
		"lif:33r:learn=tau:reset=zero,lif:40:learn=tau:reset=zero:detach=1,li:learn=tau",
		"lif:33r:learn=tau:reset=hard,lif:9r:reset=soft:learn=all,li:learn=tau",
		"cubalif:33r:learn=tau,cubalif:20:learn=tau:reset=hard,li:learn=tau",
		"cubalif:9:learn=tau:reset=soft,alif:40r:learn=tau,li",
		"alif:33:learn=tau:detach=1,adlif:40r:learn=tau,li:learn=tau:delay=1",
		"adlif:33r:learn=tau:detach=1:dropout=0.3,lif:9:learn=tau,li",
		"lif:33r:tau=5ms..25ms,cubalif:20:tau=5ms..25ms:tau_syn=2ms..9ms,li",
		"alif:20r:tau_adapt=50ms..100ms,adlif:33r:tau=5ms..25ms,li:learn=tau",
		"lstm:9,gru:7:dropout=0.3,li:learn=tau", "rnn:9,egru:20,li:learn=tau:delay=1"};

	(void)arg;
	for (size_t i = 0; i < 2 * sizeof specs / sizeof specs[0]; i++) {
		struct emulated_case c = emulated_case_make(specs[i / 2], 5, 70, 0.2);
		c.objective.dropout = 1;
		c.objective.rates = (struct neap_rate_penalty){.upper = 0.1, .upper_weight = 3};
		c.options.dense = i % 2;
		c.options.readout = i % 2 ? NEAP_READ_SOFTMAX : NEAP_READ_MEAN;
		c.options.freeze = i == 7 ? "layer0.leak_syn,readout.leak" : NULL;
		c.cut = i % 3 ? 27 : 0;
		c.pack = i % 2;
		c.share_steps = i % 4 ? 0 : 20;
		emulated_case_assert(&c);
	}
}

/* Outputs that arrive several steps later: all units alike, or each unit at its own time. */
static void long_delays(void **arg)
{
	static const char *const specs[] = {"lif:40r,li:delay=3", "lif:33,lif:40r:delay=70,li",
		"lif:33:dropout=0.3,lif:40r:reset=zero:delay=0..20:dropout=0.2,li:delay=2..9",
		"lif:9r,cubalif:17:delay=0..127,alif:33:delay=1,li:delay=0..2",
		"alif:33,adlif:9:delay=0..3:scale=20,lif:40:learn=tau,li:delay=0..100:learn=tau",
		"lif:33r,lif:40r:delay=0..64:learn,li:delay=0..1:learn",
		"lif:40:dropout=0.3,cubalif:33:delay=2..5:learn:dropout=0.2,li:delay=0..127:learn",
		"lif:9r:width=9,lif:70:delay=3..90:learn:surrogate=atan:learn=tau,alif:9:delay=0.."
		"2:learn,"
		"li:learn=tau"};

	(void)arg;
	for (size_t i = 0; i < 2 * sizeof specs / sizeof specs[0]; i++) {
		struct emulated_case c = emulated_case_make(specs[i / 2], 5, 150, 0.2);
		c.objective.dropout = 1;
		c.options.classes = i % 3 ? 5 : 20;
		c.cut = i % 2 ? 27 : 0;
		c.share_steps = i % 4 == 3 ? 9 : 0;
		c.pack = i % 4 == 1;
		c.options.readout = i % 2 ? NEAP_READ_STEP : NEAP_READ_SUM;
		emulated_case_assert(&c);
	}
}

/* Layers whose weights lack connections, below and above others; spikes and numbers as inputs. */
static void densities(void **arg)
{
	static const char *const specs[] = {"lif:40r:density=0.5,li",
		"lif:33:density=0.3,lif:40r:reset=zero,li",
		"lif:33r:dropout=0.4,cubalif:40r:density=0.2:dropout=0.3,lif:9:density=0.7,li",
		"alif:40r:density=0.01,adlif:21r:density=0.9:scale=20,li:delay=1",
		"lif:70r:surrogate=sigmoid:density=0.4,lif:33r:delay=1,li",
		"lif:40r:surrogate=atan,lif:20r:density=0.5:delay=1:detach=1,li",
		"lif:33,lif:40r:density=0.4:delay=7,cubalif:20:density=0.5:delay=0..30,li",
		("lif:33r:dropout=0.3,lif:40:reset=zero:density=0.4:delay=0..20:learn,"
		 "alif:20:density=0.6:delay=1..3:learn:surrogate=sigmoid,li:delay=0..9:learn"),
		"lif:33r:reset=zero,li:density=0.5", "lif:33:dropout=0.3,li:density=0.5:delay=1",
		"lif:33:dropout=0.3,li:density=0.5:delay=0..9:learn",
		"alif:33,li:density=0.2:delay=4",
		"lif:33:dropout=0.3:surrogate=atan,li:density=0.5:delay=0..20"};

	(void)arg;
	for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++)
		for (int k = 0; k < 2; k++) {
			struct emulated_case c = emulated_case_make(specs[i], 5, 70, 0.2);
			c.options.scale = 3;
			c.objective.dropout = 1;
			c.cut = k ? 27 : 0;
			c.window = k;
			if (k)
				give_numbers(&c);
			emulated_case_assert(&c);
		}
}

static void random_nets(void **arg)
{
	uint32_t first = first_seed();

	(void)arg;
	for (uint32_t seed = first; seed < first + (uint32_t)random_cases; seed++) {
		uint32_t state = seed * 7919u + 1;
		char spec[600] = "";
		int is_dense = random_device_net(spec, sizeof spec, &state);
		struct emulated_case c = emulated_case_make(spec, 1 + (int)draw_below(&state, 12),
			1 + (int)draw_below(&state, 140), 0.05 * draw_below(&state, 10));
		if (draw_below(&state, 2))
			give_numbers(&c);
		c.objective.dropout = draw_below(&state, 4);
		c.options.group = (int)draw_below(&state, 12);
		c.options.dense = !is_dense && draw_below(&state, 5) == 0;
		c.options.readout = (enum neap_readout)draw_below(&state, NEAP_READ_SOFTMAX + 1);
		emulated_case_draw_calls(&c, &state);
		c.options.freeze = draw_below(&state, 6) ? NULL : "layer0.bias,readout.weight";
		if (getenv("NEAP_VERBOSE"))
			fprintf(stderr, "# %s: %d samples, %d steps, cut %d, share %d, values %d\n",
				spec, c.batch.batch.size, (int)c.batch.batch.steps, c.cut,
				c.share_steps, c.options.values);
		emulated_case_run(&c);
		emulated_case_agree(&c, seed);
		emulated_case_free(&c);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(dropout),
		cmocka_unit_test(delays),
		cmocka_unit_test(unit_decays),
		cmocka_unit_test(long_delays),
		cmocka_unit_test(densities),
		cmocka_unit_test(random_nets),
	};
	const struct CMUnitTest random[] = {cmocka_unit_test(random_nets)};

	if (argc < 2)
		return cmocka_run_group_tests_name("device_options", all, NULL, NULL);
	random_cases = atoi(argv[1]);
	return cmocka_run_group_tests_name("device_options_random", random, NULL, NULL);
}
