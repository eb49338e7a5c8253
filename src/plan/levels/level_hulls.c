/* SPDX-License-Identifier: Apache-2.0 */
/* level_hulls.c: which hull of a solver belongs to a part (level_tables.h). */
#include "plan/levels/level_tables.h"

const struct neap__hull *neap__levels_o(const struct neap__levels *x, int k, int64_t m)
{
	if (m == 0)
		k--;
	if (k < 0)
		return &x->zero;
	if (k == 0 && x->closed)
		return &x->revolve;
	const struct neap__hull_rows *rows = &x->rows[k];
	return &rows->row[(m == 0 || m > rows->rows ? rows->rows : m) - 1].o;
}

const struct neap__hull *neap__levels_p(const struct neap__levels *x, int k, int64_t m)
{
	const struct neap__hull_rows *rows = &x->rows[k];
	return &rows->row[(m > rows->rows ? rows->rows : m) - 1].p;
}

int64_t neap__levels_centre(const struct neap__levels *x, int k, int64_t m, int64_t l)
{
	int unlimited = x->rows[k].unlimited;
	return neap__hull_centre(
		neap__levels_o(x, k, unlimited ? 1 : m - 1), neap__levels_p(x, k, m), l);
}
