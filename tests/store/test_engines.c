/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What moves data, whichever it is: any staging, any order of requests, several
 * directories; requests that are forgotten or given up; memory that was mapped anew.
 */
#include "../test.h"

#include <errno.h>
#include <neap/tier.h>
#include <pthread.h>
#include <stdlib.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/philox.h"
#include "store/stripes.h"
#include "store/tier_state.h"
#include "sys/engine.h"

#define DISK "/var/tmp"

static int is_sync(const struct neap_tier *tier)
{
	return strstr(neap_tier_about(tier), ", sync") != NULL;
}

/* A byte of the record with a tag. */
static void fill(unsigned char *data, uint64_t bytes, uint64_t tag)
{
	for (uint64_t i = 0; i < bytes; i++)
		data[i] = (unsigned char)((i * 2654435761u + tag * 40503u) >> 9);
}

static void choice(void **state)
{
	struct neap_tier *tier = NULL;
	const char *before = getenv("NEAP_IO");
	char *kept = before ? strdup(before) : NULL;
	(void)state;
	static const char *const names[] = {"threads", "sync"};
	for (int i = 0; i < 2; i++) {
		setenv("NEAP_IO", names[i], 1);
		assert_int_equal(neap_tier_open_file(&tier, DISK, NULL), 0);
		assert_non_null(strstr(neap_tier_about(tier), names[i]));
		neap_tier_close(tier);
	}
	setenv("NEAP_IO", "uring", 1);
	int rc = neap_tier_open_file(&tier, DISK, NULL);
	if (rc == 0) {
		assert_non_null(strstr(neap_tier_about(tier), ", uring"));
		neap_tier_close(tier);
	} else {
		assert_int_equal(rc, NEAP_EUSAGE);
		assert_non_null(
			strstr(neap_detail(), "NEAP_IO=uring does not work on this machine"));
	}
	setenv("NEAP_IO", "", 1); /* as if it were not there */
	assert_int_equal(neap_tier_open_file(&tier, DISK, NULL), 0);
	if (rc < 0)
		assert_non_null(strstr(neap_tier_about(tier), "threads (no uring: "));
	neap_tier_close(tier);
	setenv("NEAP_IO", "aio", 1);
	assert_int_equal(neap_tier_open_file(&tier, DISK, NULL), NEAP_EUSAGE);
	assert_string_equal(
		neap_detail(), "NEAP_IO='aio' is not valid; choose one of uring, threads or sync");
	if (kept)
		setenv("NEAP_IO", kept, 1);
	else
		unsetenv("NEAP_IO");
	free(kept);
}

/* From now on the system refuses io_uring_enter, as container runtimes make it. */
static int refuse_enter(void)
{
	struct sock_filter rows[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_enter, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {.len = sizeof rows / sizeof rows[0], .filter = rows};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	/* For the I/O threads that run already, too. */
	return (int)syscall(
		SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter);
}

/* Moves some records there and back; the exit code says which part failed, 0: none. */
static int moves(struct neap_tier *tier, int late)
{
	static unsigned char data[8][20000], back[20000];
	int64_t tickets[8], ticket;
	if (neap_tier_format(tier, sizeof back, 8, NULL) < 0)
		return 1;
	for (int i = 0; i < 8; i++) {
		memset(data[i], i + 1, sizeof data[i]);
		if (neap_tier_put(tier, i, 1, data[i], sizeof data[i], &tickets[i]) < 0)
			return 2;
		if (i == 3 && late && refuse_enter() != 0)
			return 3;
	}
	for (int i = 0; i < 8; i++)
		if (neap_tier_wait(tier, tickets[i]) < 0)
			return 4;
	for (int i = 0; i < 8; i++)
		if (neap_tier_get(tier, i, 1, back, sizeof back, &ticket) < 0 ||
			neap_tier_wait(tier, ticket) < 0 || memcmp(back, data[i], sizeof back) != 0)
			return 5;
	return 0;
}

static int without_enter(int late)
{
	struct neap_tier *tier;
	int uring = 0;
	alarm(60); /* a ring that is never answered would hang */
	unsetenv("NEAP_IO");
	if (neap_tier_open_file(&tier, DISK, NULL) < 0)
		return 6;
	uring = strstr(neap_tier_about(tier), ", uring") != NULL;
	if (!late) {
		neap_tier_close(tier);
		if (refuse_enter() != 0)
			return 3;
		if (neap_tier_open_file(&tier, DISK, NULL) < 0)
			return 6;
		if (uring && !strstr(neap_tier_about(tier),
				     "threads (no uring: Operation not permitted)"))
			return 7;
	}
	int rc = moves(tier, late);
	neap_tier_close(tier);
	setenv("NEAP_IO", "uring", 1);
	if (rc == 0 && (neap_tier_open_file(&tier, DISK, NULL) != NEAP_EUSAGE ||
			       !strstr(neap_detail(), "does not work on this machine")))
		return 8;
	return rc;
}

/* A system that refuses io_uring_enter, before a tier is opened or while it moves records. */
static void refused_enter(void **state)
{
	(void)state;
	for (int late = 0; late < 2; late++) {
		int status;
		pid_t child = fork();
		if (child == 0)
			_exit(without_enter(late));
		assert_int_equal(waitpid(child, &status, 0), child);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 3) {
			print_message("# SKIP no filters of system calls here\n");
			skip();
		}
		if (status != 0)
			fail_msg("late %d: status %x", late, status);
	}
}

enum { PLACES = 24, FLYING = 40, ROUNDS = 250, STATE = 4000 };
#define MOST 700000

/* What lies at a place, as the requests were posted. */
struct model {
	uint64_t tag, bytes; /* 0: nothing */
};

struct flight {
	int64_t ticket;
	unsigned char *data; /* of its own */
	struct neap_span spans[2];
	uint64_t tag, bytes;
	int get;
	int expect; /* 0 or NEAP_ELOST */
};

static void land(struct neap_tier *tier, struct flight *f)
{
	static unsigned char want[MOST];
	int rc = neap_tier_wait(tier, f->ticket);
	if (rc != f->expect)
		fail_msg("%d, not %d: %s", rc, f->expect, neap_detail());
	if (f->get && rc == 0) {
		fill(want, f->bytes, f->tag);
		assert_memory_equal(f->data, want, f->bytes);
	}
	free(f->data);
	f->data = NULL;
}

static uint64_t pick(uint64_t seed, uint64_t n, int k, uint64_t below)
{
	return neap__random_below(seed, NEAP__STREAM_TEST, (uint32_t)k, n, below);
}

/* One request: a put, a get of what is there, or of what is not. */
static void post(struct neap_tier *tier, struct model at[2][PLACES], struct flight *f,
	uint64_t seed, uint64_t n, uint64_t most)
{
	int64_t place = (int64_t)pick(seed, n, 0, PLACES);
	int tapes = (int)pick(seed, n, 1, 2), kind = (int)pick(seed, n, 2, 5);
	struct model *m = &at[tapes][place];
	*f = (struct flight){.get = kind > 1, .tag = n + 1};
	f->bytes = 1 + pick(seed, n, 3, tapes ? most : STATE);
	if (f->get && kind < 4 && m->bytes) {
		f->tag = m->tag;
		f->bytes = m->bytes;
	} else if (f->get) {
		f->expect = NEAP_ELOST;
	} else {
		*m = (struct model){f->tag, f->bytes};
	}
	f->data = malloc(f->bytes);
	if (!f->get)
		fill(f->data, f->bytes, f->tag);
	uint64_t cut = f->bytes / 3;
	f->spans[0] = (struct neap_span){f->data, cut};
	f->spans[1] = (struct neap_span){f->data + cut, f->bytes - cut};
	int rc;
	if (tapes)
		rc = f->get ? neap_tier_get_tapes(tier, place, f->tag, f->spans, 2, &f->ticket)
			    : neap_tier_put_tapes(tier, place, f->tag, f->spans, 2, &f->ticket);
	else
		rc = f->get ? neap_tier_get(tier, place, f->tag, f->data, f->bytes, &f->ticket)
			    : neap_tier_put(tier, place, f->tag, f->data, f->bytes, &f->ticket);
	assert_int_equal(rc, 0);
}

static void random_requests(struct neap_tier *tier, uint64_t seed, uint64_t most)
{
	struct model at[2][PLACES] = {0};
	struct flight flights[FLYING] = {0};
	for (uint64_t n = 0; n < ROUNDS; n++) {
		struct flight *f = &flights[pick(seed, n, 4, FLYING)];
		if (f->data)
			land(tier, f);
		else
			post(tier, at, f, seed, n, most);
	}
	for (int i = 0; i < FLYING; i++)
		if (flights[i].data)
			land(tier, &flights[i]);
}

static void check_random(const char *where, const struct neap_file_options *options)
{
	static const uint64_t stagings[] = {0, 4096, 12288, 65536, 262144, 655360, 4 << 20};
	struct neap_tier *tier;
	if (neap_tier_open_file(&tier, where, options) < 0) {
		print_message("# SKIP %s: %s\n", where, neap_detail());
		skip();
	}
	for (uint64_t i = 0; i < 2 * sizeof stagings / sizeof stagings[0]; i++) {
		uint64_t most = i % 2 ? MOST : 9000;
		struct neap__staging staging = {.bytes = stagings[i / 2], .mapping = i};
		struct neap_tier_spec least;
		neap_tier_describe(tier, STATE, &least);
		assert_int_equal(least.staging, 4096);
		if (staging.bytes)
			staging.at = aligned_alloc(4096, staging.bytes);
		assert_int_equal(neap__tier_format(tier, STATE, PLACES, &staging), 0);
		assert_int_equal(neap_tier_format_tapes(tier, MOST, PLACES, staging.bytes), 0);
		random_requests(tier, 77 + i, most);
		assert_int_equal(neap_tier_format(tier, 64, 1, NULL), 0); /* lets go of it */
		free(staging.at);
	}
	neap_tier_close(tier);
}

static void any_order(void **state)
{
	(void)state;
	check_random(DISK, NULL);
}

static void any_order_in_the_page_cache(void **state)
{
	static const struct neap_file_options cached = {.size = sizeof cached, .page_cache = 1};
	(void)state;
	check_random(DISK, &cached);
}

enum { DIRS = 3 };
static char dirs[DIRS][64], striped[256]; /* "a+b+c" */

static int make_dirs(void **state)
{
	(void)state;
	for (int i = 0; i < DIRS; i++) {
		snprintf(dirs[i], sizeof dirs[i], DISK "/neap-stripe-XXXXXX");
		if (!mkdtemp(dirs[i]))
			return -1;
	}
	snprintf(striped, sizeof striped, "%s+%s+%s", dirs[0], dirs[1], dirs[2]);
	return 0;
}

static int remove_dirs(void **state)
{
	int rc = 0;
	(void)state;
	for (int i = 0; i < DIRS; i++)
		rc |= rmdir(dirs[i]); /* empty */
	return rc;
}

static void stripes(void **state)
{
	struct neap__stripes s = {0};
	(void)state;
	check_random(striped, NULL);
	assert_int_equal(neap__stripes_open(&s, striped, NULL, 0), 0);
	assert_int_equal(s.count, DIRS);
	/* Every byte has a place of its own, and the files are as long as that takes. */
	uint64_t ends[DIRS] = {0}, size = 10 * NEAP__STRIPE + 4096;
	for (uint64_t at = 0; at < size; at += 4096) {
		struct neap__stripe x = neap__stripe_at(&s, at);
		assert_int_equal(x.file, at / NEAP__STRIPE % DIRS);
		assert_int_equal(x.offset, ends[x.file]);
		assert_int_equal(x.run, NEAP__STRIPE - at % NEAP__STRIPE);
		ends[x.file] += 4096;
	}
	assert_int_equal(neap__stripes_reserve(&s, size), 0);
	for (int i = 0; i < DIRS; i++)
		assert_int_equal(lseek(s.files[i].fd, 0, SEEK_END), ends[i]);
	neap__stripes_close(&s);
}

/* On one disk stripes do not make it larger; each of several directories must do. */
static void stripe_lists(void **state)
{
	struct neap_tier *tier, *tiers[NEAP_TIERS_MAX];
	struct neap_tier_spec one, three;
	char list[1024];
	int n;
	(void)state;
	assert_int_equal(neap_tier_open_file(&tier, dirs[0], NULL), 0);
	neap_tier_describe(tier, 4032, &one);
	neap_tier_close(tier);
	snprintf(list, sizeof list, "mem:1M,%s,%s", striped, dirs[1]);
	assert_int_equal(neap_tiers_open(tiers, &n, list, NULL), 0);
	assert_int_equal(n, 3);
	neap_tier_describe(tiers[1], 4032, &three);
	assert_true(three.capacity < one.capacity / 2 * 3);
	assert_non_null(strstr(neap_tier_about(tiers[1]), striped));
	assert_non_null(strstr(neap_tier_about(tiers[1]), "files in"));
	while (n > 0)
		neap_tier_close(tiers[--n]);
	snprintf(list, sizeof list, "%s+/no/such/place", dirs[0]);
	assert_int_equal(neap_tier_open_file(&tier, list, NULL), -ENOENT);
	assert_non_null(strstr(neap_detail(), "/no/such/place"));
	snprintf(list, sizeof list, "%s+", dirs[0]);
	assert_int_equal(neap_tier_open_file(&tier, list, NULL), NEAP_EUSAGE);
	list[0] = '\0';
	for (int i = 0; i < 9; i++)
		snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? "+" : "",
			DISK);
	assert_int_equal(neap_tier_open_file(&tier, list, NULL), NEAP_EUSAGE);
	assert_non_null(strstr(neap_detail(), "more than 8 directories"));
	/* A plus in a name that exists is part of it. */
	snprintf(list, sizeof list, "%s/a+b", dirs[0]);
	assert_int_equal(mkdir(list, 0700), 0);
	int rc = neap_tier_open_file(&tier, list, NULL);
	assert_int_equal(rmdir(list), 0);
	assert_int_equal(rc, 0);
	neap_tier_close(tier);
}

/* One of the files is cut short: what lay there is gone, the rest is not. */
static void lost_stripe(void **state)
{
	enum { PLACE = 2, BYTES = 1000000 };
	struct neap_tier *tier;
	int64_t ticket;
	(void)state;
	assert_int_equal(neap_tier_open_file(&tier, striped, NULL), 0);
	assert_int_equal(neap_tier_format(tier, BYTES, 3, NULL), 0);
	unsigned char *data = malloc(BYTES);
	for (int i = 0; i < 3; i++) {
		fill(data, BYTES, 5);
		assert_int_equal(neap_tier_put(tier, i, 5, data, BYTES, &ticket), 0);
		assert_int_equal(neap_tier_wait(tier, ticket), 0);
	}
	assert_int_equal(neap__tier_poke(tier, 0, 1, BYTES / 2, 1), 0);
	assert_int_equal(neap_tier_get(tier, 1, 5, data, BYTES, &ticket), 0);
	assert_int_equal(neap_tier_wait(tier, ticket), NEAP_ECORRUPT);
	assert_int_equal(neap__tier_poke(tier, 0, PLACE, BYTES / 2, 0), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(neap_tier_get(tier, i, 5, data, BYTES, &ticket), 0);
		int rc = neap_tier_wait(tier, ticket);
		assert_int_equal(rc, i == 0 ? 0 : i == 1 ? NEAP_ECORRUPT : NEAP_ESHORT);
	}
	neap_tier_close(tier);
	free(data);
}

/* What goes past the page cache leaves nothing there; what goes through it does. */
static void page_cache(void **state)
{
	static const struct neap_file_options cached = {.size = sizeof cached, .page_cache = 1};
	enum { BYTES = 1 << 20, MANY = 48 };
	(void)state;
	unsigned char *data = calloc(1, BYTES);
	for (int k = 0; k < 2; k++) {
		struct neap_tier *tier;
		uint64_t bytes;
		int64_t ticket;
		assert_int_equal(neap_tier_open_file(&tier, DISK, k ? &cached : NULL), 0);
		assert_int_equal(neap_tier_format(tier, BYTES, MANY, NULL), 0);
		for (int i = 0; i < 2 * MANY; i++) {
			int rc = i < MANY ? neap_tier_put(tier, i, 1, data, BYTES, &ticket)
					  : neap_tier_get(tier, i - MANY, 1, data, BYTES, &ticket);
			assert_int_equal(rc, 0);
			assert_int_equal(neap_tier_wait(tier, ticket), 0);
		}
		assert_int_equal(neap__tier_cached(tier, &bytes), 0);
		assert_true(k ? bytes > MANY / 2 * (uint64_t)BYTES : bytes <= 1 << 20);
		neap_tier_close(tier);
	}
	free(data);
}

/* A queued write of a state that nobody wants is not written; its answer is 0. */
static void forgotten(void **state)
{
	enum { MANY = 200, BYTES = 400000 };
	struct neap_tier *tier;
	int64_t tickets[MANY];
	int lost = 0;
	(void)state;
	assert_int_equal(neap_tier_open_file(&tier, DISK, NULL), 0);
	assert_int_equal(neap_tier_format(tier, BYTES, MANY, NULL), 0);
	unsigned char *data = malloc(BYTES), *back = malloc(BYTES);
	fill(data, BYTES, 1);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(neap_tier_put(tier, i, 1, data, BYTES, &tickets[i]), 0);
	for (int i = MANY / 2; i < MANY; i++)
		assert_int_equal(neap_tier_forget(tier, i), 0);
	assert_int_equal(neap_tier_forget(tier, 0), 0); /* begun, or done */
	for (int i = 0; i < MANY; i++)
		assert_int_equal(neap_tier_wait(tier, tickets[i]), 0);
	for (int i = 0; i < MANY; i++) {
		int64_t ticket;
		assert_int_equal(neap_tier_get(tier, i, 1, back, BYTES, &ticket), 0);
		int rc = neap_tier_wait(tier, ticket);
		if (i > 0 && i < MANY / 2)
			assert_int_equal(rc, 0);
		assert_true(rc == 0 || rc == NEAP_ELOST);
		lost += rc == NEAP_ELOST;
	}
	print_message("# %d of %d writes were spared\n", lost, MANY);
	assert_true(is_sync(tier) ? lost == 0 : lost > MANY / 4);
	/* One that is read all the same is written. */
	int64_t put, get;
	for (int i = 0; i < MANY - 1; i++)
		assert_int_equal(neap_tier_put(tier, i, 2, data, BYTES, &tickets[i]), 0);
	assert_int_equal(neap_tier_put(tier, MANY - 1, 2, data, BYTES, &put), 0);
	assert_int_equal(neap_tier_get(tier, MANY - 1, 2, back, BYTES, &get), 0);
	assert_int_equal(neap_tier_forget(tier, MANY - 1), 0);
	assert_int_equal(neap_tier_wait(tier, get), 0);
	assert_memory_equal(back, data, BYTES);
	neap_tier_close(tier); /* while the rest flies */
	free(data);
	free(back);
}

/* Other pages at an address that the engine knows from before. */
static void mapped_anew(void **state)
{
	enum { BYTES = 3000000 };
	struct neap_tier *tier;
	uint64_t room = 2 << 20;
	int64_t ticket;
	void *at = NULL;
	(void)state;
	assert_int_equal(neap_tier_open_file(&tier, DISK, NULL), 0);
	unsigned char *data = malloc(BYTES), *back = malloc(BYTES);
	for (uint64_t i = 1; i < 20; i++) {
		at = mmap(at, room, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);
		assert_ptr_not_equal(at, MAP_FAILED);
		struct neap__staging staging = {at, room, i};
		struct neap__records states = {BYTES, 2}, tapes = {0, 0};
		assert_false(neap__tier_fits(tier, states, tapes, &staging));
		assert_int_equal(neap__tier_format(tier, BYTES, 2, &staging), 0);
		assert_true(neap__tier_fits(tier, states, tapes, &staging));
		fill(data, BYTES, i);
		assert_int_equal(neap_tier_put(tier, 1, i, data, BYTES, &ticket), 0);
		assert_int_equal(neap_tier_wait(tier, ticket), 0);
		assert_int_equal(neap_tier_get(tier, 1, i, back, BYTES, &ticket), 0);
		assert_int_equal(neap_tier_wait(tier, ticket), 0);
		assert_memory_equal(data, back, BYTES);
	}
	neap_tier_close(tier);
	munmap(at, room);
	free(data);
	free(back);
}

static void *write_later(void *pipe)
{
	unsigned char data[64];
	fill(data, sizeof data, 3);
	usleep(20000);
	assert_int_equal(write(*(int *)pipe, data, sizeof data), sizeof data);
	return NULL;
}

/* A ring waits for a request as long as it is told: the request reads a pipe, which ends when
 * something is written. */
static void waits(void **state)
{
	struct neap__io_engine engine;
	unsigned char data[64] = "", want[64];
	pthread_t thread;
	int ends[2];
	(void)state;
	fill(want, sizeof want, 3);
	assert_int_equal(neap__io_engine_open(&engine, 4), 0);
	assert_int_equal(pipe(ends), 0);
	struct neap__scratch file = {.fd = ends[0]};
	struct neap__io_request request = {.file = &file, .at = data, .bytes = sizeof data};
	if (strcmp(engine.kind->name, "uring") == 0) { /* the others take files only */
		neap__io_engine_start(&engine, &request);
		assert_null(neap__io_engine_finish(&engine, 0));
		assert_null(neap__io_engine_finish(&engine, 1e-3));
		assert_int_equal(pthread_create(&thread, NULL, write_later, &ends[1]), 0);
		assert_ptr_equal(neap__io_engine_finish(&engine, INFINITY), &request);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(request.answer, 0);
		assert_memory_equal(data, want, sizeof want);
		neap__io_engine_start(&engine, &request);
		assert_int_equal(pthread_create(&thread, NULL, write_later, &ends[1]), 0);
		assert_ptr_equal(neap__io_engine_finish(&engine, 1000), &request);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
	neap__io_engine_close(&engine);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(choice),
		cmocka_unit_test(refused_enter),
		cmocka_unit_test(waits),
		cmocka_unit_test(any_order),
		cmocka_unit_test(any_order_in_the_page_cache),
		cmocka_unit_test_setup_teardown(stripes, make_dirs, remove_dirs),
		cmocka_unit_test_setup_teardown(stripe_lists, make_dirs, remove_dirs),
		cmocka_unit_test_setup_teardown(lost_stripe, make_dirs, remove_dirs),
		cmocka_unit_test(page_cache),
		cmocka_unit_test(forgotten),
		cmocka_unit_test(mapped_anew),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
