/* SPDX-License-Identifier: Apache-2.0 */
/*
 * falling_loss.c: after the last epoch, a note about a run that ended before its net had learned
 * what it can: the training loss was still falling, or was when the schedule lowered the learning
 * rate. A rate near 0 stops the fall, so the last epochs of such a schedule show nothing. With many
 * updates, a note about a net that did not learn because the updates of its readout are too large.
 */
#include "train/trainer.h"
#include "sys/atomic_file.h"

#include "base/print.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FEW_UPDATES = 300 }; /* chosen: default settings need some hundreds */
enum { FEW_EPOCHS = 6 };    /* chosen: the least of which a third shows how the loss falls */
#define LEAST_FALL 0.05	    /* in an epoch; chosen: less is noise of small data sets */
#define THIRD_FALL 0.1	    /* in a third of the epochs; chosen likewise */
/*
 * The loss of the last epoch divided by that of the first one; chosen: GRUs that had too few
 * updates ended with 0.5 to 0.6, nets that had learned their task with 0.2 and less.
 */
#define UNLEARNED 0.3
/*
 * Updates of a readout `sum` are too large if the loss of the first epoch exceeds the loss of
 * guessing by this factor, and the net has not learned the training data at the end. Chosen: spoken
 * words whose accuracy increases by 10 points with --readout-gain 0.03 have factors of 1.5 to 2.3
 * (with it, 0.95) and training accuracies of 0.88 to 0.90. Nets with larger factors that learn
 * their training data gain nothing.
 */
#define OVERSHOT 1.3
#define LEARNED 0.95

/* The training loss of epoch `epoch` in metrics.csv, where earlier sessions are; NaN: none. */
static double loss_of(const char *metrics, int64_t epoch)
{
	enum { COLUMN = 3 /* train_loss */ };
	char line[32], *end;
	const char *at = metrics;

	neap__print(line, sizeof line, "\n%lld,", (long long)epoch);
	at = at ? strstr(at, line) : NULL;
	if (!at)
		return NAN;
	for (int i = 0; at && i < COLUMN; i++)
		at = (at = strpbrk(at + 1, ",\n")) && *at == ',' ? at : NULL;
	return at ? neap__read_double(at + 1, &end) : NAN;
}

/* 1: the schedule ends with a rate near 0, and the loss was falling before the rate fell. */
static int fell_midway(const struct neap__trainer *trainer, double loss, double *middle)
{
	int64_t epochs = trainer->options.epochs;
	char *metrics = NULL;
	size_t bytes;

	if (trainer->schedule->share(1) > 0.5 || epochs < FEW_EPOCHS ||
		neap__read_file(&metrics, &bytes, trainer->metrics, (size_t)1 << 24) < 0)
		return 0;
	double first = loss_of(metrics, 1), third = loss_of(metrics, epochs / 3);
	*middle = loss_of(metrics, 2 * epochs / 3);
	free(metrics);
	return *middle <= (1 - THIRD_FALL) * third && loss > UNLEARNED * first;
}

/* The training loss of the first epoch; NaN: it cannot be read. */
static double first_loss(const struct neap__trainer *trainer)
{
	char *metrics = NULL;
	size_t bytes;

	if (neap__read_file(&metrics, &bytes, trainer->metrics, (size_t)1 << 24) < 0)
		return NAN;
	double first = loss_of(metrics, 1);
	free(metrics);
	return first;
}

static void say_overshot(const struct neap__trainer *trainer, double accuracy)
{
	const struct neap_train_options *o = &trainer->options;
	double guess = log(trainer->data.info.classes), gain = o->readout_gain;

	if (trainer->silent || accuracy >= LEARNED || o->net.readout != NEAP_READ_SUM || o->from ||
		trainer->data.info.target != NEAP_TARGET_LABEL ||
		strcmp(trainer->objective.loss->name, "cross-entropy") != 0 ||
		trainer->counters.epoch < 2)
		return;
	double first = first_loss(trainer);
	if (first > OVERSHOT * guess)
		neap__trainer_say(trainer,
			"the training loss of the first epoch, %.4g, exceeds the loss of guessing, "
			"%.4g: "
			"updates of the readout's weights are too large for a sum over all spikes; "
			"try --readout-gain %g",
			first, guess, gain > 0 && gain != 1 ? gain * 0.1 : 0.03);
}

void neap__doubts_say_falling(
	const struct neap__trainer *trainer, double before, double loss, double accuracy)
{
	const struct neap__counters *c = &trainer->counters;
	const struct neap_train_options *o = &trainer->options;
	double middle;

	if (c->update >= FEW_UPDATES)
		say_overshot(trainer, accuracy);
	if (trainer->silent || c->update >= FEW_UPDATES || accuracy >= 1)
		return;
	if (c->best_epoch == c->epoch && before > 0 && loss <= (1 - LEAST_FALL) * before)
		neap__trainer_say(trainer,
			"only %lld updates, and the training loss was still falling (%.4g after "
			"%.4g in the epoch before): increase --epochs (now %d)",
			(long long)c->update, loss, before, o->epochs);
	else if (3 * c->best_epoch > 2 * c->epoch && fell_midway(trainer, loss, &middle))
		neap__trainer_say(trainer,
			"only %lld updates, and the training loss was still falling (%.4g in epoch "
			"%d) when --schedule %s had lowered the learning rate: increase --epochs "
			"(now %d), decrease --batch (now %d), or pass --schedule constant",
			(long long)c->update, middle, 2 * o->epochs / 3, o->schedule, o->epochs,
			o->batch);
}
