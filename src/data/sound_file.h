/* SPDX-License-Identifier: Apache-2.0 */
/* sound_file.h: sound files as samples of one channel. */
#ifndef NEAP_DATA_SOUND_FILE_H
#define NEAP_DATA_SOUND_FILE_H

#include <stdint.h>
#include <neap/status.h>

/*
 * Reads a sound file, channels averaged; gives *samples, to be freed. `any`: of every kind that
 * libsndfile reads, else wav, flac and aiff alone. 0, NEAP_EFORMAT or -errno.
 */
int neap__sound_read(float **samples, int64_t *count, double *rate, const char *path, int any);
/* The same of all that an open file gives up to its end, as the standard input: wav, flac, aiff. */
int neap__sound_read_stream(float **samples, int64_t *count, double *rate, int from);
/* Whether a name ends as one of wav, flac and aiff. */
int neap__sound_named(const char *path);

#endif
