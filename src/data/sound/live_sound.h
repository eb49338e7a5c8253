/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_sound.h: a recording or the standard input as spikes, a piece at a time, in memory that does
 * not grow with its length.
 *
 * A recording whose level is not given is read three times: for its mean, for its level, for its
 * spikes. These are the spikes that neap_encode makes of the whole, to the bit. Otherwise the sound
 * is read once, as it comes: the mean that is removed from a sample is that of the samples up to
 * it, and so is its level where none is given. How the sound is cut changes no spike in any case.
 */
#ifndef NEAP_DATA_SOUND_LIVE_SOUND_H
#define NEAP_DATA_SOUND_LIVE_SOUND_H

#include "data/dataset.h"
#include "data/sound/sound_pump.h"

struct neap__live_sound_options {
	const char *name;			    /* a sound file, or "-" */
	const struct neap_encoder_options *encoder; /* settled */
	double level;  /* root mean square of the sound after the emphasis; 0: not given */
	int64_t block; /* samples that are read at a time; 0: chosen */
	struct neap__ask ask;
};

struct neap__live_sound;

/* Opens the sound and, of a recording, finds its level. 0 or a negative code. */
int neap__live_sound_open(
	struct neap__live_sound **sound, const struct neap__live_sound_options *options);
/*
 * Hears the next piece: 1; 0 after the last one; NEAP_EINTERRUPTED, NEAP_EFORMAT or -errno. Its
 * spikes come behind those that were not dropped.
 */
int neap__live_sound_hear(struct neap__live_sound *sound);

/* Spikes that were not dropped, in their order; duration is that of the sound so far. */
const struct neap_events *neap__live_sound_events(const struct neap__live_sound *sound);
/* Drops the first `count` of them. */
void neap__live_sound_drop(struct neap__live_sound *sound, int64_t count);
/* Seconds before which no spike is missing; infinite after the last piece. */
double neap__live_sound_known(const struct neap__live_sound *sound);
/* Spikes so far, and the time of the last one. */
int64_t neap__live_sound_spikes(const struct neap__live_sound *sound, double *last);
/* The level that a recording was found to have, or that was given; 0: it is that so far. */
double neap__live_sound_level(const struct neap__live_sound *sound);
void neap__live_sound_close(struct neap__live_sound *sound); /* NULL: nothing */

#endif
