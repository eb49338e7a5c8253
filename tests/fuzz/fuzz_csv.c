/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_csv.c: tables of text. The first byte of an input chooses the options, the rest is the
 * table; where it is encoded, the arrays are read.
 */
#include "fuzz_files.h"
#include "data/dataset.h"
#include <neap/data.h>

#include <stdlib.h>
#include <string.h>

static void read_arrays(const char *path, const struct neap_table_report *report)
{
	struct neap_dataset *set;
	struct neap_dataset_info info = {.size = sizeof info};
	int rc = neap_dataset_open(&set, path);
	FUZZ_CHECK(rc == 0, "what is encoded cannot be read: %s", neap_detail());
	FUZZ_CHECK(neap_dataset_info(set, &info) == 0 && info.samples == report->samples &&
			   info.inputs == report->features && info.steps == report->longest,
		"other sizes");
	neap_dataset_close(set);
}

/* The table as predict reads it: columns of two names with a third for samples, or all. */
static void read_one(const char *path, int count)
{
	static const char *const names[] = {"b", "a"};
	char ignored[NEAP__TAKEN_TEXT];
	struct neap_dataset *set;
	struct neap_dataset_info info = {.size = sizeof info};
	const struct neap__table_choice choice = {.names = names,
		.count = count,
		.sample = "c",
		.target = "b",
		.missing = count ? "previous" : NULL};
	int rc = neap__dataset_open_table(&set, path, &choice, ignored);
	fuzz_line(rc);
	if (rc < 0)
		return;
	neap_dataset_info(set, &info);
	FUZZ_CHECK(info.samples > 0 && info.steps > 0 && info.inputs > 0, "sizes");
	FUZZ_CHECK(info.samples == 1 || (count && set->sample_names), "samples without names");
	FUZZ_CHECK(count == 0 || info.inputs == count, "%d features", info.inputs);
	double *row = calloc((size_t)info.inputs, sizeof *row);
	for (int64_t i = 0; i < info.samples; i++) {
		int64_t length = set->ops->length(set, i);
		FUZZ_CHECK(length > 0 && length <= info.steps, "a length");
		FUZZ_CHECK(!set->sample_names || *set->sample_names[i], "a name");
		FUZZ_CHECK(row && set->ops->values(set, i, length - 1, length, row) == 0, "a row");
	}
	free(row);
	neap_dataset_close(set);
}

/* A warning is one line. */
static void warn(void *user, const char *line)
{
	(void)user;
	FUZZ_CHECK(*line && !strchr(line, '\n'), "a warning: '%s'", line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *path = fuzz_path("table.csv"), *out = fuzz_path("table.h5");
	const char *labels = fuzz_path("labels.csv");
	struct neap_table_report report = {.size = sizeof report};
	struct neap_table_options options = {.size = sizeof options};
	int choice = size ? data[0] : 0;

	fuzz_write(path, data + (size > 0), size - (size > 0));
	fuzz_write(labels, "table.csv,on\na,1\nb,2\n", 22);
	options.header = (choice & 3) - 1 < 2 ? (choice & 3) - 1 : 0;
	options.sample_column = choice & 4 ? options.header < 0 ? "1" : "a" : NULL;
	options.targets = choice & 8 ? options.header < 0 ? "2" : "b" : NULL;
	options.labels = choice & 16 && !options.targets ? labels : NULL;
	options.dropped = choice & 32 ? options.header < 0 ? "3" : "c" : NULL;
	options.numbers = choice >> 6 & 1;
	options.warn = warn;
	int rc = neap_encode_table(&report, path, out, &options);
	fuzz_line(rc);
	if (rc == 0)
		read_arrays(out, &report);
	read_one(path, choice & 128 ? 2 : 0);
	return 0;
}
