/* SPDX-License-Identifier: Apache-2.0 */
/* device_image.h: the compiled kernels, a part of the program where nvcc was found. */
#ifndef NEAP_DEVICE_DEVICE_IMAGE_H
#define NEAP_DEVICE_DEVICE_IMAGE_H

/*
 * Returns the image for cuModuleLoadData; NULL: there is none. With another driver than the
 * system's (NEAP_CUDA_DRIVER), which has kernels of its own, an empty image.
 */
const void *neap__device_image(void);

#endif
