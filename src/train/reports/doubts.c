/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doubts.c: looks at data and options for what is likely a mistake, and prints a line for each,
 * before time is spent on it; after the last epoch also for what was not learned. None of it is an
 * error.
 */
#include "train/learning_rate.h"
#include "train/trainer.h"
#include "train/evaluate.h"
#include "data/dataset.h"
#include "data/events/late_events.h"
#include "nn/core/cell.h"
#include "data/step_rows.h"
#include "data/target_units.h"
#include "base/print.h"
#include "base/quote.h"
#include "base/show.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Above so many classes, or where a class has less than two samples, numbers may be meant. */
enum { MANY_CLASSES = 1000, SOME_CLASSES = 32, NAMED_CLASSES = 8, NAMES_ROOM = 300 };
/* Numbers of so many values at most may be classes; answers that are looked at for that. */
enum { FEW_VALUES = 20, ANSWERS = 1 << 20, PIECE = 4096 };
/*
 * Features per step from which axes of x may be swapped. Chosen: the 6 to 24 channels of common
 * data sets have 100 steps and more, and few data sets of real steps have fewer than 16 features.
 */
enum { WIDE = 4, WIDE_LEAST = 16 };

/* 1: a penalty on rates other than the default is asked for, and no layer spikes. */
static int penalty_is_idle(const struct neap__trainer *trainer)
{
	const struct neap_train_options usual = NEAP_TRAIN_OPTIONS_INIT;
	const struct neap_rate_penalty *p = &trainer->options.rates;
	int upper = p->upper_weight != 0 &&
		    (p->upper_weight != usual.rates.upper_weight || p->upper != usual.rates.upper);

	return !neap__net_spikes(trainer->net) &&
	       (upper || p->lower_weight != 0 || p->l1 != 0 || p->l2 != 0);
}

static void say_warmup(const struct neap__trainer *trainer)
{
	int64_t updates = neap_loader_batches(trainer->data.loader) * trainer->options.epochs;

	if (updates < trainer->options.warmup)
		neap__trainer_say(trainer,
			"the run has %lld update%s, fewer than --warmup %lld, so the learning rate "
			"never reaches --lr. Lower --warmup, or increase --epochs",
			(long long)updates, updates == 1 ? "" : "s",
			(long long)trainer->options.warmup);
}

static void say_numbers(const struct neap__trainer *trainer)
{
	const struct neap_dataset_info *info = &trainer->data.info;

	if (info->target == NEAP_TARGET_NUMBERS && trainer->data.set->ops->values &&
		info->classes > 1 && info->classes == trainer->data.longest)
		neap__trainer_say(trainer,
			"warning: y has %d numbers per sample, as many as there are steps. If they "
			"are one number per step, store y[:, :, None]",
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
		"warning: y has %d classes for %lld samples. If its whole numbers are quantities, "
		"store real numbers, y.astype(float) (neap encode: --numbers); the loss is then "
		"mse",
		classes, (long long)d->nfirst);
}

/* Answers of the training part. */
struct answers {
	int64_t *count; /* [classes] of each class */
	int64_t all;
	int present, most; /* classes that there are; the most frequent one */
	/* Of numbers: the first different ones, and how many there are. */
	double value[FEW_VALUES + 1];
	int values, are_whole;
};

/* 1: more answers would show nothing new. */
static int are_enough(const struct answers *a)
{
	return a->all >= ANSWERS || a->values > FEW_VALUES || !a->are_whole;
}

static void add_label(struct answers *a, const struct neap__data *d, int label)
{
	if (label < 0 || label >= d->info.classes)
		return;
	a->all++;
	a->present += a->count[label]++ == 0;
	if (a->count[label] > a->count[a->most])
		a->most = label;
}

/* `number` as a batch has it, normalised and in 32 bits. */
static void add_number(struct answers *a, const struct neap__data *d, double number)
{
	const struct neap_dataset *set = d->set;
	double whole, x = number;
	int i = 0;

	if (isnan(number)) /* a step that is masked */
		return;
	if (set->target_mean)
		x = number * set->target_deviation[0] + set->target_mean[0];
	whole = round(x) + 0.0; /* no -0 */
	a->all++;
	a->are_whole &= fabs(x - whole) < 1e-3 && fabs(whole) < MANY_CLASSES;
	while (i < a->values && a->value[i] != whole)
		i++;
	if (i == a->values && i <= FEW_VALUES)
		a->value[a->values++] = whole;
}

/* Adds the answers to the steps of a sample, a piece at a time; what cannot be read is left out. */
static void add_steps(struct answers *a, const struct neap__data *d, int64_t index)
{
	int64_t length = neap__steps_of(d->set, index, 0), n;
	int are_labels = d->info.target == NEAP_TARGET_LABELS;
	union {
		int32_t label[PIECE];
		float number[PIECE];
	} piece;

	for (int64_t t = 0; t < length && !are_enough(a); t += n) {
		n = length - t < PIECE ? length - t : PIECE;
		if (neap__step_targets(d->set, index, t, t + n, are_labels ? piece.label : NULL,
			    are_labels ? NULL : piece.number) < 0)
			return;
		for (int64_t k = 0; k < n; k++) {
			if (are_labels)
				add_label(a, d, piece.label[k]);
			else
				add_number(a, d, (double)piece.number[k]);
		}
	}
}

/* Counts the answers; where they are numbers a sample or step has to have one of them. */
static void count_answers(struct answers *a, const struct neap__trainer *trainer)
{
	const struct neap__data *d = &trainer->data;

	*a = (struct answers){.are_whole = 1};
	a->count = calloc((size_t)d->info.classes + 1, sizeof *a->count);
	for (int64_t i = 0; a->count && i < d->nfirst && !are_enough(a); i++) {
		int64_t index = d->first ? d->first[i] : i;
		if (neap__has_step_targets(d->set))
			add_steps(a, d, index);
		else if (d->info.target == NEAP_TARGET_LABEL)
			add_label(a, d, neap_dataset_label(d->set, index));
		else
			add_number(a, d, (double)d->set->numbers[index]);
	}
}

/* " 'walk'", or "" if the class has no name. */
static const char *quoted(char room[40], const struct neap__data *d, int class)
{
	const char *name = neap_dataset_class_name(d->set, class);

	neap__print(room, 40, "%s%.30s%s", name ? " '" : "", name ? name : "", name ? "'" : "");
	return room;
}

static void say_single(const struct neap__trainer *trainer, const struct answers *a)
{
	char name[40];

	neap__trainer_say(trainer,
		"warning: all training %s have class %d%s, so every net is right and nothing is "
		"learned. Check the labels (y, --label or the folders' names)",
		neap__has_step_targets(trainer->data.set) ? "steps" : "samples", a->most,
		quoted(name, &trainer->data, a->most));
}

/* Classes that were stored as reals: nothing but their type is different from quantities. */
static void say_whole(const struct neap__trainer *trainer)
{
	struct answers a;
	char list[NAMES_ROOM] = "";
	size_t n = 0;
	int negative = 0;

	if (!trainer->mse_by_default || trainer->data.info.classes != 1 || trainer->options.next)
		return;
	count_answers(&a, trainer);
	free(a.count);
	if (!a.are_whole || a.values < 2 || a.values > FEW_VALUES || a.all < 2 * a.values)
		return;
	for (int i = 0; i < a.values; i++)
		negative |= a.value[i] < 0;
	for (int i = 0; i < a.values && i < NAMED_CLASSES; i++)
		n += (size_t)neap__print(
			list + n, NAMES_ROOM - n, "%s%.15g", n ? ", " : "", a.value[i]);
	neap__trainer_say(trainer,
		"warning: y has %d different values, all whole (%s%s), but stored as real numbers, "
		"so they are learned as quantities, with the loss mse. If they are classes, store "
		"integers%s: %s; if not, --loss mse",
		a.values, list, a.values > NAMED_CLASSES ? ", ..." : "",
		negative ? " from 0 on" : "",
		negative ? "numpy.unique(y, return_inverse=True)[1]" : "y.astype(int)");
}

/* 1: a row of targets is 0 but for one 1. */
static int is_one_hot(const struct neap_dataset *set, const float *row)
{
	int ones = 0;

	for (int k = 0; k < set->info.classes; k++) {
		double x = (double)row[k];
		if (set->target_mean)
			x = x * set->target_deviation[k] + set->target_mean[k];
		if (!(fabs(x) < 1e-3) && !(fabs(x - 1) < 1e-3)) /* NaN is neither */
			return 0;
		ones += x > 0.5;
	}
	return ones == 1;
}

/* How many rows of targets a sample has, all of them one-hot, masked ones left out and counted in
 * *masked; -1: one is not, or cannot be read. */
static int64_t one_hot_rows(const struct neap__data *d, int64_t index, int64_t *masked)
{
	const struct neap_dataset *set = d->set;
	int64_t width = d->info.classes, most = PIECE / width, rows = 0, n;
	int64_t length = set->numbers ? 1 : neap__steps_of(set, index, 0);
	float piece[PIECE];

	for (int64_t t = 0; t < length; t += n) {
		const float *row = set->numbers ? set->numbers + index * width : piece;
		n = length - t < most ? length - t : most;
		if (!set->numbers && neap__step_targets(d->set, index, t, t + n, NULL, piece) < 0)
			return -1;
		for (int64_t k = 0; k < n; k++, row += width) {
			if (isnan(row[0])) { /* a step that is masked */
				++*masked;
				continue;
			}
			if (!is_one_hot(set, row))
				return -1;
			rows++;
		}
	}
	return rows;
}

/* Classes that were stored as rows with one 1, as other losses have them. */
static void say_one_hot(const struct neap__trainer *trainer)
{
	const struct neap__data *d = &trainer->data;
	int64_t width = d->info.classes, rows = 0, masked = 0;

	if (!trainer->mse_by_default || width < 2 || width > PIECE || trainer->options.next)
		return;
	for (int64_t i = 0; i < d->nfirst && rows < ANSWERS / width; i++) {
		int64_t found = one_hot_rows(d, d->first ? d->first[i] : i, &masked);
		if (found < 0)
			return;
		rows += found;
	}
	if (rows == 0)
		return;
	neap__trainer_say(trainer,
		"warning: y is one-hot, %d numbers of which one is 1, and is learned as %d "
		"quantities, with the loss mse. If they are classes, store integers: "
		"y.argmax(-1)%s; "
		"if not, --loss mse",
		d->info.classes, d->info.classes, masked ? ", and -1 in masked steps" : "");
}

/* Features and steps of x that look exchanged, as (sample, feature, time) is the order elsewhere.
 */
static void say_axes(const struct neap__trainer *trainer)
{
	const struct neap__data *d = &trainer->data;
	int64_t rows = 0, features = neap__features(d->set);

	if (!d->set->ops->values)
		return;
	for (int64_t i = 0; i < d->info.samples; i++) {
		int64_t length = d->set->ops->length(d->set, i);
		rows = length > rows ? length : rows;
	}
	if (rows == 1 && features == 1 && d->info.samples > 1 && d->set->repeat <= 1)
		neap__trainer_say(trainer,
			"warning: x has %lld samples of 1 step with 1 feature. If it is one "
			"series, "
			"store x.reshape(1, -1, 1), and y with one target per step: "
			"y.reshape(1, -1%s)",
			(long long)d->info.samples, neap__has_number_targets(d->set) ? ", 1" : "");
	/* One row that lasts many steps is how static features become spikes. */
	if (features < WIDE_LEAST || features < WIDE * rows || (rows == 1 && d->set->repeat > 1))
		return;
	neap__trainer_say(trainer,
		"warning: x has shape (%lld, %lld, %lld): %lld features in %lld step%s. If the "
		"axes "
		"are (sample, feature, time), store x.transpose(0, 2, 1)",
		(long long)d->info.samples, (long long)rows, (long long)features,
		(long long)features, (long long)rows, rows == 1 ? "" : "s");
}

/* Features that never change. Images have margins that are 0 throughout, which nobody would drop.
 */
static void say_constant(const struct neap__trainer *trainer)
{
	const struct neap_dataset *set = trainer->data.set;
	int features = neap__features(set), k = set->constant;
	const char *name = k < set->nfeature_names ? set->feature_names[k] : NULL;
	char which[120], drop[120] = "";

	if (!set->ops->values || set->constants == 0 ||
		(features >= WIDE_LEAST && set->offsets == 0 && set->constants < features))
		return;
	if (set->constants == features) {
		neap__trainer_say(trainer,
			"warning: %s the same value in all steps of the training data, so nothing "
			"can be learned from the inputs. Check how x was made",
			features == 1 ? "the only feature has" : "each feature has");
		return;
	}
	neap__print(
		which, sizeof which, name ? "feature %d '%.60s' has" : "feature %d has", k, name);
	if (name)
		neap__print(drop, sizeof drop, " (neap encode: --drop %.80s)", neap__word(name));
	neap__trainer_say(trainer,
		"warning: %s the same value, %g, in all steps of the training data (%d of %d "
		"features ha%s one value), so nothing can be learned from it. Check it, or remove "
		"it from x%s",
		which, set->shift[k], set->constants, features, set->constants == 1 ? "s" : "ve",
		drop);
}

/* The share that holds out enough, where half of the data is enough. */
static void show_larger(char *remedy, size_t size, const struct neap__trainer *trainer)
{
	const struct neap_train_options *o = &trainer->options;
	const struct neap__data *d = &trainer->data;
	int64_t *first, *second, nfirst, nsecond = 0;
	int percent = (int)(100 * o->validation);
	char config[PATH_MAX + 20];
	neap__print(config, sizeof config, "%s/run.json", o->out);

	/* Tried, since classes are split each on its own. */
	while (nsecond < o->validation_least && ++percent <= 50) {
		if (neap_dataset_split(d->set, percent / 100.0, o->seed, -1, &first, &nfirst,
			    &second, &nsecond) < 0)
			return;
		free(first);
		free(second);
	}
	if (percent <= 50 && o->resume) /* which refuses another share */
		neap__print(remedy, size,
			"samples, or start a new run with the options of this one: neap train "
			"--config %s --validation %g --out NEW",
			neap__quoted(config), percent / 100.0);
	else if (percent <= 50)
		neap__print(remedy, size, "samples, or pass --validation %g (now %g)",
			percent / 100.0, o->validation);
	else if (o->resume)
		neap__print(remedy, size,
			"samples, or start a new run with the options of this one: neap train "
			"--config %s --validation-least %lld --out NEW",
			neap__quoted(config), (long long)d->nsecond);
	else
		neap__print(remedy, size, "samples, or pass --validation-least %lld",
			(long long)d->nsecond);
}

/* Characters of a text that are validated. */
static int64_t validated_steps(const struct neap__data *d)
{
	int64_t steps = 0;

	for (int64_t i = 0; i < d->nsecond; i++)
		steps += neap__steps_of(d->set, d->second[i], 0);
	return steps;
}

/* Samples of so many characters still have a context to learn from (chosen). */
enum { SHORT_TEXT = 20 };

/* The text of a run has too few samples, whose number its user did not choose. `remedy` begins with
 * "samples". */
static void say_short_text(const struct neap__trainer *trainer, const char *remedy)
{
	const struct neap_train_options *o = &trainer->options;
	const struct neap__data *d = &trainer->data;
	long long steps = validated_steps(d),
		  length = steps / (o->validation_least + !o->validation_least);
	char shorter[100] = "";

	if (length >= SHORT_TEXT && !o->resume)
		neap__print(shorter, sizeof shorter,
			", or split the text into shorter samples: text:steps=%lld:FILE", length);
	neap__trainer_say(trainer,
		"warning: the validation set has %lld characters in %lld sample%s, and %d samples "
		"are needed to choose the best epoch (--validation-least), so model.safetensors "
		"will have the weights of the last epoch. Use a longer text%s%s",
		steps, (long long)d->nsecond, d->nsecond == 1 ? "" : "s", o->validation_least,
		shorter, remedy + strlen("samples"));
}

static void say_small_validation(const struct neap__trainer *trainer)
{
	const struct neap_train_options *o = &trainer->options;
	long long n = trainer->data.nsecond;
	char remedy[NEAP__QUOTED_BYTES + 200] = "samples";

	if (neap__chooses_best(trainer) || !(o->validation > 0 || o->holdout))
		return;
	if (n == 0 && !o->holdout) {
		neap__trainer_say(trainer,
			"warning: --validation %g holds out none of %lld samples, so nothing is "
			"validated, and model.safetensors will have the weights of the last epoch. "
			"%s%s",
			o->validation, (long long)trainer->data.nfirst,
			trainer->data.nfirst == 1 ? "Add samples" : "Increase --validation",
			o->resume ? " in a new run" : ", or pass --validation 0");
		return;
	}
	if (o->holdout)
		neap__print(remedy, sizeof remedy,
			"recordings of speaker '%.40s', or hold out another one%s", o->holdout,
			o->resume ? " in a new run" : "");
	else
		show_larger(remedy, sizeof remedy, trainer);
	if (trainer->data.set->ops->adopt && n > 0) {
		say_short_text(trainer, remedy);
		return;
	}
	neap__trainer_say(trainer,
		"warning: the validation set has %lld sample%s, too few to choose the best epoch "
		"(--validation-least %d), so model.safetensors will have the weights of the last "
		"epoch. Add %s",
		n, n == 1 ? "" : "s", o->validation_least, remedy);
}

/* Names classes that no sample of the training part has. */
static void say_absent(const struct neap__trainer *trainer, const struct answers *a)
{
	const struct neap__data *d = &trainer->data;
	int classes = d->info.classes, absent = 0, named = 0;
	char names[NAMES_ROOM] = "";
	size_t n = 0;

	for (int c = 0; c < classes; c++) {
		const char *name = neap_dataset_class_name(d->set, c);
		if (a->count[c])
			continue;
		absent++;
		if (named == NAMED_CLASSES)
			continue;
		named++;
		n += (size_t)neap__print(names + n, NAMES_ROOM - n, name ? "%s%d '%.20s'" : "%s%d",
			n ? ", " : "", c, name);
	}
	if (absent == 1)
		neap__trainer_say(trainer, "warning: class %s has no training sample%s", names,
			a->count[0] ? "" : ". If labels start at 1, subtract 1");
	else if (absent > 1)
		neap__trainer_say(trainer,
			"warning: %d of %d classes have no training sample: %s%s", absent, classes,
			names, absent > named ? ", ..." : "");
}

/* Events whose times were read in a unit that is too long: few of them, in samples that never end.
 * Real recordings have hundreds of events per second, and last seconds (both chosen). */
static void say_time_unit(const struct neap__trainer *trainer)
{
	const struct neap__data *d = &trainer->data;
	double all = d->info.duration * (double)d->info.samples;
	double rate = all > 0 ? (double)d->info.events / all : INFINITY;
	char length[24], number[24], line[NEAP__TAKEN_TEXT];

	if (d->set->ops->values || d->set->ops->adopt || d->set->encoder.size ||
		access(trainer->options.data, F_OK) < 0)
		return;
	if (neap__late_doubt(line, d->set, 0)) {
		neap__trainer_say(trainer, "%s", line);
		return;
	}
	if (!((d->info.duration > 10 && rate < 10) || (d->info.duration > 600 && rate < 1000)))
		return;
	neap__trainer_say(trainer,
		"warning: the longest sample of '%.200s' lasts %s, with about %s spikes per second "
		"in all channels together. If its times have another unit, %s",
		d->info.name, neap__show_time(length, d->info.duration),
		neap__show_number(number, rate),
		d->set->has_events ? "pass it to 'neap encode', such as --time-unit 1us"
				   : "convert spikes/times to seconds");
}

void neap__doubts_say(const struct neap__trainer *trainer)
{
	struct answers answers;

	if (penalty_is_idle(trainer))
		neap__trainer_say(trainer,
			"warning: no layer spikes, so the penalty on firing rates has no effect. "
			"Remove the options --rate-...");
	say_warmup(trainer);
	say_small_validation(trainer);
	say_axes(trainer);
	say_time_unit(trainer);
	say_constant(trainer);
	say_numbers(trainer);
	if (neap__has_number_targets(trainer->data.set)) {
		say_whole(trainer);
		say_one_hot(trainer);
		return;
	}
	count_answers(&answers, trainer);
	if (answers.count && answers.present == 1)
		say_single(trainer, &answers);
	else if (answers.count && trainer->data.info.target == NEAP_TARGET_LABEL)
		say_absent(trainer, &answers);
	if (trainer->data.info.target == NEAP_TARGET_LABEL)
		say_many(trainer);
	free(answers.count);
}

#define REMEDY 320 /* bytes of a line, the end included */

/* What to change where nothing was learned, and the loss is `chance` without any inputs. */
static const char *unlearned(
	char room[REMEDY], const struct neap_train_options *o, double loss, double chance)
{
	const char *kind = o->encode ? o->encode : "";
	int bytes = (int)strcspn(kind, ":");
	size_t n = 0;

	/* What few spikes lose of the inputs, no number of epochs brings back. */
	if (*kind && strcmp(kind, "none") != 0)
		n = (size_t)neap__print(room, REMEDY,
			"Remove --encode %.*s, so that the numbers are input currents, or try "
			"another kind%s. Otherwise: ",
			bytes, kind,
			strncmp(kind, "delta", 5) == 0 ? " or a larger threshold=" : "");
	/* Worse than no net: the steps were too large, unless there were only few of them. */
	if (loss > 2 * chance && o->learning_rate > NEAP__LARGE_RATE)
		neap__print(room + n, REMEDY - n, "%s --lr (now %g)", n ? "decrease" : "Decrease",
			o->learning_rate);
	else
		neap__print(room + n, REMEDY - n, "%s --epochs (now %d) or --lr (now %g)",
			n ? "increase" : "Increase", o->epochs, o->learning_rate);
	return room;
}

/* Numbers: compares the better one of two losses, which may be NaN, with that of the mean. */
static void say_mean(const struct neap__trainer *trainer, double loss, double validation)
{
	const struct neap_train_options *o = &trainer->options;
	double deviation =
		neap__mean_deviation(trainer->objective.deviation, trainer->data.info.classes);
	double best = fmin(loss, validation); /* of numbers alone, where one is NaN */
	char remedy[REMEDY];

	/* Four significant digits without an exponent. */
	int digits = best > 0 ? (int)fmax(0, fmin(3 - floor(log10(best)), 15)) : 0;

	if (!(deviation > 0 && best >= deviation * deviation) ||
		strcmp(trainer->objective.loss->name, "mse") != 0)
		return;
	neap__trainer_say(trainer,
		"warning: the loss after the last epoch is %.*f, and always answering the mean of "
		"the targets gives %.*f: nothing was learned from the inputs. %s, "
		"or check that each target belongs to its sample",
		digits, best, digits, deviation * deviation,
		unlearned(remedy, o, best, deviation * deviation));
}

/*
 * A constant answer is right in a share p of n targets, with a standard error of sqrt(p (1 - p) /
 * n). A net has learned something if its training accuracy is above p by two of them, or by NOISE
 * (chosen, for sets so small that two standard errors are much), or if its validation accuracy is
 * above p by three. Targets of the steps of a sample depend on each other, so these need three.
 */
#define NOISE 0.03
/* The share of what is above p up to which little was learned (chosen). */
#define LITTLE 0.05

static int is_above(double accuracy, double p, double n, double errors)
{
	return accuracy > p + errors * sqrt(p * (1 - p) / n);
}

/* Classes: compares the accuracies with the share of the most frequent class. */
static void say_class(
	const struct neap__trainer *trainer, const struct answers *a, double accuracy, double loss)
{
	const struct neap__data *d = &trainer->data;
	const struct neap_eval_result *v = &trainer->result->validation;
	double p = (double)a->count[a->most] / (double)a->all, best = accuracy;
	int learned = accuracy > p + NOISE ||
		      is_above(accuracy, p, (double)a->all, neap__has_step_targets(d->set) ? 3 : 2);
	char name[40], remedy[REMEDY];

	if (v->judged > 0 && is_above(v->accuracy, p, (double)v->judged, 3)) {
		learned = 1;
		best = fmax(best, v->accuracy);
	}
	if (learned && best > p + LITTLE * (1 - p))
		return;
	neap__trainer_say(trainer,
		"warning: training accuracy after the last epoch is %.1f%%, and always answering "
		"class %d%s gives %.1f%%: %s was learned from the inputs. %s%s",
		100 * accuracy, a->most, quoted(name, d, a->most), 100 * p,
		learned ? "little" : "nothing",
		unlearned(remedy, &trainer->options, loss, log(a->present)),
		/* The next character of a text is never another sample's. */
		learned || d->set->ops->adopt ? ""
					      : ", or check that each label belongs to its sample");
}

void neap__doubts_say_constant(
	const struct neap__trainer *trainer, double accuracy, double loss, double validation)
{
	const struct neap__data *d = &trainer->data;
	struct answers a;

	if (trainer->silent || trainer->no_inputs > 0 || trainer->lost_inputs ||
		(d->set->ops->values && d->set->constants == neap__features(d->set)))
		return;
	if (neap__has_number_targets(d->set))
		say_mean(trainer, loss, validation);
	if (isnan(accuracy))
		return;
	count_answers(&a, trainer);
	if (a.count && a.present > 1)
		say_class(trainer, &a, accuracy, loss);
	free(a.count);
}
