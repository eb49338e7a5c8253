/* SPDX-License-Identifier: Apache-2.0 */
/* sigmoid.c: the formula on one number at a time, for the reference table. */
#include "kern/sigmoid.h"

typedef real number;
#ifdef NEAP_REAL_DOUBLE
typedef uint64_t word;
#else
typedef uint32_t word;
#endif

static inline real within(real x, real most)
{
	return x > most ? most : x < -most ? -most : x;
}

#include "kern/sigmoid_formula.h"

void neap__sigmoids(real *x, int n)
{
	for (int i = 0; i < n; i++)
		x[i] = sigmoid(x[i]);
}

void neap__tanhs(real *x, int n)
{
	for (int i = 0; i < n; i++)
		x[i] = hyperbolic(x[i]);
}
