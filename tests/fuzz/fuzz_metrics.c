/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_metrics.c: metrics.csv of a run that is resumed: whole rows of its epochs stay, in order. */
#include "fuzz_files.h"
#include "train/trainer.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *path = fuzz_path("metrics.csv");
	int epochs = (int)(fuzz_seed(data, size) % 5);
	size_t kept;

	fuzz_write(path, data, size);
	int rc = neap__metrics_start(path, epochs);
	fuzz_line(rc);
	FUZZ_CHECK(rc == 0, "%d", rc);
	uint8_t *text = fuzz_read(path, &kept);
	FUZZ_CHECK(kept > 0 && text[kept - 1] == '\n', "no whole line at the end");
	text[kept] = '\0';
	/* Reading what was kept changes nothing. */
	rc = neap__metrics_start(path, epochs);
	FUZZ_CHECK(rc == 0, "%d", rc);
	size_t again;
	uint8_t *second = fuzz_read(path, &again);
	FUZZ_CHECK(epochs == 0 || (again == kept && memcmp(text, second, kept) == 0),
		"%zu and %zu bytes", kept, again);
	free(second);
	free(text);
	return 0;
}
