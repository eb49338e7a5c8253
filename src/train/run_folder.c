/* SPDX-License-Identifier: Apache-2.0 */
/* run_folder.c: the folder of a run: its lock, its paths, and the files that a killed run left. */
#include "train/trainer.h"
#include "train/run_options.h"
#include "base/fail.h"
#include "base/quote.h"
#include "base/print.h"
#include "sys/atomic_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

int neap__run_folder_paths(struct neap__trainer *trainer)
{
	const char *out = trainer->options.out;
	if (asprintf(&trainer->model, "%s/model.safetensors", out) < 0 ||
		asprintf(&trainer->last, "%s/last.safetensors", out) < 0 ||
		asprintf(&trainer->metrics, "%s/metrics.csv", out) < 0 ||
		asprintf(&trainer->costs, "%s/costs.csv", out) < 0 ||
		asprintf(&trainer->run, "%s/run.json", out) < 0)
		return neap__fail_errno(ENOMEM, "%s", out);
	return 0;
}

/* Refuses a folder whose parents are missing, and names the first of them that is. */
static int check_parents(const char *out)
{
	char *path = strdup(out), *end = path;
	struct stat st;
	int rc = path ? 0 : neap__fail_errno(ENOMEM, "%s", out);

	while (rc == 0 && (end = strchr(end + 1, '/')) && end[strspn(end, "/")]) {
		*end = '\0';
		if (stat(path, &st) < 0 && errno == ENOENT)
			rc = neap__fail(NEAP_EUSAGE,
				"output folder '%s' cannot be created, because there is no folder "
				"'%s'. Create it (mkdir -p), or choose another folder with --out",
				out, path);
		*end = '/';
	}
	free(path);
	return rc;
}

/* A half-written file that a killed run left: "run.json.1234.part". */
static int is_leftover(const char *name)
{
	static const char *const names[] = {"model.safetensors.", "last.safetensors.",
		"metrics.csv.", "costs.csv.", "run.json."};
	size_t n = strlen(name);

	if (n <= 5 || strcmp(name + n - 5, ".part") != 0)
		return 0;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strncmp(name, names[i], strlen(names[i])) == 0)
			return 1;
	return 0;
}

static void sweep_out(int folder)
{
	int fd = dup(folder);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && (entry = readdir(dir)))
		if (is_leftover(entry->d_name))
			unlinkat(folder, entry->d_name, 0);
	if (dir)
		closedir(dir);
}

/* 1 if the folder is empty, or a run was killed before its run.json was complete. */
static int is_empty(const char *out)
{
	DIR *dir = opendir(out);
	const struct dirent *entry;
	int empty = dir != NULL;

	while (empty && (entry = readdir(dir)))
		empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
			is_leftover(entry->d_name);
	if (dir)
		closedir(dir);
	return empty;
}

int neap__run_folder_check(const struct neap_train_options *o)
{
	struct stat st;

	if (stat(o->out, &st) < 0)
		return errno == ENOENT ? check_parents(o->out)
				       : neap__fail_errno(errno, "cannot use '%s'", o->out);
	if (!S_ISDIR(st.st_mode))
		return neap__fail(-ENOTDIR,
			"--out: '%s' is a file, but a run is a folder. Choose another name",
			o->out);
	return 1;
}

int neap__run_folder_is_free(const struct neap__trainer *trainer)
{
	const struct neap_train_options *o = &trainer->options;

	if (!trainer->there || o->resume)
		return 0;
	if (trainer->drafted) /* no run.json was there */
		return neap__fail(NEAP_EUSAGE,
			"output folder '%s' already exists, and has other files than a run. Choose "
			"another folder with --out",
			o->out);
	return neap__fail(NEAP_EUSAGE,
		"output folder '%s' already exists. Use --resume to continue that run, or --out to "
		"choose another folder",
		o->out);
}

/* An option that changes what is read from the same file, and so its fingerprint; NULL: none. */
static const char *reading_option(
	const struct neap_train_options *was, const struct neap_train_options *now)
{
	if (was->next != now->next)
		return "next-step";
	if (strcmp(was->encode ? was->encode : "", now->encode ? now->encode : "") != 0)
		return "encode";
	if (was->max_steps != now->max_steps)
		return "max-steps";
	if (now->net.inputs && was->net.inputs != now->net.inputs)
		return "channels";
	return was->encode && was->seed != now->seed ? "seed" : NULL;
}

/* Data whose fingerprint is not that of the run. */
static int other_data(const struct neap_train_options *was, const struct neap_train_options *o)
{
	const char *option = reading_option(was, o);

	if (option)
		return neap__fail(NEAP_EUSAGE,
			"cannot resume '%s': --%s differs from the run's, and it determines how "
			"the data is read. Remove it, or start a new run with another "
			"--out",
			o->out, option);
	if (strcmp(was->data, o->data) != 0)
		return neap__fail(NEAP_EUSAGE,
			"cannot resume '%s': the run was started with other data ('%s'), not '%s'. "
			"Pass the same data: neap train %s --resume --out %s; or start a new "
			"run: neap train %s --out NEW",
			o->out, was->data, o->data, neap__quoted(was->data), neap__quoted(o->out),
			neap__quoted(o->data));
	return neap__fail(NEAP_EUSAGE,
		"cannot resume '%s': the run was started with other data, since the contents of "
		"'%s' have changed. Restore the file, or start a new run: neap train %s --out "
		"NEW",
		o->out, o->data, neap__quoted(o->data));
}

static int is_device(const struct neap_train_options *o)
{
	return o->net.device && strcmp(o->net.device, "cpu") != 0;
}

/* A run whose snapshot was deleted: to start it again would replace its model. */
static int lost_snapshot(const struct neap__trainer *trainer, int64_t epochs)
{
	const struct neap_train_options *o = &trainer->options;

	return neap__fail(NEAP_EUSAGE,
		"cannot resume '%s': the snapshot '%s' is missing, and training from the beginning "
		"would replace '%s', the model of %" PRId64 " epoch%s. Restore the snapshot, or "
		"start a new run from the weights of the model: neap train %s --from %s --out "
		"NEW",
		o->out, trainer->last, trainer->model, epochs, epochs == 1 ? "" : "s",
		neap__quoted(o->data), neap__quoted(o->out));
}

/* Without a network in the options, the run goes on with its own: the default depends on the
 * version. */
static int take_spec(struct neap__trainer *trainer, const struct neap_train_options *was)
{
	if (trainer->options.net.spec || !was->net.spec)
		return 0;
	trainer->spec = strdup(was->net.spec);
	trainer->options.net.spec = trainer->spec;
	return trainer->spec ? 0 : neap__fail_errno(ENOMEM, "%s", was->net.spec);
}

int neap__run_folder_same_data(struct neap__trainer *trainer)
{
	const struct neap_train_options *o = &trainer->options;
	struct neap_run *run;
	char hex[24];

	if (!o->resume || neap_run_open(&run, o->out) < 0)
		return 0;
	const char *was = neap__run_fingerprint(run);
	neap__print(hex, sizeof hex, "%016" PRIx64, trainer->data.fingerprint);
	trainer->keeps_memory = neap_run_options(run)->sweep.memory == o->sweep.memory;
	trainer->other_side = is_device(neap_run_options(run)) != is_device(o);
	int rc = was && strcmp(was, hex) != 0 ? other_data(neap_run_options(run), o) : 0;
	/* A run that is killed in its first epoch may have a model and no snapshot. */
	if (rc == 0 && !trainer->has_snapshot && neap__run_epochs(run) > 0 &&
		access(trainer->model, F_OK) == 0)
		rc = lost_snapshot(trainer, neap__run_epochs(run));
	if (rc == 0)
		rc = take_spec(trainer, neap_run_options(run));
	neap_run_close(run);
	return rc;
}

/* The name is flushed: what is in a folder is worth as much as its name. */
static int make_folder(const char *out)
{
	char *copy = strdup(out);

	if (!copy || mkdir(out, 0777) < 0) {
		int err = copy ? errno : ENOMEM;
		free(copy);
		return neap__fail(-err,
			"--out: cannot create folder '%s': %s. Choose another folder", out,
			neap__error_text(err));
	}
	int err = neap__sync_name(copy);
	free(copy);
	if (!err)
		return 0;
	rmdir(out);
	return neap__fail_errno(err, "cannot create folder '%s'", out);
}

int neap__run_folder_take(struct neap__trainer *trainer, int there)
{
	const char *out = trainer->options.out;

	if (!there)
		NEAP_TRY(make_folder(out));
	trainer->folder = open(out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (trainer->folder < 0)
		return neap__fail_errno(errno, "cannot use '%s'", out);
	/* Some file systems know no locks: then there is none. */
	if (flock(trainer->folder, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return neap__fail(NEAP_EUSAGE,
			"output folder '%s' is locked: another neap process is writing to it. Wait "
			"for it to end, or choose another folder with --out",
			out);
	if (access(out, W_OK | X_OK) < 0)
		return neap__fail_errno(errno, "cannot write in '%s'", out);
	if (there)
		sweep_out(trainer->folder);
	if (is_empty(out)) /* now, before this run writes there */
		trainer->there = 0;
	trainer->made = !there;
	return 0;
}

void neap__run_folder_leave(struct neap__trainer *trainer)
{
	if (trainer->drafted)
		unlink(trainer->run);
	if (trainer->drafted && !trainer->options.resume) { /* begun in this session, too */
		unlink(trainer->metrics);
		unlink(trainer->costs);
	}
	if (trainer->made)
		rmdir(trainer->options.out); /* where nothing could be written */
	if (trainer->folder >= 0)
		close(trainer->folder);
	free(trainer->model);
	free(trainer->last);
	free(trainer->metrics);
	free(trainer->costs);
	free(trainer->run);
	free(trainer->spec);
}
