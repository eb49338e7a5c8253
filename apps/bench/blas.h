/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blas.h: the matrix product of OpenBLAS, to compare with. The library is loaded at run time,
 * where the machine has it, so that the tool does not depend on it.
 */
#ifndef NEAP_BENCH_BLAS_H
#define NEAP_BENCH_BLAS_H

struct neap__blas {
	void *library;
	const char *name; /* version and kernels, as it says itself */
	/* C += op(A) op(B), row by row, on one thread; A is M x K (transposed: K x M). */
	void (*gemm)(const struct neap__blas *blas, int m, int n, int k, const float *a,
		int transpose_a, const float *b, int transpose_b, float *c);
	void (*sgemm)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
		const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
};

/* 1: found; 0: the machine has none. */
int neap__blas_open(struct neap__blas *blas);
void neap__blas_close(struct neap__blas *blas);

#endif
