/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_text.c: texts that are learnt by character: the first byte is the steps of a sample. */
#include "fuzz_files.h"
#include "data/dataset.h"
#include "data/step_rows.h"

#include <string.h>

enum { MOST = 64 };

static void read_sample(struct neap_dataset *set, const struct neap_dataset_info *info, int64_t i)
{
	struct neap_events events;
	int64_t length = neap__steps_of(set, i, 0);
	int32_t labels[MOST];

	FUZZ_CHECK(length > 0 && length <= info->steps, "%lld steps", (long long)length);
	FUZZ_CHECK(neap_dataset_read(set, i, &events) == 0, "%s", neap_detail());
	FUZZ_CHECK(events.count == length, "%lld events", (long long)events.count);
	length = length < MOST ? length : MOST;
	FUZZ_CHECK(neap__step_targets(set, i, 0, length, labels, NULL) == 0, "%s", neap_detail());
	for (int64_t t = 0; t < length; t++)
		FUZZ_CHECK(events.unit[t] < info->inputs && labels[t] >= 0 &&
				   labels[t] < info->classes &&
				   (t == 0 || labels[t - 1] == events.unit[t]),
			"step %lld", (long long)t);
	neap_events_free(&events);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *path = fuzz_path("text.txt");
	struct neap_dataset *set;
	struct neap_dataset_info info = {.size = sizeof info};
	char name[600];

	fuzz_write(path, data + (size > 0), size - (size > 0));
	snprintf(name, sizeof name, "text:steps=%d:%s", size ? data[0] : 0, path);
	int rc = neap_dataset_open(&set, name);
	fuzz_line(rc);
	if (rc < 0)
		return 0;
	FUZZ_CHECK(neap_dataset_info(set, &info) == 0, "info");
	FUZZ_CHECK(info.events + 1 <= (int64_t)size, "%lld characters", (long long)info.events);
	for (int64_t i = 0; i < info.samples; i++)
		read_sample(set, &info, i);
	neap_dataset_close(set);
	return 0;
}
