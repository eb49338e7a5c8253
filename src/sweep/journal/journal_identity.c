/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal_identity.c: says which sweep a journal belongs to. The journal holds the plan, too:
 * measured costs differ from process to process, and with them plans, so a sweep that resumes
 * takes the plan that it began with.
 */
#include <neap/neap.h>
#include "sweep/journal/journal_identity.h"
#include "sweep/journal/journal_shared.h"
#include "sweep/table_sizes.h"
#include "base/fail.h"
#include "base/print.h"
#include "sys/clock.h"

#include <string.h>

/* A hash of what a commit's layout depends on: its tables are those of this very build. */
static uint32_t format(void)
{
	const uint64_t sizes[] = {sizeof(struct neap__journal_identity), sizeof(struct neap_sweep),
		sizeof(struct neap__ticket), sizeof(struct neap__tape_record),
		sizeof(struct neap__slot)};
	uint64_t hash = neap__journal_hash(1, NEAP_VERSION, sizeof NEAP_VERSION);
	return (uint32_t)neap__journal_hash(hash, sizes, sizeof sizes);
}

static int differs(const struct neap_sweep *s, const char *what, uint64_t there, uint64_t here)
{
	return neap__journal_differs(&s->journal.base, what, there, here);
}

/* Fills in what is known before there is a plan. */
static void describe(struct neap__journal_identity *identity, const struct neap_sweep *s)
{
	const char *strategy = s->options.strategy ? s->options.strategy : "auto";
	*identity = (struct neap__journal_identity){
		.version = format(),
		.ntiers = (uint32_t)s->options.ntiers,
		.steps = s->options.steps,
		.state = s->ops.state_bytes,
		.adjoint = s->ops.adjoint_bytes,
		.tape = s->ops.tape_bytes,
		.tape_max = s->ops.tape_max_bytes,
		.log_max = s->ops.log_max_bytes,
		.key = s->options.journal_key,
	};
	if (!s->open)
		neap__print(identity->strategy, sizeof identity->strategy, "%s", strategy);
}

static void describe_plan(struct neap__journal_identity *identity, const struct neap_sweep *s)
{
	const struct neap__table_sizes *sizes = &s->sizes;
	identity->arena = s->arena.bytes;
	identity->slots = sizes->slots;
	identity->extents = sizes->extents;
	identity->ranges = sizes->ranges;
	identity->pieces = sizes->pieces;
	identity->spans = sizes->spans;
	identity->span_rows = sizes->span_rows;
	for (int i = 0; i < s->problem.ntiers; i++) {
		identity->places[i] = s->places[i];
		identity->tape_places[i] = sizes->tape_places[i];
		identity->tape_place_bytes[i] = s->tape_place_bytes[i];
	}
}

/* A chain of unknown length has no plan: what its actions depend on takes its place. */
static void describe_online(struct neap__journal_identity *identity, const struct neap_sweep *s)
{
	identity->chain = s->problem.chain;
	identity->chain.steps = 0;
	memcpy(identity->tiers, s->problem.tiers, sizeof identity->tiers);
}

static void take_online(struct neap_sweep *s, const struct neap__journal_identity *there)
{
	s->problem.chain = there->chain;
	memcpy(s->problem.tiers, there->tiers, sizeof s->problem.tiers);
}

/* The mean of tapes that vary may differ: the journal's plan has its own. */
static int same_model(const struct neap_sweep *s, const struct neap__journal_identity *there)
{
	struct neap__journal_identity here;
	describe(&here, s);
	int varies = here.tape_max > here.tape && there->tape_max > there->tape;
	const struct {
		const char *name;
		uint64_t there, here;
	} rows[] = {
		{"the format", there->version, here.version},
		{"the number of slow tiers", there->ntiers, here.ntiers},
		{"the number of steps", (uint64_t)there->steps, (uint64_t)here.steps},
		{"state_bytes", there->state, here.state},
		{"adjoint_bytes", there->adjoint, here.adjoint},
		{"tape_bytes", varies ? 0 : there->tape, varies ? 0 : here.tape},
		{"tape_max_bytes", there->tape_max, here.tape_max},
		{"log_max_bytes", there->log_max, here.log_max},
		{"the key", there->key, here.key},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (rows[i].there != rows[i].here)
			return differs(s, rows[i].name, rows[i].there, rows[i].here);
	return neap__journal_same_strategy(&s->journal.base, there->strategy, here.strategy);
}

int neap__journal_identity_take(struct neap_sweep *s)
{
	struct neap__journal_run *journal = &s->journal;
	size_t bytes;
	const char *text = neap__journal_subject(journal->base.file, &bytes);
	journal->base.resumes = 0;
	if (!text)
		return 0;
	if (bytes < sizeof journal->identity)
		return differs(s, "the format", 0, format());
	memcpy(&journal->identity, text, sizeof journal->identity);
	if (bytes != sizeof journal->identity + journal->identity.plan)
		return differs(s, "the format", journal->identity.version, format());
	NEAP_TRY(same_model(s, &journal->identity));
	journal->base.resumes = 1;
	if (s->ops.ended)
		take_online(s, &journal->identity);
	if (journal->identity.plan == 0 || s->options.saved || s->open)
		return 0;
	NEAP_TRY(neap_plan_read(&journal->base.plan, text + sizeof journal->identity,
		(size_t)journal->identity.plan, 0));
	s->options.saved = journal->base.plan;
	return 0;
}

void neap__journal_identity_size(struct neap_sweep *s)
{
	for (int i = 0; s->journal.base.resumes && i < s->problem.ntiers; i++) {
		s->places[i] = s->journal.identity.places[i];
		s->tape_place_bytes[i] = s->journal.identity.tape_place_bytes[i];
	}
}

static uint64_t hash_of_x0(const struct neap_sweep *s)
{
	return s->x0 ? neap__journal_hash(1, s->x0, s->ops.state_bytes) : 0;
}

int neap__journal_identity_same(const struct neap_sweep *s)
{
	const struct neap__journal_identity *there = &s->journal.identity;
	struct neap__journal_identity here = *there;
	describe_plan(&here, s);
	if (there->x0 != hash_of_x0(s))
		return differs(s, "the hash of x_0", there->x0, hash_of_x0(s));
	if (memcmp(there, &here, sizeof here) != 0)
		return differs(s, "the plan's arena", there->arena, here.arena);
	return 0;
}

int neap__journal_identity_begin(
	struct neap_sweep *s, uint64_t number, uint64_t gathered, uint64_t most)
{
	struct neap__journal_identity *identity = &s->journal.identity;
	describe(identity, s);
	describe_plan(identity, s);
	identity->x0 = hash_of_x0(s);
	identity->gathered = gathered;
	identity->epoch = neap__unique();
	if (s->ops.ended)
		describe_online(identity, s);
	int writes_plan = !s->open && !s->ops.ended;
	return neap__journal_write_subject(s->journal.base.file, number, identity, sizeof *identity,
		&identity->plan, writes_plan ? &s->plan : NULL, &s->problem, most);
}
