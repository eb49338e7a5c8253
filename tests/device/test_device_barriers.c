/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_device_barriers.c: every barrier in the text of the kernels is needed, and the emulator
 * shows it. Without the barrier, the net is run with threads in other orders until a bit differs,
 * the emulator reports an error, or the kernel reads memory that it does not own.
 */
#include "emulated_net.h"
#include "emulator/emulator.h"

enum { ORDERS = 8 };
/* MATH: DENSE with products on tensor cores. REPLAY: also from logs, with a readout that is late.
 */
enum kind { SPIKING, DENSE, MATH, REPLAY, KINDS };

/*
 * Three layers, of which one has a surrogate without an end and one a density below 1, and tapes so
 * large that they are moved by less than their size; of dense products more terms than a tile has.
 */
static void run_small_case(struct emulated_case *c, enum kind kind)
{
	if (kind == REPLAY)
		*c = emulated_case_make("lif:40r:reset=zero,li:delay=1", 2, 24, 0.3);
	else if (kind == SPIKING)
		*c = emulated_case_make("lif:9r:surrogate=sigmoid,lif:40r:reset=zero,"
					"lif:34r:width=3:density=0.5:delay=0..2:learn,li",
			2, 24, 0.3);
	else
		*c = emulated_case_make("egru:70,lstm:5,li", 2, 4, 0.3);
	c->options.readout = NEAP_READ_MEAN;
	c->cut = kind == SPIKING || kind == REPLAY ? 10 : 3;
	if (kind == REPLAY) {
		c->replay_steps = 7;
		c->processors = 3;
		c->shared = 128 * 60; /* of 77 rows of weights */
	}
	c->pack = 1;
	emulated_case_run(c);
	if (kind == MATH)
		emulated_case_keep(c, NEAP_MATH_BF16);
}

static void any_order(void **arg)
{
	struct emulated_case c;

	(void)arg;
	for (int kind = 0; kind < KINDS; kind++) {
		run_small_case(&c, (enum kind)kind);
		for (uint32_t seed = 0; seed < (kind ? 3 : ORDERS); seed++)
			assert_null(emulated_case_compare(&c, seed * 7919));
		emulated_case_free(&c);
	}
}

/* Tries to remove the barriers from number `first` on; returns how many there are. */
static int remove_each(enum kind kind, int first)
{
	struct emulated_case c;

	run_small_case(&c, kind);
	assert_null(emulated_case_compare(&c, 1));
	int count = emulator_barriers();
	for (int i = first; i < count; i++) {
		struct emulated_barrier barrier = emulator_barrier(i);
		uint32_t order = 1;
		emulator_skip(i);
		while (order <= ORDERS && emulated_case_succeeds(&c, order * 7919))
			order++;
		emulator_skip(-1);
		fprintf(stderr, "# %s:%d: %u orders give the same bits without this barrier\n",
			barrier.file, barrier.line, (unsigned)order - 1);
		assert_true(order <= ORDERS);
	}
	emulated_case_free(&c);
	return count;
}

static void removed(void **arg)
{
	(void)arg;
	int spiking = remove_each(SPIKING, 0), dense = remove_each(DENSE, spiking);
	assert_true(spiking >= 8);
	assert_true(dense >= spiking + 6);
	int math = remove_each(MATH, dense);
	assert_true(math >= dense + 7);
	assert_true(remove_each(REPLAY, math) >= math + 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(removed),
		cmocka_unit_test(any_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
