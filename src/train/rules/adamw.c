/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adamw.c: Adam with weight decay outside the moments (Loshchilov and Hutter
 * 2019, algorithm 2): w <- w - rate (m^/(sqrt v^ + eps) + decay w).
 */
#include "train/optimizer.h"

#include <math.h>

static void adamw_step(const struct neap__rule_step *s)
{
	const struct neap__rule_settings *o = s->settings;
	double *m = s->moment[0], *v = s->moment[1];
	double first = neap__bias_correction(o->beta1, s->update);
	double second = neap__bias_correction(o->beta2, s->update);

	for (int64_t i = 0; i < s->count; i++) {
		double w = neap__element(s->data, s->precision, i), g = s->grad[i] * s->unit;
		m[i] = o->beta1 * m[i] + (1 - o->beta1) * g;
		v[i] = o->beta2 * v[i] + (1 - o->beta2) * g * g;
		double move = (m[i] * first) / (sqrt(v[i] * second) + o->epsilon);
		neap__element_set(s->data, s->precision, i,
			w - s->rate * (s->unit * move + o->weight_decay * w));
	}
}

const struct neap__rule neap__adamw = {
	"adamw", {"first", "second"}, adamw_step, NEAP__UPDATE_ADAMW};
