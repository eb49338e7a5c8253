/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tape_rounds.h: the form of a tape on a device, and a list of what tapes have. A tape is a head
 * and rounds, as the CPU's (nn/step_functions.c), but a round has all samples of a layer next to
 * each other, because a block of threads reads one sample: its head, the number of bytes that the
 * tapes of the samples before have, [layers][samples]; the offsets [layers][samples][steps + 1];
 * the outputs of the readout where its errors need them, and the factors of its decay where it
 * learns; and the tapes of each layer, without gaps.
 *
 * Backward needs the heads on the host. The host notes them when it writes them, so that it does
 * not wait for a copy from the device. The steps of a round that is noted replace earlier notes of
 * these steps: a sweep has one tape of a step at a time. What is not noted, as after a journal was
 * read, is read from the tape.
 */
#ifndef NEAP_DEVICE_TAPE_ROUNDS_H
#define NEAP_DEVICE_TAPE_ROUNDS_H

#include <stddef.h>
#include <stdint.h>

enum { NEAP__DEVICE_ALIGNED = 64 }; /* offsets of rounds, and of the tapes of layers in them */

struct neap__device_tape_head {
	uint64_t last; /* offset of the last round */
	uint64_t bytes;
};

struct neap__device_round {
	uint64_t previous; /* offset of the round before; 0: none */
	int64_t t0, t1;
	uint64_t outputs_at; /* then the factors of the readout's decay, if it learns */
	uint64_t layer_at[]; /* [layers] offsets of the layers' tapes from here */
};

/* Bytes of the head of a round. */
static inline size_t neap__device_round_head(int layers)
{
	return sizeof(struct neap__device_round) + (size_t)layers * sizeof(uint64_t);
}

/* Notes, in the order of steps. */
struct neap__round_list {
	int layers;
	size_t count, room;
	unsigned char *notes; /* [room] an offset in the tape and a head */
};

/* Forgets all notes. */
void neap__round_list_clear(struct neap__round_list *list, int layers);
void neap__round_list_free(struct neap__round_list *list);
/* Notes a round at an offset of a tape. 0 or -ENOMEM. */
int neap__round_list_add(
	struct neap__round_list *list, uint64_t at, const struct neap__device_round *round);
/* Returns the round that ends at t1, with its offset in *at, or NULL. Valid until the next change.
 */
const struct neap__device_round *neap__round_list_find(
	const struct neap__round_list *list, int64_t t1, uint64_t *at);
/* 1 if the list has all rounds of a tape of the steps [t0, t1). */
int neap__round_list_has(const struct neap__round_list *list, int64_t t0, int64_t t1);

#endif
