/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ports: arrays of a caller in place of data set, readout and loss. Weight gradients have the bits
 * of the same network with a readout whose gradient is given as array; outputs, gradients and the
 * state are the same for every division of the steps into calls and batches, and number of threads.
 */
#include "nn/nets.h"
#include <neap/ports.h>

enum { B = 9, T = 150, INPUTS = 19, MOST_ROWS = 3, UNITS = 24 };

static const char *const cells[] = {"lif:24r,li", "lif:24:reset=hard,li", "lif:24r:reset=zero,li",
	"lif:24r:surrogate=atan,li", "alif:24r,li", "cubalif:24:scale=20,li",
	"adlif:24r:scale=40,li", "rnn:24,li", "lstm:24,li", "gru:24,li", "egru:24:threshold=0.1,li",
	"lif:20r,gru:24,li", "lstm:20,lif:24r:scale=9,li"};

/* A loss that is the answer itself. */
static double value(int classes, const double *z, int label, const float *target, double *dz)
{
	(void)classes, (void)label, (void)target;
	dz[0] = 1;
	return z[0];
}

static const struct neap_loss sum_loss = {.name = "sum", .value = value, .takes_numbers = 1};

static struct neap_net *make(const char *spec, int values, int threads)
{
	struct neap_net_options o = net_options(spec);
	o.classes = 1;
	o.readout = NEAP_READ_SUM;
	o.tau_out = 0;
	o.values = values;
	o.threads = threads;
	return net_make(&o);
}

static void *room(size_t bytes)
{
	void *p = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
	memset(p, 0x7b, (bytes + 63) / 64 * 64 + 64); /* what is not written is a large number */
	return p;
}

/* Runs T rows in calls of `cut` steps, and backward; writes outputs and input gradients. */
static void run(struct neap_net *net, struct neap_batch *batch, struct neap_ports *ports,
	const double *state_rows, const double *last_grads, int cut, double *last_rows,
	double *first_grads, const double *output_grads, double *input_grads)
{
	struct neap_net_sizes sizes = {.size = sizeof sizes};
	int64_t from = ports->first, to = from + ports->steps;

	ports->output_grads = NULL;
	ports->input_grads = NULL;
	assert_int_equal(neap_net_set_ports(net, ports), 0);
	assert_int_equal(neap_net_begin(net, batch, NULL), 0);
	assert_int_equal(neap_net_get_sizes(net, &sizes), 0);
	unsigned char *state = room(sizes.state), *adjoint = room(sizes.adjoint);
	int calls = (int)((ports->steps + cut - 1) / cut);
	unsigned char **tape = calloc((size_t)calls, sizeof *tape);
	memset(state, 0, sizes.state);
	if (state_rows)
		assert_int_equal(neap_net_state_put(net, state, state_rows), 0);
	for (int i = 0; i < calls; i++) {
		int64_t t0 = from + i * cut, t1 = t0 + cut < to ? t0 + cut : to, done;
		size_t bytes = (size_t)(t1 - t0) * sizes.tape_max, used;
		tape[i] = room(bytes);
		assert_int_equal(
			neap_net_record(net, state, t0, t1, 1, tape[i], bytes, &used, &done), 0);
		assert_int_equal(done, t1);
	}
	if (last_rows)
		assert_int_equal(neap_net_state_get(net, state, last_rows), 0);
	ports->output_grads = output_grads;
	ports->input_grads = input_grads;
	assert_int_equal(neap_net_set_ports(net, ports), 0);
	assert_int_equal(neap_net_state_adjoint(net, adjoint, last_grads), 0);
	for (int i = calls - 1; i >= 0; i--) {
		int64_t t0 = from + i * cut, t1 = t0 + cut < to ? t0 + cut : to;
		assert_int_equal(neap_net_backward(net, adjoint, t1, t0, tape[i]), 0);
		free(tape[i]);
	}
	if (first_grads)
		assert_int_equal(neap_net_state_grads(net, adjoint, first_grads), 0);
	assert_int_equal(neap_net_end(net), 0);
	free(tape);
	free(adjoint);
	free(state);
}

/* Weight gradients have the bits of a readout's, whose gradient is the same in every step. */
static void readout(void **unused)
{
	static double out[T * B * UNITS], grads[T * B * UNITS], in[2][T * B * INPUTS];
	struct batch_room batch;

	(void)unused;
	batch_make(&batch, 5, B, INPUTS, T, 1, 0.2, NULL);
	for (size_t c = 0; c < sizeof cells / sizeof cells[0]; c++) {
		const struct neap_objective objective = {
			.size = sizeof objective, .loss = &sum_loss};
		struct neap_net *plain = make(cells[c], 0, 1);
		struct neap_param w;
		sweep_plain(plain, &batch.batch, &objective);
		int params = neap_net_params(plain);
		assert_int_equal(neap_net_param(plain, params - 2, &w), 0);
		assert_string_equal(w.name, "readout.weight");
		for (int i = 0; i < T * B; i++)
			for (int j = 0; j < UNITS; j++)
				grads[i * UNITS + j] = ((double *)w.data)[j] * (1.0 / B);
		for (int variant = 0; variant < 3; variant++) {
			struct neap_net *net = make(cells[c], 0, 1 + variant);
			struct neap_ports p = {
				.size = sizeof p, .samples = B, .steps = T, .outputs = out};
			static const int cuts[] = {64, 7, T};
			int fired = 0;
			run(net, &batch.batch, &p, NULL, NULL, cuts[variant], NULL, NULL, grads,
				in[variant > 0]);
			for (int i = 0; i < T * B * UNITS; i++) {
				assert_true(fabs(out[i]) <= 1);
				fired += out[i] != 0;
			}
			if (fired <= 50)
				fail_msg("%s: %d outputs are not 0", cells[c], fired);
			assert_memory_equal(in[0], in[variant > 0], sizeof in[0]);
			for (int i = 0; i < params; i++) {
				struct neap_param a, b;
				double most = 0, off = 0;
				neap_net_param(plain, i, &a);
				neap_net_param(net, i, &b);
				for (int64_t k = 0; k < a.count; k++) {
					double x = i < params - 2 ? a.grad[k] : 0;
					most = fmax(most, fabs(x));
					off = fmax(off, fabs(x - b.grad[k]));
				}
				if (off > 1e-13 * most || (i < params - 2 && most == 0))
					fail_msg("%s: %s is off by %g of %g", cells[c], a.name, off,
						most);
			}
			neap_net_free(net);
		}
		neap_net_free(plain);
	}
	batch_free(&batch);
}

/* Numbers as inputs: one chain, and the same in two batches, the second from the state of the
 * first. */
static void continued(void **unused)
{
	static double x[T * B * INPUTS], out[2][T * B * UNITS], dy[T * B * UNITS],
		dx[2][T * B * INPUTS], rows[MOST_ROWS * B * UNITS], last[MOST_ROWS * B * UNITS],
		first[MOST_ROWS * B * UNITS];
	static const char *const some[] = {"lstm:24,li", "gru:24,li", "rnn:24,li", "lif:24r,li",
		"alif:24r,li", "lif:24:reset=zero,li"};
	enum { CUT = 70 };
	struct neap_sequence sequences[B] = {{0}};
	struct neap_batch batch = {
		.size = B, .inputs = INPUTS, .sequences = sequences, .values = 1};

	(void)unused;
	for (size_t i = 0; i < T * B * INPUTS; i++)
		x[i] = neap__random_normal(3, NEAP__STREAM_TEST, 0, i) / 3;
	for (size_t i = 0; i < T * B * UNITS; i++)
		dy[i] = neap__random_normal(4, NEAP__STREAM_TEST, 0, i);
	for (size_t c = 0; c < sizeof some / sizeof some[0]; c++) {
		struct neap_net *net = make(some[c], 1, 2), *parts = make(some[c], 1, 1);
		int smooth = c < 3, all = neap_net_state_rows(net), params = neap_net_params(net);
		double *sums[8] = {0};
		struct neap_ports p = {.size = sizeof p, .samples = B, .steps = T, .inputs = x};
		assert_true(all >= 1 && all <= MOST_ROWS);
		for (int b = 0; b < B; b++)
			sequences[b] = (struct neap_sequence){.length = T, .label = -1};
		batch.steps = T;
		p.outputs = out[0];
		run(net, &batch, &p, NULL, NULL, 33, last, NULL, dy, dx[0]);
		/* The first part, for its last state. */
		for (int b = 0; b < B; b++)
			sequences[b].length = CUT;
		batch.steps = p.steps = CUT;
		p.outputs = out[1];
		run(parts, &batch, &p, NULL, NULL, 33, rows, NULL, dy, dx[1]);
		/* The second part, from there. */
		for (int b = 0; b < B; b++)
			sequences[b].length = NEAP_PORTS_CONTINUED + T - CUT;
		batch.steps = NEAP_PORTS_CONTINUED + T - CUT;
		p.steps = T - CUT;
		p.first = NEAP_PORTS_CONTINUED;
		p.inputs = x + CUT * B * INPUTS;
		p.outputs = out[1] + CUT * B * UNITS;
		p.first_outputs = rows + (all - 1) * B * UNITS;
		double again[MOST_ROWS * B * UNITS];
		run(parts, &batch, &p, rows, NULL, 20, again, smooth ? first : NULL,
			dy + CUT * B * UNITS, dx[1] + CUT * B * INPUTS);
		assert_memory_equal(out[0], out[1], sizeof out[0]);
		assert_memory_equal(last, again, (size_t)all * B * UNITS * sizeof *last);
		if (!smooth) {
			neap_net_free(net);
			neap_net_free(parts);
			continue;
		}
		for (int i = 0; i < params; i++) {
			struct neap_param q;
			neap_net_param(parts, i, &q);
			sums[i] = malloc((size_t)q.count * sizeof(double));
			memcpy(sums[i], q.grad, (size_t)q.count * sizeof(double));
		}
		/* The first part again, with the gradient of its last state. */
		static double dy_first[CUT * B * UNITS];
		memcpy(dy_first, dy, sizeof dy_first);
		for (int i = 0; i < B * UNITS; i++)
			dy_first[(CUT - 1) * B * UNITS + i] += first[(all - 1) * B * UNITS + i];
		for (int b = 0; b < B; b++)
			sequences[b].length = CUT;
		batch.steps = CUT;
		p = (struct neap_ports){.size = sizeof p,
			.samples = B,
			.steps = CUT,
			.inputs = x,
			.outputs = out[1]};
		run(parts, &batch, &p, NULL, first, 64, NULL, NULL, dy_first, dx[1]);
		for (size_t i = 0; i < T * B * INPUTS; i++)
			assert_true(fabs(dx[0][i] - dx[1][i]) < 1e-12);
		for (int i = 0; i < params - 2; i++) {
			struct neap_param a, b;
			neap_net_param(net, i, &a);
			neap_net_param(parts, i, &b);
			for (int64_t k = 0; k < a.count; k++)
				assert_true(fabs(a.grad[k] - sums[i][k] - b.grad[k]) <
					    1e-11 * (1 + fabs(a.grad[k])));
		}
		for (int i = 0; i < params; i++)
			free(sums[i]);
		neap_net_free(net);
		neap_net_free(parts);
	}
}

/* Spikes of an array, in both precisions, and numbers that are none. */
static void spikes(void **unused)
{
	enum { STEPS = 5, SAMPLES = 3, FIRST = 2 };
	float x[STEPS * SAMPLES * INPUTS];
	double y[STEPS * SAMPLES * INPUTS];
	uint32_t start[SAMPLES * (FIRST + STEPS + 1)];
	int64_t offset[SAMPLES + 1];
	uint16_t unit[STEPS * SAMPLES * INPUTS];

	(void)unused;
	for (int i = 0; i < STEPS * SAMPLES * INPUTS; i++)
		y[i] = x[i] = neap__random_uniform(1, NEAP__STREAM_TEST, 0, (uint64_t)i) < 0.3;
	for (int p = 0; p < 2; p++) {
		const void *numbers = p ? (void *)y : (void *)x;
		enum neap_precision precision = p ? NEAP_DOUBLE : NEAP_FLOAT;
		for (int pass = 0; pass < 2; pass++)
			assert_int_equal(neap_spikes_list(precision, numbers, STEPS, SAMPLES,
						 INPUTS, FIRST, start, offset, pass ? unit : NULL),
				0);
		for (int b = 0; b < SAMPLES; b++)
			for (int t = 0; t < STEPS; t++) {
				const uint32_t *s = start + b * (FIRST + STEPS + 1) + FIRST + t;
				uint32_t at = s[0];
				for (int i = 0; i < INPUTS; i++)
					if (x[(t * SAMPLES + b) * INPUTS + i] == 1)
						assert_int_equal(unit[offset[b] + at++], i);
				assert_int_equal(at, s[1]);
			}
		assert_int_equal(start[FIRST], 0);
	}
	x[40] = 0.5f;
	assert_int_equal(
		neap_spikes_list(NEAP_FLOAT, x, STEPS, SAMPLES, INPUTS, FIRST, start, offset, NULL),
		1);
	y[7] = NAN;
	assert_int_equal(neap_spikes_list(NEAP_DOUBLE, y, STEPS, SAMPLES, INPUTS, FIRST, start,
				 offset, NULL),
		1);
}

static void refusals(void **unused)
{
	double x[2 * INPUTS] = {0}, rows[MOST_ROWS * UNITS];
	struct neap_sequence sequence = {.length = 2, .label = -1};
	struct neap_batch batch = {
		.size = 1, .inputs = INPUTS, .steps = 2, .sequences = &sequence, .values = 1};
	struct neap_ports p = {.size = sizeof p, .samples = 1, .steps = 2, .inputs = x}, q = p;
	struct neap_net *net = make("lif:24r,li", 1, 1), *spiking = make("lif:24r,li", 0, 1);
	unsigned char adjoint[4096];

	(void)unused;
	assert_int_equal(neap_net_set_ports(spiking, &p), NEAP_EUSAGE);
	q.steps = 0;
	assert_int_equal(neap_net_set_ports(net, &q), NEAP_EUSAGE);
	q = p;
	q.first = 1;
	assert_int_equal(neap_net_set_ports(net, &q), NEAP_EUSAGE);
	q = p;
	q.size = 8;
	assert_int_equal(neap_net_set_ports(net, &q), NEAP_EUSAGE);
	q = p;
	q.samples = 2;
	assert_int_equal(neap_net_set_ports(net, &q), 0);
	assert_int_equal(neap_net_begin(net, &batch, NULL), NEAP_EUSAGE);
	assert_int_equal(neap_net_set_ports(net, &p), 0);
	sequence.length = 1;
	assert_int_equal(neap_net_begin(net, &batch, NULL), NEAP_EUSAGE);
	sequence.length = 2;
	x[25] = INFINITY;
	assert_int_equal(neap_net_begin(net, &batch, NULL), NEAP_EUSAGE);
	assert_non_null(strstr(neap_detail(), "step 1, sample 0: input 6 is not a finite number"));
	x[25] = 0;
	assert_int_equal(neap_net_state_get(net, adjoint, rows), NEAP_EUSAGE);
	assert_int_equal(neap_net_begin(net, &batch, NULL), 0);
	assert_int_equal(neap_net_set_ports(net, &q), NEAP_EUSAGE);
	assert_int_equal(neap_net_state_adjoint(net, adjoint, rows), NEAP_EUSAGE);
	assert_int_equal(neap_net_state_grads(net, adjoint, rows), NEAP_EUSAGE);
	assert_non_null(strstr(neap_detail(), "gradients of the state of lif"));
	neap_net_end(net);
	struct neap_net *two = make("lif:24r,lif:24r,li", 1, 1);
	assert_int_equal(neap_net_state_rows(two), NEAP_EUSAGE);
	struct neap_net_options o = net_options("lif:conv=1x3:channels=2,li");
	o.shape = "1x1x19";
	struct neap_net *conv = net_make(&o);
	q = p;
	q.inputs = NULL;
	assert_int_equal(neap_net_set_ports(conv, &q), NEAP_EUSAGE);
	assert_int_equal(neap_net_set_ports(net, NULL), 0);
	neap_net_free(conv);
	neap_net_free(two);
	neap_net_free(spiking);
	neap_net_free(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(readout), cmocka_unit_test(continued),
		cmocka_unit_test(spikes), cmocka_unit_test(refusals)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
