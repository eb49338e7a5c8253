/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the spikes that a coding makes of a data set of numbers, for tests that compare with
 * NumPy: a line a sample: its steps, then "STEP:CHANNEL" of each spike. The same again as it is
 * read in parts of `part` steps; or the line of a refusal. print_spikes FILE CODING SEED
 * NORMALISE(0|1) MOST_STEPS PART
 */
#include "data/coded_rows.h"
#include "data/row_reading.h"
#include "data/step_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int refuse(int rc)
{
	printf("refused %d %s\n", rc, neap_detail());
	return 1;
}

static void print_events(const struct neap_events *events)
{
	for (int64_t i = 0; i < events->count; i++)
		printf(" %" PRId64 ":%d", (int64_t)events->time[i], events->unit[i]);
}

static int print_whole(struct neap_dataset *set, int64_t index, int64_t steps)
{
	struct neap_events events;
	int rc = neap_dataset_read(set, index, &events);

	if (rc < 0)
		return refuse(rc);
	printf("%" PRId64, steps);
	print_events(&events);
	printf("\n");
	neap_events_free(&events);
	return 0;
}

static int print_parts(struct neap_dataset *set, int64_t index, int64_t steps, int64_t part)
{
	struct neap__event_buffer buffer = {0};
	size_t most = (size_t)(part * set->info.inputs);

	printf("%" PRId64, steps);
	for (int64_t t = 0; t < steps; t += part) {
		double end = (double)(t + part < steps ? t + part : steps);
		int rc = neap__dataset_part(set, index, (double)t, end, most, &buffer);
		if (rc != 0)
			return refuse(rc);
		print_events(&buffer.events);
	}
	printf("\n");
	neap__event_buffer_free(&buffer);
	return 0;
}

int main(int argc, char **argv)
{
	struct neap_dataset *set;
	struct neap__coding coding;

	if (argc != 7)
		return 2;
	int64_t most = strtoll(argv[5], NULL, 10), part = strtoll(argv[6], NULL, 10);
	int rc = neap__coding_parse(&coding, argv[2]), bad = 0;
	if (rc < 0)
		return refuse(rc);
	neap__coding_seed(&coding, strtoull(argv[3], NULL, 10));
	rc = neap_dataset_open(&set, argv[1]);
	if (rc < 0)
		return refuse(rc);
	rc = neap__rows_encode(set, &coding, most);
	if (rc == 0 && argv[4][0] == '1')
		rc = neap__rows_normalise(set, NULL, 0);
	for (int64_t i = 0; rc == 0 && !bad && i < set->info.samples; i++) {
		int64_t steps = neap__steps_of(set, i, most);
		bad = print_whole(set, i, steps) || print_parts(set, i, steps, part);
	}
	bad |= rc < 0 ? refuse(rc) : 0;
	neap_dataset_close(set);
	return bad;
}
