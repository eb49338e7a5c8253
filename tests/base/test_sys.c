/* SPDX-License-Identifier: Apache-2.0 */
/* test_sys.c: threads, pools, files that are whole or absent, resident memory, trials in a child.
 */
#include "test.h"
#include "sys/cpu_spread.h"
#include "sys/clock.h"
#include "sys/memory.h"
#include "sys/atomic_file.h"
#include "sys/pool.h"
#include "sys/child_trial.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

static void add_item(void *arg, int item, int thread)
{
	(void)thread;
	((int *)arg)[item]++;
}

/* Elsewhere, and free to go anywhere as before. */
static void threads_part(void **state)
{
	(void)state;
	cpu_set_t before, after;
	int elsewhere = 0;

	assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
	for (int i = 0; i < 100; i++) {
		int here = neap__processor();
		neap__cpu_spread(here);
		elsewhere += neap__processor() != here;
	}
	neap__cpu_spread(-1);
	assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
	assert_true(CPU_EQUAL(&before, &after));
	if (CPU_COUNT(&before) > 1)
		assert_true(elsewhere > 0);
	else
		assert_int_equal(elsewhere, 0);
}

static void pool_runs_each_item_once(void **state)
{
	(void)state;
	for (int threads = 1; threads <= 5; threads++) {
		struct neap__thread_pool *pool;
		assert_int_equal(neap__thread_pool_create(&pool, threads), 0);
		int count[17] = {0};
		for (int job = 0; job < 500; job++)
			neap__thread_pool_run(pool, job % 18, add_item, count);
		/* item i runs in jobs with more than i items: 28 rounds, less the cut */
		for (int i = 0; i < 17; i++) {
			int expected = 0;
			for (int job = 0; job < 500; job++)
				expected += job % 18 > i;
			assert_int_equal(count[i], expected);
		}
		neap__thread_pool_free(pool);
	}
}

/* What the items of a job saw: how often each ran, and the last of the threads. */
struct seen {
	atomic_int count[64], last;
};

static void see_item(void *arg, int item, int thread)
{
	struct seen *seen = arg;
	int last = atomic_load(&seen->last);

	atomic_fetch_add(&seen->count[item], 1);
	while (thread > last && !atomic_compare_exchange_weak(&seen->last, &last, thread))
		;
}

/* Jobs leave the processors on loan alone, from the begin of the loan to its end. */
static void pool_leaves_processors_on_loan(void **state)
{
	(void)state;
	int processors = neap__processors();
	struct neap__processor_loan loans[3] = {0};
	struct neap__thread_pool *pool, *crowded;

	assert_int_equal(neap__processors_on_loan(), 0);
	assert_int_equal(neap__thread_pool_create(&pool, processors), 0);
	assert_int_equal(neap__thread_pool_create(&crowded, processors + 1), 0);
	for (int n = 1; n <= 3; n++) {
		struct seen seen = {0};
		neap__processor_loan_begin(&loans[n - 1]);
		assert_int_equal(neap__processors_on_loan(), n);
		for (int job = 0; job < 200; job++)
			neap__thread_pool_run(pool, 64, see_item, &seen);
		assert_true(seen.last <= (processors > n ? processors - n - 1 : 0));
		for (int job = 0; job < 20; job++) /* which threads work is up to the system */
			neap__thread_pool_run(crowded, 64, see_item, &seen);
		for (int i = 0; i < 64; i++)
			assert_int_equal(seen.count[i], 220);
	}
	for (int n = 0; n < 3; n++)
		neap__processor_loan_end(&loans[n]);
	assert_int_equal(neap__processors_on_loan(), 0);
	neap__thread_pool_free(crowded);
	neap__thread_pool_free(pool);
}

/* Work that waited until now takes no processor; work that computed does. */
static void waiting_is_no_work(void **state)
{
	(void)state;
	struct neap__processor_loan loan = {0};

	neap__processor_loan_begin(&loan);
	neap__sleep(0.02);
	neap__processor_loan_end(&loan);
	neap__processor_loan_begin(&loan);
	assert_int_equal(neap__processors_on_loan(), 0);
	neap__processor_loan_end(&loan);
	loan.processor = loan.wall;
	neap__processor_loan_begin(&loan);
	assert_int_equal(neap__processors_on_loan(), 1);
	neap__processor_loan_end(&loan);
	assert_int_equal(neap__processors_on_loan(), 0);
}

static void *borrow(void *arg)
{
	atomic_int *stop = arg;
	struct neap__processor_loan loan = {0};

	while (!atomic_load(stop)) {
		loan.processor = loan.wall;
		neap__processor_loan_begin(&loan);
		sched_yield();
		neap__processor_loan_end(&loan);
		sched_yield();
	}
	return NULL;
}

/* Loans begin and end at any moment of jobs of all sizes, and workers sleep between some. */
static void loans_at_any_time(void **state)
{
	(void)state;
	atomic_int stop = 0;
	pthread_t borrower;

	assert_int_equal(pthread_create(&borrower, NULL, borrow, &stop), 0);
	for (int threads = 2; threads <= 4; threads++) {
		struct neap__thread_pool *pool;
		struct seen seen = {0};
		assert_int_equal(neap__thread_pool_create(&pool, threads), 0);
		for (int job = 0; job < 3000; job++) {
			neap__thread_pool_run(pool, 1 + job % 64, see_item, &seen);
			if (job % 500 == 0)
				neap__sleep(1e-3);
		}
		for (int i = 0; i < 64; i++) /* jobs with more than i items */
			assert_int_equal(seen.count[i],
				3000 / 64 * (64 - i) + (3000 % 64 > i ? 3000 % 64 - i : 0));
		neap__thread_pool_free(pool);
	}
	atomic_store(&stop, 1);
	pthread_join(borrower, NULL);
	assert_int_equal(neap__processors_on_loan(), 0);
}

static void file_is_whole_or_absent(void **state)
{
	(void)state;
	char dir[] = "/tmp/neap-test-XXXXXX", path[64];
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/file", dir);

	struct neap__atomic_file *file;
	assert_int_equal(neap__atomic_file_open(&file, path), 0);
	assert_int_equal(neap__atomic_file_write(file, "half", 4), 0);
	assert_int_not_equal(access(path, F_OK), 0);
	neap__atomic_file_abort(file);

	assert_int_equal(neap__write_file(path, "whole", 5), 0);
	char *data;
	size_t bytes;
	assert_int_equal(neap__read_file(&data, &bytes, path, 100), 0);
	assert_int_equal(bytes, 5);
	assert_string_equal(data, "whole");
	free(data);
	assert_int_equal(neap__read_file(&data, &bytes, path, 4), NEAP_EFORMAT);
	assert_true(neap__atomic_file_open(&file, dir) < 0);

	DIR *d = opendir(dir);
	int entries = 0;
	while (readdir(d))
		entries++;
	closedir(d);
	assert_int_equal(entries, 3); /* ".", "..", "file" */
	unlink(path);
	rmdir(dir);
}

static void resident_peak_follows_touch(void **state)
{
	(void)state;
	void *pages;
	assert_int_equal(neap__map_pages(&pages, (size_t)1 << 50), -ENOMEM);
	assert_non_null(strstr(neap_detail(), "but this machine has "));
	assert_int_equal(neap__map_pages(&pages, 32 << 20), 0);
	if (neap__resident_reset() < 0) {
		print_message("# SKIP /proc/self/clear_refs cannot be written\n");
		skip();
	}
	uint64_t before = neap__resident_peak();
	memset(pages, 1, 32 << 20);
	uint64_t after = neap__resident_peak();
	assert_true(after - before >= 31u << 20);
	neap__unmap_pages(pages, 32 << 20);
	assert_true(neap__memory_free() > 1 << 20);
	assert_true(neap__seconds() > 0);
}

static void crash(void *arg)
{
	raise(*(int *)arg);
}

static void return_(void *arg)
{
	*(int *)arg = 0;
}

static int told;

static void tell(void)
{
	told++;
}

static void take_long(void *arg)
{
	(void)arg;
	usleep(300000);
}

static void a_child_takes_the_crash(void **state)
{
	int number = SIGFPE;
	(void)state;
	assert_int_equal(neap__child_trial(crash, &number, 10, tell), SIGFPE);
	number = SIGSEGV;
	assert_int_equal(neap__child_trial(crash, &number, 10, tell), SIGSEGV);
	assert_int_equal(neap__child_trial(return_, &number, 10, NULL), 0);
	assert_int_equal(number, SIGSEGV); /* what the child did is forgotten */
	assert_int_equal(told, 0);
	/* What takes long is told once, and is no failure. */
	assert_int_equal(neap__child_trial(take_long, NULL, 0.05, tell), 0);
	assert_int_equal(told, 1);
}

static size_t resident_pages(unsigned char *pages, size_t bytes)
{
	static unsigned char there[16384];
	size_t count = 0;
	assert_true(bytes / 4096 <= sizeof there);
	assert_int_equal(mincore(pages, bytes, there), 0);
	for (size_t i = 0; i < bytes / 4096; i++)
		count += there[i] & 1;
	return count;
}

/* Pages become resident beside a writer, whose bytes stay. */
static void pages_are_populated(void **state)
{
	const size_t bytes = (size_t)64 << 20;
	void *mapped;
	(void)state;
	assert_int_equal(neap__map_pages(&mapped, bytes), 0);
	unsigned char *pages = mapped;
	assert_int_equal(resident_pages(pages, bytes), 0);
	struct neap__populate *populate = neap__populate_start(pages, bytes);
	for (size_t i = 0; i < bytes; i += 1 << 20)
		pages[i] = (unsigned char)(i >> 20);
	if (!populate) {
		print_message("# SKIP one processor\n");
		neap__unmap_pages(pages, bytes);
		skip();
	}
	for (int i = 0; i < 1000 && resident_pages(pages, bytes) < bytes / 4096; i++)
		usleep(10000);
	size_t there = resident_pages(pages, bytes);
	neap__populate_end(populate);
	neap__populate_end(NULL);
	for (size_t i = 0; i < bytes; i += 1 << 20)
		assert_int_equal(pages[i], (unsigned char)(i >> 20));
	assert_int_equal(there, bytes / 4096);
	/* Ended at once, it leaves the rest. */
	neap__unmap_pages(pages, bytes);
	assert_int_equal(neap__map_pages(&mapped, bytes), 0);
	neap__populate_end(neap__populate_start(mapped, bytes));
	neap__unmap_pages(mapped, bytes);
	assert_null(neap__populate_start(mapped, 4096)); /* too little */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_part),
		cmocka_unit_test(pool_runs_each_item_once),
		cmocka_unit_test(pool_leaves_processors_on_loan),
		cmocka_unit_test(waiting_is_no_work),
		cmocka_unit_test(loans_at_any_time),
		cmocka_unit_test(file_is_whole_or_absent),
		cmocka_unit_test(resident_peak_follows_touch),
		cmocka_unit_test(a_child_takes_the_crash),
		cmocka_unit_test(pages_are_populated),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
