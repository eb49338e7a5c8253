/* SPDX-License-Identifier: Apache-2.0 */
/* encode_ranks.c: sends encoded recordings to rank 0 (encode_ranks.h). */
#include "data/encode/encode_ranks.h"
#include "base/checked.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* A recording on its way: its numbers, then the times of its spikes, then their channels. */
struct packed {
	int64_t count;
	double duration, active, slow;
	int label, speaker, rc, pad;
	char detail[512];
};

static size_t packed_bytes(int64_t count)
{
	size_t n = (size_t)count;
	return sizeof(struct packed) + n * sizeof(double) +
	       (size_t)neap__round_up(n * sizeof(uint16_t), sizeof(double));
}

static char *pack(char *to, const struct neap__encoded_recording *item)
{
	const struct neap_events *e = &item->events;
	struct packed head = {.count = item->rc < 0 ? 0 : e->count,
		.duration = e->duration,
		.active = item->active,
		.slow = item->slow,
		.label = e->label,
		.speaker = e->speaker,
		.rc = item->rc};
	size_t n = (size_t)head.count;

	memcpy(head.detail, item->detail, sizeof head.detail);
	memcpy(to, &head, sizeof head);
	if (n > 0) {
		memcpy(to + sizeof head, e->time, n * sizeof *e->time);
		memcpy(to + sizeof head + n * sizeof *e->time, e->unit, n * sizeof *e->unit);
	}
	return to + packed_bytes(head.count);
}

static int unpack(struct neap__encoded_recording *item, const char **from)
{
	struct packed head;

	memcpy(&head, *from, sizeof head);
	size_t n = (size_t)head.count;
	const char *time = *from + sizeof head, *unit = time + n * sizeof(double);
	*item = (struct neap__encoded_recording){
		.active = head.active, .slow = head.slow, .rc = head.rc};
	memcpy(item->detail, head.detail, sizeof head.detail);
	item->events = (struct neap_events){.count = head.count,
		.duration = head.duration,
		.label = head.label,
		.speaker = head.speaker,
		.time = malloc(n * sizeof(double) + 1),
		.unit = malloc(n * sizeof(uint16_t) + 1)};
	*from += packed_bytes(head.count);
	if (!item->events.time || !item->events.unit) {
		neap_events_free(&item->events);
		return neap__fail_errno(ENOMEM, "%zu spikes of a recording", n);
	}
	memcpy(item->events.time, time, n * sizeof(double));
	memcpy(item->events.unit, unit, n * sizeof(uint16_t));
	return 0;
}

/* Recordings of a rank in a round of so many. */
static int share_of(int rank, int block, int64_t size)
{
	int64_t left = size - (int64_t)rank * block;
	return left < 0 ? 0 : left < block ? (int)left : block;
}

/* What is sent to rank 0: the bytes of every rank in `size`, and room for both sides. */
struct parcels {
	size_t *size, *to, *from;
	char *out, *in;
};

static void free_parcels(struct parcels *p)
{
	free(p->size);
	free(p->to);
	free(p->from);
	free(p->out);
	free(p->in);
}

/* Packs this rank's recordings and tells all ranks how much that is. Collective. */
static int make_parcels(struct parcels *p, struct neap__ranks *ranks,
	struct neap__encoded_recording *item, int count)
{
	const struct neap_peers *peers = ranks->peers;
	size_t own = 0, all = 0;

	for (int i = 0; i < count && peers->rank > 0; i++)
		own += packed_bytes(item[i].rc < 0 ? 0 : item[i].events.count);
	p->size = calloc((size_t)peers->count, sizeof *p->size);
	p->to = calloc((size_t)peers->count, sizeof *p->to);
	p->from = calloc((size_t)peers->count, sizeof *p->from);
	p->out = malloc(own + 1);
	int rc = p->size && p->to && p->from && p->out
			 ? 0
			 : neap__fail_errno(ENOMEM, "spikes of %d recordings", count);
	NEAP_TRY(neap__ranks_agree(ranks, rc));
	char *at = p->out;
	for (int i = 0; i < count && peers->rank > 0; i++) {
		at = pack(at, &item[i]);
		neap_events_free(&item[i].events);
	}
	NEAP_TRY(peers->all(peers->user, &own, sizeof own, p->size));
	p->to[0] = own;
	for (int r = 0; r < peers->count && peers->rank == 0; r++)
		all += p->from[r] = p->size[r];
	p->in = malloc(all + 1);
	return neap__ranks_agree(
		ranks, p->in ? 0 : neap__fail_errno(ENOMEM, "%zu bytes of spikes", all));
}

int neap__encode_gather(
	struct neap__ranks *ranks, struct neap__encoded_recording *item, int block, int64_t size)
{
	const struct neap_peers *peers = ranks->peers;
	struct parcels p = {0};

	if (!peers)
		return 0;
	int rc = make_parcels(&p, ranks, item, share_of(peers->rank, block, size));
	if (rc == 0)
		rc = peers->exchange(peers->user, p.out, p.to, p.in, p.from);
	const char *at = p.in;
	for (int64_t i = block; i < size && rc == 0 && peers->rank == 0; i++)
		rc = unpack(&item[i], &at);
	free_parcels(&p);
	return rc;
}

int neap__encode_same(
	struct neap__ranks *ranks, const struct neap__recordings *recordings, const char *dir)
{
	uint64_t own = XXH3_64bits(&recordings->count, sizeof recordings->count), root;
	size_t skipped = strlen(dir);

	if (!ranks->peers)
		return 0;
	for (int64_t i = 0; i < recordings->count; i++) {
		const struct neap__recording *file = &recordings->file[i];
		const char *name =
			strncmp(file->path, dir, skipped) == 0 ? file->path + skipped : file->path;
		int numbers[2] = {file->class_number, file->speaker_number};
		own = XXH3_64bits_withSeed(name, strlen(name), own);
		own = XXH3_64bits_withSeed(numbers, sizeof numbers, own);
	}
	root = own;
	NEAP_TRY(neap__ranks_send(ranks, &root, sizeof root));
	return neap__ranks_agree(ranks, own == root
						? 0
						: neap__fail(NEAP_EUSAGE,
							  "'%s' has other recordings than on rank "
							  "0 (%s). Use the same files on all hosts",
							  dir, ranks->host[0]));
}
