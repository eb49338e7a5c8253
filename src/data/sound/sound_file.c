/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sound_file.c: reads sound files through libsndfile: wav, flac and aiff, of which name and first
 * bytes agree. The other kinds that libsndfile knows bring in large decoders, some of which leak
 * or crash on damaged files; they are read only where the caller asks for any kind.
 */
#include "data/sound/sound_file.h"
#include "data/missing_file.h"
#include "base/fail.h"
#include "base/grow.h"

#include <errno.h>
#include <fcntl.h>
#include <sndfile.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK_FRAMES = 65536 };

/* Kinds that are read unasked: how names end, what stands at byte 0 and at byte 8. */
static const struct sound_kind {
	const char *ending, *first, *eighth;
	int seeks; /* libsndfile reads it from no pipe: flac not at all, RF64 without its begin */
} kinds[] = {
	{"wav", "RIFF", "WAVE", 0},
	{"wav", "RIFX", "WAVE", 0},
	{"wav", "RF64", "WAVE", 1},
	{"flac", "fLaC", "", 1},
	{"aiff", "FORM", "AIFF", 0},
	{"aiff", "FORM", "AIFC", 0},
	{"aif", "FORM", "AIFF", 0},
	{"aif", "FORM", "AIFC", 0},
	{"aifc", "FORM", "AIFC", 0},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* By its first bytes alone. */
static int is_kind(const struct sound_kind *kind, const unsigned char head[12])
{
	return memcmp(head, kind->first, 4) == 0 &&
	       memcmp(head + 8, kind->eighth, strlen(kind->eighth)) == 0;
}

/* A file whose first bytes are not those of its name's ending. */
static int wrong_kind(const char *path, const char *ending, const unsigned char head[12])
{
	for (int i = 0; i < KINDS; i++)
		if (is_kind(&kinds[i], head))
			return neap__fail(NEAP_EFORMAT,
				"'%s' is a %s file by its first bytes, but its name ends in .%s. "
				"Rename it to end in .%s",
				path, kinds[i].ending, ending, kinds[i].ending);
	if (memcmp(head, "\x89HDF\r\n\x1a\n", 8) == 0)
		return neap__fail(NEAP_EFORMAT,
			"'%s' is an HDF5 file by its first bytes, such as encode writes, but its "
			"name ends in .%s. Rename it to end in .h5",
			path, ending);
	return neap__fail(NEAP_EFORMAT,
		"'%s' does not begin as a %s file does: it is damaged or of another format. "
		"Restore it from its source, convert it to wav, or remove it from the folder",
		path, ending);
}

static int known_kind(const char *path)
{
	const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
	unsigned char head[12] = {0};
	const char *named = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return neap__missing_file(errno, path);
	ssize_t n = read(fd, head, sizeof head);
	int err = errno;
	close(fd);
	if (n < 0)
		return neap__fail_errno(err, "cannot read '%s'", path);
	if (n == 0)
		return neap__fail(NEAP_EFORMAT,
			"'%s' is empty. Restore it from its source, or leave it out", path);
	for (int i = 0; dot && i < KINDS; i++) {
		const struct sound_kind *kind = &kinds[i];
		if (strcasecmp(dot + 1, kind->ending) != 0)
			continue;
		named = kind->ending;
		if (is_kind(kind, head))
			return 0;
	}
	if (named)
		return wrong_kind(path, named, head);
	return neap__fail(NEAP_EFORMAT,
		"'%s' is not a wav, flac or aiff file. Move it away, or pass --any-sound to read "
		"all kinds of sound files",
		path);
}

static uint64_t number_at(const unsigned char *at, int bytes, int is_big)
{
	uint64_t value = 0;

	for (int i = 0; i < bytes; i++)
		value = value << 8 | at[is_big ? i : bytes - 1 - i];
	return value;
}

/* Lengths from here on are those of programs that write before they know how much will come. */
#define UNKNOWN_LENGTH 0x7ffff000u

/*
 * libsndfile takes what is there of a wav or aiff file whose sound is shorter than its header says.
 * Looks for the chunk of the sound. 0, or NEAP_EFORMAT where the file ends within it.
 */
static int check_length(int fd, const char *path)
{
	unsigned char head[36];
	uint64_t large = 0; /* of a RF64 file, which says it in front */
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || pread(fd, head, 12, 0) != 12)
		return 0;
	uint64_t size = (uint64_t)st.st_size, at = 12, bytes;
	int aiff = is_kind(&(struct sound_kind){"", "FORM", "AIF", 0}, head);
	int is_big = aiff || memcmp(head, "RIFX", 4) == 0;
	if (!aiff && memcmp(head + 8, "WAVE", 4) != 0)
		return 0;
	for (; at + 8 <= size && pread(fd, head, 8, (off_t)at) == 8; at += 8 + bytes + bytes % 2) {
		bytes = number_at(head + 4, 4, is_big);
		if (memcmp(head, "ds64", 4) == 0 && pread(fd, head + 8, 16, (off_t)at + 8) == 16)
			large = number_at(head + 16, 8, is_big);
		if (memcmp(head, aiff ? "SSND" : "data", 4) != 0)
			continue;
		if (bytes == UINT32_MAX && large > 0)
			bytes = large;
		else if (bytes >= UNKNOWN_LENGTH)
			return 0;
		if (bytes > size - at - 8)
			return neap__fail(NEAP_EFORMAT,
				"'%s' is truncated: it has %llu of %llu bytes of sound. Restore it "
				"from its source, or remove it",
				path, (unsigned long long)(size - at - 8),
				(unsigned long long)bytes);
		return 0;
	}
	return 0;
}

static int check_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return 0; /* whoever opens it next says why */
	int rc = check_length(fd, path);
	close(fd);
	return rc;
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

struct neap__sound {
	SNDFILE *file;
	SF_INFO info;
	char *name;
	int live;	/* a pipe, whose header may promise more than comes */
	int64_t count;	/* frames read so far */
	float *block;	/* [BLOCK_FRAMES][channels] */
	int64_t frames; /* that fit there */
};

void neap__sound_close(struct neap__sound *sound)
{
	if (!sound)
		return;
	if (sound->file)
		sf_close(sound->file);
	free(sound->block);
	free(sound->name);
	free(sound);
}

double neap__sound_rate(const struct neap__sound *sound)
{
	return sound->info.samplerate;
}

/* Takes over a file that libsndfile opened, and closes it where that fails. */
static int adopt(struct neap__sound **out, SNDFILE *file, const SF_INFO *info, const char *name)
{
	struct neap__sound *sound = calloc(1, sizeof *sound);
	int rc = 0;

	if (!sound) {
		sf_close(file);
		return neap__fail_errno(ENOMEM, "'%s'", name);
	}
	sound->file = file;
	sound->info = *info;
	if (info->channels < 1 || info->channels > 1024 || info->samplerate < 100)
		rc = neap__fail(NEAP_EFORMAT,
			"'%s' has %d channels at %d Hz, which is not supported", name,
			info->channels, info->samplerate);
	if (rc == 0) {
		sound->frames = BLOCK_FRAMES;
		sound->name = strdup(name);
		sound->block = malloc(
			(size_t)BLOCK_FRAMES * (size_t)info->channels * sizeof *sound->block);
		if (!sound->name || !sound->block)
			rc = neap__fail_errno(ENOMEM, "'%s'", name);
	}
	if (rc < 0)
		neap__sound_close(sound);
	else
		*out = sound;
	return rc;
}

int neap__sound_open(struct neap__sound **sound, const char *path, int any)
{
	if (!any)
		NEAP_TRY(known_kind(path));
	NEAP_TRY(check_file(path));
	SF_INFO info = {0};
	SNDFILE *file = sf_open(path, SFM_READ, &info);
	if (!file)
		return neap__fail(NEAP_EFORMAT,
			"'%s' is not a readable recording (%s). Move it away, or convert it to wav",
			path, sf_strerror(NULL));
	return adopt(sound, file, &info, path);
}

/* What is wrong with a file whose end was reached. */
static int check_end(const struct neap__sound *s)
{
	if (sf_error(s->file) != SF_ERR_NO_ERROR)
		return neap__fail(NEAP_EFORMAT,
			"'%s' is damaged: %s. Restore it from its source, or "
			"remove it",
			s->name, sf_strerror(s->file));
	if (s->count == 0)
		return neap__fail(NEAP_EFORMAT,
			"'%s' has no samples. Restore it from its source, or leave it out",
			s->name);
	if (s->count < s->info.frames && s->info.frames < SF_COUNT_MAX && !s->live)
		return neap__fail(NEAP_EFORMAT,
			"'%s' is truncated: it has %lld of %lld samples. Restore it from its "
			"source, or remove it",
			s->name, (long long)s->count, (long long)s->info.frames);
	return 0;
}

int64_t neap__sound_take(struct neap__sound *s, float *samples, int64_t most)
{
	sf_count_t got = sf_readf_float(s->file, s->block, most < s->frames ? most : s->frames);

	if (got <= 0)
		return check_end(s);
	mix(samples, s->block, got, s->info.channels);
	s->count += got;
	return got;
}

/* Reads an open sound to the end, whatever number of frames the header says, and closes it. */
static int read_open(float **samples, int64_t *count, double *rate, struct neap__sound *sound)
{
	int64_t room = 0, n = 0, got = 1;
	float *all = NULL;

	*rate = neap__sound_rate(sound);
	while (got > 0) {
		if (neap__grow(&all, &room, n + BLOCK_FRAMES, sizeof *all) < 0)
			got = neap__fail_errno(ENOMEM, "'%s'", sound->name);
		else
			got = neap__sound_take(sound, all + n, BLOCK_FRAMES);
		n += got > 0 ? got : 0;
	}
	neap__sound_close(sound);
	if (got < 0) {
		free(all);
		return (int)got;
	}
	*samples = all;
	*count = n;
	return 0;
}

int neap__sound_read(float **samples, int64_t *count, double *rate, const char *path, int any)
{
	struct neap__sound *sound;
	NEAP_TRY(neap__sound_open(&sound, path, any));
	return read_open(samples, count, rate, sound);
}

/* Opens what an open file holds as a sound, known by its first bytes. */
static int open_head(struct neap__sound **sound, int fd, const unsigned char head[12], int pipe)
{
	int known = 0;
	SF_INFO info = {0};

	for (int i = 0; i < KINDS; i++)
		known |= is_kind(&kinds[i], head) && !(pipe && kinds[i].seeks);
	SNDFILE *file = known ? sf_open_fd(fd, SFM_READ, &info, 0) : NULL;
	if (file)
		return adopt(sound, file, &info, "-");
	if (pipe)
		return neap__fail(NEAP_EFORMAT, "standard input is not a recording that can be "
						"read as a stream. Pass wav or aiff");
	return neap__fail(
		NEAP_EFORMAT, "standard input is not a recording. Pass wav, flac or aiff");
}

/* 1: each sample has its own bytes. Of blocks, libsndfile repeats the last one of a pipe. */
static int is_plain(int format)
{
	static const int plain[] = {SF_FORMAT_PCM_S8, SF_FORMAT_PCM_U8, SF_FORMAT_PCM_16,
		SF_FORMAT_PCM_24, SF_FORMAT_PCM_32, SF_FORMAT_FLOAT, SF_FORMAT_DOUBLE,
		SF_FORMAT_ULAW, SF_FORMAT_ALAW};

	for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
		if ((format & SF_FORMAT_SUBMASK) == plain[i])
			return 1;
	return 0;
}

int neap__sound_open_pipe(struct neap__sound **sound, int fd, const unsigned char head[12])
{
	NEAP_TRY(open_head(sound, fd, head, 1));
	if (!is_plain((*sound)->info.format)) {
		SF_FORMAT_INFO about = {.format = (*sound)->info.format & SF_FORMAT_SUBMASK};
		int known = sf_command(NULL, SFC_GET_FORMAT_INFO, &about, sizeof about) == 0;
		neap__sound_close(*sound);
		*sound = NULL;
		return neap__fail(NEAP_EFORMAT,
			"standard input has compressed samples (%s), which cannot be read as a "
			"stream. Write it to a file, and pass the file, or convert it to 16-bit "
			"PCM",
			known && about.name ? about.name : "in blocks");
	}
	(*sound)->live = 1;
	return 0;
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
	struct neap__sound *sound;

	NEAP_TRY(copy_stream(fd, from));
	ssize_t bytes = pread(fd, head, sizeof head, 0);
	if (bytes < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return neap__fail_errno(errno, "the standard input in memory");
	if (bytes == 0)
		return neap__fail(NEAP_EFORMAT, "standard input is empty; pass a recording");
	NEAP_TRY(check_length(fd, "-"));
	NEAP_TRY(open_head(&sound, fd, head, 0));
	return read_open(samples, count, rate, sound);
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
