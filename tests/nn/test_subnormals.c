/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gradient that vanishes over thousands of steps becomes 0, and no subnormal number, which some
 * processors are slow with; the caller's thread computes with them as before.
 */
#include "nn/nets.h"

#include <math.h>

enum { STEPS = 3000, STRIDE = 10, SIZE = 4 };

static int subnormals_of(const float *x, size_t count)
{
	int found = 0;
	for (size_t i = 0; i < count; i++)
		found += fpclassify(x[i]) == FP_SUBNORMAL;
	return found;
}

/* How many stand in the adjoints at every tenth step; units are often far from the threshold. */
static int subnormals_after(const char *spec, int threads)
{
	struct neap_net_options options = net_options(spec);
	struct neap_net_sizes sizes = {.size = sizeof sizes};
	struct neap_objective objective = {
		.size = sizeof objective, .loss = neap_loss_find("cross-entropy")};
	struct batch_room room;
	size_t used;
	int64_t done;
	double loss;

	options.precision = NEAP_FLOAT;
	options.threads = threads;
	options.group = 2;
	struct neap_net *net = net_make(&options);
	batch_make(&room, 5, SIZE, options.inputs, STEPS, options.classes, 0.05, NULL);
	assert_int_equal(neap_net_begin(net, &room.batch, &objective), 0);
	neap_net_get_sizes(net, &sizes);
	size_t bytes = sizes.tape_max * (STRIDE + 1);
	void *state = room_for(sizes.state), *adjoint = room_for(sizes.adjoint);
	char *tape = room_for(bytes * (STEPS / STRIDE));
	memset(state, 0, sizes.state);
	memset(adjoint, 0, sizes.adjoint);
	for (int64_t t = 0; t < STEPS; t += STRIDE)
		assert_int_equal(neap_net_record(net, state, t, t + STRIDE, 1,
					 tape + t / STRIDE * (int64_t)bytes, bytes, &used, &done),
			0);
	assert_int_equal(neap_net_turn(net, state, adjoint, &loss), 0);
	int found = 0;
	for (int64_t t = STEPS; t > 0; t -= STRIDE) {
		const char *from = tape + (t / STRIDE - 1) * (int64_t)bytes;
		assert_int_equal(neap_net_backward(net, adjoint, t, t - STRIDE, from), 0);
		found += subnormals_of(adjoint, sizes.adjoint / sizeof(float));
	}
	assert_int_equal(neap_net_end(net), 0);
	neap_net_free(net);
	batch_free(&room);
	free(state);
	free(adjoint);
	free(tape);
	return found;
}

static void gradients_vanish_to_zero(void **unused)
{
	volatile float least = 1.5e-38f;
	(void)unused;
#ifndef __x86_64__
	skip();
#endif
	assert_int_equal(subnormals_after("lif:70r:tau=5ms,li", 1), 0);
	assert_int_equal(subnormals_after("lif:70r:tau=5ms,li", 2), 0);
	assert_int_equal(subnormals_after("alif:70r:tau=5ms,li", 2), 0);
	assert_int_equal(fpclassify(least / 2), FP_SUBNORMAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_vanish_to_zero)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
