/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_device_clusters.c: layers that clusters of blocks compute have the bits of the CPU's net,
 * and so of the kernels without clusters. Without one of their barriers, they do not. With a number
 * as argument, so many random nets in place of the few of the default run; NEAP_SEED is the number
 * of the first one.
 */
#include "emulated_net.h"
#include "random_device_net.h"
#include "emulator/emulator.h"

enum { SHARED = 232448, ORDERS = 12 };

static int random_cases = 6;

/* Samples of a cluster follow from how many clusters there are. */
static void give_clusters(struct emulated_case *c, int blocks, int clusters)
{
	c->clusters = (struct neap__cluster_limits){blocks, SHARED, blocks * clusters};
}

static void assert_spec(const char *spec, int blocks, int clusters)
{
	struct emulated_case c = emulated_case_make(spec, 5, 70, 0.2);
	c.options.scale = 3;
	give_clusters(&c, blocks, clusters);
	emulated_case_assert(&c);
}

/* Each reset, with and without a gradient through it. */
static void resets(void **arg)
{
	static const char *const resets[] = {"subtract", "zero", "hard", "soft"};
	char spec[60];

	(void)arg;
	for (int i = 0; i < 8; i++) {
		snprintf(spec, sizeof spec, "lif:70r:reset=%s:detach=%d,li", resets[i / 2], i % 2);
		assert_spec(spec, i < 4 ? 2 : 4, 1 + i % 3);
	}
}

static void cells(void **arg)
{
	static const char *const specs[] = {"cubalif:40r,li", "cubalif:65r:reset=hard,li",
		"alif:40r:adapt=0.3,li", "adlif:70r:detach=1,li",
		"alif:20r:width=3,adlif:21r,lif:9,li", "lif:70r:surrogate=sigmoid,li",
		"lif:40r:surrogate=atan:reset=zero,alif:33r:surrogate=superspike:dropout=0.4,li"};

	(void)arg;
	for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++)
		assert_spec(specs[i], 2, 2);
}

/* Blocks without units, with several units a thread, and all 16 blocks. */
static void shapes(void **arg)
{
	static const struct {
		const char *spec;
		int samples, steps, blocks, clusters;
	} nets[] = {{"lif:1r,li", 3, 20, 2, 1}, {"lif:40r,li", 9, 30, 8, 1},
		{"lif:130r,li", 18, 12, 2, 1}, {"lif:130r:reset=zero,li", 17, 12, 4, 2},
		{"lif:300r,li", 2, 4, 16, 1}};

	(void)arg;
	for (size_t i = 0; i < sizeof nets / sizeof nets[0]; i++) {
		struct emulated_case c =
			emulated_case_make(nets[i].spec, nets[i].samples, nets[i].steps, 0.3);
		c.options.scale = 8;
		give_clusters(&c, nets[i].blocks, nets[i].clusters);
		emulated_case_assert(&c);
	}
}

/* Calls of few steps, from tapes that are full before the end; dense tapes; dropout; delays. */
static void calls(void **arg)
{
	static const char *const specs[] = {"lif:40r:reset=zero,lif:33r,li",
		"lif:40r:dropout=0.3:learn=tau,cubalif:33r:delay=1:learn=tau,li:delay=1:learn=tau"};

	(void)arg;
	for (int i = 0; i < 8; i++) {
		struct emulated_case c = emulated_case_make(specs[i & 1], 5, 90, 0.2);
		c.cut = i < 4 ? 27 : 0;
		c.share_steps = i % 4 * 4;
		c.window = i < 4;
		c.pack = i > 2;
		c.options.dense = i == 6;
		c.objective.dropout = 1 + (unsigned)i;
		c.options.readout = i < 4 ? NEAP_READ_STEP : NEAP_READ_MAX;
		give_clusters(&c, 2, 1 + i % 3);
		emulated_case_assert(&c);
	}
}

static int random_layer(char *spec, size_t room, uint32_t *state, int is_first)
{
	static const char *const cells[] = {"lif", "lif", "lif", "cubalif", "alif", "adlif"};
	static const char *const resets[] = {"subtract", "zero", "hard", "soft"};
	const char *cell = cells[draw_below(state, 6)];
	int units = 1 + (int)draw_below(state, draw_below(state, 4) ? 70 : 150);
	int n = snprintf(spec, room, "%s:%d%s:detach=%d", cell, units,
		draw_below(state, 5) ? "r" : "", (int)draw_below(state, 2));

	if (strcmp(cell, "lif") == 0)
		n += snprintf(
			spec + n, room - (size_t)n, ":reset=%s", resets[draw_below(state, 4)]);
	if (draw_below(state, 3) == 0)
		n += draw_surrogate(spec + n, room - (size_t)n, state);
	if (draw_below(state, 3) == 0)
		n += snprintf(spec + n, room - (size_t)n, ":dropout=0.3");
	if (draw_below(state, 4) == 0)
		n += snprintf(spec + n, room - (size_t)n,
			draw_below(state, 2) ? ":learn=tau" : ":tau=3ms..30ms");
	if (draw_below(state, 5) == 0)
		n += snprintf(spec + n, room - (size_t)n, ":density=0.5");
	if (!is_first && draw_below(state, 3) == 0)
		n += snprintf(spec + n, room - (size_t)n,
			draw_below(state, 3) ? ":delay=1" : ":delay=0..9:learn");
	return n + snprintf(spec + n, room - (size_t)n, ",");
}

static void random_nets(void **arg)
{
	const char *seed = getenv("NEAP_SEED");
	uint32_t first = seed ? (uint32_t)strtoul(seed, NULL, 10) : 1;

	(void)arg;
	for (uint32_t i = first; i < first + (uint32_t)random_cases; i++) {
		uint32_t state = i * 2654435761u;
		char spec[300];
		int layers = 1 + (int)draw_below(&state, 3) / 2, n = 0;
		for (int l = 0; l < layers; l++)
			n += random_layer(spec + n, sizeof spec - (size_t)n, &state, l == 0);
		snprintf(spec + n, sizeof spec - (size_t)n, "li%s%s",
			draw_below(&state, 4) ? "" : ":delay=1",
			draw_below(&state, 6) ? "" : ":density=0.5");
		struct emulated_case c = emulated_case_make(spec, 1 + (int)draw_below(&state, 9),
			1 + (int)draw_below(&state, 100), 0.05 + draw_below(&state, 40) / 100.0);
		c.options.scale = 1 + draw_below(&state, 8);
		c.options.readout = (enum neap_readout)draw_below(&state, NEAP_READ_SOFTMAX + 1);
		c.options.dense = draw_below(&state, 5) == 0;
		c.options.group = 1 + (int)draw_below(&state, 6);
		c.objective.dropout = i;
		c.cut = (int)draw_below(&state, 40);
		c.share_steps = (int)draw_below(&state, 3) * 5;
		c.window = (int)draw_below(&state, 2);
		c.pack = (int)draw_below(&state, 2);
		give_clusters(&c, 2 << draw_below(&state, 3), 1 + (int)draw_below(&state, 4));
		emulated_case_run(&c);
		const char *wrong = emulated_case_compare(&c, 1 + i);
		if (wrong)
			fail_msg("NEAP_SEED=%u: %s: %s", (unsigned)i, spec, wrong);
		emulated_case_free(&c);
	}
}

/*
 * Every barrier of the two kernels is needed, and the emulator shows it: without it, a bit differs
 * for some order of blocks and threads.
 */
static void removed(void **arg)
{
	struct emulated_case c = emulated_case_make("lif:40r:reset=zero,lif:34r,li", 3, 24, 0.3);
	int count, of_clusters = 0;

	(void)arg;
	c.options.scale = 4;
	c.cut = 10;
	give_clusters(&c, 2, 1);
	emulated_case_run(&c);
	for (uint32_t seed = 0; seed < 3; seed++)
		assert_null(emulated_case_compare(&c, seed * 7919));
	count = emulator_barriers();
	for (int i = 0; i < count; i++) {
		struct emulated_barrier barrier = emulator_barrier(i);
		uint32_t order = 1;
		if (!strstr(barrier.file, "lif_clusters.k"))
			continue;
		of_clusters++;
		emulator_skip(i);
		while (order <= ORDERS && emulated_case_succeeds(&c, order * 7919))
			order++;
		emulator_skip(-1);
		fprintf(stderr, "# %s:%d: %u orders give the same bits without this barrier\n",
			barrier.file, barrier.line, (unsigned)order - 1);
		assert_true(order <= ORDERS);
	}
	assert_int_equal(of_clusters, 8);
	emulated_case_free(&c);
}

/* What fits, and what does not. */
static void limits(void **arg)
{
	static const struct {
		const char *spec;
		int blocks;
		int forward, backward; /* samples of a cluster; 0: the weights do not fit */
	} rows[] = {{"lif:512r,li", 8, 4, 4}, {"lif:512r,li", 16, 8, 8}, {"lif:128r,li", 2, 1, 1},
		{"lif:512r,li", 4, 0, 0}, {"lif:1024r,li", 16, 0, 0}, {"lif:768r,li", 16, 8, 3},
		{"lif:40,li", 8, 0, 0}};

	(void)arg;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct emulated_case c = emulated_case_make(rows[i].spec, 64, 2, 0.1);
		const float *weights[16] = {0};
		struct neap__device_net device;
		c.clusters = (struct neap__cluster_limits){rows[i].blocks, SHARED, 132};
		emulated_case_run(&c);
		assert_int_equal(neap__device_net_describe(&device, c.net, weights), 0);
		assert_int_equal(neap__device_clusters(&device, &c.clusters), 0);
		fprintf(stderr, "# %s in %d blocks: %d and %d samples, %d and %d threads\n",
			rows[i].spec, rows[i].blocks, device.clusters[0].forward.slots,
			device.clusters[0].backward.slots, device.clusters[0].forward.unit_threads,
			device.clusters[0].backward.unit_threads);
		assert_int_equal(device.clusters[0].forward.slots, rows[i].forward);
		assert_int_equal(device.clusters[0].backward.slots, rows[i].backward);
		neap__device_net_free(&device);
		int rc = neap__device_clusters_check(c.net, &c.clusters);
		assert_int_equal(rc, rows[i].backward ? 0 : NEAP_EUSAGE);
		if (rc)
			assert_non_null(strstr(neap_detail(),
				strchr(rows[i].spec, 'r') ? "no recurrent layer whose weights fit"
							  : "no such layer"));
		emulated_case_free(&c);
	}
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resets),
		cmocka_unit_test(cells),
		cmocka_unit_test(shapes),
		cmocka_unit_test(calls),
		cmocka_unit_test(random_nets),
		cmocka_unit_test(removed),
		cmocka_unit_test(limits),
	};
	if (count > 1)
		random_cases = atoi(arguments[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
