/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nets on the fake device: loss and gradients of the CPU to the last bit, with every plan and tier,
 * and their journal; products on tensor cores have the same bits with every plan and tier. With a
 * number as argument, so many random nets with some of the plans each; NEAP_SEED is the number of
 * the first one.
 */
#include "device/device_backend.h"
#include "loaded_driver.h"
#include "base/fail.h"
#include "measure/net_steps.h"
#include "nn/core/on_device.h"
#include "random_device_net.h"
#include "../nn/nets.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

struct net_case {
	const char *spec;
	enum neap_readout readout;
	int samples, steps;
	double rate, penalty;
	int values; /* numbers as inputs */
	int clusters;
};

static const struct net_case cases[] = {
	{"lif:40r,li", NEAP_READ_SUM, 6, 150, 0.05, 0, 0, 0},
	{"lif:33r:reset=hard,lif:20r,li", NEAP_READ_MEAN, 9, 100, 0.1, 0.1, 0, 0},
	{"lif:24:reset=zero,li:tau=none", NEAP_READ_STEP, 5, 90, 0.1, 0, 0, 0},
	{"lif:70r:reset=soft:surrogate=boxcar,li", NEAP_READ_MAX, 3, 70, 0.05, 0, 0, 0},
	{"lif:20r,li", NEAP_READ_SOFTMAX, 2, 130, 0.1, 0.2, 0, 0},
	{"lstm:4,gru:3,li", NEAP_READ_STEP, 9, 70, 0.1, 0, 0, 0},
	{"egru:4,rnn:3,li", NEAP_READ_MAX, 5, 66, 0.1, 0, 0, 0},
	{"lif:20r:dropout=0.4,lif:9:delay=1:dropout=0.1,li:delay=1", NEAP_READ_MEAN, 5, 140, 0.1,
		0.1, 1, 0},
	{"lif:40r,li", NEAP_READ_SUM, 3, 66, 0.05, 0, 0, 16},
	{"adlif:9r:learn=tau:scale=20,cubalif:9:tau=5ms..25ms:delay=0..80,li:learn=tau:delay=2",
		NEAP_READ_STEP, 3, 150, 0.1, 0.1, 0, 0},
	{"lif:20:dropout=0.3,alif:15r:delay=0..9:learn:density=0.5,li:delay=0..3:learn",
		NEAP_READ_SUM, 4, 150, 0.1, 0, 0, 0},
	{"lstm:4,gru:3,li:learn=tau", NEAP_READ_STEP, 9, 70, 0.1, 0, 1, 0},
	{"lif:40r:density=0.5,li:density=0.4", NEAP_READ_MEAN, 5, 150, 0.1, 0, 1, 0},
	{"gru:4:dropout=0.5,rnn:3:delay=1:dropout=0.2,li:delay=1", NEAP_READ_LAST, 5, 66, 0.1, 0, 1,
		0},
};

/* With products on tensor cores. */
static const struct net_case of_bf16 = {
	"egru:5:dropout=0.3,rnn:3,li", NEAP_READ_MAX, 3, 66, 0.1, 0, 1, 0};

static const struct net_plan {
	const char *strategy;
	int eighths; /* of the arena that stores everything; 0: all of it */
	const char *tiers;
	double replay; /* seconds per step; 0: half of those to record */
} plans[] = {
	{"bptt", 0, NULL, 0},
	{"auto", 3, NULL, 0},
	{"revolve", 5, NULL, 0},
	{"standard", 6, NULL, 0},
	{"double", 6, "pinned:1M", 0},
	{"stream", 6, "pinned:1M", 0},
	{"auto", 4, "pinned:8K,/var/tmp", 0},
	{"replay", 6, NULL, 0},
	{"auto", 5, NULL, 1e-6},
	{"replay", 7, "pinned:1M", 0},
};

static int random_cases;

static struct neap_net *make_net(const struct net_case *c)
{
	struct neap_net_options o = net_options(c->spec);
	struct neap_net *net;
	o.precision = NEAP_FLOAT;
	o.readout = c->readout;
	o.group = 4;
	o.values = c->values;
	setenv("NEAP_ISA", neap__isa_works(NEAP__ISA_AVX512) ? "avx512" : "lowered", 1);
	assert_int_equal(neap_net_create(&net, &o), 0);
	return net;
}

/* Backward from a tape whose rounds are not noted, as after a journal was read. */
static int forgetful_backward(void *user, void *adjoint, int64_t t1, int64_t t0, const void *tape)
{
	struct neap_net *net = user;
	struct neap__device_backend *b = net->on_backend;
	neap__round_list_clear(&b->rounds, b->batch.net.layers);
	return neap_net_backward(user, adjoint, t1, t0, tape);
}

struct outcome {
	double loss, spikes, support;
	uint64_t gradient, arena, tape_bytes;
	int64_t replayed; /* steps */
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
	if (device && plan == &plans[1])
		ops.backward = forgetful_backward;
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
		.replay = plan->replay > 0 ? plan->replay : 0.6e-4,
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
	found->replayed = stats.replay_steps;
	return 0;
}

static int replayed[sizeof plans / sizeof plans[0]]; /* nets, by plan */

/* Runs the plans whose bits are set in `which`, of which the first one stores everything. */
static void same_bits(const struct net_case *c, enum neap_math math, unsigned which)
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

	objective.dropout = strstr(c->spec, "dropout") ? 3 : 0;
	const int samples = c->samples & 15; /* no more, as the compiler sees */
	for (int s = 0; s < samples; s++)
		lengths[s] = s == 1 ? 1 : c->steps - s % 3 * 20;
	batch_make(&room, 3, samples, 19, c->steps, 5, c->rate, lengths);
	if (c->values)
		batch_numbers(&room, 3, 1, NEAP_TARGET_LABEL, 5);
	assert_int_equal(sweep(&want, net, &room.batch, &objective, &plans[0], 0, NULL), 0);
	const int has_support = !strstr(c->spec, "lstm") && !strstr(c->spec, "gru:4:");
	if (!random_cases)
		assert_true(want.spikes != 0 && (want.support > 0) == has_support);
	net->options.math = math;
	for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
		if (!(which >> i & 1))
			continue;
		reset_driver(i);
		assert_int_equal(neap_device_open(&device, "cuda"), 0);
		assert_int_equal(neap__device_backend_open(&backend, device, net), 0);
		if (neap__device_backend_clusters(backend, c->clusters))
			assert_true(random_cases); /* a net that has none */
		uint64_t memory = got.arena * (uint64_t)plans[i].eighths / 8;
		backend->batch.events.steps = i % 2 ? 64 : 0;
		struct outcome found = {0};
		const int replays = strcmp(plans[i].strategy, "replay") == 0;
		int rc = sweep(&found, net, &room.batch, &objective, &plans[i], memory, device);
		if (replays && rc == NEAP_EINFEASIBLE) { /* as on the CPU */
			const char *why = net->has_log ? "too small" : "needs a log";
			if (!strstr(neap_detail(), why) &&
				!strstr(neap_detail(), "no smaller than a tape"))
				fail_msg("%s, replay: %s", c->spec, neap_detail());
			assert_int_equal(neap_net_end(net), 0);
			neap__device_backend_close(backend);
			neap_device_close(device);
			continue;
		}
		/* States of random nets may be large compared with their tapes. */
		if (rc < 0 && !(random_cases && strstr(neap_detail(), "too small")))
			fail_msg("%s, %s: %s", c->spec, plans[i].strategy, neap_detail());
		if (math != NEAP_MATH_EXACT &&
			i == 0) { /* near the CPU's; the other plans have these bits */
			assert_true(fabs(found.loss - want.loss) <
				    (random_cases ? 0.2 : 0.02) * want.loss);
			assert_true(found.gradient != want.gradient || random_cases);
			want = found;
		}
		if (rc < 0) {
			assert_int_equal(neap_net_end(net), 0);
			found = want;
		}
		if (memcmp(&found.loss, &want.loss, sizeof want.loss) != 0 ||
			found.gradient != want.gradient)
			fail_msg("%s, %s: loss %.17g for %.17g, gradients %016llx for %016llx",
				c->spec, plans[i].strategy, found.loss, want.loss,
				(unsigned long long)found.gradient,
				(unsigned long long)want.gradient);
		assert_true(found.spikes == want.spikes && found.correct == want.correct);
		assert_true(found.replayed == 0 || net->has_log);
		replayed[i] += found.replayed > 0;
		if (!random_cases)
			assert_int_equal(fake()->clusters > 0, c->clusters > 0);
		/* Steps that are recorded once more count once more. */
		assert_true(fabs(found.support - want.support) <= 0.1 * want.support);
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
		same_bits(&cases[i], NEAP_MATH_EXACT, ~0u);
	/* `replay` in its two forms, and `auto` where its replays are fast, of 5 nets with logs. */
	for (size_t i = sizeof plans / sizeof plans[0] - 3; i < sizeof plans / sizeof plans[0]; i++)
		assert_true(replayed[i] >= 3);
}

static void bits_of_tensor_cores(void **state)
{
	(void)state;
	same_bits(&of_bf16, NEAP_MATH_BF16, ~0u);
}

/*
 * A batch of 1,000 steps that stores everything: the work that is queued for it, and how often the
 * host waits.
 */
static void few_launches(void **state)
{
	const struct net_case c = {"lif:24r,li", NEAP_READ_MEAN, 4, 1000, 0.05, 0, 0, 0};
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
		/* 3 launches for each of 16 gradient blocks and of 2 records, and 2 of the turn */
		assert_true(fake()->launches - before.launches <= 56);
		assert_true(fake()->copies - before.copies <= 23);
		assert_true(fake()->fills - before.fills <= 20);
		assert_true(fake()->waits[FAKE_STREAM_SYNCHRONIZE] -
				    before.waits[FAKE_STREAM_SYNCHRONIZE] <=
			    18);
		assert_true(fake()->waits[FAKE_EVENT_SYNCHRONIZE] -
				    before.waits[FAKE_EVENT_SYNCHRONIZE] <=
			    3);
	}
	neap__device_backend_close(backend);
	neap_device_close(device);
	batch_free(&room);
	neap_net_free(net);
}

static const struct neap_batch *following(void *user)
{
	return *(const struct neap_batch **)user;
}

/* Copies of the inputs of a batch while the device computes the one before, if it was asked for. */
static void batches_come_ahead(void **state)
{
	const struct net_case c = {"lif:12r,li", NEAP_READ_SUM, 3, 150, 0.1, 0, 0, 0};
	struct neap_objective objective = {
		.size = sizeof objective, .loss = neap_loss_find("cross-entropy")};
	struct batch_room room[3];
	struct outcome want[3];
	struct neap_net *net = make_net(&c);

	(void)state;
	for (int i = 0; i < 3; i++) {
		batch_make(&room[i], 3 + (unsigned)i, c.samples, 19, c.steps - 10 * i, 5, c.rate,
			NULL);
		assert_int_equal(
			sweep(&want[i], net, &room[i].batch, &objective, &plans[0], 0, NULL), 0);
	}
	for (uint64_t seed = 0; seed < 12; seed++) {
		const struct neap_batch *next = NULL;
		struct neap_device *device;
		struct neap__device_backend *backend;
		reset_driver(seed);
		assert_int_equal(neap_device_open(&device, "cuda"), 0);
		assert_int_equal(neap__device_backend_open(&backend, device, net), 0);
		neap__net_ahead(net, following, &next);
		for (int i = 0; i < 12; i++) {
			const struct neap_batch *batch = &room[i % 3].batch;
			const struct neap__input_range *buffer = backend->batch.events.buffer;
			struct outcome found;
			/* Every fifth batch is another one than the device was told. */
			next = &room[(i + 1 + (i % 5 == 4)) % 3].batch;
			neap__net_ahead_begins(net, batch);
			assert_int_equal(net->ahead.is_begun, i > 0 && i % 5 != 0);
			assert_int_equal(
				sweep(&found, net, batch, &objective, &plans[0], 0, device), 0);
			assert_true(found.loss == want[i % 3].loss &&
				    found.gradient == want[i % 3].gradient);
			assert_int_equal(buffer[0].is_ahead + buffer[1].is_ahead, 1);
			assert_ptr_equal(net->ahead.copied, next);
		}
		neap__net_ahead(net, NULL, NULL);
		neap__device_backend_close(backend);
		neap_device_close(device);
	}
	for (int i = 0; i < 3; i++)
		batch_free(&room[i]);
	neap_net_free(net);
}

/* Steps that are noted again replace earlier notes; a tape is known if all its rounds are. */
static void rounds_are_noted(void **state)
{
	struct neap__device_round *r = calloc(1, neap__device_round_head(2));
	struct neap__round_list list = {0};
	uint64_t at;

	(void)state;
	assert_non_null(r);
	r->layer_at[0] = 5;
	r->layer_at[1] = 6;
	neap__round_list_clear(&list, 2);
	assert_null(neap__round_list_find(&list, 64, &at));
	for (int i = 199; i >= 0; i--) { /* tapes of two rounds each */
		r->t0 = 32 * i;
		r->t1 = 32 * i + 32;
		r->previous = i % 2 ? 64 : 0;
		assert_int_equal(neap__round_list_add(&list, i % 2 ? 500 : 64, r), 0);
	}
	assert_int_equal(list.count, 200);
	assert_true(neap__round_list_has(&list, 64, 128));
	assert_false(neap__round_list_has(&list, 64, 160)); /* of two tapes */
	assert_false(neap__round_list_has(&list, 96, 128)); /* not its beginning */
	assert_false(neap__round_list_has(&list, 64, 120));
	const struct neap__device_round *found = neap__round_list_find(&list, 128, &at);
	assert_true(found && found->t0 == 96 && at == 500 && found->layer_at[1] == 6);
	r->t0 = 70;
	r->t1 = 260;
	r->previous = 0;
	assert_int_equal(neap__round_list_add(&list, 64, r), 0);
	assert_int_equal(list.count, 194);
	assert_true(neap__round_list_has(&list, 70, 260));
	assert_false(neap__round_list_has(&list, 64, 128));
	assert_true(neap__round_list_has(&list, 320, 384));
	assert_null(neap__round_list_find(&list, 288, &at));
	neap__round_list_free(&list);
	free(r);
}

/* A net whose inputs come to the device in five ranges of 64 steps. */
static const struct net_case ranges = {"lif:9r,lif:7r,li", NEAP_READ_SUM, 2, 300, 0.1, 0, 0, 0};

/*
 * Runs it on a new device, with the driver as set before. 1: without an error, and the outcome that
 * is wanted.
 */
static int runs_well(struct neap_net *net, const struct batch_room *room,
	const struct net_plan *plan, const struct outcome *want)
{
	struct neap_objective objective = {
		.size = sizeof objective, .loss = neap_loss_find("cross-entropy")};
	struct neap__device_backend *backend;
	struct neap_device *device;
	struct outcome found = {0};

	assert_int_equal(neap_device_open(&device, "cuda"), 0);
	assert_int_equal(neap__device_backend_open(&backend, device, net), 0);
	backend->batch.events.steps = 64;
	int rc = sweep(&found, net, &room->batch, &objective, plan,
		want->arena * (uint64_t)plan->eighths / 8, device);
	neap__device_backend_close(backend);
	neap_device_close(device);
	return rc == 0 && found.gradient == want->gradient &&
	       memcmp(&found.loss, &want->loss, sizeof found.loss) == 0;
}

/* The same in a child process, without a wait: what the host reads too early may end it. */
static int is_noticed(struct neap_net *net, const struct batch_room *room,
	const struct net_plan *plan, const struct outcome *want, int kind, int64_t number)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		int status = 0;
		pid_t child = fork();
		if (child == 0) {
			signal(SIGSEGV, SIG_DFL);
			signal(SIGABRT, SIG_DFL);
			alarm(60);
			reset_driver(seed);
			fake()->ignored_wait = kind;
			fake()->ignored_number = number;
			_exit(runs_well(net, room, plan, want) ? 0 : 1);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		if (status != 0)
			return 1;
	}
	return 0;
}

/*
 * Every wait for an event that finds work in progress is needed: those of the host for sizes of
 * tapes and for inputs, and those of launches for inputs. Of the waits of inputs for launches that
 * read the buffer before, a wait is not noticed if the host has waited for these launches already.
 */
static void every_wait_is_needed(void **state)
{
	const int kinds[] = {FAKE_EVENT_SYNCHRONIZE, FAKE_STREAM_WAIT_EVENT};
	struct neap_objective objective = {
		.size = sizeof objective, .loss = neap_loss_find("cross-entropy")};
	struct neap_net *net = make_net(&ranges);
	struct outcome want = {0};
	struct batch_room room;

	(void)state;
	batch_make(&room, 3, ranges.samples, 19, ranges.steps, 5, ranges.rate, NULL);
	assert_int_equal(sweep(&want, net, &room.batch, &objective, &plans[0], 0, NULL), 0);
	for (size_t i = 0; i < 5; i += 4) { /* `double` also has the waits of a tier */
		int by_streams = 0;
		reset_driver(0);
		assert_true(runs_well(net, &room, &plans[i], &want));
		const struct fake_driver whole = *fake();
		for (int64_t k = 1, n = 0; n < 2;
			k = k < whole.waits[kinds[n]] ? k + 1 : (n++, 1)) {
			int stream = whole.pending[kinds[n]][k] - 1;
			if (stream < 0)
				continue;
			int noticed = is_noticed(net, &room, &plans[i], &want, kinds[n], k);
			by_streams += noticed && stream > 0;
			if (!noticed && stream == 0 && i == 0)
				fail_msg("wait %d of kind %d is not needed", (int)k, kinds[n]);
		}
		assert_true(by_streams > 0);
	}
	batch_free(&room);
	neap_net_free(net);
}

/* Devices, drivers and nets that have no clusters: one line, and no launch of any. */
static void clusters_are_refused(void **state)
{
	static const struct {
		const char *spec;
		int major, most, blocks;
		const char *words;
	} rows[] = {{"lif:9r,li", 8, 16, 8, "compute capability 9.0"},
		{"lif:9r,li", 9, 8, 16, "cannot run clusters of 16 blocks"},
		{"lif:9,li", 9, 16, 8, "no such layer"},
		{"lif:2000r,li", 9, 16, 16, "whose weights fit"},
		{"gru:9,li", 9, 16, 8, "no such layer"}, {"lif:9r,li", 9, 8, 8, NULL}};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const struct net_case c = {rows[i].spec, NEAP_READ_SUM, 1, 1, 0, 0, 0, 0};
		struct neap_net *net = make_net(&c);
		struct neap__device_backend *backend;
		struct neap_device *device;
		reset_driver(0);
		fake()->major = rows[i].major;
		fake()->cluster_most = rows[i].most;
		assert_int_equal(neap_device_open(&device, "cuda"), 0);
		assert_int_equal(neap__device_backend_open(&backend, device, net), 0);
		int rc = neap__device_backend_clusters(backend, rows[i].blocks);
		assert_int_equal(rc, rows[i].words ? NEAP_EUSAGE : 0);
		if (rows[i].words && !strstr(neap_detail(), rows[i].words))
			fail_msg("%s: %s", rows[i].spec, neap_detail());
		assert_int_equal(backend->batch.clusters.blocks, rows[i].words ? 0 : 8);
		neap__device_backend_close(backend);
		neap_device_close(device);
		neap_net_free(net);
	}
}

/* Shapes that no device can launch: the driver's error, and nothing is queued. */
static void launches_have_limits(void **state)
{
	static const struct {
		int blocks, cluster, threads;
		unsigned shared;
	} rows[] = {{12, 8, 96, 1000}, {32, 32, 96, 1000}, {8, 8, 1056, 1000},
		{8, 8, 96, (227 << 10) + 16}, {8, 0, 96, (227 << 10) + 16}};
	const struct net_case c = {"lif:9r,li", NEAP_READ_SUM, 1, 1, 0, 0, 0, 0};
	struct lif_forward_cluster_arguments arguments = {.shape = {.blocks = 8}};
	struct neap_net *net = make_net(&c);
	struct neap__device_backend *backend;
	struct neap_device *device;

	(void)state;
	reset_driver(0);
	assert_int_equal(neap_device_open(&device, "cuda"), 0);
	assert_int_equal(neap__device_backend_open(&backend, device, net), 0);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const struct neap__device_launch l = {.kernel = NEAP__KERNEL_lif_forward_cluster,
			.blocks = rows[i].blocks,
			.cluster = rows[i].cluster,
			.threads = rows[i].threads,
			.shared_bytes = rows[i].shared,
			.arguments = &arguments,
			.argument_bytes = sizeof arguments};
		assert_int_equal(backend->launcher.launch(backend->launcher.user, &l), -EIO);
	}
	assert_int_equal(fake()->launches, 0);
	neap__device_backend_close(backend);
	neap_device_close(device);
	neap_net_free(net);
}

/* All that devices compute, mixed, with a plan that stores everything and one or two others. */
static void random_nets(void **state)
{
	uint32_t first = first_seed();

	(void)state;
	for (uint32_t seed = first; seed < first + (uint32_t)random_cases; seed++) {
		uint32_t dice = seed * 2654435761u + 1;
		char spec[600] = "";
		int is_dense = random_device_net(spec, sizeof spec, &dice);
		struct net_case c = {.spec = spec,
			.readout = (enum neap_readout)draw_below(&dice, NEAP_READ_SOFTMAX + 1),
			.samples = 1 + (int)draw_below(&dice, 8),
			.steps = 41 + (int)draw_below(&dice, 130),
			.rate = 0.02 * draw_below(&dice, 12),
			.penalty = draw_below(&dice, 2) ? 0.1 : 0,
			.values = (int)draw_below(&dice, 2)};
		int math = is_dense ? (int)draw_below(&dice, 3) : 0;
		unsigned which = 1 | 2u << draw_below(&dice, 9) | 2u << draw_below(&dice, 9);
		c.clusters = draw_below(&dice, 3) ? 0 : 2 << draw_below(&dice, 4);
		if (getenv("NEAP_VERBOSE"))
			fprintf(stderr,
				"# %u: %s, %d samples, %d steps, values %d, math %d, plans %x\n",
				(unsigned)seed, spec, c.samples, c.steps, c.values, math, which);
		same_bits(&c, (enum neap_math)math, which);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest random[] = {cmocka_unit_test(random_nets)};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bits_are_those_of_the_cpu),
		cmocka_unit_test(bits_of_tensor_cores),
		cmocka_unit_test(clusters_are_refused),
		cmocka_unit_test(launches_have_limits),
		cmocka_unit_test(few_launches),
		cmocka_unit_test(batches_come_ahead),
		cmocka_unit_test(rounds_are_noted),
		cmocka_unit_test(every_wait_is_needed),
	};
	random_cases = argc > 1 ? atoi(argv[1]) : 0;
	if (random_cases)
		return cmocka_run_group_tests_name("device_net_random", random, NULL, NULL);
	return cmocka_run_group_tests_name("device_net", tests, NULL, NULL);
}
