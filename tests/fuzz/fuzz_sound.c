/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_sound.c: sound files of the kinds that are read without --any-sound, whole and as bytes of a
 * pipe.
 */
#include "data/sound/sound_file.h"
#include "data/sound/sound_pump.h"
#include "fuzz_files.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Inputs have at most 4096 bytes. After the end of a pipe, libsndfile's decoder of IMA ADPCM
 * repeats its last block as often as the header promises, up to 2^31 samples: 3 seconds for an
 * input. */
#define SAMPLES_MOST 1000000

/* Reads the file as standard input is heard. */
static void hear(const char *path)
{
	unsigned char head[NEAP__SOUND_HEAD] = {0};
	const struct neap__ask ask = {0};
	struct neap__sound_pump *pump;
	struct neap__sound *sound;
	float samples[1000];
	int64_t n = 0, all = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	FUZZ_CHECK(fd >= 0, "%s", path);
	FUZZ_CHECK(neap__sound_pump_start(&pump, fd, head, &ask) == 0, "a pump");
	int rc = neap__sound_open_pipe(&sound, neap__sound_pump_fd(pump), head);
	fuzz_line(rc);
	if (rc == 0) {
		while (all < SAMPLES_MOST && (n = neap__sound_take(sound, samples, 1000)) > 0)
			all += n;
		fuzz_line((int)n);
		FUZZ_CHECK(n < 0 || all > 0, "%lld samples", (long long)all);
		neap__sound_close(sound);
	}
	neap__sound_pump_free(pump);
	close(fd);
}

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
	hear(path);
	return 0;
}
