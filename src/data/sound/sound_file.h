/* SPDX-License-Identifier: Apache-2.0 */
/* sound_file.h: sound files as samples of one channel. */
#ifndef NEAP_DATA_SOUND_SOUND_FILE_H
#define NEAP_DATA_SOUND_SOUND_FILE_H

#include <stdint.h>
#include <neap/status.h>

/*
 * Reads a sound file, channels averaged; gives *samples, to be freed. `any`: of every kind that
 * libsndfile reads, else wav, flac and aiff alone. 0, NEAP_EFORMAT or -errno.
 */
int neap__sound_read(float **samples, int64_t *count, double *rate, const char *path, int any);
/* The same of all that an open file gives up to its end, as the standard input: wav, flac, aiff. */
int neap__sound_read_stream(float **samples, int64_t *count, double *rate, int from);

/*
 * A sound file that is read a block at a time. One thread uses it. `any`: as above. A pipe is read
 * as its bytes come; `head` is how they begin, and the caller keeps the file open until the sound
 * is closed. 0, NEAP_EFORMAT or -errno.
 */
struct neap__sound;
int neap__sound_open(struct neap__sound **sound, const char *path, int any);
int neap__sound_open_pipe(struct neap__sound **sound, int fd, const unsigned char head[12]);
double neap__sound_rate(const struct neap__sound *sound); /* Hz */
/*
 * Reads up to `most` samples, channels averaged. Returns how many; 0 at the end; NEAP_EFORMAT where
 * the file is damaged, empty, or shorter than its header says, which of a pipe is no error.
 */
int64_t neap__sound_take(struct neap__sound *sound, float *samples, int64_t most);
void neap__sound_close(struct neap__sound *sound); /* NULL: nothing */

/* Whether a name ends as one of wav, flac and aiff. */
int neap__sound_named(const char *path);

#endif
