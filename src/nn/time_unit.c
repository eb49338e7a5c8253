/* SPDX-License-Identifier: Apache-2.0 */
/* time_unit.c: units of tensors, surrogates and rates at steps of dt (time_unit.h). */
#include "nn/time_unit.h"
#include "nn/core/cell.h"

#include <math.h>

/* dt in units of time; 1 where no unit is said. */
static double steps_of(const struct neap_net_options *o)
{
	return o->time_unit > 0 ? o->dt / o->time_unit : 1;
}

/* 1 - decay */
static double rest(const struct neap_net_options *o, double time, double tau)
{
	double left = time / tau;
	return o->euler ? fmin(left, 1) : -expm1(-left);
}

double neap__unit_leak(const struct neap_net_options *o, double tau)
{
	if (!(o->time_unit > 0) || o->time_unit == o->dt)
		return 1;
	return rest(o, o->dt, tau) / rest(o, o->time_unit, tau);
}

struct neap__tensor_units neap__tensor_units(
	const struct neap_net *net, const struct neap__layer *layer)
{
	const struct neap_net_options *o = &net->options;
	int traits = layer->cell->traits;
	struct neap__tensor_units units = {1, 1, 1};

	if (traits & NEAP__OSCILLATES) /* what arrives is multiplied by dt */
		units.events = 1 / steps_of(o);
	if (!(traits & NEAP__HAS_LEAK))
		return units;
	double leak = neap__unit_leak(o, layer->tau);
	if (traits & (NEAP__HAS_COUPLING | NEAP__HAS_SCALED_COUPLING | NEAP__READOUT))
		units.events = 1 / leak;
	else
		units.numbers = units.bias = leak;
	if (traits & NEAP__HAS_SYNAPSE) {
		double synapse = neap__unit_leak(o, layer->tau_syn);
		units.events *= synapse;
		units.numbers *= synapse;
		units.bias *= synapse;
	}
	if (layer->cell->readout && o->readout == NEAP_READ_SUM) {
		units.events *= steps_of(o);
		units.numbers *= steps_of(o);
		units.bias *= steps_of(o);
	}
	return units;
}

double neap__unit_slope(const struct neap_net *net, const struct neap__layer *layer)
{
	int knows_time = layer->cell->traits & (NEAP__HAS_LEAK | NEAP__OSCILLATES);

	/* The spikes of a smooth net are the integral of the whole surrogate. */
	return net->options.smooth || !knows_time ? 1 : fmin(steps_of(&net->options), 1);
}

struct neap_rate_penalty neap__unit_penalty(
	const struct neap_net_options *o, const struct neap_rate_penalty *said)
{
	double f = o->time_unit > 0 ? o->dt / 1e-3 : 1;

	return (struct neap_rate_penalty){.upper = said->upper * f,
		.upper_weight = said->upper_weight / (f * f),
		.lower = said->lower * f,
		.lower_weight = said->lower_weight / (f * f),
		.l1 = said->l1 / f,
		.l2 = said->l2 / (f * f)};
}
