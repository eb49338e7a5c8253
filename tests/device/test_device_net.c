/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nets on the fake device: loss and gradients of the CPU to the last bit, with every plan and tier,
 * and their journal.
 */
#include "device/device_backend.h"
#include "../cuda/fake_driver.h"
#include "base/fail.h"
#include "measure/net_steps.h"
#include "../nn/nets.h"

#include <dlfcn.h>
#include <math.h>

struct net_case {
	const char *spec;
	enum neap_readout readout;
	int samples, steps;
	double rate, penalty;
};

static const struct net_case cases[] = {
	{"lif:40r,li", NEAP_READ_SUM, 6, 150, 0.05, 0},
	{"lif:33r:reset=hard,lif:20r,li", NEAP_READ_MEAN, 9, 100, 0.1, 0.1},
	{"lif:24:reset=zero,li:tau=none", NEAP_READ_STEP, 5, 90, 0.1, 0},
	{"lif:70r:reset=soft:surrogate=boxcar,li", NEAP_READ_MAX, 3, 70, 0.05, 0},
	{"lif:20r,li", NEAP_READ_SOFTMAX, 2, 130, 0.1, 0.2},
};

static const struct net_plan {
	const char *strategy;
	int eighths; /* of the arena that stores everything; 0: all of it */
	const char *tiers;
} plans[] = {
	{"bptt", 0, NULL},
	{"auto", 3, NULL},
	{"revolve", 5, NULL},
	{"standard", 6, NULL},
	{"double", 6, "pinned:1M"},
	{"stream", 6, "pinned:1M"},
	{"auto", 4, "pinned:8K,/var/tmp"},
};

static void *fake_function(const char *name)
{
	static void *library;
	if (!library)
		library = dlopen(getenv("NEAP_CUDA_DRIVER"), RTLD_NOW);
	assert_non_null(library);
	return dlsym(library, name);
}

static void reset_driver(uint64_t seed)
{
	void (*reset)(uint64_t);
	*(void **)&reset = fake_function("fake_driver_reset");
	reset(seed);
}

static struct fake_driver *fake(void)
{
	struct fake_driver *(*driver)(void);
	*(void **)&driver = fake_function("fake_driver");
	return driver();
}

static struct neap_net *make_net(const struct net_case *c)
{
	struct neap_net_options o = net_options(c->spec);
	struct neap_net *net;
	o.precision = NEAP_FLOAT;
	o.readout = c->readout;
	o.group = 4;
	setenv("NEAP_ISA", neap__isa_works(NEAP__ISA_AVX512) ? "avx512" : "lowered", 1);
	assert_int_equal(neap_net_create(&net, &o), 0);
	return net;
}

struct outcome {
	double loss, spikes, support;
	uint64_t gradient, arena, tape_bytes;
	int correct;
};

/* Sweeps over the batch; the net runs on `device` where that is not NULL. 0 or a negative code. */
static int sweep(struct outcome *found, struct neap_net *net, const struct neap_batch *batch,
	const struct neap_objective *objective, const struct net_plan *plan, uint64_t memory,
	struct neap_device *device)
{
	struct neap_net_result result = {.size = sizeof result};
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct neap_tier *tiers[NEAP_TIERS_MAX];
	struct neap_sweep *s;
	struct neap_step_ops ops;
	int ntiers = 0;

	NEAP_TRY(neap_net_begin(net, batch, objective));
	neap__net_steps_fill(&ops, net);
	if (plan->tiers)
		NEAP_TRY(neap_device_tiers_open(device, tiers, &ntiers, plan->tiers, NULL));
	for (int i = 0; i < ntiers; i++)
		neap_tier_set_rates(tiers[i], 2e9, 2e9, 1e-5);
	const struct neap_sweep_options o = {.size = sizeof o,
		.steps = batch->steps,
		.strategy = plan->strategy,
		.memory = memory,
		.tiers = tiers,
		.ntiers = ntiers,
		.advance = 1e-4,
		.record = 1.2e-4,
		.backward = 2e-4};
	int rc = neap_sweep_create(&s, &ops, net, &o);
	if (rc == 0) {
		rc = neap_sweep_run(s, NULL, NULL, &found->loss, &stats);
		neap_sweep_free(s);
	}
	for (int i = 0; i < ntiers; i++)
		neap_tier_close(tiers[i]);
	NEAP_TRY(rc);
	NEAP_TRY(neap_net_end(net));
	neap_net_get_result(net, &result);
	found->gradient = neap_net_grad_hash(net);
	found->spikes = result.spikes;
	found->support = result.support;
	found->correct = result.correct;
	found->arena = stats.arena_bytes;
	found->tape_bytes = stats.tape_bytes;
	return 0;
}

static void same_bits(const struct net_case *c)
{
	int64_t lengths[16];
	struct batch_room room;
	struct outcome want = {0}, got = {0};
	struct neap_objective objective = {.size = sizeof objective,
		.loss = neap_loss_find("cross-entropy"),
		.rates = {.upper = 0.02, .upper_weight = c->penalty}};
	struct neap_device *device;
	struct neap__device_backend *backend;
	struct neap_net *net = make_net(c);

	const int samples = c->samples & 15; /* no more, as the compiler sees */
	for (int s = 0; s < samples; s++)
		lengths[s] = s == 1 ? 1 : c->steps - s % 3 * 20;
	batch_make(&room, 3, samples, 19, c->steps, 5, c->rate, lengths);
	assert_int_equal(sweep(&want, net, &room.batch, &objective, &plans[0], 0, NULL), 0);
	assert_true(want.spikes > 0 && want.support > 0);
	for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
		reset_driver(i);
		assert_int_equal(neap_device_open(&device, "cuda"), 0);
		assert_int_equal(neap__device_backend_open(&backend, device, net), 0);
		uint64_t memory = got.arena * (uint64_t)plans[i].eighths / 8;
		struct outcome found = {0};
		int rc = sweep(&found, net, &room.batch, &objective, &plans[i], memory, device);
		if (rc < 0)
			fail_msg("%s, %s: %s", c->spec, plans[i].strategy, neap_detail());
		if (memcmp(&found.loss, &want.loss, sizeof want.loss) != 0 ||
			found.gradient != want.gradient)
			fail_msg("%s, %s: loss %.17g for %.17g, gradients %016llx for %016llx",
				c->spec, plans[i].strategy, found.loss, want.loss,
				(unsigned long long)found.gradient,
				(unsigned long long)want.gradient);
		assert_true(found.spikes == want.spikes && found.correct == want.correct);
		/* Steps that are recorded once more count once more. */
		assert_true(fabs(found.support / want.support - 1) < 0.1);
		got = plans[i].eighths ? got : found;
		neap__device_backend_close(backend);
		neap_device_close(device);
	}
	batch_free(&room);
	neap_net_free(net);
}

static void bits_are_those_of_the_cpu(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		same_bits(&cases[i]);
}

/*
 * A batch of 1,000 steps that stores everything: the work that is queued for it, and how often the
 * host waits.
 */
static void few_launches(void **state)
{
	const struct net_case c = {"lif:24r,li", NEAP_READ_MEAN, 4, 1000, 0.05, 0};
	struct neap_objective objective = {
		.size = sizeof objective, .loss = neap_loss_find("cross-entropy")};
	struct neap_device *device;
	struct neap__device_backend *backend;
	struct batch_room room;
	struct outcome found = {0};
	struct neap_net *net = make_net(&c);

	(void)state;
	batch_make(&room, 3, c.samples, 19, c.steps, 5, c.rate, NULL);
	reset_driver(0);
	assert_int_equal(neap_device_open(&device, "cuda"), 0);
	assert_int_equal(neap__device_backend_open(&backend, device, net), 0);
	for (int i = 0; i < 2; i++) { /* the first one maps memory */
		struct fake_driver before = *fake();
		assert_int_equal(
			sweep(&found, net, &room.batch, &objective, &plans[0], 0, device), 0);
		printf("# batch %d: %d launches, %d copies, %d fills, %d waits\n", i,
			(int)(fake()->launches - before.launches),
			(int)(fake()->copies - before.copies), (int)(fake()->fills - before.fills),
			(int)(fake()->waits[FAKE_STREAM_SYNCHRONIZE] +
				fake()->waits[FAKE_EVENT_SYNCHRONIZE] -
				before.waits[FAKE_STREAM_SYNCHRONIZE] -
				before.waits[FAKE_EVENT_SYNCHRONIZE]));
	}
	neap__device_backend_close(backend);
	neap_device_close(device);
	batch_free(&room);
	neap_net_free(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bits_are_those_of_the_cpu),
		cmocka_unit_test(few_launches),
	};
	return cmocka_run_group_tests_name("device_net", tests, NULL, NULL);
}
