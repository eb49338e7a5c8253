/* SPDX-License-Identifier: Apache-2.0 */
/* blas.c: loads OpenBLAS and calls its single-precision product. */
#include "bench/blas.h"

#include <dlfcn.h>
#include <string.h>

enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 }; /* numbers of the CBLAS interface */

static void gemm(const struct neap__blas *blas, int m, int n, int k, const float *a,
	int transpose_a, const float *b, int transpose_b, float *c)
{
	blas->sgemm(ROW_MAJOR, transpose_a ? TRANSPOSED : PLAIN, transpose_b ? TRANSPOSED : PLAIN,
		m, n, k, 1, a, transpose_a ? m : k, b, transpose_b ? k : n, 1, c, n);
}

/*
 * Sets *to, a pointer to a function, to the symbol of that name; 0 where there is none. ISO C
 * has no cast from the pointer to data that dlsym returns, so that the bytes are copied.
 */
static int find(void *library, const char *name, void *to)
{
	void *symbol = dlsym(library, name);
	memcpy(to, &symbol, sizeof symbol);
	return symbol != NULL;
}

int neap__blas_open(struct neap__blas *blas)
{
	void (*set_threads)(int);
	char *(*config)(void);

	*blas = (struct neap__blas){.gemm = gemm};
	blas->library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
	if (!blas->library)
		return 0;
	if (!find(blas->library, "cblas_sgemm", &blas->sgemm) ||
		!find(blas->library, "openblas_set_num_threads", &set_threads) ||
		!find(blas->library, "openblas_get_config", &config)) {
		neap__blas_close(blas);
		return 0;
	}
	set_threads(1);
	blas->name = config();
	return 1;
}

void neap__blas_close(struct neap__blas *blas)
{
	if (blas->library)
		dlclose(blas->library);
	*blas = (struct neap__blas){0};
}
