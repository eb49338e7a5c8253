/* SPDX-License-Identifier: Apache-2.0 */
/* one_batch.c: opens data set, loader and net, and begins the batch. */
#include "data/coded_rows.h"
#include "data/dataset.h"
#include "data/loader_ahead.h"
#include "measure/one_batch.h"
#include "measure/process_memory.h"
#include "measure/target_fit.h"
#include "data/row_reading.h"
#include "nn/time_unit.h"
#include "base/fail.h"

/* Channels and classes of the net: those of the data where none are said. 0 or NEAP_EUSAGE. */
static int fit_net(struct neap_net_options *net, const struct neap_dataset_info *info)
{
	int numbers = info->target == NEAP_TARGET_NUMBERS || info->target == NEAP_TARGET_SERIES;

	if (!net->inputs)
		net->inputs = info->inputs;
	if (!net->classes)
		net->classes = info->classes;
	if (net->inputs < info->inputs || net->classes < info->classes ||
		(info->values && net->inputs != info->inputs) ||
		(numbers && net->classes != info->classes))
		return neap__fail(NEAP_EUSAGE,
			"%s has %d %s and %d %s, but --channels and --classes give %d and %d. They "
			"can raise the number of channels and classes only; remove them",
			info->name, info->inputs, info->values ? "features" : "channels",
			info->classes, numbers ? "outputs" : "classes", net->inputs, net->classes);
	return 0;
}

/* Opens the data set, with the targets and the coding that are asked for. */
static int open_set(struct neap__one_batch *one, const struct neap__one_batch_source *source)
{
	struct neap__coding coding;

	NEAP_TRY(neap_dataset_open(&one->set, source->data));
	if (source->next)
		NEAP_TRY(neap__rows_next(one->set));
	NEAP_TRY(neap__dataset_has_labels(one->set));
	NEAP_TRY(neap__coding_parse(&coding, source->encode));
	neap__coding_seed(&coding, source->seed);
	NEAP_TRY(neap__rows_encode(one->set, &coding, source->max_steps));
	return neap__dataset_channels(one->set, source->net->inputs);
}

/* Loads the batch of the shuffled data that is asked for. */
static int load_batch(struct neap__one_batch *one, const struct neap__one_batch_source *source)
{
	struct neap_loader_options lo = {.size = sizeof lo,
		.batch = source->batch,
		.dt = source->net->dt,
		.steps = source->max_steps,
		.shuffle = 1,
		.seed = source->seed};

	NEAP_TRY(neap__process_memory_loader(&one->loader, one->set, lo, source->sweep));
	int64_t batches = neap_loader_batches(one->loader);
	if (source->first >= batches)
		return neap__fail(NEAP_EUSAGE,
			"--first: %s has no batch %lld; its %lld batch%s counted from 0",
			source->data, (long long)source->first, (long long)batches,
			batches == 1 ? " is" : "es are");
	NEAP_TRY(neap_loader_start(one->loader, 0, source->first));
	int rc = neap_loader_next(one->loader, &one->batch);
	if (rc <= 0)
		return rc < 0 ? rc : neap__fail(NEAP_EUSAGE, "%s is empty", source->data);
	neap__loader_rest(one->loader);
	return 0;
}

int neap__one_batch_open(struct neap__one_batch *one, const struct neap__one_batch_source *source)
{
	struct neap_dataset_info info = {.size = sizeof info};
	struct neap_net_options net = *source->net;
	const char *loss = source->loss;
	char changed[NEAP__FIT_LINE];

	*one = (struct neap__one_batch){0};
	NEAP_TRY(open_set(one, source));
	neap_dataset_info(one->set, &info);
	neap__spec_fit(&net, one->set);
	NEAP_TRY(neap__target_fit(&net, &loss, &info, changed));
	if (one->set->ops->values && !source->no_normalise)
		NEAP_TRY(neap__rows_normalise(one->set, NULL, 0));
	NEAP_TRY(load_batch(one, source));
	NEAP_TRY(fit_net(&net, &info));
	char shape[NEAP__SHAPE_TEXT];
	neap__shape_fit(&net, one->set, shape);
	one->wide = *one->batch;
	one->wide.inputs = net.inputs;
	one->batch = &one->wide;
	NEAP_TRY(neap_net_create(&one->net, &net));
	one->objective.size = sizeof one->objective;
	one->objective.loss = neap_loss_find(loss);
	if (!one->objective.loss)
		return neap__fail(NEAP_EUSAGE,
			"--loss: unknown loss '%s'; 'neap help train' lists them", source->loss);
	one->objective.rates = neap__unit_penalty(source->net, &source->rates);
	one->objective.dropout = 1; /* as in the first epoch */
	one->objective.readout_once = 1;
	return neap_net_begin(one->net, one->batch, &one->objective);
}

void neap__one_batch_close(struct neap__one_batch *one)
{
	neap_net_free(one->net);
	neap_loader_close(one->loader);
	neap_dataset_close(one->set);
	*one = (struct neap__one_batch){0};
}
