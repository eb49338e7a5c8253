/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct_size.h: takes over public structs that begin with their own size. A program that was
 * compiled with an older header passes a shorter struct: what it lacks is 0 or NULL. A program
 * that was compiled with a newer header is refused, since the library would ignore what it asks.
 */
#ifndef NEAP_BASE_STRUCT_SIZE_H
#define NEAP_BASE_STRUCT_SIZE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "base/fail.h"

/*
 * Checks the `size` that a caller has set in struct `name`: `least` bytes are required, `own` is
 * the size that this library knows. 0 or NEAP_EUSAGE.
 */
static inline int neap__struct_size(uint32_t size, size_t least, size_t own, const char *name)
{
	if (size >= least && size <= own)
		return 0;
	if (size < least)
		neap__fail(NEAP_EUSAGE, "%s: set size to its sizeof, not %u", name, size);
	else
		neap__fail(NEAP_EUSAGE,
			"%s: the library is older than the header: it knows %zu bytes of this "
			"struct, not %u",
			name, own, size);
	return NEAP_EUSAGE; /* named here so that compilers see that `size` fits `own` */
}

/*
 * Fills the struct `full` of `own` bytes from `given`, which begins with its uint32_t size; what
 * `given` lacks becomes 0, and full's size becomes `own`. 0 or NEAP_EUSAGE.
 */
static inline int neap__struct_take(void *full, size_t own, const void *given, const char *name)
{
	uint32_t size = 0, whole = (uint32_t)own;
	if (given)
		memcpy(&size, given, sizeof size);
	int rc = neap__struct_size(size, sizeof size, own, name);
	if (rc < 0)
		return rc;
	memset(full, 0, own);
	memcpy(full, given, size);
	memcpy(full, &whole, sizeof whole);
	return 0;
}

/*
 * Hands `full` of `own` bytes to a caller whose struct `given` begins with its size, checked
 * by neap__struct_size: as much as fits there. Its size stays.
 */
static inline void neap__struct_give(void *given, const void *full, size_t own)
{
	uint32_t size;
	memcpy(&size, given, sizeof size);
	memcpy((char *)given + sizeof size, (const char *)full + sizeof size,
		(size < own ? size : own) - sizeof size);
}

#endif
