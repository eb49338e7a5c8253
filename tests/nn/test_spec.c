/* SPDX-License-Identifier: Apache-2.0 */
/* The specification string and options: what is refused, and with which words. */
#include "nn/nets.h"

static struct neap_net_options options(const char *spec)
{
	struct neap_net_options o = NEAP_NET_OPTIONS_INIT;
	o.spec = spec;
	o.inputs = 4;
	o.classes = 3;
	o.threads = 1;
	return o;
}

static const struct {
	const char *spec, *says;
} bad[] = {
	{"", "empty"},
	{"lif", "needs a size"},
	{"lif:", "colon"},
	{"li", NULL},
	{"lif:8", "last layer"},
	{"li,li", "must be the last"},
	{"lif:8,", "unknown cell ''"},
	{",li", "unknown cell ''"},
	{"gnu:8,li", "unknown cell 'gnu'; choose one of lif"},
	{"lif:8:tau_syn=5ms,li", "lif has no key 'tau_syn'; it has tau, reset"},
	{"rnn:8:activation=gelu,li", "activation 'gelu' is not one of tanh, relu"},
	{"rnn:8:tau=1ms,li", "rnn has no key 'tau'; it has activation, density"},
	{"lstm:8:threshold=1,li", "lstm has no key 'threshold'"},
	{"egru:8:tau=1ms,li", "egru has no key 'tau'; it has surrogate, width"},
	{"egru:8:threshold=0,li", "threshold must be a number above 0"},
	{"gru,li", "gru needs a size"},
	{"gru:8:activation=tanh,li", "gru has no key 'activation'"},
	{"cubalif:8:tau_syn=0,li", "tau_syn must be a positive time"},
	{"cubalif:8:reset=zero,li", "cubalif has no reset 'zero'; it has subtract, hard, soft"},
	{"alif:8:reset=hard,li", "alif has no key 'reset'; it has tau, tau_adapt, adapt, detach"},
	{"alif:8:tau_adapt=-1ms,li", "tau_adapt must be a positive time"},
	{"alif:8:adapt=-1,li", "adapt must be a number, 0 or more"},
	{"alif:8:a=1,li", "alif has no key 'a'"},
	{"adlif:8:a=x,li", "a must be a finite number"},
	{"adlif:8:b=inf,li", "b must be a finite number"},
	{"seadlif:8:reset=soft,li", "seadlif has no key 'reset'"},
	{"brf:8:tau=5ms,li", "brf has no key 'tau'"},
	{"brf:8:omega=1000,li", "omega is 1000 radians per second; a time step of 0.001 s allows"},
	{"brf:8:omega=1..1000,li",
		"omega is 1000 radians per second; a time step of 0.001 s allows"},
	{"brf:8:b=0,li", "b must be a number above 0, not '0'"},
	{"lif:8:tau=25ms..5ms,li",
		"tau='25ms..5ms' is not a range. Write LOW..HIGH, each a positive"},
	{"lif:8:tau=5ms..,li", "tau='5ms..' is not a range"},
	{"lif:8:tau=0..5ms,li", "tau='0..5ms' is not a range"},
	{"lif:8:tau=1us..5ms,li",
		"LOW..HIGH: tau is 1e-06 s, so short compared with the time step"},
	{"lif:8,li:tau=5ms..9ms", "tau of a readout is one value, not '5ms..9ms'"},
	{"alif:8:adapt=0.1..0.2,li", "adapt must be a number, 0 or more, not '0.1..0.2'"},
	{"adlif:8:adapt=1,li", "adlif has no key 'adapt'"},
	{"lif:0,li", "1 to 65535"},
	{"lif:-3,li", "1 to 65535"},
	{"lif:65536,li", "1 to 65535"},
	{"lif:99999999999999999999,li", "1 to 65535"},
	{"lif:8rr,li", "1 to 65535"},
	{"lif:8x,li", "a single number"},
	{"lif:r,li", "1 to 65535"},
	{"lif:8::tau=1ms,li", "expected KEY=VALUE"},
	{"lif:8:9,li", "expected KEY=VALUE"},
	{"lif:8:tau,li", "expected KEY=VALUE"},
	{"lif:8:tau=,li", "tau must be a positive time"},
	{"lif:8:tau=0,li", "tau must be"},
	{"lif:8:tau=-1ms,li", "tau must be"},
	{"lif:8:tau=nan,li", "tau must be"},
	{"lif:8:tau=inf,li", "tau must be"},
	{"lif:8:tau=0x10,li", "tau must be"},
	{"lif:8:tau=1e999,li", "tau must be"},
	{"lif:8:tau=5sec,li", "tau must be"},
	{"lif:8:width=20ms,li", "width must be"},
	{"lif:8:width=0,li", "width must be"},
	{"lif:8:height=-1,li", "height must be"},
	{"lif:8:support=-1,li", "support must be"},
	{"lif:8:threshold=0,li", "threshold must be"},
	{"lif:8:density=0,li", "density must be above 0 and at most 1"},
	{"lif:8:density=1.5,li", "density must be"},
	{"lif:8:learn=beta,li", "learn 'beta' is not one of none, tau"},
	{"lif:8:learn=tau:tau=1us,li", "learn=tau: tau is 1e-06 s, so short"},
	{"alif:8:learn=tau:tau_adapt=1us,li", "learn=tau: tau_adapt is 1e-06 s"},
	{"gru:8:learn=tau,li", "gru has no key 'learn'"},
	{"lif:8:dropout=1,li", "dropout must be 0 to 0.99"},
	{"lif:8,li:dropout=0.5", "li has no key 'dropout'"},
	{"lif:8:detach=2,li", "0 or 1"},
	{"lif:8:detach=0.5,li", "0 or 1"},
	{"lif:8:reset=none,li", "subtract, zero, hard, soft"},
	{"lif:8:surrogate=relu,li", "triangle, boxcar"},
	{"lif:8:gamma=0.9,li", "no key 'gamma'; it has tau, reset"},
	{"lif:8:beta=1,li", "beta must be a number above 0 and below 1, not '1'"},
	{"lif:8:beta=nan,li", "beta must be"},
	{"lif:8:slope=0,li", "slope must be a number above 0, not '0'"},
	{"lif:8:alpha=0.9,li", "no key 'alpha'; it has tau, reset"},
	{"gru:8:beta=0.9,li", "no key 'beta'"},
	{"lif:8:delay=1,li", "the first layer does not have"},
	{"lif:8,li:reset=zero", "no key 'reset'"},
	{"lif:8,li:4", "there are 3 classes"},
	{"lif:8,li:3r", "1 to 65535"},
	{"lif:8,li:tau=0", NULL},
	{"lif:8,li:tau=none", NULL},
	{"lif:8,li:tau=-1ms", "tau must be none or a time"},
	{"lif:8:tau=0,li", "tau must be a positive time"},
	{"lif:8:tau=none,li", "tau must be a positive time"},
	{"gru:8:init=orthogonal,li", "init 'orthogonal' is not one of normal, auto, torch"},
	{"gru:8:init=torch:scale=1,li",
		"gru has init=torch and scale, which only init=normal uses"},
	{"gru:8:init=normal:scale=1,li:init=torch", NULL},
	{"lif:8 ,li", "1 to 65535"},
	{"lif:conv=2:channels=3:shape=1x2x2,li", NULL},
	{"lif:3:conv=2:channels=3:shape=1x2x2,li:pool=1", NULL},
	{"lif:conv=2:channels=3,li", "Pass --shape CHANNELSxHEIGHTxWIDTH"},
	{"lif:conv=2:shape=1x2x2,li", "needs the number of its channels"},
	{"lif:conv=0:channels=3:shape=1x2x2,li", "conv must be a whole number such as 5"},
	{"lif:conv=2x:channels=3:shape=1x2x2,li", "conv must be"},
	{"lif:conv=x2:channels=3:shape=1x2x2,li", "conv must be"},
	{"lif:conv=2x2x2:channels=3:shape=1x2x2,li", "conv must be"},
	{"lif:conv=99999999999:channels=3:shape=1x2x2,li", "conv must be"},
	{"lif:conv=2:channels=3:shape=2x2,li", "shape must be CHANNELSxHEIGHTxWIDTH"},
	{"lif:conv=2:channels=3:shape=1x2x3,li", "has the shape 1x2x3, but receives 4 inputs"},
	{"lif:conv=2:channels=3:shape=65536x65536x65536,li", "but receives 4 inputs"},
	{"lif:conv=3:channels=3:shape=1x2x2,li", "larger than the 2x2 units"},
	{"lif:conv=65536:pad=32768:channels=3:shape=1x2x2,li", "rows of weights; the limit"},
	{"lif:conv=1:pad=999:channels=3:shape=1x2x2,li", "the limit is 65535"},
	{"lif:conv=2:channels=3:groups=2:shape=1x2x2,li", "groups=2 of layer 0 must divide"},
	{"lif:5:conv=2:channels=3:shape=1x2x2,li", "has the size 5, but its conv makes 3 units"},
	{"lif:conv=2:channels=3:density=0.5:shape=1x2x2,li", "shared weights have the density 1"},
	{"lif:8:channels=3,li", "but no conv"},
	{"lif:8:pad=1,li", "but no conv"},
	{"lif:8:pool=3:shape=1x2x2,li", "larger than the 2x2 units"},
	{"lif:8:pool=2:pooling=min:shape=1x2x2,li", "pooling 'min' is not one of sum, max, avg"},
	{"li:from=input+layer1,lif:8,li", "li is a readout, which must be the last layer"},
	{"lif:8:norm=batch,li", NULL},
	{"lif:8,BatchNorm2d,li", "norm=batch,li"},
	{"lif:8:norm=layer,li", "norm 'layer' is not one of none, batch"},
	{"gru:8:norm=batch,li", "gru has no key 'norm'"},
	{"lif:8,li:norm=batch", "li has no key 'norm'"},
	{"lif:8:pool=2:pool_stride=1:pool_pad=1:shape=1x2x2,li", NULL},
	{"lif:8:pool=2x1:pool_stride=65536:shape=1x2x2,li", NULL},
	{"lif:8:pool_stride=1:shape=1x2x2,li", "layer 0 has pool_stride, but no pool"},
	{"lif:8:pool_pad=1:shape=1x2x2,li", "layer 0 has pool_pad, but no pool"},
	{"lif:8:pool=2:pool_pad=2:shape=1x2x2,li", "pool_pad=2x2 of layer 0 is more than half"},
	{"lif:8:pool=2:pool_stride=0:shape=1x2x2,li", "pool_stride must be a whole number"},
	{"lif:conv=1:channels=3:shape=1x2x2:conv_pool=2,li", NULL},
	{"lif:conv=1:channels=3:shape=1x2x2:conv_pool=3:conv_pool_pad=1,li", NULL},
	{"lif:conv=2:channels=3:shape=1x2x2:conv_pool=2,li",
		"conv_pool=2x2 of layer 0 is larger than the 1x1 units that it pools"},
	{"lif:8:conv_pool=2:shape=1x2x2,li", "but no conv"},
	{"lif:conv=1:channels=3:shape=1x2x2:conv_pool_stride=2,li",
		"has conv_pool_stride, but no conv_pool"},
	{"lif:conv=1:channels=3:shape=1x2x2:conv_pool=2:conv_pooling=max,li", NULL},
	{"lif:conv=1:pad=99:channels=3:shape=1x2x2:conv_pool=99:conv_pooling=max,li",
		"has conv_pooling=max of 3 channels of 200x200 sums; the limit is 65535"},
	{"lif:conv=200:pad=2000:channels=3:shape=1x2x2:conv_pool=3700:conv_pool_stride=1,li",
		"more than 16777216 places"},
	{"lif:conv=2:channels=3:shape=1x2x2,lif:conv=1:channels=2:shape=3x1x1,li", NULL},
	{"lif:conv=2:channels=3:shape=1x2x2,lif:conv=1:channels=2:shape=1x3x1,li",
		"but the layer below has 3x1x1"},
	{"lif:8,lif:conv=1:channels=2,li", "Add its key shape"},
	{"gru:8,lif:2:pool=2:pooling=max:shape=2x2x2,li", "needs spikes"},
	{"gru:conv=2:channels=3:shape=1x2x2,li", "gru has no key 'conv'"},
	{"lif:8,li:conv=2", "li has no key 'conv'"},
	{"lif:8,lif:8:from=input+layer0,li:from=layer1+layer0", NULL},
	{"lif:8:from=layer1+input,lif:8,li", NULL},
	{"lif:8,lif:8:from=input,li:from=layer0+layer1", NULL},
	{"lif:8,li:from=layer1", "'layer1' is not a hidden layer of the network"},
	{"lif:8,li:from=", "'' is not a hidden layer"},
	{"lif:8,li:from=layer", "'layer' is not a hidden layer"},
	{"lif:8,li:from=layer00", "'layer00' is not a hidden layer"},
	{"lif:8,li:from=layer0+", "'' is not a hidden layer"},
	{"lif:8,li:from=inputs", "'inputs' is not a hidden layer"},
	{"lif:8,li:from=layer99999999999", "is not a hidden layer"},
	{"lif:8,li:from=readout", "'readout' is not a hidden layer"},
	{"lif:8,li:from=layer0+layer0", "names 'layer0' twice"},
	{"lif:8,lif:8:from=layer1,li", "names the layer itself. Write r"},
	{"lif:8:from=layer1,lif:8,li", "names only layers above it"},
	{"lif:8,lif:8,lif:8,lif:8:from=layer0,li", "no layer receives the outputs of layer 2"},
	{"lif:8,lif:8:from=layer2,lif:8,li", "names only layers above it"},
	{"lif:4,lif:8:pool=2:shape=1x2x2:from=input+layer0,li:from=layer0+layer1",
		"layer 1 has pool and receives 2 layers"},
	{"lif:4,lif:2:pool=2:pooling=max:shape=1x2x2,li:from=layer0+layer1",
		"layer 1 has pooling=max and receives layer0, which layer 2 receives too"},
	{"lif:65535,li:from=input+layer0", "receives 65539 units in all; the limit is 65535"},
	{"integrator:8,li", NULL},
	{"integrator:8:threshold=1,li", "integrator has no key 'threshold'; it has tau, density"},
	{"lif:8:threshold=0,li", "threshold must be a number above 0, not '0'"},
	{"lif:8:threshold=-1:reset=soft,li", "threshold must be a number above 0, not '-1'"},
	{"lif:8:threshold=-1:reset=hard,li", NULL},
	{"lif:8:threshold=nan:reset=hard,li", "threshold must be a finite number"},
	{"lif:8,li:delay=127", NULL},
	{"lif:8,lif:8:delay=0..127,li:delay=0..1:learn", NULL},
	{"lif:8,lif:8:delay=5..5,li", NULL},
	{"lif:8,li:delay=5..9:delay=1", "has 'delay' and 'delay'"},
	{"lif:8:tau=5ms..9ms:beta=0.9,li", "has 'tau' and 'beta'"},
	{"lif:8:beta=0.9:tau=5ms..9ms,li", "has 'beta' and 'tau'"},
	{"cubalif:8:alpha=0.9:tau_syn=5ms,li", "has 'alpha' and 'tau_syn'"},
	{"lif:8,li:tau=5ms:tau=5ms", "has 'tau' and 'tau'"},
	{"lif:8,li:delay=128", "delay must be 0 to 127 steps such as 20, or a range"},
	{"lif:8,li:delay=-1", "delay must be"},
	{"lif:8,li:delay=", "delay must be"},
	{"lif:8,li:delay=1.5", "delay must be"},
	{"lif:8,li:delay=+1", "delay must be"},
	{"lif:8,li:delay=nan", "delay must be"},
	{"lif:8,li:delay=99999999999999999999", "delay must be"},
	{"lif:8,li:delay=5..2", "delay must be"},
	{"lif:8,li:delay=0..128", "delay must be"},
	{"lif:8,li:delay=..4", "delay must be"},
	{"lif:8,li:delay=4..", "delay must be"},
	{"lif:8,li:delay=..", "delay must be"},
	{"lif:8,li:delay=0.4", "delay must be"},
	{"lif:8,li:delay=0...4", "delay must be"},
	{"lif:8,li:delay=0..4..5", "delay must be"},
	{"lif:8,li:delay=0..4ms", "delay must be"},
	{"lif:8,li:delay=5:learn", "Write delay=0..64:learn"},
	{"lif:8,li:delay=5..5:learn", "Write delay=0..64:learn"},
	{"lif:8,li:learn", "--net: size of li"},
	{"lif:8:learn,li", "Write delay=0..64:learn"},
	{"lif:8,li:delay=5..9:learn:delay=1:learn", "has 'delay' and 'delay'"},
	{"lif:8:delay=0..4,li", "the first layer does not have"},
	{"gru:8,li:delay=2", "receives the outputs of gru, which are numbers"},
	{"egru:8,lif:8:delay=0..4:learn,li", "receives the outputs of egru"},
	{"lif:8,lif:conv=1:channels=2:shape=2x2x2:delay=0..2:learn,li:pool=2:delay=0..4", NULL},
	{"lif:8,lif:8:pool=1x2:pooling=max:shape=2x2x2:delay=2,li", NULL},
	{"lif:8,li:pool=1x2:pooling=max:shape=2x2x2:delay=0..4",
		"has pooling=max and delay=0..4, but maxima need the same delay"},
	{"lif:8,lif:conv=1:channels=2:shape=2x2x2:conv_pool=2:conv_pooling=max:delay=0..4,li",
		"has conv_pooling=max and delay=0..4"},
	{"lif:8,lif:8:from=input+layer0:delay=0..9:learn,li:from=layer0+layer1:delay=3", NULL},
	{"lif:8:from=input+layer1,lif:8:delay=9,li", NULL},
	{"lif:8,lif:8:from=input:delay=9,li:from=layer0+layer1", "receives no layer below"},
};

static void refusals(void **arg)
{
	(void)arg;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct neap_net_options o = options(bad[i].spec);
		struct neap_net *net = (struct neap_net *)&o;
		int rc = neap_net_create(&net, &o);
		if (!bad[i].says) {
			assert_int_equal(rc, 0);
			neap_net_free(net);
			continue;
		}
		if (rc != NEAP_EUSAGE || !strstr(neap_detail(), bad[i].says))
			fprintf(stderr, "# '%s': %d, %s\n", bad[i].spec, rc, neap_detail());
		assert_int_equal(rc, NEAP_EUSAGE);
		assert_non_null(strstr(neap_detail(), bad[i].says));
		assert_non_null(strstr(neap_detail(), "--net"));
		assert_null(net);
	}
}

#define REFUSED(change)                                                                            \
	do {                                                                                       \
		struct neap_net_options o = options("lif:8r,li");                                  \
		struct neap_net *net;                                                              \
		change;                                                                            \
		assert_int_equal(neap_net_create(&net, &o), NEAP_EUSAGE);                          \
		assert_null(net);                                                                  \
	} while (0)

/* Gated cells for numbers, unless an option of spiking cells is given; spiking cells for spikes. */
static void default_networks(void **arg)
{
	static const struct {
		int values;
		double tau;
		const char *cell;
	} rows[] = {{0, 0, "lif:256r:"}, {1, 0, "gru:256"}, {1, 10e-3, "lif:256r:"}};

	(void)arg;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct neap_net_options o = options(NULL);
		struct neap_net *net;
		o.values = rows[i].values;
		o.tau = rows[i].tau > 0 ? rows[i].tau : o.tau;
		assert_int_equal(neap_net_create(&net, &o), 0);
		assert_memory_equal(neap_net_spec(net), rows[i].cell, strlen(rows[i].cell));
		neap_net_free(net);
	}
}

static void bad_options(void **arg)
{
	(void)arg;
	REFUSED(o.size = 0);
	REFUSED(o.size = 100000);
	REFUSED(o.spec = "");
	REFUSED(o.inputs = 0);
	REFUSED(o.inputs = 65537);
	REFUSED(o.classes = 0);
	REFUSED(o.classes = 65536);
	REFUSED(o.dt = 0);
	REFUSED(o.dt = NAN);
	REFUSED(o.tau = -1);
	REFUSED(o.tau_out = -3);
	REFUSED(o.width = NAN);
	REFUSED(o.density = 2);
	REFUSED(o.dropout = 1);
	REFUSED(o.learn = (enum neap_learn)3);
	REFUSED((o.euler = 1, o.learn = NEAP_LEARN_TAU, o.tau = o.dt)); /* leaves nothing */
	REFUSED(o.dropout = -0.1);
	REFUSED(o.group = -1);
	REFUSED(o.threads = -1);
	REFUSED(o.readout = (enum neap_readout)7);
	REFUSED(o.init = (enum neap_init)3);
	REFUSED(o.reset = (enum neap_reset)4);
	REFUSED(o.surrogate = (enum neap_surrogate)(-1));
	REFUSED(o.precision = (enum neap_precision)3);
	REFUSED((o.precision = NEAP_BF16, o.spec = "lif:9,li"));
	REFUSED((o.euler = 1, o.tau = 0.5e-3));
	REFUSED((o.euler = 1, o.spec = "cubalif:8:tau_syn=0.5ms,li"));
	REFUSED((o.euler = 1, o.spec = "alif:8:tau_adapt=0.5ms,li"));
}

static void bad_batches(void **arg)
{
	struct neap_objective objective = {
		.size = sizeof objective, .loss = neap_loss_find("cross-entropy")};
	struct neap_net_options o = options("lif:8r,li");
	struct neap_net *net = net_make(&o);
	struct batch_room room;
	struct neap_batch batch;

	(void)arg;
	batch_make(&room, 1, 2, 4, 20, 3, 0.5, NULL);
	assert_int_equal(neap_net_begin(net, NULL, &objective), NEAP_EUSAGE);
	batch = room.batch;
	batch.size = 0;
	assert_int_equal(neap_net_begin(net, &batch, &objective), NEAP_EUSAGE);
	batch = room.batch;
	batch.inputs = 5;
	assert_int_equal(neap_net_begin(net, &batch, &objective), NEAP_EUSAGE);
	batch = room.batch;
	batch.steps = 19;
	assert_int_equal(neap_net_begin(net, &batch, &objective), NEAP_EUSAGE);
	room.sequences[1].label = 3;
	assert_int_equal(neap_net_begin(net, &room.batch, &objective), NEAP_EUSAGE);
	assert_non_null(strstr(neap_detail(), "label 3"));
	room.sequences[1].label = -1;
	assert_int_equal(neap_net_begin(net, &room.batch, &objective), NEAP_EUSAGE);
	assert_int_equal(neap_net_begin(net, &room.batch, NULL), 0); /* forward only */
	room.sequences[1].label = 0;
	uint16_t *unit = (uint16_t *)room.sequences[1].unit, last = unit[0];
	unit[0] = 4;
	assert_int_equal(neap_net_begin(net, &room.batch, &objective), NEAP_EUSAGE);
	double loss;
	assert_int_equal(neap_net_turn(net, unit, unit, &loss), NEAP_EUSAGE); /* nothing begun */
	unit[0] = last;
	assert_int_equal(neap_net_begin(net, &room.batch, &objective), 0);
	neap_net_free(net);
	batch_free(&room);
}

/* The canonical text makes the same net again, whatever the options beside it. */
static void canonical(void **arg)
{
	struct neap_net_options o = options(
		"lif:8r:tau=10ms:reset=hard,lif:6:surrogate=atan:delay=1:density=0.5,li:tau=7e-3");
	struct neap_net *a = net_make(&o);

	(void)arg;
	struct neap_net_options p = options(neap_net_spec(a));
	p.tau = 1;
	p.reset = NEAP_RESET_SOFT;
	p.density = 0.1;
	p.scale = 9;
	struct neap_net *b = net_make(&p);
	assert_string_equal(neap_net_spec(a), neap_net_spec(b));
	assert_non_null(strstr(neap_net_spec(a), "lif:8r:tau=0.01:reset=hard"));
	assert_same_weights(a, b);
	neap_net_free(a);
	neap_net_free(b);
	neap_net_free(NULL);
}

/* The same of every cell: with the keys given, and with their defaults. */
static void canonical_cells(void **arg)
{
	static const char *const specs[] = {
		"cubalif:8r:tau_syn=3ms:detach=1,li",
		"cubalif:8:reset=hard:reset_value=-0.5,cubalif:7r:reset=soft,li",
		"alif:8r:tau_adapt=30ms:adapt=0.7:threshold=0.9,li",
		"adlif:8r:tau_adapt=30ms:a=-0.25:b=0.5,li",
		"seadlif:8r:tau_adapt=30ms:a=-0.25:b=0.5,seadlif:7,adlif:6,li",
		"brf:8r:omega=20:b=3:tau_adapt=30ms,brf:7:omega=20..30:learn=all,li",
		"lif:8r:tau=5ms..25ms,alif:7:tau_adapt=0.1..0.3:tau=20ms,seadlif:6:a=-1..1,li",
		"rnn:8:activation=relu:recurrent_scale=0.9,li",
		"egru:8:threshold=0.2:width=0.3:surrogate=atan,li",
		"lstm:8:density=0.5:dropout=0.25,gru:7:delay=1,li",
		"cubalif:8,alif:7:delay=1,adlif:6r,li",
		"lif:8:learn=tau,cubalif:7:learn=tau,adlif:6:learn=none,li:learn=tau",
		"lif:8,alif:7:delay=0..20:learn=tau,lif:6:delay=3..127:learn,li:delay=5",
	};

	(void)arg;
	for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
		struct neap_net_options o = options(specs[i]);
		struct neap_net *a = net_make(&o);
		struct neap_net_options p = options(neap_net_spec(a));
		p.tau = 1;
		p.detach = 1;
		p.reset = NEAP_RESET_SOFT;
		p.threshold = 3;
		p.dropout = 0.5;
		p.learn = NEAP_LEARN_TAU;
		struct neap_net *b = net_make(&p);
		assert_string_equal(neap_net_spec(a), neap_net_spec(b));
		neap_net_free(a);
		neap_net_free(b);
	}
}

/* The number behind a key in the specification of the first layer. */
static double value(const struct neap_net *net, const char *key)
{
	const char *at = strstr(neap_net_spec(net), key);
	assert_non_null(at);
	return strtod(at + strlen(key), NULL);
}

/* Names of other packages are the same net: a decay of 0.5 is exp(-dt/tau), a slope 1/width. */
static void aliases(void **arg)
{
	struct neap_net_options o =
		options("cubalif:8:beta=0.5:alpha=0.25:slope=4:surrogate=fast_sigmoid,"
			"lif:8:surrogate=triangular,li");

	(void)arg;
	for (o.euler = 0; o.euler < 2; o.euler++) {
		struct neap_net *net = net_make(&o);
		double tau = o.euler ? 2 * o.dt : o.dt / log(2);
		double tau_syn = o.euler ? o.dt / 0.75 : tau / 2;
		assert_true(fabs(value(net, ":tau=") - tau) < 1e-15);
		assert_true(fabs(value(net, ":tau_syn=") - tau_syn) < 1e-15);
		assert_true(value(net, ":width=") == 0.25);
		assert_non_null(strstr(neap_net_spec(net), "superspike"));
		assert_non_null(strstr(neap_net_spec(net), "triangle"));
		neap_net_free(net);
	}
}

static void losses(void **arg)
{
	double z[] = {1000, 0, -1000}, dz[3];
	float y[] = {1, 2, 3};

	(void)arg;
	assert_null(neap_loss_find("hinge"));
	assert_null(neap_loss_find(NULL));
	assert_null(neap_loss_at(-1));
	assert_string_equal(neap_loss_at(0)->name, "cross-entropy");
	assert_true(neap_loss_find("cross-entropy")->value(3, z, 1, NULL, dz) == 1000);
	assert_true(dz[0] == 1 && dz[1] == -1 && dz[2] == 0);
	z[0] = 1, z[2] = 6;
	assert_true(neap_loss_find("mse")->value(3, z, -1, y, dz) == 13.0 / 3);
	assert_true(dz[0] == 0 && dz[1] == -4.0 / 3 && dz[2] == 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refusals),
		cmocka_unit_test(default_networks),
		cmocka_unit_test(bad_options),
		cmocka_unit_test(bad_batches),
		cmocka_unit_test(canonical),
		cmocka_unit_test(canonical_cells),
		cmocka_unit_test(aliases),
		cmocka_unit_test(losses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
