/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random networks with arrays of a caller: each is refused with one line, or the gradients of its
 * weights and inputs agree with differences of its outputs; outputs and gradients have the same
 * bits for every division of the steps into calls and number of threads; and a chain continues from
 * its state as if it had not been divided. `test_random_ports COUNT` for other counts.
 */
#include "nn/random_specs.h"
#include "nn/core/net_state.h"

#include <neap/ports.h>

enum { STEPS = 12, LONG = 75, SAMPLES = 3, USUAL = 200 };
static int64_t count = USUAL, taken, continued;

/* A case with its arrays of `steps` steps, and what was found in it. */
struct ports_case {
	struct random_net net;
	uint64_t seed;
	struct neap_batch batch;
	struct batch_room room; /* spikes */
	struct neap_sequence sequence[SAMPLES];
	int64_t steps;
	int units, faults;
	void *x, *y, *dy, *dx;
	size_t y_bytes, dx_bytes;
};

static void fault(struct ports_case *c, const char *format, ...)
{
	const struct neap_net_options *o = &c->net.options;
	va_list list;

	if (!c->faults++)
		fprintf(stderr,
			"# %s\n#   inputs %d double %d dense %d smooth %d delay %d values %d "
			"freeze %s density %g detach %d\n",
			c->net.spec, o->inputs, o->precision == NEAP_DOUBLE, o->dense, o->smooth,
			o->delay, o->values, o->freeze ? o->freeze : "-", o->density, o->detach);
	fprintf(stderr, "#   NEAP_SEED=%llu: ", (unsigned long long)c->seed);
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fprintf(stderr, "\n");
}

static void *numbers(struct ports_case *c, uint32_t which, size_t n)
{
	double *d = room_for(n * sizeof *d + 8);

	for (size_t i = 0; i < n; i++) {
		double v = neap__random_normal(c->seed, NEAP__STREAM_TEST, which, i);
		if (c->net.options.precision == NEAP_DOUBLE)
			d[i] = v;
		else
			((float *)d)[i] = (float)v;
	}
	return d;
}

static size_t real_of(const struct ports_case *c)
{
	return c->net.options.precision == NEAP_DOUBLE ? sizeof(double) : sizeof(float);
}

static void open_arrays(struct ports_case *c, const struct neap_net *net, int64_t steps)
{
	int inputs = c->net.options.inputs;
	size_t rows = (size_t)steps * SAMPLES;

	c->steps = steps;
	c->units = net->layers[net->nlayers - 2].n;
	batch_make(&c->room, c->seed, SAMPLES, inputs, steps, 1, 0.3, NULL);
	c->batch = c->room.batch;
	if (c->net.options.values) {
		for (int b = 0; b < SAMPLES; b++)
			c->sequence[b] = (struct neap_sequence){.length = steps, .label = -1};
		c->batch.sequences = c->sequence;
		c->batch.values = 1;
	}
	c->x = numbers(c, 1, rows * (size_t)inputs);
	c->dy = numbers(c, 2, rows * (size_t)c->units);
	c->y_bytes = rows * (size_t)c->units * real_of(c);
	c->dx_bytes = rows * (size_t)inputs * real_of(c);
	c->y = room_for(c->y_bytes);
	c->dx = room_for(c->dx_bytes);
}

static void close_arrays(struct ports_case *c)
{
	batch_free(&c->room);
	free(c->x);
	free(c->y);
	free(c->dy);
	free(c->dx);
}

static struct neap_ports ports_of(const struct ports_case *c)
{
	return (struct neap_ports){.size = sizeof(struct neap_ports),
		.samples = SAMPLES,
		.steps = c->steps,
		.inputs = c->net.options.values ? c->x : NULL,
		.outputs = c->y};
}

/* Runs all steps in calls of `cut`; backward with dy if `learns`. 0, or what begin returned. */
static int run(struct ports_case *c, struct neap_net *net, int64_t cut, int learns)
{
	struct neap_net_sizes z = {.size = sizeof z};
	struct neap_ports p = ports_of(c);
	int64_t steps = c->steps, done;
	int rc = neap_net_set_ports(net, &p);

	if (rc == 0)
		rc = neap_net_begin(net, &c->batch, NULL);
	if (rc)
		return rc;
	neap_net_get_sizes(net, &z);
	size_t room = z.tape_max * (size_t)cut, used;
	unsigned char *state = room_for(z.state), *adjoint = room_for(z.adjoint);
	unsigned char *tape = room_for(room * (size_t)(steps / cut + 1));
	memset(state, 0, z.state);
	for (int64_t t = 0, k = 0; t < steps; t += cut, k++) {
		int64_t end = t + cut < steps ? t + cut : steps;
		if (!learns)
			rc = neap_net_advance(net, state, t, end, 1);
		else
			rc = neap_net_record(
				net, state, t, end, 1, tape + (size_t)k * room, room, &used, &done);
		if (rc)
			fault(c, "steps: %s", neap_detail());
	}
	p.output_grads = c->dy;
	p.input_grads = c->net.options.freeze ? NULL : c->dx;
	if (learns && (neap_net_set_ports(net, &p) || neap_net_state_adjoint(net, adjoint, NULL)))
		fault(c, "backward: %s", neap_detail());
	for (int64_t k = (steps - 1) / cut; learns && k >= 0; k--) {
		int64_t end = (k + 1) * cut < steps ? (k + 1) * cut : steps;
		if (neap_net_backward(net, adjoint, end, k * cut, tape + (size_t)k * room))
			fault(c, "backward: %s", neap_detail());
	}
	neap_net_end(net);
	free(state);
	free(adjoint);
	free(tape);
	return 0;
}

/* The sum of outputs times dy. */
static double value(struct ports_case *c, struct neap_net *net)
{
	double sum = 0;

	run(c, net, c->steps, 0);
	for (size_t i = 0; i < c->y_bytes / sizeof(double); i++)
		sum += ((double *)c->y)[i] * ((double *)c->dy)[i];
	return sum;
}

/* The error of a derivative, the best over three lengths. */
static double probe(struct ports_case *c, struct neap_net *net, double *at, double gradient)
{
	static const double lengths[] = {1e-5, 1e-4, 1e-6};
	double kept = *at, best = INFINITY;

	for (int i = 0; i < 3 && best > 1e-7; i++) {
		*at = kept + lengths[i];
		double up = value(c, net);
		*at = kept - lengths[i];
		double slope = (up - value(c, net)) / (2 * lengths[i]);
		*at = kept;
		double size = fmax(fmax(fabs(slope), fabs(gradient)), 1e-5);
		best = fmin(best, fabs(slope - gradient) / size);
	}
	return best;
}

static void check_differences(struct ports_case *c, struct neap_net *net)
{
	struct draws d = {c->seed, 0};
	size_t inputs = c->dx_bytes / sizeof(double);

	if (run(c, net, c->steps, 1)) {
		fault(c, "begin: %s", neap_detail());
		return;
	}
	for (int i = 0; i < neap_net_params(net); i++) {
		struct neap_param p;
		neap_net_param(net, i, &p);
		for (int n = 0; n < 5 && p.count; n++) {
			int k = below(&d, (int)p.count);
			double gradient = p.grad[k];
			double off = probe(c, net, (double *)p.data + k, gradient);
			run(c, net, c->steps, 1);
			if (!neap_net_frozen(net, i) && !(off < 1e-3))
				fault(c, "%s[%d]: %g is off by %g", p.name, k, gradient, off);
			if (neap_net_frozen(net, i) && gradient != 0)
				fault(c, "%s is frozen, but has the gradient %g", p.name, gradient);
		}
	}
	for (int n = 0; n < 20 && c->net.options.values && !c->net.options.freeze; n++) {
		int k = below(&d, (int)inputs);
		double gradient = ((double *)c->dx)[k];
		double off = probe(c, net, (double *)c->x + k, gradient);
		run(c, net, c->steps, 1);
		if (!(off < 1e-3))
			fault(c, "input %d: %g is off by %g", k, gradient, off);
	}
}

/* Bits of outputs and gradients, over calls and threads. */
static void check_bits(struct ports_case *c)
{
	static const int cuts[] = {LONG, 64, 7, 1};
	void *y = room_for(c->y_bytes), *dx = room_for(c->dx_bytes);
	uint64_t hash = 0;

	for (int i = 0; i < 4; i++) {
		struct neap_net *net;
		c->net.options.threads = 1 + i % 3;
		neap_net_create(&net, &c->net.options);
		memset(c->y, 0x7b, c->y_bytes);
		memset(c->dx, 0x7b, c->dx_bytes);
		if (run(c, net, cuts[i], 1))
			fault(c, "begin: %s", neap_detail());
		if (i && (memcmp(y, c->y, c->y_bytes) || memcmp(dx, c->dx, c->dx_bytes)))
			fault(c, "calls of %d steps: other outputs or input gradients", cuts[i]);
		if (i && neap_net_grad_hash(net) != hash)
			fault(c, "calls of %d steps: other gradients", cuts[i]);
		memcpy(y, c->y, c->y_bytes);
		memcpy(dx, c->dx, c->dx_bytes);
		hash = neap_net_grad_hash(net);
		neap_net_free(net);
	}
	c->net.options.threads = 1;
	free(y);
	free(dx);
}

/* Steps from row `from` to `to` of x and y; the state is put before and read after. */
static int run_part(struct ports_case *c, struct neap_net *net, int64_t from, int64_t to,
	const unsigned char *before, size_t row, int rows, unsigned char *after)
{
	struct neap_net_sizes z = {.size = sizeof z};
	struct neap_sequence sequence[SAMPLES] = {{0}};
	struct neap_batch batch = c->batch;
	struct neap_ports p = ports_of(c);
	size_t in = (size_t)from * SAMPLES * (size_t)c->net.options.inputs * real_of(c);

	p.first = before ? NEAP_PORTS_CONTINUED : 0;
	p.steps = to - from;
	p.inputs = (const char *)c->x + in;
	p.outputs = (char *)c->y + (size_t)from * SAMPLES * (size_t)c->units * real_of(c);
	p.first_outputs = before ? before + (size_t)(rows - 1) * row : NULL;
	batch.steps = p.first + p.steps;
	batch.sequences = sequence;
	for (int b = 0; b < SAMPLES; b++)
		sequence[b] = (struct neap_sequence){.length = batch.steps, .label = -1};
	if (neap_net_set_ports(net, &p) || neap_net_begin(net, &batch, NULL)) {
		fault(c, "part: %s", neap_detail());
		return 0;
	}
	neap_net_get_sizes(net, &z);
	unsigned char *state = room_for(z.state);
	memset(state, 0, z.state);
	if (before && neap_net_state_put(net, state, before))
		fault(c, "state_put: %s", neap_detail());
	neap_net_advance(net, state, p.first, batch.steps, 1);
	if (neap_net_state_get(net, state, after))
		fault(c, "state_get: %s", neap_detail());
	neap_net_end(net);
	free(state);
	return 1;
}

/* Outputs and last state of a chain have the bits of the same in two parts. */
static void check_continued(struct ports_case *c, struct neap_net *net)
{
	int rows = neap_net_state_rows(net);
	size_t row = (size_t)SAMPLES * (size_t)c->units * real_of(c);

	if (rows < 1 || !c->net.options.values)
		return;
	unsigned char *last = room_for(row * (size_t)rows), *middle = room_for(row * (size_t)rows);
	unsigned char *again = room_for(row * (size_t)rows), *y = room_for(c->y_bytes);
	run_part(c, net, 0, c->steps, NULL, row, rows, last);
	memcpy(y, c->y, c->y_bytes);
	run_part(c, net, 0, 31, NULL, row, rows, middle);
	run_part(c, net, 31, c->steps, middle, row, rows, again);
	if (memcmp(last, again, row * (size_t)rows) || memcmp(y, c->y, c->y_bytes))
		fault(c, "a chain that continues has other %s",
			memcmp(y, c->y, c->y_bytes) ? "outputs" : "states");
	continued++;
	free(last);
	free(middle);
	free(again);
	free(y);
}

/* 1: its keys do not work with arrays; 0: it is accepted; -1: there is no such network. */
static int refused(struct ports_case *c, struct neap_net **net)
{
	*net = NULL;
	if (neap_net_create(net, &c->net.options))
		return -1;
	struct neap_ports p = {.size = sizeof p, .samples = 1, .steps = 1};
	int rc = neap_net_set_ports(*net, &p);
	if (rc && (rc != NEAP_EUSAGE || strncmp(neap_detail(), "ports: ", 7) != 0))
		fault(c, "refused with %d: %s", rc, neap_detail());
	return rc != 0;
}

static void one_case(struct ports_case *c, uint64_t seed, int units, int smooth)
{
	struct neap_net *net;

	*c = (struct ports_case){.seed = seed};
	random_net(&c->net, seed, units);
	c->net.options.classes = 1;
	if (seed % 3 == 0 && strchr(c->net.spec, ',')) { /* one hidden layer: it can continue */
		strcpy(strchr(c->net.spec, ','), ",li");
		c->net.options.freeze = NULL;
		c->net.options.values = 1;
	}
	c->net.options.smooth |= smooth;
	if (smooth) {
		c->net.options.precision = NEAP_DOUBLE;
		c->net.options.detach = 0;
		for (char *at; (at = strstr(c->net.spec, ":detach=1"));)
			at[8] = '0';
	}
	int rc = refused(c, &net);
	if (rc == 0) {
		taken++;
		open_arrays(c, net, smooth ? STEPS : LONG);
		if (smooth)
			check_differences(c, net);
		else {
			check_bits(c);
			check_continued(c, net);
		}
		close_arrays(c);
	}
	neap_net_free(net);
}

static void random_ports(void **arg)
{
	uint64_t first = test_seed(1);
	int faults = 0, bad = 0;

	(void)arg;
	for (int64_t i = 0; i < count; i++) {
		struct ports_case wide, narrow;
		one_case(&wide, first + (uint64_t)i, 40, 0);
		one_case(&narrow, first + (uint64_t)i, 5, 1);
		faults += wide.faults + narrow.faults;
		bad += wide.faults || narrow.faults;
	}
	fprintf(stderr,
		"# %lld networks of two sizes, %lld accepted, %lld continued, %d with faults\n",
		(long long)count, (long long)taken, (long long)continued, bad);
	assert_int_equal(faults, 0);
	assert_true(count < 20 || taken > count / 3);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(random_ports)};

	count = argc > 1 ? atoll(argv[1]) : USUAL;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
