/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/engine.h"
#include "base/fail.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Best first. */
static const struct neap__engine_kind *const kinds[] = {
	&neap__engine_uring,
	&neap__engine_threads,
	&neap__engine_sync,
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static int open_named(struct neap__engine *engine, const char *name, int depth)
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

int neap__engine_open(struct neap__engine *engine, int depth)
{
	const char *name = getenv("NEAP_IO");
	int first = 0, rc = 0;
	*engine = (struct neap__engine){0};
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

void neap__engine_start(struct neap__engine *engine, struct neap__move *move)
{
	engine->flying++;
	engine->kind->start(engine->self, move);
}

struct neap__move *neap__engine_finish(struct neap__engine *engine)
{
	if (engine->flying == 0)
		return NULL;
	engine->flying--;
	return engine->kind->finish(engine->self);
}

void neap__engine_attach(struct neap__engine *engine, const struct neap__scratch *files, int count)
{
	if (engine->kind->attach)
		engine->kind->attach(engine->self, files, count);
}

void neap__engine_lend(struct neap__engine *engine, void *memory, size_t bytes)
{
	if (engine->kind->lend)
		engine->kind->lend(engine->self, memory, bytes);
}

void neap__engine_close(struct neap__engine *engine)
{
	if (engine->kind)
		engine->kind->close(engine->self);
	*engine = (struct neap__engine){0};
}

void neap__move_now(struct neap__move *move)
{
	move->answer =
		move->write ? neap__scratch_write(move->file, move->at, move->bytes, move->offset)
			    : neap__scratch_read(move->file, move->at, move->bytes, move->offset);
}
