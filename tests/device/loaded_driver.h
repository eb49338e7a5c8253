/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loaded_driver.h: the counters and settings of the fake driver that libneap-cuda has loaded. Tests
 * must not link it: they would get a second copy.
 */
#ifndef NEAP_TESTS_DEVICE_LOADED_DRIVER_H
#define NEAP_TESTS_DEVICE_LOADED_DRIVER_H

#include "test.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "../cuda/fake_driver.h"

static void *fake_function(const char *name)
{
	static void *library;
	if (!library)
		library = dlopen(getenv("NEAP_CUDA_DRIVER"), RTLD_NOW);
	assert_non_null(library);
	return dlsym(library, name);
}

static void reset_driver(uint64_t seed)
{
	void (*reset)(uint64_t);
	*(void **)&reset = fake_function("fake_driver_reset");
	reset(seed);
}

static struct fake_driver *fake(void)
{
	struct fake_driver *(*driver)(void);
	*(void **)&driver = fake_function("fake_driver");
	return driver();
}

#endif
