/* SPDX-License-Identifier: Apache-2.0 */
/* isa.c: what the processor says, and the environment variable NEAP_ISA. */
#include "sys/isa.h"
#include "base/debug_log.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

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

int neap__isa_take_amx(void)
{
	/* Intel SDM, volume 2, "CPUID", leaf 7: bits of EDX; leaf 1: a bit of ECX. */
	enum { AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24, OSXSAVE = 1 << 27 };
	/* XCR0, and the feature whose state is large: the tiles' data (arch/x86 of Linux). */
	enum { TILE_STATES = 3 << 17, TILE_DATA = 18, ARCH_REQ_XCOMP_PERM = 0x1023 };
	unsigned a, b, c, d, states, high;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & OSXSAVE))
		return 0;
	if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & AMX_BF16) || !(d & AMX_TILE))
		return 0;
	__asm__ volatile("xgetbv" : "=a"(states), "=d"(high) : "c"(0));
	if ((states & TILE_STATES) != TILE_STATES)
		return 0;
#ifdef __linux__
	if (syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0)
		return 1;
	neap__debug("the processor has AMX, but Linux refuses its use: arch_prctl fails with errno "
		    "%d",
		errno);
#endif
	return 0;
}
#else
int neap__isa_has_bf16(enum neap__isa isa)
{
	return isa == NEAP__ISA_LOWERED;
}

int neap__isa_take_amx(void)
{
	return 0;
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
