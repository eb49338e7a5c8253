/* SPDX-License-Identifier: Apache-2.0 */
/* energy.c: functions of NVML, whose types stay opaque (energy.h). */
#include "cuda/energy.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>

typedef int call_init(void);
typedef int call_find(const char *bus, void **device);
typedef int call_energy(void *device, unsigned long long *millijoules);

static void *find(const struct neap__energy *energy, const char *name)
{
	return energy->library ? dlsym(energy->library, name) : NULL;
}

static double counter(const struct neap__energy *energy)
{
	unsigned long long millijoules = 0;
	call_energy *read = (call_energy *)find(energy, "nvmlDeviceGetTotalEnergyConsumption");

	if (!energy->device || !read || read(energy->device, &millijoules) != 0)
		return NAN;
	return (double)millijoules / 1000;
}

void neap__energy_open(struct neap__energy *energy, const char *bus)
{
	const char *given = getenv("NEAP_NVML");

	*energy = (struct neap__energy){
		.library = dlopen(given ? given : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)};
	call_init *init = (call_init *)find(energy, "nvmlInit_v2");
	call_find *by_bus = (call_find *)find(energy, "nvmlDeviceGetHandleByPciBusId_v2");
	if (!init || !by_bus || init() != 0) {
		if (energy->library)
			dlclose(energy->library);
		*energy = (struct neap__energy){0};
		return;
	}
	if (by_bus(bus, &energy->device) != 0)
		energy->device = NULL;
	energy->start = counter(energy);
}

double neap__energy_joules(const struct neap__energy *energy)
{
	return counter(energy) - energy->start;
}

void neap__energy_close(struct neap__energy *energy)
{
	call_init *shut_down = (call_init *)find(energy, "nvmlShutdown");

	if (shut_down)
		shut_down();
	if (energy->library)
		dlclose(energy->library);
	*energy = (struct neap__energy){0};
}
