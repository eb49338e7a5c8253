/* SPDX-License-Identifier: Apache-2.0 */
/* random_specs.h: random networks of all cells and keys, some of which are refused. */
#ifndef NEAP_TEST_RANDOM_SPECS_H
#define NEAP_TEST_RANDOM_SPECS_H

#include "nn/nets.h"

/* A sequence of random numbers: one a statement, as arguments have no order. */
struct draws {
	uint64_t seed, count;
};

static inline int below(struct draws *d, int n)
{
	return (int)neap__random_below(d->seed, NEAP__STREAM_TEST, 77, d->count++, (uint64_t)n);
}

static inline int often(struct draws *d, int percent)
{
	return below(d, 100) < percent;
}

/* A network, its options and what a batch of it is like. */
struct random_net {
	char spec[1600], freeze[64];
	struct neap_net_options options;
	enum neap_target target;
	int may_have_kinks; /* surrogates that end abruptly; rarely is a membrane at the end */
	int has_kinks;	    /* differences of its loss are not exact enough */
	int last;	    /* units of the last layer; 0: it is an image */
};

static inline void add(struct random_net *r, const char *format, ...)
{
	size_t at = strlen(r->spec);
	va_list list;

	va_start(list, format);
	vsnprintf(r->spec + at, sizeof r->spec - at, format, list);
	va_end(list);
}

/* `KEY=VALUE`, or a range from `low` on. */
static inline void add_time(struct random_net *r, struct draws *d, const char *key, int low)
{
	int first = low + below(d, 20);

	if (often(d, 50))
		add(r, ":%s=%dms..%dms", key, first, first + 1 + below(d, 30));
	else if (often(d, 50))
		add(r, ":%s=%dms", key, first);
}

/* A layer of the nets that have logs. */
static inline void add_plain(struct random_net *r, struct draws *d, int layer, int units)
{
	static const char *const resets[] = {"subtract", "zero", "hard", "soft"};

	int size = 1 + below(d, units), is_recurrent = often(d, 60);
	r->last = size;
	add(r, "%slif:%d%s:reset=%s", layer ? "," : "", size, is_recurrent ? "r" : "",
		resets[below(d, 4)]);
	if (often(d, 10))
		add_time(r, d, "tau", 2);
	if (layer && often(d, 30))
		add(r, ":delay=%d", below(d, often(d, 10) ? 5 : 2));
	if (often(d, 10))
		add(r, ":learn=tau");
}

/* Cells X(number, cell): those that spike, then INTEGRATOR, then those from RNN on. */
#define RANDOM_CELLS(X)                                                                            \
	X(LIF, "lif")                                                                              \
	X(CUBALIF, "cubalif")                                                                      \
	X(ALIF, "alif")                                                                            \
	X(ADLIF, "adlif")                                                                          \
	X(SEADLIF, "seadlif")                                                                      \
	X(BRF, "brf")                                                                              \
	X(INTEGRATOR, "integrator")                                                                \
	X(RNN, "rnn")                                                                              \
	X(LSTM, "lstm")                                                                            \
	X(GRU, "gru")                                                                              \
	X(EGRU, "egru")                                                                            \
	X(FILE_CELL, "cell c;state u;u=tanh(u)+in+0.1*spike;reset u=0;spike u-1")
#define RANDOM_NUMBER(number, cell) number,
#define RANDOM_NAME(number, cell) cell,
enum random_cell { RANDOM_CELLS(RANDOM_NUMBER) CELLS };

static inline void add_neuron(struct random_net *r, struct draws *d, int cell)
{
	static const char *const resets[] = {"subtract", "zero", "hard", "soft"};
	static const char *const surrogates[] = {NEAP_SURROGATE_TABLE(NEAP_CHOICE_NAME)};
	int has_threshold = cell < INTEGRATOR;
	int surrogate = below(d, (int)(sizeof surrogates / sizeof surrogates[0]));

	if (cell <= SEADLIF || cell == INTEGRATOR)
		add_time(r, d, "tau", 2);
	if (cell == CUBALIF)
		add_time(r, d, "tau_syn", 2);
	if (cell == ALIF || cell == ADLIF || cell == SEADLIF)
		add_time(r, d, "tau_adapt", 5);
	if (cell == SEADLIF)
		add(r, often(d, 40) ? ":a=1..9:b=0..12" : ":a=2");
	if (cell == BRF)
		add(r, often(d, 50) ? ":omega=50..300:b=9..40" : ":omega=200:b=9..30");
	if (cell == INTEGRATOR) /* others would grow without bound */
		add(r, ":scale=0.3:recurrent_scale=0.02");
	add(r, cell == BRF ? ":scale=900" : cell == ADLIF || cell == SEADLIF ? ":scale=20" : "");
	if (cell == LIF && often(d, 50)) {
		int reset = below(d, 4);
		add(r, ":reset=%s", resets[reset]);
		if (reset == 2 && often(d, 30))
			add(r, ":threshold=-0.02:reset_value=-0.5");
	}
	if (cell == CUBALIF && often(d, 50))
		add(r, ":reset=%s", resets[2 + below(d, 2)]);
	if (has_threshold && often(d, 30))
		add(r, ":detach=1");
	if (has_threshold && often(d, 40)) {
		add(r, ":surrogate=%s", surrogates[surrogate]);
		if (often(d, 30))
			add(r, ":support=0.4");
	}
	if (cell == EGRU)
		add(r, ":threshold=0.1");
	if ((cell < RNN && often(d, 35)) || often(d, 1))
		add(r, ":learn=%s", often(d, 50) ? "tau" : "all");
}

/* `is_one`: most often the same for all units, as maxima need it. */
static inline void add_delay(struct random_net *r, struct draws *d, int is_one)
{
	int least = below(d, 4), most = least + 1 + below(d, often(d, 10) ? 120 : 12);

	if (often(d, is_one ? 85 : 30))
		add(r, ":delay=%d", often(d, 50) ? below(d, 2) : below(d, 20));
	else
		add(r, ":delay=%d..%d%s", least, most, often(d, 60) ? ":learn" : "");
}

/* Layers below and above; sometimes what is refused. */
static inline void add_from(struct random_net *r, struct draws *d, int layer, int layers)
{
	int some = 0;

	add(r, ":from=");
	for (int s = -1; s < layers; s++) {
		if (s == layer || !often(d, s == layer - 1 ? 85 : 35))
			continue;
		if (s < 0)
			add(r, "%sinput", some++ ? "+" : "");
		else
			add(r, "%slayer%d", some++ ? "+" : "", s);
	}
	if (some)
		return;
	if (layer)
		add(r, "layer%d", layer - 1);
	else
		add(r, "input");
}

/* Windows of a pool; some overlap, leave gaps or are padded. */
/* Returns 1 for maxima. */
static inline int add_windows(struct random_net *r, struct draws *d, const char *name)
{
	static const char *const poolings[] = {"sum", "avg", "max"};
	int size = 2 + below(d, 2), by = below(d, 3);

	add(r, ":%s=1x%d:%sing=%s", name, size, name, poolings[by]);
	r->has_kinks |= by == 2;
	if (often(d, 60))
		add(r, ":%s_stride=1x%d", name, 1 + below(d, 4));
	if (often(d, 40))
		add(r, ":%s_pad=0x1", name);
	return by == 2;
}

static inline void add_layer(struct random_net *r, struct draws *d, int layer, int layers,
	int units, int links, int late)
{
	static const char *const names[] = {RANDOM_CELLS(RANDOM_NAME)};
	/* Delays need spikes, and skips are as frequent among these. */
	int cell = often(d, 30) ? LIF : often(d, 65) ? below(d, INTEGRATOR) : below(d, CELLS);
	/* Those that delays apply to. */
	int size = 1 + below(d, units), has_max = 0;
	int is_filter = cell < INTEGRATOR && often(d, layer && late ? 30 : layer ? 0 : 10);

	add(r, "%s%s", layer ? "," : "", names[cell]);
	if (is_filter) {
		int kernel = r->last > 2 || r->last == 0 ? 1 + below(d, 3) : 1;
		int is_conv = !layer || often(d, 75);
		if (is_conv)
			add(r, ":conv=1x%d:channels=%d", layer ? kernel : 3, 1 + below(d, 3));
		else
			add(r, ":%d", size);
		if (r->last)
			add(r, ":shape=1x1x%d", r->last);
		if (is_conv && often(d, 30))
			add(r, ":pad=0x1");
		if (!is_conv || often(d, 40))
			has_max |= add_windows(r, d, "pool");
		if (is_conv && often(d, 40))
			has_max |= add_windows(r, d, "conv_pool");
		r->last = is_conv ? 0 : size;
	} else {
		int is_gated = cell >= RNN && cell != FILE_CELL;
		r->last = size;
		add(r, ":%d%s", size, !is_gated && often(d, 45) ? "r" : "");
	}
	if (cell != FILE_CELL)
		add_neuron(r, d, cell);
	if (!is_filter && often(d, 20))
		add(r, ":density=0.%d", 3 + below(d, 6));
	if (cell < INTEGRATOR && often(d, 15))
		add(r, ":norm=batch");
	if (often(d, 25))
		add(r, ":dropout=0.%d", 1 + below(d, 6));
	if (layer && often(d, late))
		add_delay(r, d, has_max);
	if (often(d, is_filter ? links / 4 : links)) /* of several layers it is refused */
		add_from(r, d, layer, layers);
}

/* Network `seed` of at most so many units per layer. */
static inline void random_net(struct random_net *r, uint64_t seed, int units)
{
	struct draws draw = {seed, 0}, *d = &draw;
	int layers = 1 + below(d, 4), links = below(d, 2) * 45, late = below(d, 2) * 60;

	*r = (struct random_net){.options = NEAP_NET_OPTIONS_INIT};
	r->options.inputs = 3 + below(d, 10);
	r->options.classes = 1 + below(d, 4);
	r->last = r->options.inputs;
	int plain = often(d, 15), has_max = 0;
	for (int l = 0; l < layers; l++)
		if (plain)
			add_plain(r, d, l, units);
		else
			add_layer(r, d, l, layers, units, links, late);
	add(r, ",li");
	if (often(d, 35))
		add(r, ":learn=%s", often(d, 50) ? "tau" : "all");
	if (often(d, 50))
		add(r, ":tau=%dms", 2 + below(d, 20));
	if (often(d, 15))
		add(r, ":density=0.6");
	if (often(d, 12)) {
		add(r, ":shape=1x1x%d", r->last && often(d, 80) ? r->last : 2 + below(d, units));
		has_max = add_windows(r, d, "pool");
	}
	if (often(d, late))
		add_delay(r, d, has_max);
	if (often(d, links))
		add_from(r, d, layers, layers);
	struct neap_net_options *o = &r->options;
	o->spec = r->spec;
	o->seed = seed;
	o->scale = 2;
	o->recurrent_scale = 0.7;
	o->threads = 1;
	o->precision = often(d, 50) ? NEAP_DOUBLE : NEAP_FLOAT;
	o->readout = (enum neap_readout)below(d, NEAP_READOUTS);
	o->surrogate = often(d, 50) ? NEAP_SIGMOID : NEAP_TRIANGLE;
	o->density = often(d, 20) ? 0.5 : 1;
	o->dense = often(d, 15);
	o->smooth = often(d, 15);
	o->delay = often(d, 25);
	o->values = often(d, 30);
	o->euler = often(d, 15);
	o->detach = often(d, 20);
	o->learn = often(d, 10) ? NEAP_LEARN_ALL : NEAP_LEARN_NONE;
	o->dropout = often(d, 15) ? 0.2 : 0;
	o->group = below(d, 4);
	if (often(d, 20))
		o->dt = 1e-3 * (0.5 + 0.5 * below(d, 4));
	o->time_unit = often(d, 50) ? 1e-3 : 0;
	r->target = (enum neap_target)below(d, NEAP_TARGETS);
	if (r->target == NEAP_TARGET_LABELS || r->target == NEAP_TARGET_SERIES)
		o->readout = NEAP_READ_STEP;
	r->has_kinks |= o->readout == NEAP_READ_MAX;
	r->may_have_kinks = strstr(r->spec, "support") || strstr(r->spec, "boxcar");
	/* Sums of steps are far from the targets: such a loss is large compared with its
	 * differences. */
	r->has_kinks |= o->readout == NEAP_READ_SOFTMAX && r->target == NEAP_TARGET_NUMBERS;
	if (often(d, 25)) {
		static const char *const parts[] = {"", "", ".weight", ".bias", ".delay", ".leak"};
		int many = often(d, 30) ? layers : 1, first = many > 1 ? 0 : below(d, layers);
		for (int l = first; l < first + many; l++)
			snprintf(r->freeze + strlen(r->freeze),
				sizeof r->freeze - strlen(r->freeze), "%slayer%d%s",
				l > first ? "," : "", l, parts[below(d, 6)]);
		o->freeze = r->freeze;
	}
	/* Refused without AVX-512, and where no weights of dense rows multiply spikes. */
	if (o->precision == NEAP_FLOAT && often(d, 25))
		o->products = NEAP_TILES;
}

#endif
