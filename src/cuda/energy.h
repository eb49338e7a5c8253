/* SPDX-License-Identifier: Apache-2.0 */
/*
 * energy.h: the energy counter of a device, from NVML: libnvidia-ml.so.1, or the library that the
 * environment variable NEAP_NVML names, for tests. It is loaded at run time, and does not have to
 * be there.
 */
#ifndef NEAP_CUDA_ENERGY_H
#define NEAP_CUDA_ENERGY_H

/* The counter of one device; all zero: there is none. */
struct neap__energy {
	void *library, *device;
	double start; /* joules when it was opened */
};

/* Finds the device by its address on the PCI bus, such as "0000:17:00.0". */
void neap__energy_open(struct neap__energy *energy, const char *bus);
/* Returns the joules that the device has taken since then; NAN: they are not known. */
double neap__energy_joules(const struct neap__energy *energy);
void neap__energy_close(struct neap__energy *energy);

#endif
