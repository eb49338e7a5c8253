/* SPDX-License-Identifier: Apache-2.0 */
/* Time constants that are learned: where they begin, how far they go, what they take. */
#include "nn/nets.h"

static const int64_t lengths[] = {70, 90, 33, 1};

static const struct neap_objective *objective(void)
{
	static struct neap_objective o = {.size = sizeof o};
	o.loss = neap_loss_find("cross-entropy");
	return &o;
}

static double largest(const struct neap_param *p)
{
	double most = 0;
	for (int64_t k = 0; k < p->count; k++)
		most = fmax(most, fabs(p->grad[k]));
	return most;
}

/* They begin where time constants and step say; weights as where nothing else is learned. */
static void beginning(void **arg)
{
	static const struct {
		const char *name;
		double tau;
	} want[] = {{"layer0.leak", 12e-3}, {"layer0.leak_syn", 3e-3}, {"layer1.leak", 20e-3},
		{"layer1.leak_adapt", 70e-3}, {"readout.leak", 15e-3}};
	struct neap_net_options o = net_options(
		"cubalif:30:tau=12ms:tau_syn=3ms:scale=1,adlif:20r:tau_adapt=70ms:scale=40,"
		"gru:9,li:tau=15ms");
	struct batch_room room;
	struct neap_param p, q;

	(void)arg;
	batch_make(&room, 3, 4, 19, 0, 5, 0.05, lengths);
	for (int euler = 0; euler < 2; euler++) {
		o.euler = euler;
		o.learn = NEAP_LEARN_NONE;
		struct neap_net *fixed = net_make(&o);
		o.learn = NEAP_LEARN_TAU;
		struct neap_net *net = net_make(&o);
		int weights = neap_net_params(fixed);
		double a = sweep_plain(net, &room.batch, objective());
		double b = sweep_plain(fixed, &room.batch, objective());
		assert_true(fabs(a - b) < 1e-12 * fabs(b));
		assert_true(grad_distance(fixed, net) < 1e-9);
		assert_int_equal(neap_net_params(net), weights + 5);
		for (int i = 0; i < weights; i++) {
			neap_net_param(net, i, &p);
			neap_net_param(fixed, i, &q);
			assert_string_equal(p.name, q.name);
			assert_memory_equal(p.data, q.data, (size_t)p.count * sizeof(double));
			assert_false(p.is_leak);
		}
		for (int i = 0; i < 5; i++) {
			double tau = want[i].tau;
			neap_net_param(net, weights + i, &p);
			assert_string_equal(p.name, want[i].name);
			assert_true(p.is_leak);
			assert_int_equal(p.rows, 1);
			for (int64_t k = 0; k < p.count; k++)
				assert_true(fabs(1 / (1 + exp(-((double *)p.data)[k])) -
						    (euler ? 1 - o.dt / tau : exp(-o.dt / tau))) <
					    1e-14);
			assert_true(largest(&p) > 1e-7);
		}
		neap_net_free(fixed);
		neap_net_free(net);
	}
	batch_free(&room);
}

/* However far a parameter goes, what is left after a step stays below 1. */
static void extremes(void **arg)
{
	static const double logits[] = {40, 800, -800};
	struct batch_room room;

	(void)arg;
	batch_make(&room, 3, 4, 19, 0, 5, 0.05, lengths);
	for (int i = 0; i < 6; i++) {
		struct neap_net_options o = net_options("lif:30r,li");
		struct neap_param p;
		o.learn = NEAP_LEARN_TAU;
		o.precision = i < 3 ? NEAP_DOUBLE : NEAP_FLOAT;
		struct neap_net *net = net_make(&o);
		neap_net_param(net, neap_net_params(net) - 2, &p);
		assert_string_equal(p.name, "layer0.leak");
		for (int64_t k = 0; k < p.count; k++)
			if (o.precision == NEAP_DOUBLE)
				((double *)p.data)[k] = logits[i % 3];
			else
				((float *)p.data)[k] = (float)logits[i % 3];
		assert_true(isfinite(sweep_plain(net, &room.batch, objective())));
		assert_true(isfinite(largest(&p)));
		neap_net_free(net);
	}
	batch_free(&room);
}

/* Bytes as docs/cells.md has them, in float, of 64 units and 5 classes. */
static void bytes(void **arg)
{
	static const struct {
		const char *spec;
		int traces, on_tape; /* rows of a state; of a dense tape */
	} cells[] = {{"lif:64r,li", 1, 1}, {"cubalif:64r,li", 3, 2}, {"alif:64r,li", 2, 2},
		{"adlif:64r,li", 4, 2}, {"seadlif:64r,li", 4, 2}, {"brf:64r,li", 0, 0},
		{"lif:64r:reset=zero,li", 1, 1}};
	struct batch_room room;
	struct neap_net_sizes fixed = {.size = sizeof fixed}, learned = {.size = sizeof learned};

	(void)arg;
	batch_make(&room, 3, 1, 19, 20, 5, 0.05, NULL);
	for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
		char spec[64];
		struct neap_net_options o = net_options(cells[i].spec);
		o.precision = NEAP_FLOAT;
		struct neap_net *net = net_make(&o);
		assert_int_equal(neap_net_begin(net, &room.batch, objective()), 0);
		neap_net_get_sizes(net, &fixed);
		neap_net_free(net);
		snprintf(spec, sizeof spec, "%.*s:learn=tau,li", (int)strlen(cells[i].spec) - 3,
			cells[i].spec);
		o.spec = spec;
		net = net_make(&o);
		assert_int_equal(neap_net_begin(net, &room.batch, objective()), 0);
		neap_net_get_sizes(net, &learned);
		neap_net_free(net);
		assert_int_equal(learned.state, fixed.state + 256 * (size_t)cells[i].traces);
		assert_int_equal(learned.tape_max, fixed.tape_max + 256 * (size_t)cells[i].on_tape);
		assert_int_equal(learned.adjoint, fixed.adjoint);
		assert_int_equal(learned.log_max, 0);
	}
	batch_free(&room);
}

/* The values that the units of a layer have, in the terms of the key. */
static void drawn(double *to, struct neap_net *net, const char *tensor, double dt)
{
	struct neap_param p;
	int found = 0;

	for (int i = 0; i < neap_net_params(net); i++) {
		neap_net_param(net, i, &p);
		if (strcmp(p.name, tensor))
			continue;
		found = 1;
		assert_true(p.is_leak);
		for (int64_t k = 0; k < p.count; k++) {
			double v = ((double *)p.data)[k];
			to[k] = strstr(tensor, "leak")	  ? dt / log1p(exp(-v))
				: strstr(tensor, "omega") ? exp(v)
							  : v;
		}
	}
	assert_true(found);
}

/*
 * Ranges: uniform values in them, of the seed, layer, parameter and unit alone: not of what is
 * learned, of other layers, of the precision. Where they are not learned their gradient is 0.
 */
static void ranges(void **arg)
{
	enum { UNITS = 400 };
	static const struct {
		const char *spec, *tensor;
		double low, high;
	} cases[] = {{"lif:400:tau=5ms..25ms%s,li", "layer0.leak", 5e-3, 25e-3},
		{"lif:9,cubalif:400:tau_syn=1ms..2ms%s,li", "layer1.leak_syn", 1e-3, 2e-3},
		{"alif:400:tau_adapt=0.06..0.3%s,li", "layer0.leak_adapt", 0.06, 0.3},
		{"brf:400:omega=50..90:b=9..10%s,li", "layer0.omega", 50, 90},
		{"seadlif:400:a=-3..120%s,li", "layer0.a", -3, 120},
		{"seadlif:400:a=0..1:b=-9..-3%s,li", "layer0.b", -9, -3}};
	static const char *const more[] = {"", ":learn=tau", ":learn=all"};
	struct batch_room room;

	(void)arg;
	batch_make(&room, 3, 2, 19, 20, 5, 0.05, NULL);
	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
		double first[UNITS], again[UNITS], sum = 0, low = INFINITY, high = -INFINITY;
		double width = cases[c].high - cases[c].low;
		for (int m = 0; m < 4; m++) {
			char spec[100];
			snprintf(spec, sizeof spec, cases[c].spec, more[m % 3]);
			struct neap_net_options o = net_options(spec);
			o.seed = m == 3 ? 8 : 7;
			struct neap_net *net = net_make(&o);
			drawn(m ? again : first, net, cases[c].tensor, o.dt);
			assert_int_equal(
				memcmp(first, m ? again : first, sizeof first) != 0, m == 3);
			struct neap_net_options p = net_options(neap_net_spec(net));
			p.seed = o.seed;
			struct neap_net *same = net_make(&p);
			drawn(again, same, cases[c].tensor, o.dt);
			assert_true(m == 3 || !memcmp(first, again, sizeof first));
			double a = sweep_plain(net, &room.batch, objective());
			assert_true(a == sweep_plain(same, &room.batch, objective()));
			for (int i = 0; i < neap_net_params(net); i++) {
				struct neap_param q;
				neap_net_param(net, i, &q);
				if (!strcmp(q.name, cases[c].tensor) && m == 0)
					assert_true(neap_net_frozen(net, i) && largest(&q) == 0);
			}
			neap_net_free(net);
			neap_net_free(same);
		}
		for (int i = 0; i < UNITS; i++) {
			sum += first[i] / UNITS;
			low = fmin(low, first[i]);
			high = fmax(high, first[i]);
		}
		assert_true(
			low >= cases[c].low - 1e-9 * width && low < cases[c].low + 0.03 * width);
		assert_true(high <= cases[c].high + 1e-9 * width &&
			    high > cases[c].high - 0.03 * width);
		assert_true(fabs(sum - cases[c].low - width / 2) < 0.05 * width);
	}
	batch_free(&room);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(beginning),
		cmocka_unit_test(extremes),
		cmocka_unit_test(bytes),
		cmocka_unit_test(ranges),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
