/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toy_model.h: the chain of toy_kernels.h as a model on the fake device, whose callbacks start
 * kernels and return; its gradient on the host; and a sweep over it.
 */
#ifndef NEAP_TEST_TOY_MODEL_H
#define NEAP_TEST_TOY_MODEL_H

#include "base/fail.h"
#include "cuda/device.h"
#include "fake_driver.h"
#include "toy_kernels.h"
#include "../test.h"

#include <dlfcn.h>
#include <errno.h>
#include <neap/sweep.h>

#define TOY_NUMBERS 48
#define TOY_STEPS 300
#define TOY_BYTES (TOY_NUMBERS * sizeof(float))

struct toy_gradient {
	double loss, dw[TOY_NUMBERS];
	float dx[TOY_NUMBERS];
};

struct toy {
	struct neap_device *device;
	CUmodule module;
	CUfunction forward, backward, turn;
	void *w, *dw, *loss; /* of the device */
	/* Of the host. A copy that is done too late changes nothing else. */
	struct toy_gradient copied;
	float weights[TOY_NUMBERS];
	void (*at_turn)(void); /* NULL, or called in the callback */
};

/* A function that the fake driver exports. */
static inline void *fake_function(const char *name)
{
	static void *library;
	if (!library)
		library = dlopen(getenv("NEAP_CUDA_DRIVER"), RTLD_NOW);
	assert_non_null(library);
	return dlsym(library, name);
}

/* The control of the driver that neap has loaded. */
static inline struct fake_driver *fake(void)
{
	struct fake_driver *(*driver)(void);
	*(void **)&driver = fake_function("fake_driver");
	return driver();
}

/* Calls one of the functions of fake_driver.h that have an argument. */
static inline void fake_call(const char *name, uint64_t argument)
{
	void (*function)(uint64_t);
	*(void **)&function = fake_function(name);
	function(argument);
}

static inline void toy_start(float *x, float *w)
{
	for (int i = 0; i < TOY_NUMBERS; i++) {
		x[i] = 0.3f - 0.01f * (float)i;
		w[i] = (float)((i * 37) % 19 - 9) / 5;
	}
}

/* The gradient on the host. */
static inline struct toy_gradient toy_reference(void)
{
	static float tapes[TOY_STEPS * TOY_NUMBERS];
	struct toy_gradient g = {0};
	float x[TOY_NUMBERS], w[TOY_NUMBERS];
	toy_start(x, w);
	toy_forward(x, tapes, w, TOY_NUMBERS, 0, TOY_STEPS);
	toy_turn(x, g.dx, &g.loss, TOY_NUMBERS);
	toy_backward(g.dx, tapes, w, g.dw, TOY_NUMBERS, TOY_STEPS, 0);
	return g;
}

static inline int toy_launch(const struct toy *toy, CUfunction kernel, void **arguments)
{
	return NEAP__CUDA(cuLaunchKernel,
		(kernel, 1, 1, 1, 32, 1, 1, 0, neap_device_stream(toy->device), arguments, NULL));
}

static inline int toy_forward_call(
	const struct toy *toy, void *state, void *tape, int64_t t0, int64_t t1)
{
	int n = TOY_NUMBERS;
	void *w = toy->w, *arguments[] = {&state, &tape, &w, &n, &t0, &t1};
	return toy_launch(toy, toy->forward, arguments);
}

static inline int toy_advance(void *user, void *state, int64_t t0, int64_t t1, int first)
{
	(void)first;
	return toy_forward_call(user, state, NULL, t0, t1);
}

static inline int toy_record(void *user, void *state, int64_t t0, int64_t t1, int first, void *tape,
	size_t room, size_t *used, int64_t *t_done)
{
	int64_t fit = (int64_t)(room / TOY_BYTES);
	(void)first;
	*t_done = fit < t1 - t0 ? t0 + fit : t1;
	*used = (size_t)(*t_done - t0) * TOY_BYTES;
	return *used ? toy_forward_call(user, state, tape, t0, *t_done) : 0;
}

static inline int toy_turn_call(void *user, const void *state, void *adjoint, double *loss)
{
	struct toy *toy = user;
	const struct neap_memory_ops *memory = neap_device_memory(toy->device);
	int n = TOY_NUMBERS;
	if (toy->at_turn)
		toy->at_turn();
	void *at = toy->loss, *arguments[] = {&state, &adjoint, &at, &n};
	NEAP_TRY(toy_launch(toy, toy->turn, arguments));
	NEAP_TRY(memory->read(memory->user, &toy->copied.loss, toy->loss, sizeof *loss));
	*loss = toy->copied.loss;
	return 0;
}

static inline int toy_backward_call(
	void *user, void *adjoint, int64_t t1, int64_t t0, const void *tape)
{
	const struct toy *toy = user;
	int n = TOY_NUMBERS;
	void *w = toy->w, *dw = toy->dw, *arguments[] = {&adjoint, &tape, &w, &dw, &n, &t1, &t0};
	return toy_launch(toy, toy->backward, arguments);
}

static inline int toy_fence(void *user)
{
	const struct toy *toy = user;
	int rc = neap_device_wait(toy->device);
	/* The next function of the memory may wait as well: this one may not be needed. */
	fake()->pending[FAKE_STREAM_SYNCHRONIZE][fake()->waits[FAKE_STREAM_SYNCHRONIZE]] = 0;
	return rc;
}

static inline struct neap_step_ops toy_ops(const struct toy *toy)
{
	return (struct neap_step_ops){.size = sizeof(struct neap_step_ops),
		.advance = toy_advance,
		.record = toy_record,
		.turn = toy_turn_call,
		.backward = toy_backward_call,
		.state_bytes = TOY_BYTES,
		.adjoint_bytes = TOY_BYTES,
		.tape_bytes = TOY_BYTES,
		.memory = neap_device_memory(toy->device),
		.fence = toy_fence};
}

static inline int toy_load(struct toy *toy)
{
	const struct neap_memory_ops *memory = neap_device_memory(toy->device);
	float x[TOY_NUMBERS];
	void **buffers[] = {&toy->w, &toy->dw, &toy->loss};
	NEAP_TRY(NEAP__CUDA(cuModuleLoadData, (&toy->module, "")));
	NEAP_TRY(NEAP__CUDA(cuModuleGetFunction, (&toy->forward, toy->module, "toy_forward")));
	NEAP_TRY(NEAP__CUDA(cuModuleGetFunction, (&toy->backward, toy->module, "toy_backward")));
	NEAP_TRY(NEAP__CUDA(cuModuleGetFunction, (&toy->turn, toy->module, "toy_turn")));
	for (int i = 0; i < 3; i++)
		if (!(*buffers[i] = memory->map(memory->user, 4096)))
			return -ENOMEM;
	toy_start(x, toy->weights);
	NEAP_TRY(memory->write(memory->user, toy->w, toy->weights, sizeof toy->weights));
	memset(toy->weights, 0xee, sizeof toy->weights);
	return memory->fill(memory->user, toy->dw, 0, sizeof(double) * TOY_NUMBERS);
}

static inline void toy_close(struct toy *toy)
{
	const struct neap_memory_ops *memory = neap_device_memory(toy->device);
	void *buffers[] = {toy->w, toy->dw, toy->loss};
	for (int i = 0; i < 3; i++)
		if (buffers[i])
			memory->unmap(memory->user, buffers[i], 4096);
	if (toy->module)
		NEAP__CUDA(cuModuleUnload, (toy->module));
	neap_device_close(toy->device);
	*toy = (struct toy){0};
}

static inline int toy_open(struct toy *toy)
{
	*toy = (struct toy){0};
	NEAP_TRY(neap_device_open(&toy->device, "cuda:0"));
	int rc = toy_load(toy);
	if (rc < 0)
		toy_close(toy);
	return rc;
}

/* A plan that is made, and tiers. */
struct toy_plan {
	const char *strategy;
	uint64_t memory;
	const char *tiers; /* for neap_device_tiers_open; NULL: none */
};

/* The results of a run, and what is different in it. */
struct toy_run {
	struct toy_gradient got;
	struct neap_sweep_stats stats;
	/* NULL, or opens the tiers in place of neap_device_tiers_open. */
	int (*open)(struct neap_device *device, struct neap_tier **tiers, int *count, void *user);
	void *open_user;
	void (*at_turn)(void);
	double patience;
};

static inline int toy_sweep(struct toy *toy, const struct toy_plan *plan, struct toy_run *run,
	struct neap_tier *const *tiers, int ntiers)
{
	const struct neap_memory_ops *memory = neap_device_memory(toy->device);
	struct neap_step_ops ops = toy_ops(toy);
	struct neap_sweep *sweep;
	struct toy_gradient *copied = &toy->copied;
	float x[TOY_NUMBERS];
	const struct neap_sweep_options options = {.size = sizeof options,
		.steps = TOY_STEPS,
		.strategy = plan->strategy,
		.memory = plan->memory,
		.tiers = tiers,
		.ntiers = ntiers,
		.no_replan = 1,
		.patience = run->patience,
		.advance = 1e-4,
		.record = 1.2e-4,
		.backward = 2e-4};
	toy_start(x, toy->weights);
	toy->at_turn = run->at_turn;
	memset(copied, 0xee, sizeof *copied);
	NEAP_TRY(neap_sweep_create(&sweep, &ops, toy, &options));
	run->stats = (struct neap_sweep_stats){.size = sizeof run->stats};
	double loss = 0;
	int rc = neap_sweep_run(sweep, x, copied->dx, &loss, &run->stats);
	run->got = *copied; /* before the driver waits as memory is freed */
	run->got.loss = loss;
	neap_sweep_free(sweep);
	if (rc == 0)
		rc = memory->read(memory->user, copied->dw, toy->dw, sizeof copied->dw);
	memcpy(run->got.dw, copied->dw, sizeof copied->dw);
	return rc;
}

/* Opens the device and the tiers, runs a sweep and closes all. */
static inline int toy_run(const struct toy_plan *plan, struct toy_run *run)
{
	struct toy toy;
	struct neap_tier *tiers[NEAP_TIERS_MAX];
	int ntiers = 0;
	NEAP_TRY(toy_open(&toy));
	int rc = run->open ? run->open(toy.device, tiers, &ntiers, run->open_user)
		 : plan->tiers
			 ? neap_device_tiers_open(toy.device, tiers, &ntiers, plan->tiers, NULL)
			 : 0;
	for (int i = 0; i < ntiers; i++)
		neap_tier_set_rates(tiers[i], 2e9, 2e9, 1e-5);
	if (rc == 0)
		rc = toy_sweep(&toy, plan, run, tiers, ntiers);
	char line[NEAP__DETAIL_BYTES];
	snprintf(line, sizeof line, "%s", neap_detail());
	for (int i = 0; i < ntiers; i++)
		neap_tier_close(tiers[i]);
	toy_close(&toy);
	neap_detail_set(line);
	return rc;
}

#endif
