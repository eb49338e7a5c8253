/* SPDX-License-Identifier: Apache-2.0 */
/* device_image.c: the compiled kernels (device_image.h). */
#include "device/device_image.h"

#include <stddef.h>
#include <stdlib.h>

#ifdef NEAP_DEVICE_IMAGE
__asm__(".section .rodata\n"
	".balign 64\n"
	".hidden neap__device_image_start\n"
	".global neap__device_image_start\n"
	"neap__device_image_start:\n"
	".incbin \"" NEAP_DEVICE_IMAGE "\"\n"
	".previous\n");
extern const char neap__device_image_start[];

const void *neap__device_image(void)
{
	return neap__device_image_start;
}
#else
const void *neap__device_image(void)
{
	return getenv("NEAP_CUDA_DRIVER") ? "" : NULL;
}
#endif
