/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_input_rows.c: sums of the gradients of input weights have rows for the inputs that spike
 * alone. Gradients have the bits of sums that have a row for every input, which is the
 * specification, at any number of threads; and inputs without a spike take no memory.
 */
#include "nn/nets.h"
#include "nn/core/net_state.h"

#include <malloc.h>

static struct neap_objective objective(void)
{
	return (struct neap_objective){.size = sizeof(struct neap_objective),
		.loss = neap_loss_at(0),
		.rates = {.upper = 0.01, .upper_weight = 1}};
}

/* Gives every input a row, as if all spiked. */
static void all_rows(struct neap_net *net)
{
	int input = net->layers[0].weight, inputs = net->options.inputs;
	size_t count = (size_t)net->tensors[input].count;

	for (int g = 0; g < net->ngrads; g++) {
		struct neap__grads *grads = &net->grads[g];
		if (!grads->slot)
			continue;
		neap__net_put(net, grads->input_memory);
		grads->input_memory = neap__net_get_zeroed(net, count + 16, 2 * sizeof(double));
		assert_non_null(grads->input_memory);
		grads->total[input] = grads->input_memory;
		grads->part[input] = grads->total[input] + ((count + 15) & ~(size_t)15);
		grads->input_rows = grads->input_room = inputs;
		for (int i = 0; i < inputs; i++)
			grads->input[i] = grads->slot[i] = (uint16_t)i;
	}
}

/* A sweep that records all, in ranges of some steps; returns the hash of the gradients. */
static uint64_t sweep(struct neap_net *net, const struct neap_batch *batch, int dense)
{
	const struct neap_objective goal = objective();
	struct neap_net_sizes sizes = {.size = sizeof sizes};
	enum { RANGES = 3 };
	int64_t from[RANGES + 1] = {0}, done;
	void *tape[RANGES];
	size_t used;
	double loss;

	assert_int_equal(neap_net_begin(net, batch, &goal), 0);
	if (dense)
		all_rows(net);
	neap_net_get_sizes(net, &sizes);
	void *state = room_for(sizes.state), *adjoint = room_for(sizes.adjoint);
	memset(state, 0, sizes.state);
	for (int i = 0; i < RANGES; i++) {
		from[i + 1] = batch->steps * (i + 1) / RANGES;
		size_t room = sizes.tape_max * (size_t)(from[i + 1] - from[i] + 1);
		tape[i] = room_for(room);
		assert_int_equal(neap_net_record(net, state, from[i], from[i + 1], 1, tape[i], room,
					 &used, &done),
			0);
		assert_int_equal(done, from[i + 1]);
	}
	assert_int_equal(neap_net_turn(net, state, adjoint, &loss), 0);
	for (int i = RANGES; i-- > 0; free(tape[i]))
		assert_int_equal(neap_net_backward(net, adjoint, from[i + 1], from[i], tape[i]), 0);
	assert_int_equal(neap_net_end(net), 0);
	free(state);
	free(adjoint);
	return neap_net_grad_hash(net);
}

static const char *const specs[] = {"lif:24r,li", "lif:17,lif:9r:dropout=0.3,li", "alif:12r,li",
	"cubalif:11:learn=tau,li", "egru:8,li", "lstm:13,li", "rnn:16:dropout=0.2,gru:9,li",
	"lif:21r:density=0.4,li", "lif:14r:surrogate=atan,li"};

static void bits(void **unused)
{
	const int64_t lengths[] = {150, 0, 64, 1, 129, 150, 3, 90, 0, 150, 77, 20, 100};
	(void)unused;
	for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++)
		for (int precision = 0; precision < 2; precision++)
			for (int threads = 1; threads <= 5; threads += 2) {
				struct neap_net_options o = net_options(specs[i]);
				struct batch_room few, many;
				o.inputs = 150;
				o.group = 4;
				o.threads = threads;
				o.precision = precision ? NEAP_DOUBLE : NEAP_FLOAT;
				batch_make(&few, 5, 13, o.inputs, 0, o.classes, 0.0005, lengths);
				batch_make(&many, 6, 13, o.inputs, 0, o.classes, 0.05, lengths);
				struct neap_net *net = net_make(&o), *all = net_make(&o);
				uint64_t hash = sweep(all, &few.batch, 1);
				assert_true(hash == sweep(net, &few.batch, 0));
				/* Rows grow with another batch, and shrink again. */
				assert_true(
					sweep(net, &many.batch, 0) == sweep(all, &many.batch, 1));
				assert_true(hash == sweep(net, &few.batch, 0));
				neap_net_free(net);
				neap_net_free(all);
				batch_free(&few);
				batch_free(&many);
			}
}

/* No spike at all: sums without a row. */
static void silence(void **unused)
{
	struct neap_net_options o = net_options("lif:24r,li");
	struct batch_room room;
	(void)unused;
	batch_make(&room, 5, 9, o.inputs, 70, o.classes, 0, NULL);
	struct neap_net *net = net_make(&o), *all = net_make(&o);
	assert_true(sweep(net, &room.batch, 0) == sweep(all, &room.batch, 1));
	assert_int_equal(net->grads[0].input_rows, 0);
	neap_net_free(net);
	neap_net_free(all);
	batch_free(&room);
}

static size_t in_use(void)
{
	struct mallinfo2 info = mallinfo2();
	return info.uordblks + info.hblkhd;
}

/* As many inputs as an event camera has; the samples use some hundreds of them. */
static void bytes(void **unused)
{
	enum { INPUTS = 32355, UNITS = 256, SAMPLES = 32, STEPS = 20 };
	struct neap_net_options o = net_options("lif:256,li");
	struct neap_net_sizes sizes = {.size = sizeof sizes};
	struct batch_room room;
	const size_t row = UNITS * (sizeof(float) + sizeof(double));
	size_t rows = 0;
	(void)unused;
	o.inputs = INPUTS;
	o.precision = NEAP_FLOAT;
	batch_make(&room, 8, SAMPLES, INPUTS, STEPS, o.classes, 0.001, NULL);
	const struct neap_objective goal = objective();
	struct neap_net *net = net_make(&o);
	size_t before = in_use();
	assert_int_equal(neap_net_begin(net, &room.batch, &goal), 0);
	size_t taken = in_use() - before;
	for (int g = 0; g < net->ngrads; g++) {
		assert_in_range(net->grads[g].input_rows, 1, 8 * STEPS * 60);
		rows += (size_t)net->grads[g].input_rows;
	}
	neap_net_get_sizes(net, &sizes);
	size_t grad = (size_t)INPUTS * UNITS * sizeof(double);
	/* Beside the rows: a gradient, other tensors, and some bytes of tables an input. */
	assert_in_range(sizes.grads, grad + rows * row, grad + rows * row + (2u << 20));
	if (before > 0) /* a sanitizer tells nothing of its memory */
		assert_in_range(
			taken, rows * row, sizes.grads - grad + sizes.workspace + (1u << 20));
	assert_int_equal(neap_net_end(net), 0);
	neap_net_free(net);
	batch_free(&room);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bits),
		cmocka_unit_test(silence),
		cmocka_unit_test(bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
