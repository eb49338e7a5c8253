/* SPDX-License-Identifier: Apache-2.0 */
/* squashes: the same operations on wider vectors, none of them fused: the same bits. */
#include "kern/squashing.h"
#include "kern/vector.h"

void NEAP_V(neap__squash_sigmoids)(real *x, int n)
{
	sigmoids(x, n);
}

void NEAP_V(neap__squash_tanhs)(real *x, int n)
{
	tanhs(x, n);
}
