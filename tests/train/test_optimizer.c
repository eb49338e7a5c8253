/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizers, clipping and schedules against numbers worked out by hand. */
#include "test.h"
#include <neap/train.h>
#include "train/optimizer.h"
#include "train/learning_rate.h"

static const struct neap__rule_settings usual = {
	.momentum = 0.9, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8};

/* Two updates of one double parameter w with gradients g1, g2; returns the value after each. */
static void two_steps_of(const char *name, const struct neap__rule_settings *settings, double w,
	double rate, double unit, const double g[2], double after[2])
{
	const struct neap__rule *rule = neap__rule_find(name);
	double first = 0, second = 0;
	assert_non_null(rule);
	for (int i = 0; i < 2; i++) {
		struct neap__rule_step step = {.count = 1,
			.data = &w,
			.precision = NEAP_DOUBLE,
			.grad = &g[i],
			.moment = {&first, &second},
			.rate = rate,
			.unit = unit,
			.update = i + 1,
			.settings = settings};
		rule->step(&step);
		after[i] = w;
	}
}

static void two_steps(const char *name, const struct neap__rule_settings *settings, double w,
	double rate, const double g[2], double after[2])
{
	two_steps_of(name, settings, w, rate, 1, g, after);
}

static void near(double a, double b)
{
	if (fabs(a - b) > 1e-14 * fmax(1, fabs(b)))
		fail_msg("%.17g is not %.17g", a, b);
}

static void sgd_adds_momentum(void **state)
{
	(void)state;
	const double g[2] = {1, 2};
	double after[2];
	two_steps("sgd", &usual, 3, 0.1, g, after);
	near(after[0], 3 - 0.1);
	near(after[1], 2.9 - 0.1 * (0.9 * 1 + 2));
	struct neap__rule_settings decay = {.momentum = 0, .weight_decay = 0.5};
	two_steps("sgd", &decay, 2, 0.1, g, after);
	near(after[0], 2 - 0.1 * (1 + 0.5 * 2));
}

static void adam_corrects_its_bias(void **state)
{
	(void)state;
	const double g[2] = {0.5, -0.25};
	double after[2];
	two_steps("adam", &usual, 1, 0.01, g, after);
	/* the first step: m^ = g, v^ = g^2, whatever g is */
	near(after[0], 1 - 0.01 * 0.5 / (0.5 + 1e-8));
	double m = 0.9 * 0.1 * 0.5 + 0.1 * -0.25, v = 0.999 * 0.001 * 0.25 + 0.001 * 0.0625;
	near(after[1], after[0] - 0.01 * (m / (1 - 0.81)) / (sqrt(v / (1 - 0.999 * 0.999)) + 1e-8));
}

static void weight_decay_is_inside_adam_and_outside_adamw(void **state)
{
	(void)state;
	const double g[2] = {0.5, 0.5};
	double inside[2], outside[2];
	struct neap__rule_settings decay = usual;
	decay.weight_decay = 0.1;
	two_steps("adam", &decay, 1, 0.01, g, inside);
	near(inside[0], 1 - 0.01 * 0.6 / (0.6 + 1e-8)); /* the direction is all that is left */
	two_steps("adamw", &decay, 1, 0.01, g, outside);
	near(outside[0], 1 - 0.01 * (0.5 / (0.5 + 1e-8) + 0.1 * 1));
}

static void floats_follow_doubles(void **state)
{
	(void)state;
	static const char *const names[] = {"sgd", "adam", "adamw"};
	for (int n = 0; n < 3; n++) {
		double w = 0.75, g = 0.3, m[2][2] = {{0}};
		float f = 0.75f;
		for (int i = 1; i <= 5; i++) {
			struct neap__rule_step step = {.count = 1,
				.data = &w,
				.precision = NEAP_DOUBLE,
				.grad = &g,
				.moment = {&m[0][0], &m[0][1]},
				.rate = 0.05,
				.unit = 1,
				.update = i,
				.settings = &usual};
			neap__rule_find(names[n])->step(&step);
			step.data = &f;
			step.precision = NEAP_FLOAT;
			step.moment[0] = &m[1][0];
			step.moment[1] = &m[1][1];
			neap__rule_find(names[n])->step(&step);
			assert_true(fabs(f - w) < 1e-6 && w < 0.75);
		}
	}
}

/* A parameter in another unit, with the gradient of that, moves by the same in its own unit. */
static void units_change_no_move(void **state)
{
	const double g[2] = {0.5, -0.25}, scaled[2] = {0.5 / 16, -0.25 / 16};
	const char *name;
	double after[2], in_unit[2];
	struct neap__rule_settings decay = usual;

	(void)state;
	decay.weight_decay = 0.3;
	for (int i = 0; (name = neap_optimizer_name(i)); i++) {
		two_steps(name, &decay, 1.5, 0.01, g, after);
		two_steps_of(name, &decay, 1.5 * 16, 0.01, 16, scaled, in_unit);
		assert_true(in_unit[0] == 16 * after[0] && in_unit[1] == 16 * after[1]);
	}
}

static void unknown_names_are_refused(void **state)
{
	(void)state;
	assert_null(neap__rule_find("lion"));
	assert_non_null(strstr(neap_detail(), "'lion'"));
	assert_null(neap__learning_rate_find("linear"));
	assert_non_null(strstr(neap_detail(), "'linear'"));
}

static struct neap_net *net_of(enum neap_precision precision, const char *spec)
{
	struct neap_net_options o = NEAP_NET_OPTIONS_INIT;
	struct neap_net *net;
	o.spec = spec;
	o.inputs = 4;
	o.classes = 2;
	o.seed = 1;
	o.threads = 1;
	o.precision = precision;
	assert_int_equal(neap_net_create(&net, &o), 0);
	return net;
}

static struct neap_net *small_net(enum neap_precision precision)
{
	return net_of(precision, "lif:3r,li");
}

static void set_grads(struct neap_net *net, double value)
{
	struct neap_param param;
	for (int i = 0; i < neap_net_params(net); i++) {
		assert_int_equal(neap_net_param(net, i, &param), 0);
		for (int64_t k = 0; k < param.count; k++)
			param.grad[k] = value;
	}
}

static double clip(struct neap_net *net, double limit)
{
	double norm;
	assert_int_equal(neap__clip(&norm, net, limit, NULL), 0);
	return norm;
}

static void clip_scales_to_the_norm(void **state)
{
	(void)state;
	struct neap_net *net = small_net(NEAP_FLOAT);
	struct neap_param param;
	int64_t n = 0;
	for (int i = 0; i < neap_net_params(net); i++) {
		assert_int_equal(neap_net_param(net, i, &param), 0);
		n += param.count;
	}
	set_grads(net, 3);
	near(clip(net, 0), 3 * sqrt((double)n)); /* 0: only measured */
	near(clip(net, 1), 3 * sqrt((double)n));
	near(clip(net, 1), 1);
	assert_int_equal(neap_net_param(net, 0, &param), 0);
	near(param.grad[0], 1 / sqrt((double)n));
	near(clip(net, 2), 1); /* below the limit: untouched */
	near(param.grad[0], 1 / sqrt((double)n));
	param.grad[1] = NAN;
	assert_true(isnan(clip(net, 1)));
	near(param.grad[0], 1 / sqrt((double)n));
	neap_net_free(net);
}

/* Gradients whose squares are no doubles have a norm; those that are infinite have none. */
static void clip_of_large_gradients(void **state)
{
	(void)state;
	/* More than one block of squares. */
	struct neap_net *net = net_of(NEAP_DOUBLE, "lif:40r,li");
	struct neap_param param;
	double n = 0;
	for (int i = 0; i < neap_net_params(net); i++) {
		assert_int_equal(neap_net_param(net, i, &param), 0);
		n += (double)param.count;
	}
	assert_true(n > 1024);
	set_grads(net, 1e300);
	near(clip(net, 0) / 1e300, sqrt(n));
	near(clip(net, 1) / 1e300, sqrt(n));
	near(clip(net, 1), 1);
	set_grads(net, 1.5e308);
	assert_true(isinf(clip(net, 1)));
	set_grads(net, 1);
	assert_int_equal(neap_net_param(net, 0, &param), 0);
	param.grad[0] = -INFINITY;
	assert_true(isinf(clip(net, 1)));
	near(param.grad[1], 1);
	param.grad[0] = NAN;
	assert_true(isnan(clip(net, 1)));
	neap_net_free(net);
}

static void optimizer_moves_every_tensor(void **state)
{
	(void)state;
	struct neap_net *net = small_net(NEAP_FLOAT);
	struct neap__optimizer optimizer;
	struct neap_param param;
	float before[64];
	assert_int_equal(neap__optimizer_init(&optimizer, neap__rule_find("adam"), &usual, net), 0);
	set_grads(net, 1);
	for (int i = 0; i < neap_net_params(net); i++) {
		assert_int_equal(neap_net_param(net, i, &param), 0);
		before[i] = ((float *)param.data)[param.count - 1];
	}
	neap__optimizer_step(&optimizer, net, 0.5, 1);
	for (int i = 0; i < neap_net_params(net); i++) {
		assert_int_equal(neap_net_param(net, i, &param), 0);
		assert_true(
			fabsf(((float *)param.data)[param.count - 1] - (before[i] - 0.5f)) < 1e-6f);
	}
	neap__optimizer_fini(&optimizer);
	neap_net_free(net);
}

/* Of time constants a decay of parameters would make the shortest there are. */
static void weight_decay_leaves_leaks_alone(void **state)
{
	static const char *const names[] = {"adam", "adamw", "sgd"};
	(void)state;
	for (int n = 0; n < 3; n++) {
		struct neap_net *net = net_of(NEAP_DOUBLE, "lif:3r:learn=tau,li:learn=tau");
		struct neap__rule_settings decay = usual;
		struct neap__optimizer optimizer;
		struct neap_param param;
		double before[16];
		int leaks = 0;
		decay.weight_decay = 0.1;
		assert_int_equal(
			neap__optimizer_init(&optimizer, neap__rule_find(names[n]), &decay, net),
			0);
		set_grads(net, 0);
		for (int i = 0; i < neap_net_params(net); i++) {
			neap_net_param(net, i, &param);
			before[i] = ((double *)param.data)[0];
		}
		assert_true(neap__optimizer_step(&optimizer, net, 0.5, 1));
		for (int i = 0; i < neap_net_params(net); i++) {
			neap_net_param(net, i, &param);
			int moved = ((double *)param.data)[0] != before[i];
			assert_true(moved == (before[i] != 0 && !param.is_leak));
			leaks += param.is_leak;
		}
		assert_int_equal(leaks, 2);
		neap__optimizer_fini(&optimizer);
		neap_net_free(net);
	}
}

static void schedules_rise_and_fall(void **state)
{
	(void)state;
	const struct neap__learning_rate *cosine = neap__learning_rate_find("cosine");
	const struct neap__learning_rate *constant = neap__learning_rate_find("constant");
	near(neap__learning_rate_at(cosine, 2, 4, 0, 104), 0.5);
	near(neap__learning_rate_at(cosine, 2, 4, 3, 104), 2);
	near(neap__learning_rate_at(cosine, 2, 4, 4, 104), 2);
	near(neap__learning_rate_at(cosine, 2, 4, 54, 104), 1); /* half way: cos(pi/2) = 0 */
	near(neap__learning_rate_at(cosine, 2, 4, 29, 104), 1 + sqrt(0.5));
	near(neap__learning_rate_at(cosine, 2, 4, 104, 104), 0);
	near(neap__learning_rate_at(cosine, 2, 0, 0, 1), 2);
	near(neap__learning_rate_at(cosine, 2, 50, 20, 10), 2 * 21.0 / 50); /* all of it warm-up */
	const struct neap__learning_rate *cooldown = neap__learning_rate_find("cooldown");
	near(neap__learning_rate_at(cooldown, 2, 4, 3, 104), 2);
	near(neap__learning_rate_at(cooldown, 2, 4, 63, 104), 2);
	near(neap__learning_rate_at(cooldown, 2, 4, 84, 104), 1); /* half of the fall is done */
	near(neap__learning_rate_at(cooldown, 2, 4, 104, 104), 0);
	near(neap__learning_rate_at(constant, 2, 4, 1, 104), 1);
	near(neap__learning_rate_at(constant, 2, 4, 90, 104), 2);
	double last = 3;
	for (int64_t u = 4; u < 104; u++) {
		double rate = neap__learning_rate_at(cosine, 2, 4, u, 104);
		assert_true(rate > 0 && rate < last);
		last = rate;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sgd_adds_momentum),
		cmocka_unit_test(adam_corrects_its_bias),
		cmocka_unit_test(weight_decay_is_inside_adam_and_outside_adamw),
		cmocka_unit_test(floats_follow_doubles),
		cmocka_unit_test(units_change_no_move),
		cmocka_unit_test(unknown_names_are_refused),
		cmocka_unit_test(clip_scales_to_the_norm),
		cmocka_unit_test(clip_of_large_gradients),
		cmocka_unit_test(optimizer_moves_every_tensor),
		cmocka_unit_test(weight_decay_leaves_leaks_alone),
		cmocka_unit_test(schedules_rise_and_fall),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
