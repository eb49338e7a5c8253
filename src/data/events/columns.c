/* SPDX-License-Identifier: Apache-2.0 */
/* columns.c: reads a whole column of either kind of file (columns.h). */
#include "data/events/columns.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>

int neap__column_all(
	struct neap__columns *columns, const char *name, int64_t most, double **out, int64_t *count)
{
	struct neap__column column;
	int there = columns->find(columns, name, &column), rc = there;
	if (there <= 0)
		return there;
	*count = column.count;
	if (column.count > most || column.text)
		rc = neap__fail(NEAP_EFORMAT,
			"'%s': '%s' contains %lld %s; it must be an array of at most %lld numbers",
			columns->path, name, (long long)column.count,
			column.text ? "texts" : "numbers", (long long)most);
	if (rc > 0 && !(*out = malloc((size_t)(column.count + 1) * sizeof **out)))
		rc = neap__fail_errno(ENOMEM, "'%s'", columns->path);
	if (rc > 0) {
		int got = columns->read(columns, &column, 0, column.count, *out);
		rc = got < 0 ? got : 1;
	}
	columns->shut(columns, &column);
	return rc;
}
