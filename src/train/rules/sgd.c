/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sgd.c: m <- momentum m + g + decay w; w <- w - rate m (Sutskever, Martens,
 * Dahl, Hinton 2013, in the form where the rate stands outside the moment).
 */
#include "train/optimizer.h"

static void sgd_step(const struct neap__rule_step *s)
{
	const struct neap__rule_settings *o = s->settings;
	double *m = s->moment[0];

	for (int64_t i = 0; i < s->count; i++) {
		double w = neap__element(s->data, s->precision, i);
		m[i] = o->momentum * m[i] +
		       (s->grad[i] * s->unit + o->weight_decay * (w / s->unit));
		neap__element_set(s->data, s->precision, i, w - s->rate * s->unit * m[i]);
	}
}

const struct neap__rule neap__sgd = {"sgd", {"momentum"}, sgd_step, NEAP__UPDATE_SGD};
