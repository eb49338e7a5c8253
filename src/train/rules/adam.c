/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adam.c: Kingma and Ba 2015, algorithm 1. Weight decay, where asked for, is an
 * L2 term in the gradient (adamw.c keeps it apart).
 */
#include "train/optimizer.h"

#include <math.h>

static void adam_step(const struct neap__rule_step *s)
{
	const struct neap__rule_settings *o = s->settings;
	double *m = s->moment[0], *v = s->moment[1];
	double first = neap__bias_correction(o->beta1, s->update);
	double second = neap__bias_correction(o->beta2, s->update);

	for (int64_t i = 0; i < s->count; i++) {
		double w = neap__element(s->data, s->precision, i);
		double g = s->grad[i] * s->unit + o->weight_decay * (w / s->unit);
		m[i] = o->beta1 * m[i] + (1 - o->beta1) * g;
		v[i] = o->beta2 * v[i] + (1 - o->beta2) * g * g;
		w -= s->rate * s->unit * (m[i] * first) / (sqrt(v[i] * second) + o->epsilon);
		neap__element_set(s->data, s->precision, i, w);
	}
}

const struct neap__rule neap__adam = {"adam", {"first", "second"}, adam_step, NEAP__UPDATE_ADAM};
