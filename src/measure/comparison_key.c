/* SPDX-License-Identifier: Apache-2.0 */
/* comparison_key.c: a hash of all that the gradients of a batch depend on. */
#include "measure/comparison.h"
#include "base/print.h"

#include <string.h>
#include <xxhash.h>

static uint64_t text(uint64_t key, const char *name)
{
	return name ? XXH3_64bits_withSeed(name, strlen(name), key) : key;
}

/* The weights stand for the net's shape and seed; the data set's name stands for its events. */
uint64_t neap__comparison_key(const struct neap__comparison *c)
{
	const struct neap_compare_options *o = c->options;
	const struct neap_net_options *net = &o->net;
	const struct neap_batch *batch = c->one.batch;
	struct neap_param param;
	char rest[600];
	uint64_t key = text(text(text(1, o->data), o->loss), neap_net_spec(c->one.net));

	for (int i = 0; i < neap_net_params(c->one.net); i++)
		if (neap_net_param(c->one.net, i, &param) == 0)
			key = XXH3_64bits_withSeed(param.data,
				(size_t)param.count * (param.precision == NEAP_DOUBLE
								      ? sizeof(double)
								      : sizeof(float)),
				key);
	for (int b = 0; b < batch->size; b++) {
		const struct neap_sequence *s = &batch->sequences[b];
		const int64_t row[] = {s->index, s->length, s->label};
		key = XXH3_64bits_withSeed(row, sizeof row, key);
	}
	neap__print(rest, sizeof rest, "%a %a %a %a %a %a %a %a %a %a %d %d %d %d %d %d %d %d",
		net->dt, net->tau, net->tau_out, net->threshold, net->reset_value, net->width,
		net->height, net->support, o->rates.upper, o->rates.lower, (int)net->reset,
		net->detach, (int)net->surrogate, net->euler, net->delay, (int)net->readout,
		net->group, net->smooth);
	key = text(key, rest);
	neap__print(rest, sizeof rest, "%a %a %a %a %lld", o->rates.upper_weight,
		o->rates.lower_weight, o->rates.l1, o->rates.l2, (long long)o->max_steps);
	key = text(key, rest);
	if (net->time_unit > 0 && net->time_unit != net->dt) { /* 1 ms: as earlier versions */
		neap__print(rest, sizeof rest, "%a", net->time_unit);
		key = text(key, rest);
	}
	if (net->math != NEAP_MATH_EXACT)
		key = text(key, net->math == NEAP_MATH_BF16 ? "bf16" : "tf32x3");
	if (net->products != NEAP_CHAINS)
		key = text(key, "tiles");
	if (net->precision == NEAP_BF16) /* parameters have as many bytes as floats */
		key = text(key, "precision bf16");
	return key;
}
