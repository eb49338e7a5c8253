/* SPDX-License-Identifier: Apache-2.0 */
/* arena_memory.c: an arena's bytes in ordinary memory, or through functions of neap_memory_ops. */
#include "sweep/arena/arena_memory.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "sys/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int neap__memory_init(struct neap__memory *m, const struct neap_memory_ops *ops,
	int (*fence)(void *user), void *user)
{
	*m = (struct neap__memory){.fence = {.finish = fence, .user = user}};
	if (!ops)
		return 0;
	NEAP_TRY(neap__struct_take(&m->ops, sizeof m->ops, ops, "neap_memory_ops"));
	/* The caller's struct may be shorter. */
	const struct neap_memory_ops *own = &m->ops;
	if (!own->map || !own->unmap || !own->move || !own->fill || !own->read || !own->write)
		return neap__fail(NEAP_EUSAGE,
			"neap_memory_ops: map, unmap, move, fill, read and write are required");
	m->pieces = aligned_alloc(4096, NEAP__MEMORY_PIECE);
	return m->pieces ? 0 : neap__fail_errno(ENOMEM, "the buffer of an arena's memory");
}

void neap__memory_fini(struct neap__memory *m)
{
	free(m->pieces);
	m->pieces = NULL;
}

int neap__memory_is_foreign(const struct neap__memory *m)
{
	return m->ops.size != 0;
}

int neap__memory_is_same(const struct neap__memory *m, const struct neap__memory *other)
{
	return m->ops.map == other->ops.map && m->ops.unmap == other->ops.unmap &&
	       m->ops.user == other->ops.user;
}

int neap__memory_map(const struct neap__memory *m, void **at, uint64_t bytes, uint64_t used)
{
	if (!neap__memory_is_foreign(m))
		return used < bytes ? neap__map_partly(at, bytes, used)
				    : neap__map_pages(at, bytes);
	neap_detail_set(NULL);
	*at = m->ops.map(m->ops.user, bytes);
	if (!*at && neap_detail()[0])
		return neap__fail_in(-ENOMEM, "neap_memory_ops: map: ");
	if (!*at)
		return neap__fail(-ENOMEM,
			"neap_memory_ops: map found no %llu bytes. Use a smaller memory budget",
			(unsigned long long)bytes);
	if ((uintptr_t)*at % 4096 != 0) {
		m->ops.unmap(m->ops.user, *at, bytes);
		return neap__fail(NEAP_EUSAGE,
			"neap_memory_ops: map returned an address that is not a multiple of 4096");
	}
	return 0;
}

void neap__memory_unmap(const struct neap__memory *m, void *at, uint64_t bytes)
{
	if (!at || bytes == 0)
		return;
	if (neap__memory_is_foreign(m))
		m->ops.unmap(m->ops.user, at, bytes);
	else
		neap__unmap_pages(at, bytes);
}

void neap__memory_touch(const struct neap__memory *m, void *at, uint64_t bytes)
{
	for (uint64_t i = 0; !neap__memory_is_foreign(m) && i < bytes; i += 4096)
		((volatile unsigned char *)at)[i] = 0;
}

void neap__memory_begin_run(struct neap__memory *m)
{
	m->failed = 0;
	neap__fence_begin_run(&m->fence);
}

int neap__memory_end_run(struct neap__memory *m, int rc)
{
	neap__fence_wait(&m->fence);
	return rc ? rc : neap__memory_answer(m);
}

static void note(struct neap__memory *m, int rc)
{
	if (rc < 0 && m->failed == 0)
		m->failed = rc;
}

/* A call of the memory's own functions that may not be done yet if the model has a fence. */
static void queue(struct neap__memory *m, int rc)
{
	note(m, rc);
	neap__fence_after(&m->fence, NULL, NULL, NULL, 0);
}

void neap__memory_move(struct neap__memory *m, void *to, const void *from, uint64_t bytes)
{
	if (to == from || bytes == 0)
		return;
	if (neap__memory_is_foreign(m)) {
		queue(m, m->ops.move(m->ops.user, to, from, bytes));
		return;
	}
	neap__fence_wait(&m->fence);
	memmove(to, from, bytes);
}

void neap__memory_fill(struct neap__memory *m, void *at, int byte, uint64_t bytes)
{
	if (bytes == 0)
		return;
	if (neap__memory_is_foreign(m)) {
		queue(m, m->ops.fill(m->ops.user, at, byte, bytes));
		return;
	}
	neap__fence_wait(&m->fence);
	memset(at, byte, bytes);
}

void neap__memory_read(struct neap__memory *m, void *host, const void *at, uint64_t bytes)
{
	if (bytes == 0)
		return;
	neap__fence_wait(&m->fence);
	if (neap__memory_is_foreign(m))
		note(m, m->ops.read(m->ops.user, host, at, bytes));
	else
		memcpy(host, at, bytes);
}

void neap__memory_write(struct neap__memory *m, void *at, const void *host, uint64_t bytes)
{
	if (bytes == 0)
		return;
	neap__fence_wait(&m->fence);
	if (neap__memory_is_foreign(m))
		note(m, m->ops.write(m->ops.user, at, host, bytes));
	else
		memcpy(at, host, bytes);
}

int neap__memory_failure(const struct neap__memory *m)
{
	if (m->fence.failed)
		return neap__fence_failure(&m->fence);
	return neap__fail(m->failed, "the memory of the arena (neap_memory_ops) failed: %s",
		neap_strerror(m->failed));
}

int neap__memory_show(
	struct neap__memory *m, const void *at, uint64_t bytes, neap__memory_look *look, void *user)
{
	if (!neap__memory_is_foreign(m)) {
		neap__fence_wait(&m->fence);
		NEAP_TRY(neap__memory_answer(m));
		return bytes ? look(user, at, 0, bytes) : 0;
	}
	for (uint64_t from = 0; from < bytes; from += NEAP__MEMORY_PIECE) {
		uint64_t count = bytes - from;
		count = count < NEAP__MEMORY_PIECE ? count : NEAP__MEMORY_PIECE;
		neap__memory_read(m, m->pieces, (const unsigned char *)at + from, count);
		NEAP_TRY(neap__memory_answer(m));
		int rc = look(user, m->pieces, from, count);
		if (rc != 0)
			return rc;
	}
	return 0;
}

int neap__memory_take(
	struct neap__memory *m, void *at, uint64_t bytes, neap__memory_get *get, void *user)
{
	if (!neap__memory_is_foreign(m)) {
		neap__fence_wait(&m->fence);
		NEAP_TRY(neap__memory_answer(m));
		return bytes ? get(user, at, bytes) : 0;
	}
	for (uint64_t from = 0; from < bytes; from += NEAP__MEMORY_PIECE) {
		uint64_t count = bytes - from;
		count = count < NEAP__MEMORY_PIECE ? count : NEAP__MEMORY_PIECE;
		NEAP_TRY(get(user, m->pieces, count));
		neap__memory_write(m, (unsigned char *)at + from, m->pieces, count);
		NEAP_TRY(neap__memory_answer(m));
	}
	return 0;
}

static int look_poison(void *user, const unsigned char *bytes, uint64_t from, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		if (bytes[i] != NEAP__POISON) {
			*(uint64_t *)user = from + i;
			return 1;
		}
	return 0;
}

uint64_t neap__memory_unpoisoned(struct neap__memory *m, const void *at, uint64_t bytes)
{
	uint64_t found = bytes;
	neap__memory_show(m, at, bytes, look_poison, &found);
	return found;
}
