/* SPDX-License-Identifier: Apache-2.0 */
/* variants.h: the nets of test_ranges.c, of every cell, connection, reset, readout and precision.
 */
#ifndef NEAP_TEST_VARIANTS_H
#define NEAP_TEST_VARIANTS_H

#include <neap/net.h>

static const struct variant {
	const char *spec;
	enum neap_precision precision;
	enum neap_readout readout;
	enum neap_surrogate surrogate;
	double support, density, width; /* 0: the default */
	int dense, smooth, delay;
	int gated; /* outputs are numbers */
	int group; /* 0: 3 */
	const char *freeze;
	int values;
	enum neap_target target;
	enum neap_products products;
} variants[] = {
	{.spec = "lif:70r,li"},
	{.spec = "lif:70r,li", .precision = NEAP_DOUBLE},
	{.spec = "lif:70r:reset=zero,lif:33:reset=hard,li",
		.readout = NEAP_READ_MAX,
		.surrogate = NEAP_BOXCAR},
	{.spec = "lif:70:reset=hard,lif:33r:reset=zero,li",
		.precision = NEAP_DOUBLE,
		.readout = NEAP_READ_STEP,
		.surrogate = NEAP_BOXCAR,
		.delay = 1},
	{.spec = "lif:70r:reset=soft,lif:33r,lif:20,li",
		.readout = NEAP_READ_SOFTMAX,
		.surrogate = NEAP_SUPERSPIKE,
		.support = 0.3,
		.density = 0.3,
		.delay = 1},
	{.spec = "lif:70r:reset=zero:detach=1,li",
		.readout = NEAP_READ_LAST,
		.surrogate = NEAP_SIGMOID},
	{.spec = "lif:70r:reset=zero,li",
		.readout = NEAP_READ_SUM,
		.surrogate = NEAP_GAUSSIAN,
		.density = 0.5,
		.dense = 1},
	{.spec = "lif:70r,lif:40r:reset=zero,li", .width = 1.2},
	{.spec = "lif:30r:reset=zero,lif:20r,li",
		.precision = NEAP_DOUBLE,
		.surrogate = NEAP_ATAN,
		.smooth = 1,
		.delay = 1},
	{.spec = "cubalif:70r,li"},
	{.spec = "cubalif:70r:reset=hard:learn=tau,cubalif:33:reset=soft,cubalif:20:reset=hard,li"},
	{.spec = "cubalif:40:tau_syn=2ms,alif:33r:adapt=0.2:delay=1,li", .precision = NEAP_DOUBLE},
	{.spec = "alif:70r:detach=1,li", .surrogate = NEAP_SUPERSPIKE, .support = 0.4},
	{.spec = "adlif:70r:scale=40,li"},
	{.spec = "cell c;state u;state w;w=0.99*w+0.1*spike;u=0.9*u+in-w;reset u=u-1;spike "
		 "u-1:150r,li"},
	{.spec = "cell c;state u=-1;state w;old=u;u=min(u+0.2*u^2+in-w;5);w=w+0.1*(old-w);spike "
		 "u-0.5;reset u=-1;w=w+0.2*spike:40,cell c;state u;u=tanh(u)+in+0.1*spike;reset "
		 "u=0;spike u-1:133r:detach=1,li",
		.precision = NEAP_DOUBLE,
		.delay = 1},
	{.spec = "cell c;state u;u=tanh(u)+in+0.1*spike;reset u=0;spike u-1:140r,lif:33,li",
		.surrogate = NEAP_SIGMOID,
		.density = 0.5},
	{.spec = "cell c;state u=-1;state w;old=u;u=min(u+0.2*u^2+in-w;5);w=w+0.1*(old-w);spike "
		 "u-0.5;reset u=-1;w=w+0.2*spike:20r,cell c;state u;u=tanh(u)+in+0.1*spike;reset "
		 "u=0;spike u-1:20:detach=1,li",
		.surrogate = NEAP_SIGMOID,
		.smooth = 1,
		.delay = 1},
	{.spec = "adlif:40r:scale=40,adlif:33:scale=40,li", .density = 0.4, .dense = 1},
	{.spec = "rnn:70,rnn:33:activation=relu,li", .gated = 1},
	{.spec = "lstm:40,li", .readout = NEAP_READ_STEP, .gated = 1},
	{.spec = "lif:30r,lstm:33,li", .precision = NEAP_DOUBLE, .delay = 1, .gated = 1},
	{.spec = "gru:40,li", .readout = NEAP_READ_MAX, .gated = 1},
	{.spec = "gru:17,li:density=0.5", .gated = 1},	  /* a readout with a mask */
	{.spec = "lstm:260,li", .gated = 1, .group = 11}, /* parcels of rows and columns */
	{.spec = "gru:33:dropout=0.4,rnn:20:delay=1:dropout=0.2,li",
		.precision = NEAP_DOUBLE,
		.gated = 1,
		.group = 9},
	{.spec = "gru:33,lif:30r:reset=zero,li", .density = 0.4, .delay = 1, .gated = 1},
	{.spec = "lstm:41,rnn:20:activation=relu:dropout=0.3,li",
		.precision = NEAP_BF16,
		.gated = 1},
	{.spec = "gru:33,lstm:20:delay=1,li",
		.precision = NEAP_BF16,
		.readout = NEAP_READ_STEP,
		.gated = 1,
		.group = 9,
		.values = 1,
		.target = NEAP_TARGET_SERIES},
	{.spec = "gru:9,rnn:50,li",
		.precision = NEAP_BF16,
		.gated = 1,
		.group = 11,
		.freeze = "layer0"},
	{.spec = "egru:40:threshold=0.2,li", .gated = 1},
	{.spec = "egru:33:threshold=0.1,egru:20:threshold=0.1,li",
		.precision = NEAP_DOUBLE,
		.surrogate = NEAP_SIGMOID,
		.density = 0.6,
		.delay = 1,
		.gated = 1},
	{.spec = "egru:20:threshold=0.2,lif:20:scale=9,li", .smooth = 1, .gated = 1},
	{.spec = "alif:20r,adlif:20r:scale=20,cubalif:10r,li",
		.surrogate = NEAP_SIGMOID,
		.smooth = 1,
		.delay = 1},
	{.spec = "lif:70r:dropout=0.4,lif:33:reset=zero:delay=1:dropout=0.2,li"},
	{.spec = "lif:40r:reset=hard:dropout=0.5,lif:33r,li",
		.precision = NEAP_DOUBLE,
		.surrogate = NEAP_SIGMOID,
		.density = 0.5},
	{.spec = "lif:70r:learn=tau,lif:33r:reset=zero:learn=tau,li:learn=tau"},
	{.spec = "lif:70r:reset=hard:learn=tau,lif:33:reset=soft:learn=tau,li:learn=tau",
		.precision = NEAP_DOUBLE,
		.readout = NEAP_READ_STEP,
		.surrogate = NEAP_BOXCAR,
		.delay = 1},
	{.spec = "lif:40r:reset=zero:learn=tau,li", .width = 1.2},
	{.spec = "lif:40r:learn=tau,li:learn=tau",
		.readout = NEAP_READ_MAX,
		.surrogate = NEAP_SIGMOID,
		.density = 0.5},
	{.spec = "cubalif:40r:learn=tau,alif:33r:adapt=0.2:learn=tau,li"},
	{.spec = "adlif:40r:scale=40:learn=tau:dropout=0.2,li:learn=tau"},
	{.spec = "adlif:20r:scale=20:learn=tau,cubalif:20:learn=tau,li:learn=tau",
		.surrogate = NEAP_SIGMOID,
		.smooth = 1,
		.delay = 1},
	{.spec = "gru:20:dropout=0.3,adlif:33r:scale=40:dropout=0.3,egru:20:dropout=0.5,li",
		.gated = 1},
	{.spec = "lif:70r,lif:33r:reset=zero,lif:20,li", .freeze = "layer0,layer1"},
	{.spec = "gru:33:dropout=0.4,lstm:20,rnn:20:delay=1,li",
		.gated = 1,
		.freeze = "layer0,layer1,layer2.bias"},
	{.spec = "lif:70r,li", .values = 1},
	{.spec = "lif:70r:dropout=0.3,lif:33:delay=1,li",
		.precision = NEAP_DOUBLE,
		.readout = NEAP_READ_STEP,
		.values = 1,
		.target = NEAP_TARGET_LABELS},
	{.spec = "alif:40r,li", .density = 0.4, .values = 1, .target = NEAP_TARGET_NUMBERS},
	{.spec = "gru:33,lstm:20:delay=1,li",
		.readout = NEAP_READ_STEP,
		.gated = 1,
		.group = 9,
		.values = 1,
		.target = NEAP_TARGET_SERIES},
	{.spec = "rnn:20:dropout=0.3,gru:33,li",
		.precision = NEAP_DOUBLE,
		.gated = 1,
		.group = 9,
		.values = 1},
	{.spec = "lif:40r,gru:20,li",
		.readout = NEAP_READ_STEP,
		.gated = 1,
		.target = NEAP_TARGET_LABELS},
	{.spec = "lif:conv=1x3:channels=5:pad=0x1:shape=1x1x19,lif:conv=1x4:stride=1x2:channels=17,"
		 "li"},
	{.spec = "cubalif:conv=1x4:channels=33:pool=1x2:pooling=max:shape=1x1x19:dropout=0.3,"
		 "alif:20r:pool=1x2:delay=1,li",
		.precision = NEAP_DOUBLE},
	{.spec = "lif:70r,lif:conv=2:channels=8:pooling=max:pool=2:shape=2x5x7:learn=tau,"
		 "adlif:conv=1:channels=3:scale=20,li:pool=1x2:pooling=avg",
		.surrogate = NEAP_SUPERSPIKE},
	{.spec = "lif:conv=1x3:channels=5:pool=1x3:pool_stride=1x2:shape=1x1x19:conv_pool=1x2,"
		 "lif:conv=1x2:channels=17:pool=1x3:pool_stride=1x1:pool_pad=0x1:pooling=max,"
		 "li:pool=1x2:pool_stride=1:pooling=avg"},
	{.spec = "alif:conv=1x4:channels=33:shape=1x1x19:conv_pool=1x3:conv_pooling=avg:"
		 "conv_pool_stride=1x2:conv_pool_pad=0x1:dropout=0.3,lif:20r:pool=1x3:"
		 "pool_stride=1x2:pooling=max:delay=1,li",
		.precision = NEAP_DOUBLE},
	{.spec = "lif:conv=1x3:channels=5:shape=1x1x19:conv_pool=1x2:conv_pooling=max:dropout=0.3,"
		 "lif:conv=1x2:channels=6:conv_pool=1x3:conv_pool_stride=1:conv_pooling=max:delay="
		 "1:"
		 "norm=batch,li"},
	{.spec = "lif:70r:norm=batch,cubalif:33:norm=batch:dropout=0.3,alif:20r:norm=batch:delay=2."
		 ".9:learn,li",
		.density = 0.5},
	{.spec = "alif:conv=1x4:channels=6:pool=1x2:shape=1x1x19:norm=batch:learn=tau,"
		 "lif:33:from=input+layer0:norm=batch:reset=zero,li",
		.precision = NEAP_DOUBLE,
		.values = 1},
	{.spec = "lif:conv=1x3:channels=9:pool=1x2:pooling=avg:shape=1x1x19,gru:9,li",
		.gated = 1,
		.values = 1},
	{.spec = "seadlif:70r:scale=40,seadlif:33:scale=40:detach=1,li"},
	{.spec = "seadlif:40r:scale=40:learn=tau,seadlif:33r:scale=40,li:learn=tau",
		.precision = NEAP_DOUBLE,
		.surrogate = NEAP_SIGMOID,
		.density = 0.5,
		.delay = 1},
	{.spec = "brf:70r:scale=900:omega=50..100:b=10..40,brf:33:scale=900:learn=tau:detach=1,li"},
	{.spec = "brf:40r:scale=900:learn=all,seadlif:33r:scale=40:learn=all:a=1..60:b=0..120,li",
		.precision = NEAP_DOUBLE,
		.surrogate = NEAP_DOUBLE_GAUSSIAN,
		.density = 0.5},
	{.spec = "lif:40r:tau=5ms..25ms,cubalif:33:tau_syn=2ms..8ms:reset=hard,"
		 "alif:20r:tau_adapt=30ms..300ms:learn=tau,adlif:20:scale=20:tau=5ms..25ms,li",
		.surrogate = NEAP_SLAYER,
		.support = 0.5},
	{.spec = "lif:conv=1x3:channels=4:shape=1x1x19,lif:40:pool=1x2:pooling=max,li",
		.smooth = 1,
		.freeze = "layer0"},
	/* connections that skip layers, and back to layers below */
	{.spec = "lif:70r,lif:33:reset=hard:from=input+layer0,li:from=layer0+layer1"},
	{.spec = "lif:40:from=input+layer1+layer2:dropout=0.3,lif:33r:reset=zero:learn=tau,"
		 "alif:20:from=layer0:delay=1,li:from=input+layer1+layer2:delay=1",
		.precision = NEAP_DOUBLE},
	{.spec = "lif:20:from=input+layer2,lif:33,lif:20:from=input+layer0,li:from=layer1+layer2",
		.surrogate = NEAP_SIGMOID,
		.density = 0.5},
	{.spec = "lif:33r,lif:20:from=input+layer2,lif:20:from=layer0+layer1,li",
		.smooth = 1,
		.delay = 1},
	{.spec = "gru:33:dropout=0.3,integrator:20:from=input+layer2:learn=tau,"
		 "lif:40:from=input+layer0+layer1:dropout=0.4,integrator:20r,li:from=layer1+layer3",
		.gated = 1},
	{.spec = "integrator:33r,rnn:20:from=input+layer0,li:from=layer0+layer1",
		.precision = NEAP_DOUBLE,
		.gated = 1,
		.values = 1},
	{.spec = "lif:33:from=input+layer1,integrator:20,li:from=input+layer1",
		.gated = 1,
		.readout = NEAP_READ_STEP,
		.values = 1,
		.target = NEAP_TARGET_LABELS},
	{.spec = "lif:70r,lif:33,lif:20:from=layer0,li:from=layer1+layer2",
		.freeze = "layer0,layer1"},
	{.spec = "lif:70r:from=input+layer2,lif:33,lif:20,li:from=layer1+layer2",
		.freeze = "layer0,layer1"},
	{.spec = "integrator:40:learn=tau,li", .gated = 1},
	/* thresholds at 0 and below: units that spike without input, of no multiple of a register
	 */
	{.spec = "lif:70r:reset=hard:threshold=-0.02:reset_value=-0.5,lif:33:reset=hard:threshold="
		 "0:"
		 "reset_value=-1,li"},
	{.spec = "cubalif:37r:reset=hard:threshold=-0.02:reset_value=-0.5:tau_syn=2ms,lif:19:reset="
		 "hard:"
		 "threshold=0,li",
		.precision = NEAP_DOUBLE,
		.surrogate = NEAP_SIGMOID},
	{.spec = "lif:conv=1x3:channels=4:shape=1x1x19,lif:conv=1x3:channels=3:pad=0x1,"
		 "lif:conv=1x2:channels=3:from=layer0,li:from=layer1+layer2"},
	{.spec = "lif:70r,lif:33:delay=0..9,li:delay=3"},
	{.spec = "cell c;state u;u=tanh(u)+in+0.1*spike;reset u=0;spike u-1:140r,lif:33:delay=0..9:"
		 "learn,li",
		.surrogate = NEAP_SIGMOID,
		.density = 0.5},
	{.spec = "lif:70r:dropout=0.3,lif:33r:delay=0..64:learn:reset=zero,li:delay=2..5:learn",
		.precision = NEAP_DOUBLE,
		.readout = NEAP_READ_STEP,
		.surrogate = NEAP_BOXCAR},
	{.spec = "adlif:70r:scale=40,gru:9:delay=0..127:learn,li", .density = 0.5, .gated = 1},
	{.spec = "lif:30r,alif:20:delay=1..7:learn,li:delay=0..2", .smooth = 1},
	{.spec = "lif:70r,lif:33:delay=2..9:learn,lif:20:delay=0..5:learn,li",
		.surrogate = NEAP_SIGMOID,
		.freeze = "layer0,layer1.weight,layer1.bias"},
	/* Products in tiles: of some samples and steps, and of all gradients with a sigmoid. */
	{.spec = "lif:70r:scale=9:dropout=0.3,lif:33r:scale=12:delay=1,li",
		.width = 12,
		.products = NEAP_TILES},
	{.spec = "cubalif:70r:scale=9,adlif:33:scale=12:norm=batch,lif:20:delay=0..3,li",
		.surrogate = NEAP_SIGMOID,
		.readout = NEAP_READ_STEP,
		.group = 7,
		.products = NEAP_TILES},
	{.spec = "lstm:41,rnn:20:activation=relu:dropout=0.3,li",
		.precision = NEAP_BF16,
		.gated = 1,
		.group = 9,
		.products = NEAP_TILES},
};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

#endif
