/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_device_optimizer.c: sums over groups, their squares, and updates by every optimizer, on the
 * emulator: bit for bit what the CPU computes, in any order of threads, and only with all barriers.
 */
#include "device/optimizer_steps.h"
#include "emulator/emulator.h"
#include "nn/batch/sum_tree.h"
#include "train/optimizer.h"
#include "../nn/nets.h"

#include <float.h>
#include <math.h>

enum { GROUPS_MOST = 13, UPDATES = 4 };

/* A net of the CPU, and the memory of a device with the same net. */
struct update_case {
	const char *rule;
	struct neap__rule_settings settings;
	double limit;	  /* of the norm; 0: none */
	double time_unit; /* other than dt: tensors have units */
	const char *freeze;
	int groups;
	double size; /* of gradients */
};

struct two_sides {
	const struct update_case *c;
	struct neap_net *net;
	struct neap__optimizer optimizer;
	struct neap__device_parameters at;
	struct neap__device_launcher launcher;
	double **total; /* [tensors][groups][count] */
	uint32_t seed;
	uint64_t draws;
};

static int run_kernel(void *user, const struct neap__device_launch *l)
{
	struct two_sides *two = user;
	void *args[] = {(void *)(uintptr_t)l->arguments};

	return emulator_launch(emulated_kernel(neap__device_kernel_name(l->kernel)), l->blocks,
		l->threads, l->shared_bytes, args, two->seed ? two->seed++ : 0);
}

static int clear(void *user, void *at, size_t bytes)
{
	(void)user;
	memset(at, 0, bytes);
	return 0;
}

/* Memory of exactly so many bytes, so that AddressSanitizer finds accesses beyond them. */
static void *exactly(size_t count, size_t size, int byte)
{
	void *p = malloc(count * size);
	assert_non_null(p);
	return memset(p, byte, count * size);
}

static double draw(struct two_sides *two)
{
	return 2 * neap__random_uniform(77, NEAP__STREAM_TEST, 1, two->draws++) - 1;
}

static void begin(struct two_sides *two, const struct update_case *c, uint32_t seed)
{
	struct neap_net_options o = net_options("lif:37r,lif:30,li");

	*two = (struct two_sides){.c = c, .seed = seed, .launcher = {run_kernel, clear, two}};
	o.precision = NEAP_FLOAT;
	o.time_unit = c->time_unit;
	o.freeze = c->freeze;
	if (neap_net_create(&two->net, &o) < 0)
		fail_msg("%s", neap_detail());
	assert_int_equal(neap__optimizer_init(
				 &two->optimizer, neap__rule_find(c->rule), &c->settings, two->net),
		0);
	size_t tensors = (size_t)two->net->ntensors, elements = two->net->elements;
	two->total = exactly(tensors, sizeof *two->total, 0);
	two->at.weight = exactly(tensors, sizeof *two->at.weight, 0);
	two->at.gradient = exactly(elements, sizeof(double), 0);
	two->at.square = exactly(neap__device_square_blocks(two->net), sizeof(double), 0xa5);
	two->at.infinite = exactly(1, sizeof(u32), 0xa5);
	for (int m = 0; m < NEAP__MOMENTS_MAX && two->optimizer.rule->moments[m]; m++)
		two->at.moment[m] = exactly(elements, sizeof(double), 0);
	for (size_t i = 0; i < tensors; i++) {
		const struct neap__param *t = &two->net->tensors[i];
		two->at.weight[i] = exactly((size_t)t->count, sizeof(float), 0);
		memcpy(two->at.weight[i], t->data, (size_t)t->count * sizeof(float));
		two->total[i] = exactly((size_t)(t->count * c->groups), sizeof(double), 0);
	}
	two->at.tensor = exactly(tensors, sizeof *two->at.tensor, 0xa5);
	two->at.learning =
		neap__device_tensor_table(two->at.tensor, two->net, &two->at, two->total);
}

static void end(struct two_sides *two)
{
	for (int i = 0; i < two->net->ntensors; i++) {
		free(two->at.weight[i]);
		free(two->total[i]);
	}
	free(two->total);
	free(two->at.weight);
	free(two->at.tensor);
	free(two->at.gradient);
	free(two->at.square);
	free(two->at.infinite);
	free(two->at.moment[0]);
	free(two->at.moment[1]);
	neap__optimizer_fini(&two->optimizer);
	neap_net_free(two->net);
}

/* Sums of groups, some of which are 0, and their sum in the net. */
static void draw_sums(struct two_sides *two)
{
	for (int i = 0; i < two->net->ntensors; i++) {
		const struct neap__param *t = &two->net->tensors[i];
		size_t count = (size_t)t->count, all = count * (size_t)two->c->groups;
		double *copy = exactly(all, sizeof *copy, 0);
		struct neap__sum_tree tree = {0};
		for (size_t k = 0; k < all; k++) {
			double x = two->c->size * draw(two);
			two->total[i][k] = t->is_frozen || k % 7 == 0 ? -0.0 : x * x * x;
		}
		memcpy(copy, two->total[i], all * sizeof *copy);
		for (int g = 0; g < two->c->groups; g++)
			neap__sum_tree_add(&tree, copy + (size_t)g * count, g, 1, count);
		const double *sum = neap__sum_tree_end(&tree, count);
		for (size_t k = 0; k < count; k++)
			t->grad[k] = 0 + sum[k];
		free(copy);
	}
}

static const char *compare_squares(const struct two_sides *two)
{
	const struct neap_net *net = two->net;
	double *square = exactly(neap__device_square_blocks(net), sizeof *square, 0);

	for (int i = 0; i < net->ntensors; i++)
		for (int64_t k = 0; k < net->tensors[i].count; k++) {
			double g = net->tensors[i].grad[k] * net->tensors[i].unit;
			square[(net->tensors[i].offset + (size_t)k) / DEVICE_SQUARES] += g * g;
		}
	int differ =
		memcmp(square, two->at.square, neap__device_square_blocks(net) * sizeof *square);
	free(square);
	return differ ? "squares" : NULL;
}

static const char *compare_tensors(const struct two_sides *two)
{
	for (int i = 0; i < two->net->ntensors; i++) {
		const struct neap__param *t = &two->net->tensors[i];
		size_t count = (size_t)t->count;
		if (memcmp(t->data, two->at.weight[i], count * sizeof(float)) != 0)
			return "weights";
		for (int m = 0; m < NEAP__MOMENTS_MAX && two->optimizer.moment[i][m]; m++)
			if (memcmp(two->optimizer.moment[i][m], two->at.moment[m] + t->offset,
				    count * sizeof(double)) != 0)
				return "moments";
	}
	return NULL;
}

/* An update on both sides; returns what differs first, or NULL. */
static const char *update(struct two_sides *two, double rate, int64_t number)
{
	const struct neap__rule_settings *s = &two->c->settings;
	struct neap_net *net = two->net;
	double norm;

	draw_sums(two);
	if (neap__device_sum_groups(net, &two->launcher, &two->at, two->c->groups))
		return emulator_report();
	if (memcmp(net->tensors[0].grad, two->at.gradient, net->elements * sizeof(double)) != 0)
		return "gradients";
	const char *wrong = compare_squares(two);
	if (wrong)
		return wrong;
	assert_int_equal(neap__clip(&norm, net, two->c->limit, NULL), 0);
	struct neap__update u = {.rule = two->optimizer.rule->on_device,
		.factor = two->c->limit > 0 && norm > two->c->limit ? two->c->limit / norm : 1,
		.rate = rate,
		.weight_decay = s->weight_decay,
		.momentum = s->momentum,
		.beta1 = s->beta1,
		.beta2 = s->beta2,
		.epsilon = s->epsilon,
		.first = neap__bias_correction(s->beta1, number),
		.second = neap__bias_correction(s->beta2, number)};
	int finite = neap__optimizer_step(&two->optimizer, net, rate, number);
	if (neap__device_update(net, &two->launcher, &two->at, &u))
		return emulator_report();
	if (finite != !*two->at.infinite)
		return "whether weights are finite";
	return compare_tensors(two);
}

static const char *run_case(const struct update_case *c, uint32_t seed)
{
	struct two_sides two;
	const char *wrong = NULL;

	begin(&two, c, seed);
	for (int u = 1; u <= UPDATES && !wrong; u++)
		wrong = update(&two, 0.01 / u, u);
	end(&two);
	return wrong;
}

/* Settings that no option leaves out: momentum, decay, and betas other than usual. */
static const struct update_case cases[] = {
	{"adam", {0, 0.9, 0.999, 1e-8, 0}, 0, 0, NULL, 1, 1},
	{"adam", {0, 0.8, 0.99, 1e-6, 0.1}, 0.5, 0.003, NULL, 4, 10},
	{"adam", {0, 0.9, 0.999, 1e-8, 0}, 1e6, 0, "layer1", 3, 1e-12},
	{"adamw", {0, 0.9, 0.999, 1e-8, 0.01}, 0, 0, NULL, 2, 1},
	{"adamw", {0, 0.5, 0.9, 1e-8, 0.2}, 1, 0.005, NULL, GROUPS_MOST, 100},
	{"sgd", {0, 0, 0, 0, 0}, 0, 0, NULL, 7, 1},
	{"sgd", {0.9, 0, 0, 0, 0.1}, 0.1, 0.003, "readout.bias", 8, 3},
};

static void every_rule(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		for (uint32_t seed = 0; seed < 2; seed++) {
			const char *wrong = run_case(&cases[i], seed * 7919);
			if (wrong)
				fail_msg("case %zu, seed %u: %s", i, (unsigned)seed, wrong);
		}
}

/* Sums of 1 to GROUPS_MOST groups: the shape of the tree depends on their number. */
static void every_number_of_groups(void **state)
{
	(void)state;
	for (int groups = 1; groups <= GROUPS_MOST; groups++) {
		struct update_case c = cases[3];
		struct two_sides two;
		c.groups = groups;
		begin(&two, &c, 3);
		const char *wrong = update(&two, 0.1, 1);
		if (wrong)
			fail_msg("%d groups: %s", groups, wrong);
		end(&two);
	}
}

/*
 * Moments of weights without gradients decay to zero, and do not stay above it as subnormal
 * numbers; so do weights. The device's arithmetic does not flush them by itself.
 */
__attribute__((unused)) static void subnormal_numbers(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct update_case c = cases[i];
		struct two_sides two;
		c.size = 0;
		c.settings.weight_decay = 0;
		begin(&two, &c, 0);
		for (int k = 0; k < two.net->ntensors; k++) {
			const struct neap__param *t = &two.net->tensors[k];
			float *weight = t->data;
			for (int64_t n = 0; n < t->count; n++) {
				/* Down to the smallest normal numbers, of either sign. */
				weight[n] = (float)(draw(&two) * 64 * FLT_MIN);
				if (fabsf(weight[n]) < FLT_MIN)
					weight[n] = 0;
				two.at.weight[k][n] = weight[n];
				for (int m = 0; m < 2 && two.optimizer.moment[k][m]; m++) {
					double x = draw(&two) * 4 * DBL_MIN;
					x = fabs(x) < DBL_MIN ? 0 : m ? fabs(x) : x;
					two.optimizer.moment[k][m][n] = x;
					two.at.moment[m][t->offset + (size_t)n] = x;
				}
			}
		}
		emulator_subnormals(1);
		for (int u = 1; u <= 6; u++) {
			const char *wrong = update(&two, 0.9, u);
			if (wrong)
				fail_msg("case %zu, update %d: %s", i, u, wrong);
		}
		emulator_subnormals(0);
		end(&two);
	}
}

/* A gradient that is not finite, and a step that is too large. */
static void infinite_weights(void **state)
{
	(void)state;
	for (int huge = 0; huge < 2; huge++) {
		struct update_case c = cases[5];
		struct two_sides two;
		c.size = huge ? 1e30 : NAN;
		begin(&two, &c, 0);
		const char *wrong = update(&two, 1e20, 1);
		/* NaN may have other bits. */
		assert_true(!wrong || !huge);
		assert_true(huge == 0 || *two.at.infinite == 1);
		end(&two);
	}
}

static void every_barrier(void **state)
{
	(void)state;
	assert_null(run_case(&cases[1], 1));
	int count = emulator_barriers();
	assert_true(count >= 1);
	for (int i = 0; i < count; i++) {
		const char *wrong = NULL;
		emulator_skip(i);
		for (uint32_t seed = 1; seed < 9 && !wrong; seed++)
			wrong = run_case(&cases[1], seed * 7919);
		emulator_skip(-1);
		assert_non_null(wrong);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_rule),
		cmocka_unit_test(every_number_of_groups),
#ifdef __x86_64__ /* other processors do not flush them */
		cmocka_unit_test(subnormal_numbers),
#endif
		cmocka_unit_test(infinite_weights),
		cmocka_unit_test(every_barrier),
	};
	return cmocka_run_group_tests_name("device_optimizer", tests, NULL, NULL);
}
