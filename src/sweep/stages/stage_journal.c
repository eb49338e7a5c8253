/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_journal.c: the journal of a sweep of stages from create to free, and which sweep it
 * belongs to. It holds the plan, too, since measured costs differ from process to process; the
 * same plan makes the same program, of which the journal keeps a hash.
 */
#include <neap/neap.h>
#include "sweep/stages/stage_journal.h"
#include "sweep/journal/journal_ranks.h"
#include "sweep/stages/join_sweep.h"
#include "base/fail.h"
#include "base/print.h"
#include "sys/clock.h"

#include <string.h>

/* A hash of what a commit's layout depends on: its tables are those of this very build. */
static uint32_t format(void)
{
	const uint64_t sizes[] = {sizeof(struct neap__stage_identity),
		sizeof(struct neap_stage_sweep), sizeof(struct stage_run),
		sizeof(struct neap__stage_transfer)};
	uint64_t hash = neap__journal_hash(2, NEAP_VERSION, sizeof NEAP_VERSION);
	return (uint32_t)neap__journal_hash(hash, sizes, sizeof sizes);
}

static int differs(
	const struct neap_stage_sweep *s, const char *what, uint64_t there, uint64_t here)
{
	return neap__journal_differs(&s->journal.base, what, there, here);
}

uint64_t neap__stage_sizes_hash(const struct neap_stage_sweep *s)
{
	const struct neap_stages *stages = &s->stages;
	size_t n = (size_t)s->problem.chain.steps;
	uint64_t hash = neap__journal_hash(stages->flags, &s->ops.adjoint_bytes, sizeof(size_t));
	hash = neap__journal_hash(hash, stages->state, (n + 1) * sizeof *stages->state);
	hash = neap__journal_hash(hash, stages->tape, n * sizeof *stages->tape);
	hash = neap__journal_hash(hash, stages->advance_tmp, n * sizeof *stages->advance_tmp);
	hash = neap__journal_hash(hash, stages->record_tmp, n * sizeof *stages->record_tmp);
	return neap__journal_hash(
		hash, stages->backward_tmp, (n + 1) * sizeof *stages->backward_tmp);
}

/* Fills in what is known before there is a plan. */
static void describe(struct neap__stage_identity *identity, const struct neap_stage_sweep *s)
{
	const char *strategy = s->options.strategy ? s->options.strategy : "auto";
	*identity = (struct neap__stage_identity){
		.version = format(),
		.ntiers = (uint32_t)s->options.ntiers,
		.stages = s->options.steps,
		.sizes = neap__stage_sizes_hash(s),
		.key = s->options.journal_key,
	};
	neap__print(identity->strategy, sizeof identity->strategy, "%s", strategy);
}

uint64_t neap__stage_calls_hash(const struct neap_stage_sweep *s)
{
	const struct neap__stage_program *p = &s->program;
	uint64_t hash = s->staging_bytes;
	for (int64_t i = 0; i < p->ncalls; i++) {
		const struct neap__stage_call *c = &p->calls[i];
		const int64_t head[] = {c->kind, c->first, c->i};
		hash = neap__journal_hash(hash, head, sizeof head);
		hash = neap__journal_hash(hash, c->at, sizeof c->at);
	}
	return hash;
}

static uint64_t hash_of_program(const struct neap_stage_sweep *s)
{
	const struct neap__stage_program *p = &s->program;
	uint64_t hash = neap__stage_calls_hash(s);
	for (int64_t i = 0; i < p->nrecords; i++) {
		const int64_t row[] = {p->records[i].tier, p->records[i].place};
		hash = neap__journal_hash(hash, row, sizeof row);
	}
	return hash;
}

static int same_model(const struct neap_stage_sweep *s, const struct neap__stage_identity *there)
{
	struct neap__stage_identity here;
	describe(&here, s);
	const struct {
		const char *name;
		uint64_t there, here;
	} rows[] = {
		{"the format", there->version, here.version},
		{"the number of slow tiers", there->ntiers, here.ntiers},
		{"the number of stages", (uint64_t)there->stages, (uint64_t)here.stages},
		{"the hash of the stages' bytes", there->sizes, here.sizes},
		{"the key", there->key, here.key},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (rows[i].there != rows[i].here)
			return differs(s, rows[i].name, rows[i].there, rows[i].here);
	return neap__journal_same_strategy(&s->journal.base, there->strategy, here.strategy);
}

/* Compares with a journal that is there, NEAP_EUSAGE if it differs; takes its plan. */
static int take_identity(struct neap_stage_sweep *s)
{
	struct neap__stage_journal *journal = &s->journal;
	struct neap__stage_identity *there = &journal->identity;
	size_t bytes;
	const char *text = neap__journal_subject(journal->base.file, &bytes);
	journal->base.resumes = 0;
	if (!text)
		return 0;
	if (bytes < sizeof *there)
		return differs(s, "the format", 0, format());
	memcpy(there, text, sizeof *there);
	if (there->version != format() || bytes != sizeof *there + there->plan)
		return differs(s, "the format", there->version, format());
	NEAP_TRY(same_model(s, there));
	journal->base.resumes = 1;
	if (there->plan == 0 || s->options.saved)
		return 0;
	NEAP_TRY(neap_plan_read(&journal->base.plan, text + sizeof *there, (size_t)there->plan, 0));
	s->options.saved = journal->base.plan;
	return 0;
}

int neap__stage_journal_layout(
	const char *directory, const char *suffix, int in_memory, struct neap__stage_layout *layout)
{
	struct neap__journal *file;
	struct neap__stage_identity identity;
	size_t bytes;
	NEAP_TRY(neap__journal_open(&file, directory, suffix, in_memory));
	const char *text = neap__journal_subject(file, &bytes);
	int there = text && bytes >= sizeof identity;
	if (there)
		memcpy(&identity, text, sizeof identity);
	neap__journal_close(file);
	/* One that is not of this build is refused later, with the line. */
	there = there && identity.version == format();
	if (there)
		*layout = identity.layout;
	return there;
}

int neap__stage_journal_attach(struct neap_stage_sweep *s)
{
	const struct neap__journal_owner own = neap__stage_journal_own(s);
	if (!s->options.journal)
		return 0;
	NEAP_TRY(neap__journal_open_first(&own, s->ops.grad_save && s->ops.grad_load));
	return neap__agree_code(&s->agreement, NEAP__AGREE_JOURNAL, take_identity(s));
}

void neap__stage_journal_budget(struct neap_stage_sweep *s)
{
	if (s->journal.base.resumes)
		s->problem.memory = s->journal.identity.memory;
}

void neap__stage_journal_detach(struct neap_stage_sweep *s)
{
	const struct neap__journal_owner own = neap__stage_journal_own(s);
	neap__journal_let_go(&own);
	s->journal = (struct neap__stage_journal){0};
}

/* Bit k: the caller wants dx_0 of branch k. */
static uint64_t given_of(const struct neap_stage_sweep *s)
{
	uint64_t given = 0;
	for (int k = 0; k < s->layout.branches; k++)
		given |= (uint64_t)(s->dx0[k] != NULL) << k;
	return given;
}

static uint64_t hash_of_x0(const struct neap_stage_sweep *s)
{
	uint64_t hash = 0;
	for (int k = 0; k < s->layout.branches; k++)
		hash = s->x0[k] ? neap__journal_hash(hash + 1, s->x0[k], (size_t)s->x0_bytes[k])
				: hash + 2;
	return hash;
}

static int start_anew(struct stage_run *r, const struct neap__journal_owner *own, uint64_t x0)
{
	struct neap_stage_sweep *s = r->s;
	struct neap__stage_identity *identity = &s->journal.identity;
	struct neap_plan plan = s->plan;
	uint64_t gathered, number;
	plan.peak_bytes = s->schedule_peak; /* what a reader finds in its actions */
	NEAP_TRY(neap__journal_draw_number(&s->agreement, &number));
	NEAP_TRY(neap__journal_count(s->ops.grad_save, s->user, &gathered));
	describe(identity, s);
	identity->program = hash_of_program(s);
	identity->memory = s->problem.memory;
	identity->x0 = x0;
	identity->given = given_of(s);
	identity->layout = s->layout;
	identity->epoch = neap__unique();
	NEAP_TRY(neap__journal_write_subject(s->journal.base.file, number, identity,
		sizeof *identity, &identity->plan, s->layout.interleaved ? NULL : &plan,
		&s->problem, neap__stage_commit_largest(s, gathered)));
	neap__journal_adopt(own, identity->epoch);
	return 0;
}

static int resume(struct stage_run *r, const struct neap__journal_owner *own, uint64_t x0)
{
	struct neap_stage_sweep *s = r->s;
	const struct neap__stage_identity *there = &s->journal.identity;
	if (there->given != given_of(s))
		return differs(s, "the set of gradients asked for", there->given, given_of(s));
	if (there->x0 != x0)
		return differs(s, "the hash of x_0", there->x0, x0);
	if (there->program != hash_of_program(s))
		return differs(s, "the hash of the program", there->program, hash_of_program(s));
	NEAP_TRY(neap__stage_commit_numbers(r));
	neap__journal_adopt(own, there->epoch);
	neap__journal_resumed(own);
	return 1;
}

int neap__stage_journal_start(struct stage_run *r)
{
	struct neap_stage_sweep *s = r->s;
	const struct neap__journal_owner own = neap__stage_journal_own(s);
	if (!s->journal.base.directory)
		return 0;
	int there = neap__journal_begin_run(&own);
	NEAP_TRY(there);
	uint64_t x0 = hash_of_x0(s);
	neap__journal_run_began(&own);
	int rc = there ? resume(r, &own, x0) : start_anew(r, &own, x0);
	return neap__agree_code(&s->agreement, NEAP__AGREE_JOURNAL, rc);
}

void neap__stage_journal_end(struct neap_stage_sweep *s, int rc)
{
	const struct neap__journal_owner own = neap__stage_journal_own(s);
	neap__journal_end_run(&own, rc);
}
