/* SPDX-License-Identifier: Apache-2.0 */
/* test_device_kernels.c: the kernels on the emulator have the bits of the CPU's net. */
#include "emulated_net.h"

static void assert_same(struct emulated_case *c)
{
	emulated_case_run(c);
	const char *wrong = emulated_case_compare(c, 1);
	if (wrong || getenv("EMULATED_VERBOSE"))
		fprintf(stderr, "# %s: spikes %.3f, support %.3f, loss %g: %s\n", c->options.spec,
			c->spikes, c->support, c->loss, wrong ? wrong : "same bits");
	assert_null(wrong);
	emulated_case_free(c);
}

static void resets(void **arg)
{
	static const char *const resets[] = {"subtract", "zero", "hard", "soft"};
	static const char *const more[] = {"r", "r:detach=1", "", "r:width=4", "r:surrogate=boxcar",
		"r:surrogate=boxcar:support=0.3", "r:surrogate=superspike:support=0.6",
		"r:surrogate=superspike:support=2", "r:surrogate=atan:width=2:support=1",
		"r:height=0.3:threshold=0.4:reset_value=-0.2"};
	char spec[99];

	(void)arg;
	for (int i = 0; i < 4; i++)
		for (int k = 0; k < 10; k++) {
			snprintf(spec, sizeof spec, "lif:40%s:reset=%s,li", more[k], resets[i]);
			struct emulated_case c = emulated_case_make(spec, 6, 100, 0.1);
			assert_same(&c);
		}
}

static void layers(void **arg)
{
	static const char *const specs[] = {"lif:40r,lif:33,li",
		"lif:40,lif:70r:reset=zero,lif:5r:reset=hard,li", "lif:1,li", "lif:1r,li",
		"lif:31r,li", "lif:32r,li", "lif:64r,li"};

	(void)arg;
	for (int i = 0; i < 7; i++) {
		struct emulated_case c = emulated_case_make(specs[i], 5, 70, 0.2);
		assert_same(&c);
	}
}

static void readouts(void **arg)
{
	(void)arg;
	for (int r = NEAP_READ_MEAN; r <= NEAP_READ_SOFTMAX; r++) {
		struct emulated_case c = emulated_case_make("lif:40r,li", 5, 70, 0.2);
		c.options.readout = r;
		assert_same(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resets),
		cmocka_unit_test(layers),
		cmocka_unit_test(readouts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
