/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_randman.c: the keys of the data set that is built in. */
#include "fuzz_files.h"
#include <neap/data.h>

#include <math.h>

/* Large sets take their time; the product of all numbers bounds it. */
static int is_large(const char *keys)
{
	double product = 1;

	while (*keys) {
		char *end;
		double number = strtod(keys, &end);
		if (end > keys && !(product <= 1e3 / fmax(fabs(number), 1)))
			return 1;
		product *= end > keys ? fmax(fabs(number), 1) : 1;
		keys = end > keys ? end : keys + 1;
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), name[4096];
	struct neap_dataset_info info = {.size = sizeof info};
	struct neap_dataset *set = NULL;
	struct neap_events events;

	snprintf(name, sizeof name, "randman:%s", text);
	int large = is_large(text);
	free(text);
	if (large)
		return 0;
	int rc = neap_dataset_open(&set, name);
	fuzz_line(rc);
	if (rc < 0)
		return 0;
	neap_dataset_info(set, &info);
	FUZZ_CHECK(info.samples > 0 && info.classes > 0 && info.inputs > 0, "an empty set");
	rc = neap_dataset_read(set, info.samples - 1, &events);
	fuzz_line(rc);
	for (int64_t i = 0; rc == 0 && i < events.count; i++)
		FUZZ_CHECK(events.unit[i] < info.inputs && events.time[i] >= 0, "event %lld",
			(long long)i);
	if (rc == 0)
		neap_events_free(&events);
	neap_dataset_close(set);
	return 0;
}
