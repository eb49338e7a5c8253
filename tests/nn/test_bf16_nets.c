/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_bf16_nets.c: nets of precision bf16 against nets in double: losses and gradients differ by
 * the rounding of factors, and by no more; which tensors are rounded, and what is rejected. The
 * same of products in tiles: in bf16, and in float, where only the rounding of sums differs.
 */
#include "nets.h"
#include "nn/core/net_state.h"

#include <string.h>

/*
 * A factor that is rounded has a relative error of at most 2^-8. Errors of a sum cancel for the
 * most part; over 70 steps 2% of the largest gradient was measured at most. Less than `least`
 * would show that factors are not rounded: float differs by 1e-6.
 */
static const double most = 0.04, least = 1e-4;

static const char *const specs[] = {"rnn:40:recurrent_scale=1,li",
	"rnn:30:activation=relu:recurrent_scale=0.5,rnn:20:recurrent_scale=1:scale=1,li",
	"lstm:40:recurrent_scale=1:scale=1,li", "gru:40:recurrent_scale=1:scale=1,li",
	"gru:31:recurrent_scale=1:scale=1,lstm:20:scale=1:recurrent_scale=1,li"};

static void near_double(void **arg)
{
	static const int64_t lengths[] = {70, 90, 33, 1, 81, 64};
	struct neap_objective objective = {
		.size = sizeof objective, .loss = neap_loss_find("cross-entropy")};

	(void)arg;
	for (size_t i = 0; i < 4 * sizeof specs / sizeof specs[0]; i++) {
		struct neap_net_options o = net_options(specs[i / 4]);
		struct batch_room room;
		batch_make(&room, 3, 6, o.inputs, 0, o.classes, 0.2, lengths);
		o.scale = 1;
		o.values = (int)(i % 2);
		if (o.values)
			batch_numbers(&room, 9, 1, NEAP_TARGET_LABEL, o.classes);
		o.precision = NEAP_DOUBLE;
		struct neap_net *exact = net_make(&o);
		o.precision = NEAP_BF16;
		o.products = i / 2 % 2 ? NEAP_TILES : NEAP_CHAINS;
		struct neap_net *rounded = bf16_net_make(&o);
		for (int k = 0; k < neap_net_params(exact); k++) {
			struct neap_param x, y;
			assert_int_equal(neap_net_param(exact, k, &x), 0);
			assert_int_equal(neap_net_param(rounded, k, &y), 0);
			assert_int_equal(y.precision, NEAP_FLOAT);
			for (int64_t e = 0; e < x.count; e++) /* the same start */
				((double *)x.data)[e] = ((float *)y.data)[e];
		}
		double a = sweep_plain(exact, &room.batch, &objective);
		double b = sweep_plain(rounded, &room.batch, &objective);
		double distance = grad_distance(exact, rounded);
		fprintf(stderr, "# %s, values %d, tiles %d: loss %g, off by %g; gradients by %g\n",
			specs[i / 4], o.values, o.products, a, b - a, distance);
		assert_true(fabs(b - a) < most * a);
		assert_true(distance > least && distance < most);
		neap_net_free(exact);
		neap_net_free(rounded);
		batch_free(&room);
	}
}

/*
 * Nets with many spikes in float, products in tiles against one sum after the other: the order of
 * sums has other rounding, which moves no spike here. At the rates of these nets many products are
 * in tiles and some are not; the smallest distances would be 0 without any in tiles.
 */
static void near_chains(void **arg)
{
	static const char *const many[] = {"lif:70r:scale=9,lif:40:scale=9,li",
		"lif:70r:scale=9:surrogate=sigmoid,li", "adlif:64:scale=20,lif:33r:scale=9,li",
		"lif:40:scale=30,rnn:20,li", "lif:70r:scale=9:width=12,li",
		"lif:300r:scale=5:recurrent_scale=0.1,lif:270:scale=9:width=12,li"};
	struct neap_objective objective = {
		.size = sizeof objective, .loss = neap_loss_find("cross-entropy")};

	(void)arg;
	for (size_t i = 0; i < sizeof many / sizeof many[0]; i++) {
		struct neap_net_options o = net_options(many[i]);
		struct batch_room room;
		batch_make(&room, 3, 19, o.inputs, 40, o.classes, 0.2, NULL);
		o.precision = NEAP_FLOAT;
		struct neap_net *chains = bf16_net_make(&o);
		o.products = NEAP_TILES;
		struct neap_net *tiles = bf16_net_make(&o);
		double a = sweep_plain(chains, &room.batch, &objective);
		double b = sweep_plain(tiles, &room.batch, &objective);
		struct neap_net_result result = {.size = sizeof result};
		neap_net_get_result(tiles, &result);
		double distance = grad_distance(chains, tiles);
		fprintf(stderr, "# %s: rate %g, loss %g, off by %g; gradients by %g\n", many[i],
			result.spikes, a, b - a, distance);
		assert_true(result.spikes > 0.1);
		assert_true(fabs(b - a) < 1e-5 * a);
		assert_true(distance > 0 && distance < 1e-4);
		neap_net_free(chains);
		neap_net_free(tiles);
		batch_free(&room);
	}
}

/* Tensors whose products are in tiles, and in how many planes. */
static void tensors_in_planes(void **arg)
{
	static const struct {
		const char *spec, *tensor;
		enum neap_precision precision;
		int planes, turned;
	} cases[] = {{"lif:9r,lif:7,li", "layer0.weight", NEAP_FLOAT, 3, 0},
		{"lif:9r,lif:7,li", "layer0.recurrent", NEAP_FLOAT, 3, 1},
		{"lif:9r,lif:7,li", "layer1.weight", NEAP_FLOAT, 3, 1},
		{"lif:9r,lif:7,li", "readout.weight", NEAP_FLOAT, 3, 1},
		{"lif:9r,lif:7,li", "layer0.bias", NEAP_FLOAT, 0, 0},
		{"lif:9,lif:7:delay=0..3,li", "layer1.weight", NEAP_FLOAT, 0, 0},
		{"lif:9,lif:7,li:from=layer0+layer1", "readout.weight", NEAP_FLOAT, 0, 0},
		{"lif:9,lif:7:density=0.5,li", "layer1.weight", NEAP_FLOAT, 0, 0},
		{"lif:9,gru:7,li", "layer1.recurrent", NEAP_FLOAT, 0, 1},
		{"lstm:9,gru:7,li", "layer0.recurrent", NEAP_BF16, 1, 1},
		{"lstm:9,gru:7,li", "layer1.weight", NEAP_BF16, 1, 1},
		{"lstm:9,gru:7,li", "readout.weight", NEAP_BF16, 0, 1}};

	(void)arg;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct neap_net_options o = net_options(cases[i].spec);
		int found = 0;
		o.precision = cases[i].precision;
		o.products = NEAP_TILES;
		struct neap_net *net = bf16_net_make(&o);
		for (int k = 0; k < net->ntensors; k++)
			if (strcmp(net->tensors[k].name, cases[i].tensor) == 0) {
				assert_int_equal(net->tensors[k].planes, cases[i].planes);
				assert_int_equal(net->turned[k] != NULL, cases[i].turned);
				found = 1;
			}
		assert_true(found);
		assert_false(net->has_log);
		neap_net_free(net);
	}
}

/* All dense products of hidden layers are; those of the readout are not. */
static void rounded_tensors(void **arg)
{
	static const char *const rounded[] = {
		"layer0.weight", "layer0.recurrent", "layer1.weight", "layer1.recurrent"};
	struct neap_net_options o = net_options("lstm:9,gru:7,li");
	int found = 0;

	(void)arg;
	o.precision = NEAP_BF16;
	struct neap_net *net = bf16_net_make(&o);
	for (int i = 0; i < net->ntensors; i++) {
		int is_one = 0;
		for (size_t k = 0; k < sizeof rounded / sizeof rounded[0]; k++)
			is_one |= !strcmp(net->tensors[i].name, rounded[k]);
		assert_int_equal(net->tensors[i].is_rounded, is_one);
		found += is_one;
	}
	assert_int_equal(found, 4);
	neap_net_free(net);
}

static void rejected(void **arg)
{
	static const struct {
		const char *spec, *isa, *words;
		enum neap_precision precision;
		enum neap_products products;
	} cases[] = {
		{"lif:9r,li", "lowered", "layer 0 of 'lif:9r,li' is lif", NEAP_BF16, NEAP_CHAINS},
		{"gru:9,egru:9,li", "lowered", "layer 1 of 'gru:9,egru:9,li' is egru", NEAP_BF16,
			NEAP_CHAINS},
		{"gru:9:density=0.5,li", "lowered", "density", NEAP_BF16, NEAP_TILES},
		{"gru:9,rnn:9,li:from=layer0+layer1", "lowered", "from", NEAP_BF16, NEAP_CHAINS},
		{"gru:9,li", "plain", "AVX512-BF16", NEAP_BF16, NEAP_CHAINS},
		{"gru:9,li", "plain", "AVX512-BF16", NEAP_BF16, NEAP_TILES},
		{"lif:9,li", "plain", "AVX-512", NEAP_FLOAT, NEAP_TILES},
		{"lif:9,li", "lowered", "--precision float or bf16", NEAP_DOUBLE, NEAP_TILES},
		{"lif:conv=1x3:channels=4:shape=1x1x19,li:density=0.5", "lowered",
			"no weights of 'lif:conv", NEAP_FLOAT, NEAP_TILES},
		{"lif:9,li", "lowered", "products must be chains or tiles", NEAP_FLOAT,
			(enum neap_products)2}};
	const char *was = getenv("NEAP_ISA");
	char *kept = was ? strdup(was) : NULL;

	(void)arg;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct neap_net_options o = net_options(cases[i].spec);
		struct neap_net *net;
		o.precision = cases[i].precision;
		o.products = cases[i].products;
		setenv("NEAP_ISA", cases[i].isa, 1);
		assert_int_equal(neap_net_create(&net, &o), NEAP_EUSAGE);
		assert_non_null(strstr(neap_detail(), cases[i].words));
		assert_non_null(strstr(
			neap_detail(), cases[i].products == NEAP_CHAINS ? "--precision" : ""));
		assert_null(net);
	}
	if (kept)
		setenv("NEAP_ISA", kept, 1);
	else
		unsetenv("NEAP_ISA");
	free(kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(near_double),
		cmocka_unit_test(near_chains),
		cmocka_unit_test(tensors_in_planes),
		cmocka_unit_test(rounded_tensors),
		cmocka_unit_test(rejected),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
