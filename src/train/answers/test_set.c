/* SPDX-License-Identifier: Apache-2.0 */
/* test_set.c: opens the test set of a run, and checks that it fits the training data. */
#include "train/trainer.h"
#include "train/model.h"
#include "data/dataset.h"
#include "data/row_reading.h"
#include "data/target_units.h"
#include "base/fail.h"
#include "base/quote.h"
#include "base/print.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int neap__data_open(struct neap_dataset **set, const struct neap__trainer *trainer,
	const char *name, const char *argument)
{
	const struct neap_train_options *o = &trainer->options;
	int rc = neap_dataset_open(set, name);

	if (rc != -ENOENT || !o->resume)
		return rc;
	return neap__fail(rc,
		"cannot resume '%.200s': there is no '%.200s'. If this data of the run was moved, "
		"pass its new name: neap train %s --resume --out %s",
		o->out, name, argument, neap__quoted(o->out));
}

/* Refuses a test set of another kind before features and classes are compared. */
static int check_test_kind(const struct neap__data *d)
{
	const struct neap_dataset *a = d->set, *b = d->test;

	if (!a->ops->values == !b->ops->values && !a->ops->adopt == !b->ops->adopt &&
		!(a->encoder.size && b->has_events) && !(a->has_events && b->encoder.size))
		return 0;
	return neap__fail(NEAP_EUSAGE,
		"--test '%.200s' %s, but the training data '%.200s' %s. Pass a test set of the "
		"same kind",
		b->name, neap__model_contents(b), a->name, neap__model_contents(a));
}

/* Numbers the test set's classes as the training set does where their names differ. */
static int map_test(const struct neap__trainer *trainer)
{
	const struct neap__data *d = &trainer->data;
	const struct neap__class_owner owner = {
		d->info.name, "train on data that has all classes of the test set"};
	int n = trainer->options.net.classes, differ = d->test->info.classes > n;
	if (d->test->info.target != NEAP_TARGET_LABEL)
		return 0;
	const char **names = calloc((size_t)n + 1, sizeof *names);
	if (!names)
		return neap__fail_errno(ENOMEM, "names of classes");
	for (int i = 0; i < n; i++) {
		const char *theirs = neap_dataset_class_name(d->test, i);
		names[i] = neap_dataset_class_name(d->set, i);
		differ |= names[i] && theirs && strcmp(names[i], theirs) != 0;
	}
	int rc = differ ? neap__dataset_map_classes(d->test, names, n, &owner) : 0;
	free(names);
	return rc;
}

/* Has the test set's features in the order of the training set's. */
static int match_test(const struct neap__trainer *trainer)
{
	const struct neap_dataset *set = trainer->data.set;
	char line[NEAP__TAKEN_TEXT], whose[120];

	neap__print(whose, sizeof whose, "the training data '%.60s' has", set->name);
	int rc = neap__rows_match(line, trainer->data.test, (const char *const *)set->feature_names,
		set->nfeature_names, whose);
	if (rc > 0)
		neap__trainer_say(trainer, "%s", line);
	return rc < 0 ? rc : 0;
}

/* Checks that both sets name their first `count` classes alike. */
static int check_names(const struct neap__data *d, const char *test, int count)
{
	for (int i = 0; i < count; i++) {
		const char *a = neap_dataset_class_name(d->set, i);
		const char *b = neap_dataset_class_name(d->test, i);
		if (a && b && strcmp(a, b) != 0)
			return neap__fail(NEAP_EUSAGE,
				"class %d is '%.60s' in test set %s, but '%.60s' in training set "
				"%s. Encode both with --classes FILE, a file with the "
				"names of all classes, one per line",
				i, b, test, a, d->info.name);
	}
	return 0;
}

/* Checks that both sets have the same channels and classes. */
static int check_test(const struct neap__trainer *trainer)
{
	const struct neap__data *d = &trainer->data;
	struct neap_dataset_info info = {.size = sizeof info};

	if (!neap__dataset_is_labelled(d->test))
		return neap__fail(NEAP_EUSAGE,
			"--test '%.200s' has no targets to compare the answers with. Pass a test "
			"set with targets, or remove --test and run 'neap predict' on this data",
			d->test->name);
	NEAP_TRY(map_test(trainer));
	neap_dataset_info(d->test, &info);
	if (info.target != d->info.target)
		return neap__fail(NEAP_EUSAGE,
			"--test '%.200s' has %s as targets, but the training data '%.200s' has %s. "
			"Pass a test set with targets of that kind",
			info.name, neap__model_targets_name(info.target), d->info.name,
			neap__model_targets_name(d->info.target));
	if (info.values && info.inputs != d->info.inputs)
		return neap__fail(NEAP_EUSAGE,
			"--test '%.200s' has %d features, but the training data '%.200s' has %d. "
			"Pass a test set with the same features in the same order",
			info.name, info.inputs, d->info.name, d->info.inputs);
	if (info.inputs > trainer->options.net.inputs)
		return neap__fail(NEAP_EUSAGE,
			"test set %s has %d input channels, but the network has %d (from %s). "
			"Encode both with the same settings; if the channels of the training data "
			"are the first channels of the test set, train with --channels %d",
			info.name, info.inputs, trainer->options.net.inputs, d->info.name,
			info.inputs);
	int numbers = neap__has_number_targets(d->test);
	if (info.classes > trainer->options.net.classes ||
		(numbers && info.classes != trainer->options.net.classes))
		return neap__fail(NEAP_EUSAGE,
			"test set %s has %d %s, but the network has %d (from %s). Pass a test set "
			"with the "
			"%s of the training data",
			info.name, info.classes,
			numbers ? info.classes == 1 ? "output" : "outputs" : "classes",
			trainer->options.net.classes, d->info.name,
			numbers ? "outputs" : "classes");
	return check_names(d, info.name, info.classes);
}

/* 1: the test set is the file, or has the name, of the training data. */
static int is_training_data(const struct neap_train_options *o)
{
	struct stat one, other;

	return strcmp(o->data, o->test) == 0 ||
	       (stat(o->data, &one) == 0 && stat(o->test, &other) == 0 &&
		       one.st_dev == other.st_dev && one.st_ino == other.st_ino);
}

int neap__test_set_open(struct neap__trainer *trainer)
{
	const struct neap_train_options *o = &trainer->options;
	struct neap__data *d = &trainer->data;
	struct neap_dataset_info info = {.size = sizeof info};

	if (!o->test)
		return 0;
	NEAP_TRY(neap__data_open(&d->test, trainer, o->test, "--test DATA"));
	NEAP_TRY(check_test_kind(d));
	NEAP_TRY(match_test(trainer));
	if (d->info.steps)
		NEAP_TRY(neap__rows_copy(d->test, d->set));
	NEAP_TRY(neap_dataset_info(d->test, &info));
	d->ntest = info.samples;
	return check_test(trainer);
}

void neap__test_set_say(const struct neap__trainer *trainer)
{
	const struct neap__data *d = &trainer->data;
	const struct neap__encoding encoding = neap__encoding_of(d->set);
	char line[NEAP__TAKEN_TEXT];

	if (d->test && is_training_data(&trainer->options))
		neap__trainer_say(trainer,
			"warning: --test '%.200s' is the training data, so its results do not show "
			"how the "
			"network answers new data. Pass other data, or see the validation results",
			trainer->options.test);
	if (d->test && neap__encoding_differs(line, d->test, &encoding))
		neap__trainer_say(trainer, "%s", line);
	if (d->test && d->set->nclass_names >= d->info.classes &&
		neap__dataset_names_taken(
			line, d->test, (const char *const *)d->set->class_names, d->info.classes))
		neap__trainer_say(trainer, "%s", line);
}
