/* SPDX-License-Identifier: Apache-2.0 */
/* isa.c: what the processor says, and the environment variable NEAP_ISA. */
#include "sys/isa.h"
#include "base/fail.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[NEAP__ISAS] = {
	[NEAP__ISA_LOWERED] = "lowered",
	[NEAP__ISA_PLAIN] = "plain",
	[NEAP__ISA_AVX2] = "avx2",
	[NEAP__ISA_AVX512] = "avx512",
};

const char *neap__isa_name(enum neap__isa isa)
{
	return names[isa];
}

/* The set whose bits a set has. */
static const char *bits_of(const char *name)
{
	return strcmp(name, names[NEAP__ISA_LOWERED]) == 0 ? names[NEAP__ISA_AVX512] : name;
}

int neap__isa_same_bits(const char *a, const char *b)
{
	return strcmp(bits_of(a), bits_of(b)) == 0;
}

#ifdef __x86_64__
int neap__isa_works(enum neap__isa isa)
{
	int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
	int avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
		     __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
		     __builtin_cpu_supports("avx512vl");
	return isa == NEAP__ISA_AVX512 ? avx512 : isa == NEAP__ISA_AVX2 ? avx2 : 1;
}
int neap__isa_has_bf16(enum neap__isa isa)
{
	return isa == NEAP__ISA_LOWERED || (isa == NEAP__ISA_AVX512 && neap__isa_works(isa) &&
						   __builtin_cpu_supports("avx512bf16"));
}
#else
int neap__isa_has_bf16(enum neap__isa isa)
{
	return isa == NEAP__ISA_LOWERED;
}

int neap__isa_works(enum neap__isa isa)
{
	return isa <= NEAP__ISA_PLAIN;
}
#endif

int neap__isa_choose(enum neap__isa *out)
{
	const char *name = getenv("NEAP_ISA");

	if (!name || !*name) {
		int isa = NEAP__ISAS - 1;
		while (!neap__isa_works((enum neap__isa)isa))
			isa--;
		*out = (enum neap__isa)isa;
		return 0;
	}
	for (int i = 0; i < NEAP__ISAS; i++) {
		if (strcmp(names[i], name) != 0)
			continue;
		if (!neap__isa_works((enum neap__isa)i))
			return neap__fail(NEAP_EUSAGE,
				"NEAP_ISA=%s: this processor does not support it. Choose plain or "
				"a smaller one, or unset it",
				name);
		*out = (enum neap__isa)i;
		return 0;
	}
	return neap__fail(NEAP_EUSAGE,
		"NEAP_ISA='%s' is not valid; choose plain, avx2, avx512 or lowered", name);
}
