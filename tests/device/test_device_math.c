/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_device_math.c: products on tensor cores (--math tf32x3 and bf16) on the emulator, whose mma
 * are those of emulator/mma_model.h. Products have the bits of a plain loop in the order that
 * dense_math.k describes, and errors within their bounds. Nets have the same bits for all cuts of
 * their steps, and gradients near those of a net in double. With a number as argument, so many
 * random nets in place of the few of the default run; NEAP_SEED is the number of the first one.
 */
#include "emulated_net.h"
#include "random_device_net.h"
#include "emulator/emulator.h"
#include "base/half.h"

enum { CHUNK = 16, PRODUCT_WARPS = 4 };

static const char *const cells[] = {"rnn", "lstm", "gru", "egru"};
static int random_cases = 1;

/* A number of either sign, of 0.001 to 1 in size. */
static float draw_number(uint32_t *state)
{
	float x = 0.001f + (float)draw_below(state, 1 << 20) / (1 << 20);
	return draw_below(state, 2) ? x : -x;
}

static float *draw_numbers(size_t count, uint32_t *state)
{
	float *x = malloc((count ? count : 1) * sizeof *x);

	assert_non_null(x);
	for (size_t i = 0; i < count; i++)
		x[i] = draw_number(state);
	return x;
}

/* d + sum of x[k] y[k], rounded towards zero. */
static float mma(float d, const float *x, const float *y, const int *order, int terms)
{
	double sum = (double)d;
	uint32_t bits;

	for (int i = 0; i < terms; i++)
		sum += (double)x[order[i]] * (double)y[order[i]];
	float result = (float)sum;
	memcpy(&bits, &result, sizeof bits);
	return fabs((double)result) > fabs(sum) ? neap__bits_float(bits - 1) : result;
}

static void split(float *big, float *small, const float *x)
{
	for (int k = 0; k < CHUNK; k++) {
		big[k] = neap__bits_float(mma_tf32(x[k]));
		small[k] = neap__bits_float(mma_tf32(x[k] - big[k]));
	}
}

/* A chunk of 16 terms of a row and a column: what add_chunk of dense_math.k adds. */
static float chunk_of(const float *x, const float *y, enum neap_math math)
{
	/* A thread has every 4th term; in an mma, all threads' first ones come first. */
	static const int bf16[CHUNK] = {0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15};
	static const int tf32[2][8] = {{0, 1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13, 14, 15}};
	float big[2][CHUNK], small[2][CHUNK], d = 0;

	if (math == NEAP_MATH_BF16) {
		for (int k = 0; k < CHUNK; k++) {
			big[0][k] = neap__bits_float(mma_bf16_pair(x[k], 0) << 16);
			big[1][k] = neap__bits_float(mma_bf16_pair(y[k], 0) << 16);
		}
		return mma(0, big[0], big[1], bf16, CHUNK);
	}
	split(big[0], small[0], x);
	split(big[1], small[1], y);
	for (int half = 0; half < 2; half++)
		d = mma(d, small[0], big[1], tf32[half], 8);
	for (int half = 0; half < 2; half++)
		d = mma(d, big[0], small[1], tf32[half], 8);
	for (int half = 0; half < 2; half++)
		d = mma(d, big[0], big[1], tf32[half], 8);
	return d;
}

/* A random product, and its arguments for the kernel. */
struct product {
	struct dense_product_math_arguments a;
	float *numbers, *weight, *bias, *sums;
};

static struct product product_make(uint32_t seed, int rows, int terms, int columns, int turned)
{
	uint32_t state = seed * 7919u + 1;
	int width = terms + (int)draw_below(&state, 3);
	struct product p = {.numbers = draw_numbers((size_t)rows * (size_t)width, &state),
		.weight = draw_numbers((size_t)terms * (size_t)columns, &state),
		.bias = draw_numbers((size_t)columns, &state),
		.sums = draw_numbers((size_t)rows * (size_t)columns, &state)};

	p.a.exact = (struct dense_product_arguments){.rows = rows,
		.terms = terms,
		.columns = columns,
		.width = width,
		.turned = turned,
		.numbers = p.numbers,
		.weight = p.weight,
		.bias = draw_below(&state, 3) ? p.bias : NULL,
		.sums = p.sums};
	return p;
}

static void product_free(struct product *p)
{
	free(p->numbers);
	free(p->weight);
	free(p->bias);
	free(p->sums);
}

static int run(void *user, const struct neap__device_launch *launch)
{
	void *args[] = {(void *)(uintptr_t)launch->arguments};
	int rc = emulator_launch(emulated_kernel(neap__device_kernel_name(launch->kernel)),
		launch->blocks, launch->threads, launch->shared_bytes, args, *(uint32_t *)user);

	if (rc)
		fail_msg("%s", emulator_report());
	return rc;
}

static void product_run(struct product *p, enum neap_math math, uint32_t seed)
{
	const struct neap__device_launcher on = {.launch = run, .user = &seed};

	p->a.math = (int)math;
	assert_int_equal(neap__launch_dense_product_math(&on, &p->a), 0);
}

/* The terms of a row, or of a column, from `first` on; those that there are not are 0. */
static void terms_of(float *to, const float *from, int first, int terms, int step)
{
	for (int k = 0; k < CHUNK; k++)
		to[k] = first + k < terms ? from[(size_t)(first + k) * (size_t)step] : 0;
}

/* A number of the product as the kernel defines it, in double, and the sum of its terms' sizes. */
static float product_model(const struct product *p, int row, int column, enum neap_math math,
	double *exact, double *size)
{
	const struct dense_product_arguments *a = &p->a.exact;
	const float *x = a->numbers + (size_t)row * (size_t)a->width;
	const float *y = a->weight + (size_t)column * (a->turned ? (size_t)a->terms : 1);
	int step = a->turned ? 1 : a->columns;
	float sum = a->bias ? a->bias[column] : 0;

	*exact = (double)sum;
	*size = fabs((double)sum);
	for (int first = 0; first < a->terms; first += CHUNK) {
		float left[CHUNK], right[CHUNK];
		terms_of(left, x, first, a->terms, 1);
		terms_of(right, y, first, a->terms, step);
		sum += chunk_of(left, right, math);
		for (int k = 0; k < CHUNK; k++) {
			double term = (double)left[k] * (double)right[k];
			*exact += term;
			*size += fabs(term);
		}
	}
	return sum;
}

/*
 * The bound of a product's error, for terms of a size of 1 in all. tf32x3: both parts that are
 * rounded off and the product that is left out, 2^-22 each; six truncations of a chunk, and a
 * rounding for each chunk and the bias. bf16: two roundings, and the same.
 */
static double bound_of(int terms, enum neap_math math)
{
	double sums = 6 * ldexp(1, -23) + ((terms + CHUNK - 1) / CHUNK + 1) * ldexp(1, -24);
	double factors =
		math == NEAP_MATH_BF16 ? 2 * ldexp(1, -9) + ldexp(1, -18) : 3 * ldexp(1, -22);

	return (factors + sums) * 1.001;
}

/* The largest error of a product, in parts of its bound; fails if its bits are not the model's. */
static double product_error(const struct product *p, enum neap_math math, int has_bits)
{
	const struct dense_product_arguments *a = &p->a.exact;
	double most = 0;

	for (int row = 0; row < a->rows; row++)
		for (int column = 0; column < a->columns; column++) {
			double exact, size;
			float model = product_model(p, row, column, math, &exact, &size);
			float found = p->sums[(size_t)row * (size_t)a->columns + (size_t)column];
			if (has_bits)
				assert_memory_equal(&found, &model, sizeof found);
			double error =
				fabs((double)found - exact) / (bound_of(a->terms, math) * size);
			most = error > most ? error : most;
		}
	return most;
}

/* Parts of a tile and more than one; terms of less than a chunk, of tiles and more. */
static void products(void **arg)
{
	static const struct {
		int rows, terms, columns;
	} shapes[] = {{1, 1, 1}, {5, 17, 9}, {65, 33, 9}, {16, 130, 8}};

	(void)arg;
	for (uint32_t i = 0; i < 16; i++) {
		enum neap_math math = i & 1 ? NEAP_MATH_BF16 : NEAP_MATH_TF32X3;
		struct product p = product_make(i, shapes[i / 4].rows, shapes[i / 4].terms,
			shapes[i / 4].columns, i >> 1 & 1);
		product_run(&p, math, i);
		double error = product_error(&p, math, 1);
		if (getenv("NEAP_VERBOSE"))
			fprintf(stderr, "# %d terms, math %d: %.3f of the bound\n", p.a.exact.terms,
				(int)math, error);
		assert_true(error <= 1);
		product_free(&p);
	}
}

/* A row does not depend on the rows that are computed with it. */
static void rows(void **arg)
{
	(void)arg;
	for (int math = NEAP_MATH_TF32X3; math <= NEAP_MATH_BF16; math++) {
		struct product p = product_make(3, 70, 40, 20, 0);
		product_run(&p, (enum neap_math)math, 0);
		float *all = copy_of(p.sums, 70 * 20 * sizeof *all);
		memset(p.sums, 0, 70 * 20 * sizeof *p.sums);
		p.a.exact.numbers += 37 * p.a.exact.width;
		p.a.exact.rows = 3;
		product_run(&p, (enum neap_math)math, 5);
		assert_memory_equal(p.sums, all + 37 * 20, 3 * 20 * sizeof *all);
		free(all);
		product_free(&p);
	}
}

/* What is not finite stays so; in tf32x3, an infinity becomes a NaN. */
static void not_finite(void **arg)
{
	(void)arg;
	for (int math = NEAP_MATH_TF32X3; math <= NEAP_MATH_BF16; math++) {
		struct product p = product_make(4, 3, 20, 9, 1);
		p.numbers[5] = neap__bits_float(0x7fffffffu);
		p.numbers[p.a.exact.width + 7] = INFINITY;
		product_run(&p, (enum neap_math)math, 0);
		for (int i = 0; i < 27; i++)
			assert_int_equal(isfinite(p.sums[i]) != 0, i >= 18);
		assert_true(isnan(p.sums[0]));
		product_free(&p);
	}
}

/* Without any one of the products of parts, the error is beyond the bound. */
static void removed(void **arg)
{
	(void)arg;
	for (int i = -1; i < SPLIT_MMA; i++) {
		struct product p = product_make(5, 20, 40, 9, 0);
		emulator_skip_mma(i);
		product_run(&p, NEAP_MATH_TF32X3, 0);
		emulator_skip_mma(-1);
		double error = product_error(&p, NEAP_MATH_TF32X3, 0);
		fprintf(stderr, "# without product %d: %.3g of the bound\n", i, error);
		assert_true(i < 0 ? error <= 1 : error > 2);
		product_free(&p);
	}
}

/* The same bits for all cuts and orders of threads as for whole blocks of steps. */
static void assert_alike(struct emulated_case *c, enum neap_math math, uint32_t seed)
{
	int cut = c->cut, share = c->share_steps, window = c->window, pack = c->pack;

	c->cut = c->share_steps = c->window = c->pack = 0;
	emulated_case_run(c);
	emulated_case_keep(c, math);
	c->cut = cut;
	c->share_steps = share;
	c->window = window;
	c->pack = pack;
	const char *wrong = emulated_case_compare(c, seed);
	if (wrong)
		fail_msg("%s: %s", c->options.spec, wrong);
}

static void cuts(void **arg)
{
	static const int cuts[] = {1, 7, 40}, shares[] = {0, 1, 3};

	(void)arg;
	for (int i = 0; i < 4; i++) {
		char spec[60];
		snprintf(spec, sizeof spec, "%s:9,%s:3%s,li", cells[i], cells[3 - i],
			i == 1 ? ":delay=1" : "");
		struct emulated_case c = emulated_case_make(spec, 5, i & 1 ? 9 : 66, 0.2);
		c.cut = cuts[i % 3];
		c.share_steps = shares[i % 3];
		c.window = i & 1;
		c.pack = i >> 1 & 1;
		c.options.group = i % 3 * 3;
		c.options.classes = i & 2 ? 20 : 5;
		assert_alike(&c, i & 1 ? NEAP_MATH_TF32X3 : NEAP_MATH_BF16, (uint32_t)i);
		emulated_case_free(&c);
	}
}

/* The error of all gradients against those of `exact`, relative to their size. */
static double gradient_error(const struct neap_net *net, const struct neap_net *exact)
{
	double error = 0, size = 0;

	for (int i = 0; i < net->ntensors; i++)
		for (int64_t k = 0; k < net->tensors[i].count; k++) {
			double of = exact->tensors[i].grad[k], d = net->tensors[i].grad[k] - of;
			error += d * d;
			size += of * of;
		}
	return size > 0 ? sqrt(error / size) : 0;
}

/*
 * The error of gradients on tensor cores against double, in parts of what it may be: for tf32x3 8
 * times that of float on the CPU and 2^-20 more, for bf16 2^-5; chosen, for bf16 3 times what
 * random nets have.
 */
static double net_error(struct emulated_case *c, enum neap_math math)
{
	struct emulated_case exact = *c;

	emulated_case_run(c);
	exact.weights = c->net;
	exact.options.precision = NEAP_DOUBLE;
	emulated_case_run(&exact);
	double of_float = gradient_error(c->net, exact.net);
	emulated_case_keep(c, math);
	double error = gradient_error(c->net, exact.net);
	double most = math == NEAP_MATH_BF16 ? ldexp(1, -5) : 8 * of_float + ldexp(1, -20);
	if (getenv("NEAP_VERBOSE"))
		fprintf(stderr, "# %s: error of float %.3g, of math %d %.3g\n", c->options.spec,
			of_float, (int)math, error);
	exact.batch = (struct batch_room){0}; /* of the other case */
	emulated_case_free(&exact);
	return error / most;
}

/* egru, of which no unit is so near its threshold that another rounding changes its event. */
static void events(void **arg)
{
	(void)arg;
	for (int math = NEAP_MATH_TF32X3; math <= NEAP_MATH_BF16; math++) {
		struct emulated_case c = emulated_case_make("egru:9,egru:5,li", 5, 9, 0.2);
		double error = net_error(&c, (enum neap_math)math);
		if (!(error <= 1))
			fail_msg("%g of the bound", error);
		emulated_case_free(&c);
	}
}

static void random_nets(void **arg)
{
	uint32_t first = first_seed();

	(void)arg;
	for (uint32_t seed = first; seed < first + (uint32_t)random_cases; seed++) {
		uint32_t state = seed * 7919u + 1;
		char spec[200] = "";
		for (uint32_t layers = 1 + draw_below(&state, 2); layers > 0; layers--)
			snprintf(spec + strlen(spec), sizeof spec - strlen(spec), "%s:%d%s,",
				cells[draw_below(&state, 3)],
				1 + (int)draw_below(&state, draw_below(&state, 4) ? 20 : 80),
				seed % 2 ? "" : ":density=0.5");
		strcat(spec, seed % 3 ? "li" : "li:density=0.6");
		struct emulated_case c = emulated_case_make(spec, 1 + (int)draw_below(&state, 12),
			1 + (int)draw_below(&state, 80), 0.2);
		c.options.group = (int)draw_below(&state, 20);
		c.options.readout = (enum neap_readout)draw_below(&state, NEAP_READ_LAST + 1);
		if (draw_below(&state, 2)) {
			c.options.values = 1;
			batch_numbers(&c.batch, 3, 1, NEAP_TARGET_LABEL, c.options.classes);
		}
		enum neap_math math = draw_below(&state, 2) ? NEAP_MATH_BF16 : NEAP_MATH_TF32X3;
		double error = net_error(&c, math);
		if (!(error <= 1))
			fail_msg("seed %u: %s: %g of the bound", (unsigned)seed, spec, error);
		emulated_case_draw_calls(&c, &state);
		emulated_case_agree(&c, seed);
		emulated_case_free(&c);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(products),
		cmocka_unit_test(rows),
		cmocka_unit_test(not_finite),
		cmocka_unit_test(removed),
		cmocka_unit_test(cuts),
		cmocka_unit_test(events),
		cmocka_unit_test(random_nets),
	};
	const struct CMUnitTest random[] = {cmocka_unit_test(random_nets)};

	if (argc < 2)
		return cmocka_run_group_tests_name("device_math", all, NULL, NULL);
	random_cases = atoi(argv[1]);
	return cmocka_run_group_tests_name("device_math_random", random, NULL, NULL);
}
