/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_run.c: run.json, as --resume reads it back into options. */
#include "fuzz_files.h"
#include "train/run_options.h"
#include "train/settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct neap_run *run = NULL;
	int rc = neap__run_parse(&run, (const char *)data, size);

	fuzz_line(rc);
	FUZZ_CHECK((rc == 0) == (run != NULL), "%d", rc);
	if (rc == 0)
		fuzz_line(neap__settings_check(neap_run_options(run)));
	neap_run_close(run);
	return 0;
}
