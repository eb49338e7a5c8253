/* SPDX-License-Identifier: Apache-2.0 */
/* dispatch.c: the tables of all instruction sets, filled in once. */
#include "kern/kern.h"

#include <pthread.h>

static struct neap__kernels tables[NEAP__ISAS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The reference in full, then what the instruction set does better. */
static void fill(void)
{
	static void (*const put[NEAP__ISAS])(struct neap__kernels *) = {
		[NEAP__ISA_LOWERED] = NEAP_R(neap__vector_lowered),
		[NEAP__ISA_PLAIN] = NEAP_R(neap__vector_plain),
#ifdef __x86_64__
		[NEAP__ISA_AVX2] = NEAP_R(neap__vector_avx2),
		[NEAP__ISA_AVX512] = NEAP_R(neap__vector_avx512),
#endif
	};
	static const struct neap__bf16_ops *const bf16[NEAP__ISAS] = {
		[NEAP__ISA_LOWERED] = &neap__bf16_model,
#ifdef __x86_64__
		[NEAP__ISA_AVX512] = &neap__bf16_avx512,
#endif
	};
	for (int i = 0; i < NEAP__ISAS; i++) {
		tables[i] = neap__kernels_reference;
		tables[i].name = neap__isa_name((enum neap__isa)i);
		if (put[i] && neap__isa_works((enum neap__isa)i)) /* compiled for it */
			put[i](&tables[i]);
		if (sizeof(real) == sizeof(float) && neap__isa_has_bf16((enum neap__isa)i))
			tables[i].bf16 = bf16[i];
	}
}

const struct neap__kernels *neap__kernels_get(enum neap__isa isa)
{
	pthread_once(&once, fill);
	return &tables[isa];
}
