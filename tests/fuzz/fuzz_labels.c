/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_labels.c: patterns that find labels in names: a pattern, a line break, a name. */
#include "data/names/name_pattern.h"
#include "fuzz_files.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), *name = strchr(text, '\n'), *found = NULL;
	struct neap__name_pattern *pattern = NULL;

	if (name)
		*name++ = '\0';
	int rc = neap__name_pattern_new(&pattern, text, "label");
	fuzz_line(rc);
	if (rc == 0) {
		rc = neap__name_pattern_find(pattern, &found, name ? name : "0_george_3.wav");
		fuzz_line(rc);
		FUZZ_CHECK(rc < 0 || (found && found[0]), "an empty label");
		free(found);
	}
	neap__name_pattern_free(pattern);
	free(text);
	return 0;
}
