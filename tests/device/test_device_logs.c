/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_device_logs.c: tapes of spiking nets that are replayed from logs. On the emulator they are
 * those that were recorded, and those of the CPU. With a number as argument, so many random nets in
 * place of the few of the default run; NEAP_SEED is the number of the first one.
 */
#include "emulated_net.h"
#include "random_device_net.h"

static int random_cases = 8;

/* Every reset; sparse and dense tapes, a layer above another, at once and late; the readouts. */
static void replays(void **arg)
{
	static const char *const specs[] = {"lif:40r,li", "lif:33r:reset=zero,lif:70:reset=hard,li",
		"lif:9,lif:40r:reset=soft:delay=1,li:delay=1", "lif:70:dropout=0.5,li",
		"lif:33r:reset=zero:surrogate=sigmoid,lif:20r:reset=zero:width=3,li:learn=tau"};

	(void)arg;
	struct emulated_case wide = emulated_case_make("lif:1100,li", 2, 6, 0.2);
	wide.replay_steps = 4; /* a thread has several units */
	wide.processors = 1;
	emulated_case_assert(&wide);
	for (size_t i = 0; i < 2 * sizeof specs / sizeof specs[0]; i++) {
		struct emulated_case c = emulated_case_make(specs[i / 2], 5, 70, 0.2);
		c.objective.dropout = 1;
		c.options.readout = i % 2 ? NEAP_READ_STEP : NEAP_READ_MAX;
		c.cut = i % 2 ? 27 : 0;
		c.share_steps = i % 2 ? 9 : 0;
		c.replay_steps = i % 2 ? 5 : BLOCK;
		c.processors = 9;
		emulated_case_run(&c);
		const char *wrong = emulated_case_compare(&c, 1 + (uint32_t)i);
		if (wrong)
			fail_msg("%s: %s", specs[i / 2], wrong);
		assert_true(c.replayed >= c.batch.batch.steps);
		emulated_case_free(&c);
	}
}

/* Nets without a log, as on the CPU. */
static void no_logs(void **arg)
{
	static const char *const specs[] = {"alif:9r,li", "lif:9,cubalif:9,li",
		"lif:9:learn=tau,li", "lif:9:tau=5ms..25ms,li", "lif:9:density=0.5,li",
		"lif:9,lif:9:delay=2,li", "lif:9:dropout=0.5,lif:9,li", "adlif:9,li"};

	(void)arg;
	for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
		struct emulated_case c = emulated_case_make(specs[i], 2, 5, 0.2);
		c.replay_steps = BLOCK;
		emulated_case_run(&c);
		assert_int_equal(c.sizes.log_max, 0);
		assert_null(emulated_case_compare(&c, 1));
		assert_int_equal(c.replayed, 0);
		emulated_case_free(&c);
	}
}

/* A layer of lif with keys that leave its net a log. */
static void add_logged_layer(char *spec, size_t room, uint32_t *state)
{
	static const char *const resets[] = {"subtract", "zero", "hard", "soft"};
	size_t used = strlen(spec);
	int is_first = used == 0,
	    units = 1 + (int)draw_below(state, draw_below(state, 4) ? 20 : 130);

	used += (size_t)snprintf(spec + used, room - used, "lif:%d%s:scale=%d:reset=%s", units,
		draw_below(state, 3) ? "r" : "", 1 + (int)draw_below(state, 4),
		resets[draw_below(state, 4)]);
	if (draw_below(state, 4) == 0)
		used += (size_t)snprintf(spec + used, room - used, ":detach=1");
	if (draw_below(state, 4) == 0)
		used += (size_t)snprintf(spec + used, room - used, ":width=3");
	if (draw_below(state, 2))
		used += (size_t)draw_surrogate(spec + used, room - used, state);
	if (!is_first && draw_below(state, 3) == 0)
		used += (size_t)snprintf(spec + used, room - used, ":delay=1");
	snprintf(spec + used, room - used, ",");
}

static void random_logs(void **arg)
{
	uint32_t first = first_seed();

	(void)arg;
	for (uint32_t seed = first; seed < first + (uint32_t)random_cases; seed++) {
		uint32_t state = seed * 7919u + 5;
		char spec[600] = "";
		for (uint32_t layers = 1 + draw_below(&state, 3); layers > 0; layers--)
			add_logged_layer(spec, sizeof spec, &state);
		strcat(spec, draw_below(&state, 3) ? "li" : "li:learn=tau");
		if (draw_below(&state, 3) == 0)
			strcat(spec, ":delay=1");
		struct emulated_case c = emulated_case_make(spec, 1 + (int)draw_below(&state, 9),
			1 + (int)draw_below(&state, 140), 0.05 * draw_below(&state, 10));
		c.options.group = (int)draw_below(&state, 12);
		c.options.dense = draw_below(&state, 5) == 0;
		c.options.readout = (enum neap_readout)draw_below(&state, NEAP_READ_SOFTMAX + 1);
		emulated_case_draw_calls(&c, &state);
		c.replay_steps = 1 + (int)draw_below(&state, BLOCK);
		c.shared = 128 * draw_below(&state, 300);
		c.processors = (int)draw_below(&state, 40);
		c.clusters =
			(struct neap__cluster_limits){draw_below(&state, 3) ? 0 : 4, 200 << 10, 8};
		if (getenv("NEAP_VERBOSE"))
			fprintf(stderr, "# %s: %d samples, %d steps, cut %d, share %d, replay %d\n",
				spec, c.batch.batch.size, (int)c.batch.batch.steps, c.cut,
				c.share_steps, c.replay_steps);
		emulated_case_run(&c);
		emulated_case_agree(&c, seed);
		if (c.replayed < c.batch.batch.steps)
			fail_msg("seed %u: %s: no log", (unsigned)seed, spec);
		emulated_case_free(&c);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(replays),
		cmocka_unit_test(no_logs),
		cmocka_unit_test(random_logs),
	};
	const struct CMUnitTest random[] = {cmocka_unit_test(random_logs)};

	if (argc < 2)
		return cmocka_run_group_tests_name("device_logs", all, NULL, NULL);
	random_cases = atoi(argv[1]);
	return cmocka_run_group_tests_name("device_logs_random", random, NULL, NULL);
}
