/* SPDX-License-Identifier: Apache-2.0 */
/* nets.h: random batches and sweeps that store everything, for the tests of nets. */
#ifndef NEAP_TEST_NETS_H
#define NEAP_TEST_NETS_H

#include "test.h"
#include <neap/net.h>
#include "base/philox.h"
#include "sys/isa.h"

/* Nineteen inputs, five classes, one thread, in double precision. */
static inline struct neap_net_options net_options(const char *spec)
{
	struct neap_net_options o = NEAP_NET_OPTIONS_INIT;
	o.spec = spec;
	o.inputs = 19;
	o.classes = 5;
	o.scale = 3;
	o.threads = 1;
	o.seed = 9;
	o.precision = NEAP_DOUBLE;
	return o;
}

/* The tensors of two nets have the same bits; in float. */
static inline void assert_same_weights(const struct neap_net *a, const struct neap_net *b)
{
	assert_int_equal(neap_net_params(a), neap_net_params(b));
	for (int i = 0; i < neap_net_params(a); i++) {
		struct neap_param x, y;
		assert_int_equal(neap_net_param(a, i, &x), 0);
		assert_int_equal(neap_net_param(b, i, &y), 0);
		assert_int_equal(x.count, y.count);
		assert_memory_equal(x.data, y.data, (size_t)x.count * sizeof(float));
	}
}

/* Input spikes with probability `rate`; sample b has lengths[b] steps (NULL: all). */
struct batch_room {
	struct neap_batch batch;
	struct neap_sequence *sequences;
	float *targets;
};

static inline void batch_make(struct batch_room *room, uint64_t seed, int size, int inputs,
	int64_t steps, int classes, double rate, const int64_t *lengths)
{
	room->sequences = calloc((size_t)size, sizeof *room->sequences);
	room->targets = calloc((size_t)size * (size_t)classes, sizeof *room->targets);
	room->batch =
		(struct neap_batch){.size = size, .inputs = inputs, .sequences = room->sequences};
	for (int b = 0; b < size; b++) {
		int64_t length = lengths ? lengths[b] : steps;
		uint32_t *start = calloc((size_t)length + 1, sizeof *start);
		uint16_t *unit = calloc((size_t)length * (size_t)inputs + 1, sizeof *unit);
		uint32_t count = 0;
		for (int64_t t = 0; t < length; t++) {
			for (int i = 0; i < inputs; i++)
				if (neap__random_uniform(seed, NEAP__STREAM_TEST, (uint32_t)b,
					    (uint64_t)(t * inputs + i)) < rate)
					unit[count++] = (uint16_t)i;
			start[t + 1] = count;
		}
		room->sequences[b] = (struct neap_sequence){.length = length,
			.start = start,
			.unit = unit,
			.label = (int)neap__random_below(
				seed, NEAP__STREAM_TEST, 1000000, (uint64_t)b, (uint64_t)classes),
			.index = b};
		if (length > room->batch.steps)
			room->batch.steps = length;
	}
}

static inline void batch_free(struct batch_room *room)
{
	for (int b = 0; b < room->batch.size; b++) {
		free((void *)room->sequences[b].start);
		free((void *)room->sequences[b].unit);
		free((void *)room->sequences[b].values);
		free((void *)room->sequences[b].labels);
		free((void *)room->sequences[b].series);
	}
	free(room->sequences);
	free(room->targets);
}

/* Gives the batch numbers as inputs, or targets of another kind; a fifth of the steps are masked.
 */
static inline void batch_numbers(
	struct batch_room *room, uint64_t seed, int values, enum neap_target target, int classes)
{
	room->batch.values = values;
	room->batch.target = target;
	for (int b = 0; b < room->batch.size; b++) {
		struct neap_sequence *s = &room->sequences[b];
		size_t steps = (size_t)s->length, inputs = (size_t)room->batch.inputs;
		float *in = calloc(steps * inputs + 1, sizeof *in);
		float *series = calloc(steps * (size_t)classes + 1, sizeof *series);
		int32_t *labels = calloc(steps + 1, sizeof *labels);
		for (size_t i = 0; i < steps * inputs; i++)
			in[i] = (float)neap__random_normal(
				seed, NEAP__STREAM_TEST, 2000000 + (uint32_t)b, i);
		for (size_t i = 0; i < steps * (size_t)classes; i++)
			series[i] = (float)neap__random_normal(
				seed, NEAP__STREAM_TEST, 3000000 + (uint32_t)b, i);
		for (size_t t = 0; t < steps; t++) {
			int masked = neap__random_below(seed, NEAP__STREAM_TEST,
					     4000000 + (uint32_t)b, t, 5) == 0;
			labels[t] = masked ? -1
					   : (int32_t)neap__random_below(seed, NEAP__STREAM_TEST,
						     5000000 + (uint32_t)b, t, (uint64_t)classes);
			series[t * (size_t)classes] = masked ? NAN : series[t * (size_t)classes];
			s->counted += !masked;
		}
		for (int c = 0; c < classes; c++)
			room->targets[b * classes + c] = (float)(0.3 * b - 0.2 * c);
		s->values = in;
		s->labels = labels;
		s->series = series;
		s->target = target == NEAP_TARGET_NUMBERS ? room->targets + b * classes : NULL;
	}
}

static inline void *room_for(size_t bytes)
{
	void *p = aligned_alloc(64, (bytes + 127) & ~(size_t)63);
	assert_non_null(p);
	memset(p, 0xA5, bytes);
	return p;
}

/* Store everything; gradients are complete at the end. Returns the loss. */
static inline double sweep_plain(struct neap_net *net, const struct neap_batch *batch,
	const struct neap_objective *objective)
{
	struct neap_net_sizes sizes = {.size = sizeof sizes};
	size_t used;
	int64_t done;
	double loss;

	assert_int_equal(neap_net_begin(net, batch, objective), 0);
	neap_net_get_sizes(net, &sizes);
	size_t room = sizes.tape_max * (size_t)(batch->steps + 1);
	void *state = room_for(sizes.state), *adjoint = room_for(sizes.adjoint);
	void *tape = room_for(room);
	memset(state, 0, sizes.state);
	assert_int_equal(
		neap_net_record(net, state, 0, batch->steps, 1, tape, room, &used, &done), 0);
	assert_int_equal(done, batch->steps);
	assert_int_equal(neap_net_turn(net, state, adjoint, &loss), 0);
	assert_int_equal(neap_net_backward(net, adjoint, batch->steps, 0, tape), 0);
	assert_int_equal(neap_net_end(net), 0);
	free(state);
	free(adjoint);
	free(tape);
	return loss;
}

static inline struct neap_net *net_make(const struct neap_net_options *options)
{
	struct neap_net *net;
	int rc = neap_net_create(&net, options);
	if (rc)
		fprintf(stderr, "# %s\n", neap_detail());
	assert_int_equal(rc, 0);
	return net;
}

/* A net of precision bf16 or with products in tiles, on a processor without the instructions in
 * plain C. */
static inline struct neap_net *bf16_net_make(const struct neap_net_options *options)
{
	const char *was = getenv("NEAP_ISA");
	char *kept = was ? strdup(was) : NULL;

	int has = options->precision == NEAP_BF16 ? neap__isa_has_bf16(NEAP__ISA_AVX512)
						  : neap__isa_works(NEAP__ISA_AVX512);

	setenv("NEAP_ISA", has ? "avx512" : "lowered", 1);
	struct neap_net *net = net_make(options);
	if (kept)
		setenv("NEAP_ISA", kept, 1);
	else
		unsetenv("NEAP_ISA");
	free(kept);
	return net;
}

/* Largest difference of two nets' gradients, relative to the largest gradient of each tensor. */
static inline double grad_distance(const struct neap_net *a, const struct neap_net *b)
{
	double worst = 0;

	for (int i = 0; i < neap_net_params(a); i++) {
		struct neap_param p, q;
		double top = 1e-300, most = 0;
		neap_net_param(a, i, &p);
		neap_net_param(b, i, &q);
		assert_int_equal(p.count, q.count);
		for (int64_t k = 0; k < p.count; k++) {
			top = fmax(top, fabs(p.grad[k]));
			most = fmax(most, fabs(p.grad[k] - q.grad[k]));
		}
		worst = fmax(worst, most / top);
	}
	return worst;
}

#endif
