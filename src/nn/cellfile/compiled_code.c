/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compiled_code.c: compiles, keeps and loads shared objects (compiled_code.h). Files are named
 * through the open directory that was checked (/proc/PID/fd/N/NAME), so that nobody can exchange it
 * afterwards. A file is compiled under a name of this process and renamed when it is complete, so
 * that processes that compile the same text at once do not disturb each other.
 */
#include "nn/cellfile/compiled_code.h"
#include "sys/command.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/text.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

extern char **environ;

/*
 * Every operation is rounded for itself (no contraction, no mathematics at the compiler's
 * discretion), and functions are called as written. The text includes no header and needs no
 * library, so that a compiler without the C library's headers is enough.
 */
static const char *const flags[] = {"-march=native", "-O3", "-ffp-contract=off", "-fno-fast-math",
	"-fno-math-errno", "-fno-trapping-math", "-fno-builtin", "-fPIC", "-std=gnu11", "-w"};
enum { FLAGS = sizeof flags / sizeof flags[0], COMMAND = FLAGS + 10 };

enum {
	MACROS = 1 << 17,    /* bytes; gcc 12 predefines 16 KB */
	FILE_MOST = 1 << 26, /* bytes of a shared object; the largest cell needs 1 MB */
	STALE = 3600,	     /* seconds after which an unfinished file is of a killed process */
	POLL = 2	     /* milliseconds between looks at the compiler; it takes 50 and more */
};

static const char text_name[] = "neap_code_text", unfinished_ending[] = ".tmp";

/* What is compiled, and where it is kept. */
struct code {
	const char *text, *option;
	struct neap__text whole; /* with the text as a string */
	int directory, from;	 /* from: 1 without -march=native, which some compilers lack */
	char place[PATH_MAX];	 /* of the directory, for messages */
	char name[48], unfinished[80];
};

/* Directory `name` of `parent`, made if it is missing. A descriptor or -errno. */
static int open_below(int parent, const char *name)
{
	if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Opens the user's cache directory. A descriptor or -errno. */
static int open_cache(struct code *c)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

	if (cache && *cache == '/')
		neap__print(c->place, sizeof c->place - 16, "%s", cache);
	else if (home && *home == '/')
		neap__print(c->place, sizeof c->place - 16, "%s/.cache", home);
	else
		return -ENOENT;
	if (mkdir(c->place, 0700) < 0 && errno != EEXIST)
		return -errno;
	int fd = open(c->place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int open_directory(struct code *c)
{
	char plain[NEAP__PLAIN_TEXT];
	struct stat st;
	int cache = open_cache(c), neap = cache < 0 ? cache : open_below(cache, "neap");
	int fd = neap < 0 ? neap : open_below(neap, "code");

	if (cache >= 0)
		close(cache);
	if (neap >= 0)
		close(neap);
	if (!*c->place)
		return neap__fail(NEAP_EUSAGE,
			"%s: neither XDG_CACHE_HOME nor HOME names a directory for compiled code. "
			"Set one of them, or remove %s",
			c->option, c->option);
	strcat(c->place, "/neap/code");
	if (fd < 0)
		return neap__fail(NEAP_EUSAGE,
			"%s: cannot use the directory '%.300s': %s. Set XDG_CACHE_HOME to a "
			"directory that you can write to, or remove %s",
			c->option, neap__plain_text(plain, c->place), neap__error_text(-fd),
			c->option);
	c->directory = fd;
	if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 077) == 0)
		return 0;
	return neap__fail(NEAP_EUSAGE,
		"%s: other users can access the directory '%.300s' or own it, so code from it is "
		"not executed. Remove it or give it the mode 700, or set XDG_CACHE_HOME "
		"to another directory",
		c->option, neap__plain_text(plain, c->place));
}

/* The text, and itself as a string by which it is recognised. */
static int write_whole(struct code *c)
{
	struct neap__text *w = &c->whole;

	neap__text_add(w, "%s\nconst char %s[] =\n", c->text, text_name);
	for (const char *line = c->text; *line;) {
		int length = (int)strcspn(line, "\n");
		neap__text_add(w, "\t\"");
		for (int i = 0; i < length; i++)
			neap__text_add(
				w, line[i] == '"' || line[i] == '\\' ? "\\%c" : "%c", line[i]);
		line += length + (line[length] == '\n');
		neap__text_add(w, "\\n\"\n");
	}
	return neap__text_add(w, "\t;\n");
}

static int no_compiler(const struct code *c)
{
	return neap__fail(NEAP_EUSAGE,
		"%s: there is no C compiler 'cc' in PATH. Install one, such as gcc or clang, or "
		"remove %s: the interpreter computes the same numbers",
		c->option, c->option);
}

/* The first line of the compiler's output that names an error, else the first one. */
static int compiler_failed(const struct code *c, int status, char *output)
{
	char plain[NEAP__PLAIN_TEXT], *line = strstr(output, "error:");

	line = line ? line : strstr(output, "error");
	while (line && line > output && line[-1] != '\n')
		line--;
	line = line ? line : output;
	line[strcspn(line, "\n")] = '\0';
	return neap__fail(NEAP_EUSAGE,
		"%s: the C compiler 'cc' failed (status %d): '%.300s'. Install a working compiler, "
		"or remove %s: cell files are then interpreted, with the same results",
		c->option, status, neap__plain_text(plain, line), c->option);
}

/* A command of the compiler: the flags and then `last`, which ends with NULL. */
static void command(const char *argv[COMMAND], const struct code *c, const char *const *last)
{
	int n = 0;

	argv[n++] = "cc";
	for (int i = c->from; i < FLAGS; i++)
		argv[n++] = flags[i];
	while ((argv[n++] = *last++))
		;
}

/* The macros that the compiler predefines, or its errors. Its exit status or -errno. */
static int read_macros(struct code *c, char macros[MACROS])
{
	static const char *const last[] = {"-dM", "-E", "-xc", "/dev/null", NULL};
	const char *argv[COMMAND];
	int status;

	do {
		command(argv, c, last);
		status = neap__command(argv, 1, macros, MACROS);
	} while (status > 0 && !c->from++);
	return status;
}

/* Fills in c->name: everything that the machine code depends on. */
static int name_code(struct code *c)
{
	struct neap__text key = {0};
	char *macros = malloc(MACROS);

	if (!macros)
		return neap__fail_errno(ENOMEM, "%s", c->option);
	int status = read_macros(c, macros);
	if (status == 0 && write_whole(c) == 0) {
		for (int i = c->from; i < FLAGS; i++)
			neap__text_add(&key, "%s\n", flags[i]);
		if (neap__text_add(&key, "%s%s", macros, c->whole.data) == 0) {
			XXH128_hash_t hash = XXH3_128bits(key.data, key.length);
			neap__print(c->name, sizeof c->name, "%016llx%016llx.so",
				(unsigned long long)hash.high64, (unsigned long long)hash.low64);
			neap__print(c->unfinished, sizeof c->unfinished, "%.32s.%ld%s", c->name,
				(long)getpid(), unfinished_ending);
		}
	}
	neap__text_free(&key);
	int rc = status == -ENOENT || status == -EACCES || status == -ENOTDIR ? no_compiler(c)
		 : status != 0 ? compiler_failed(c, status, macros)
		 : !*c->name   ? neap__fail_errno(ENOMEM, "%s", c->option)
			       : 0;
	free(macros);
	return rc;
}

/* The signals that end the compiler; those that the process ignores do not. */
static void stopping_signals(sigset_t *set)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action;

	sigemptyset(set);
	for (int i = 0; i < 3; i++)
		if (sigaction(signals[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
			sigaddset(set, signals[i]);
}

static int is_pending(const sigset_t *set)
{
	sigset_t pending;

	sigpending(&pending);
	return (sigismember(set, SIGINT) && sigismember(&pending, SIGINT)) ||
	       (sigismember(set, SIGTERM) && sigismember(&pending, SIGTERM)) ||
	       (sigismember(set, SIGHUP) && sigismember(&pending, SIGHUP));
}

/* Waits for the compiler; a signal ends it and all processes that it started. */
static int wait_for(pid_t child, const sigset_t *set, int *interrupted)
{
	int status = 0;

	for (;;) {
		pid_t ended = waitpid(child, &status, WNOHANG);
		if (ended == child)
			break;
		if (ended < 0 && errno != EINTR)
			return -errno;
		if (is_pending(set)) {
			*interrupted = 1;
			kill(-child, SIGTERM);
		}
		nanosleep(&(struct timespec){.tv_nsec = POLL * 1000000L}, NULL);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/*
 * Runs the compiler in a process group of its own, which receives no signal of the terminal: it is
 * ended by wait_for. `old`: its signal mask. Its exit status, or -errno.
 */
static int spawn(const char *const *argv, int in, int out, const sigset_t *set, const sigset_t *old,
	int *interrupted)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	pid_t child;

	int err = posix_spawn_file_actions_init(&actions);
	if (err)
		return -err;
	err = posix_spawnattr_init(&attributes);
	if (!err) {
		err = posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
		for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO && !err; fd++)
			err = posix_spawn_file_actions_adddup2(&actions, out, fd);
		posix_spawnattr_setflags(
			&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
		posix_spawnattr_setpgroup(&attributes, 0);
		posix_spawnattr_setsigmask(&attributes, old);
		if (!err)
			err = posix_spawnp(&child, argv[0], &actions, &attributes,
				(char *const *)(uintptr_t)argv, environ);
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&actions);
	return err ? -err : wait_for(child, set, interrupted);
}

/* A file in memory with this content, read from its beginning. A descriptor or -errno. */
static int memory_file(const char *data, size_t bytes)
{
	int fd = memfd_create("neap-code", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	for (size_t at = 0; at < bytes;) {
		ssize_t n = pwrite(fd, data + at, bytes - at, (off_t)at);
		if (n <= 0) {
			close(fd);
			return -ENOMEM;
		}
		at += (size_t)n;
	}
	return fd;
}

static int run_compiler(
	struct code *c, const char *to, int in, int out, const sigset_t *set, const sigset_t *old)
{
	const char *const last[] = {"-shared", "-nostdlib", "-o", to, "-xc", "-", NULL};
	const char *argv[COMMAND];
	char output[8192];
	int interrupted = 0;

	command(argv, c, last);
	int status = spawn(argv, in, out, set, old, &interrupted);
	if (interrupted)
		return neap__fail(
			NEAP_EINTERRUPTED, "%s: the C compiler was interrupted", c->option);
	if (status == 0)
		return 0;
	if (status == -ENOENT)
		return no_compiler(c);
	ssize_t bytes = pread(out, output, sizeof output - 1, 0);
	output[bytes > 0 ? bytes : 0] = '\0';
	return compiler_failed(c, status, output);
}

/*
 * Reads a regular file of this user that nobody else can write to. Its bytes, which *data then
 * has room for and the caller frees, or -errno.
 */
static ssize_t read_own(unsigned char **data, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022) ||
		st.st_size > FILE_MOST)
		return -EACCES;
	*data = malloc((size_t)st.st_size + 1);
	if (!*data)
		return -ENOMEM;
	ssize_t n = pread(fd, *data, (size_t)st.st_size, 0);
	return n < 0 ? -errno : n;
}

/*
 * Gives a file its name when it is complete: a hash of it follows it, as loading a file that was
 * cut off ends the process. 0 or -errno.
 */
static int complete(struct code *c)
{
	int fd = openat(c->directory, c->unfinished, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	unsigned char *data = NULL;
	XXH128_canonical_t hash;
	ssize_t bytes = -errno;
	int rc = 0;

	if (fd >= 0)
		bytes = fchmod(fd, 0600) < 0 ? -errno : read_own(&data, fd);
	if (bytes >= 0) {
		XXH128_canonicalFromHash(&hash, XXH3_128bits(data, (size_t)bytes));
		rc = pwrite(fd, &hash, sizeof hash, bytes) != sizeof hash ? -EIO : 0;
		if (rc == 0 && (fsync(fd) < 0 || renameat(c->directory, c->unfinished, c->directory,
							 c->name) < 0))
			rc = -errno;
	}
	free(data);
	if (fd >= 0)
		close(fd);
	return bytes < 0 ? (int)bytes : rc;
}

static void place_of(char to[PATH_MAX], const struct code *c, const char *name)
{
	neap__print(to, PATH_MAX, "/proc/%ld/fd/%d/%s", (long)getpid(), c->directory, name);
}

/* Removes what killed processes left. */
static void remove_stale(const struct code *c)
{
	int fd = openat(c->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	struct stat st;

	while (directory && (entry = readdir(directory))) {
		const char *end = strrchr(entry->d_name, '.');
		if (end && strcmp(end, unfinished_ending) == 0 &&
			fstatat(c->directory, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			st.st_mtime + STALE < time(NULL))
			unlinkat(c->directory, entry->d_name, 0);
	}
	if (directory)
		closedir(directory);
	else if (fd >= 0)
		close(fd);
}

static int compile(struct code *c)
{
	char to[PATH_MAX], plain[NEAP__PLAIN_TEXT];
	int in = memory_file(c->whole.data, c->whole.length), out = memory_file("", 0);
	sigset_t set, old;
	int rc;

	remove_stale(c);
	place_of(to, c, c->unfinished);
	stopping_signals(&set);
	pthread_sigmask(SIG_BLOCK, &set, &old);
	if (in < 0 || out < 0) {
		rc = neap__fail_errno(ENOMEM, "%s", c->option);
	} else {
		rc = run_compiler(c, to, in, out, &set, &old);
		int err = rc == 0 ? complete(c) : 0;
		if (err < 0)
			rc = neap__fail(NEAP_EUSAGE,
				"%s: cannot write compiled code to '%.300s': %s. Set "
				"XDG_CACHE_HOME to a directory that you can write to, or remove %s",
				c->option, neap__plain_text(plain, c->place),
				neap__error_text(-err), c->option);
		unlinkat(c->directory, c->unfinished, 0);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	return rc;
}

/* 1: the kept file is as `complete` has written it. */
static int is_complete(const struct code *c)
{
	int fd = openat(c->directory, c->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	unsigned char *data = NULL;
	XXH128_canonical_t hash;
	ssize_t bytes = fd < 0 ? -1 : read_own(&data, fd) - (ssize_t)sizeof hash;
	int is_same = 0;

	if (bytes > 0) {
		XXH128_canonicalFromHash(&hash, XXH3_128bits(data, (size_t)bytes));
		is_same = memcmp(&hash, data + bytes, sizeof hash) == 0;
	}
	free(data);
	if (fd >= 0)
		close(fd);
	return is_same;
}

/* Loads the kept file. 1, or 0: there is none that has this text. */
static int load(const struct code *c, void **function, const char *const *name, int functions)
{
	char path[PATH_MAX];

	if (!is_complete(c))
		return 0;
	place_of(path, c, c->name);
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return 0;
	const char *text = dlsym(library, text_name);
	int found = text && strcmp(text, c->text) == 0;
	for (int i = 0; i < functions && found; i++)
		found = (function[i] = dlsym(library, name[i])) != NULL;
	if (!found)
		dlclose(library);
	return found;
}

static int open_code(struct code *c, void **function, const char *const *name, int functions)
{
	char plain[NEAP__PLAIN_TEXT];

	NEAP_TRY(open_directory(c));
	NEAP_TRY(name_code(c));
	if (load(c, function, name, functions))
		return 0;
	unlinkat(c->directory, c->name, 0);
	NEAP_TRY(compile(c));
	if (load(c, function, name, functions))
		return 0;
	const char *why = dlerror();
	return neap__fail(NEAP_EUSAGE,
		"%s: cannot load compiled code from '%.300s': %.200s. Set XDG_CACHE_HOME to a "
		"directory on a file system without 'noexec', or remove %s",
		c->option, neap__plain_text(plain, c->place), why ? why : "it is incomplete",
		c->option);
}

int neap__compiled_code(void **function, const char *const *name, int functions, const char *text,
	const char *option)
{
	struct code *c = calloc(1, sizeof *c);

	if (!c)
		return neap__fail_errno(ENOMEM, "%s", option);
	c->text = text;
	c->option = option;
	c->directory = -1;
	int rc = open_code(c, function, name, functions);
	if (c->directory >= 0)
		close(c->directory);
	neap__text_free(&c->whole);
	free(c);
	return rc;
}
