/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.h: I/O engines, which move pieces between memory and scratch files, several at a time.
 *
 *     struct neap__io_engine engine;
 *     neap__io_engine_open(&engine, 8);
 *     neap__io_engine_start(&engine, &request);            returns at once
 *     struct neap__io_request *done = neap__io_engine_finish(&engine, INFINITY);
 *     neap__io_engine_close(&engine);
 *
 * One thread at a time calls an engine. A new engine is a file with its struct
 * neap__io_engine_kind, a row in engine.c, and a line in meson.build.
 */
#ifndef NEAP_SYS_ENGINE_H
#define NEAP_SYS_ENGINE_H

#include <neap/status.h>
#include "sys/scratch.h"

/* Requests in flight at most: twice what keeps a disk busy, as two disks may share them. */
#define NEAP__IO_REQUESTS 16
#define NEAP__FILES 8 /* files of a tier at most */

/* The transfer of one piece: whole pages of memory and file where the file is direct. */
struct neap__io_request {
	struct neap__scratch *file;
	int number; /* of the file, as attached */
	int write;
	void *at;
	size_t bytes;
	uint64_t offset;
	int answer;		       /* when finished: 0 or a code; the detail line may be lost */
	struct neap__io_request *next; /* the engine's */
};

struct neap__io_engine_kind {
	const char *name;
	int blocks; /* `start` returns when the request is finished */
	/* 0 or -errno; `depth` requests in flight at most. */
	int (*open)(void **self, int depth);
	/* Begins the request. Cannot fail: what goes wrong is the request's answer. */
	void (*start)(void *self, struct neap__io_request *request);
	/*
	 * Sleeps until one of those in flight is finished; there is one. For so many
	 * seconds at most, then NULL; INFINITY: without end.
	 */
	struct neap__io_request *(*finish)(void *self, double seconds);
	/* Optional, while nothing is in flight: files that requests will name, by number. */
	void (*attach)(void *self, const struct neap__scratch *files, int count);
	/*
	 * Optional, while nothing is in flight: memory that requests will come from and go to,
	 * until the next call; bytes == 0: any. It must stay mapped as it is.
	 */
	void (*lend)(void *self, void *memory, size_t bytes);
	void (*close)(void *self);
	/*
	 * Optional [close]: the same in a child process, where no thread of the engine is, and
	 * whose parent goes on with it.
	 */
	void (*orphan)(void *self);
};

struct neap__io_engine {
	const struct neap__io_engine_kind *kind; /* NULL: closed */
	void *self;
	int in_flight;
	char about[96]; /* its name, and why another one is not used */
};

/*
 * Called at the end of neap__io_engine_open unless NULL; returns 0 or a code. Tests set it, to put
 * an engine whose requests stall around the one that was opened.
 */
extern int (*neap__io_engine_wrap)(struct neap__io_engine *engine);

/* The name of a row of the table, fastest first; NULL beyond its end. */
const char *neap__io_engine_name(int row);
/*
 * Opens the engine that NEAP_IO names, else the first of the table that works here.
 * NEAP_EUSAGE where NEAP_IO names none, or one that does not work here.
 */
int neap__io_engine_open(struct neap__io_engine *engine, int depth);
void neap__io_engine_start(struct neap__io_engine *engine, struct neap__io_request *request);
/* NULL: none is in flight, or none was finished within so many seconds. */
struct neap__io_request *neap__io_engine_finish(struct neap__io_engine *engine, double seconds);
void neap__io_engine_attach(
	struct neap__io_engine *engine, const struct neap__scratch *files, int count);
void neap__io_engine_lend(struct neap__io_engine *engine, void *memory, size_t bytes);
void neap__io_engine_close(struct neap__io_engine *engine);
/* In a child process: frees what it inherited. */
void neap__io_engine_orphan(struct neap__io_engine *engine);

/* For engines: makes the transfer on the calling thread and sets the answer. */
void neap__io_request_now(struct neap__io_request *request);

#endif
