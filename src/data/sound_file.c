/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sound_file.c: reads sound files through libsndfile: wav, flac and aiff, of which name and first
 * bytes agree. The other kinds that libsndfile knows bring in large decoders, some of which leak
 * or crash on damaged files; they are read only where the caller asks for any kind.
 */
#include "data/sound_file.h"
#include "base/fail.h"
#include "base/grow.h"

#include <errno.h>
#include <fcntl.h>
#include <sndfile.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BLOCK_FRAMES = 65536 };

/* Kinds that are read unasked: how names end, what stands at byte 0 and at byte 8. */
static const struct sound_kind {
	const char *ending, *first, *eighth;
} kinds[] = {
	{"wav", "RIFF", "WAVE"},
	{"wav", "RIFX", "WAVE"},
	{"wav", "RF64", "WAVE"},
	{"flac", "fLaC", ""},
	{"aiff", "FORM", "AIFF"},
	{"aiff", "FORM", "AIFC"},
	{"aif", "FORM", "AIFF"},
	{"aif", "FORM", "AIFC"},
	{"aifc", "FORM", "AIFC"},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* By its first bytes alone. */
static int is_kind(const struct sound_kind *kind, const unsigned char head[12])
{
	return memcmp(head, kind->first, 4) == 0 &&
	       memcmp(head + 8, kind->eighth, strlen(kind->eighth)) == 0;
}

static int known_kind(const char *path)
{
	const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
	unsigned char head[12] = {0};
	int named = 0, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return neap__fail_errno(errno, "cannot read '%s'", path);
	ssize_t n = read(fd, head, sizeof head);
	int err = errno;
	close(fd);
	if (n < 0)
		return neap__fail_errno(err, "cannot read '%s'", path);
	for (int i = 0; dot && i < KINDS; i++) {
		const struct sound_kind *kind = &kinds[i];
		if (strcasecmp(dot + 1, kind->ending) != 0)
			continue;
		named = 1;
		if (is_kind(kind, head))
			return 0;
	}
	return neap__fail(NEAP_EFORMAT,
		named ? "'%s' is not the kind of file that its name says; hide it (.name) or move "
			"it away"
		      : "'%s' is no wav, flac or aiff file; hide it (.name), move it away, or have "
			"any kind of sound read with --any-sound",
		path);
}

/* Averages the channels of one block. */
static void mix(float *out, const float *in, int64_t frames, int channels)
{
	for (int64_t i = 0; i < frames; i++) {
		double sum = 0;
		for (int c = 0; c < channels; c++)
			sum += in[i * channels + c];
		out[i] = (float)(sum / channels);
	}
}

/* Reads to the end of the file, whatever number of frames the header says. */
static int read_frames(
	SNDFILE *sound, const SF_INFO *info, float **samples, int64_t *count, const char *path)
{
	int64_t room = 0, n = 0;
	float *all = NULL,
	      *block = malloc((size_t)BLOCK_FRAMES * (size_t)info->channels * sizeof *block);
	int rc = block ? 0 : neap__fail_errno(ENOMEM, "'%s'", path);
	while (rc == 0) {
		sf_count_t got = sf_readf_float(sound, block, BLOCK_FRAMES);
		if (got <= 0)
			break;
		if (neap__grow(&all, &room, n + got, sizeof *all) < 0) {
			rc = neap__fail_errno(ENOMEM, "'%s'", path);
			break;
		}
		mix(all + n, block, got, info->channels);
		n += got;
	}
	free(block);
	if (rc == 0 && sf_error(sound) != SF_ERR_NO_ERROR)
		rc = neap__fail(NEAP_EFORMAT, "'%s': damaged: %s", path, sf_strerror(sound));
	else if (rc == 0 && n == 0)
		rc = neap__fail(NEAP_EFORMAT,
			"'%s' holds no samples; hide it (.name) or move it away", path);
	else if (rc == 0 && n < info->frames && info->frames < SF_COUNT_MAX)
		rc = neap__fail(NEAP_EFORMAT, "'%s' is cut short: %lld of %lld samples", path,
			(long long)n, (long long)info->frames);
	if (rc < 0) {
		free(all);
		return rc;
	}
	*samples = all;
	*count = n;
	return 0;
}

/* Reads an open sound file, and closes it. */
static int read_open(float **samples, int64_t *count, double *rate, SNDFILE *sound,
	const SF_INFO *info, const char *path)
{
	int rc;
	if (info->channels < 1 || info->channels > 1024 || info->samplerate < 100)
		rc = neap__fail(NEAP_EFORMAT, "'%s': %d channels at %d Hz", path, info->channels,
			info->samplerate);
	else
		rc = read_frames(sound, info, samples, count, path);
	*rate = info->samplerate;
	sf_close(sound);
	return rc;
}

int neap__sound_read(float **samples, int64_t *count, double *rate, const char *path, int any)
{
	if (!any)
		NEAP_TRY(known_kind(path));
	SF_INFO info = {0};
	SNDFILE *sound = sf_open(path, SFM_READ, &info);
	if (!sound)
		return neap__fail(NEAP_EFORMAT,
			"'%s' is not a recording that can be read (%s); hide it (.name) or move it "
			"away",
			path, sf_strerror(NULL));
	return read_open(samples, count, rate, sound, &info, path);
}

/* Copies all of a stream into a file in memory, since libsndfile has to seek. */
static int copy_stream(int into, int from)
{
	char block[65536];
	ssize_t n;
	while ((n = read(from, block, sizeof block)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return neap__fail_errno(errno, "cannot read the standard input");
		for (ssize_t done = 0, put; done < n; done += put) {
			put = write(into, block + done, (size_t)(n - done));
			if (put < 0)
				return neap__fail_errno(errno, "the standard input in memory");
		}
	}
	return 0;
}

static int read_copy(float **samples, int64_t *count, double *rate, int fd, int from)
{
	unsigned char head[12] = {0};
	int known = 0;
	SF_INFO info = {0};

	NEAP_TRY(copy_stream(fd, from));
	if (pread(fd, head, sizeof head, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return neap__fail_errno(errno, "the standard input in memory");
	for (int i = 0; i < KINDS; i++)
		known |= is_kind(&kinds[i], head);
	SNDFILE *sound = known ? sf_open_fd(fd, SFM_READ, &info, 0) : NULL;
	if (!sound)
		return neap__fail(NEAP_EFORMAT,
			"the standard input is no recording; wav, flac and aiff are accepted");
	return read_open(samples, count, rate, sound, &info, "-");
}

int neap__sound_read_stream(float **samples, int64_t *count, double *rate, int from)
{
	int fd = memfd_create("sound", MFD_CLOEXEC);
	if (fd < 0)
		return neap__fail_errno(errno, "the standard input in memory");
	int rc = read_copy(samples, count, rate, fd, from);
	close(fd);
	return rc;
}

int neap__sound_named(const char *path)
{
	const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
	for (int i = 0; dot && i < KINDS; i++)
		if (strcasecmp(dot + 1, kinds[i].ending) == 0)
			return 1;
	return 0;
}
