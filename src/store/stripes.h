/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stripes.h: one row of bytes over several scratch files, in stripes: byte b lies in file (b /
 * NEAP__STRIPE) % count. With one file, offsets are those of the row.
 */
#ifndef NEAP_STORE_STRIPES_H
#define NEAP_STORE_STRIPES_H

#include "sys/engine.h"

#define NEAP__STRIPE                                                                               \
	(UINT64_C(256) << 10) /* bytes: as large as a piece, so that a piece lies in one file */

struct neap__stripes {
	struct neap__scratch files[NEAP__FILES];
	int count;
	uint64_t room; /* bytes that can be stored, as the fullest file system allows; when they
			  were opened */
	char *list;    /* the directories, as given. Owned */
};

/* Where a byte key, and how many bytes go on from there in the same file. */
struct neap__stripe {
	int file;
	uint64_t offset, run;
};

/*
 * Opens a file in each directory of "DIR[+DIR...]", kept under `name` or, where that is
 * NULL, unnamed; flags as of neap__scratch_open.
 */
int neap__stripes_open(
	struct neap__stripes *stripes, const char *list, const char *name, unsigned flags);
/* Reserves `bytes` over all files. */
int neap__stripes_reserve(struct neap__stripes *stripes, uint64_t bytes);
struct neap__stripe neap__stripe_at(const struct neap__stripes *stripes, uint64_t at);
void neap__stripes_close(struct neap__stripes *stripes);

#endif
