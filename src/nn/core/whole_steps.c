/* SPDX-License-Identifier: Apache-2.0 */
/* whole_steps.c: which layers make a step at once, and their step (whole_steps.h). */
#include "nn/core/whole_steps.h"

enum {
	/* Mean uses of a row from which on its copy for all samples pays (kern/row_adds.c). */
	NEAR_USES = 5,
	/*
	 * Rows that a sample adds from a source on average, at most, where the weights exceed what
	 * stays in a second-level cache together with other data: more come in blocks
	 * (kern/row_blocks.h).
	 */
	FEW_ROWS = 16,
	NEAR_BYTES = 512 * 1024
};

/* What arrives from a source, or with -1 from the layer itself. */
static struct neap__list arriving(const struct neap__at *at, int source)
{
	const struct neap_net *net = at->net;

	if (source < 0)
		return *at->prev;
	const struct neap__layer_source *from = &at->layer->source[source];
	if (from->layer < 0)
		return neap__input_events(net, at->sample, at->t);
	return *neap__list_of(
		at->group->spike_lists[(at->t - from->late) & 1], net, at->slot, from->layer);
}

/* Whether products with a tensor always add the rows of a list. */
static int has_rows(const struct neap_net *net, int tensor)
{
	const struct neap__param *t = &net->tensors[tensor];

	return neap__has_plain_rows(t) && !t->planes && !net->strips[tensor];
}

static int sends_spikes(const struct neap_net *net, const struct neap__layer *layer, int source)
{
	const struct neap__layer *below = neap__source_of(layer, source);

	if (layer->source[source].is_delayed)
		return 0;
	return below ? below->outputs == NEAP__OUTPUT_SPIKES && !below->smooth
		     : !net->options.values;
}

/*
 * Whether samples share so few rows of a source that each may read its own. Of larger weights, the
 * kernel saves less than listing the support strip by strip costs (measured with 512 units: a step
 * without a tape takes 0.94 of the time, one with a tape 1.02).
 */
static int shares_few(const struct neap__group *group, int alive, int source, int64_t rows,
	int64_t columns, int tapes)
{
	int is_near = rows * columns * (int64_t)sizeof(real) <= NEAR_BYTES;
	int64_t uses = 0;

	for (int i = 0; i < alive; i++)
		uses += arriving(&group->at[i], source).count;
	return uses < NEAR_USES * rows && (is_near || (!tapes && uses <= FEW_ROWS * alive));
}

int neap__whole_begin(const struct neap_net *net, const struct neap__group *group, int alive,
	int tapes, struct neap__leak_step *step)
{
	const struct neap__layer *layer = group->at->layer;
	const struct neap__cell_code *code = neap__code(layer);
	int sources = layer->nsources;

	if (!code->leaks || !net->kernels->leak_step || net->drops || layer->pooled ||
		neap__is_apart(layer) || sources + layer->is_recurrent > NEAP__STEP_SOURCES ||
		!has_rows(net, layer->weight) ||
		(layer->is_recurrent && !has_rows(net, layer->recurrent)) ||
		!code->leaks(layer, step))
		return 0;
	for (int k = 0; k < sources; k++) {
		const struct neap__layer *below = neap__source_of(layer, k);
		if (!sends_spikes(net, layer, k) ||
			!shares_few(group, alive, k, below ? below->n : net->options.inputs,
				layer->n, tapes))
			return 0;
		step->source[k].w = neap__weights(net, layer->weight, layer->source[k].row).w;
	}
	if (layer->is_recurrent) {
		if (!shares_few(group, alive, -1, layer->n, layer->n, tapes))
			return 0;
		step->source[sources++].w = neap__weights(net, layer->recurrent, 0).w;
	}
	step->own = layer->is_recurrent ? sources - 1 : -1;
	step->n = layer->n;
	step->sources = sources;
	step->bias = neap__biases(net, layer);
	return 1;
}

size_t neap__whole_step(
	struct neap__at *at, const struct neap__leak_step *begun, unsigned char *tape)
{
	const struct neap__layer *layer = at->layer;
	struct neap__leak_step step;
	int sources = layer->nsources;

	step.n = begun->n;
	step.sources = begun->sources;
	step.bias = begun->bias;
	step.beta = begun->beta;
	step.amount = begun->amount;
	step.theta = begun->theta;
	step.cut = begun->cut;
	for (int k = 0; k < begun->sources; k++) {
		struct neap__list list = arriving(at, k < sources ? k : -1);
		step.source[k].w = begun->source[k].w;
		step.source[k].id = list.id;
		step.source[k].count = list.count;
	}
	step.u = (real *)(void *)(at->state + layer->state_at);
	step.own = at->t > 0 ? begun->own : -1;
	step.nspiked = at->t > 0 ? at->prev->count : 0;
	step.spiked = at->prev->id;
	step.id = at->now->room;
	step.near = tape ? at->near_now->room : NULL;
	step.value = at->group->scratch[1];
	at->now->count = at->net->kernels->leak_step(&step);
	if (tape)
		at->near_now->count = step.nnear;
	return neap__code(layer)->stepped(at, step.value, tape);
}
