/* SPDX-License-Identifier: Apache-2.0 */
/* fake_driver_kernels.c: the kernels that the fake driver knows. */
#include "fake_driver.h"
#include "toy_kernels.h"
#include "emulator.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARGUMENT(type, i) (*(type *)arguments[i])

static void run_forward(
	const struct fake_kernel *kernel, void **arguments, const struct fake_shape *shape)
{
	(void)kernel, (void)shape;
	toy_forward(ARGUMENT(float *, 0), ARGUMENT(float *, 1), ARGUMENT(float *, 2),
		ARGUMENT(int, 3), ARGUMENT(int64_t, 4), ARGUMENT(int64_t, 5));
}

static void run_backward(
	const struct fake_kernel *kernel, void **arguments, const struct fake_shape *shape)
{
	(void)kernel, (void)shape;
	toy_backward(ARGUMENT(float *, 0), ARGUMENT(float *, 1), ARGUMENT(float *, 2),
		ARGUMENT(double *, 3), ARGUMENT(int, 4), ARGUMENT(int64_t, 5),
		ARGUMENT(int64_t, 6));
}

static void run_turn(
	const struct fake_kernel *kernel, void **arguments, const struct fake_shape *shape)
{
	(void)kernel, (void)shape;
	toy_turn(ARGUMENT(float *, 0), ARGUMENT(float *, 1), ARGUMENT(double *, 2),
		ARGUMENT(int, 3));
}

static const struct fake_kernel kernels[] = {
	{"toy_forward", (const uint16_t[]){8, 8, 8, 4, 8, 8, 0}, run_forward, NULL},
	{"toy_backward", (const uint16_t[]){8, 8, 8, 8, 4, 8, 8, 0}, run_backward, NULL},
	{"toy_turn", (const uint16_t[]){8, 8, 8, 4, 0}, run_turn, NULL},
};

enum { EMULATED_MOST = 64 };

static void run_emulated(
	const struct fake_kernel *kernel, void **arguments, const struct fake_shape *shape)
{
	static uint32_t launches; /* the order of threads differs from launch to launch */
	const struct fake_driver *driver = fake_driver();

	if (driver->slow && strncmp(kernel->name, "lif_", 4) == 0 &&
		(int)shape->cluster != driver->quick)
		usleep((useconds_t)driver->slow * 1000);
	if (emulator_launch_clusters(kernel->data, (int)shape->grid,
		    shape->cluster ? (int)shape->cluster : 1, (int)shape->block, shape->shared,
		    arguments, fake_driver()->seed ? ++launches : 0) == 0)
		return;
	fprintf(stderr, "fake driver: %s\n", emulator_report());
	abort();
}

/* The kernels of src/device/kernels, which the emulator runs. */
static const struct fake_kernel *emulated(const char *name)
{
	static struct fake_kernel found[EMULATED_MOST];
	static uint16_t bytes[EMULATED_MOST][2];
	static int count;
	const struct emulated_kernel *kernel = emulated_kernel(name);

	for (int i = 0; i < count; i++)
		if (found[i].data == kernel)
			return &found[i];
	if (!kernel || count == EMULATED_MOST)
		return NULL;
	bytes[count][0] = (uint16_t)kernel->argument_bytes;
	found[count] = (struct fake_kernel){kernel->name, bytes[count], run_emulated, kernel};
	return &found[count++];
}

const struct fake_kernel *fake_kernel(const char *name)
{
	for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
		if (strcmp(kernels[i].name, name) == 0)
			return &kernels[i];
	return emulated(name);
}
