/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_measure_memory.c: what is measured before a run fits the run's budget: never more bytes are
 * mapped at a time than the budget has, nor 16 MiB more than one step takes. The linker hands the
 * calls that map and unmap pages to the functions here (meson.build), which add up.
 */
#include "nn/nets.h"
#include "measure/call_cost.h"
#include "measure/copy_cost.h"
#include "measure/batch_sampling.h"
#include "measure/slow_tiers.h"

#include "sys/memory.h"

#include <stdatomic.h>

static atomic_llong mapped, most;

int __real_neap__map_pages(void **pages, size_t bytes);
int __real_neap__map_partly(void **pages, size_t bytes, size_t used);
void __real_neap__unmap_pages(void *pages, size_t bytes);
int __wrap_neap__map_pages(void **pages, size_t bytes);
int __wrap_neap__map_partly(void **pages, size_t bytes, size_t used);
void __wrap_neap__unmap_pages(void *pages, size_t bytes);

static int count(int rc, size_t bytes)
{
	long long now = rc < 0 ? 0 : atomic_fetch_add(&mapped, (long long)bytes) + (long long)bytes;
	if (now > atomic_load(&most))
		atomic_store(&most, now);
	return rc;
}

int __wrap_neap__map_pages(void **pages, size_t bytes)
{
	return count(__real_neap__map_pages(pages, bytes), bytes);
}

int __wrap_neap__map_partly(void **pages, size_t bytes, size_t used)
{
	return count(__real_neap__map_partly(pages, bytes, used), bytes);
}

void __wrap_neap__unmap_pages(void *pages, size_t bytes)
{
	if (pages)
		atomic_fetch_sub(&mapped, (long long)bytes);
	__real_neap__unmap_pages(pages, bytes);
}

static void start(void)
{
	atomic_store(&mapped, 0);
	atomic_store(&most, 0);
}

static struct neap_net *make(struct batch_room *room, struct neap_net_options *o, const char *spec)
{
	*o = net_options(spec);
	o->precision = NEAP_FLOAT;
	batch_make(room, 3, 64, o->inputs, 300, o->classes, 0.05, NULL);
	return net_make(o);
}

static const struct neap_objective *objective(struct neap_objective *o)
{
	*o = (struct neap_objective){.size = sizeof *o, .loss = neap_loss_at(0)};
	return o;
}

static const char *const specs[] = {"lif:64r,li", "lif:96,lif:32r,li", "alif:48r,li", "lstm:40,li"};

static void measuring_fits(void **state)
{
	struct neap_objective goal;
	(void)state;
	/* Measuring takes its time, and more of it under sanitizers. */
	const size_t count = TEST_SANITIZED ? 1 : sizeof specs / sizeof specs[0];
	for (size_t i = 0; i < count; i++) {
		for (uint64_t memory = 256 << 10; memory <= 4u << 20; memory *= 4) {
			struct neap_net_options o;
			struct batch_room room;
			struct neap_net *net = make(&room, &o, specs[i]);
			struct neap__costs costs;
			struct neap__tape_sizes tapes = {0};
			struct neap_timing write, read;
			double ratio;

			objective(&goal);
			start();
			int rc = neap__net_steps_measure(
				&costs, net, &room.batch, &goal, 256, memory);
			assert_true(rc == 0 || rc == NEAP_EINFEASIBLE);
			assert_true(memory < 4 << 20 || rc == 0);
			assert_in_range(atomic_load(&most), rc == 0, memory);
			assert_int_equal(atomic_load(&mapped), 0);

			start();
			if (memory == 1 << 20)
				assert_int_equal(neap__call_cost_measure(
							 &costs, net, &room.batch, &goal, memory),
					0);
			assert_in_range(atomic_load(&most), 0, memory);
			assert_int_equal(atomic_load(&mapped), 0);

			start();
			assert_int_equal(
				neap__copy_cost_measure(&write, &read, NULL, memory, memory, 3), 0);
			assert_in_range(atomic_load(&most), 1, memory);
			assert_true(write.median > 0 && read.median > 0);

			assert_int_equal(neap_net_begin(net, &room.batch, &goal), 0);
			start();
			rc = neap__batch_sampling_measure(
				&tapes, &ratio, net, &room.batch, 300, memory);
			assert_true(rc == 0 || rc == NEAP_EINFEASIBLE);
			assert_in_range(atomic_load(&most), 0, memory);
			assert_int_equal(neap_net_end(net), 0);
			neap__tape_sizes_free(&tapes);
			neap_net_free(net);
			batch_free(&room);
		}
	}
}

/* What one step takes, which every arena has, and 16 MiB. */
static long long bound_of(const struct neap_net *net)
{
	struct neap_net_sizes sizes = {.size = sizeof sizes};
	assert_int_equal(neap_net_get_sizes(net, &sizes), 0);
	return (long long)(2 * sizes.state + sizes.adjoint + sizes.tape_max + (16 << 20));
}

/* A wide net, whose 64 steps take more than 16 MiB, with a large budget. */
static void measuring_is_bounded(void **state)
{
	const uint64_t memory = 1 << 30;
	struct neap_net_options o;
	struct neap_objective goal;
	struct batch_room room;
	struct neap__costs costs;
	struct neap__tape_sizes tapes = {0};
	struct neap_timing write, read;
	struct neap_step_ops ops;
	double ratio;
	(void)state;
	o = net_options("lif:256,li");
	o.precision = NEAP_FLOAT;
	batch_make(&room, 3, 100, o.inputs, 300, o.classes, 0.05, NULL);
	struct neap_net *net = net_make(&o);
	objective(&goal);

	start();
	assert_int_equal(neap__net_steps_measure(&costs, net, &room.batch, &goal, 128, memory), 0);
	long long bound = bound_of(net);
	assert_in_range(atomic_load(&most), 1, bound);
	start();
	costs.advance = costs.record = costs.backward =
		1e-4; /* as many steps as on a fast machine */
	assert_int_equal(neap__call_cost_measure(&costs, net, &room.batch, &goal, memory), 0);
	assert_in_range(atomic_load(&most), 1, bound);
	start();
	assert_int_equal(neap__copy_cost_measure(&write, &read, NULL, 1 << 16, memory, 3), 0);
	assert_in_range(atomic_load(&most), 1, bound);

	assert_int_equal(neap_net_begin(net, &room.batch, &goal), 0);
	start();
	assert_int_equal(
		neap__batch_sampling_measure(&tapes, &ratio, net, &room.batch, 300, memory), 0);
	assert_in_range(atomic_load(&most), 1, bound);
	neap__tape_sizes_free(&tapes);
	neap__net_steps_fill(&ops, net);
	struct neap_sweep_options so = {.size = sizeof so, .steps = 300, .memory = memory};
	start();
	assert_int_equal(neap_sweep_calibrate(&so, &ops, net, NULL, 0.3), 0);
	assert_in_range(atomic_load(&most), 1, bound);
	assert_int_equal(neap_net_end(net), 0);
	neap_net_free(net);
	batch_free(&room);
}

/* A file as slow memory, its staging and the records that are moved to measure it. */
static void tiers_fit(void **state)
{
	struct neap_objective goal;
	(void)state;
	objective(&goal);
	for (uint64_t memory = 1 << 20; memory <= 1u << 30; memory *= memory < 16u << 20 ? 4 : 64) {
		struct neap_sweep_settings settings = {.memory = memory,
			.slow = ".",
			.slow_in_memory = 1,
			.page_cache = 1,
			.patience = -1};
		struct neap_net_options o;
		struct batch_room room;
		struct neap_net *net = make(&room, &o, specs[0]);
		struct neap__tiers tiers;

		assert_int_equal(neap_net_begin(net, &room.batch, &goal), 0);
		long long bound = bound_of(net);
		assert_int_equal(neap_net_end(net), 0);
		start();
		assert_int_equal(neap__tiers_open(&tiers, &settings, NULL), 0);
		long long ring = atomic_load(&mapped); /* what the engine shares with the system */
		assert_int_equal(neap__tiers_measure(&tiers, &settings, 64u << 20, 0.02), 0);
		assert_in_range(atomic_load(&most), 1, bound + ring);
		assert_in_range(atomic_load(&most), 1, (long long)memory + ring);
		assert_int_equal(neap__tiers_beside(&tiers, &settings, net, &room.batch, &goal), 0);
		assert_in_range(atomic_load(&most), 1, (long long)memory + ring);
		assert_in_range(atomic_load(&most), 1, bound + ring);
		neap__tiers_close(&tiers);
		neap_net_free(net);
		batch_free(&room);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(measuring_fits),
		cmocka_unit_test(measuring_is_bounded),
		cmocka_unit_test(tiers_fit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
