/* SPDX-License-Identifier: Apache-2.0 */
/*
 * subnormals.h: whether a thread computes with subnormal numbers. Gradients that vanish over
 * thousands of steps end there, below 1.2e-38 in float, and never become 0: a decay rounds the
 * smallest one to itself. Some processors take a hundred cycles for each, so that a backward pass
 * takes six times as long. Where they are off they are 0. Nothing happens on other processors than
 * x86-64.
 */
#ifndef NEAP_BASE_SUBNORMALS_H
#define NEAP_BASE_SUBNORMALS_H

#ifdef __x86_64__
#include <xmmintrin.h>

enum { NEAP__FLUSH_MODE = 0x8040 }; /* results and operands are flushed: FTZ and DAZ of MXCSR */

/* Turns them off in this thread. Returns what neap__subnormals_restore takes. */
static inline unsigned neap__subnormals_off(void)
{
	unsigned mode = _mm_getcsr();
	_mm_setcsr(mode | NEAP__FLUSH_MODE);
	return mode;
}

static inline void neap__subnormals_restore(unsigned mode)
{
	_mm_setcsr(mode);
}
#else
static inline unsigned neap__subnormals_off(void)
{
	return 0;
}

static inline void neap__subnormals_restore(unsigned mode)
{
	(void)mode;
}
#endif

#endif
