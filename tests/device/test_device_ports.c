/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ports of nets on the fake device: outputs, gradients of inputs, weights and states have the bits
 * of the CPU, with arrays in device memory and work on a stream of the caller.
 */
#include "device/device_backend.h"
#include "loaded_driver.h"
#include "../nn/nets.h"
#include <neap/ports.h>

enum { B = 5, T = 100, INPUTS = 13, MOST = 40, ROWS = 3 };

static const struct port_case {
	const char *spec;
	int values, continued, units;
} cases[] = {
	{"lif:24r,li", 0, 0, 24},
	{"lif:33r,li", 1, 0, 33},
	{"lif:40:reset=hard,li", 0, 0, 40},
	{"lif:24r:reset=zero,li", 0, 1, 24},
	{"lif:33r:reset=soft:surrogate=boxcar,li", 0, 1, 33},
	{"lif:20r,lif:9r:scale=3,li", 1, 0, 9},
	{"alif:24r,li", 0, 1, 24},
	{"cubalif:20:scale=20,li", 0, 0, 20},
	{"adlif:20r:scale=40,li", 1, 0, 20},
	{"rnn:9,li", 1, 1, 9},
	{"lstm:7,li", 1, 1, 7},
	{"lstm:9,li", 0, 0, 9},
	{"gru:6,li", 1, 1, 6},
	{"egru:4:threshold=0.1,gru:5,li", 0, 0, 5},
};

enum { CASES = sizeof cases / sizeof cases[0] };

/* Arrays of a caller, and what a pass finds. */
struct arrays {
	float inputs[T * B * INPUTS], given[T * B * MOST], before[B * MOST];
	float outputs[T * B * MOST], input_grads[T * B * INPUTS];
	float first[ROWS * B * MOST], last[ROWS * B * MOST], last_grads[ROWS * B * MOST];
	float first_grads[ROWS * B * MOST];
};

static float number(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return (float)(*seed >> 8) / 8388608.0f - 1.0f;
}

static void fill(struct arrays *a, uint32_t seed, int spikes)
{
	float *all = (float *)a;

	for (size_t i = 0; i < sizeof *a / sizeof(float); i++)
		all[i] = number(&seed);
	for (int i = 0; i < B * MOST && spikes; i++)
		a->before[i] = a->before[i] > 0.5f;
}

/* Memory of the device, or of the host where `m` is NULL. */
static void *take(const struct neap_memory_ops *m, size_t bytes, const void *from)
{
	void *at = m ? m->map(m->user, bytes) : room_for(bytes);

	assert_non_null(at);
	if (from && m)
		assert_int_equal(m->write(m->user, at, from, bytes), 0);
	else if (from)
		memcpy(at, from, bytes);
	else if (m)
		assert_int_equal(m->fill(m->user, at, 0, bytes), 0);
	else
		memset(at, 0, bytes);
	return at;
}

static void leave(const struct neap_memory_ops *m, void *at, size_t bytes, void *to)
{
	if (to && m)
		assert_int_equal(m->read(m->user, to, at, bytes), 0);
	else if (to)
		memcpy(to, at, bytes);
	if (m)
		m->unmap(m->user, at, bytes);
	else
		free(at);
}

struct passes {
	const struct port_case *c;
	struct neap_net *net;
	const struct neap_batch *batch;
	const struct neap_memory_ops *memory; /* of the device; NULL: the host */
	void *stream;
	int cut; /* steps of a call */
};

static int logged; /* calls that were replayed from a log */

/* As neap_net_record of the steps [t, to), by way of their log. */
static int record_log(const struct passes *p, const struct neap_net_sizes *sizes, void *state,
	int t, int to, void *tape, size_t bytes, size_t *used, int64_t *done)
{
	size_t room = (size_t)(to - t) * sizes->log_max;
	void *log = take(p->memory, room, NULL), *before = take(p->memory, sizes->state, NULL);

	assert_int_equal(p->memory->move(p->memory->user, before, state, sizes->state), 0);
	assert_int_equal(neap_net_advance_log(p->net, state, t, to, 1, log, room, used, done), 0);
	assert_true(*used == room && *done == to);
	int rc = neap_net_replay(p->net, before, t, to, log, t, tape, bytes, used, done);
	leave(p->memory, log, room, NULL);
	leave(p->memory, before, sizes->state, NULL);
	return rc;
}

/* Forward and backward in calls of `cut` steps. */
static void run(const struct passes *p, struct arrays *a)
{
	const struct neap_memory_ops *m = p->memory;
	const size_t n = (size_t)p->c->units;
	struct neap_net_sizes sizes = {.size = sizeof sizes};
	const int smooth = strncmp(p->c->spec, "rnn", 3) == 0 ||
			   strncmp(p->c->spec, "lstm", 4) == 0 ||
			   strncmp(p->c->spec, "gru", 3) == 0;
	const int first = p->c->continued ? NEAP_PORTS_CONTINUED : 0, end = first + T;
	enum { CALLS = 8 };
	unsigned char *tape[CALLS];
	struct neap_ports ports = {.size = sizeof ports,
		.samples = B,
		.steps = T,
		.first = first,
		.stream = p->stream};
	size_t in_bytes = sizeof a->inputs, out_bytes = T * B * n * sizeof(float);
	int calls = 0;

	if (p->c->values)
		ports.inputs = take(m, in_bytes, a->inputs);
	if (first && n <= MOST && strchr(p->c->spec, 'r'))
		ports.first_outputs = take(m, B * n * sizeof(float), a->before);
	void *outputs = ports.outputs = take(m, out_bytes, NULL);
	assert_int_equal(neap_net_set_ports(p->net, &ports), 0);
	assert_int_equal(neap_net_begin(p->net, p->batch, NULL), 0);
	assert_int_equal(neap_net_get_sizes(p->net, &sizes), 0);
	unsigned char *state = take(m, sizes.state, NULL), *adjoint = take(m, sizes.adjoint, NULL);
	if (first) { /* the row behind those of the cell has the outputs before */
		int rows = neap_net_state_rows(p->net);
		memcpy(a->first + (size_t)(rows - 1) * B * n, a->before, B * n * sizeof(float));
		assert_int_equal(neap_net_state_put(p->net, state, a->first), 0);
	}
	for (int t = first; t < end; t += p->cut) {
		int to = t + p->cut < end ? t + p->cut : end;
		size_t bytes = (size_t)(to - t + 1) * sizes.tape_max, used;
		int64_t done;
		tape[calls] = take(m, bytes, NULL);
		int rc = p->memory && sizes.log_max ? record_log(p, &sizes, state, t, to,
							      tape[calls], bytes, &used, &done)
						    : neap_net_record(p->net, state, t, to, 1,
							      tape[calls], bytes, &used, &done);
		logged += p->memory && sizes.log_max;
		calls++;
		if (rc < 0)
			fail_msg("%s: record: %s", p->c->spec, neap_detail());
		assert_int_equal(done, to);
	}
	if (strchr(p->c->spec, ',') == strrchr(p->c->spec, ',')) /* one hidden layer */
		assert_int_equal(neap_net_state_get(p->net, state, a->last), 0);
	ports.outputs = NULL;
	ports.output_grads = take(m, out_bytes, a->given);
	ports.input_grads = take(m, in_bytes, NULL);
	assert_int_equal(neap_net_set_ports(p->net, &ports), 0);
	assert_int_equal(neap_net_state_adjoint(p->net, adjoint, smooth ? a->last_grads : NULL), 0);
	for (int i = calls - 1; i >= 0; i--) {
		int t = first + i * p->cut, to = t + p->cut < end ? t + p->cut : end;
		assert_int_equal(neap_net_backward(p->net, adjoint, to, t, tape[i]), 0);
		leave(m, tape[i], (size_t)(to - t + 1) * sizes.tape_max, NULL);
	}
	if (smooth)
		assert_int_equal(neap_net_state_grads(p->net, adjoint, a->first_grads), 0);
	assert_int_equal(neap_net_end(p->net), 0);
	leave(m, outputs, out_bytes, a->outputs);
	leave(m, ports.input_grads, in_bytes, a->input_grads);
	leave(m, (void *)(uintptr_t)ports.output_grads, out_bytes, NULL);
	leave(m, state, sizes.state, NULL);
	leave(m, adjoint, sizes.adjoint, NULL);
	if (ports.inputs)
		leave(m, (void *)(uintptr_t)ports.inputs, in_bytes, NULL);
	if (ports.first_outputs)
		leave(m, (void *)(uintptr_t)ports.first_outputs, B * n * sizeof(float), NULL);
	assert_int_equal(neap_net_set_ports(p->net, NULL), 0);
}

static struct neap_net *make(const struct port_case *c)
{
	struct neap_net_options o = net_options(c->spec);
	struct neap_net *net;

	o.precision = NEAP_FLOAT;
	o.inputs = INPUTS;
	o.group = 3;
	o.values = c->values;
	setenv("NEAP_ISA", neap__isa_works(NEAP__ISA_AVX512) ? "avx512" : "lowered", 1);
	assert_int_equal(neap_net_create(&net, &o), 0);
	return net;
}

static void same_gradients(
	const struct neap_net *host, const struct neap_net *other, const char *spec)
{
	int some = 0;

	for (int i = 0; i < neap_net_params(host); i++) {
		struct neap_param a, b;
		neap_net_param(host, i, &a);
		neap_net_param(other, i, &b);
		if (memcmp(a.grad, b.grad, (size_t)a.count * sizeof *a.grad) != 0)
			fail_msg("%s: gradients of %s differ", spec, a.name);
		for (int64_t k = 0; k < a.count; k++)
			some += a.grad[k] != 0;
	}
	assert_true(some > 20);
}

/* The arrays and gradients of the CPU, on any stream and in any calls, of a net that is used twice.
 */
static void bits(void **unused)
{
	static struct arrays wanted, found;
	struct neap_device *device;
	CUstream stream;
	int with_clusters = 0;

	(void)unused;
	/* In the second half with clusters, if a layer has some. */
	for (size_t k = 0; k < 2 * CASES; k++) {
		const struct port_case *c = &cases[k % CASES];
		struct batch_room batch;
		int64_t lengths[B];
		int rounds = 2, clusters = 0;

		reset_driver(k % 3 == 2 ? 8 + k : k % 3);
		assert_int_equal(neap_device_open(&device, "cuda"), 0);
		assert_int_equal(neap__cuda.cuStreamCreate(&stream, 0), 0);
		for (int b = 0; b < B; b++)
			lengths[b] = T + (c->continued ? NEAP_PORTS_CONTINUED : 0);
		batch_make(&batch, 5, B, INPUTS, (int)lengths[0], 4, 0.2, lengths);
		batch.batch.values = c->values;
		struct neap_net *host = make(c), *net = make(c);
		struct neap__device_backend *backend;
		assert_int_equal(neap__device_backend_open(&backend, device, net), 0);
		if (k >= CASES) {
			int rc = neap__device_backend_clusters(backend, 2 << k % 4);
			assert_true(rc == 0 || rc == NEAP_EUSAGE);
			rounds = rc == 0 ? 2 : 0;
			backend->batch.clusters.processors = 2 << k % 4; /* one cluster */
			with_clusters += clusters = rc == 0;
		}
		for (int round = 0; round < rounds; round++) {
			struct passes plain = {c, host, &batch.batch, NULL, NULL, 64};
			struct passes there = {c, net, &batch.batch, neap_device_memory(device),
				round ? NULL : stream, round ? T : 17};
			fill(&wanted, (uint32_t)k, strstr(c->spec, "lif") != NULL);
			found = wanted;
			run(&plain, &wanted);
			run(&there, &found);
			if (memcmp(wanted.outputs, found.outputs, sizeof found.outputs) != 0)
				fail_msg("%s: outputs differ", c->spec);
			if (memcmp(wanted.input_grads, found.input_grads,
				    sizeof found.input_grads) != 0)
				fail_msg("%s: gradients of inputs differ", c->spec);
			if (memcmp(&wanted, &found, sizeof found) != 0)
				fail_msg("%s: states or their gradients differ", c->spec);
			same_gradients(host, net, c->spec);
		}
		assert_int_equal(fake()->clusters > 0, clusters);
		neap__device_backend_close(backend);
		neap_net_free(net);
		neap_net_free(host);
		batch_free(&batch);
		assert_int_equal(neap__cuda.cuStreamDestroy(stream), 0);
		neap_device_close(device);
		assert_int_equal(fake()->alive, 0);
	}
	assert_true(logged > 0);
	assert_int_equal(with_clusters, 7); /* the recurrent cases of lif, alif and adlif */
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(bits)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
