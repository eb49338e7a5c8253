/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_device_kernels.c: the kernels on the emulator have the bits of the CPU's net, for all nets
 * that devices run. NEAP_VERBOSE=1 prints the activity of each net.
 */
#include "emulated_net.h"

static const char *const reset_names[] = {"subtract", "zero", "hard", "soft"};

/* Each reset in each of these layers. */
static void assert_same_resets(const char *const *layers, int count, int dense)
{
	char spec[99];

	for (int i = 0; i < 4; i++)
		for (int k = 0; k < count; k++) {
			snprintf(spec, sizeof spec, "%s:reset=%s,li", layers[k], reset_names[i]);
			struct emulated_case c = emulated_case_make(spec, 6, 80, 0.1);
			c.options.dense = dense;
			emulated_case_assert(&c);
		}
}

static void resets(void **arg)
{
	static const char *const layers[] = {"lif:40r", "lif:40", "lif:40r:detach=1",
		"lif:40:detach=1", "lif:40r:threshold=0.4:reset_value=-0.2"};
	(void)arg;
	assert_same_resets(layers, 5, 0);
}

/* Wide surrogates make tapes dense. */
static void surrogates(void **arg)
{
	static const char *const layers[] = {"lif:40r:width=4:height=0.3",
		"lif:40r:surrogate=boxcar", "lif:40r:surrogate=boxcar:support=0.3",
		"lif:40r:surrogate=superspike:support=2",
		"lif:40r:surrogate=atan:width=2:support=1"};
	(void)arg;
	assert_same_resets(layers, 5, 0);
}

/*
 * Surrogates without an end: dense tapes, and products of all units; with and without dropout,
 * penalties and layers that receive spikes late.
 */
static void surrogates_without_end(void **arg)
{
	static const char *const names[] = {
		"superspike", "sigmoid", "atan", "gaussian", "slayer", "double_gaussian"};
	char spec[200];

	(void)arg;
	for (int i = 0; i < 6; i++)
		for (int k = 0; k < 2; k++) {
			const char *name = names[i];
			int shape = (i + 3 * k) % 5;
			snprintf(spec, sizeof spec,
				shape == 0   ? "lif:40r:surrogate=%s,li"
				: shape == 1 ? "lif:33:surrogate=%s:reset=zero:dropout=0.3,"
					       "lif:40r:surrogate=%s:reset=hard,li"
				: shape == 2 ? "cubalif:40r:surrogate=%s:width=0.3,lif:9:delay=1,li"
				: shape == 3 ? "alif:33r:surrogate=%s:detach=1,li:delay=1"
					     : "adlif:21r:scale=20:surrogate=%s:support=1,"
					       "lif:17r:surrogate=%s:reset=soft:dropout=0.5,li",
				name, name);
			struct emulated_case c = emulated_case_make(spec, 5, 70, 0.2);
			c.options.scale = 3;
			if (k) {
				c.options.dt = 3e-3;
				c.options.time_unit = 1e-3;
			}
			c.objective.dropout = 1;
			c.objective.rates =
				(struct neap_rate_penalty){.upper = 0.1, .upper_weight = k};
			c.cut = k ? 27 : 0;
			emulated_case_assert(&c);
		}
}

static void dense_layers(void **arg)
{
	static const char *const layers[] = {"lif:24r", "lif:40:detach=1"};
	(void)arg;
	assert_same_resets(layers, 2, 1);
}

static void several_layers(void **arg)
{
	static const char *const specs[] = {"lif:40r,lif:33,li",
		"lif:40,lif:70r:reset=zero,lif:5r:reset=hard,li", "lif:9,lif:8:reset=soft,li"};

	(void)arg;
	for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
		struct emulated_case c = emulated_case_make(specs[i], 5, 70, 0.2);
		emulated_case_assert(&c);
	}
}

/* Cells with a second row in their state. */
static void other_cells(void **arg)
{
	static const char *const specs[] = {"cubalif:40r,li", "cubalif:33:reset=hard,li",
		"cubalif:33r:reset=soft:detach=1,li", "cubalif:40r:reset=hard:detach=1:width=3,li",
		"cubalif:20:detach=1,lif:9r,li", "alif:40r:adapt=0.3,li", "alif:33:detach=1,li",
		"alif:20r:width=3,adlif:21r,li", "adlif:40r:detach=1,li", "adlif:33,cubalif:8r,li"};

	(void)arg;
	for (int dense = 0; dense < 2; dense++)
		for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
			struct emulated_case c = emulated_case_make(specs[i], 5, 80, 0.3);
			c.options.scale = 4;
			c.options.dense = dense;
			c.cut = 30;
			emulated_case_assert(&c);
		}
}

/* One unit, whole and partial warps, more units than threads. */
static void sizes(void **arg)
{
	static const struct {
		const char *spec;
		int steps;
	} nets[] = {{"lif:1r,li", 70}, {"lif:2,li", 70}, {"lif:31r,li", 70}, {"lif:32r,li", 70},
		{"lif:65r,li", 70}, {"lif:992r,li", 8}, {"lif:993r:reset=zero,li", 8},
		{"lif:2001,lif:40,li", 6}, {"lif:4096r:reset=hard,li", 2}};

	(void)arg;
	for (size_t i = 0; i < sizeof nets / sizeof nets[0]; i++) {
		int few = nets[i].steps < 70;
		struct emulated_case c =
			emulated_case_make(nets[i].spec, few ? 2 : 5, nets[i].steps, 0.3);
		if (few)
			c.options.scale = 12; /* so that units spike in so few steps */
		emulated_case_assert(&c);
	}
}

static void batches(void **arg)
{
	static const int samples[] = {1, 3, 33, 1024};

	(void)arg;
	for (int i = 0; i < 4; i++) {
		struct emulated_case c =
			emulated_case_make("lif:6r,li", samples[i], i == 3 ? 4 : 66, 0.3);
		c.options.group = i == 3 ? 0 : c.options.group;
		emulated_case_assert(&c);
	}
}

static void readouts(void **arg)
{
	static const int classes[] = {1, 5, 32, 33, 70};

	(void)arg;
	for (int kind = NEAP_READ_MEAN; kind <= NEAP_READ_SOFTMAX; kind++) {
		struct emulated_case c = emulated_case_make("lif:40r,li", 5, 70, 0.2);
		c.options.readout = (enum neap_readout)kind;
		emulated_case_assert(&c);
		c = emulated_case_make("lif:40r,li:tau=none", 5, 70, 0.2);
		c.options.readout = (enum neap_readout)kind;
		emulated_case_assert(&c);
	}
	for (int i = 0; i < 5; i++) {
		struct emulated_case c = emulated_case_make("lif:20,li", 3, 66, 0.2);
		c.options.classes = classes[i];
		for (int s = 0; s < 3; s++)
			c.batch.sequences[s].label %= classes[i];
		emulated_case_assert(&c);
	}
}

/* Every loss, with the targets that it takes; masked steps have no loss. */
static void losses(void **arg)
{
	static const enum neap_target targets[] = {
		NEAP_TARGET_LABEL, NEAP_TARGET_NUMBERS, NEAP_TARGET_LABELS, NEAP_TARGET_SERIES};

	(void)arg;
	for (int i = 0; neap_loss_at(i); i++)
		for (int k = 0; k < 4; k++) {
			struct emulated_case c = emulated_case_make("lif:20r,li", 5, 70, 0.2);
			int numbers = targets[k] == NEAP_TARGET_NUMBERS ||
				      targets[k] == NEAP_TARGET_SERIES;
			c.objective.loss = neap_loss_at(i);
			batch_numbers(&c.batch, 3, 0, targets[k], c.options.classes);
			if (targets[k] == NEAP_TARGET_LABELS || targets[k] == NEAP_TARGET_SERIES)
				c.options.readout = NEAP_READ_STEP;
			if (numbers && !c.objective.loss->takes_numbers) {
				batch_free(&c.batch);
				continue;
			}
			emulated_case_assert(&c);
		}
}

static void penalties(void **arg)
{
	(void)arg;
	for (int i = 0; i < 4; i++) {
		char spec[60];
		snprintf(spec, sizeof spec, "lif:30r:reset=%s,lif:20,li", reset_names[i]);
		struct emulated_case c = emulated_case_make(spec, 5, 70, 0.2);
		c.objective.rates = (struct neap_rate_penalty){.upper = 0.1,
			.upper_weight = 3,
			.lower = 0.05,
			.lower_weight = 2,
			.l1 = 0.01,
			.l2 = 0.2};
		emulated_case_assert(&c);
	}
}

/* Calls of few steps, from tapes that are full before the end, with events of these steps alone. */
static void calls(void **arg)
{
	static const int cuts[] = {0, 1, 7, 40}, shares[] = {0, 1, 3, 20};

	(void)arg;
	for (int i = 0; i < 16; i++) {
		struct emulated_case c =
			emulated_case_make("lif:12r:reset=zero,lif:9r,li", 5, 100, 0.2);
		c.cut = cuts[i / 4];
		c.share_steps = shares[i % 4];
		c.window = i & 1;
		c.pack = i >> 1 & 1;
		emulated_case_assert(&c);
	}
}

/* Time steps for which surrogates are scaled, and tensors that do not learn. */
static void scales(void **arg)
{
	struct emulated_case c = emulated_case_make("lif:30r,li", 5, 70, 0.2);

	(void)arg;
	c.options.dt = 3e-3;
	c.options.time_unit = 1e-3;
	emulated_case_assert(&c);
	c = emulated_case_make("lif:30r,lif:20r,li", 5, 70, 0.2);
	c.options.freeze = "layer1,layer0.recurrent";
	c.options.euler = 1;
	emulated_case_assert(&c);
}

/* What no kernel implements: one line that names it. */
static void refused(void **arg)
{
	static const struct {
		const char *spec, *line;
	} nets[] = {{"lif:8:from=input+layer1,lif:8,li", "'from'"},
		{"lif:8,li:from=input+layer0", "'from'"},
		{"lif:8:reset=hard:threshold=0,li", "threshold=0"},
		{"integrator:8,li", "integrator"}, {"lif:8,li:pool=1x2:shape=1x1x8", "'pool'"},
		{"brf:8,li", "a layer of brf"}, {"lif:8,gru:7,li", "layers of lif and of gru"},
		{"egru:8,alif:7,li", "layers of egru and of alif"}, {"rnn:4097,li", "4097 units"},
		{"lif:4097,li", "4097 units"}};
	const float *weights[16] = {0};

	(void)arg;
	for (size_t i = 0; i < sizeof nets / sizeof nets[0]; i++) {
		struct emulated_case c = emulated_case_make(nets[i].spec, 2, 10, 0.2);
		struct neap__device_net device;
		emulated_case_run(&c);
		assert_int_equal(neap__device_net_describe(&device, c.net, weights), NEAP_EUSAGE);
		if (!strstr(neap_detail(), nets[i].line))
			fprintf(stderr, "# %s\n", neap_detail());
		assert_non_null(strstr(neap_detail(), nets[i].line));
		assert_non_null(strstr(neap_detail(), "on the CPU"));
		emulated_case_free(&c);
	}
}

/* A choice that a table of neap/net.h has and the kernels do not. */
static void unknown_choices(void **arg)
{
	const float *weights[16] = {0};
	static const char *const lines[] = {"'surrogate'", "'reset'", "'readout'"};

	(void)arg;
	for (int i = 0; i < 3; i++) {
		struct emulated_case c = emulated_case_make("lif:8,li", 2, 10, 0.2);
		struct neap__device_net device;
		emulated_case_run(&c);
		if (i == 0)
			c.net->layers[0].surrogate = (enum neap_surrogate)DEVICE_SURROGATES;
		else if (i == 1)
			c.net->layers[0].reset = (enum neap_reset)DEVICE_RESETS;
		else
			c.net->options.readout = (enum neap_readout)DEVICE_READOUTS;
		assert_int_equal(neap__device_net_describe(&device, c.net, weights), NEAP_EUSAGE);
		assert_non_null(strstr(neap_detail(), lines[i]));
		emulated_case_free(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resets),
		cmocka_unit_test(surrogates),
		cmocka_unit_test(surrogates_without_end),
		cmocka_unit_test(dense_layers),
		cmocka_unit_test(several_layers),
		cmocka_unit_test(other_cells),
		cmocka_unit_test(sizes),
		cmocka_unit_test(batches),
		cmocka_unit_test(readouts),
		cmocka_unit_test(losses),
		cmocka_unit_test(penalties),
		cmocka_unit_test(calls),
		cmocka_unit_test(scales),
		cmocka_unit_test(refused),
		cmocka_unit_test(unknown_choices),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
