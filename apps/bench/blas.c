/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/blas.h"

#include <dlfcn.h>
#include <string.h>

enum { ROW_MAJOR = 101, AS_IT_IS = 111, TURNED = 112 }; /* of the C interface of BLAS */

static void gemm(const struct neap__blas *blas, int m, int n, int k, const float *a, int turn_a,
	const float *b, int turn_b, float *c)
{
	blas->sgemm(ROW_MAJOR, turn_a ? TURNED : AS_IT_IS, turn_b ? TURNED : AS_IT_IS, m, n, k, 1,
		a, turn_a ? m : k, b, turn_b ? k : n, 1, c, n);
}

/* A function of the library, in the form that ISO C lets a pointer to data be turned into it. */
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
