/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roofline.c: two loops whose speed no kernel can beat: reading numbers, and products with sums in
 * registers. Benchmarks put kernels beside them.
 */
#include "kern/vector.h"

enum { CHAINS = 10 }; /* sums side by side: more than latency times units of any machine here */

real NEAP_V(neap__ceiling_read)(const real *x, int64_t count)
{
	vec a[4] = {{0}};

	for (int64_t i = 0; i + 4 * WIDE <= count; i += 4 * WIDE)
		EACH_REGISTER(int k = 0; k < 4; k++)
	a[k] += load(x + i + k * WIDE);
	return reduce((a[0] + a[1]) + (a[2] + a[3]));
}

int NEAP_V(neap__ceiling_products)(real *out, int64_t rounds)
{
	/* Sums tend to 2 c: with c = 0 they would become subnormal numbers, which take far longer.
	 */
	vec a[CHAINS], b = (vec){0} + (real)0.5, c = (vec){0} + (real)1;

	EACH_REGISTER(int k = 0; k < CHAINS; k++)
	a[k] = (vec){0} + (real)k;
	for (int64_t i = 0; i < rounds; i++)
		EACH_REGISTER(int k = 0; k < CHAINS; k++)
	a[k] = multiply_add(a[k], b, c);
	EACH_REGISTER(int k = 0; k < CHAINS; k++)
	*out += reduce(a[k]);
	return CHAINS * WIDE;
}
