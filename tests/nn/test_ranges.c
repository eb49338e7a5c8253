/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bits of loss, state and gradient do not depend on threads, on how ranges
 * are cut, on recomputation, or on the room a record is given; and the steps
 * allocate nothing.
 */
#include "nn/nets.h"

#include "nn/core/net_state.h"

#include "nn/allocations.h"
#include "nn/variants.h"

static struct neap_net *variant_net(const struct variant *v, int threads)
{
	struct neap_net_options o = NEAP_NET_OPTIONS_INIT;
	o.spec = v->spec;
	o.precision = v->precision;
	o.readout = v->readout;
	o.surrogate = v->surrogate;
	o.support = v->support;
	if (v->density > 0)
		o.density = v->density;
	o.dense = v->dense;
	o.smooth = v->smooth;
	o.delay = v->delay;
	o.values = v->values;
	if (v->width > 0)
		o.width = v->width;
	o.inputs = 19;
	o.classes = 5;
	o.scale = 3;
	o.group = v->group ? v->group : 3;
	o.threads = threads;
	o.freeze = v->freeze;
	o.seed = 4;
	o.products = v->products;
	return o.precision == NEAP_BF16 || o.products == NEAP_TILES ? bf16_net_make(&o)
								    : net_make(&o);
}

static const int64_t lengths[] = {200, 131, 64, 65, 1, 0, 199, 180, 128, 190, 77};

/* The variants' batch; its inputs and targets become those of a variant by `suit`. */
static void make(struct batch_room *room)
{
	batch_make(room, 8, 11, 19, 0, 5, 0.1, lengths);
	batch_numbers(room, 9, 0, NEAP_TARGET_LABEL, 5);
}

static enum neap_target target_now;
static void suit(struct batch_room *room, const struct variant *v)
{
	room->batch.values = v->values;
	room->batch.target = target_now = v->target;
	for (int b = 0; b < room->batch.size; b++)
		room->sequences[b].target =
			v->target == NEAP_TARGET_NUMBERS ? room->targets + 5 * b : NULL;
}

static const struct neap_objective *objective(void)
{
	static struct neap_objective o = {.size = sizeof o,
		.rates = {.upper = 0.02, .upper_weight = 1, .l2 = 0.1},
		.dropout = 3};
	o.loss = neap_loss_find(target_now < NEAP_TARGET_NUMBERS ? "cross-entropy" : "mse");
	return &o;
}

struct outcome {
	double loss;
	uint64_t hash;
	size_t state;
	unsigned char *bytes; /* the state at T */
};

static struct neap_net_sizes begin(struct neap_net *net, const struct neap_batch *batch)
{
	struct neap_net_sizes sizes = {.size = sizeof sizes};
	assert_int_equal(neap_net_begin(net, batch, objective()), 0);
	neap_net_get_sizes(net, &sizes);
	assert_int_equal(sizes.state % 64, 0);
	assert_int_equal(sizes.adjoint % 64, 0);
	return sizes;
}

/* Cuts [0, steps) in `parts` random parts: part i is [cuts[i], cuts[i + 1]). */
static void draw_cuts(int64_t *cuts, int64_t steps, int parts, uint64_t seed)
{
	cuts[0] = 0;
	for (int i = 1; i <= parts; i++) {
		int64_t step = 1 + (int64_t)neap__random_below(seed, NEAP__STREAM_TEST, 1,
					   (uint64_t)i, (uint64_t)(2 * steps / parts));
		cuts[i] = i == parts || cuts[i - 1] + step > steps ? steps : cuts[i - 1] + step;
	}
}

/* Advances to the cuts, keeping the states there; from the last to the first records, reverses. */
static struct outcome sweep_cut(
	struct neap_net *net, const struct neap_batch *batch, uint64_t seed, int pieces)
{
	int64_t cuts[64], t, done;
	struct neap_net_sizes z = begin(net, batch);
	unsigned char *states = room_for(z.state * (size_t)(pieces + 1)), *live = room_for(z.state);
	unsigned char *adjoint = room_for(z.adjoint);
	size_t most = z.tape_max * 64, used;
	unsigned char *tape[300];
	int64_t from[301];
	struct outcome out = {.state = z.state, .bytes = room_for(z.state)};

	draw_cuts(cuts, batch->steps, pieces, seed);
	for (int i = 0; i < 300; i++)
		tape[i] = NULL;
	memset(states, 0, z.state);
	for (int i = 0; i < pieces; i++) {
		memcpy(states + (size_t)(i + 1) * z.state, states + (size_t)i * z.state, z.state);
		assert_int_equal(neap_net_advance(net, states + (size_t)(i + 1) * z.state, cuts[i],
					 cuts[i + 1], 1),
			0);
	}
	memcpy(out.bytes, states + (size_t)pieces * z.state, z.state);
	assert_int_equal(neap_net_turn(net, out.bytes, adjoint, &out.loss), 0);
	for (int i = pieces - 1; i >= 0; i--) {
		int n = 0;
		memcpy(live, states + (size_t)i * z.state, z.state);
		for (t = cuts[i]; t < cuts[i + 1]; t = done, n++) {
			size_t room =
				z.tape_max + (size_t)neap__random_below(seed, NEAP__STREAM_TEST, 2,
						     (uint64_t)(t + 1000 * n), most - z.tape_max);
			if (!tape[n])
				tape[n] = room_for(most + 64);
			memset(tape[n] + room, 0x5A, 64);
			int64_t end = cuts[i + 1] - t > 64 ? t + 64 : cuts[i + 1];
			assert_int_equal(
				neap_net_record(net, live, t, end, 0, tape[n], room, &used, &done),
				0);
			assert_true(done > t && done <= end);
			assert_true(used <= room);
			if (done < end)
				assert_true(room - used < z.tape_max);
			for (int k = 0; k < 64; k++) /* nothing beyond the room */
				assert_int_equal(tape[n][room + (size_t)k], 0x5A);
			from[n] = t;
		}
		from[n] = cuts[i + 1];
		assert_memory_equal(live, states + (size_t)(i + 1) * z.state, z.state);
		while (n-- > 0)
			assert_int_equal(
				neap_net_backward(net, adjoint, from[n + 1], from[n], tape[n]), 0);
	}
	assert_int_equal(neap_net_end(net), 0);
	out.hash = neap_net_grad_hash(net);
	for (int i = 0; i < 300; i++)
		free(tape[i]);
	free(states);
	free(live);
	free(adjoint);
	return out;
}

static double largest_gradient(const struct neap_net *net)
{
	double most = 0;
	for (int i = 0; i < neap_net_params(net); i++) {
		struct neap_param p;
		neap_net_param(net, i, &p);
		for (int64_t k = 0; k < p.count; k++)
			most = fmax(most, fabs(p.grad[k]));
	}
	return most;
}

static void same_bits(void **arg)
{
	uint64_t seed = test_seed(1);
	struct batch_room room;

	(void)arg;
	make(&room);
	for (int v = 0; v < VARIANTS; v++) {
		suit(&room, &variants[v]);
		struct neap_net *net = variant_net(&variants[v], 1);
		double loss = sweep_plain(net, &room.batch, objective());
		uint64_t hash = neap_net_grad_hash(net);
		struct neap_net_result result = {.size = sizeof result};
		neap_net_get_result(net, &result);
		assert_true(largest_gradient(net) > 1e-4);
		if (variants[v].gated)
			assert_true(result.spikes != 0); /* the mean of what may be negative */
		else
			assert_true(result.spikes > 0.003);
		neap_net_free(net);
		for (int threads = 1; threads <= 4; threads++) {
			net = variant_net(&variants[v], threads);
			for (int pieces = threads; pieces < 40; pieces = pieces * 3 + 1) {
				struct outcome out = sweep_cut(
					net, &room.batch, seed + (uint64_t)threads, pieces);
				struct neap_net_result again = {.size = sizeof again};
				neap_net_get_result(net, &again);
				assert_true(out.loss == loss);
				assert_true(out.hash == hash);
				assert_true(again.spikes == result.spikes);
				assert_true(again.penalty == result.penalty);
				assert_true(again.judged == result.judged);
				assert_true(again.right == result.right);
				free(out.bytes);
			}
			neap_net_free(net);
		}
	}
	batch_free(&room);
}

/* Sums over more samples than 64 steps are kept of, and the default of --group. */
static void many(void **arg)
{
	static const char *const specs[] = {"lstm:20,gru:9:delay=1,li", "rnn:20:dropout=0.3,li"};
	int64_t many_lengths[42];
	struct batch_room room;

	(void)arg;
	for (int b = 0; b < 42; b++)
		many_lengths[b] = lengths[b % 11];
	batch_make(&room, 8, 42, 19, 0, 5, 0.1, many_lengths);
	for (int v = 0; v < 2; v++) {
		uint64_t hash = 0;
		for (int threads = 1; threads <= 3; threads++) {
			struct neap_net_options o = NEAP_NET_OPTIONS_INIT;
			o.spec = specs[v];
			o.precision = v ? NEAP_DOUBLE : NEAP_FLOAT;
			o.inputs = 19;
			o.classes = 5;
			o.threads = threads;
			struct neap_net *net = net_make(&o);
			for (int pieces = 1; pieces < 30; pieces = pieces * 5 + 2) {
				struct outcome out = sweep_cut(net, &room.batch, 3, pieces);
				assert_true(hash == 0 || out.hash == hash);
				hash = out.hash;
				free(out.bytes);
			}
			neap_net_free(net);
		}
	}
	batch_free(&room);
}

/* A sample's numbers do not depend on how long the others of its group are. */
static void masks(void **arg)
{
	struct batch_room room;

	(void)arg;
	make(&room);
	for (int v = 0; v < VARIANTS; v++) {
		suit(&room, &variants[v]);
		struct neap_net *net = variant_net(&variants[v], 2);
		struct neap_net_result result = {.size = sizeof result};
		double *answer = room_for(sizeof(double) * 5 * 11);
		sweep_plain(net, &room.batch, objective());
		neap_net_get_result(net, &result);
		memcpy(answer, result.answer, sizeof(double) * 5 * 11);
		for (int b = 0; b < 11; b++) {
			struct neap_batch alone = room.batch;
			alone.size = 1;
			alone.sequences += b;
			alone.steps = alone.sequences->length + 7; /* padded */
			sweep_plain(net, &alone, objective());
			neap_net_get_result(net, &result);
			assert_memory_equal(result.answer, answer + 5 * b, sizeof(double) * 5);
		}
		free(answer);
		neap_net_free(net);
	}
	batch_free(&room);
}

/* Padding a batch with empty steps changes no bit, whatever the number. */
static void padding(void **arg)
{
	struct batch_room room;

	(void)arg;
	make(&room);
	for (int v = 0; v < VARIANTS; v++) {
		suit(&room, &variants[v]);
		struct neap_net *net = variant_net(&variants[v], 2);
		struct neap_batch longer = room.batch;
		double loss = sweep_plain(net, &room.batch, objective());
		uint64_t hash = neap_net_grad_hash(net);
		longer.steps += 100;
		assert_true(sweep_plain(net, &longer, objective()) == loss);
		assert_true(neap_net_grad_hash(net) == hash);
		neap_net_free(net);
	}
	batch_free(&room);
}

/* A spiking layer's largest tape has one row of membranes, whatever the reset. */
static void one_row_of_membranes(void **arg)
{
	static const char *const specs[][2] = {{"lif:64,li", "lif:128,li"},
		{"lif:64:reset=subtract,li", "lif:128:reset=subtract,li"}};
	(void)arg;
	for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
		size_t bytes[2];
		for (int k = 0; k < 2; k++) {
			struct neap_net_options o = net_options(specs[i][k]);
			struct neap_net_sizes z = {.size = sizeof z};
			struct batch_room room;
			struct neap_net *net;
			assert_int_equal(neap_net_create(&net, &o), 0);
			batch_make(&room, 5, 3, 19, 10, 5, 0.1, NULL);
			z = begin(net, &room.batch);
			bytes[k] = z.tape_max;
			neap_net_end(net);
			neap_net_free(net);
			batch_free(&room);
		}
		assert_int_equal(bytes[1] - bytes[0], 3 * 64 * sizeof(double));
	}
}

static void tiny_room(void **arg)
{
	struct batch_room room;

	(void)arg;
	make(&room);
	for (int v = 0; v < VARIANTS; v++) {
		suit(&room, &variants[v]);
		struct neap_net *net = variant_net(&variants[v], 2);
		struct neap_net_sizes z = begin(net, &room.batch);
		unsigned char *state = room_for(z.state), *tape = room_for(z.tape_max + 64);
		size_t used = 1;
		int64_t done = -1;
		memset(state, 0, z.state);
		assert_int_equal(
			neap_net_record(net, state, 0, 10, 1, tape, z.tape_max - 1, &used, &done),
			0);
		assert_int_equal(done, 0);
		assert_int_equal(used, 0);
		for (size_t k = 0; k < z.state; k++)
			assert_int_equal(state[k], 0);
		assert_int_equal(
			neap_net_record(net, state, 0, 10, 1, tape, z.tape_max, &used, &done), 0);
		assert_true(done >= 1);
		assert_true(used <= z.tape_max);
		assert_int_equal(
			neap_net_record(net, state, done, done, 1, tape, z.tape_max, &used, &done),
			0);
		assert_true(used <= z.tape_max);
		free(state);
		free(tape);
		neap_net_free(net);
	}
	batch_free(&room);
}

/* No tape is ever longer than promised, even when every unit spikes or is near to it. */
static void worst_case_at(double rate)
{
	struct batch_room room;

	batch_make(&room, 8, 7, 19, 30, 5, rate, NULL);
	batch_numbers(&room, 9, 0, NEAP_TARGET_LABEL, 5);
	for (int v = 0; v < VARIANTS; v++) {
		suit(&room, &variants[v]);
		struct neap_net *net = variant_net(&variants[v], 2);
		struct neap_net_sizes z = begin(net, &room.batch);
		unsigned char *state = room_for(z.state), *tape = room_for(z.tape_max);
		memset(state, 0, z.state);
		for (int64_t t = 0; t < 30; t++) {
			size_t used;
			int64_t done;
			assert_int_equal(neap_net_record(net, state, t, t + 1, 1, tape, z.tape_max,
						 &used, &done),
				0);
			assert_int_equal(done, t + 1);
			assert_true(used <= z.tape_max);
		}
		free(state);
		free(tape);
		neap_net_free(net);
	}
	batch_free(&room);
}

static void worst_case(void **arg)
{
	(void)arg;
	worst_case_at(1.0);
	worst_case_at(0.01); /* wide surrogates: all units are inside the support */
}

static void no_allocations(void **arg)
{
	struct batch_room room;

	(void)arg;
	if (!allocations_counted()) {
		print_message("# a sanitizer owns malloc: not counted\n");
		skip();
	}
	make(&room);
	for (int v = 0; v < VARIANTS; v++) {
		suit(&room, &variants[v]);
		struct neap_net *net = variant_net(&variants[v], 3);
		for (int again = 0; again < 2; again++) {
			struct neap_net_sizes z = {.size = sizeof z};
			size_t used;
			int64_t done, T = room.batch.steps;
			double loss;
			long before = allocations();
			z = begin(net, &room.batch);
			if (again) /* the second batch finds its room */
				assert_int_equal(allocations(), before);
			unsigned char *state = room_for(z.state), *adjoint = room_for(z.adjoint);
			unsigned char *tape = room_for(z.tape_max * (size_t)T);
			memset(state, 0, z.state);
			before = allocations();
			neap_net_advance(net, state, 0, T, 1);
			memset(state, 0, z.state);
			neap_net_record(
				net, state, 0, T, 0, tape, z.tape_max * (size_t)T, &used, &done);
			assert_int_equal(done, T);
			neap_net_turn(net, state, adjoint, &loss);
			neap_net_backward(net, adjoint, T, 0, tape);
			neap_net_end(net);
			assert_int_equal(allocations(), before);
			free(state);
			free(adjoint);
			free(tape);
		}
		neap_net_free(net);
	}
	batch_free(&room);
}

/* A tape of other steps is refused. */
static void wrong_tape(void **arg)
{
	struct batch_room room;
	size_t used;
	int64_t done;
	double loss;

	(void)arg;
	make(&room);
	suit(&room, &variants[0]);
	struct neap_net *net = variant_net(&variants[0], 1);
	struct neap_net_sizes z = begin(net, &room.batch);
	unsigned char *state = room_for(z.state), *adjoint = room_for(z.adjoint);
	unsigned char *tape = room_for(z.tape_max * 20);
	memset(state, 0, z.state);
	neap_net_record(net, state, 0, 10, 1, tape, z.tape_max * 20, &used, &done);
	neap_net_turn(net, state, adjoint, &loss);
	assert_int_equal(neap_net_backward(net, adjoint, 9, 0, tape), NEAP_EMODEL);
	assert_int_equal(neap_net_backward(net, adjoint, 10, 2, tape), NEAP_EMODEL);
	assert_int_equal(neap_net_backward(net, adjoint, 10, 0, tape), 0);
	free(state);
	free(adjoint);
	free(tape);
	neap_net_free(net);
	batch_free(&room);
}

/*
 * After a turn, steps that are recomputed leave out the readout where the objective allows it and
 * no tape has anything of it; steps that run for the first time never do.
 */
static void readout_once(void **arg)
{
	struct batch_room room;
	struct neap_objective once = {.size = sizeof once, .readout_once = 1};
	double loss;

	(void)arg;
	make(&room);
	once.loss = neap_loss_find("cross-entropy");
	for (int kind = 0; kind < NEAP_READOUTS; kind++) {
		struct variant v = {.spec = "lif:9r,li", .readout = (enum neap_readout)kind};
		struct neap_net *net = variant_net(&v, 1);
		struct neap_net_sizes z = {.size = sizeof z};
		suit(&room, &v);
		assert_int_equal(neap_net_begin(net, &room.batch, &once), 0);
		neap_net_get_sizes(net, &z);
		unsigned char *whole = room_for(z.state), *state = room_for(z.state);
		unsigned char *adjoint = room_for(z.adjoint);
		size_t at = net->layers[1].state_at, bytes = 5 * sizeof(float);
		int skips = kind != NEAP_READ_STEP && kind != NEAP_READ_SOFTMAX;
		memset(whole, 0, z.state);
		neap_net_advance(net, whole, 0, 60, 1);
		neap_net_turn(net, whole, adjoint, &loss);
		memset(state, 0, z.state);
		neap_net_advance(net, state, 0, 60, 0);
		assert_memory_equal(state, whole, 9 * sizeof(float)); /* membranes of a sample */
		if (skips)
			assert_memory_not_equal(state + at, whole + at, bytes);
		else
			assert_memory_equal(state, whole, z.state);
		memset(state, 0, z.state);
		neap_net_advance(net, state, 0, 30, 1);
		neap_net_advance(net, state, 30, 60, 0);
		assert_memory_equal(state, whole, z.state);
		free(whole);
		free(state);
		free(adjoint);
		neap_net_free(net);
	}
	batch_free(&room);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_bits),
		cmocka_unit_test(many),
		cmocka_unit_test(masks),
		cmocka_unit_test(padding),
		cmocka_unit_test(one_row_of_membranes),
		cmocka_unit_test(tiny_room),
		cmocka_unit_test(worst_case),
		cmocka_unit_test(no_allocations),
		cmocka_unit_test(wrong_tape),
		cmocka_unit_test(readout_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
