/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_checks.c: the checks of a batch (batch_checks.h). The step functions index weights with the
 * events of a sample and outputs with its label, and do not check them again.
 */
#include "nn/batch/batch_checks.h"
#include "nn/batch/ports.h"
#include "nn/core/net_state.h"
#include "base/fail.h"

#include <math.h>

static int is_of_steps(const struct neap_batch *batch)
{
	return batch->target == NEAP_TARGET_LABELS || batch->target == NEAP_TARGET_SERIES;
}

static int check_values(
	const struct neap_net *net, const struct neap_sequence *s, const float *values)
{
	size_t inputs = (size_t)net->options.inputs, count = inputs * (size_t)s->length;

	for (size_t i = 0; i < count; i++)
		if (!isfinite(values[i]))
			return neap__fail(NEAP_EUSAGE,
				"sample %lld, step %zu: input %zu is not a finite number",
				(long long)s->index, i / inputs, i % inputs);
	return 0;
}

static int check_events(const struct neap_net *net, const struct neap_sequence *s)
{
	long long index = (long long)s->index;

	for (int64_t t = 0; t < s->length; t++) {
		if (s->start[t] > s->start[t + 1])
			return neap__fail(NEAP_EUSAGE,
				"sample %lld: events of step %lld end before they start", index,
				(long long)t);
		for (uint32_t e = s->start[t]; e < s->start[t + 1]; e++)
			if (s->unit[e] >= net->options.inputs ||
				(e > s->start[t] && s->unit[e] <= s->unit[e - 1]))
				return neap__fail(NEAP_EUSAGE,
					"sample %lld, step %lld: units must ascend below %d; found "
					"%d",
					index, (long long)t, net->options.inputs, s->unit[e]);
	}
	return 0;
}

/*
 * Targets of steps: labels within the classes, and no more steps that count than the sample says; a
 * batch that is cut has less.
 */
static int check_steps(
	const struct neap_net *net, const struct neap_batch *batch, const struct neap_sequence *s)
{
	int classes = net->options.classes;
	int64_t counted = 0;

	for (int64_t t = 0; t < s->length && batch->target == NEAP_TARGET_LABELS; t++) {
		if (s->labels[t] >= classes)
			return neap__fail(NEAP_EUSAGE,
				"sample %lld, step %lld has label %d; the network has %d classes",
				(long long)s->index, (long long)t, s->labels[t], classes);
		counted += s->labels[t] >= 0;
	}
	for (int64_t t = 0; t < s->length && batch->target == NEAP_TARGET_SERIES; t++)
		counted += !isnan(s->series[t * classes]);
	return counted <= s->counted
		       ? 0
		       : neap__fail(NEAP_EUSAGE,
				 "sample %lld has %lld steps with a target, more than %lld",
				 (long long)s->index, (long long)counted, (long long)s->counted);
}

static int check_sample(
	const struct neap_net *net, const struct neap_batch *batch, const struct neap_sequence *s)
{
	long long index = (long long)s->index;

	if (s->length < 0 || s->length > batch->steps)
		return neap__fail(NEAP_EUSAGE, "sample %lld has %lld steps, but its batch has %lld",
			index, (long long)s->length, (long long)batch->steps);
	if (s->label >= net->options.classes)
		return neap__fail(NEAP_EUSAGE,
			"sample %lld has label %d; the network has %d classes", index, s->label,
			net->options.classes);
	if (s->label < 0 && !s->target && net->objective.loss && !is_of_steps(batch))
		return neap__fail(NEAP_EUSAGE, "sample %lld has neither label nor target", index);
	if (batch->windows)
		return 0; /* windows check their inputs when they read them */
	if (is_of_steps(batch))
		NEAP_TRY(check_steps(net, batch, s));
	if (net->ports.inputs)
		return 0; /* neap__ports_check checks them */
	return batch->values ? check_values(net, s, s->values) : check_events(net, s);
}

/* Whether the batch's inputs and targets are of the kinds that net and loss take. */
static int check_kinds(const struct neap_net *net, const struct neap_batch *batch)
{
	const struct neap_loss *loss = net->objective.loss;
	int numbers = batch->target == NEAP_TARGET_NUMBERS || batch->target == NEAP_TARGET_SERIES;

	if ((batch->values != 0) != (net->options.values != 0))
		return neap__fail(NEAP_EUSAGE, "the inputs are %s, but the network takes %s",
			batch->values ? "numbers" : "spikes",
			net->options.values ? "numbers" : "spikes");
	if ((unsigned)batch->target >= NEAP_TARGETS)
		return neap__fail(NEAP_EUSAGE, "a batch with targets of kind %d", batch->target);
	if (loss && is_of_steps(batch) && net->options.readout != NEAP_READ_STEP)
		return neap__fail(NEAP_EUSAGE,
			"the data has a target per step, which requires --readout step");
	if (loss && numbers && !loss->takes_numbers)
		return neap__fail(NEAP_EUSAGE,
			"the targets are numbers, but --loss %s requires classes; use mse",
			loss->name);
	return 0;
}

int neap__batch_check(const struct neap_net *net, const struct neap_batch *batch)
{
	const struct neap_peers *peers = net->objective.peers;

	/* A rank may have no samples of a batch that others have (neap/peers.h). */
	if (!batch || batch->size < (peers ? 0 : 1) || batch->steps < 0 || batch->of < 0)
		return neap__fail(NEAP_EUSAGE, "the batch is empty");
	if (batch->inputs != net->options.inputs)
		return neap__fail(NEAP_EUSAGE, "the batch has %d inputs, but the network has %d",
			batch->inputs, net->options.inputs);
	NEAP_TRY(check_kinds(net, batch));
	for (int b = 0; b < batch->size; b++)
		NEAP_TRY(check_sample(net, batch, &batch->sequences[b]));
	return neap__has_ports(net) ? neap__ports_check(net, batch) : 0;
}
