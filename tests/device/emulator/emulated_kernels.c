/* SPDX-License-Identifier: Apache-2.0 */
/* emulated_kernels.c: the text of all kernels, compiled as C, and their table. */
#include "device/kernels/kernels.k"

#include <string.h>

#define DEFINE(name, blocks, threads, shared)                                                      \
	static void run_##name(const void *arguments)                                              \
	{                                                                                          \
		name(*(const struct name##_arguments *)arguments);                                 \
	}
NEAP__DEVICE_KERNELS(DEFINE)

#define ROW(name, blocks, threads, shared) {#name, sizeof(struct name##_arguments), run_##name},
static const struct emulated_kernel kernels[] = {NEAP__DEVICE_KERNELS(ROW)};

const struct emulated_kernel *emulated_kernel(const char *name)
{
	for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
		if (strcmp(kernels[i].name, name) == 0)
			return &kernels[i];
	return NULL;
}
