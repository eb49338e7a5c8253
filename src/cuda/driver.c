/* SPDX-License-Identifier: Apache-2.0 */
/* driver.c: loads the CUDA driver and reports its errors. */
#include "cuda/driver.h"
#include "base/fail.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

struct neap__cuda neap__cuda;

/* A row of the driver's functions: where its address is stored. */
struct symbol {
	const char *name;
	void **at;
	int is_needed;
};

static const struct symbol symbols[] = {
#define NEAP__X(name, symbol, arguments) {symbol, (void **)&neap__cuda.name, 1},
	NEAP__CUDA_CALLS(NEAP__X)
#undef NEAP__X
#define NEAP__X(name, symbol, arguments) {symbol, (void **)&neap__cuda.name, 0},
		NEAP__CUDA_LATER_CALLS(NEAP__X)
#undef NEAP__X
};

int neap__cuda_answer(CUresult result, const char *call)
{
	const char *text = NULL;
	if (result == 0)
		return 0;
	if (neap__cuda.cuGetErrorString(result, &text) != 0 || !text)
		text = "an error unknown to the driver";
	int code = result == NEAP__CUDA_OUT_OF_MEMORY					   ? -ENOMEM
		   : result == NEAP__CUDA_NO_DEVICE || result == NEAP__CUDA_INVALID_DEVICE ? -ENODEV
											   : -EIO;
	return neap__fail(code, "%s failed with CUDA error %d: %s", call, result, text);
}

static int load(void)
{
	const char *given = getenv("NEAP_CUDA_DRIVER"), *name = given ? given : "libcuda.so.1";
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		const char *why = dlerror();
		return neap__fail(-ENODEV,
			"no CUDA driver was found (%s). Install the NVIDIA driver, or compute "
			"without a device",
			why ? why : name);
	}
	int rc = 0;
	for (size_t i = 0; i < sizeof symbols / sizeof symbols[0] && rc == 0; i++) {
		*symbols[i].at = dlsym(library, symbols[i].name);
		if (!*symbols[i].at && symbols[i].is_needed)
			rc = neap__fail(-ENODEV,
				"the CUDA driver '%s' has no function %s: it is too old. Update "
				"the NVIDIA driver",
				name, symbols[i].name);
	}
	if (rc == 0 && NEAP__CUDA(cuInit, (0)) < 0)
		rc = neap__fail_in(-ENODEV, "the CUDA driver '%s' cannot be used: ", name);
	if (rc < 0)
		dlclose(library);
	return rc;
}

int neap__cuda_load(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static int loaded;
	pthread_mutex_lock(&lock);
	int rc = loaded ? 0 : load();
	loaded = rc == 0;
	pthread_mutex_unlock(&lock);
	return rc;
}
