/* SPDX-License-Identifier: Apache-2.0 */
/* class_map.c: a set that lacks a class, or has them in another order, is read as the other one. */
#include "data/dataset.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int find(const char *const *names, int count, const char *name)
{
	for (int k = 0; k < count; k++)
		if (strcmp(names[k], name) == 0)
			return k;
	return -1;
}

static int64_t samples_of(const struct neap_dataset *set, int label)
{
	int64_t n = 0;
	for (int64_t i = 0; i < set->info.samples; i++)
		n += set->label[i] == label;
	return n;
}

/* A copy of the names, or NULL. */
static char **copy_names(const char *const *names, int count)
{
	char **copy = calloc((size_t)count + 1, sizeof *copy);
	for (int k = 0; copy && k < count; k++)
		if (!(copy[k] = strdup(names[k]))) {
			neap__names_free(copy, count);
			return NULL;
		}
	return copy;
}

static int number(int *to, const struct neap_dataset *set, const char *const *names, int count,
	const char *whose)
{
	for (int k = 0; k < set->nclass_names; k++) {
		int64_t samples;
		to[k] = find(names, count, set->class_names[k]);
		if (to[k] < 0 && (samples = samples_of(set, k)) > 0)
			return neap__fail(NEAP_EUSAGE,
				"class '%.60s' of %s (%lld samples) is not among the %d classes of "
				"%s. Remove these samples, or train on data with all classes",
				set->class_names[k], set->name, (long long)samples, count, whose);
	}
	return 1;
}

int neap__dataset_map_classes(
	struct neap_dataset *set, const char *const *names, int count, const char *whose)
{
	if (!set->label || set->nclass_names < 1 || set->nclass_names < set->info.classes)
		return 0;
	for (int k = 0; k < count; k++)
		if (!names[k])
			return 0;
	int *to = malloc((size_t)set->nclass_names * sizeof *to);
	char **copy = copy_names(names, count);
	int rc = to && copy ? number(to, set, names, count, whose)
			    : neap__fail_errno(ENOMEM, "names of classes");
	for (int64_t i = 0; rc > 0 && i < set->info.samples; i++)
		if (set->label[i] >= 0)
			set->label[i] = to[set->label[i]];
	free(to);
	if (rc < 0) {
		neap__names_free(copy, copy ? count : 0);
		return rc;
	}
	neap__names_free(set->class_names, set->nclass_names);
	set->class_names = copy;
	set->nclass_names = set->info.classes = count;
	return 1;
}

static int is_number(const char *name, int number)
{
	char room[16];
	neap__print(room, sizeof room, "%d", number);
	return strcmp(name, room) == 0;
}

int neap__dataset_names_taken(char room[NEAP__TAKEN_TEXT], const struct neap_dataset *set,
	const char *const *names, int count)
{
	enum { SHOWN = 8 };
	int classes = set->info.classes < count ? set->info.classes : count, other = 0;
	char name[NEAP__PLAIN_TEXT];
	size_t n;

	if (set->info.target >= NEAP_TARGET_NUMBERS || set->nclass_names > 0 || classes < 1)
		return 0;
	for (int k = 0; k < classes; k++) {
		if (!names[k])
			return 0;
		other |= !is_number(names[k], k);
	}
	if (!other)
		return 0;
	n = (size_t)neap__print(
		room, NEAP__TAKEN_TEXT, "'%.150s' has no names of classes: ", set->name);
	n += (size_t)(classes == 1 ? neap__print(room + n, NEAP__TAKEN_TEXT - n,
					     "its class 0 is read as ")
				   : neap__print(room + n, NEAP__TAKEN_TEXT - n,
					     "its classes 0 to %d are read as ", classes - 1));
	for (int k = 0; k < classes && k < SHOWN; k++)
		n += (size_t)neap__print(room + n, NEAP__TAKEN_TEXT - n, "%s%.40s", k ? ", " : "",
			neap__escaped_text(name, names[k]));
	if (classes > SHOWN)
		neap__print(room + n, NEAP__TAKEN_TEXT - n, ", ...");
	return 1;
}

/* 1: all classes have names and all samples a class, and none of them is among `names`. */
static int is_foreign(const struct neap_dataset *set, const char *const *names, int count)
{
	if (!set->label || set->nclass_names < 1 || set->nclass_names < set->info.classes)
		return 0;
	for (int k = 0; k < count; k++)
		if (!names[k] || find((const char *const *)set->class_names, set->nclass_names,
					 names[k]) >= 0)
			return 0;
	for (int64_t i = 0; i < set->info.samples; i++)
		if (set->label[i] < 0)
			return 0;
	return count > 0;
}

int neap__dataset_forget_classes(
	struct neap_dataset *set, const char *const *names, int count, char line[NEAP__TAKEN_TEXT])
{
	int64_t n = set->info.samples;
	if (!is_foreign(set, names, count))
		return 0;
	char **copy = copy_names(names, count);
	char **samples = calloc((size_t)n + 1, sizeof *samples);
	int rc = copy && samples ? 0 : -ENOMEM;
	for (int64_t i = 0; i < n && rc == 0; i++)
		rc = (samples[i] = strdup(set->class_names[set->label[i]])) ? 0 : -ENOMEM;
	if (rc < 0) {
		neap__names_free(copy, copy ? count : 0);
		neap__names_free(samples, samples ? (int)n : 0);
		return neap__fail_errno(ENOMEM, "names of samples");
	}
	neap__print(line, NEAP__TAKEN_TEXT,
		"warning: no class of '%.100s' (the first is '%.60s') is a class of the model (the "
		"first is '%.60s'), so they are taken as names of recordings without labels. If "
		"they are labels, encode the data with the names of the training data",
		set->name, set->class_names[0], names[0]);
	for (int64_t i = 0; i < n; i++)
		set->label[i] = -1;
	neap__names_free(set->sample_names, set->sample_names ? (int)n : 0);
	neap__names_free(set->class_names, set->nclass_names);
	set->sample_names = samples;
	set->class_names = copy;
	set->nclass_names = set->info.classes = count;
	return 1;
}
