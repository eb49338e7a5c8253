/* SPDX-License-Identifier: Apache-2.0 */
/* class_map.c: a set that lacks a class, or has them in another order, is read as the other one. */
#include "data/dataset.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/suggest.h"
#include "base/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { LISTED = 8 /* names in a line */, LIST_TEXT = 200 };

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

/* Names in one line, the first of many. */
static const char *list(char room[LIST_TEXT], const char *const *names, int count)
{
	size_t n = 0;
	room[0] = '\0';
	for (int k = 0; k < count && k < LISTED; k++)
		n += (size_t)neap__print(
			room + n, LIST_TEXT - n, "%s%.20s", k ? ", " : "", names[k]);
	if (count > LISTED)
		neap__print(room + n, LIST_TEXT - n, ", ...");
	return room;
}

/* Refuses samples of class `foreign`, the first that is not in `names`. */
static int refuse(const struct neap_dataset *set, const char *const *names, int count, int foreign,
	const struct neap__class_owner *owner)
{
	char ours[LIST_TEXT], theirs[LIST_TEXT];
	const char *const *mine = (const char *const *)set->class_names;
	long long samples = samples_of(set, foreign);
	struct neap__suggestion meant = {.text = mine[foreign], .length = strlen(mine[foreign])};
	int known = 0;
	for (int k = 0; k < count; k++)
		neap__suggest(&meant, names[k]);
	for (int k = 0; k < set->nclass_names; k++)
		known += find(names, count, mine[k]) >= 0 && samples_of(set, k) > 0;
	if (known && meant.name)
		return neap__fail(NEAP_EUSAGE,
			"class '%.60s' of '%.200s' (%lld sample%s) is not a class of %s (%s). Did "
			"you mean '%.60s'? If so, rename the class in the source (folders, "
			"labels), and re-encode it; if not, leave such samples out of the data, or "
			"%s",
			mine[foreign], set->name, samples, samples == 1 ? "" : "s", owner->name,
			list(theirs, names, count), meant.name, owner->otherwise);
	if (known)
		return neap__fail(NEAP_EUSAGE,
			"class '%.60s' of '%.200s' (%lld sample%s) is not a class of %s (%s). "
			"Leave such samples out of the data, or %s",
			mine[foreign], set->name, samples, samples == 1 ? "" : "s", owner->name,
			list(theirs, names, count), owner->otherwise);
	return neap__fail(NEAP_EUSAGE,
		"no class of '%.200s' (%s) is a class of %s (%s). If only the names differ, "
		"rename the classes in the source (folders, labels), and re-encode it; if "
		"not, %s",
		set->name, list(ours, mine, set->nclass_names), owner->name,
		list(theirs, names, count), owner->otherwise);
}

static int number(int *to, const struct neap_dataset *set, const char *const *names, int count,
	const struct neap__class_owner *owner)
{
	for (int k = 0; k < set->nclass_names; k++) {
		to[k] = find(names, count, set->class_names[k]);
		if (to[k] < 0 && samples_of(set, k) > 0)
			return refuse(set, names, count, k, owner);
	}
	return 1;
}

int neap__dataset_map_classes(struct neap_dataset *set, const char *const *names, int count,
	const struct neap__class_owner *owner)
{
	if (!set->label || set->nclass_names < 1 || set->nclass_names < set->info.classes)
		return 0;
	for (int k = 0; k < count; k++)
		if (!names[k])
			return 0;
	int *to = malloc((size_t)set->nclass_names * sizeof *to);
	char **copy = copy_names(names, count);
	int rc = to && copy ? number(to, set, names, count, owner)
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

/* Samples of a class that is not in `names` lose it. 1: there are some. */
static int forget_some(
	struct neap_dataset *set, const char *const *names, int count, char line[NEAP__TAKEN_TEXT])
{
	long long samples = 0;
	int first = 0;
	if (!set->label || set->nclass_names < 1 || set->nclass_names < set->info.classes)
		return 0;
	for (int k = 0; k < count; k++)
		if (!names[k])
			return 0;
	for (int64_t i = 0; i < set->info.samples; i++) {
		int k = set->label[i];
		if (k < 0 || find(names, count, set->class_names[k]) >= 0)
			continue;
		first = samples++ ? first : k;
		set->label[i] = -1;
	}
	if (samples)
		neap__print(line, NEAP__TAKEN_TEXT,
			"warning: the model does not have the class of %lld sample%s of '%.100s' "
			"(the first is '%.60s'), so the answers show no label for %s. Check the "
			"spelling if it should have",
			samples, samples == 1 ? "" : "s", set->name, set->class_names[first],
			samples == 1 ? "it" : "them");
	return samples > 0;
}

int neap__dataset_forget_classes(
	struct neap_dataset *set, const char *const *names, int count, char line[NEAP__TAKEN_TEXT])
{
	int64_t n = set->info.samples;
	if (!is_foreign(set, names, count))
		return forget_some(set, names, count, line);
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
	/* As many classes as samples are names of recordings, as `--label '(.*)'` makes them. */
	if (set->nclass_names < n)
		neap__print(line, NEAP__TAKEN_TEXT,
			"warning: no class of '%.100s' (the first is '%.60s') is a class of the "
			"model (the "
			"first is '%.60s'), so they are taken as names of recordings without "
			"labels. If "
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
