/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_bf16_nets.c: nets of precision bf16 against nets in double: losses and gradients differ by
 * the rounding of factors, and by no more; which tensors are rounded, and what is rejected.
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
	for (size_t i = 0; i < 2 * sizeof specs / sizeof specs[0]; i++) {
		struct neap_net_options o = net_options(specs[i / 2]);
		struct batch_room room;
		batch_make(&room, 3, 6, o.inputs, 0, o.classes, 0.2, lengths);
		o.scale = 1;
		o.values = (int)(i % 2);
		if (o.values)
			batch_numbers(&room, 9, 1, NEAP_TARGET_LABEL, o.classes);
		o.precision = NEAP_DOUBLE;
		struct neap_net *exact = net_make(&o);
		o.precision = NEAP_BF16;
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
		fprintf(stderr, "# %s, values %d: loss %g, off by %g; gradients by %g\n",
			specs[i / 2], o.values, a, b - a, distance);
		assert_true(fabs(b - a) < most * a);
		assert_true(distance > least && distance < most);
		neap_net_free(exact);
		neap_net_free(rounded);
		batch_free(&room);
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
	} cases[] = {{"lif:9r,li", "lowered", "layer 0 of 'lif:9r,li' is lif"},
		{"gru:9,egru:9,li", "lowered", "layer 1 of 'gru:9,egru:9,li' is egru"},
		{"gru:9:density=0.5,li", "lowered", "density"},
		{"gru:9,rnn:9,li:from=layer0+layer1", "lowered", "from"},
		{"gru:9,li", "plain", "AVX512-BF16"}};
	const char *was = getenv("NEAP_ISA");
	char *kept = was ? strdup(was) : NULL;

	(void)arg;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct neap_net_options o = net_options(cases[i].spec);
		struct neap_net *net;
		o.precision = NEAP_BF16;
		setenv("NEAP_ISA", cases[i].isa, 1);
		assert_int_equal(neap_net_create(&net, &o), NEAP_EUSAGE);
		assert_non_null(strstr(neap_detail(), cases[i].words));
		assert_non_null(strstr(neap_detail(), "--precision"));
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
		cmocka_unit_test(rounded_tensors),
		cmocka_unit_test(rejected),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
