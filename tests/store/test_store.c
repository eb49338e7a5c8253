/* SPDX-License-Identifier: Apache-2.0 */
/* Tiers: what is put comes back, and nothing else ever does. */
#include "../test.h"

#include <errno.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <signal.h>
#include <neap/tier.h>
#include "base/philox.h"
#include "store/fault_tier.h"
#include "store/tier_cost.h"
#include "sys/worker.h"

#define DISK "/var/tmp"

static struct neap_tier *open_kind(int kind)
{
	static const struct neap_file_options cached = {.size = sizeof cached, .page_cache = 1};
	struct neap_tier *tier = NULL;
	int rc = kind == 0   ? neap_tier_open_memory(&tier, NEAP_INFINITE)
		 : kind == 1 ? neap_tier_open_file(&tier, DISK, NULL)
			     : neap_tier_open_file(&tier, DISK, &cached);
	if (rc < 0)
		print_message("# kind %d: %s\n", kind, neap_detail());
	return tier;
}

static void fill(unsigned char *data, uint64_t bytes, uint64_t seed)
{
	for (uint64_t i = 0; i < bytes; i++)
		data[i] = (unsigned char)neap__random_u64(seed, NEAP__STREAM_TEST, 0, i / 8);
}

static int put_wait(
	struct neap_tier *tier, int64_t place, uint64_t tag, const void *data, uint64_t bytes)
{
	int64_t ticket;
	int rc = neap_tier_put(tier, place, tag, data, bytes, &ticket);
	return rc < 0 ? rc : neap_tier_wait(tier, ticket);
}

static int get_wait(struct neap_tier *tier, int64_t place, uint64_t tag, void *data, uint64_t bytes)
{
	int64_t ticket;
	int rc = neap_tier_get(tier, place, tag, data, bytes, &ticket);
	return rc < 0 ? rc : neap_tier_wait(tier, ticket);
}

/* Sizes about every edge: the trailer, the page, the piece that staging takes. */
static const uint64_t sizes[] = {
	1, 63, 64, 4031, 4032, 4033, 4096, 100000, 262079, 262080, 262081, 262144, 262145, 1000000};

static void round_trip(void **state)
{
	(void)state;
	for (int kind = 0; kind < 3; kind++) {
		struct neap_tier *tier = open_kind(kind);
		if (!tier)
			continue;
		for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
			uint64_t bytes = sizes[i];
			unsigned char *data = malloc(bytes), *back = malloc(bytes);
			struct neap_tier_spec spec;
			void *staging = NULL;
			neap_tier_describe(tier, bytes, &spec);
			assert_true(spec.staging <= 256 << 10 && spec.staging % 4096 == 0);
			if (spec.staging && i % 2)
				staging = aligned_alloc(4096, spec.staging);
			assert_int_equal(neap_tier_format(tier, bytes, 5, staging), 0);
			for (int64_t place = 4; place >= 0; place--) {
				fill(data, bytes, (uint64_t)place);
				assert_int_equal(
					put_wait(tier, place, 100 + (uint64_t)place, data, bytes),
					0);
			}
			for (int64_t place = 0; place < 5; place++) {
				fill(data, bytes, (uint64_t)place);
				memset(back, 0, bytes);
				assert_int_equal(
					get_wait(tier, place, 100 + (uint64_t)place, back, bytes),
					0);
				assert_memory_equal(data, back, bytes);
			}
			assert_int_equal(get_wait(tier, 1, 102, back, bytes), NEAP_ELOST);
			if (bytes > 64)
				assert_int_equal(
					get_wait(tier, 1, 101, back, bytes - 64), NEAP_ELOST);
			assert_int_equal(get_wait(tier, 5, 105, back, bytes), NEAP_EUSAGE);
			assert_int_equal(get_wait(tier, -1, 105, back, bytes), NEAP_EUSAGE);
			assert_int_equal(get_wait(tier, 0, 100, back, bytes + 1), NEAP_EUSAGE);
			/* A format drops what was there. */
			assert_int_equal(neap_tier_format(tier, bytes, 5, staging), 0);
			assert_int_equal(get_wait(tier, 1, 101, back, bytes), NEAP_ELOST);
			free(data);
			free(back);
			neap_tier_format(tier, 64, 1, NULL); /* lets go of the staging */
			free(staging);
		}
		neap_tier_close(tier);
	}
}

/* Many in flight, waited for out of order; a GET behind the PUT of its place. */
static void in_flight(void **state)
{
	enum { MANY = 256, BYTES = 1000 };
	(void)state;
	for (int kind = 0; kind < 3; kind++) {
		struct neap_tier *tier = open_kind(kind);
		if (!tier)
			continue;
		unsigned char(*data)[BYTES] = malloc(MANY * sizeof *data);
		unsigned char(*back)[BYTES] = calloc(MANY, sizeof *back);
		int64_t tickets[MANY];
		assert_int_equal(neap_tier_format(tier, BYTES, MANY, NULL), 0);
		for (int i = 0; i < MANY / 2; i++) {
			fill(data[i], BYTES, (uint64_t)i);
			assert_int_equal(neap_tier_put(tier, i, (uint64_t)i, data[i], BYTES,
						 &tickets[2 * i]),
				0);
			assert_int_equal(neap_tier_get(tier, i, (uint64_t)i, back[i], BYTES,
						 &tickets[2 * i + 1]),
				0);
		}
		for (int i = 0; i < MANY; i++)
			assert_int_equal(neap_tier_wait(tier, tickets[(i * 37) % MANY]), 0);
		for (int i = 0; i < MANY / 2; i++)
			assert_memory_equal(data[i], back[i], BYTES);
		assert_int_equal(neap_tier_wait(tier, tickets[3]), NEAP_EUSAGE); /* once */
		assert_int_equal(neap_tier_wait(tier, -1), NEAP_EUSAGE);
		free(data);
		free(back);
		neap_tier_close(tier); /* with nothing in flight; and with: */
		tier = open_kind(kind);
		static unsigned char late[BYTES];
		assert_int_equal(neap_tier_format(tier, BYTES, MANY, NULL), 0);
		for (int i = 0; i < MANY; i++)
			assert_int_equal(neap_tier_put(tier, i, 1, late, BYTES, &tickets[i]), 0);
		neap_tier_close(tier);
	}
}

/* Every bit of a record and its trailer, flipped in turn, is noticed. */
static void flipped_bits(void **state)
{
	enum { BYTES = 300 };
	unsigned char data[BYTES], back[BYTES];
	(void)state;
	for (int kind = 0; kind < 3; kind++) {
		struct neap_tier *tier = open_kind(kind);
		int lost = 0, corrupt = 0;
		if (!tier)
			continue;
		uint64_t trailer = kind ? 300 : 320;
		assert_int_equal(neap_tier_format(tier, BYTES, 3, NULL), 0);
		for (uint64_t at = 0; at < trailer + 48; at++) {
			if (at >= BYTES && at < trailer)
				continue; /* padding */
			fill(data, BYTES, at);
			assert_int_equal(put_wait(tier, 1, at, data, BYTES), 0);
			assert_int_equal(neap__tier_poke(tier, 0, 1, at, 1u << at % 8), 0);
			int rc = get_wait(tier, 1, at, back, BYTES);
			assert_true(rc == NEAP_ELOST || rc == NEAP_ECORRUPT);
			assert_true(neap_detail()[0] != '\0');
			lost += rc == NEAP_ELOST;
			corrupt += rc == NEAP_ECORRUPT;
		}
		assert_int_equal(corrupt, BYTES + 8); /* the payload and the hash */
		assert_int_equal(lost, 40);
		neap_tier_close(tier);
	}
}

static void truncated(void **state)
{
	enum { BYTES = 9000 };
	static unsigned char data[BYTES], back[BYTES];
	(void)state;
	for (int kind = 1; kind < 3; kind++) {
		struct neap_tier *tier = open_kind(kind);
		if (!tier)
			continue;
		assert_int_equal(neap_tier_format(tier, BYTES, 4, NULL), 0);
		for (int64_t place = 0; place < 4; place++)
			assert_int_equal(put_wait(tier, place, 7, data, BYTES), 0);
		assert_int_equal(neap__tier_poke(tier, 0, 2, 5000, 0), 0);
		assert_int_equal(get_wait(tier, 1, 7, back, BYTES), 0);
		assert_int_equal(get_wait(tier, 2, 7, back, BYTES), NEAP_ESHORT);
		assert_int_equal(get_wait(tier, 3, 7, back, BYTES), NEAP_ESHORT);
		assert_int_equal(put_wait(tier, 3, 8, data, BYTES), 0); /* grows back */
		assert_int_equal(get_wait(tier, 3, 8, back, BYTES), 0);
		assert_int_equal(get_wait(tier, 2, 7, back, BYTES), NEAP_ELOST);
		neap_tier_close(tier);
	}
}

static void refused(void **state)
{
	struct neap_tier *tier = NULL;
	char name[] = DISK "/neap-test-XXXXXX", path[64];
	struct stat before, after;
	(void)state;
	assert_int_equal(neap_tier_open_file(&tier, "/no/such/place", NULL), -ENOENT);
	assert_non_null(strstr(neap_detail(), "/no/such/place"));
	assert_int_equal(neap_tier_open_file(&tier, "", NULL), NEAP_EUSAGE);
	assert_int_equal(neap_tier_open_file(&tier, NULL, NULL), NEAP_EUSAGE);
	assert_int_equal(neap_tier_open_file(&tier, "/dev/null", NULL), NEAP_EUSAGE);
	assert_true(neap_tier_open_file(&tier, "/proc", NULL) < 0);
	struct neap_file_options odd = {.size = 1};
	assert_int_equal(neap_tier_open_file(&tier, DISK, &odd), NEAP_EUSAGE);
	if (access("/dev/shm", W_OK) == 0) {
		struct neap_file_options o = {.size = sizeof o, .in_memory = 1};
		assert_int_equal(neap_tier_open_file(&tier, "/dev/shm", NULL), NEAP_EUSAGE);
		assert_non_null(strstr(neap_detail(), "tmpfs"));
		assert_int_equal(neap_tier_open_file(&tier, "/dev/shm", &o), 0);
		assert_non_null(strstr(neap_tier_about(tier), "memory"));
		neap_tier_close(tier);
	}
	/* A file stands for its directory, and is left alone; nothing gets a name. */
	assert_non_null(mkdtemp(name));
	snprintf(path, sizeof path, "%s/file", name);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs("mine", f);
	fclose(f);
	struct neap_file_options cached = {.size = sizeof cached, .page_cache = 1};
	assert_int_equal(stat(name, &before), 0);
	assert_int_equal(neap_tier_open_file(&tier, path, &cached), 0);
	assert_non_null(strstr(neap_tier_about(tier), name));
	assert_non_null(strstr(neap_tier_about(tier), "page-cached"));
	assert_int_equal(neap_tier_format(tier, 100, 4, NULL), 0);
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(after.st_size, 4);
	neap_tier_close(tier);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(name), 0); /* empty */
}

static void capacities(void **state)
{
	struct neap_tier *tier;
	struct neap_tier_spec spec;
	(void)state;
	assert_int_equal(neap_tier_open_memory(&tier, 10000), 0);
	neap_tier_describe(tier, 64, &spec);
	assert_int_equal(spec.capacity, 10000 / 128 * 64);
	assert_int_equal(neap_tier_format(tier, 64, 78, NULL), 0);
	assert_int_equal(neap_tier_format(tier, 64, 79, NULL), -ENOSPC);
	assert_int_equal(neap_tier_format(tier, UINT64_MAX, 2, NULL), -ENOSPC);
	assert_int_equal(neap_tier_format(tier, 64, INT64_MAX, NULL), -ENOSPC);
	assert_int_equal(neap_tier_format(tier, 0, 1, NULL), NEAP_EUSAGE);
	assert_int_equal(neap_tier_format(tier, 1, -1, NULL), NEAP_EUSAGE);
	neap_tier_close(tier);
}

static void capacities_of_files(void **state)
{
	struct neap_tier *tier;
	struct neap_tier_spec spec;
	struct neap_file_options o = {.size = sizeof o, .capacity = 100000};
	(void)state;
	if (neap_tier_open_file(&tier, DISK, &o) < 0) {
		print_message("# SKIP %s: %s\n", DISK, neap_detail());
		skip();
	}
	neap_tier_describe(tier, 64, &spec);
	assert_int_equal(spec.capacity, 24 * 64);
	assert_int_equal(spec.staging, 4096);
	neap_tier_describe(tier, 10 << 20, &spec);
	assert_int_equal(spec.staging, 256 << 10);
	assert_int_equal(neap_tier_format(tier, 64, 24, NULL), 0);
	assert_int_equal(neap_tier_format(tier, 64, 25, NULL), -ENOSPC);
	char odd[8192];
	assert_int_equal(neap_tier_format(tier, 64, 1, odd + 1), NEAP_EUSAGE);
	neap_tier_close(tier);
}

/* A real full disk: a small file system in memory, where we may mount one. */
static void full_disk(void **state)
{
	char name[] = "/tmp/neap-full-XXXXXX";
	struct neap_tier *tier;
	struct neap_file_options o = {.size = sizeof o, .in_memory = 1, .capacity = 1 << 30};
	static unsigned char data[60000];
	(void)state;
	assert_non_null(mkdtemp(name));
	if (mount("tmpfs", name, "tmpfs", 0, "size=1m") < 0) {
		print_message("# cannot mount a small tmpfs (%s): not tested\n", strerror(errno));
		rmdir(name);
		skip();
	}
	int opened = neap_tier_open_file(&tier, name, &o);
	int much = opened == 0 ? neap_tier_format(tier, sizeof data, 100, NULL) : 0;
	int line = strstr(neap_detail(), name) != NULL;
	int little = opened == 0 ? neap_tier_format(tier, sizeof data, 10, NULL) : 1;
	int put = little == 0 ? put_wait(tier, 9, 1, data, sizeof data) : 1;
	if (opened == 0)
		neap_tier_close(tier);
	umount(name);
	rmdir(name);
	assert_int_equal(opened, 0);
	assert_int_equal(much, -ENOSPC);
	assert_true(line);
	assert_int_equal(little, 0);
	assert_int_equal(put, 0);
}

/* The system refuses to let the file grow in mid-flight: wait delivers it, once. */
static void refused_write(void **state)
{
	struct neap_tier *tier = open_kind(2);
	struct rlimit old, small = {8192, RLIM_INFINITY};
	static unsigned char data[5000], back[5000];
	int64_t ticket;
	(void)state;
	if (!tier)
		skip();
	assert_int_equal(neap_tier_format(tier, sizeof data, 4, NULL), 0);
	assert_int_equal(neap__tier_poke(tier, 0, 0, 0, 0), 0); /* nothing is reserved now */
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small.rlim_max = old.rlim_max;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	int first = put_wait(tier, 0, 1, data, sizeof data);
	int posted = neap_tier_put(tier, 3, 1, data, sizeof data, &ticket);
	int rc = neap_tier_wait(tier, ticket);
	int told = strstr(neap_detail(), DISK) != NULL;
	int again = neap_tier_wait(tier, ticket);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(first, 0);
	assert_int_equal(posted, 0);
	assert_int_equal(rc, -EFBIG);
	assert_true(told);
	assert_int_equal(again, NEAP_EUSAGE);
	assert_int_equal(get_wait(tier, 0, 1, back, sizeof back), 0);
	neap_tier_close(tier);
}

static void faults(void **state)
{
	static struct neap__faults f;
	struct neap_tier *tier;
	unsigned char data[500], back[500];
	(void)state;
	fill(data, sizeof data, 1);
	assert_int_equal(neap__fault_open(&tier, open_kind(0), &f), 0);
	assert_int_equal(neap_tier_format(tier, sizeof data, 20, NULL), 0);
	f = (struct neap__faults){.fail_put = 2, .lose_put = 3, .corrupt_put = 4, .fail_get = 6};
	assert_int_equal(put_wait(tier, 0, 0, data, sizeof data), 0);
	assert_int_equal(put_wait(tier, 1, 1, data, sizeof data), -EIO);
	assert_int_equal(put_wait(tier, 2, 2, data, sizeof data), 0);
	assert_int_equal(put_wait(tier, 3, 3, data, sizeof data), 0);
	assert_int_equal(get_wait(tier, 0, 0, back, sizeof data), 0);
	assert_int_equal(get_wait(tier, 1, 1, back, sizeof data), NEAP_ELOST);
	assert_int_equal(get_wait(tier, 2, 2, back, sizeof data), NEAP_ELOST);
	assert_int_equal(get_wait(tier, 3, 3, back, sizeof data), NEAP_ECORRUPT);
	assert_int_equal(get_wait(tier, 0, 0, back, sizeof data), 0);
	assert_int_equal(get_wait(tier, 0, 0, back, sizeof data), -EIO);
	assert_int_equal(get_wait(tier, 0, 0, back, sizeof data), 0);
	assert_int_equal(neap__fault_counts(tier).failed, 2);
	f = (struct neap__faults){.gone_after = 11, .at_once = 1, .code = -ENODEV};
	assert_int_equal(get_wait(tier, 0, 0, back, sizeof data), -ENODEV);
	neap_tier_close(tier);
}

static void measured(void **state)
{
	(void)state;
	for (int kind = 0; kind < 2; kind++) {
		struct neap_tier *tier = open_kind(kind);
		struct neap_tier_spec spec;
		if (!tier)
			continue;
		assert_int_equal(neap_tier_measure(tier, 1 << 20, 0.2), 0);
		neap_tier_describe(tier, 1 << 20, &spec);
		print_message("# %s: %.0f MB/s out, %.0f MB/s in\n", neap_tier_about(tier),
			spec.write_rate * 1e-6, spec.read_rate * 1e-6);
		assert_true(spec.write_rate > 1e6 && spec.read_rate > 1e6);
		assert_true(spec.write_fixed == 0);
		assert_int_equal(neap_tier_measure(tier, 0, 0.2), NEAP_EUSAGE);
		assert_int_equal(neap_tier_measure(tier, 100, NAN), NEAP_EUSAGE);
		neap_tier_close(tier);
	}
}

static void lists(void **state)
{
	static const char *const bad[] = {"", ",", "mem:", "mem:0", "mem:-1", "mem:64X", "mem:1M,",
		"mem:99999999999999999999", "mem:99999999999P", "mem:1 M", "/no/such,mem:1M",
		"mem:1,mem:1,mem:1,mem:1,mem:1,mem:1,mem:1,mem:1,mem:1"};
	struct neap_tier *tiers[NEAP_TIERS_MAX];
	int n = -1;
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_true(neap_tiers_open(tiers, &n, bad[i], NULL) < 0);
		assert_int_equal(n, 0);
		assert_true(neap_detail()[0] != '\0');
	}
	assert_int_equal(neap_tiers_open(tiers, &n, "mem:64M,mem:5", NULL), 0);
	assert_int_equal(n, 2);
	struct neap_tier_spec spec;
	neap_tier_describe(tiers[0], 0, &spec);
	assert_int_equal(spec.capacity, 64 << 20);
	while (n > 0)
		neap_tier_close(tiers[--n]);
}

static int answer_place(void *self, const struct neap__job *job)
{
	(void)self;
	return (int)job->place;
}

static void worker(void **state)
{
	struct neap__worker *w;
	int64_t tickets[4], extra;
	(void)state;
	assert_int_equal(neap__worker_create(&w, 0, answer_place, NULL), NEAP_EUSAGE);
	assert_int_equal(neap__worker_create(&w, 4, answer_place, NULL), 0);
	for (int round = 0; round < 300; round++) {
		for (int i = 0; i < 4; i++) {
			struct neap__job job = {.place = -i - round};
			assert_int_equal(neap__worker_post(w, &job, &tickets[i]), 0);
		}
		struct neap__job job = {0};
		assert_int_equal(neap__worker_post(w, &job, &extra), -EAGAIN);
		if (round % 2)
			neap__worker_idle(w);
		for (int i = 3; i >= 0; i--)
			assert_int_equal(neap__worker_wait(w, tickets[i]), -i - round);
		assert_int_equal(neap__worker_wait(w, tickets[0]), NEAP_EUSAGE);
	}
	neap__worker_free(w);
	neap__worker_free(NULL);
}

/* The median of any number of values in any order: the middle one, or the mean of the two in the
 * middle. */
static void timings(void **state)
{
	(void)state;
	for (int n = 1; n <= 9; n++)
		for (int first = 0; first < n; first++) {
			double values[9];
			for (int i = 0; i < n; i++) { /* 1, 4, 9, ... from some one on */
				int k = 1 + (first + i * (n == 5 ? 2 : 1)) % n;
				values[i] = k * k;
			}
			int low = (n + 1) / 2, high = n / 2 + 1;
			double median = (low * low + high * high) / 2.0;
			struct neap_timing t = neap__timing_of(values, n);
			assert_true(t.median == median);
			assert_true(t.spread == (n * n - 1) / median);
		}
	double zeros[2] = {0, 0};
	assert_true(neap__timing_of(zeros, 2).spread == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(worker),
		cmocka_unit_test(round_trip),
		cmocka_unit_test(in_flight),
		cmocka_unit_test(flipped_bits),
		cmocka_unit_test(truncated),
		cmocka_unit_test(refused),
		cmocka_unit_test(capacities),
		cmocka_unit_test(capacities_of_files),
		cmocka_unit_test(full_disk),
		cmocka_unit_test(refused_write),
		cmocka_unit_test(faults),
		cmocka_unit_test(measured),
		cmocka_unit_test(lists),
		cmocka_unit_test(timings),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
