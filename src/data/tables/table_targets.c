/* SPDX-License-Identifier: Apache-2.0 */
/* table_targets.c: kinds of targets, and names of classes (table_targets.h). */
#include "data/tables/table_targets.h"
#include "data/tables/table.h"
#include "base/fail.h"

#include <errno.h>
#include <math.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MOST_CLASSES = 65535, WHOLE_DIGITS = 15 };

struct neap__class_key {
	const char *name; /* borrowed */
	int number;
};

static int no_memory(const char *path)
{
	return neap__fail_errno(ENOMEM, "'%s'", path);
}

int neap__target_missing(const char *text)
{
	return *text == '\0' || strcasecmp(text, "nan") == 0;
}

static int is_whole(const char *text)
{
	text += *text == '-' || *text == '+';
	size_t digits = strspn(text, "0123456789");
	return digits > 0 && digits <= WHOLE_DIGITS && text[digits] == '\0';
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void free_tree(struct neap__table_targets *t)
{
	tdestroy(t->tree, free);
	t->tree = NULL;
}

/* Keeps the name of a class while it may be one. */
static int keep_name(struct neap__table_targets *t, const char *text, const char *path)
{
	if (t->numbers || t->width != 1 || t->reals || tfind(text, &t->tree, by_text))
		return 0;
	if (t->names == MOST_CLASSES)
		return neap__fail(NEAP_EFORMAT,
			"'%s': the targets have more than 65535 different values, too many for "
			"classes. Pass --numbers to treat whole numbers as numbers",
			path);
	char *copy = strdup(text);
	if (!copy || !tsearch(copy, &t->tree, by_text)) {
		free(copy);
		return no_memory(path);
	}
	t->names++;
	return 0;
}

static int see_field(
	struct neap__table_targets *t, const char *text, const char *path, int64_t line)
{
	double number;
	if (is_whole(text))
		t->wholes = 1;
	else if (neap__table_number(&number, text) == 0) {
		t->reals = 1;
		t->fractions |= number != floor(number);
	} else {
		t->first_text = t->texts ? t->first_text : line;
		t->texts = 1;
	}
	if (t->texts && (t->reals || t->numbers || t->width > 1))
		return neap__fail(NEAP_EFORMAT, "'%s', line %lld: the target is '%.60s'%s; %s",
			path, (long long)line, text,
			t->reals ? ", but other targets are numbers with a fraction" : "",
			t->width > 1 ? "with several targets, each must be a number. Pass "
				       "--target NAME with only the column of the classes"
			: t->numbers ? "--numbers makes all targets numbers. Remove it if they are "
				       "classes"
				     : "use either classes (texts or whole numbers) or numbers in "
				       "all rows. Correct the row");
	return keep_name(t, text, path);
}

/* Whether the row differs from the one before; keeps a copy of it. */
static int see_change(
	struct neap__table_targets *t, const char *const *field, int begins, const char *path)
{
	if (!t->before && !(t->before = calloc((size_t)t->width + 1, sizeof *t->before)))
		return no_memory(path);
	for (int i = 0; i < t->width; i++) {
		if (t->before[i] && strcmp(t->before[i], field[i]) == 0)
			continue;
		t->steps |= !begins;
		t->vary |= !begins;
		free(t->before[i]);
		if (!(t->before[i] = strdup(field[i])))
			return no_memory(path);
	}
	return 0;
}

int neap__targets_see(struct neap__table_targets *t, const char *const *field, int begins,
	const char *path, int64_t line)
{
	int none = 0;
	for (int i = 0; i < t->width; i++)
		none += neap__target_missing(field[i]);
	if (none > 0 && none < t->width)
		return neap__fail(NEAP_EFORMAT,
			"'%s', line %lld: %d of %d targets are empty. Fill in all of the row, or "
			"none, which leaves the row without targets",
			path, (long long)line, none, t->width);
	if (none) {
		t->steps = 1;
		return 0;
	}
	for (int i = 0; i < t->width; i++)
		NEAP_TRY(see_field(t, field[i], path, line));
	return t->vary ? 0 : see_change(t, field, begins, path);
}

/* Whole numbers before texts, by value. */
static int by_class(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;
	int wx = is_whole(x), wy = is_whole(y);
	if (wx != wy)
		return wy - wx;
	long long nx = wx ? strtoll(x, NULL, 10) : 0, ny = wy ? strtoll(y, NULL, 10) : 0;
	return nx != ny ? (nx > ny) - (nx < ny) : strcmp(x, y);
}

static int by_key(const void *a, const void *b)
{
	const struct neap__class_key *x = a, *y = b;
	return strcmp(x->name, y->name);
}

static void take_name(const void *node, VISIT order, void *targets)
{
	struct neap__table_targets *t = targets;
	if (order == postorder || order == leaf)
		t->name[t->names++] = *(char *const *)node;
}

static void keep_node(void *text)
{
	(void)text;
}

/* Classes are given, and the targets are not classes. */
static int not_classes(const struct neap__table_targets *t, const char *path)
{
	if (t->width == 0)
		return neap__fail(NEAP_EUSAGE,
			"--classes: '%s' has no target. Pass --target NAME or --labels FILE.csv, "
			"or "
			"remove --classes",
			path);
	return neap__fail(NEAP_EUSAGE,
		"--classes: the target%s of '%s' %s, not %s. %s, or remove --classes",
		t->width > 1 ? "s" : "", path,
		t->width > 1 ? "are several numbers"
		: t->reals   ? "is a number with a decimal point"
			     : "is a number by --numbers",
		t->width > 1 ? "one class" : "a class",
		t->width > 1 ? "Pass one target"
		: t->reals   ? "Write classes as whole numbers (1, not 1.0) or names"
			     : "Remove --numbers");
}

int neap__targets_settle(
	struct neap__table_targets *t, const char *const *given, int count, const char *path)
{
	t->classes = t->width == 1 && !t->numbers && !t->reals && (t->wholes || t->texts);
	if (!t->classes)
		return given && (t->width == 0 || t->wholes || t->reals) ? not_classes(t, path) : 0;
	t->name = calloc((size_t)t->names + 1, sizeof *t->name);
	if (!t->name)
		return no_memory("classes");
	t->names = 0;
	twalk_r(t->tree, take_name, t);
	tdestroy(t->tree, keep_node); /* the names are ours now */
	t->tree = NULL;
	qsort(t->name, (size_t)t->names, sizeof *t->name, by_class);
	t->keys = given ? count : t->names;
	t->key = calloc((size_t)t->keys + 1, sizeof *t->key);
	if (!t->key)
		return no_memory("classes");
	for (int i = 0; i < t->keys; i++)
		t->key[i] = (struct neap__class_key){given ? given[i] : t->name[i], i};
	qsort(t->key, (size_t)t->keys, sizeof *t->key, by_key);
	return 0;
}

/* 1: --classes is a number, so that the classes are 0, 1, ... */
static int are_counted(const struct neap__table_targets *t)
{
	int whole = t->keys > 0;
	for (int i = 0; i < t->keys; i++)
		whole &= is_whole(t->key[i].name) && atoi(t->key[i].name) == t->key[i].number;
	return whole;
}

static int class_of(const struct neap__table_targets *t, const char *text, double *number,
	const char *path, int64_t line)
{
	const struct neap__class_key key = {text, 0};
	const struct neap__class_key *found =
		bsearch(&key, t->key, (size_t)t->keys, sizeof key, by_key);
	if (!found && are_counted(t))
		return neap__fail(NEAP_EFORMAT,
			"'%s', line %lld: class '%.60s' is not among the classes 0 to %d of "
			"--classes %d. Pass --classes FILE, a file with the name of one class per "
			"line, or remove --classes to use the classes that the table has",
			path, (long long)line, text, t->keys - 1, t->keys);
	if (!found)
		return neap__fail(NEAP_EFORMAT,
			"'%s', line %lld: class '%.60s' is not among the %d of --classes. Add it "
			"there, or remove the row",
			path, (long long)line, text, t->keys);
	*number = found->number;
	return 0;
}

int neap__targets_take(const struct neap__table_targets *t, const char *const *field,
	double *number, const char *path, int64_t line)
{
	for (int i = 0; i < t->width; i++) {
		number[i] = NAN;
		if (neap__target_missing(field[i]))
			continue;
		if (t->classes)
			NEAP_TRY(class_of(t, field[i], &number[i], path, line));
		else if (neap__table_number(&number[i], field[i]) < 0)
			return neap__fail(NEAP_EFORMAT,
				"'%s' changed while it was read. Run the command again", path);
	}
	return 0;
}

void neap__targets_free(struct neap__table_targets *t)
{
	free_tree(t);
	for (int i = 0; t->before && i < t->width; i++)
		free(t->before[i]);
	for (int i = 0; t->name && i < t->names; i++)
		free(t->name[i]);
	free(t->before);
	free(t->name);
	free(t->key);
	*t = (struct neap__table_targets){0};
}
