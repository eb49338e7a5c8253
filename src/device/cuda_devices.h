/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_devices.h: lets nets run on CUDA devices (neap_net_options.device) in a program. */
#ifndef NEAP_DEVICE_CUDA_DEVICES_H
#define NEAP_DEVICE_CUDA_DEVICES_H

/* Sets neap__device_driver. The CUDA driver is loaded when the first device is opened. */
void neap__cuda_devices_use(void);

#endif
