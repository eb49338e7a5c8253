/* SPDX-License-Identifier: Apache-2.0 */
/* blas.h: OpenBLAS where the machine has it, loaded at run time: a peer, not a dependency. */
#ifndef NEAP_BENCH_BLAS_H
#define NEAP_BENCH_BLAS_H

struct neap__blas {
	void *library;
	const char *name; /* version and kernels, as it says itself */
	/* C += op(A) op(B), rows one after the other, on one thread; A is M x K (turned: K x M). */
	void (*gemm)(const struct neap__blas *blas, int m, int n, int k, const float *a, int turn_a,
		const float *b, int turn_b, float *c);
	void (*sgemm)(int order, int turn_a, int turn_b, int m, int n, int k, float alpha,
		const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
};

/* 1: found; 0: the machine has none. */
int neap__blas_open(struct neap__blas *blas);
void neap__blas_close(struct neap__blas *blas);

#endif
