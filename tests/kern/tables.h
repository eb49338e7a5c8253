/* SPDX-License-Identifier: Apache-2.0 */
/* tables.h: the tables of kernels that tests run: one per instruction set. */
#ifndef NEAP_KERN_TABLES_H
#define NEAP_KERN_TABLES_H

#include "kern/kern.h"

/* NULL: this machine lacks the instructions. */
static inline const struct neap__kernels *table(int t)
{
	return neap__isa_works((enum neap__isa)t) ? neap__kernels_get((enum neap__isa)t) : NULL;
}

#endif
