/* SPDX-License-Identifier: Apache-2.0 */
/* sigmoid_vector.c: the same formula on vectors, nothing fused: the bits of the reference. */
#include "kern/vector.h"

typedef vec number;
#ifdef NEAP_REAL_DOUBLE
typedef uint64_t word __attribute__((vector_size(NEAP__VECTOR)));
#else
typedef uint32_t word __attribute__((vector_size(NEAP__VECTOR)));
#endif

/* a where the lane is set, b where not. */
INLINE vec chosen(mask lanes, vec a, vec b)
{
	return (vec)((lanes & (mask)a) | (~lanes & (mask)b));
}

INLINE vec within(vec x, real most)
{
	x = chosen(x > most, (vec){0} + most, x);
	return chosen(x < -most, (vec){0} - most, x);
}

#include "kern/sigmoid_formula.h"

INLINE void rows(real *x, int n, vec (*function)(vec))
{
	int i = 0;

	for (; i + WIDE <= n; i += WIDE)
		store(x + i, function(load(x + i)));
	if (i < n)
		store_part(x + i, function(load_part(x + i, n - i)), n - i);
}

void NEAP_V(neap__sigmoid_rows)(real *x, int n)
{
	rows(x, n, sigmoid);
}

void NEAP_V(neap__tanh_rows)(real *x, int n)
{
	rows(x, n, hyperbolic);
}
