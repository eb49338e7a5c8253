/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same gradient by other ways: sparse against dense tapes, float against
 * double, compressed rows against dense ones with zeros, parts of a batch
 * against the whole.
 */
#include "nn/nets.h"

/* Nets whose first layers have dense tapes, of numbers of all units. */
static const char *const of_numbers[] = {
	"rnn:40:recurrent_scale=1,li",
	"rnn:30:activation=relu,rnn:20:delay=1,li",
	"lstm:40:recurrent_scale=1,li",
	"lstm:30,lif:40r:reset=zero,lstm:20:delay=1,li",
	"egru:40:threshold=0.2:recurrent_scale=1,li",
	"egru:30:threshold=0.1,lif:40r,egru:20:threshold=0.1:delay=1,li",
	"gru:40:recurrent_scale=1,li",
	"gru:30,cubalif:40:scale=1,gru:20:delay=1,li",
};
/* Nets with sparse tapes. */
static const char *const of_spikes[] = {
	"lif:70r,li",
	"lif:70r:reset=zero,li",
	"lif:70r:reset=hard:reset_value=0.1,li",
	"lif:70r:reset=soft,li",
	"lif:70r:reset=zero:detach=1,lif:40:reset=hard:detach=1,li",
	"lif:70:reset=zero,lif:40r:detach=1,li",
	"lif:65r:reset=soft:detach=1,lif:40r:reset=zero:delay=1,li:delay=1",
	"cubalif:70r:scale=0.7,li",
	"cubalif:65:detach=1:tau_syn=2ms:scale=1,cubalif:40r:scale=1:delay=1,li",
	"alif:70r,li",
	"alif:65:adapt=0.3,alif:40r:detach=1:delay=1,li",
	"adlif:70r:scale=40,li",
	"adlif:65r:scale=40:detach=1,adlif:40:scale=40,li",
	"seadlif:70r:scale=40,li",
	"seadlif:65r:scale=40:detach=1:a=5,seadlif:40:scale=40:delay=1,li",
	"cell c;state u;state w;w=0.99*w+0.1*spike;u=0.9*u+in-w;reset u=u-1;spike u-1:170r,li",
	"cell c;state u=-1;state w;old=u;u=min(u+0.2*u^2+in-w;5);w=w+0.1*(old-w);spike u-0.5;reset "
	"u=-1;w=w+0.2*spike:70r,li",
	"cell c;state u;u=tanh(u)+in+0.1*spike;reset u=0;spike u-1:65r,cell c;state u=-1;state "
	"w;old=u;u=min(u+0.2*u^2+in-w;5);w=w+0.1*(old-w);spike u-0.5;reset "
	"u=-1;w=w+0.2*spike:40r:detach=1:delay=1,li",
	"lif:70r:learn=tau,lif:40:reset=zero:learn=tau,li:learn=tau",
	"lif:70r:reset=hard:learn=tau,lif:40:reset=soft:learn=tau:detach=1,li:learn=tau",
	"cubalif:70r:scale=0.7:learn=tau,li:learn=tau",
	"alif:70r:learn=tau,lif:40r:reset=zero:detach=1:learn=tau,li",
	"adlif:70r:scale=40:learn=tau,li:learn=tau",
	"seadlif:70r:scale=40:learn=tau,li:learn=tau",
	"seadlif:70r:scale=40:learn=all:a=1..60:b=0..120,li",
	"brf:70r:scale=900:omega=50..100:b=10..40,brf:40:scale=900:learn=tau:detach=1:delay=1,li",
	"lif:70r:tau=5ms..25ms,cubalif:40r:scale=1:tau_syn=2ms..8ms:learn=tau,li",
	"lif:70r,lif:40:delay=0..20,li:delay=3..9:learn",
	"alif:70r,cubalif:20:delay=2..9,li:delay=0..1:learn",
};
enum {
	SPARSE = sizeof of_numbers / sizeof of_numbers[0], /* the first one with sparse tapes */
	SPECS = SPARSE + sizeof of_spikes / sizeof of_spikes[0]
};

static const char *spec_at(int s)
{
	return s < SPARSE ? of_numbers[s] : of_spikes[s - SPARSE];
}

static const int64_t lengths[] = {70, 90, 33, 1, 81, 64};

static void make(struct batch_room *room, double rate)
{
	batch_make(room, 3, 6, 19, 0, 5, rate, lengths);
}

static const struct neap_objective *objective(void)
{
	static struct neap_objective o = {
		.size = sizeof o, .rates = {.upper = 0.02, .upper_weight = 1, .l2 = 0.1}};
	o.loss = neap_loss_find("cross-entropy");
	return &o;
}

static double largest(const struct neap_net *net, const char *name)
{
	double most = 0;
	for (int i = 0; i < neap_net_params(net); i++) {
		struct neap_param p;
		neap_net_param(net, i, &p);
		for (int64_t k = 0; k < p.count && !strcmp(p.name, name); k++)
			most = fmax(most, fabs(p.grad[k]));
	}
	return most;
}

static void compare_dense(const struct neap_net_options *given, struct batch_room *room)
{
	struct neap_net_options o = *given;
	struct neap_net *sparse = net_make(&o);
	o.dense = 1;
	struct neap_net *dense = net_make(&o);
	struct neap_net_result result = {.size = sizeof result};
	double a = sweep_plain(sparse, &room->batch, objective());
	double b = sweep_plain(dense, &room->batch, objective());

	assert_true(a == b);
	neap_net_get_result(sparse, &result);
	assert_true(result.support > 0.01 && result.support < 1);
	assert_true(result.spikes > 0.005);
	neap_net_get_result(dense, &result);
	assert_true(result.support == 1);
	assert_true(largest(sparse, "layer0.weight") > 1e-6);
	assert_true(grad_distance(sparse, dense) < 1e-12);
	neap_net_free(sparse);
	neap_net_free(dense);
}

/* The widest supports fill the tapes, which then take their dense form. */
static void sparse_is_dense(void **arg)
{
	static const double rates[] = {0.05, 0.9};
	(void)arg;
	for (int r = 0; r < 2; r++) {
		struct batch_room room;
		make(&room, rates[r]);
		for (int s = SPARSE; s < SPECS; s++)
			for (int surrogate = 0; surrogate < 8; surrogate++) {
				struct neap_net_options o = net_options(spec_at(s));
				o.surrogate = (enum neap_surrogate)(surrogate % 6);
				o.support = surrogate == NEAP_TRIANGLE ? 0 : 0.45;
				if (surrogate >= 6) {
					o.support = 0;
					o.width = surrogate == 6 ? 1.01 : 2;
				}
				compare_dense(&o, &room);
			}
		batch_free(&room);
	}
}

static void copy_weights(const struct neap_net *to, const struct neap_net *from)
{
	for (int i = 0; i < neap_net_params(to); i++) {
		struct neap_param p, q;
		neap_net_param(to, i, &p);
		neap_net_param(from, i, &q);
		for (int64_t k = 0; k < p.count; k++)
			((double *)p.data)[k] = (double)((float *)q.data)[k];
	}
}

static void float_is_double(void **arg)
{
	struct batch_room room;

	(void)arg;
	make(&room, 0.05);
	for (int s = 0; s < SPECS; s++)
		for (int readout = 0; readout < 6; readout++) {
			struct neap_net_options o = net_options(spec_at(s));
			struct neap_net_result p = {.size = sizeof p}, q = {.size = sizeof q};
			o.readout = (enum neap_readout)readout;
			o.precision = NEAP_FLOAT;
			struct neap_net *a = net_make(&o);
			o.precision = NEAP_DOUBLE;
			struct neap_net *b = net_make(&o);
			copy_weights(b, a);
			double x = sweep_plain(a, &room.batch, objective());
			double y = sweep_plain(b, &room.batch, objective());
			neap_net_get_result(a, &p);
			neap_net_get_result(b, &q);
			if (s < SPARSE) /* means of numbers */
				assert_true(fabs(p.spikes - q.spikes) < 1e-4 * fabs(q.spikes));
			else /* no spike at the edge, by seed */
				assert_true(p.spikes == q.spikes);
			assert_true(fabs(x - y) < 1e-4 * fabs(y));
			assert_true(grad_distance(b, a) < 1e-4);
			neap_net_free(a);
			neap_net_free(b);
		}
	batch_free(&room);
}

/* A net in compressed rows is the dense net whose missing weights are zero. */
static void compressed_is_dense(void **arg)
{
	static const double densities[] = {0.5, 0.02};
	struct batch_room room;

	(void)arg;
	make(&room, 0.2);
	for (int s = 0; s < SPECS; s++)
		for (int d = 0; d < 2; d++) {
			struct neap_net_options o = net_options(spec_at(s));
			struct neap_param p, q;
			o.density = densities[d];
			struct neap_net *a = net_make(&o);
			o.density = 1;
			struct neap_net *b = net_make(&o);
			for (int i = 0; i < neap_net_params(a); i++) {
				neap_net_param(a, i, &p);
				neap_net_param(b, i, &q);
				if (!p.column) {
					memcpy(q.data, p.data, (size_t)p.count * sizeof(double));
					continue;
				}
				double kept = (double)p.count / (double)(p.rows * p.columns);
				assert_true(fabs(kept - densities[d]) < 0.06);
				memset(q.data, 0, (size_t)q.count * sizeof(double));
				for (int64_t r = 0; r < p.rows; r++)
					for (uint32_t e = p.row_start[r]; e < p.row_start[r + 1];
						e++)
						((double *)q.data)[r * q.columns + p.column[e]] =
							((double *)p.data)[e];
			}
			double x = sweep_plain(a, &room.batch, objective());
			double y = sweep_plain(b, &room.batch, objective());
			assert_true(fabs(x - y) < 1e-12 * fabs(y));
			for (int i = 0; i < neap_net_params(a); i++) {
				neap_net_param(a, i, &p);
				neap_net_param(b, i, &q);
				for (int64_t r = 0; p.column && r < p.rows; r++)
					for (uint32_t e = p.row_start[r]; e < p.row_start[r + 1];
						e++) {
						double g = q.grad[r * q.columns + p.column[e]];
						assert_true(fabs(g - p.grad[e]) < 1e-12);
					}
			}
			neap_net_free(a);
			neap_net_free(b);
		}
	batch_free(&room);
}

/* The batch's gradient is the mean of its samples', whatever the groups. */
static void batch_is_samples(void **arg)
{
	struct neap_objective plain = {.size = sizeof plain, .loss = neap_loss_find("mse")};
	struct batch_room room;

	(void)arg;
	make(&room, 0.05);
	for (int group = 0; group < 5; group++) {
		struct neap_net_options o = net_options(spec_at(SPARSE + 1));
		o.group = group;
		struct neap_net *net = net_make(&o), *one = net_make(&o);
		struct neap_param p, q;
		double loss = sweep_plain(net, &room.batch, &plain), mean = 0, most = 0;
		neap_net_param(net, 1, &p);
		double *sum = calloc((size_t)p.count, sizeof *sum);
		for (int b = 0; b < room.batch.size; b++) {
			struct neap_batch alone = room.batch;
			alone.size = 1;
			alone.sequences += b;
			mean += sweep_plain(one, &alone, &plain) / room.batch.size;
			neap_net_param(one, 1, &q);
			for (int64_t k = 0; k < p.count; k++)
				sum[k] += q.grad[k] / room.batch.size;
		}
		assert_true(fabs(loss - mean) < 1e-14);
		for (int64_t k = 0; k < p.count; k++) {
			most = fmax(most, fabs(p.grad[k]));
			assert_true(fabs(p.grad[k] - sum[k]) < 1e-13);
		}
		assert_true(most > 1e-6);
		free(sum);
		neap_net_free(net);
		neap_net_free(one);
	}
	batch_free(&room);
}

/* Rates, predictions and the measured tape are what they say. */
static void results(void **arg)
{
	struct batch_room room;
	struct neap_net_result r = {.size = sizeof r};
	struct neap_net_sizes before = {.size = sizeof before}, after = {.size = sizeof after};

	(void)arg;
	make(&room, 0.05);
	struct neap_net_options o = net_options("lif:70r,lif:40,li");
	struct neap_net *net = net_make(&o);
	assert_int_equal(neap_net_begin(net, &room.batch, objective()), 0);
	neap_net_get_sizes(net, &before);
	assert_true(before.tape_mean > 0 && before.tape_mean <= before.tape_max);
	double loss = sweep_plain(net, &room.batch, objective());
	neap_net_get_result(net, &r);
	neap_net_get_sizes(net, &after);
	assert_true(after.tape_mean != before.tape_mean);
	assert_int_equal(r.layers, 2);
	assert_true(r.loss == loss);
	assert_true(fabs(r.spikes * 110 - r.rate[0] * 70 - r.rate[1] * 40) < 1e-12);
	int correct = 0;
	for (int b = 0; b < room.batch.size; b++) {
		for (int c = 0; c < 5; c++)
			assert_true(r.answer[5 * b + c] <= r.answer[5 * b + r.prediction[b]]);
		correct += r.prediction[b] == room.sequences[b].label;
	}
	assert_int_equal(r.correct, correct);
	neap_net_free(net);
	batch_free(&room);
}

/* Losses and spikes count on first passes only, however often a range is passed. */
static void first_passes(void **arg)
{
	struct batch_room room;
	struct neap_net_result plain = {.size = sizeof plain}, again = {.size = sizeof again};
	struct neap_net_sizes sizes = {.size = sizeof sizes};

	(void)arg;
	make(&room, 0.05);
	for (int readout = 0; readout < 6; readout++) {
		struct neap_net_options o = net_options("lif:70r,li");
		size_t used;
		int64_t done;
		double loss;
		o.readout = (enum neap_readout)readout;
		struct neap_net *net = net_make(&o);
		sweep_plain(net, &room.batch, objective());
		neap_net_get_result(net, &plain);
		assert_int_equal(neap_net_begin(net, &room.batch, objective()), 0);
		neap_net_get_sizes(net, &sizes);
		unsigned char *state = room_for(sizes.state), *tape = room_for(sizes.tape_max * 91);
		unsigned char *adjoint = room_for(sizes.adjoint);
		for (int first = 1; first >= 0; first--) {
			memset(state, 0, sizes.state);
			neap_net_advance(net, state, 0, 50, first);
			neap_net_record(
				net, state, 50, 90, first, tape, sizes.tape_max * 91, &used, &done);
			assert_int_equal(done, 90);
		}
		memset(state, 0, sizes.state);
		neap_net_advance(net, state, 0, 90, 0);
		assert_int_equal(neap_net_turn(net, state, readout & 1 ? adjoint : NULL, &loss), 0);
		neap_net_get_result(net, &again);
		assert_true(loss == plain.loss && again.penalty == plain.penalty);
		assert_true(again.spikes == plain.spikes && again.penalty > 0);
		free(state);
		free(tape);
		free(adjoint);
		neap_net_free(net);
	}
	batch_free(&room);
}

/* The bias gradients of a net of `steps` steps, reversed 64 at a time from kept states. */
static void long_gradient(
	enum neap_precision precision, const struct neap_batch *batch, double *gradient)
{
	struct neap_objective plain = {.size = sizeof plain, .loss = neap_loss_find("mse")};
	struct neap_net_options o = net_options("lif:2,li");
	struct neap_net_sizes z = {.size = sizeof z};
	struct neap_param p;
	int64_t n = (batch->steps + 63) / 64, done;
	size_t used;
	double loss;

	o.inputs = 2;
	o.readout = NEAP_READ_SUM;
	o.precision = precision;
	o.smooth = 1;
	o.surrogate = NEAP_SIGMOID;
	o.scale = 0.5;
	struct neap_net *net = net_make(&o);
	if (precision == NEAP_DOUBLE) {
		o.precision = NEAP_FLOAT;
		struct neap_net *rounded = net_make(&o);
		copy_weights(net, rounded);
		neap_net_free(rounded);
	}
	assert_int_equal(neap_net_begin(net, batch, &plain), 0);
	neap_net_get_sizes(net, &z);
	unsigned char *states = room_for(z.state * (size_t)(n + 1));
	unsigned char *adjoint = room_for(z.adjoint), *tape = room_for(z.tape_max * 64);
	memset(states, 0, z.state);
	for (int64_t i = 0; i < n; i++) {
		unsigned char *state = states + z.state * (size_t)i;
		memcpy(state + z.state, state, z.state);
		int64_t end = i == n - 1 ? batch->steps : 64 * i + 64;
		neap_net_advance(net, state + z.state, 64 * i, end, 1);
	}
	neap_net_turn(net, states + z.state * (size_t)n, adjoint, &loss);
	for (int64_t i = n - 1; i >= 0; i--) {
		int64_t end = i == n - 1 ? batch->steps : 64 * i + 64;
		neap_net_record(net, states + z.state * (size_t)i, 64 * i, end, 0, tape,
			z.tape_max * 64, &used, &done);
		assert_int_equal(done, end);
		assert_int_equal(neap_net_backward(net, adjoint, end, 64 * i, tape), 0);
	}
	neap_net_end(net);
	neap_net_param(net, 1, &p);
	memcpy(gradient, p.grad, 2 * sizeof(double));
	free(states);
	free(adjoint);
	free(tape);
	neap_net_free(net);
}

/* Sums over many steps lose no digits in float: blocks are added up in double. */
static void long_sums(void **arg)
{
	struct batch_room room;
	double a[2], b[2];

	(void)arg;
	batch_make(&room, 3, 1, 2, 300000, 5, 0.3, NULL);
	long_gradient(NEAP_FLOAT, &room.batch, a);
	long_gradient(NEAP_DOUBLE, &room.batch, b);
	for (int i = 0; i < 2; i++) {
		fprintf(stderr, "# bias gradient %.9g, in double %.9g\n", a[i], b[i]);
		assert_true(fabs(b[i]) > 1);
		assert_true(fabs(a[i] - b[i]) < 2e-6 * fabs(b[i]));
	}
	batch_free(&room);
}

/* Weights: the asked deviation, a function of the seed alone, zero biases. */
static void initial_weights(void **arg)
{
	struct neap_net_options o = net_options("lif:300r,li");
	struct neap_param p, q;

	(void)arg;
	o.scale = 0.5;
	o.inputs = 128;
	struct neap_net *a = net_make(&o), *b = net_make(&o);
	o.seed++;
	struct neap_net *other = net_make(&o);
	static const double want[] = {0.5 / 11.3137085, 0.3 / 17.3205081, 0, 1 / 17.3205081, 0};
	static const char *const names[] = {"layer0.weight", "layer0.recurrent", "layer0.bias",
		"readout.weight", "readout.bias"};
	assert_int_equal(neap_net_params(a), 5);
	for (int i = 0; i < 5; i++) {
		double sum = 0;
		neap_net_param(a, i, &p);
		neap_net_param(b, i, &q);
		assert_string_equal(p.name, names[i]);
		assert_int_equal(p.count, p.rows * p.columns);
		assert_memory_equal(p.data, q.data, (size_t)p.count * sizeof(double));
		for (int64_t k = 0; k < p.count; k++)
			sum += ((double *)p.data)[k] * ((double *)p.data)[k];
		assert_true(fabs(sqrt(sum / (double)p.count) - want[i]) <= 0.05 * want[i]);
	}
	neap_net_param(a, 0, &p);
	neap_net_param(other, 0, &q);
	assert_memory_not_equal(p.data, q.data, (size_t)p.count * sizeof(double));
	assert_int_equal(neap_net_param(a, 5, &p), NEAP_EUSAGE);
	neap_net_free(a);
	neap_net_free(b);
	neap_net_free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sparse_is_dense),
		cmocka_unit_test(float_is_double),
		cmocka_unit_test(compressed_is_dense),
		cmocka_unit_test(batch_is_samples),
		cmocka_unit_test(results),
		cmocka_unit_test(first_passes),
		cmocka_unit_test(long_sums),
		cmocka_unit_test(initial_weights),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
