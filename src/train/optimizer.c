/* SPDX-License-Identifier: Apache-2.0 */
/* optimizer.c: the table of rules, the moments of a net's tensors, one update of them all. */
#include "train/optimizer.h"
#include <neap/train.h>
#include "nn/batch/norm_sums.h"
#include "nn/core/net_state.h"
#include "nn/core/on_device.h"
#include "base/fail.h"
#include "base/subnormals.h"
#include "base/text.h"
#include "sys/pool.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const struct neap__rule *const rules[] = {
#define NEAP__X(rule) &rule,
	NEAP__RULE_TABLE(NEAP__X)
#undef NEAP__X
};
enum { RULES = sizeof rules / sizeof rules[0] };

const char *neap_optimizer_name(int index)
{
	return index >= 0 && index < RULES ? rules[index]->name : NULL;
}

const struct neap__rule *neap__rule_find(const char *name)
{
	char known[NEAP__NAMES_TEXT];
	for (int i = 0; i < RULES; i++)
		if (strcmp(rules[i]->name, name) == 0)
			return rules[i];
	neap__fail(NEAP_EUSAGE, "--optimizer: unknown optimizer '%s'; choose one of %s", name,
		neap__names_text(known, neap_optimizer_name));
	return NULL;
}

struct neap__tensor_part neap__optimizer_part(
	const struct neap__optimizer *optimizer, const struct neap_net *net, int tensor)
{
	size_t begin = net->tensors[tensor].offset;
	size_t end = begin + (size_t)net->tensors[tensor].count;
	size_t first = optimizer->from > begin ? optimizer->from : begin;
	size_t last = optimizer->to < end ? optimizer->to : end;

	if (first >= last)
		return (struct neap__tensor_part){0, 0};
	return (struct neap__tensor_part){(int64_t)(first - begin), (int64_t)(last - first)};
}

static int make_moments(struct neap__optimizer *optimizer, const struct neap_net *net)
{
	const struct neap__rule *rule = optimizer->rule;

	optimizer->tensors = neap_net_params(net);
	optimizer->moment = calloc((size_t)optimizer->tensors, sizeof *optimizer->moment);
	if (!optimizer->moment)
		goto out_of_memory;
	for (int i = 0; i < optimizer->tensors; i++) {
		struct neap__tensor_part part = neap__optimizer_part(optimizer, net, i);
		if (neap_net_frozen(net, i))
			continue;
		for (int m = 0; m < NEAP__MOMENTS_MAX && rule->moments[m]; m++) {
			optimizer->moment[i][m] = calloc((size_t)part.count + 1, sizeof(double));
			if (!optimizer->moment[i][m])
				goto out_of_memory;
			optimizer->bytes += (uint64_t)part.count * sizeof(double);
		}
	}
	return 0;
out_of_memory:
	neap__optimizer_fini(optimizer);
	return neap__fail_errno(ENOMEM, "moments of the optimizer");
}

int neap__optimizer_init(struct neap__optimizer *optimizer, const struct neap__rule *rule,
	const struct neap__rule_settings *settings, const struct neap_net *net)
{
	*optimizer = (struct neap__optimizer){
		.rule = rule, .settings = *settings, .from = net->slice_from, .to = net->slice_to};
	return make_moments(optimizer, net);
}

int neap__optimizer_init_all(struct neap__optimizer *optimizer, const struct neap__rule *rule,
	const struct neap__rule_settings *settings, const struct neap_net *net)
{
	*optimizer =
		(struct neap__optimizer){.rule = rule, .settings = *settings, .to = net->elements};
	return make_moments(optimizer, net);
}

uint64_t neap__optimizer_all_bytes(
	const struct neap__optimizer *optimizer, const struct neap_net *net)
{
	uint64_t bytes = 0;

	for (int i = 0; i < net->ntensors; i++)
		for (int m = 0; m < NEAP__MOMENTS_MAX && optimizer->rule->moments[m]; m++)
			if (!net->tensors[i].is_frozen)
				bytes += (uint64_t)net->tensors[i].count * sizeof(double);
	return bytes;
}

void neap__optimizer_fini(struct neap__optimizer *optimizer)
{
	for (int i = 0; optimizer->moment && i < optimizer->tensors; i++)
		for (int m = 0; m < NEAP__MOMENTS_MAX; m++)
			free(optimizer->moment[i][m]);
	free(optimizer->moment);
	*optimizer = (struct neap__optimizer){0};
}

/* Moments of the rule. */
static int moments_of(const struct neap__rule *rule)
{
	int count = 0;
	while (count < NEAP__MOMENTS_MAX && rule->moments[count])
		count++;
	return count;
}

int neap__optimizer_keep(const struct neap__optimizer *optimizer, struct neap_net *net)
{
	return neap__on_device_keep(net, moments_of(optimizer->rule));
}

static int move_moments(const struct neap__optimizer *optimizer, struct neap_net *net, int send)
{
	if (!neap__on_device_keeps(net))
		return 0;
	for (int i = 0; i < optimizer->tensors; i++)
		for (int m = 0; m < moments_of(optimizer->rule); m++)
			if (optimizer->moment[i][m])
				NEAP_TRY(neap__on_device_moment(
					net, i, m, optimizer->moment[i][m], send));
	return 0;
}

int neap__optimizer_fetch(const struct neap__optimizer *optimizer, struct neap_net *net)
{
	return move_moments(optimizer, net, 0);
}

int neap__optimizer_send(const struct neap__optimizer *optimizer, struct neap_net *net)
{
	return move_moments(optimizer, net, 1);
}

static int step_on_device(
	const struct neap__optimizer *optimizer, struct neap_net *net, double rate, int64_t update)
{
	const struct neap__rule_settings *s = &optimizer->settings;
	int finite = 1;

	NEAP_TRY(neap__on_device_update(net,
		(struct neap__update){.rule = optimizer->rule->on_device,
			.rate = rate,
			.weight_decay = s->weight_decay,
			.momentum = s->momentum,
			.beta1 = s->beta1,
			.beta2 = s->beta2,
			.epsilon = s->epsilon,
			.first = neap__bias_correction(s->beta1, update),
			.second = neap__bias_correction(s->beta2, update)},
		&finite));
	return finite;
}

enum { PIECE = 4096 }; /* numbers that a thread updates at a time: 100 KiB with their moments */

/* The sum of all x - x is 0 unless some x is NaN or infinite. */
static int all_finite(const struct neap__rule_step *step)
{
	double sum = 0;
	for (int64_t i = 0; i < step->count; i++) {
		double x = neap__element(step->data, step->precision, i);
		sum += x - x;
	}
	return sum == 0;
}

/* The update of a tensor by all threads, in pieces: each number is a function of its own alone. */
struct tensor_update {
	const struct neap__rule *rule;
	struct neap__rule_step step; /* of the whole tensor */
	size_t real;		     /* bytes of a number */
	atomic_int finite;
};

static void update_piece(void *arg, int item, int thread)
{
	struct tensor_update *update = arg;
	struct neap__rule_step piece = update->step;
	int64_t first = (int64_t)item * PIECE, left = piece.count - first;

	(void)thread;
	piece.count = left < PIECE ? left : PIECE;
	piece.data = (char *)piece.data + (size_t)first * update->real;
	piece.grad += first;
	for (int m = 0; m < NEAP__MOMENTS_MAX; m++)
		piece.moment[m] = piece.moment[m] ? piece.moment[m] + first : NULL;
	update->rule->step(&piece);
	if (!all_finite(&piece))
		atomic_store_explicit(&update->finite, 0, memory_order_relaxed);
}

int neap__optimizer_step(
	struct neap__optimizer *optimizer, struct neap_net *net, double rate, int64_t update)
{
	if (neap__on_device_keeps(net))
		return step_on_device(optimizer, net, rate, update);
	unsigned mode = neap__subnormals_off(); /* moments of gradients that are 0 decay */
	int finite = 1;

	for (int i = 0; i < optimizer->tensors; i++) {
		struct neap_param param;
		struct neap__tensor_part part = neap__optimizer_part(optimizer, net, i);
		if (neap_net_param(net, i, &param) < 0 || neap_net_frozen(net, i) || !part.count)
			continue;
		struct neap__rule_settings settings = optimizer->settings;
		if (param.is_leak)
			settings.weight_decay = 0;
		struct tensor_update of = {.rule = optimizer->rule, .real = net->ops->real};
		atomic_init(&of.finite, 1);
		of.step = (struct neap__rule_step){.count = part.count,
			.data = (char *)param.data + (size_t)part.first * net->ops->real,
			.precision = param.precision,
			.grad = param.grad + part.first,
			.rate = rate,
			.unit = net->tensors[i].unit,
			.update = update,
			.settings = &settings};
		memcpy(of.step.moment, optimizer->moment[i], sizeof of.step.moment);
		neap__thread_pool_run(
			net->pool, (int)((part.count + PIECE - 1) / PIECE), update_piece, &of);
		finite &= atomic_load_explicit(&of.finite, memory_order_relaxed);
	}
	neap__norm_move(net);
	for (int l = 0; l < net->nlayers; l++) /* delays stay in their range */
		net->ops->delays(net, &net->layers[l]);
	neap__subnormals_restore(mode);
	return finite;
}
