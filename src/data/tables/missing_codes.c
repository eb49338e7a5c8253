/* SPDX-License-Identifier: Apache-2.0 */
/* missing_codes.c: looks for codes of missing values among numbers (missing_codes.h). */
#include "data/tables/missing_codes.h"

#include <math.h>
#include <stddef.h>

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

int neap__missing_codes_is(const struct neap__missing_code *c)
{
	double away = fmax(c->least - c->code, c->code - c->most);
	return c->count >= LEAST && c->count <= c->others && c->most > c->least &&
	       away > FAR * (c->most - c->least);
}
