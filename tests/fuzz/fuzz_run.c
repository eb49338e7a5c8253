/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_run.c: run.json, as --resume reads it back into options; the same text as a configuration.
 */
#include "fuzz_files.h"
#include "train/run_options.h"
#include "train/settings.h"

static void take(
	int (*parse)(struct neap_run **, const char *, size_t), const char *data, size_t size)
{
	struct neap_run *run = NULL;
	int rc = parse(&run, data, size);

	fuzz_line(rc);
	FUZZ_CHECK((rc == 0) == (run != NULL), "%d", rc);
	if (rc == 0)
		fuzz_line(neap__settings_check(neap_run_options(run)));
	neap_run_close(run);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	take(neap__run_parse, (const char *)data, size);
	take(neap__config_parse, (const char *)data, size);
	return 0;
}
