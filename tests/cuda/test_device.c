/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of neap/cuda.h on the fake driver: devices, their memory, lists of tiers, tiers. */
#include "toy_model.h"

#include <sys/wait.h>

#define BIG (3 << 20) /* bytes: moves and records in several pieces */

static struct neap_device *opened(uint64_t seed)
{
	struct neap_device *device;
	fake_call("fake_driver_reset", seed);
	assert_int_equal(neap_device_open(&device, "cuda"), 0);
	return device;
}

static void closed(struct neap_device *device)
{
	neap_device_close(device);
	assert_int_equal(fake()->alive, 0);
}

static void no_driver_is_one_line(void **state)
{
	struct neap_device *device = NULL;
	char driver[4096];
	(void)state;
	snprintf(driver, sizeof driver, "%s", getenv("NEAP_CUDA_DRIVER"));
	setenv("NEAP_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
	assert_int_equal(neap_device_open(&device, "cuda:0"), -ENODEV);
	assert_true(strstr(neap_detail(), "device 'cuda:0': no CUDA driver was found") != NULL);
	assert_null(device);
	setenv("NEAP_CUDA_DRIVER", "libm.so.6", 1);
	assert_int_equal(neap_device_open(&device, "cuda:0"), -ENODEV);
	assert_true(strstr(neap_detail(), "'libm.so.6' has no function cuInit") != NULL);
	setenv("NEAP_CUDA_DRIVER", driver, 1);
}

static void devices_have_names(void **state)
{
	struct neap_device *device = NULL;
	uint64_t left, total;
	(void)state;
	device = opened(0);
	assert_string_equal(neap_device_about(device),
		"cuda:0 (fake device, compute capability 9.0, 132 multiprocessors)");
	assert_int_equal(neap_device_bytes(device, &left, &total), 0);
	assert_int_equal(total, 64 << 20);
	assert_int_equal(total - left, NEAP__SCRATCH);
	closed(device);
	const char *wrong[] = {"gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1000", "cuda0", ""};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		assert_int_equal(neap_device_open(&device, wrong[i]), NEAP_EUSAGE);
		assert_true(strstr(neap_detail(), "cuda:N") != NULL);
	}
	fake()->devices = 2;
	assert_int_equal(neap_device_open(&device, "cuda:1"), 0);
	closed(device);
	assert_int_equal(neap_device_open(&device, "cuda:2"), -ENODEV);
	assert_true(strstr(neap_detail(), "the last one is 'cuda:1'") != NULL);
	fake()->devices = 0;
	assert_int_equal(neap_device_open(&device, "cuda"), -ENODEV);
	neap_device_close(NULL);
}

static unsigned char pattern(uint64_t i)
{
	return (unsigned char)(i * 2654435761u >> 13);
}

static void moves_may_overlap(void **state)
{
	static unsigned char host[BIG], got[BIG];
	const int64_t distances[] = {
		0, 64, 4096, (1 << 20) - 64, 1 << 20, (1 << 20) + 4096, BIG / 2};
	(void)state;
	for (uint64_t seed = 0; seed < 5; seed++) {
		struct neap_device *device = opened(seed);
		const struct neap_memory_ops *memory = neap_device_memory(device);
		fake()->misalign = seed % 2 * 256;
		unsigned char *at = memory->map(memory->user, BIG);
		assert_non_null(at);
		assert_int_equal((uintptr_t)at % 4096, 0);
		for (size_t i = 0; i < 2 * sizeof distances / sizeof distances[0]; i++) {
			uint64_t n = BIG - (uint64_t)distances[i / 2];
			uint64_t to = i % 2 ? BIG - n : 0, from = i % 2 ? 0 : BIG - n;
			for (uint64_t j = 0; j < BIG; j++)
				host[j] = pattern(j + i);
			assert_int_equal(memory->write(memory->user, at, host, BIG), 0);
			memmove(host + to, host + from, n);
			assert_int_equal(memory->move(memory->user, at + to, at + from, n), 0);
			assert_int_equal(memory->read(memory->user, got, at, BIG), 0);
			assert_memory_equal(got, host, BIG);
		}
		assert_int_equal(memory->fill(memory->user, at + 64, 7, 128), 0);
		assert_int_equal(memory->read(memory->user, got, at, 256), 0);
		for (int j = 0; j < 256; j++)
			assert_int_equal(got[j], j >= 64 && j < 192 ? 7 : host[j]);
		memory->unmap(memory->user, at, BIG);
		assert_non_null(memory->map(memory->user, 4096)); /* closing unmaps it */
		assert_null(memory->map(memory->user, (uint64_t)1 << 40));
		assert_true(strstr(neap_detail(), "1099511627776 bytes of device memory") != NULL);
		closed(device);
	}
}

/* The caller's bytes are its own after write. */
static void write_waits(void **state)
{
	(void)state;
	for (int ignored = 0; ignored < 2; ignored++) {
		struct neap_device *device = opened(0);
		const struct neap_memory_ops *memory = neap_device_memory(device);
		unsigned char host[64], got[64];
		void *at = memory->map(memory->user, 4096);
		memset(host, 1, sizeof host);
		fake()->ignored_number = ignored;
		assert_int_equal(memory->write(memory->user, at, host, sizeof host), 0);
		memset(host, 2, sizeof host);
		assert_int_equal(memory->read(memory->user, got, at, sizeof got), 0);
		assert_int_equal(got[0], ignored ? 2 : 1);
		closed(device);
	}
}

static void lists_are_checked(void **state)
{
	static const char *const wrong[] = {"pinned:", "pinned:x", "pinned:0", "pinned:1M,", "",
		"/nowhere/at/all",
		"pinned:1M,mem:", "mem:1M,mem:1M,mem:1M,mem:1M,mem:1M,mem:1M,mem:1M,mem:1M,mem:1M"};
	struct neap_tier *tiers[NEAP_TIERS_MAX];
	int count = 7;
	(void)state;
	struct neap_device *device = opened(0);
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		assert_true(neap_device_tiers_open(device, tiers, &count, wrong[i], NULL) < 0);
		assert_int_equal(count, 0);
		assert_true(neap_detail()[0]);
	}
	assert_int_equal(
		neap_device_tiers_open(device, tiers, &count, "pinned:2M,mem:1M", NULL), 0);
	assert_int_equal(count, 2);
	assert_string_equal(neap_tier_about(tiers[0]), "pinned memory of cuda:0");
	for (int i = 0; i < count; i++)
		neap_tier_close(tiers[i]);
	closed(device);
	assert_int_equal(neap_tiers_open(tiers, &count, "pinned:2M", NULL), NEAP_EUSAGE);
	assert_true(strstr(neap_detail(), "'pinned:2M' needs a CUDA device") != NULL);
}

/* Device memory with two records of BIG bytes, a tier with places for them, and no tickets yet. */
struct fixture {
	struct neap_device *device;
	const struct neap_memory_ops *memory;
	struct neap_tier *tier;
	unsigned char *a, *b;
	int64_t put, get;
};
static unsigned char first[BIG], second[BIG], back[BIG];

static struct fixture prepared(uint64_t seed, const char *list)
{
	struct fixture f = {.device = opened(seed)};
	int count;
	f.memory = neap_device_memory(f.device);
	f.a = f.memory->map(f.memory->user, BIG);
	f.b = f.memory->map(f.memory->user, BIG);
	for (int i = 0; i < BIG; i++) {
		first[i] = pattern((uint64_t)i);
		second[i] = pattern((uint64_t)i + 99);
	}
	assert_int_equal(f.memory->write(f.memory->user, f.a, first, BIG), 0);
	assert_int_equal(neap_device_tiers_open(f.device, &f.tier, &count, list, NULL), 0);
	assert_int_equal(neap_tier_format(f.tier, BIG, 2, NULL), 0);
	assert_int_equal(neap_tier_format_tapes(f.tier, BIG, 2, 0), 0);
	return f;
}

static void done_with(struct fixture *f)
{
	neap_tier_close(f->tier);
	closed(f->device);
}

static int holds(const struct fixture *f, const unsigned char *at, const unsigned char *wanted)
{
	assert_int_equal(f->memory->read(f->memory->user, back, at, BIG), 0);
	return memcmp(back, wanted, BIG) == 0;
}

static void records_come_back(void **state)
{
	static const char *const lists[] = {"pinned:64M", "/var/tmp", "mem:64M"};
	(void)state;
	for (int i = 0; i < 3; i++)
		for (uint64_t seed = 0; seed < 10; seed += 3) {
			struct fixture f = prepared(seed, lists[i]);
			const struct neap_memory_ops *m = f.memory;
			struct neap_span cut[3] = {
				{f.b + 1000, 5000}, {f.b, 1000}, {f.b + 6000, BIG - 6000}};
			struct neap_span one = {f.a, BIG};
			/* A state that is overwritten on the device, as soon as it is put. */
			assert_int_equal(neap_tier_put(f.tier, 1, 11, f.a, BIG, &f.put), 0);
			assert_int_equal(neap_tier_get(f.tier, 1, 11, f.b, BIG, &f.get), 0);
			assert_int_equal(neap_tier_wait(f.tier, f.put), 0);
			assert_int_equal(neap_tier_wait(f.tier, f.get), 0);
			assert_int_equal(neap_tier_wait(f.tier, f.get), NEAP_EUSAGE);
			assert_true(holds(&f, f.b, first));
			/* Tapes, which come back in other pieces. */
			assert_int_equal(neap_tier_put_tapes(f.tier, 1, 12, &one, 1, &f.put), 0);
			assert_int_equal(neap_tier_wait_for(f.tier, f.put, 1e9), 1);
			assert_int_equal(m->fill(m->user, f.b, 0, BIG), 0);
			assert_int_equal(neap_tier_get_tapes(f.tier, 1, 12, cut, 3, &f.get), 0);
			while (neap_tier_done(f.tier, f.get) == 0)
				usleep(100);
			assert_int_equal(neap_tier_wait(f.tier, f.get), 0);
			memcpy(second, first + 5000, 1000);
			memcpy(second + 1000, first, 5000);
			memcpy(second + 6000, first + 6000, BIG - 6000);
			assert_true(holds(&f, f.b, second));
			/* Records that are not there. */
			assert_int_equal(neap_tier_get(f.tier, 0, 11, f.b, BIG, &f.get), 0);
			assert_true(neap_tier_wait(f.tier, f.get) < 0);
			assert_int_equal(neap_tier_get(f.tier, 1, 13, f.b, BIG, &f.get), 0);
			assert_int_equal(neap_tier_wait(f.tier, f.get), NEAP_ELOST);
			assert_int_equal(neap_tier_get_tapes(f.tier, 1, 11, cut, 3, &f.get), 0);
			assert_int_equal(neap_tier_wait(f.tier, f.get), NEAP_ELOST);
			assert_int_equal(
				neap_tier_get(f.tier, 2, 11, f.b, BIG, &f.get), NEAP_EUSAGE);
			done_with(&f);
		}
}

static void pinned_memory_is_limited(void **state)
{
	struct fixture f = prepared(0, "pinned:12M");
	(void)state;
	assert_int_equal(neap_tier_format(f.tier, BIG, 5, NULL), -ENOSPC);
	assert_int_equal(neap_tier_format(f.tier, BIG, 3, NULL), 0);
	assert_int_equal(neap_tier_format_tapes(f.tier, BIG, 1, 0), 0);
	assert_int_equal(neap_tier_format_tapes(f.tier, BIG, 2, 0), -ENOSPC);
	assert_int_equal(neap_tier_put(f.tier, 0, 1, f.a, BIG, &f.put), 0);
	assert_int_equal(neap_tier_wait(f.tier, f.put), 0);
	fake_call("fake_driver_damage_pinned", 12345);
	assert_int_equal(neap_tier_get(f.tier, 0, 1, f.b, BIG, &f.get), 0);
	assert_int_equal(neap_tier_wait(f.tier, f.get), NEAP_ECORRUPT);
	/* A format drops all records. */
	assert_int_equal(neap_tier_format(f.tier, BIG, 3, NULL), 0);
	assert_int_equal(neap_tier_get(f.tier, 0, 1, f.b, BIG, &f.get), 0);
	assert_int_equal(neap_tier_wait(f.tier, f.get), NEAP_ELOST);
	done_with(&f);
}

/* What is on the model's stream precedes a put, which precedes a get of it, without a host's wait.
 */
static int transfers_are_ordered(const char *list, uint64_t seed, int64_t ignored)
{
	struct fixture f = prepared(seed, list);
	const struct neap_memory_ops *m = f.memory;
	int good = 1;
	assert_int_equal(m->write(m->user, f.b, second, BIG), 0);
	int64_t before = fake()->waits[FAKE_STREAM_WAIT_EVENT];
	fake()->ignored_wait = FAKE_STREAM_WAIT_EVENT;
	fake()->ignored_number = ignored ? before + ignored : 0;
	/* a := b, which is put and comes to b, whose bytes the model has changed. */
	assert_int_equal(m->move(m->user, f.a, f.b, BIG), 0);
	fake_call("fake_driver_hold", 1); /* the background thread is slow */
	assert_int_equal(neap_tier_put(f.tier, 0, 1, f.a, BIG, &f.put), 0);
	assert_int_equal(m->fill(m->user, f.b, 9, BIG), 0);
	assert_int_equal(neap_tier_get(f.tier, 0, 1, f.b, BIG, &f.get), 0);
	fake_call("fake_driver_hold", 0);
	good &= neap_tier_wait(f.tier, f.put) == 0;
	good &= neap_tier_wait(f.tier, f.get) == 0;
	good = good && holds(&f, f.a, second) && holds(&f, f.b, second);
	/* The next record at the place waits for the get that is in flight. */
	assert_int_equal(neap_tier_get(f.tier, 0, 1, f.b, BIG, &f.get), 0);
	assert_int_equal(m->write(m->user, f.a, first, BIG), 0);
	assert_int_equal(neap_tier_put(f.tier, 0, 2, f.a, BIG, &f.put), 0);
	good = good && neap_tier_wait(f.tier, f.get) == 0 && neap_tier_wait(f.tier, f.put) == 0 &&
	       holds(&f, f.b, second);
	done_with(&f);
	return good;
}

static void streams_wait_for_each_other(void **state)
{
	const struct {
		const char *list;
		int64_t waits; /* put after the model; get after the model; pinned: get after put */
	} tiers[] = {{"pinned:64M", 3}, {"mem:64M", 2}};
	(void)state;
	for (int i = 0; i < 2; i++) {
		for (uint64_t seed = 0; seed < 12; seed++)
			assert_true(transfers_are_ordered(tiers[i].list, seed, 0));
		for (int64_t k = 1; k <= tiers[i].waits; k++) {
			int noticed = 0;
			for (uint64_t seed = 0; seed < 12 && !noticed; seed++)
				noticed = !transfers_are_ordered(tiers[i].list, seed, k);
			if (!noticed)
				fail_msg("%s: wait %d is not needed", tiers[i].list, (int)k);
		}
	}
}

/* Copies do not hold up the model's stream: both take their time at once. */
static void copies_overlap_with_work(void **state)
{
	struct fixture f = prepared(0, "pinned:64M");
	(void)state;
	fake()->bytes_a_second = 1e9; /* 3 ms a record */
	double begun = fake()->stream_seconds[0];
	for (int i = 0; i < 2; i++)
		assert_int_equal(neap_tier_put(f.tier, i, 1, f.a, BIG, &f.put), 0);
	for (int i = 0; i < 200; i++)
		assert_int_equal(f.memory->fill(f.memory->user, f.b, i, 64), 0);
	assert_int_equal(neap_device_wait(f.device), 0);
	assert_true(fake()->stream_seconds[0] - begun < 2e-3);
	assert_int_equal(neap_tier_wait(f.tier, f.put), 0);
	assert_true(fake()->stream_seconds[1] - begun > 6e-3);
	done_with(&f);
}

static void tiers_are_measured(void **state)
{
	static const char *const lists[] = {"pinned:64M", "mem:64M"};
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct fixture f = prepared(0, lists[i]);
		struct neap_tier_spec spec;
		assert_int_equal(neap_tier_measure(f.tier, 1 << 20, 0.01), 0);
		neap_tier_describe(f.tier, 1 << 20, &spec);
		assert_true(spec.write_rate > 0 && spec.read_rate > 0);
		assert_int_equal(spec.staging, 0);
		assert_true(spec.capacity > (60 << 20) && spec.capacity <= (64 << 20));
		done_with(&f);
	}
}

/* CUDA does not work in a child process: everything there is refused, and can be freed. */
static void a_child_has_no_device(void **state)
{
	struct fixture f = prepared(0, "pinned:64M");
	(void)state;
	pid_t child = fork();
	if (child == 0) {
		uint64_t left, total;
		int rc = neap_device_bytes(f.device, &left, &total);
		int put = neap_tier_put(f.tier, 0, 1, f.a, BIG, &f.put);
		neap_tier_abandon(f.tier);
		neap_device_close(f.device);
		_exit(rc == NEAP_EFORKED && put == NEAP_EFORKED ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	done_with(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_driver_is_one_line),
		cmocka_unit_test(devices_have_names),
		cmocka_unit_test(moves_may_overlap),
		cmocka_unit_test(write_waits),
		cmocka_unit_test(lists_are_checked),
		cmocka_unit_test(records_come_back),
		cmocka_unit_test(pinned_memory_is_limited),
		cmocka_unit_test(streams_wait_for_each_other),
		cmocka_unit_test(copies_overlap_with_work),
		cmocka_unit_test(tiers_are_measured),
		cmocka_unit_test(a_child_has_no_device),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
