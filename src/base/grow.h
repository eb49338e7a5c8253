/* SPDX-License-Identifier: Apache-2.0 */
/* grow.h: arrays that grow by doubling, for code that does not know their length beforehand. */
#ifndef NEAP_BASE_GROW_H
#define NEAP_BASE_GROW_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * Makes room for at least `want` rows of `bytes` each: `rows` is the address of the
 * pointer to the first one, *room how many fit now. Both stay as they are where `want`
 * rows fit already, or where memory is short. 0 or -ENOMEM, without a detail line: the
 * caller knows what the rows are. Rows beyond the old room are not initialised.
 */
static inline int neap__grow(void *rows, int64_t *room, int64_t want, size_t bytes)
{
	void *now, *more;
	int64_t next = *room > 0 ? *room : 16;
	if (want <= *room)
		return 0;
	while (next < want && next <= INT64_MAX / 2)
		next *= 2;
	if (next < want || (uint64_t)next > SIZE_MAX / bytes)
		return -ENOMEM;
	memcpy(&now, rows, sizeof now); /* a pointer of any type: no aliasing through void ** */
	more = realloc(now, (size_t)next * bytes);
	if (!more)
		return -ENOMEM;
	memcpy(rows, &more, sizeof more);
	*room = next;
	return 0;
}

#endif
