/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena_memory.h: the memory of an arena. Here alone are an arena's bytes read, written, copied and
 * mapped; everywhere else they are addresses. Callbacks of the model and tiers get these.
 */
#ifndef NEAP_SWEEP_ARENA_ARENA_MEMORY_H
#define NEAP_SWEEP_ARENA_ARENA_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <neap/memory.h>
#include "sweep/arena/fence.h"

/* What free bytes are filled with: few sensible numbers consist of it. */
#define NEAP__POISON 0xAA

/* Zeros: ordinary memory. */
struct neap__memory {
	struct neap_memory_ops ops; /* size 0: ordinary memory */
	struct neap__fence fence;   /* of the model's calls, which use this memory */
	int failed;		    /* the first negative answer of ops in this run */
	unsigned char *pieces; /* NEAP__MEMORY_PIECE bytes of the host's; NULL: ordinary memory */
};

#define NEAP__MEMORY_PIECE ((uint64_t)1 << 20) /* bytes that are shown at a time */

/*
 * Takes over what a model asks for; ops NULL: ordinary memory. fence, or NULL, waits for the calls
 * of `user`. 0, NEAP_EUSAGE or -ENOMEM.
 */
int neap__memory_init(struct neap__memory *m, const struct neap_memory_ops *ops,
	int (*fence)(void *user), void *user);
void neap__memory_fini(struct neap__memory *m);
/* 1 if the processor may not touch it. */
int neap__memory_is_foreign(const struct neap__memory *m);
/* 1 if what one maps the other may unmap. */
int neap__memory_is_same(const struct neap__memory *m, const struct neap__memory *other);

/*
 * Maps `bytes`, a multiple of 4096, of which only the first `used` are likely to be touched. 0 or a
 * negative code.
 */
int neap__memory_map(const struct neap__memory *m, void **at, uint64_t bytes, uint64_t used);
void neap__memory_unmap(const struct neap__memory *m, void *at, uint64_t bytes);
/* Makes ordinary memory resident. */
void neap__memory_touch(const struct neap__memory *m, void *at, uint64_t bytes);

/* Forgets the failures of earlier runs. */
void neap__memory_begin_run(struct neap__memory *m);
/*
 * At the end of a run, which answered rc so far: waits for the model's calls. rc, or if that is 0
 * the first failure.
 */
int neap__memory_end_run(struct neap__memory *m, int rc);
/*
 * Failures of these are kept for neap__memory_answer. They wait for the model's calls where bytes
 * would be touched at once. move: the ranges may overlap.
 */
void neap__memory_move(struct neap__memory *m, void *to, const void *from, uint64_t bytes);
void neap__memory_fill(struct neap__memory *m, void *at, int byte, uint64_t bytes);
void neap__memory_read(struct neap__memory *m, void *host, const void *at, uint64_t bytes);
void neap__memory_write(struct neap__memory *m, void *at, const void *host, uint64_t bytes);
/* The first failure since the run began, also of the model's fence, with its line. */
int neap__memory_failure(const struct neap__memory *m);

/* 0, or the first failure. Inline: asked after every action. */
static inline int neap__memory_answer(const struct neap__memory *m)
{
	return m->failed == 0 && m->fence.failed == 0 ? 0 : neap__memory_failure(m);
}

/*
 * Shows [at, at + bytes) to `look`, in pieces of `count` bytes from `from` on, which lie at a
 * multiple of 4096 if `at` does. Ends early with an answer of `look` that is not 0, and returns it.
 */
typedef int neap__memory_look(
	void *user, const unsigned char *bytes, uint64_t from, uint64_t count);
int neap__memory_show(struct neap__memory *m, const void *at, uint64_t bytes,
	neap__memory_look *look, void *user);
/* Lets `get` fill [at, at + bytes) in such pieces. */
typedef int neap__memory_get(void *user, unsigned char *bytes, uint64_t count);
int neap__memory_take(
	struct neap__memory *m, void *at, uint64_t bytes, neap__memory_get *get, void *user);

/* The offset of the first of these bytes that is not NEAP__POISON, or `bytes`. */
uint64_t neap__memory_unpoisoned(struct neap__memory *m, const void *at, uint64_t bytes);

#endif
