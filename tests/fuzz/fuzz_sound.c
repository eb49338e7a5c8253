/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_sound.c: sound files of the kinds that are read without --any-sound. */
#include "data/sound/sound_file.h"
#include "fuzz_files.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *path =
		fuzz_path(size && memcmp(data, "fLaC", size < 4 ? size : 4) == 0 ? "sound.flac"
			  : size && data[0] == 'F'				 ? "sound.aiff"
										 : "sound.wav");
	float *samples = NULL;
	int64_t count = -1;
	double rate = 0;

	fuzz_write(path, data, size);
	int rc = neap__sound_read(&samples, &count, &rate, path, 0);
	fuzz_line(rc);
	FUZZ_CHECK(rc < 0 || (count >= 0 && rate > 0), "%lld samples", (long long)count);
	if (rc == 0)
		free(samples);
	return 0;
}
