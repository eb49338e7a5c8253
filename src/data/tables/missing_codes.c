/* SPDX-License-Identifier: Apache-2.0 */
/* missing_codes.c: looks for codes of missing values among numbers (missing_codes.h). */
#include "data/tables/missing_codes.h"
#include "data/tables/table.h"
#include "base/print.h"

#include <math.h>

/* Chosen: a code occurs at least so often, in at most half of the rows, and is so many times as far
 * from the other numbers as these are from each other. */
enum { LEAST = 2, FAR = 2 };

static int is_code(double x)
{
	static const double codes[] = {-99, -999, -9999, -99999, 999, 9999, 99999};
	for (size_t i = 0; fabs(x) >= 99 && i < sizeof codes / sizeof *codes; i++)
		if (x == codes[i])
			return 1;
	return 0;
}

void neap__missing_codes_see(struct neap__missing_code *codes, const double *value, int features)
{
	for (int i = 0; i < features; i++) {
		struct neap__missing_code *c = &codes[i];
		double x = value[i];
		if (is_code(x) && (c->count == 0 || c->code == x)) {
			c->code = x;
			c->count++;
			continue;
		}
		c->least = c->others && c->least < x ? c->least : x;
		c->most = c->others && c->most > x ? c->most : x;
		c->others++;
	}
}

static int is_missing(const struct neap__missing_code *c)
{
	double away = fmax(c->least - c->code, c->code - c->most);
	return c->count >= LEAST && c->count <= c->others && c->most > c->least &&
	       away > FAR * (c->most - c->least);
}

int neap__missing_codes_doubt(char *line, size_t size, const struct neap__table *t)
{
	int64_t first = 0;
	char number[24], empty[600];
	const struct neap__missing_code *found = NULL;
	int like[8] = {0}, likes = 0;
	for (int64_t i = 0; t->codes && i < t->columns; i++) {
		const struct neap__missing_code *c = &t->codes[t->place[i]];
		if (t->role[i] != NEAP__COLUMN_FEATURE || !is_missing(c) ||
			(found && c->code != found->code))
			continue;
		if (!found)
			first = i;
		found = found ? found : c;
		if (likes < 8)
			like[likes++] = (int)i;
	}
	if (!found)
		return 0;
	neap__table_empty(empty, sizeof empty, t, found->code, like, likes);
	neap__print(line, size,
		"column '%.60s' is %g in %lld of %lld rows, far from its other numbers (%g to %g), "
		"and it is read as a number. If it marks missing values, empty these cells%s: %s",
		neap__table_column(t, first, number), found->code, (long long)found->count,
		(long long)(found->count + found->others), found->least, found->most,
		t->predicts ? ", and encode the table with --missing as the training data"
			    : ", and repeat the command with --missing previous and --force",
		empty);
	return 1;
}
