/* SPDX-License-Identifier: Apache-2.0 */
/* tape_rounds.c: the notes of rounds (tape_rounds.h). */
#include "device/tape_rounds.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct note {
	uint64_t at;
	struct neap__device_round round;
};

static size_t note_bytes(const struct neap__round_list *list)
{
	return offsetof(struct note, round) + neap__device_round_head(list->layers);
}

static struct note *note_at(const struct neap__round_list *list, size_t i)
{
	return (struct note *)(void *)(list->notes + i * note_bytes(list));
}

void neap__round_list_clear(struct neap__round_list *list, int layers)
{
	if (layers != list->layers)
		neap__round_list_free(list);
	list->layers = layers;
	list->count = 0;
}

void neap__round_list_free(struct neap__round_list *list)
{
	free(list->notes);
	*list = (struct neap__round_list){0};
}

/* The first note that ends after step t. */
static size_t first_after(const struct neap__round_list *list, int64_t t)
{
	size_t low = 0, high = list->count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (note_at(list, middle)->round.t1 <= t)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int neap__round_list_add(
	struct neap__round_list *list, uint64_t at, const struct neap__device_round *round)
{
	size_t first = first_after(list, round->t0), end = first, bytes = note_bytes(list);

	while (end < list->count && note_at(list, end)->round.t0 < round->t1)
		end++;
	if (first == end && list->count == list->room) {
		size_t room = list->room ? 2 * list->room : 64;
		unsigned char *notes = realloc(list->notes, room * bytes);
		if (!notes)
			return neap__fail_errno(ENOMEM, "the heads of %zu tapes", room);
		list->notes = notes;
		list->room = room;
	}
	if (end < list->count)
		memmove(note_at(list, first + 1), note_at(list, end), (list->count - end) * bytes);
	list->count = list->count - (end - first) + 1;
	note_at(list, first)->at = at;
	memcpy(&note_at(list, first)->round, round, neap__device_round_head(list->layers));
	return 0;
}

const struct neap__device_round *neap__round_list_find(
	const struct neap__round_list *list, int64_t t1, uint64_t *at)
{
	size_t i = list->count > 0 ? first_after(list, t1 - 1) : 0;

	if (i == list->count || note_at(list, i)->round.t1 != t1)
		return NULL;
	*at = note_at(list, i)->at;
	return &note_at(list, i)->round;
}

int neap__round_list_has(const struct neap__round_list *list, int64_t t0, int64_t t1)
{
	uint64_t at, expected = 0;

	while (t1 > t0) {
		const struct neap__device_round *round = neap__round_list_find(list, t1, &at);
		if (!round || (expected && at != expected))
			return 0;
		expected = round->previous;
		t1 = round->t0;
		if (!expected)
			break;
	}
	return t1 == t0 && !expected;
}
