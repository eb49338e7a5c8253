/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a net chooses where nothing is given: the distribution of initial weights (those of
 * PyTorch's layers for gated cells), the smoothing of the readout, and how outputs become an
 * answer.
 */
#include "nn/nets.h"
#include "nn/core/net_state.h"

#include <math.h>

enum { UNITS = 100, INPUTS = 30, CLASSES = 40 };

static struct neap_net_options options(const char *spec)
{
	struct neap_net_options o = NEAP_NET_OPTIONS_INIT;
	o.spec = spec;
	o.inputs = INPUTS;
	o.classes = CLASSES;
	o.seed = 3;
	o.threads = 1;
	return o;
}

static struct neap_param param(const struct neap_net *net, const char *name)
{
	struct neap_param p;

	for (int i = 0; i < neap_net_params(net); i++)
		if (neap_net_param(net, i, &p) == 0 && strcmp(p.name, name) == 0)
			return p;
	fail_msg("no tensor %s", name);
	return p;
}

struct moments {
	double largest, mean, variance, fourth; /* fourth: over variance squared */
};

static struct moments moments(const struct neap_net *net, const char *name)
{
	struct neap_param p = param(net, name);
	const float *v = p.data;
	struct moments m = {0};
	double n = (double)p.count;

	for (int64_t i = 0; i < p.count; i++) {
		double x = (double)v[i];
		m.largest = fmax(m.largest, fabs(x));
		m.mean += x / n;
		m.variance += x * x / n;
		m.fourth += x * x * x * x / n;
	}
	m.fourth /= m.variance * m.variance;
	return m;
}

/* Independent uniform values in [-bound, bound], or sums of two: 1/3, and 9/5 or 12/5 of a square.
 */
static void assert_uniform(const struct neap_net *net, const char *name, double bound, int sum)
{
	struct moments m = moments(net, name);
	double n = (double)param(net, name).count, near = 6 / sqrt(n);

	assert_true(m.largest <= sum * bound * (1 + 1e-6));
	assert_true(fabs(m.mean) < near * bound);
	assert_true(fabs(m.variance * 3 / (sum * bound * bound) - 1) < near);
	assert_true(fabs(m.fourth - (sum == 2 ? 2.4 : 1.8)) < 2 * near);
}

/* W, V and biases of PyTorch's GRU, LSTM and RNN are uniform in +-1/sqrt(units), of its Linear in
 * +-1/sqrt(inputs). */
static void gated(void **arg)
{
	static const struct {
		const char *spec;
		int biases;
	} cells[] = {{"gru:100,li", 1}, {"lstm:100,li", 2}, {"rnn:100,li", 2}, {"egru:100,li", 2}};
	double bound = 1 / sqrt(UNITS);

	(void)arg;
	for (size_t c = 0; c < sizeof cells / sizeof cells[0]; c++) {
		struct neap_net_options o = options(cells[c].spec);
		struct neap_net *net = net_make(&o);
		assert_uniform(net, "layer0.weight", bound, 1);
		assert_uniform(net, "layer0.recurrent", bound, 1);
		assert_uniform(net, "layer0.bias", bound, cells[c].biases);
		assert_uniform(net, "readout.weight", bound, 1);
		assert_uniform(net, "readout.bias", bound, 1);
		neap_net_free(net);
	}
	struct neap_net_options o = options("egru:100,li");
	struct neap_net *net = net_make(&o);
	assert_uniform(net, "layer0.candidate", bound, 1);
	neap_net_free(net);
}

/* Where the rule is given, any cell has it; sparse layers have fewer inputs. */
static void given(void **arg)
{
	struct neap_net_options o =
		options("lif:100r:init=torch,gru:100:density=0.5,li:init=torch");
	struct neap_net *net = net_make(&o);

	(void)arg;
	assert_uniform(net, "layer0.weight", 1 / sqrt(INPUTS), 1);
	assert_uniform(net, "layer0.recurrent", 1 / sqrt(UNITS), 1);
	assert_uniform(net, "layer0.bias", 1 / sqrt(INPUTS), 1);
	assert_uniform(net, "layer1.weight", 1 / sqrt(0.5 * UNITS), 1);
	assert_uniform(net, "layer1.bias", 1 / sqrt(UNITS), 1);
	neap_net_free(net);
}

/* Cells that spike, and layers with a scale, have normal weights and biases of 0. */
static void normal(void **arg)
{
	static const char *const specs[] = {"lif:100r,li", "gru:100:scale=0.5,li:scale=1",
		"gru:100:recurrent_scale=0.3,li:scale=1", "gru:100:init=normal,li:init=normal"};

	(void)arg;
	for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
		struct neap_net_options o = options(specs[i]);
		struct neap_net *net = net_make(&o);
		struct moments w = moments(net, "layer0.weight"),
			       r = moments(net, "readout.weight");
		assert_true(fabs(w.variance * INPUTS / 0.25 - 1) < 0.2);
		assert_true(fabs(w.fourth - 3) < 0.5);
		assert_true(
			fabs(moments(net, "layer0.recurrent").variance * UNITS / 0.09 - 1) < 0.2);
		assert_true(fabs(r.variance * UNITS - 1) < 0.2);
		assert_true(moments(net, "layer0.bias").largest == 0);
		assert_true(moments(net, "readout.bias").largest == 0);
		neap_net_free(net);
	}
	struct neap_net_options o = options("gru:100,li");
	o.scale = 1; /* an option that is not the default is a scale, too */
	struct neap_net *net = net_make(&o);
	assert_true(fabs(moments(net, "layer0.weight").variance * INPUTS - 1) < 0.2);
	assert_uniform(net, "readout.weight", 1 / sqrt(UNITS), 1);
	neap_net_free(net);
}

/* The text of a net, with what was chosen, makes the same weights under other options. */
static void canonical(void **arg)
{
	struct neap_net_options o = options("gru:100,lif:20,lstm:8:init=normal,rnn:7,li");
	struct neap_net *a = net_make(&o);
	struct neap_net_options p = options(neap_net_spec(a));

	(void)arg;
	for (p.init = NEAP_INIT_NORMAL; p.init <= NEAP_INIT_TORCH; p.init++) {
		struct neap_net *c = net_make(&p);
		assert_string_equal(neap_net_spec(a), neap_net_spec(c));
		neap_net_free(c);
	}
	p.init = NEAP_INIT_NORMAL;
	p.scale = 5;
	p.tau_out = 1;
	struct neap_net *b = net_make(&p);
	assert_string_equal(neap_net_spec(a), neap_net_spec(b));
	assert_null(strstr(neap_net_spec(a), "gru:100:density=1:init=torch:scale"));
	assert_same_weights(a, b);
	neap_net_free(a);
	neap_net_free(b);
}

/* Smoothing and readout by what the readout gets, and what is asked for. */
static void readouts(void **arg)
{
	static const struct {
		const char *spec;
		int values, step, learns; /* learns: enum neap_learn */
		double tau;
		enum neap_readout readout;
	} cases[] = {
		{"lif:8r,li", 0, 0, 0, 20e-3, NEAP_READ_SUM},
		{"lif:8r,li", 1, 0, 0, 20e-3, NEAP_READ_SUM},
		{"lif:8r,li", 0, 1, 0, 0, NEAP_READ_STEP},
		{"lif:8r,li:tau=5ms", 0, 1, 0, 5e-3, NEAP_READ_STEP},
		{"gru:8,li", 0, 0, 0, 0, NEAP_READ_MEAN},
		{"gru:8,li", 1, 0, 0, 0, NEAP_READ_LAST},
		{"gru:8,li", 1, 1, 0, 0, NEAP_READ_STEP},
		{"gru:8,li", 1, 0, 1, 20e-3, NEAP_READ_LAST},
		{"gru:8,li", 1, 0, 2, 20e-3, NEAP_READ_LAST},
		{"lif:8r,li:learn=all", 0, 1, 0, 20e-3, NEAP_READ_STEP},
		{"egru:8,li:tau=none", 1, 0, 0, 0, NEAP_READ_MEAN},
		{"gru:8,lif:8:tau=10ms,li", 1, 0, 0, 20e-3, NEAP_READ_SUM},
		{"lif:8,lstm:8,li", 1, 0, 0, 0, NEAP_READ_LAST},
		{"li", 1, 0, 0, 0, NEAP_READ_MEAN},
		{"li", 0, 0, 0, 20e-3, NEAP_READ_MEAN},
	};

	(void)arg;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct neap_net_options o = options(cases[i].spec);
		o.values = cases[i].values;
		o.learn = (enum neap_learn)cases[i].learns;
		if (cases[i].step)
			o.readout = NEAP_READ_STEP;
		struct neap_net *net = net_make(&o);
		const char *tau = strstr(strstr(neap_net_spec(net), "li:40"), ":tau=");
		assert_true(strtod(tau + 5, NULL) == cases[i].tau);
		assert_int_equal(net->options.readout, cases[i].readout);
		neap_net_free(net);
	}
	struct neap_net_options e = options("egru:8,li");
	struct neap_net *egru = net_make(&e);
	assert_non_null(strstr(neap_net_spec(egru), ":threshold=0.1"));
	neap_net_free(egru);
	struct neap_net_options o = options("lif:8,li"); /* euler: a tau of 0 is no division */
	o.euler = 1;
	o.tau_out = 0;
	neap_net_free(net_make(&o));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gated),
		cmocka_unit_test(given),
		cmocka_unit_test(normal),
		cmocka_unit_test(canonical),
		cmocka_unit_test(readouts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
