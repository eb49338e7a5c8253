/* SPDX-License-Identifier: Apache-2.0 */
/* isa.h: chooses the instruction set that vector kernels use. */
#ifndef NEAP_SYS_ISA_H
#define NEAP_SYS_ISA_H

#include <neap/status.h>

/*
 * From PLAIN, which is what the compiler may use in all of the library, the widest vectors last.
 * LOWERED has the arithmetic of AVX512, without its instructions: vectors of the same width, the
 * same order of sums and the same fused products, hence the same bits on every processor. It is
 * slow, and never chosen unless NEAP_ISA names it.
 */
enum neap__isa { NEAP__ISA_LOWERED, NEAP__ISA_PLAIN, NEAP__ISA_AVX2, NEAP__ISA_AVX512, NEAP__ISAS };

/* "lowered", "plain", "avx2", "avx512" */
const char *neap__isa_name(enum neap__isa isa);

/* 1 if two sets of these names give the same bits: the same one, or lowered and avx512. */
int neap__isa_same_bits(const char *a, const char *b);

/* 1 if this machine has it. */
int neap__isa_works(enum neap__isa isa);

/* 1 if it multiplies bfloat16 numbers: avx512 if this machine has AVX512-BF16, and lowered. */
int neap__isa_has_bf16(enum neap__isa isa);

/*
 * 1 if the processor has AMX with bfloat16 (AMX-TILE, AMX-BF16) and Linux lets this process use
 * it, for which it asks: the state of its 8 KiB of registers is allocated to a thread that uses
 * them.
 */
int neap__isa_take_amx(void);

/*
 * *isa becomes the one that NEAP_ISA names, else the widest that works here. NEAP_EUSAGE where
 * NEAP_ISA names none, or one that this machine lacks.
 */
int neap__isa_choose(enum neap__isa *isa);

#endif
