/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_device_updates.c: nets that are updated on the fake device: weights and moments of the CPU
 * after every optimizer, few bytes copied, changes by the host, calls that fail, and waits.
 */
#include "device/device_backend.h"
#include "loaded_driver.h"
#include "base/fail.h"
#include "measure/net_steps.h"
#include "nn/batch/batch.h"
#include "nn/core/on_device.h"
#include "train/optimizer.h"
#include "../nn/nets.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct training_case {
	const char *spec, *rule, *freeze;
	struct neap__rule_settings settings;
	double limit;
} cases[] = {
	{"lif:40r,li", "adam", NULL, {0, 0.9, 0.999, 1e-8, 0}, 0.01},
	{"lif:33,lif:20r,li", "adamw", "layer1.bias", {0, 0.8, 0.99, 1e-8, 0.1}, 0},
	{"lif:20r:learn=tau,adlif:9:learn=tau:scale=20,li:learn=tau", "adamw", NULL,
		{0, 0.9, 0.99, 1e-8, 0.1}, 0},
	{"lif:20,lif:15r:delay=0..9:learn,li:delay=0..2:learn:density=0.5", "adamw", NULL,
		{0, 0.9, 0.999, 1e-8, 0.1}, 0},
	{"lif:20:density=0.5,adlif:9r:delay=1..3:learn:density=0.4:scale=20,li", "sgd",
		"layer1.delay", {0.9, 0, 0, 0, 0.01}, 1},
	{"lif:24r,li:tau=none", "sgd", NULL, {0.9, 0, 0, 0, 0.01}, 1},
};

/* A net on one side, and its optimizer. */
struct training {
	const struct training_case *c;
	struct neap_net *net;
	struct neap__optimizer optimizer;
	struct neap_device *device; /* NULL: the CPU */
	struct neap__device_backend *backend;
	struct batch_room batch, other;
	int64_t updates;
};

/* Net, batches and optimizer; on the device, which updates it, or on the CPU. 0 or a code. */
static int begin(struct training *t, const struct training_case *c, int on_device)
{
	struct neap_net_options o = net_options(c->spec);

	*t = (struct training){.c = c};
	o.precision = NEAP_FLOAT;
	o.group = 3;
	o.freeze = c->freeze;
	setenv("NEAP_ISA", neap__isa_works(NEAP__ISA_AVX512) ? "avx512" : "lowered", 1);
	assert_int_equal(neap_net_create(&t->net, &o), 0);
	assert_int_equal(
		neap__optimizer_init(&t->optimizer, neap__rule_find(c->rule), &c->settings, t->net),
		0);
	batch_make(&t->batch, 3, 7, 19, 70, 5, 0.1, NULL);
	batch_make(&t->other, 4, 12, 19, 40, 5, 0.1, NULL);
	if (!on_device)
		return 0;
	NEAP_TRY(neap_device_open(&t->device, "cuda"));
	NEAP_TRY(neap__device_backend_open(&t->backend, t->device, t->net));
	return neap__optimizer_keep(&t->optimizer, t->net);
}

static void end(struct training *t)
{
	neap__net_drop(t->net);
	neap__device_backend_close(t->backend);
	neap_device_close(t->device);
	neap__optimizer_fini(&t->optimizer);
	neap_net_free(t->net);
	batch_free(&t->batch);
	batch_free(&t->other);
}

static int sweep(struct training *t, const struct neap_batch *batch)
{
	const struct neap_objective objective = {
		.size = sizeof objective, .loss = neap_loss_find("cross-entropy")};
	struct neap_sweep *s = NULL;
	struct neap_step_ops ops;
	double loss;

	NEAP_TRY(neap_net_begin(t->net, batch, &objective));
	neap__net_steps_fill(&ops, t->net);
	const struct neap_sweep_options o = {.size = sizeof o,
		.steps = batch->steps,
		.strategy = "bptt",
		.memory = (uint64_t)8 << 20,
		.advance = 1e-4,
		.record = 1e-4,
		.backward = 1e-4};
	int rc = neap_sweep_create(&s, &ops, t->net, &o);
	if (rc == 0)
		rc = neap_sweep_run(s, NULL, NULL, &loss, NULL);
	neap_sweep_free(s);
	return rc;
}

/* What follows a sweep. 1 if all weights are finite. */
static int update(struct training *t)
{
	double norm;

	NEAP_TRY(neap_net_end(t->net));
	NEAP_TRY(neap__clip(&norm, t->net, t->c->limit, NULL));
	t->updates++;
	return neap__optimizer_step(&t->optimizer, t->net, 0.01 / (double)t->updates, t->updates);
}

static int step(struct training *t)
{
	NEAP_TRY(sweep(t, &t->batch.batch));
	return update(t);
}

/* A batch of another size without an update, as validation has them. */
static int look(struct training *t)
{
	NEAP_TRY(sweep(t, &t->other.batch));
	return neap_net_end(t->net);
}

static void change(struct training *t)
{
	struct neap_param param;

	assert_int_equal(neap_net_param(t->net, 0, &param), 0);
	((float *)param.data)[3] += 0.5f;
}

static int train(struct training *t)
{
	NEAP_TRY(step(t));
	NEAP_TRY(look(t));
	return step(t);
}

static int fetch(struct training *t)
{
	struct neap_param param;

	NEAP_TRY(neap__optimizer_fetch(&t->optimizer, t->net));
	return neap_net_param(t->net, 0, &param);
}

/* Weights and moments of both, which the device is asked for. */
static int same(struct training *a, struct training *b)
{
	NEAP_TRY(fetch(b));
	for (int i = 0; i < neap_net_params(a->net); i++) {
		struct neap_param x, y;
		assert_int_equal(neap_net_param(a->net, i, &x), 0);
		assert_int_equal(neap_net_param(b->net, i, &y), 0);
		if (memcmp(x.data, y.data, (size_t)x.count * sizeof(float)) != 0)
			return 0;
		for (int m = 0; m < NEAP__MOMENTS_MAX && a->optimizer.moment[i][m]; m++)
			if (memcmp(a->optimizer.moment[i][m], b->optimizer.moment[i][m],
				    (size_t)x.count * sizeof(double)) != 0)
				return 0;
	}
	return 1;
}

static void same_weights(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		for (uint64_t seed = 0; seed < 10; seed += 9) {
			struct training cpu, device;
			reset_driver(seed);
			assert_int_equal(begin(&cpu, &cases[i], 0), 0);
			assert_int_equal(begin(&device, &cases[i], 1), 0);
			assert_int_equal(train(&cpu), 1);
			assert_int_equal(train(&device), 1);
			if (!same(&cpu, &device))
				fail_msg("case %zu, seed %d", i, (int)seed);
			change(&cpu);
			change(&device);
			assert_int_equal(train(&cpu), 1);
			assert_int_equal(train(&device), 1);
			if (!same(&cpu, &device))
				fail_msg("case %zu, seed %d: after a change", i, (int)seed);
			end(&device);
			end(&cpu);
		}
}

/* What a snapshot has: its moments are sent, and the net goes on from there. */
static void moments_are_sent(void **state)
{
	struct training cpu, device;

	(void)state;
	reset_driver(0);
	assert_int_equal(begin(&cpu, &cases[0], 0), 0);
	assert_int_equal(begin(&device, &cases[0], 1), 0);
	assert_int_equal(step(&cpu), 1);
	for (int i = 0; i < neap_net_params(cpu.net); i++) {
		struct neap_param x, y;
		assert_int_equal(neap_net_param(cpu.net, i, &x), 0);
		assert_int_equal(neap_net_param(device.net, i, &y), 0);
		memcpy(y.data, x.data, (size_t)x.count * sizeof(float));
		for (int m = 0; m < 2; m++)
			memcpy(device.optimizer.moment[i][m], cpu.optimizer.moment[i][m],
				(size_t)x.count * sizeof(double));
	}
	assert_int_equal(neap__optimizer_send(&device.optimizer, device.net), 0);
	device.updates = 1;
	assert_int_equal(step(&cpu), 1);
	assert_int_equal(step(&device), 1);
	assert_int_equal(same(&cpu, &device), 1);
	end(&device);
	end(&cpu);
}

/* A batch copies neither weights to the device nor gradients to the host. */
static void few_bytes(void **state)
{
	struct training t;
	uint64_t numbers = 0;

	(void)state;
	reset_driver(0);
	assert_int_equal(begin(&t, &cases[0], 1), 0);
	for (int i = 0; i < t.net->ntensors; i++)
		numbers += (uint64_t)t.net->tensors[i].count;
	assert_int_equal(step(&t), 1);
	const struct fake_driver before = *fake();
	assert_int_equal(step(&t), 1);
	uint64_t events = 0;
	for (int s = 0; s < t.batch.batch.size; s++)
		events +=
			sizeof(uint32_t) * (uint64_t)(t.batch.sequences[s].length + 2) +
			sizeof(uint16_t) * t.batch.sequences[s].start[t.batch.sequences[s].length];
	uint64_t sent = fake()->to_device - before.to_device - events;
	uint64_t fetched = fake()->to_host - before.to_host;
	if (sent >= numbers * sizeof(float) || fetched >= numbers * sizeof(double))
		fail_msg("%d bytes sent, %d fetched, for %d numbers", (int)sent, (int)fetched,
			(int)numbers);
	end(&t);
}

/* The turn copies the readout's part of states and adjoints, and the counts of spikes. */
static void small_turn(void **state)
{
	const struct training_case c = {"lif:300r,li", "sgd", NULL, {0, 0, 0, 0, 0}, 0};
	const struct neap_objective objective = {
		.size = sizeof objective, .loss = neap_loss_find("cross-entropy")};
	struct training t;
	double loss;

	(void)state;
	reset_driver(0);
	assert_int_equal(begin(&t, &c, 1), 0);
	assert_int_equal(neap_net_begin(t.net, &t.batch.batch, &objective), 0);
	const struct neap_memory_ops *m = neap__net_memory(t.net);
	void *at = m->map(m->user, 65536);
	assert_non_null(at);
	assert_true(t.net->state_bytes + t.net->adjoint_bytes > 15000);
	assert_int_equal(m->fill(m->user, at, 0, 65536), 0);
	const struct fake_driver before = *fake();
	assert_int_equal(neap_net_turn(t.net, at, (char *)at + t.net->state_bytes, &loss), 0);
	uint64_t bytes = fake()->to_device - before.to_device + fake()->to_host - before.to_host;
	assert_true(bytes < 300 * sizeof(double) + 7 * 300);
	m->unmap(m->user, at, 65536);
	end(&t);
}

/* Every call of the driver after the first batch fails once: an error, and nothing is left. */
static void every_call_fails(void **state)
{
	struct training t;
	int64_t first, last, failed = 0;

	(void)state;
	reset_driver(0);
	assert_int_equal(begin(&t, &cases[1], 1), 0);
	assert_int_equal(sweep(&t, &t.batch.batch), 0);
	first = fake()->calls;
	assert_int_equal(update(&t), 1);
	assert_int_equal(fetch(&t), 0);
	last = fake()->calls;
	end(&t);
	for (int64_t k = first + 1; k <= last; k++) {
		reset_driver(0);
		fake()->fail_call = k;
		assert_int_equal(begin(&t, &cases[1], 1), 0);
		assert_int_equal(sweep(&t, &t.batch.batch), 0);
		int rc = update(&t);
		rc = rc < 0 ? rc : fetch(&t);
		end(&t);
		failed += rc < 0;
		assert_int_equal(fake()->alive, 0);
	}
	assert_true(failed > 10);
	assert_true(failed > (last - first) * 9 / 10);
}

/* Whether an update without this wait ends with other weights; in a child, which may crash. */
static int is_noticed(struct training *cpu, int64_t number)
{
	for (uint64_t seed = 0; seed < 8; seed++) {
		int status = 0;
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			struct training t;
			signal(SIGSEGV, SIG_DFL);
			signal(SIGABRT, SIG_DFL);
			reset_driver(seed);
			fake()->ignored_wait = FAKE_STREAM_SYNCHRONIZE;
			fake()->ignored_number = number;
			if (begin(&t, cpu->c, 1) < 0 || step(&t) < 1 || step(&t) < 1 ||
				same(cpu, &t) < 1)
				_exit(1);
			_exit(0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		if (status != 0)
			return 1;
	}
	return 0;
}

/* Each wait of an update that finds work in progress: for squares, and for whether all is finite.
 */
static void every_wait_is_needed(void **state)
{
	struct training cpu, t;
	int needed = 0;

	(void)state;
	assert_int_equal(begin(&cpu, &cases[0], 0), 0);
	assert_int_equal(step(&cpu), 1);
	assert_int_equal(step(&cpu), 1);
	reset_driver(0);
	assert_int_equal(begin(&t, &cases[0], 1), 0);
	assert_int_equal(step(&t), 1);
	assert_int_equal(sweep(&t, &t.batch.batch), 0);
	int64_t first = fake()->waits[FAKE_STREAM_SYNCHRONIZE];
	assert_int_equal(update(&t), 1);
	const struct fake_driver whole = *fake();
	end(&t);
	for (int64_t k = first + 1; k <= whole.waits[FAKE_STREAM_SYNCHRONIZE]; k++) {
		if (!whole.pending[FAKE_STREAM_SYNCHRONIZE][k])
			continue;
		needed++;
		if (!is_noticed(&cpu, k))
			fail_msg("wait %d of %d is not needed", (int)(k - first),
				(int)(whole.waits[FAKE_STREAM_SYNCHRONIZE] - first));
	}
	assert_true(needed >= 2);
	end(&cpu);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_weights),
		cmocka_unit_test(moments_are_sent),
		cmocka_unit_test(few_bytes),
		cmocka_unit_test(small_turn),
		cmocka_unit_test(every_call_fails),
		cmocka_unit_test(every_wait_is_needed),
	};
	return cmocka_run_group_tests_name("device_updates", tests, NULL, NULL);
}
