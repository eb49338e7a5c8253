/* SPDX-License-Identifier: Apache-2.0 */
/* isa.h: chooses the instruction set that vector kernels use. */
#ifndef NEAP_SYS_ISA_H
#define NEAP_SYS_ISA_H

#include <neap/status.h>

/* From the narrowest vectors up. PLAIN: what the compiler may use in all of the library. */
enum neap__isa { NEAP__ISA_PLAIN, NEAP__ISA_AVX2, NEAP__ISA_AVX512, NEAP__ISAS };

/* "plain", "avx2", "avx512" */
const char *neap__isa_name(enum neap__isa isa);

/* 1 if this machine has it. */
int neap__isa_works(enum neap__isa isa);

/*
 * *isa becomes the one that NEAP_ISA names, else the widest that works here. NEAP_EUSAGE where
 * NEAP_ISA names none, or one that this machine lacks.
 */
int neap__isa_choose(enum neap__isa *isa);

#endif
