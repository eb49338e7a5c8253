/* SPDX-License-Identifier: Apache-2.0 */
/* left_rows.c: see left_rows.h. */
#include "data/tables/left_rows.h"
#include "base/fail.h"
#include "base/print.h"
#include "data/data_doubts.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

static int by_text(const void *a, const void *b)
{
	const struct neap__left_target *x = a, *y = b;
	return strcmp(x->text, y->text);
}

static void free_target(void *target)
{
	free(((struct neap__left_target *)target)->text);
	free(target);
}

/* Keeps the first place of each text. 0, or -ENOMEM. */
static int keep_class(struct neap__left_rows *left, const struct neap__left_target *target)
{
	struct neap__left_target *copy = malloc(sizeof *copy), **node;
	if (!copy)
		return -ENOMEM;
	*copy = *target;
	copy->text = strdup(target->text);
	node = copy->text ? tsearch(copy, &left->classes, by_text) : NULL;
	if (!node || *node != copy)
		free_target(copy);
	return node ? 0 : -ENOMEM;
}

static const char *option_of(const struct neap__table *table)
{
	return table->options->missing == NEAP_MISSING_DROP ? "drop" : "previous";
}

int neap__left_rows_end(const struct neap__left_rows *left, const struct neap__table *table)
{
	if (!left->sample || !left->kept || left->answered)
		return 0;
	return neap__fail(NEAP_EFORMAT,
		"'%s', line %lld: the target '%.60s' of sample '%.100s' is in a row that --missing "
		"%s leaves out, and in no other row of the sample. Pass --missing zero, which "
		"keeps the row, or repeat the target in the other rows of the sample",
		left->target.path, (long long)left->target.line, left->target.text, left->sample,
		option_of(table));
}

/* The next sample begins. */
static int begin(struct neap__left_rows *left, const struct neap__table *table, const char *sample)
{
	if (left->sample && strcmp(left->sample, sample) == 0)
		return 0;
	NEAP_TRY(neap__left_rows_end(left, table));
	free(left->sample);
	free(left->target.text);
	left->sample = NULL;
	left->target.text = NULL;
	left->kept = table->last && strcmp(table->last, sample) == 0;
	left->answered = left->kept && left->here;
	left->sample = strdup(sample);
	return left->sample ? 0 : neap__fail_errno(ENOMEM, "'%s'", table->dir);
}

int neap__left_rows_leave(struct neap__left_rows *left, const struct neap__table *table,
	const char *sample, const char *text)
{
	if (neap__target_missing(text))
		return 0;
	NEAP_TRY(begin(left, table, sample));
	const struct neap__left_target target = {(char *)text, table->csv.path, table->csv.line};
	if (keep_class(left, &target) < 0)
		return neap__fail_errno(ENOMEM, "'%s'", table->dir);
	if (left->target.text)
		return 0;
	left->target = target;
	left->target.text = strdup(text);
	return left->target.text ? 0 : neap__fail_errno(ENOMEM, "'%s'", table->dir);
}

int neap__left_rows_keep(
	struct neap__left_rows *left, const struct neap__table *table, const char *text)
{
	int is_target = !neap__target_missing(text);
	left->here = (left->here && !table->begins) || is_target;
	if (!left->sample)
		return 0;
	if (strcmp(left->sample, table->sample) == 0) {
		left->kept = 1;
		left->answered |= is_target;
		return 0;
	}
	int rc = neap__left_rows_end(left, table);
	free(left->sample);
	left->sample = NULL;
	return rc;
}

/* The first class in left-out rows that is none of the targets' names. */
struct search {
	const struct neap__table_targets *targets;
	const struct neap__left_target *first;
	int count;
};

static void see_class(const void *node, VISIT order, void *user)
{
	const struct neap__left_target *target = *(struct neap__left_target *const *)node;
	struct search *s = user;
	if (order != postorder && order != leaf)
		return;
	for (int i = 0; i < s->targets->names; i++)
		if (strcmp(s->targets->name[i], target->text) == 0)
			return;
	if (!s->first || target->line < s->first->line)
		s->first = target;
	s->count++;
}

void neap__left_rows_doubt(const struct neap__left_rows *left, const struct neap__table *table,
	const struct neap__table_targets *targets)
{
	struct search found = {.targets = targets};
	const struct neap_table_options *o = table->options;
	if (!targets->classes || o->classes)
		return;
	twalk_r(left->classes, see_class, &found);
	if (found.count == 0)
		return;
	char more[40] = "";
	if (found.count > 1)
		neap__print(more, sizeof more, " and %d more", found.count - 1);
	neap__doubt(o->warn, o->user,
		"class '%.60s'%s is only in rows that --missing %s leaves out (the first is "
		"'%.200s', "
		"line %lld), so the data set does not have it. Pass --missing zero to keep these "
		"rows, or --classes FILE with all classes",
		found.first->text, more, option_of(table), found.first->path,
		(long long)found.first->line);
}

void neap__left_rows_free(struct neap__left_rows *left)
{
	tdestroy(left->classes, free_target);
	free(left->sample);
	free(left->target.text);
	*left = (struct neap__left_rows){0};
}
