/* SPDX-License-Identifier: Apache-2.0 */
/* run_study.c: the table of experiments, and a study from its folder to its report. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/fail.h"
#include "base/print.h"
#include "nn/core/on_device.h"
#include <neap/net.h>
#include "study/experiment.h"
#include "study/report.h"
#include "sys/atomic_file.h"

#define PATH 4200

static const struct neap__experiment *const experiments[] = {
#define NEAP__X(row) &row,
	NEAP__EXPERIMENT_TABLE(NEAP__X) NEAP__DEVICE_EXPERIMENT_TABLE(NEAP__X)
#undef NEAP__X
		NULL,
};

/* Whether an experiment is in the table of those on devices. */
static int on_device(const struct neap__experiment *row)
{
	int found = 0;
#define NEAP__X(x) found |= row == &x;
	NEAP__DEVICE_EXPERIMENT_TABLE(NEAP__X)
#undef NEAP__X
	return found;
}

static const char *const scales[] = {"quick", "full", "tiny"};

static const struct neap__experiment *find(const char *name)
{
	for (int i = 0; name && experiments[i]; i++)
		if (strcmp(experiments[i]->name, name) == 0)
			return experiments[i];
	return NULL;
}

const char *neap_study_name(int index)
{
	for (int i = 0; experiments[i]; i++)
		if (i == index)
			return experiments[i]->name;
	return NULL;
}

int neap_study_on_device(const char *name)
{
	const struct neap__experiment *row = find(name);
	return row && on_device(row);
}

const char *neap_study_about(const char *name)
{
	const struct neap__experiment *row = find(name);
	return row ? row->about : NULL;
}

int64_t neap__study_scaled(
	const struct neap__study *study, int64_t quick, int64_t full, int64_t tiny)
{
	int scale = study->options.scale;
	return scale == NEAP_STUDY_FULL ? full : scale == NEAP_STUDY_TINY ? tiny : quick;
}

const char *neap__study_number(char room[32], double value)
{
	if (isfinite(value))
		snprintf(room, 32, "%.6g", value);
	else
		room[0] = '\0';
	return room;
}

static int tell(struct neap__study *s, const char *point)
{
	const struct neap_study_options *o = &s->options;
	if (o->progress && o->progress(o->user, point, s->done, s->missing))
		return NEAP_EINTERRUPTED;
	return 0;
}

int neap__study_point(struct neap__study *study, const char *format, ...)
{
	va_list args;
	char name[200];
	va_start(args, format);
	vsnprintf(study->point, sizeof study->point, format, args);
	va_end(args);
	if (neap__points_has(study->points, study->point))
		return 0;
	if (study->counting) {
		study->missing++;
		return 0;
	}
	snprintf(name, sizeof name, "%s %s", study->experiment->name, study->point);
	NEAP_TRY(tell(study, name));
	return 1;
}

int neap__study_alive(struct neap__study *study)
{
	char name[200];
	snprintf(name, sizeof name, "%s %s", study->experiment->name, study->point);
	return tell(study, name);
}

int neap__study_row(struct neap__study *study, const char *format, ...)
{
	char *values = NULL;
	va_list args;
	va_start(args, format);
	int n = vasprintf(&values, format, args);
	va_end(args);
	if (n < 0)
		return neap__fail_errno(ENOMEM, "study");
	int rc = neap__points_add(study->points, study->point, values);
	free(values);
	return rc;
}

int neap__study_done(struct neap__study *study)
{
	study->done++;
	return neap__points_write(study->points);
}

static int open_points(struct neap__study *s, const struct neap__experiment *experiment)
{
	char path[PATH];
	snprintf(path, sizeof path, "%s/%s.csv", s->options.out, experiment->name);
	s->experiment = experiment;
	return neap__points_open(&s->points, path, experiment->columns);
}

static void close_points(struct neap__study *s)
{
	neap__points_free(s->points);
	s->points = NULL;
}

/* Points of an experiment that its file does not have. */
static int missing(struct neap__study *s, const struct neap__experiment *experiment, int *count)
{
	int before = s->missing;
	NEAP_TRY(open_points(s, experiment));
	s->counting = 1;
	int rc = experiment->measure(s);
	s->counting = 0;
	*count = s->missing - before;
	s->missing = before;
	close_points(s);
	return rc;
}

static int measure(struct neap__study *s, const struct neap__experiment *experiment)
{
	NEAP_TRY(open_points(s, experiment));
	int rc = experiment->measure(s);
	close_points(s);
	return rc;
}

/* Whether an experiment is one of the processor, or of the device, as the study is. */
static int belongs(const struct neap__study *s, const struct neap__experiment *x)
{
	return on_device(x) == (s->options.device != NULL);
}

static int report(struct neap__study *s)
{
	for (int i = 0; experiments[i]; i++) {
		int count = 0;
		if (!belongs(s, experiments[i]))
			continue;
		NEAP_TRY(missing(s, experiments[i], &count));
		NEAP_TRY(open_points(s, experiments[i]));
		int there = neap__points_count(s->points) > 0;
		int rc = 0;
		if (count == 0 && there)
			rc = neap__report_section(s);
		else
			neap__report_missing(s, count);
		close_points(s);
		NEAP_TRY(rc);
	}
	return neap__report_write(s);
}

/* Describes the device, if there is to be one. */
static int find_device(struct neap__study *s)
{
	const struct neap__device_driver *driver = neap__device_driver;
	struct neap_device_use use = {0};
	uint64_t mapped;
	void *device;

	if (!s->options.device)
		return 0;
	if (!driver)
		return neap__fail(NEAP_EUSAGE, "--device: this program has no devices");
	NEAP_TRY(driver->open(&device, s->options.device));
	int rc = driver->use(device, &use, &mapped);
	driver->close(device);
	/* Clusters change times, and are not among the properties that the driver reports. */
	const char *clusters = strstr(s->options.device, ":clusters=");
	neap__print(s->device, sizeof s->device, "%s%s%s", use.about, clusters ? ", " : "",
		clusters ? clusters + 1 : "");
	return rc;
}

/* The folder is of one scale and one machine: times of two do not mix. */
static int check_folder(struct neap__study *s)
{
	char path[PATH], machine[640], line[PATH], *text = NULL;
	struct stat st;
	size_t bytes;

	if (mkdir(s->options.out, 0777) < 0 && errno != EEXIST)
		return neap__fail_errno(errno, "--out: cannot make '%s'", s->options.out);
	if (stat(s->options.out, &st) < 0 || !S_ISDIR(st.st_mode))
		return neap__fail(NEAP_EUSAGE, "--out: '%s' is not a folder", s->options.out);
	neap__report_machine(s, machine, sizeof machine);
	snprintf(line, sizeof line, "neap study, %s, slow memory in %s\n%s\n",
		scales[s->options.scale], s->options.slow, machine);
	snprintf(path, sizeof path, "%s/study.txt", s->options.out);
	if (stat(path, &st) < 0)
		return neap__write_file(path, line, strlen(line));
	NEAP_TRY(neap__read_file(&text, &bytes, path, PATH));
	int same = strcmp(text, line) == 0;
	free(text);
	return same ? 0
		    : neap__fail(NEAP_EUSAGE,
			      "--out: '%s' has a study with other settings or of another machine "
			      "(see study.txt there). Choose another folder",
			      s->options.out);
}

static int check(struct neap__study *s, const char *const *names, int count)
{
	if (!s->options.out || !s->options.out[0])
		return neap__fail(NEAP_EUSAGE, "the folder of the study is missing (--out)");
	if (strlen(s->options.out) > 2000)
		return neap__fail(NEAP_EUSAGE, "--out: the name is too long");
	if (s->options.scale < 0 || s->options.scale > NEAP_STUDY_TINY)
		return neap__fail(NEAP_EUSAGE, "scale is %d, which is not valid", s->options.scale);
	for (int i = 0; i < count; i++)
		if (!find(names[i]))
			return neap__fail(NEAP_EUSAGE, "unknown experiment '%s'", names[i]);
	for (int i = 0; i < count; i++)
		if (!belongs(s, find(names[i])))
			return neap__fail(NEAP_EUSAGE,
				s->options.device
					? "the experiment '%s' runs on the processor. Leave "
					  "--device out"
					: "the experiment '%s' needs a device. Pass --device cuda",
				names[i]);
	NEAP_TRY(find_device(s));
	return check_folder(s);
}

static int asked(const struct neap__study *s, const struct neap__experiment *x,
	const char *const *names, int count)
{
	for (int i = 0; i < count; i++)
		if (strcmp(names[i], x->name) == 0)
			return 1;
	return count == 0 && belongs(s, x);
}

static int run(struct neap__study *s, const char *const *names, int count)
{
	int all = 0;
	for (int i = 0; experiments[i]; i++) {
		int n = 0;
		if (asked(s, experiments[i], names, count))
			NEAP_TRY(missing(s, experiments[i], &n));
		all += n;
	}
	s->missing = all;
	for (int i = 0; experiments[i]; i++)
		if (asked(s, experiments[i], names, count))
			NEAP_TRY(measure(s, experiments[i]));
	return tell(s, NULL);
}

int neap_study_run(const struct neap_study_options *options, const char *const *names, int count)
{
	struct neap__study s = {.options = *options};
	if (s.options.device && strcmp(s.options.device, "cpu") == 0)
		s.options.device = NULL;
	if (!s.options.slow)
		s.options.slow = s.options.device ? "pinned:4G" : "/var/tmp";
	NEAP_TRY(check(&s, names, count));
	int rc = run(&s, names, count);
	if (rc == 0)
		rc = report(&s);
	neap__text_free(&s.report);
	neap__text_free(&s.agreement.table);
	/* Between points, or by the sweep of one. */
	if (rc == NEAP_EINTERRUPTED)
		return neap__fail(
			NEAP_EINTERRUPTED, "interrupted. Run the same command again to continue");
	return rc;
}
