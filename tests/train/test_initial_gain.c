/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Initial weights by what arrives: membranes without a threshold, walked step by step, deviate by
 * what --gain says, for each cell with a membrane, at any step.
 */
#include "test.h"
#include "train/trainer.h"
#include "train/optimizer.h"
#include "data/dataset.h"
#include "nn/linear_cell.h"
#include "nn/core/net_state.h"
#include "nn/core/cell.h"
#include "base/philox.h"

#define GAIN 0.7
#define DATA "randman:units=30,spikes=4,samples=40,classes=2,steps=200"
enum { SAMPLES = 40, INPUTS = 30, STEPS = 260 };

static const char *const specs[] = {"lif:300:threshold=2,li", "cubalif:300,li", "alif:300,li",
	"adlif:300,li", "seadlif:300:a=6,li", "brf:300,li",
	"cubalif:300:tau=5ms,li"}; /* the last: both time constants are equal */

/* A trainer of the set with a net whose weights were scaled. */
static void make(
	struct neap__trainer *t, const char *spec, const char *data, double dt, double gain)
{
	struct neap_net_options o = NEAP_NET_OPTIONS_INIT;

	*t = (struct neap__trainer){.objective = {.loss = neap_loss_find("cross-entropy")}};
	assert_int_equal(neap_dataset_open(&t->data.set, data), 0);
	t->data.nfirst = SAMPLES;
	o.spec = spec;
	o.dt = dt;
	o.inputs = INPUTS;
	o.classes = 2;
	o.threads = 1;
	o.seed = 3;
	o.precision = NEAP_DOUBLE;
	t->options = (struct neap_train_options){.net = o, .gain = gain};
	assert_int_equal(neap_net_create(&t->net, &o), 0);
	assert_int_equal(neap__initial_gain(t), 0);
}

static void discard(struct neap__trainer *t)
{
	free(t->gain);
	neap_net_free(t->net);
	neap_dataset_close(t->data.set);
}

/* One step of a unit without a threshold; x: membrane, and the second number of its cell. */
static void step(const struct neap__layer *layer, double x[2], double in)
{
	double beta = exp(-1e-3 / layer->tau);

	if (strcmp(layer->cell->name, "cubalif") == 0) {
		x[1] = exp(-1e-3 / layer->tau_syn) * x[1] + in;
		x[0] = beta * x[0] + x[1];
	} else if (strcmp(layer->cell->name, "adlif") == 0) {
		x[1] = exp(-1e-3 / layer->tau_adapt) * x[1] + layer->a * x[0];
		x[0] = beta * x[0] + (1 - beta) * (in - x[1]);
	} else if (strcmp(layer->cell->name, "brf") == 0) {
		double turn = 1e-3 * layer->omega, u = x[0];
		double keep = sqrt(1 - turn * turn) - 1e-3 * layer->b;
		x[0] = keep * u - turn * x[1] + 1e-3 * in;
		x[1] = turn * u + keep * x[1];
	} else if (strcmp(layer->cell->name, "seadlif") == 0) {
		double rho = exp(-1e-3 / layer->tau_adapt);
		x[0] = beta * x[0] + (1 - beta) * (in - x[1]);
		x[1] = rho * x[1] + (1 - rho) * layer->a * x[0];
	} else {
		x[0] = beta * x[0] + in;
	}
}

/* The deviation of the first layer's membranes over all samples, steps and units. */
static double walk(const struct neap__trainer *t)
{
	const struct neap__layer *layer = &t->net->layers[0];
	const double *w = t->net->tensors[layer->weight].data;
	double sum = 0;
	int64_t count = 0;

	for (int s = 0; s < SAMPLES; s++) {
		static double in[STEPS][INPUTS];
		struct neap_events events;
		memset(in, 0, sizeof in);
		assert_int_equal(neap_dataset_read(t->data.set, s, &events), 0);
		int end = (int)ceil(events.duration / 1e-3 - 1e-9);
		assert_true(events.count > 100 && end > 100 && end <= STEPS);
		for (int64_t e = 0; e < events.count; e++)
			in[(int)(events.time[e] / 1e-3)][events.unit[e]]++;
		neap_events_free(&events);
		for (int j = 0; j < layer->n; j++) {
			double x[2] = {0, 0};
			for (int k = 0; k < end; k++, count++) {
				double drive = 0;
				for (int i = 0; i < INPUTS; i++)
					drive += in[k][i] * w[i * layer->n + j];
				step(layer, x, drive);
				sum += x[0] * x[0];
			}
		}
	}
	return sqrt(sum / (double)count) / layer->threshold;
}

static void deviations(void **state)
{
	(void)state;
	for (size_t s = 0; s < sizeof specs / sizeof specs[0]; s++) {
		struct neap__trainer at_1ms, fine;
		make(&at_1ms, specs[s], DATA, 1e-3, GAIN);
		make(&fine, specs[s], DATA, 1e-4, GAIN);
		double found = walk(&at_1ms);
		print_message("# %s: %.4f thresholds, times %.4f and %.4f\n", specs[s], found,
			at_1ms.gain[0].factor, fine.gain[0].factor);
		assert_true(fabs(found - GAIN) < 0.05 * GAIN);
		assert_true(fabs(at_1ms.gain[0].hertz - 20) < 1); /* 4 spikes in 200 ms */
		assert_true(fabs(at_1ms.gain[0].factor - fine.gain[0].factor) <
			    1e-9 * fine.gain[0].factor);
		discard(&at_1ms);
		discard(&fine);
	}
}

/* Layers above are scaled by the rates below them, so that they spike, too. */
static void layers_above(void **state)
{
	struct neap__trainer t;

	(void)state;
	make(&t, "lif:100r,lif:80,alif:60,li", DATA, 1e-3, GAIN);
	for (int l = 0; l < 3; l++) {
		print_message(
			"# layer%d times %.3g, %.3g Hz\n", l, t.gain[l].factor, t.gain[l].hertz);
		assert_true(t.gain[l].factor > 0.5 && t.gain[l].factor < 20);
		assert_true(t.gain[l].hertz > 2 && t.gain[l].hertz < 50);
	}
	assert_true(t.gain[3].factor == 0);
	discard(&t);
}

static void left_alone(void **state)
{
	static const struct {
		const char *spec;
		double gain;
		int scaled[2];
	} cases[] = {{"lif:20:scale=3,lif:20,li", GAIN, {0, 1}},
		{"lif:20,lif:20:scale=1,li", GAIN, {1, 0}}, {"lstm:20,lif:20,li", GAIN, {0, 0}},
		{"egru:20,lif:20,li", GAIN, {0, 0}}, {"lif:20,gru:20,li", GAIN, {1, 0}},
		{"lif:20,lif:20,li", 0, {0, 0}}};

	(void)state;
	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
		struct neap__trainer t, drawn;
		make(&t, cases[c].spec, DATA, 1e-3, cases[c].gain);
		make(&drawn, cases[c].spec, DATA, 1e-3, 0);
		for (int l = 0; l < 2; l++) {
			const struct neap__param *a = &t.net->tensors[t.net->layers[l].weight];
			const struct neap__param *b = &drawn.net->tensors[t.net->layers[l].weight];
			double factor = t.gain[l].factor;
			assert_true((factor > 0) == cases[c].scaled[l]);
			for (int64_t i = 0; i < a->count; i++)
				assert_true(((double *)a->data)[i] ==
					    (factor > 0 ? factor : 1) * ((double *)b->data)[i]);
		}
		discard(&t);
		discard(&drawn);
	}
}

/* Initial values and units of the readout are multiplied, and nothing else; a resumed run's units
 * alone. */
static void readout(void **state)
{
	(void)state;
	for (int c = 0; c < 4; c++) {
		const char *spec = c & 2 ? "lif:20r,li:init=torch" : "lif:20r,li";
		const double factor = 0.125; /* a power of 2: products are exact */
		int draws = c & 1;
		struct neap__trainer t, drawn;
		make(&t, spec, DATA, 5e-3, GAIN);
		make(&drawn, spec, DATA, 5e-3, GAIN);
		t.options.readout_gain = factor;
		neap__readout_gain(&t, draws);
		drawn.options.readout_gain = 1;
		neap__readout_gain(&drawn, 1); /* no factor */
		assert_int_equal(t.net->ntensors, drawn.net->ntensors);
		for (int i = 0; i < t.net->ntensors; i++) {
			const struct neap__param *a = &t.net->tensors[i],
						 *b = &drawn.net->tensors[i];
			int of_readout = strncmp(a->name, "readout.", 8) == 0;
			assert_true(a->unit == (of_readout ? factor : 1) * b->unit);
			for (int64_t k = 0; k < a->count; k++)
				assert_true(((double *)a->data)[k] ==
					    (of_readout && draws ? factor : 1) *
						    ((double *)b->data)[k]);
		}
		discard(&t);
		discard(&drawn);
	}
}

/* The spikes of a sample that the readout of t gets before training, counted batch by batch. */
static double spikes_of(struct neap__trainer *t)
{
	struct neap_eval_result result = {.size = sizeof result};

	assert_int_equal(neap__run_trials(&result, t, NULL, NULL), 0);
	double spikes = result.rates[0] * t->net->layers[0].n * 0.2 / t->options.net.dt;
	neap_eval_result_free(&result);
	return spikes;
}

/*
 * The factor makes an update of a readout `sum` change outputs by 0.05 at most, or those of an
 * epoch by 0.8. It is 1 for any other readout, input, rule or target, and for what was given.
 */
static void chosen(void **state)
{
	const struct {
		const char *spec, *rule;
		double gain, rate, dt;
		int readout, batch;
		double update; /* 0: no factor */
	} cases[] = {{"lif:60r,li", "adam", GAIN, 0.1, 1e-3, NEAP_READ_SUM, 8, 0.8 / 5},
		{"lif:60r,li", "adamw", GAIN, 0.1, 1e-3, NEAP_READ_SUM, 1, 0.05},
		{"lif:60r,li", "adam", GAIN, 0.1, 4e-3, NEAP_READ_SUM, 1, 0.05},
		{"lif:60r,li", "adam", GAIN, 1e-6, 1e-3, NEAP_READ_SUM, 8, 0},
		{"lif:60r,li", "sgd", GAIN, 0.1, 1e-3, NEAP_READ_SUM, 8, 0},
		{"lif:60r,li", "adam", 0, 0.1, 1e-3, NEAP_READ_SUM, 8, 0},
		{"lif:60r,li:scale=1", "adam", GAIN, 0.1, 1e-3, NEAP_READ_SUM, 8, 0},
		{"lif:60r,li:init=torch", "adam", GAIN, 0.1, 1e-3, NEAP_READ_SUM, 8, 0},
		{"lif:60r,li", "adam", GAIN, 0.1, 1e-3, NEAP_READ_MEAN, 8, 0},
		{"rnn:60,li", "adam", GAIN, 0.1, 1e-3, NEAP_READ_SUM, 8, 0}};

	(void)state;
	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
		struct neap__trainer t;
		make(&t, cases[c].spec, DATA, cases[c].dt, cases[c].gain);
		t.net->options.readout = cases[c].readout;
		t.data.info = t.data.set->info;
		t.options.batch = cases[c].batch;
		t.options.learning_rate = cases[c].rate;
		t.options.readout_gain = NEAP_READOUT_GAIN_AUTO;
		assert_int_equal(neap__readout_gain_choose(&t, neap__rule_find(cases[c].rule)), 0);
		double wanted =
			cases[c].update > 0 ? cases[c].update / (cases[c].rate * spikes_of(&t)) : 1;
		if (fabs(t.options.readout_gain / wanted - 1) > (cases[c].update > 0 ? 0.006 : 0))
			fail_msg("case %zu: %g, not %g", c, t.options.readout_gain, wanted);
		discard(&t);
	}
}

/* Moves of many steps at once are those of single ones; so is the mean square of random spikes. */
static void tables(void **state)
{
	(void)state;
	for (size_t s = 0; s < sizeof specs / sizeof specs[0]; s++) {
		struct neap__trainer t;
		struct neap__linear_cell cell;
		double one[2] = {0.3, -0.2}, sum = 0, all = 0, steps = 200000;
		make(&t, specs[s], DATA, 1e-3, 0);
		assert_int_equal(neap__linear_cell_make(&cell, t.net, &t.net->layers[0]), 1);
		double many[2] = {one[0], one[1]};
		for (int k = 0; k < 2500; k++)
			sum += neap__linear_cell_move(&cell, one, 1);
		double once = neap__linear_cell_move(&cell, many, 2500);
		assert_true(fabs(once - sum) < 1e-9 * sum && fabs(many[0] - one[0]) < 1e-12);
		for (int k = 0; k < (int)steps; k++) {
			all += neap__linear_cell_move(&cell, one, 1);
			if (neap__random_uniform(1, NEAP__STREAM_TEST, (uint32_t)s, (uint64_t)k) >=
				0.05)
				continue;
			all += 2 * one[0] * cell.b[0] + cell.b[0] * cell.b[0];
			one[0] += cell.b[0];
			one[1] += cell.b[1];
		}
		double wanted = neap__linear_cell_mean_square(&cell, 0.05);
		if (fabs(all / steps - wanted) > 0.05 * wanted)
			fail_msg("%s: %g, not %g", specs[s], all / steps, wanted);
		neap__linear_cell_free(&cell);
		discard(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(deviations),
		cmocka_unit_test(layers_above), cmocka_unit_test(left_alone),
		cmocka_unit_test(readout), cmocka_unit_test(chosen), cmocka_unit_test(tables)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
