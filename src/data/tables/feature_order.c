/* SPDX-License-Identifier: Apache-2.0 */
/* feature_order.c: features of two data sets matched by their names (row_reading.h). */
#include "data/row_reading.h"
#include "data/tables/table.h"
#include "base/fail.h"
#include "base/quote.h"
#include "base/print.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A feature of the set; columns of equal names are taken in their order. */
struct column {
	const char *name;
	int number;
};

static int by_name(const void *a, const void *b)
{
	const struct column *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : (x->number > y->number) - (x->number < y->number);
}

static struct column *sorted(const char *const *names, int count)
{
	struct column *column = malloc((size_t)count * sizeof *column);

	for (int k = 0; column && k < count; k++)
		column[k] = (struct column){names[k], k};
	if (column)
		qsort(column, (size_t)count, sizeof *column, by_name);
	return column;
}

/* Puts into order[k] which of the names `theirs` is names[k]. 1, 0 where they differ, or -ENOMEM.
 */
static int find_order(int *order, const char *const *names, const char *const *theirs, int count)
{
	struct column *a = sorted(names, count), *b = sorted(theirs, count);
	int rc = a && b ? 1 : neap__fail_errno(ENOMEM, "names of features");

	for (int k = 0; rc > 0 && k < count; k++) {
		rc = strcmp(a[k].name, b[k].name) == 0;
		order[a[k].number] = b[k].number;
	}
	free(a);
	free(b);
	return rc;
}

/* Has the set read its features in this order, with their names. 0 or -ENOMEM. */
static int reorder(struct neap_dataset *set, const int *order)
{
	size_t count = (size_t)set->nfeature_names;
	char **names = malloc(count * sizeof *names);
	int *columns = malloc(count * sizeof *columns);

	if (!set->unordered)
		set->unordered = malloc(count * sizeof *set->unordered);
	if (!names || !columns || !set->unordered) {
		free(names);
		free(columns);
		return neap__fail_errno(ENOMEM, "'%s'", set->name);
	}
	for (size_t k = 0; k < count; k++) {
		names[k] = set->feature_names[order[k]];
		columns[k] = set->order ? set->order[order[k]] : order[k];
	}
	free(set->feature_names);
	free(set->order);
	set->feature_names = names;
	set->order = columns;
	return 0;
}

int neap__rows_match(char line[NEAP__TAKEN_TEXT], struct neap_dataset *set,
	const char *const *names, int count, const char *whose)
{
	const char *const *ours = (const char *const *)set->feature_names;
	char were[140], are[140];
	int differ = 0;

	if (!set->ops->values || count < 1 || set->nfeature_names != count ||
		neap__features(set) != count)
		return 0;
	while (differ < count && strcmp(ours[differ], names[differ]) == 0)
		differ++;
	if (differ == count)
		return 0;
	neap__table_list(were, sizeof were, ours, count);
	neap__table_list(are, sizeof are, names, count);
	int *order = malloc((size_t)count * sizeof *order);
	int rc = order ? find_order(order, names, ours, count)
		       : neap__fail_errno(ENOMEM, "'%s'", set->name);
	if (rc > 0)
		neap__print(line, NEAP__TAKEN_TEXT,
			"'%.60s' has the features %s, and %s %s; they are matched by name",
			set->name, were, whose, are);
	else if (rc == 0)
		neap__print(line, NEAP__TAKEN_TEXT,
			"warning: '%.60s' has the features %s, but %s %s (feature %d is '%.30s', "
			"not '%.30s'). Pass data with the same features, or ignore this if only "
			"the names differ",
			set->name, were, whose, are, differ, ours[differ], names[differ]);
	if (rc > 0)
		rc = reorder(set, order);
	free(order);
	return rc < 0 ? rc : 1;
}

static int has_name(const char *const *names, int count, const char *name)
{
	for (int k = 0; k < count; k++)
		if (strcmp(names[k], name) == 0)
			return 1;
	return 0;
}

/* Those of `names` that are not among `others`, "a,b"; 0: there are none. */
static int list_others(char room[NEAP__QUOTED_BYTES], const char *const *names, int count,
	const char *const *others, int nothers)
{
	size_t n = 0;

	room[0] = '\0';
	for (int k = 0; k < count && n < NEAP__QUOTED_BYTES; k++)
		if (!has_name(others, nothers, names[k]))
			n += (size_t)neap__print(
				room + n, NEAP__QUOTED_BYTES - n, "%s%s", n ? "," : "", names[k]);
	if (n >= NEAP__QUOTED_BYTES) /* a list that is cut would name other columns */
		neap__print(room, NEAP__QUOTED_BYTES, "NAME,NAME");
	return n > 0;
}

const char *neap__features_advice(char room[NEAP__FEATURES_TEXT], const struct neap_dataset *set,
	const char *const *names, int count)
{
	const char *const *ours = (const char *const *)set->feature_names;
	int has = set->nfeature_names;
	char other[NEAP__QUOTED_BYTES];

	if (count > 0 && has > 0 && list_others(other, names, count, ours, has))
		neap__print(room, NEAP__FEATURES_TEXT,
			"It lacks %s. Re-encode its table with what is missing: a column that "
			"--drop left out, or one to add to the table",
			other);
	else if (count > 0 && has > 0 && list_others(other, ours, has, names, count))
		neap__print(room, NEAP__FEATURES_TEXT,
			"Re-encode its table without what the model does not know: neap encode "
			"TABLE --out FILE.h5%s%s%s --drop %s",
			set->sample_column ? " --sample-column " : "",
			set->sample_column ? neap__word(set->sample_column) : "",
			set->sample_column ? " --target COLUMN" : "", neap__word(other));
	else
		neap__print(room, NEAP__FEATURES_TEXT,
			"Pass data with the same features in the same order");
	return room;
}
