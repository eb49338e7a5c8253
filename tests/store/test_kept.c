/* SPDX-License-Identifier: Apache-2.0 */
/* Slow files that outlive the process: whose they are, and what they still hold. */
#include "../test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <linux/magic.h>
#include "store/tier_state.h"

#define RECORD 10000
#define PLACES 5

static char folder[64], path[96];

static void fresh_folder(void)
{
	snprintf(folder, sizeof folder, "/var/tmp/neap-kept-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/neap.slow", folder);
}

static void remove_folder(void)
{
	unlink(path);
	assert_int_equal(rmdir(folder), 0);
}

static int open_kept(struct neap_tier **tier)
{
	struct neap_file_options o = {.size = sizeof o, .keep = 1};
	int rc = neap_tier_open_file(tier, folder, &o);
	if (rc < 0) {
		o.page_cache = 1;
		rc = neap_tier_open_file(tier, folder, &o);
	}
	return rc;
}

static void fill(unsigned char *bytes, int64_t place)
{
	for (int i = 0; i < RECORD; i++)
		bytes[i] = (unsigned char)(i * 7 + place);
}

static void put_all(struct neap_tier *tier, uint64_t epoch)
{
	static unsigned char bytes[RECORD];
	int64_t ticket;
	assert_int_equal(neap_tier_format(tier, RECORD, PLACES, NULL), 0);
	assert_int_equal(neap_tier_format_tapes(tier, RECORD, PLACES, 0), 0);
	assert_int_equal(neap__tier_adopt(tier, epoch), 0);
	for (int64_t place = 0; place < PLACES; place++) {
		fill(bytes, place);
		const struct neap_span span = {bytes, RECORD};
		assert_int_equal(
			neap_tier_put(tier, place, (uint64_t)place, bytes, RECORD, &ticket), 0);
		assert_int_equal(neap_tier_wait(tier, ticket), 0);
		assert_int_equal(
			neap_tier_put_tapes(tier, place, (uint64_t)place, &span, 1, &ticket), 0);
		assert_int_equal(neap_tier_wait(tier, ticket), 0);
	}
	assert_int_equal(neap__tier_sync(tier), 0);
}

/* How many records are there. */
static int there(struct neap_tier *tier)
{
	static unsigned char bytes[RECORD], want[RECORD];
	int64_t ticket;
	int n = 0;
	for (int64_t place = 0; place < 2 * PLACES; place++) {
		const struct neap_span span = {bytes, RECORD};
		uint64_t tag = (uint64_t)(place / 2);
		int rc = place % 2 ? neap_tier_get_tapes(tier, place / 2, tag, &span, 1, &ticket)
				   : neap_tier_get(tier, place / 2, tag, bytes, RECORD, &ticket);
		assert_int_equal(rc, 0);
		if (neap_tier_wait(tier, ticket) < 0)
			continue;
		fill(want, place / 2);
		assert_memory_equal(bytes, want, RECORD);
		n++;
	}
	return n;
}

/* Opens, formats alike and asks for the records of an epoch. */
static int found(uint64_t epoch, int wanted_on)
{
	struct neap_tier *tier;
	assert_int_equal(open_kept(&tier), 0);
	assert_int_equal(neap_tier_measure(tier, RECORD, 0.01), 0); /* must not overwrite */
	assert_int_equal(neap_tier_format(tier, RECORD, PLACES, NULL), 0);
	assert_int_equal(neap_tier_format_tapes(tier, RECORD, PLACES, 0), 0);
	assert_int_equal(neap__tier_adopt(tier, epoch), 0);
	int n = there(tier);
	if (!wanted_on)
		assert_int_equal(neap__tier_adopt(tier, 0), 0);
	if (!wanted_on)
		assert_int_equal(there(tier), 0);
	neap_tier_close(tier);
	return n;
}

static void outlives_the_process(void **state)
{
	struct stat st;
	(void)state;
	fresh_folder();
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct neap_tier *tier;
		if (open_kept(&tier) < 0)
			_exit(1);
		put_all(tier, 77);
		kill(getpid(), 9);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(found(78, 1), 0); /* of another sweep */
	assert_int_equal(found(77, 1), 2 * PLACES);
	assert_int_equal(truncate(path, 4096 + 2 * 12288), 0);
	assert_int_equal(found(77, 1), 2);
	assert_int_equal(found(77, 0), 2);
	assert_int_equal(access(path, F_OK), -1); /* nobody wants it any more */
	assert_int_equal(found(77, 0), 0);
	remove_folder();
}

static void gone_where_nobody_adopts(void **state)
{
	struct neap_tier *tier;
	(void)state;
	fresh_folder();
	assert_int_equal(open_kept(&tier), 0);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(neap_tier_format(tier, RECORD, PLACES, NULL), 0);
	neap_tier_close(tier);
	assert_int_equal(access(path, F_OK), -1);
	remove_folder();
}

static void refused(const char *word)
{
	struct neap_tier *tier;
	assert_int_equal(open_kept(&tier), NEAP_EUSAGE);
	if (!strstr(neap_detail(), word) || strchr(neap_detail(), '\n'))
		fail_msg("'%s' lacks '%s'", neap_detail(), word);
}

static void write_text(const char *name, const char *text)
{
	FILE *f = fopen(name, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void not_ours(void **state)
{
	char other[96], text[16] = "";
	(void)state;
	fresh_folder();
	snprintf(other, sizeof other, "%s/other", folder);
	write_text(path, "a letter");
	refused("was not written by neap");
	FILE *f = fopen(path, "r");
	assert_non_null(fgets(text, sizeof text, f));
	fclose(f);
	assert_string_equal(text, "a letter");
	unlink(path);

	write_text(other, "a letter");
	assert_int_equal(symlink(other, path), 0);
	refused("symbolic link");
	unlink(path);
	assert_int_equal(symlink("nowhere", path), 0);
	refused("symbolic link");
	unlink(path);
	assert_int_equal(link(other, path), 0);
	refused("other hard links");
	unlink(path);
	unlink(other);
	assert_int_equal(mkfifo(path, 0600), 0);
	refused("regular file");
	unlink(path);
	write_text(path, ""); /* made, and never written to */
	assert_int_equal(found(79, 0), 0);
	remove_folder();
}

static void one_process_at_a_time(void **state)
{
	struct neap_tier *tier;
	(void)state;
	fresh_folder();
	assert_int_equal(open_kept(&tier), 0);
	refused("in use");
	pid_t child = fork();
	if (child == 0) {
		struct neap_tier *mine;
		_exit(open_kept(&mine) == NEAP_EUSAGE && strstr(neap_detail(), "in use") ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	put_all(tier, 5);
	neap_tier_close(tier);
	assert_int_equal(found(5, 1), 2 * PLACES);

	/* Another version's: one byte of the header differs. */
	int fd = open(path, O_RDWR);
	assert_int_equal(pwrite(fd, "\7", 1, 8), 1);
	close(fd);
	refused("another version");
	remove_folder();
}

static void not_in_memory(void **state)
{
	struct neap_file_options o = {.size = sizeof o, .keep = 1};
	struct neap_tier *tier;
	struct statfs fs;
	(void)state;
	if (statfs("/dev/shm", &fs) < 0 || fs.f_type != TMPFS_MAGIC)
		skip();
	snprintf(folder, sizeof folder, "/dev/shm/neap-kept-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/neap.slow", folder);
	assert_int_equal(neap_tier_open_file(&tier, folder, &o), NEAP_EUSAGE);
	assert_non_null(strstr(neap_detail(), "in memory"));
	assert_int_equal(access(path, F_OK), -1);
	o.in_memory = 1;
	assert_int_equal(neap_tier_open_file(&tier, folder, &o), 0);
	neap_tier_close(tier);
	remove_folder();
}

/* A disk that is full, as far as this process is told: nothing stays. */
static void no_room(void **unused)
{
	struct rlimit old, none;
	struct neap_tier *tier;
	(void)unused;
	fresh_folder();
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	none = (struct rlimit){100, old.rlim_max};
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	int rc = open_kept(&tier);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_true(rc < 0 && rc > NEAP_EUSAGE);
	assert_non_null(strstr(neap_detail(), path));
	remove_folder();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(outlives_the_process),
		cmocka_unit_test(gone_where_nobody_adopts),
		cmocka_unit_test(not_ours),
		cmocka_unit_test(one_process_at_a_time),
		cmocka_unit_test(not_in_memory),
		cmocka_unit_test(no_room),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
