/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mma_model.h: a model of the tensor core instructions that kernels use. d += a b of a warp: all
 * products are exact, and are added in double to the number that was there, in the order of their
 * terms; the result is rounded to float towards zero, as measured on devices (Fasi et al., PeerJ
 * Computer Science 7:e330, 2021). NVIDIA does not specify the order of the additions and how they
 * are rounded (PTX manual, mma), so that a device may give other bits.
 */
#ifndef NEAP_MMA_MODEL_H
#define NEAP_MMA_MODEL_H

#include <stdint.h>

enum mma_kind { MMA_KIND_BF16, MMA_KIND_TF32 };

/* cvt.rn.bf16x2.f32: `low` in the lower half. */
uint32_t mma_bf16_pair(float low, float high);
/* cvt.rna.tf32.f32: to 11 bits, to nearest, ties away from zero. */
uint32_t mma_tf32(float x);
/*
 * d[lane][4] += a[lane][4] b[lane][2] for the 32 threads of a warp, in registers as the PTX manual
 * has them for mma.m16n8k16 (.bf16) and mma.m16n8k8 (.tf32).
 */
void mma_model(
	enum mma_kind kind, float *const *d, const uint32_t *const *a, const uint32_t *const *b);

#endif
