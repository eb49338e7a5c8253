/* SPDX-License-Identifier: Apache-2.0 */
/* fake_nvml.c: the functions of NVML that neap calls: a device takes 2.5 J between two readings. */
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static int users, device;
static unsigned long long millijoules = 1000000;

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlShutdown(void);
EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **found);
EXPORT int nvmlDeviceGetTotalEnergyConsumption(void *of, unsigned long long *total);

int nvmlInit_v2(void)
{
	users++;
	return getenv("FAKE_NVML_FAILS") ? 999 : 0;
}

int nvmlShutdown(void)
{
	return --users < 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **found)
{
	*found = &device;
	return strcmp(bus, "0000:00:00.0") != 0;
}

int nvmlDeviceGetTotalEnergyConsumption(void *of, unsigned long long *total)
{
	*total = millijoules += 2500;
	return of != &device;
}
