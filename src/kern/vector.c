/* SPDX-License-Identifier: Apache-2.0 */
/* vector: the table's entries that this instruction set does better. */
#include "kern/vector.h"

#define PUT_(isa) NEAP_R(neap__vector_##isa)
#define PUT(isa) PUT_(isa)

void PUT(NEAP__ISA)(struct neap__kernels *kernels)
{
	kernels->rows[0].dot = NEAP_V(neap__dots);
	kernels->walk = NEAP_V(neap__walk);
	kernels->walk_units = NEAP__WALK_VECTORS * WIDE;
}
