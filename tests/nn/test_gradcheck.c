/* SPDX-License-Identifier: Apache-2.0 */
/* Analytic gradients against central differences, over every variant of a net. */
#include "nn/nets.h"

static void check(const struct neap_net_options *o, const struct neap_objective *objective,
	struct batch_room *room, int probes)
{
	double worst = 1;
	int rc = neap_gradcheck(&worst, o, &room->batch, objective, probes);
	if (rc || !(worst < 1e-5))
		fprintf(stderr,
			"# %s: reset %d detach %d surrogate %d support %g readout %d delay %d "
			"density "
			"%g loss %s: rc %d, worst %g\n",
			o->spec, o->reset, o->detach, o->surrogate, o->support, o->readout,
			o->delay, o->density, objective->loss->name, rc, worst);
	assert_int_equal(rc, 0);
	assert_true(worst < 1e-5);
}

static struct neap_net_options options(const char *spec)
{
	struct neap_net_options o = NEAP_NET_OPTIONS_INIT;
	o.spec = spec;
	o.inputs = 7;
	o.classes = 3;
	o.seed = 11;
	o.threads = 1;
	o.scale = 2.0;
	o.recurrent_scale = 0.7;
	o.tau = o.tau_out = 5e-3;
	return o;
}

static void make(struct batch_room *room)
{
	static const int64_t lengths[] = {9, 13, 4};
	batch_make(room, 5, 3, 7, 13, 3, 0.3, lengths);
}

static const struct neap_objective *entropy(void)
{
	static struct neap_objective objective = {.size = sizeof objective};
	objective.loss = neap_loss_find("cross-entropy");
	return &objective;
}

static void resets(void **arg)
{
	static const char *const specs[] = {"lif:6r,li", "lif:6,li", "lif:6r,lif:5,li",
		"lif:5,lif:4r:delay=1,li",
		"lif:5r:reset=zero,lif:4r:reset=hard:delay=1,li:delay=1"};
	struct batch_room room;
	(void)arg;
	make(&room);
	for (size_t s = 0; s < sizeof specs / sizeof specs[0]; s++)
		for (int reset = 0; reset < 4; reset++)
			for (int detach = 0; detach < 2; detach++) {
				struct neap_net_options o = options(specs[s]);
				o.reset = (enum neap_reset)reset;
				o.detach = detach;
				o.reset_value = 0.2;
				o.surrogate = NEAP_SIGMOID;
				check(&o, entropy(), &room, 60);
			}
	batch_free(&room);
}

/* The other cells that spike, in nets of their own kind and among others. */
static void spiking_cells(void **arg)
{
	static const char *const specs[] = {"cubalif:6r:tau_syn=3ms,li",
		"cubalif:5:scale=1,lif:4r:delay=1,cubalif:4r:tau_syn=8ms,li:delay=1",
		("cubalif:5r:scale=1:reset=hard:reset_value=-0.2,"
		 "cubalif:4r:reset=soft:tau_syn=8ms,li"),
		"alif:6r:tau_adapt=12ms:adapt=0.4,li",
		"alif:5:adapt=0.3,alif:4r:delay=1:tau_adapt=7ms,li",
		"adlif:6r:a=0.3:b=0.4:tau_adapt=9ms:scale=6,li",
		"adlif:5:scale=6:a=-0.2,adlif:4r:delay=1:scale=8:tau_adapt=6ms,li",
		"seadlif:6r:a=3:b=4:tau_adapt=9ms:scale=6,li",
		"seadlif:5:scale=6:a=-2,seadlif:4r:delay=1:scale=8:tau_adapt=6ms:b=3,li",
		"brf:6r:omega=200:b=30:scale=900,li",
		"brf:5:omega=300:b=9:scale=900,brf:4r:delay=1:scale=900:tau_adapt=6ms,li",
		"alif:4r:tau=5ms..25ms,brf:4:scale=900:omega=50..300:b=9..30,"
		"seadlif:4:scale=9:a=1..3:tau_adapt=9ms..90ms,li",
		"alif:4r,adlif:4r:scale=6,cubalif:4r,seadlif:4:scale=9,lif:3r:reset=zero,li"};
	struct batch_room room;
	(void)arg;
	make(&room);
	for (size_t s = 0; s < sizeof specs / sizeof specs[0]; s++)
		for (int detach = 0; detach < 2; detach++)
			for (int euler = 0; euler < 2; euler++) {
				struct neap_net_options o = options(specs[s]);
				struct neap_objective objective = *entropy();
				objective.rates = (struct neap_rate_penalty){.l2 = 0.7};
				o.detach = detach;
				o.euler = euler;
				o.surrogate = euler ? NEAP_DOUBLE_GAUSSIAN : NEAP_SIGMOID;
				check(&o, &objective, &room, 0);
			}
	batch_free(&room);
}

/* Cells whose outputs are numbers, alone, upon each other and among cells that spike. */
static void gated_cells(void **arg)
{
	static const char *const specs[] = {"rnn:6,li",
		/* of full density: a unit that nothing reaches lies on the kink */
		"rnn:5:activation=relu:density=1,rnn:4:delay=1:density=1,li", "lstm:6,li",
		"lstm:4,lstm:5:delay=1,li:delay=1", "gru:6,li", "gru:4,gru:5:delay=1,li:delay=1",
		"egru:6:threshold=0.2,li", "egru:5:threshold=0.1,egru:4:threshold=0.1:delay=1,li",
		"egru:4:threshold=0.2,lif:4:scale=9,gru:3:delay=1,li",
		"gru:4,lif:5r:reset=zero,lstm:3:delay=1,alif:4,rnn:3,li"};
	struct batch_room room;
	(void)arg;
	make(&room);
	for (size_t s = 0; s < sizeof specs / sizeof specs[0]; s++)
		for (int sparse = 0; sparse < 2; sparse++) {
			struct neap_net_options o = options(specs[s]);
			struct neap_objective objective = *entropy();
			objective.rates = (struct neap_rate_penalty){.l1 = 0.1, .l2 = 0.7};
			o.density = sparse ? 0.6 : 1;
			o.surrogate = NEAP_SIGMOID;
			check(&o, &objective, &room, 0);
		}
	batch_free(&room);
}

static void surrogates(void **arg)
{
	struct batch_room room;
	(void)arg;
	make(&room);
	for (int surrogate = 0; surrogate < 6; surrogate++)
		for (int cut = 0; cut < 2; cut++) {
			struct neap_net_options o = options("lif:6r,lif:4:reset=soft,li");
			o.surrogate = (enum neap_surrogate)surrogate;
			o.support = cut ? 0.4 : 0;
			check(&o, entropy(), &room, 80);
		}
	batch_free(&room);
}

static void readouts(void **arg)
{
	struct batch_room room;
	(void)arg;
	make(&room);
	for (int i = 0; i < 3; i++) {
		for (int c = 0; c < 3; c++)
			room.targets[i * 3 + c] = (float)(0.3 * i - 0.2 * c);
	}
	for (int readout = 0; readout < 6; readout++)
		for (int loss = 0; loss < 2; loss++)
			for (int target = 0; target < 1 + loss; target++)
				for (int delay = 0; delay < 2; delay++) {
					struct neap_net_options o = options("lif:6r,li");
					struct neap_objective objective = {.size = sizeof objective,
						.loss = neap_loss_at(loss)};
					o.readout = (enum neap_readout)readout;
					o.delay = delay;
					o.surrogate = NEAP_GAUSSIAN;
					for (int b = 0; b < 3; b++)
						room.sequences[b].target =
							target ? room.targets + 3 * b : NULL;
					check(&o, &objective, &room, 60);
				}
	batch_free(&room);
}

/* Inputs that are numbers, and targets of every kind. */
static void numbers(void **arg)
{
	static const char *const specs[] = {"lif:6r,li", "gru:5,lstm:4:delay=1,li",
		"alif:5r,egru:4:threshold=0.1,li:delay=1", "rnn:6,li",
		"lif:6r:learn=tau,li:learn=tau"};
	(void)arg;
	for (int i = 0; i < 5 * 2 * NEAP_TARGETS; i++) {
		int values = i / 5 % 2, target = i / 10, sparse = i % 3 == 2;
		struct neap_net_options o = options(specs[i % 5]);
		struct neap_objective objective = {.size = sizeof objective};
		struct batch_room room;
		make(&room);
		batch_numbers(&room, 21, values, (enum neap_target)target, 3);
		o.values = values;
		o.readout = target % 2 ? NEAP_READ_STEP : NEAP_READ_MEAN;
		o.surrogate = NEAP_SIGMOID;
		o.density = sparse ? 0.6 : 1;
		objective.loss =
			neap_loss_find(target < NEAP_TARGET_NUMBERS ? "cross-entropy" : "mse");
		check(&o, &objective, &room, 0);
		batch_free(&room);
	}
}

/* Layers that see several others, below and above, and integrators. */
static void sources(void **arg)
{
	static const char *const specs[] = {"lif:5,lif:4:from=input+layer0,li:from=layer0+layer1",
		"lif:5r:from=input+layer1,lif:4:reset=zero,li:from=input+layer0+layer1",
		"lif:4:from=input+layer1+layer2,alif:4r:from=input,cubalif:3:from=layer0+layer1,"
		"li:from=layer1+layer2",
		"lif:5r:reset=hard:threshold=-0.1:reset_value=-0.4,lif:4:reset=hard:threshold=0,li",
		"integrator:5r,lif:4:from=input+layer0,li",
		"integrator:5:learn=tau,integrator:4r:learn=tau,li",
		"gru:4:from=input+layer1,integrator:4:learn=tau,lif:3:from=input+layer0+layer1,"
		"li:from=layer0+layer2"};
	struct batch_room room;
	(void)arg;
	make(&room);
	for (size_t s = 0; s < sizeof specs / sizeof specs[0]; s++)
		for (int i = 0; i < 8; i++) {
			struct neap_net_options o = options(specs[s]);
			struct neap_objective objective = *entropy();
			objective.rates = (struct neap_rate_penalty){.l2 = 0.7};
			o.delay = i & 1;
			o.density = i & 2 ? 0.6 : 1;
			o.dropout = i & 4 ? 0.3 : 0;
			objective.dropout = i & 4 ? 5 : 0;
			o.surrogate = NEAP_SIGMOID;
			check(&o, &objective, &room, 0);
		}
	batch_numbers(&room, 21, 1, NEAP_TARGET_LABEL, 3);
	for (size_t s = 0; s < sizeof specs / sizeof specs[0]; s++) {
		struct neap_net_options o = options(specs[s]);
		o.values = 1;
		o.surrogate = NEAP_SIGMOID;
		check(&o, entropy(), &room, 0);
	}
	batch_free(&room);
}

/* Shared weights: convolutions of every key, and pooling of every kind. */
static void filters(void **arg)
{
	static const char *const specs[] = {"lif:conv=3:channels=3:shape=2x5x4,li",
		"lif:conv=3x2:stride=2x1:pad=1:channels=4:groups=2:shape=2x5x4:reset=zero,"
		"alif:conv=2:channels=2:dilation=1x2,li:pool=2",
		"cubalif:conv=2:channels=3:pool=2x1:pooling=max:shape=2x5x4:dropout=0.3,"
		"lif:5r:pool=1x2:pooling=max:delay=1,li",
		"adlif:conv=1:channels=2:shape=2x5x4:pool=2:pooling=avg:scale=9:learn=tau,"
		"seadlif:conv=1:channels=3:scale=9:delay=1,li:pool=1x2:pooling=avg:delay=1",
		"lif:40:pool=2:pooling=max:shape=2x5x4,lif:conv=3:shape=4x5x2:pad=1:channels=2,li",
		"gru:8,lif:conv=2:shape=2x2x2:channels=3,li",
		"lif:conv=2:channels=3:shape=2x5x4:conv_pool=2:conv_pool_stride=1,"
		"lif:conv=2x1:pad=1:channels=2:conv_pool=3x2:conv_pooling=avg:conv_pool_pad=1,li",
		"lif:conv=2:channels=3:shape=2x5x4:pool=3x2:pool_stride=1:pool_pad=1,"
		"lif:6r:pool=2:pool_stride=1:pooling=avg:delay=1,li",
		"lif:conv=2x1:channels=3:shape=2x5x4:pool=3:pool_stride=2:pool_pad=1:pooling=max:"
		"dropout=0.3,lif:5:pool=2:pool_stride=1:pooling=max:dropout=0.3,"
		"li:pool=2x1:pool_stride=1:shape=1x5x1:pooling=max",
		"lif:conv=2x1:channels=4:shape=2x5x4:pool=1x2:pool_stride=2:conv_pool=2x1:"
		"conv_pool_pad=1x0:conv_pooling=avg:pooling=max,li:pool=2:pool_stride=1x2:pool_pad="
		"1:pooling=max",
		"lif:conv=2x1:channels=3:shape=2x5x4:pool=1x2:pooling=max:conv_pool=2x1:conv_"
		"pooling=max:"
		"conv_pool_stride=1:conv_pool_pad=1x0:dropout=0.2,"
		"alif:conv=1x2:channels=3:conv_pool=2:conv_pool_stride=1:conv_pooling=max:norm="
		"batch:delay=1:"
		"pad=1,li",
		"lif:conv=2x1:channels=4:groups=2:shape=2x5x4:norm=batch:conv_pool=2x1,"
		"cubalif:6r:norm=batch:dropout=0.3,alif:5:norm=batch:from=layer0+layer1:learn=tau,"
		"li"};
	(void)arg;
	for (size_t s = 0; s < sizeof specs / sizeof specs[0]; s++)
		for (int values = 0; values < 2; values++) {
			static const int64_t lengths[] = {9, 13, 4};
			struct neap_net_options o = options(specs[s]);
			struct neap_objective objective = *entropy();
			struct batch_room room;
			batch_make(&room, 5, 3, 40, 13, 3, 0.2, lengths);
			batch_numbers(&room, 21, values, NEAP_TARGET_LABEL, 3);
			o.inputs = 40;
			o.values = values;
			o.surrogate = NEAP_SIGMOID;
			objective.rates = (struct neap_rate_penalty){.l2 = 0.7};
			objective.dropout = 4;
			check(&o, &objective, &room, 0);
			batch_free(&room);
		}
}

/* Delays of units, fixed and learned, into cells of every kind and into the readout. */
static void delays(void **arg)
{
	static const char *const specs[] = {"lif:6,li:delay=3", "lif:6r,lif:5:delay=0..4,li",
		"lif:6r,lif:5r:delay=0..4:learn,li:delay=2..6:learn",
		("alif:5:dropout=0.3,cubalif:4r:delay=1..2:learn,"
		 "adlif:5:scale=9:delay=11:dropout=0.5,li:delay=0..1:learn"),
		("lif:6:reset=zero,gru:4:delay=0..3:learn:density=0.7,lif:4:scale=9,"
		 "lif:3:delay=0..127:learn,li:delay=0..1"),
		"lif:6:learn=tau,lif:5r:reset=zero:delay=5..9:learn:learn=tau,li:delay=1",
		("cell c;state u;u=tanh(u)+in+0.1*spike;reset u=0;spike u-1:5r,"
		 "lif:4:scale=3:delay=0..5:learn,li")};
	static const int64_t lengths[] = {9, 13, 4};
	struct batch_room room;
	(void)arg;
	batch_make(&room, 5, 3, 7, 13, 3, 0.3, lengths);
	for (size_t s = 0; s < sizeof specs / sizeof specs[0]; s++)
		for (int detach = 0; detach < 2; detach++) {
			struct neap_net_options o = options(specs[s]);
			struct neap_objective objective = *entropy();
			o.surrogate = NEAP_SIGMOID;
			o.detach = detach;
			objective.rates = (struct neap_rate_penalty){.l2 = 0.7};
			objective.dropout = 4;
			check(&o, &objective, &room, 0);
		}
	batch_free(&room);
}

static void penalties(void **arg)
{
	static const struct neap_rate_penalty penalties[] = {{.upper = 0.05, .upper_weight = 3},
		{.lower = 0.4, .lower_weight = 2}, {.l1 = 0.5}, {.l2 = 0.7},
		{.upper = 0.1,
			.upper_weight = 1,
			.lower = 0.3,
			.lower_weight = 2,
			.l1 = 1,
			.l2 = 1}};
	struct batch_room room;
	(void)arg;
	make(&room);
	for (int i = 0; i < 5; i++) {
		struct neap_net_options o = options("lif:6r,lif:4,li");
		struct neap_objective objective = *entropy();
		objective.rates = penalties[i];
		check(&o, &objective, &room, 60);
	}
	batch_free(&room);
}

static void densities(void **arg)
{
	struct batch_room room;
	(void)arg;
	make(&room);
	for (int i = 0; i < 3; i++) {
		struct neap_net_options o = options("lif:8r,lif:6r:reset=zero,li");
		o.density = (const double[]){0.6, 0.3, 0.05}[i];
		check(&o, entropy(), &room, 0);
	}
	struct neap_net_options o = options("lif:8r,li:density=0.5");
	check(&o, entropy(), &room, 0);
	batch_free(&room);
}

static void dropouts(void **arg)
{
	static const char *const specs[] = {"lif:12r:dropout=0.5,li",
		"lif:12r:dropout=0.3,lif:9:reset=zero:dropout=0.6,li",
		"lif:12:reset=hard:dropout=0.5,lif:9r:delay=1:dropout=0.2,li:delay=1",
		"gru:9:dropout=0.3,egru:8:threshold=0.1:dropout=0.4,adlif:8r:scale=6,li"};
	struct batch_room room;
	(void)arg;
	make(&room);
	for (int i = 0; i < 12; i++) {
		struct neap_net_options o = options(specs[i % 4]);
		struct neap_objective objective = *entropy();
		objective.rates = (struct neap_rate_penalty){.upper = 0.1, .upper_weight = 1};
		objective.dropout = 1 + (uint32_t)i;
		o.density = i < 8 ? 1 : 0.6;
		o.detach = i % 2;
		check(&o, &objective, &room, 0);
	}
	batch_free(&room);
}

/* The penalty acts on layers that spike, alone: to others it changes no bit. */
static void only_spikes_are_penalised(void **arg)
{
	static const struct {
		const char *spec;
		int acts;
	} nets[] = {{"lstm:6,li", 0}, {"gru:6,li", 0}, {"rnn:6,li", 0},
		{"egru:6:threshold=0.1,li", 0}, {"lstm:6,gru:5,li", 0}, {"lif:6r,li", 1},
		{"alif:6r:tau_adapt=12ms,li", 1}, {"lstm:6:scale=9,lif:6:scale=9,li", 1}};
	struct batch_room room;
	(void)arg;
	make(&room);
	for (size_t i = 0; i < sizeof nets / sizeof nets[0]; i++) {
		struct neap_net_options o = options(nets[i].spec);
		struct neap_objective with = *entropy();
		struct neap_net_result r = {.size = sizeof r};
		with.rates = (struct neap_rate_penalty){.upper = 0.02,
			.upper_weight = 1,
			.lower = 0.01,
			.lower_weight = 1,
			.l1 = 1,
			.l2 = 1};
		struct neap_net *net = net_make(&o);
		sweep_plain(net, &room.batch, entropy());
		uint64_t without = neap_net_grad_hash(net);
		sweep_plain(net, &room.batch, &with);
		assert_int_equal(neap_net_get_result(net, &r), 0);
		assert_int_equal(r.penalty != 0, nets[i].acts);
		assert_int_equal(neap_net_grad_hash(net) != without, nets[i].acts);
		neap_net_free(net);
	}
	batch_free(&room);
}

/* Time constants that are learned, of every cell that has them, by either kind of decay. */
static void learned_leaks(void **arg)
{
	static const char *const specs[] = {"lif:6r:learn=tau,li:learn=tau",
		"lif:5r:reset=zero:learn=tau,lif:4r:learn=tau:delay=1,li",
		"lif:5r:reset=hard:learn=tau,lif:4:reset=soft:learn=tau,li:learn=tau:delay=1",
		"cubalif:6r:tau_syn=3ms:learn=tau,li:learn=tau",
		"cubalif:6r:reset=hard:reset_value=0.1:learn=tau,cubalif:4:reset=soft:learn=tau,li",
		"alif:6r:tau_adapt=12ms:adapt=0.4:learn=tau,li",
		"adlif:6r:a=0.3:b=0.4:tau_adapt=9ms:scale=6:learn=tau,li",
		"seadlif:6r:a=3:b=4:tau_adapt=9ms:scale=6:learn=tau,li",
		"seadlif:6r:a=1..9:b=4:tau_adapt=9ms:scale=6:learn=all,li",
		"brf:6r:omega=100..300:b=30:scale=900:learn=tau,brf:4r:scale=900:learn=all:delay=1,"
		"li",
		("adlif:5:scale=6:a=-0.2:learn=tau,cubalif:4r:delay=1:learn=tau,alif:4r:learn=tau,"
		 "li")};
	struct batch_room room;
	(void)arg;
	make(&room);
	for (size_t s = 0; s < sizeof specs / sizeof specs[0]; s++)
		for (int i = 0; i < 8; i++) {
			struct neap_net_options o = options(specs[s]);
			struct neap_objective objective = *entropy();
			objective.rates = (struct neap_rate_penalty){.l2 = 0.7};
			o.reset_value = 0.2;
			o.detach = i & 1;
			o.euler = i >> 1 & 1;
			o.surrogate = i & 4 ? NEAP_TRIANGLE : NEAP_SIGMOID;
			o.readout = (enum neap_readout)(i % 6);
			check(&o, &objective, &room, 0);
		}
	batch_free(&room);
}

/* Several blocks of 64 steps, several groups, Euler decay. */
static void long_ones(void **arg)
{
	static const int64_t lengths[] = {150, 131, 64, 65, 0};
	struct batch_room room;
	(void)arg;
	batch_make(&room, 6, 5, 7, 150, 3, 0.1, lengths);
	struct neap_net_options o = options("lif:6r,li");
	o.group = 2;
	o.euler = 1;
	o.surrogate = NEAP_ATAN;
	check(&o, entropy(), &room, 60);
	batch_free(&room);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resets),
		cmocka_unit_test(spiking_cells),
		cmocka_unit_test(gated_cells),
		cmocka_unit_test(surrogates),
		cmocka_unit_test(readouts),
		cmocka_unit_test(numbers),
		cmocka_unit_test(filters),
		cmocka_unit_test(sources),
		cmocka_unit_test(delays),
		cmocka_unit_test(penalties),
		cmocka_unit_test(densities),
		cmocka_unit_test(dropouts),
		cmocka_unit_test(only_spikes_are_penalised),
		cmocka_unit_test(learned_leaks),
		cmocka_unit_test(long_ones),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
