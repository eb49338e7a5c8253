/* SPDX-License-Identifier: Apache-2.0 */
/* stripes.c: opens the files of a tier, and finds the file of a byte. */
#include "store/stripes.h"
#include "base/checked.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int open_one(struct neap__scratch *file, const char *path, const char *name, unsigned flags)
{
	return name ? neap__scratch_open_kept(file, path, name, flags)
		    : neap__scratch_open(file, path, flags);
}

/* A path that exists is one directory, whatever its name; else '+' separates several. */
static int open_each(struct neap__stripes *stripes, const char *name, unsigned flags)
{
	char *copy = strdup(stripes->list), *next;
	int rc = copy ? 0 : neap__fail_errno(ENOMEM, "'%s'", stripes->list);
	int whole = neap__scratch_exists(stripes->list);
	for (char *item = copy; item && rc == 0; item = next) {
		next = whole ? NULL : strchr(item, '+');
		if (next)
			*next++ = '\0';
		if (stripes->count == NEAP__FILES)
			rc = neap__fail(NEAP_EUSAGE, "'%s': more than %d directories in a tier",
				stripes->list, NEAP__FILES);
		else
			rc = open_one(&stripes->files[stripes->count], item, name, flags);
		stripes->count += rc == 0;
	}
	free(copy);
	return rc;
}

/* Files on one file system share its free bytes. */
static uint64_t room(const struct neap__stripes *stripes)
{
	uint64_t least = UINT64_MAX;
	for (int i = 0; i < stripes->count; i++) {
		uint64_t beside = 0;
		for (int j = 0; j < stripes->count; j++)
			beside += stripes->files[i].device == stripes->files[j].device;
		uint64_t share = stripes->files[i].room / beside;
		least = share < least ? share : least;
	}
	return neap__sat_mul(least, (uint64_t)stripes->count);
}

int neap__stripes_open(
	struct neap__stripes *stripes, const char *list, const char *name, unsigned flags)
{
	*stripes = (struct neap__stripes){.list = strdup(list)};
	int rc = stripes->list ? open_each(stripes, name, flags)
			       : neap__fail_errno(ENOMEM, "'%s'", list);
	if (rc < 0)
		neap__stripes_close(stripes);
	else
		stripes->room = room(stripes);
	return rc;
}

/* Bytes that file i holds of `bytes` in all. */
static uint64_t share(const struct neap__stripes *stripes, uint64_t bytes, int i)
{
	uint64_t n = (uint64_t)stripes->count, turns = bytes / NEAP__STRIPE;
	uint64_t own = turns / n * NEAP__STRIPE, left = turns % n;
	if (n == 1)
		return bytes;
	if ((uint64_t)i < left)
		return own + NEAP__STRIPE;
	return (uint64_t)i == left ? own + bytes % NEAP__STRIPE : own;
}

int neap__stripes_reserve(struct neap__stripes *stripes, uint64_t bytes)
{
	for (int i = 0; i < stripes->count; i++) {
		struct neap__scratch *file = &stripes->files[i];
		NEAP_TRY(neap__scratch_reserve(file, file->head + share(stripes, bytes, i)));
	}
	return 0;
}

struct neap__stripe neap__stripe_at(const struct neap__stripes *stripes, uint64_t at)
{
	uint64_t n = (uint64_t)stripes->count, turn = at / NEAP__STRIPE, in = at % NEAP__STRIPE;
	if (n == 1)
		return (struct neap__stripe){0, stripes->files[0].head + at, UINT64_MAX};
	const struct neap__scratch *file = &stripes->files[turn % n];
	return (struct neap__stripe){
		(int)(turn % n), file->head + turn / n * NEAP__STRIPE + in, NEAP__STRIPE - in};
}

void neap__stripes_close(struct neap__stripes *stripes)
{
	for (int i = 0; i < stripes->count; i++)
		neap__scratch_close(&stripes->files[i]);
	free(stripes->list);
	*stripes = (struct neap__stripes){0};
}
