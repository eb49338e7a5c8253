/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables.h: the tables of kernels that tests run: one an instruction set, and AVX-512's
 * lowered to what every machine has: the same lanes, the same order of sums, the same bits.
 */
#ifndef NEAP_KERN_TABLES_H
#define NEAP_KERN_TABLES_H

#include "kern/kern.h"

enum { LOWERED = NEAP__ISAS, TABLES };

/* NULL: this machine lacks the instructions. */
static inline const struct neap__kernels *table(int t)
{
	static struct neap__kernels lowered;

	if (t != LOWERED)
		return neap__isa_works((enum neap__isa)t) ? neap__kernels_get((enum neap__isa)t)
							  : NULL;
	if (!lowered.name) {
		lowered = neap__kernels_reference;
		lowered.name = "lowered";
		NEAP_R(neap__vector_lowered)(&lowered);
	}
	return &lowered;
}

#endif
