/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frozen tensors: their gradients are 0, those of all others have the bits that they have without,
 * and where whole layers below are frozen there are fewer bytes of tape and no log.
 */
#include "nn/nets.h"

static const struct {
	const char *spec, *freeze;
	int shorter; /* a layer has no tape */
	double density;
	enum neap_readout readout;
} cases[] = {
	{"lif:40r,lif:30r,lif:20,li", "layer0", 0, 1, NEAP_READ_MEAN},
	{"lif:40r,lif:30r,lif:20,li", "layer0,layer1", 1, 1, NEAP_READ_MEAN},
	{"lif:40r,lif:30r,lif:20,li", "layer0,layer1,layer2", 1, 1, NEAP_READ_MAX},
	{"lif:40r,lif:30r,li", "layer1,readout", 0, 1, NEAP_READ_STEP},
	{"lif:40r,lif:30r,li", "layer0.weight,layer1.recurrent,readout.bias", 0, 0.4,
		NEAP_READ_SUM},
	{"lif:40r:reset=zero,lif:30r:reset=hard,lif:20r:reset=zero,li", "layer0,layer1", 1, 0.5,
		NEAP_READ_LAST},
	{"cubalif:40r:learn=tau,alif:33r:learn=tau,adlif:20r:scale=40:learn=tau,li:learn=tau",
		"layer0,layer1,layer2.leak,readout.leak", 1, 1, NEAP_READ_SOFTMAX},
	{"seadlif:40r:scale=40:learn=tau,seadlif:33r:scale=40:learn=tau,li:learn=tau",
		"layer0,layer1.leak_adapt", 0, 1, NEAP_READ_MEAN},
	{"brf:40r:scale=900:learn=tau,brf:33r:scale=900:b=9..20,brf:20:scale=900:learn=tau,li",
		"layer0,layer1,layer2.omega", 1, 1, NEAP_READ_MEAN},
	{"gru:33:dropout=0.4,lstm:20,rnn:20:delay=1,li", "layer0,layer1", 1, 1, NEAP_READ_MEAN},
	{"lstm:33,gru:20,li", "layer0.weight,readout.weight", 0, 1, NEAP_READ_MEAN},
	{"egru:20:threshold=0.1,egru:20:threshold=0.1,li", "layer0,layer1.candidate", 0, 1,
		NEAP_READ_MEAN},
	{"lif:40r,lif:30:delay=0..20:learn,lif:20:delay=2..9:learn,li", "layer0,layer1.delay", 0, 1,
		NEAP_READ_MEAN},
	{"lif:40r,lif:30:delay=0..20:learn,lif:20:delay=2..9:learn,li", "layer0,layer1", 1, 1,
		NEAP_READ_SUM},
	{"gru:20,lif:30r:scale=9,egru:20:threshold=0.1,li", "layer0,layer1", 1, 0.6,
		NEAP_READ_MEAN},
};

static const int64_t lengths[] = {100, 64, 65, 1, 0, 99, 128};

static void gradients(void **state)
{
	const struct neap_objective objective = {.size = sizeof objective,
		.loss = neap_loss_find("cross-entropy"),
		.rates = {.upper = 0.02, .upper_weight = 1, .l2 = 0.1},
		.dropout = 3};
	struct batch_room room;

	(void)state;
	batch_make(&room, 8, 7, 19, 0, 5, 0.1, lengths);
	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
		struct neap_net_options o = net_options(cases[c].spec);
		struct neap_net_sizes all = {.size = sizeof all}, some = {.size = sizeof some};
		int frozen = 0, moved = 0;
		o.density = cases[c].density;
		o.readout = cases[c].readout;
		o.precision = c % 2 ? NEAP_FLOAT : NEAP_DOUBLE;
		struct neap_net *plain = net_make(&o);
		o.freeze = cases[c].freeze;
		struct neap_net *net = net_make(&o);
		double a = sweep_plain(plain, &room.batch, &objective);
		double b = sweep_plain(net, &room.batch, &objective);
		assert_true(a == b);
		for (int i = 0; i < neap_net_params(net); i++) {
			struct neap_param p, q;
			neap_net_param(plain, i, &p);
			neap_net_param(net, i, &q);
			assert_int_equal(
				neap_net_frozen(plain, i), strcmp(p.name, "layer1.b") == 0);
			for (int64_t k = 0; k < p.count; k++) {
				if (q.grad[k] != (neap_net_frozen(net, i) ? 0 : p.grad[k]))
					fail_msg(
						"%s, %s: %s[%d]", o.spec, o.freeze, p.name, (int)k);
				moved += q.grad[k] != 0;
			}
			frozen += neap_net_frozen(net, i);
		}
		assert_true(frozen > 0 && moved > 0);
		assert_int_equal(neap_net_begin(plain, &room.batch, &objective), 0);
		assert_int_equal(neap_net_begin(net, &room.batch, &objective), 0);
		neap_net_get_sizes(plain, &all);
		neap_net_get_sizes(net, &some);
		assert_true(cases[c].shorter ? some.tape_max < all.tape_max
					     : some.tape_max == all.tape_max);
		assert_true(some.log_max == (cases[c].shorter ? 0 : all.log_max));
		neap_net_end(plain);
		neap_net_end(net);
		neap_net_free(plain);
		neap_net_free(net);
	}
	batch_free(&room);
}

static void names(void **state)
{
	static const char *const bad[] = {"layer3", "layer", "layer0.", "layer0,", ",",
		"layer0..weight", "layer0.weigh", "readout,layer0 ", "layer0,layer1,readout"};
	struct neap_net_options o = net_options("lif:40r,lif:30r,li");
	struct neap_net *net;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		o.freeze = bad[i];
		assert_int_equal(neap_net_create(&net, &o), NEAP_EUSAGE);
		assert_null(net);
	}
	o.freeze = "";
	net = net_make(&o);
	assert_int_equal(neap_net_frozen(net, 0), 0);
	assert_int_equal(neap_net_frozen(net, -1), 0);
	assert_int_equal(neap_net_frozen(net, 100), 0);
	neap_net_free(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(gradients), cmocka_unit_test(names)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
