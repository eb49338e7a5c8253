/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same spikes in time at steps of 1 ms to 0.1 ms: with weights and biases by their units a net
 * spikes as often a second, answers the same, and its gradients by their units are as long.
 */
#include "nn/nets.h"
#include "nn/time_unit.h"
#include "nn/core/net_state.h"

/* Every event `fine` steps of the same batch later, at steps `fine` times shorter. */
static void batch_stretch(struct batch_room *to, const struct batch_room *from, int fine)
{
	const struct neap_batch *batch = &from->batch;

	*to = (struct batch_room){.batch = *batch};
	to->sequences = calloc((size_t)batch->size, sizeof *to->sequences);
	to->batch.sequences = to->sequences;
	to->batch.steps *= fine;
	for (int b = 0; b < batch->size; b++) {
		const struct neap_sequence *s = &batch->sequences[b];
		int64_t length = s->length * fine;
		uint32_t *start = calloc((size_t)length + 1, sizeof *start);
		uint16_t *unit = calloc((size_t)s->start[s->length] + 1, sizeof *unit);
		memcpy(unit, s->unit, s->start[s->length] * sizeof *unit);
		for (int64_t t = 0; t < length; t++)
			start[t + 1] = s->start[t / fine + 1];
		to->sequences[b] = *s;
		to->sequences[b].length = length;
		to->sequences[b].start = start;
		to->sequences[b].unit = unit;
	}
}

/* What should not depend on the step. */
struct found {
	double hertz, penalty, loss, length[12];
};

static struct found measure(
	const char *spec, const struct neap_batch *batch, double dt, double unit)
{
	struct neap_net_options o = net_options(spec);

	o.readout = NEAP_READ_MEAN; /* `sums` has the other one that depends on steps */
	struct neap_net_result result = {.size = sizeof result};
	struct found found = {0};

	o.dt = dt;
	o.time_unit = unit;
	struct neap_net *net = net_make(&o);
	const struct neap_rate_penalty said = {
		.upper = 0.01, .upper_weight = 1, .l1 = 0.1, .l2 = 1};
	const struct neap_objective objective = {.size = sizeof objective,
		.loss = neap_loss_find("cross-entropy"),
		.rates = neap__unit_penalty(&o, &said)};
	for (int i = 0; i < net->ntensors; i++) {
		struct neap__param *t = &net->tensors[i];
		if (t->rows > 1 || t->is_leak)
			continue;
		for (int64_t k = 0; k < t->count; k++)
			((double *)t->data)[k] = t->unit * 0.001 * (double)(k % 7);
	}
	found.loss = sweep_plain(net, batch, &objective);
	neap_net_get_result(net, &result);
	found.hertz = result.spikes / dt;
	found.penalty = result.penalty;
	for (int i = 0; i < net->ntensors; i++) {
		double sum = 0;
		for (int64_t k = 0; k < net->tensors[i].count; k++)
			sum += pow(net->tensors[i].grad[k] * net->tensors[i].unit, 2);
		found.length[i] = sqrt(sum);
	}
	neap_net_free(net);
	return found;
}

/* The largest factor between what was found at either step. */
static double apart(const struct found *a, const struct found *b)
{
	double worst = fmax(fabs(log(a->hertz / b->hertz)), fabs(log(a->loss / b->loss)));

	worst = fmax(worst, fabs(log(a->penalty / b->penalty)));
	for (int i = 0; i < 12 && a->length[i] > 0; i++)
		worst = fmax(worst, fabs(log(a->length[i] / b->length[i])));
	return exp(worst);
}

static void steps(void **state)
{
	static const char *const specs[] = {"lif:100r,li", "lif:80:reset=soft,lif:60r:scale=2,li",
		"cubalif:100r:scale=0.15:recurrent_scale=0.05,li", "alif:100r,li",
		"adlif:100r:scale=60,li", "seadlif:100r:scale=60,li",
		"brf:100r:omega=50..100:scale=900,li",
		"adlif:100r:scale=60:learn=tau,li:learn=tau"};
	struct batch_room coarse, fine;

	(void)state;
	batch_make(&coarse, 3, 12, 19, 300, 5, 0.02, NULL);
	for (size_t s = 0; s < sizeof specs / sizeof specs[0]; s++) {
		struct found at_1ms = measure(specs[s], &coarse.batch, 1e-3, 1e-3);
		struct found plain = measure(specs[s], &coarse.batch, 1e-3, 0);
		assert_memory_equal(&at_1ms, &plain, sizeof plain);
		for (int k = 2; k <= 10; k += 4) {
			batch_stretch(&fine, &coarse, k);
			struct found scaled = measure(specs[s], &fine.batch, 1e-3 / k, 1e-3);
			plain = measure(specs[s], &fine.batch, 1e-3 / k, 0);
			double with = apart(&at_1ms, &scaled), without = apart(&at_1ms, &plain);
			print_message("# %s, 1/%d ms: %.2f, not scaled %.3g\n", specs[s], k, with,
				without);
			assert_true(with < 1.7);
			assert_true(k == 2 || without > 3);
			batch_free(&fine);
		}
	}
	batch_free(&coarse);
}

/* The answer of `sum` is a sum over steps: its units make up for that. */
static void sums(void **state)
{
	struct batch_room coarse, fine;
	double loss[2];

	(void)state;
	batch_make(&coarse, 3, 12, 19, 300, 5, 0.02, NULL);
	batch_stretch(&fine, &coarse, 10);
	for (int i = 0; i < 2; i++) {
		struct neap_net_options o = net_options("lif:100r,li");
		const struct neap_objective objective = {
			.size = sizeof objective, .loss = neap_loss_find("cross-entropy")};
		o.readout = NEAP_READ_SUM;
		o.dt = i ? 1e-4 : 1e-3;
		struct neap_net *net = net_make(&o);
		loss[i] = sweep_plain(net, i ? &fine.batch : &coarse.batch, &objective);
		neap_net_free(net);
	}
	print_message("# sum: loss %.3f and %.3f\n", loss[0], loss[1]);
	assert_true(fabs(loss[0] - loss[1]) < 0.2 * loss[0]);
	batch_free(&coarse);
	batch_free(&fine);
}

/* Coarser steps: no surrogate counts more than once; adlif's `a` is that of the time unit. */
static void coarse_steps(void **state)
{
	struct neap_net_options o = net_options("adlif:8,lif:8:threshold=2,li");

	(void)state;
	o.dt = 4e-3;
	struct neap_net *net = net_make(&o);
	assert_true(net->layers[0].slope == 1 && net->layers[1].slope == 1);
	assert_true(fabs(net->layers[0].a - 0.1 * expm1(-0.04) / expm1(-0.01)) < 1e-12);
	assert_true(
		fabs(net->tensors[net->layers[1].bias].unit - expm1(-0.2) / expm1(-0.05)) < 1e-12);
	neap_net_free(net);
	o.spec = "adlif:8:a=0.3,lif:8,li";
	net = net_make(&o);
	assert_true(net->layers[0].a == 0.3);
	neap_net_free(net);
	o.time_unit = 0;
	o.spec = "adlif:8,lif:8,li";
	net = net_make(&o);
	assert_true(net->layers[0].a == 0.1 && net->tensors[net->layers[1].bias].unit == 1);
	neap_net_free(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps), cmocka_unit_test(sums), cmocka_unit_test(coarse_steps)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
