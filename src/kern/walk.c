/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk: membranes of a strip of units over many steps, all incoming spikes known. The
 * strip's membranes stay in registers and its weights in a near cache; every sum is made
 * in the order in which one step after the other makes it, so the bits are the same.
 */
#include "kern/kern.h"

#include <string.h>

enum { LANES = 8 }; /* vectors in a strip */

#ifdef NEAP_REAL_DOUBLE
typedef int64_t walk_bits;
#else
typedef int32_t walk_bits;
#endif

#define VECTOR 16
#define TARGET
#define WALK(name) name##_16
#include "kern/walkstrip.h"

#ifdef __x86_64__
#define VECTOR 32
#define TARGET __attribute__((target("avx2")))
#define WALK(name) name##_32
#include "kern/walkstrip.h"

#define VECTOR 64
#define TARGET __attribute__((target("avx512f,avx512dq")))
#define WALK(name) name##_64
#include "kern/walkstrip.h"

static int vector_bytes(void)
{
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
		return 64;
	return __builtin_cpu_supports("avx2") ? 32 : 16;
}

void neap__walk_strip(const struct neap__walk *w, int strip)
{
	int bytes = w->strip * (int)sizeof(real) / LANES;
	if (bytes == 64)
		walk_64(w, strip);
	else if (bytes == 32)
		walk_32(w, strip);
	else
		walk_16(w, strip);
}
#else
static int vector_bytes(void)
{
	return 16;
}

void neap__walk_strip(const struct neap__walk *w, int strip)
{
	walk_16(w, strip);
}
#endif

int neap__walk_units(void)
{
	return LANES * vector_bytes() / (int)sizeof(real);
}

/* Row by row within a strip, so that a strip's weights lie together. */
void neap__walk_pack(real *packed, const real *w, int rows, int n, int strip)
{
	for (int from = 0; from < n; from += strip)
		for (int j = 0; j < rows; j++, packed += strip) {
			int most = n - from < strip ? n - from : strip;
			memset(packed, 0, (size_t)strip * sizeof(real));
			memcpy(packed, w + (size_t)j * n + from, (size_t)most * sizeof(real));
		}
}
