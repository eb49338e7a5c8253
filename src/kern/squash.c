/* SPDX-License-Identifier: Apache-2.0 */
/* squash: the plain rows of the table. */
#include "kern/squash.h"
#include "kern/squashing.h"

void neap__sigmoids(real *x, int n)
{
	sigmoids(x, n);
}

void neap__tanhs(real *x, int n)
{
	tanhs(x, n);
}
