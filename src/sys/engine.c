/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/engine.h"
#include "base/fail.h"
#include "sys/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Best first. */
static const struct neap__io_engine_kind *const kinds[] = {
	&neap__io_engine_uring,
	&neap__io_engine_threads,
	&neap__io_engine_sync,
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

#define GLANCE 2e-4 /* seconds */

struct neap__stall_injection *neap__io_engine_hold;

static int open_named(struct neap__io_engine *engine, const char *name, int depth)
{
	for (int i = 0; i < KINDS; i++) {
		if (strcmp(name, kinds[i]->name) != 0)
			continue;
		int rc = kinds[i]->open(&engine->self, depth);
		if (rc < 0)
			return neap__fail(NEAP_EUSAGE, "NEAP_IO=%s does not work here: %s", name,
				neap_strerror(rc));
		engine->kind = kinds[i];
		snprintf(engine->about, sizeof engine->about, "%s", name);
		return 0;
	}
	return neap__fail(
		NEAP_EUSAGE, "NEAP_IO='%s' is no way to move data: uring, threads or sync", name);
}

static int open_any(struct neap__io_engine *engine, int depth)
{
	const char *name = getenv("NEAP_IO");
	int first = 0, rc = 0;
	if (depth < 1 || depth > NEAP__MOVES)
		return neap__fail(NEAP_EUSAGE, "%d moves in flight: 1 to %d", depth, NEAP__MOVES);
	if (name && *name)
		return open_named(engine, name, depth);
	for (int i = 0; i < KINDS; i++) {
		rc = kinds[i]->open(&engine->self, depth);
		first = i == 0 ? rc : first;
		if (rc < 0)
			continue;
		engine->kind = kinds[i];
		snprintf(engine->about, sizeof engine->about, "%s%s%s%s%s", kinds[i]->name,
			i ? " (no " : "", i ? kinds[0]->name : "", i ? ": " : "",
			i ? neap_strerror(first) : "");
		if (i)
			strncat(engine->about, ")",
				sizeof engine->about - strlen(engine->about) - 1);
		return 0;
	}
	return neap__fail_errno(-rc, "cannot start moving data");
}

int neap__io_engine_open(struct neap__io_engine *engine, int depth)
{
	*engine = (struct neap__io_engine){0};
	NEAP_TRY(open_any(engine, depth));
	engine->hold = engine->kind->blocks ? NULL : neap__io_engine_hold;
	return 0;
}

/* Is this one of those that a test wants to hang? */
static int holds(struct neap__stall_injection *hold, const struct neap__io_request *move)
{
	long long n = atomic_fetch_add(move->write ? &hold->writes : &hold->reads, 1) + 1;
	long long first = move->write ? hold->write : hold->read;
	long long row = hold->row ? hold->row : 1;
	int hit = first && n >= first && n < first + row && !atomic_load(&hold->released);
	atomic_fetch_add(&hold->held, hit);
	return hit;
}

void neap__io_engine_start(struct neap__io_engine *engine, struct neap__io_request *move)
{
	engine->flying++;
	if (engine->hold && engine->hold->delay_us)
		neap__sleep(1e-6 * engine->hold->delay_us);
	if (engine->hold && holds(engine->hold, move)) {
		move->next = engine->held;
		engine->held = move;
		engine->nheld++;
		return;
	}
	engine->kind->start(engine->self, move);
}

static void let_go(struct neap__io_engine *engine)
{
	while (engine->held && atomic_load(&engine->hold->released)) {
		struct neap__io_request *move = engine->held;
		engine->held = move->next;
		engine->nheld--;
		engine->kind->start(engine->self, move);
	}
}

/* Looks again and again whether what is held was let go. */
static struct neap__io_request *finish_held(struct neap__io_engine *engine, double seconds)
{
	double end = neap__seconds() + seconds;
	struct neap__io_request *move = NULL;
	do {
		let_go(engine);
		if (engine->flying > engine->nheld)
			move = engine->kind->finish(
				engine->self, engine->nheld && seconds > GLANCE ? GLANCE : seconds);
		else
			neap__sleep(GLANCE);
	} while (!move && neap__seconds() < end);
	return move;
}

struct neap__io_request *neap__io_engine_finish(struct neap__io_engine *engine, double seconds)
{
	if (engine->flying == 0)
		return NULL;
	struct neap__io_request *move = engine->hold ? finish_held(engine, seconds)
						     : engine->kind->finish(engine->self, seconds);
	engine->flying -= move != NULL;
	return move;
}

void neap__io_engine_attach(
	struct neap__io_engine *engine, const struct neap__scratch *files, int count)
{
	if (engine->kind->attach)
		engine->kind->attach(engine->self, files, count);
}

void neap__io_engine_lend(struct neap__io_engine *engine, void *memory, size_t bytes)
{
	if (engine->kind->lend)
		engine->kind->lend(engine->self, memory, bytes);
}

void neap__io_engine_close(struct neap__io_engine *engine)
{
	if (engine->kind)
		engine->kind->close(engine->self);
	*engine = (struct neap__io_engine){0};
}

void neap__io_request_now(struct neap__io_request *move)
{
	move->answer =
		move->write ? neap__scratch_write(move->file, move->at, move->bytes, move->offset)
			    : neap__scratch_read(move->file, move->at, move->bytes, move->offset);
}
