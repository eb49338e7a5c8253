/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_devices.c: opens each device once for all nets and tiers that use it (cuda_devices.h). */
#include "device/cuda_devices.h"
#include "device/device_backend.h"
#include "nn/core/on_device.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/units.h"

#include <neap/net.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct use {
	struct neap_device *device;
	struct use *next;
	int users;
	int clusters; /* blocks of a cluster; 0: none */
	char name[];  /* as it was asked for */
};

static struct use *uses;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct use *use_of(const char *name)
{
	struct use *u = uses;
	while (u && strcmp(u->name, name) != 0)
		u = u->next;
	return u;
}

/* The blocks of a cluster, of "cuda:clusters=N" and "cuda:1:clusters=N"; *end: before that. */
static int read_clusters(int *clusters, size_t *end, const char *name)
{
	const char *key = strstr(name, ":clusters=");
	int64_t blocks = 0;

	*end = key ? (size_t)(key - name) : strlen(name);
	if (!key)
		return 0;
	if (neap__units_count(&blocks, key + strlen(":clusters=")) < 0 ||
		(blocks != 2 && blocks != 4 && blocks != 8 && blocks != DEVICE_CLUSTER_BLOCKS))
		return neap__fail(NEAP_EUSAGE,
			"device '%.60s': clusters have 2, 4, 8 or 16 blocks, such as "
			"cuda:clusters=8",
			name);
	*clusters = (int)blocks;
	return 0;
}

static int make(struct use **out, const char *name)
{
	struct use *u = calloc(1, sizeof *u + strlen(name) + 1);
	size_t end = 0;

	if (!u)
		return neap__fail_errno(ENOMEM, "device '%s'", name);
	int rc = read_clusters(&u->clusters, &end, name);
	if (rc == 0) { /* the part of the name that the driver knows */
		memcpy(u->name, name, end);
		rc = neap_device_open(&u->device, u->name);
		strcpy(u->name, name);
	}
	if (rc < 0) {
		free(u);
		return rc;
	}
	u->next = uses;
	uses = u;
	*out = u;
	return 0;
}

static int open_device(void **device, const char *name)
{
	int rc = 0;

	pthread_mutex_lock(&lock);
	struct use *u = use_of(name);
	if (!u)
		rc = make(&u, name);
	if (rc == 0) {
		u->users++;
		*device = u;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

static void close_device(void *device)
{
	struct use *u = device, **link = &uses;

	pthread_mutex_lock(&lock);
	if (--u->users == 0) {
		while (*link != u)
			link = &(*link)->next;
		*link = u->next;
		neap_device_close(u->device);
		free(u);
	}
	pthread_mutex_unlock(&lock);
}

static int attach(void **attached, void *device, struct neap_net *net)
{
	struct neap__device_backend *backend = NULL;

	const struct use *use = device;

	NEAP_TRY(neap__device_backend_open(&backend, use->device, net));
	int rc = neap__device_backend_clusters(backend, use->clusters);
	if (rc < 0) {
		neap__device_backend_close(backend);
		return rc;
	}
	*attached = backend;
	return 0;
}

static void detach(void *attached)
{
	neap__device_backend_close(attached);
}

static int tiers(void *device, struct neap_tier **out, int *count, const char *list,
	const struct neap_file_options *options)
{
	return neap_device_tiers_open(((struct use *)device)->device, out, count, list, options);
}

static int use_of_memory(void *device, struct neap_device_use *to, uint64_t *mapped)
{
	struct neap_device *d = ((struct use *)device)->device;
	uint64_t left, all;

	NEAP_TRY(neap_device_bytes(d, &left, &all));
	*to = (struct neap_device_use){.total = all,
		.free = left,
		.allocated = d->mapped_most,
		.measured = d->free_first > d->free_least ? d->free_first - d->free_least : 0};
	double joules = neap__device_joules(d);
	to->joules = isnan(joules) ? 0 : joules;
	*mapped = d->mapped;
	neap__print(to->about, sizeof to->about, "%s", d->about);
	return NEAP__CUDA(cuDeviceGetCount, (&to->devices));
}

static int measure_speed(void *device, double rate[3], double *launch)
{
	struct neap__device_speed speed;

	NEAP_TRY(neap__device_speed(((struct use *)device)->device, &speed));
	for (int i = 0; i < 3; i++)
		rate[i] = speed.rate[i];
	*launch = speed.launch;
	return 0;
}

static int count_devices(int *devices)
{
	NEAP_TRY(neap__cuda_load());
	return NEAP__CUDA(cuDeviceGetCount, (devices));
}

static const struct neap__device_driver driver = {.count = count_devices,
	.open = open_device,
	.close = close_device,
	.attach = attach,
	.detach = detach,
	.tiers = tiers,
	.use = use_of_memory,
	.speed = measure_speed};

void neap__cuda_devices_use(void)
{
	neap__device_driver = &driver;
}

/* Programs that use the shared library have devices. */
__attribute__((constructor)) static void use_at_load(void)
{
	neap__cuda_devices_use();
}
