/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.c: the table of I/O engines, and the choice of one: the first row that works here, or the
 * one that the environment variable NEAP_IO names. Messages take the names from the table.
 */
#include "sys/engine.h"
#include "base/fail.h"
#include "base/print.h"

#include <stdlib.h>
#include <string.h>

/* X(name), fastest first: engine_NAME.c defines neap__io_engine_NAME. */
#define ENGINES(X) X(uring) X(threads) X(sync)

#define DECLARE(name) extern const struct neap__io_engine_kind neap__io_engine_##name;
ENGINES(DECLARE)

#define ROW(name) &neap__io_engine_##name,
static const struct neap__io_engine_kind *const kinds[] = {ENGINES(ROW)};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

int (*neap__io_engine_wrap)(struct neap__io_engine *engine);

const char *neap__io_engine_name(int row)
{
	return row >= 0 && row < KINDS ? kinds[row]->name : NULL;
}

/* "uring, threads or sync" */
static int refuse_name(const char *name)
{
	char names[96] = "";
	for (int i = 0, n = 0; i < KINDS && n < (int)sizeof names; i++)
		n += neap__print(names + n, sizeof names - (size_t)n, "%s%s",
			i == 0		? ""
			: i + 1 < KINDS ? ", "
					: " or ",
			kinds[i]->name);
	return neap__fail(NEAP_EUSAGE, "NEAP_IO='%s' is not valid; choose one of %s", name, names);
}

static int open_named(struct neap__io_engine *engine, const char *name, int depth)
{
	for (int i = 0; i < KINDS; i++) {
		if (strcmp(name, kinds[i]->name) != 0)
			continue;
		int rc = kinds[i]->open(&engine->self, depth);
		if (rc < 0)
			return neap__fail(NEAP_EUSAGE,
				"NEAP_IO=%s does not work on this machine: %s. Unset it, or choose "
				"another engine",
				name, neap_strerror(rc));
		engine->kind = kinds[i];
		neap__print(engine->about, sizeof engine->about, "%s", name);
		return 0;
	}
	return refuse_name(name);
}

static int open_any(struct neap__io_engine *engine, int depth)
{
	const char *name = getenv("NEAP_IO");
	int first = 0, rc = 0;
	if (depth < 1 || depth > NEAP__IO_REQUESTS)
		return neap__fail(NEAP_EUSAGE, "%d requests in flight; it must be between 1 and %d",
			depth, NEAP__IO_REQUESTS);
	if (name && *name)
		return open_named(engine, name, depth);
	for (int i = 0; i < KINDS; i++) {
		rc = kinds[i]->open(&engine->self, depth);
		first = i == 0 ? rc : first;
		if (rc < 0)
			continue;
		engine->kind = kinds[i];
		neap__print(engine->about, sizeof engine->about, "%s%s%s%s%s", kinds[i]->name,
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
	return neap__io_engine_wrap ? neap__io_engine_wrap(engine) : 0;
}

void neap__io_engine_start(struct neap__io_engine *engine, struct neap__io_request *request)
{
	engine->in_flight++;
	engine->kind->start(engine->self, request);
}

struct neap__io_request *neap__io_engine_finish(struct neap__io_engine *engine, double seconds)
{
	if (engine->in_flight == 0)
		return NULL;
	struct neap__io_request *request = engine->kind->finish(engine->self, seconds);
	engine->in_flight -= request != NULL;
	return request;
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

void neap__io_engine_orphan(struct neap__io_engine *engine)
{
	if (engine->kind && engine->kind->orphan)
		engine->kind->orphan(engine->self);
	else if (engine->kind)
		engine->kind->close(engine->self);
	*engine = (struct neap__io_engine){0};
}

void neap__io_request_now(struct neap__io_request *request)
{
	request->answer = request->write ? neap__scratch_write(request->file, request->at,
						   request->bytes, request->offset)
					 : neap__scratch_read(request->file, request->at,
						   request->bytes, request->offset);
}
