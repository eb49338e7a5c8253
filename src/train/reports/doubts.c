/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doubts.c: looks at data and options for what is likely a mistake, and says it in a line each,
 * before time is spent on it. None of it is an error.
 */
#include "train/trainer.h"
#include "data/dataset.h"
#include "base/print.h"

#include <stdlib.h>
#include <string.h>

/* Above so many classes, or where a class has less than two samples, numbers may be meant. */
enum { MANY_CLASSES = 1000, SOME_CLASSES = 32, NAMED_CLASSES = 8, NAMES_ROOM = 300 };

/* 1: a penalty on rates is asked for, and no layer spikes. */
static int penalty_is_idle(const struct neap__trainer *trainer)
{
	const struct neap_rate_penalty *p = &trainer->options.rates;

	return !neap__net_spikes(trainer->net) &&
	       (p->upper_weight != 0 || p->lower_weight != 0 || p->l1 != 0 || p->l2 != 0);
}

static void say_warmup(const struct neap__trainer *trainer)
{
	int64_t updates = neap_loader_batches(trainer->data.loader) * trainer->options.epochs;

	if (updates < trainer->options.warmup)
		neap__trainer_say(trainer,
			"the run has %lld updates, fewer than --warmup %lld: the learning rate "
			"stays below --lr",
			(long long)updates, (long long)trainer->options.warmup);
}

static void say_numbers(const struct neap__trainer *trainer)
{
	const struct neap_dataset_info *info = &trainer->data.info;

	if (info->target == NEAP_TARGET_NUMBERS && trainer->data.set->ops->values &&
		info->classes > 1 && info->classes == trainer->data.longest)
		neap__trainer_say(trainer,
			"y has %d numbers a sample, as many as there are steps; a number a step "
			"has the shape (samples, steps, 1)",
			info->classes);
}

/* Whole numbers are classes, and without a file's names of classes nothing says so. */
static void say_many(const struct neap__trainer *trainer)
{
	const struct neap__data *d = &trainer->data;
	int classes = d->info.classes;

	if (!d->set->ops->values || d->set->class_names ||
		!(classes > MANY_CLASSES || (classes >= SOME_CLASSES && classes > d->nfirst / 2)))
		return;
	neap__trainer_say(trainer,
		"y has %d classes for %lld samples; where its whole numbers are quantities, store "
		"y "
		"as reals (neap encode: --numbers), and the loss is mse",
		classes, (long long)d->nfirst);
}

/* Names classes that no sample of the training part has. */
static void say_absent(const struct neap__trainer *trainer)
{
	const struct neap__data *d = &trainer->data;
	int classes = d->info.classes, absent = 0, named = 0;
	unsigned char *seen = calloc((size_t)classes + 1, 1);
	char names[NAMES_ROOM] = "";
	size_t n = 0;

	for (int64_t i = 0; seen && i < d->nfirst; i++) {
		int label = neap_dataset_label(d->set, d->first ? d->first[i] : i);
		if (label >= 0 && label < classes)
			seen[label] = 1;
	}
	for (int c = 0; seen && c < classes; c++) {
		const char *name = neap_dataset_class_name(d->set, c);
		if (seen[c])
			continue;
		absent++;
		if (named == NAMED_CLASSES)
			continue;
		named++;
		n += (size_t)neap__print(names + n, NAMES_ROOM - n, name ? "%s%d '%.20s'" : "%s%d",
			n ? ", " : "", c, name);
	}
	free(seen);
	if (absent == 1)
		neap__trainer_say(trainer, "class %s has no sample to train on", names);
	else if (absent > 1)
		neap__trainer_say(trainer, "%d of %d classes have no sample to train on: %s%s",
			absent, classes, names, absent > named ? ", ..." : "");
}

void neap__doubts_say(const struct neap__trainer *trainer)
{
	if (penalty_is_idle(trainer))
		neap__trainer_say(trainer, "no layer spikes: there is no penalty on rates");
	say_warmup(trainer);
	say_numbers(trainer);
	if (trainer->data.info.target != NEAP_TARGET_LABEL)
		return;
	say_many(trainer);
	say_absent(trainer);
}
