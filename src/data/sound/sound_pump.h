/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sound_pump.h: the standard input as a socket that a library may wait for. A thread moves bytes
 * there as they come; where the caller is to end, the socket does.
 */
#ifndef NEAP_DATA_SOUND_SOUND_PUMP_H
#define NEAP_DATA_SOUND_SOUND_PUMP_H

#include <neap/status.h>

/* Asked several times a second, also from the pump's thread, whether to end. */
struct neap__ask {
	int (*interrupted)(void *user); /* NULL: never */
	void *user;
};

static inline int neap__asked_to_end(const struct neap__ask *ask)
{
	return ask->interrupted && ask->interrupted(ask->user);
}

struct neap__sound_pump;

enum { NEAP__SOUND_HEAD = 12 /* bytes that tell the kind of a sound */ };

/*
 * Waits for the first bytes of `from`, which stays the caller's, and starts the thread. Fewer bytes
 * up to the end leave zeros in `head`. 0, NEAP_EINTERRUPTED or -errno.
 */
int neap__sound_pump_start(struct neap__sound_pump **pump, int from,
	unsigned char head[NEAP__SOUND_HEAD], const struct neap__ask *ask);
/* The end to read from, which the pump owns. */
int neap__sound_pump_fd(const struct neap__sound_pump *pump);
/* After the socket has ended: 0, NEAP_EINTERRUPTED, or -errno of reading `from`. */
int neap__sound_pump_end(const struct neap__sound_pump *pump);
/* Ends the thread, whatever it waits for. NULL: nothing. */
void neap__sound_pump_free(struct neap__sound_pump *pump);

#endif
