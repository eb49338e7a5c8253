/* SPDX-License-Identifier: Apache-2.0 */
/* journal_shared.c: what journals of both executors share. */
#include "sweep/journal/journal_shared.h"
#include "sweep/steps/counts.h"
#include "sweep/journal/journal_ranks.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/grow.h"
#include "store/tier_state.h"
#include "sys/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SECONDS 30.0 /* between commits, where the options say 0 */
#define SHARE                                                                                      \
	30.0 /* seconds between commits over those of the last one, at least: 3% of the time */

typedef unsigned long long ull;

int neap__journal_differs(
	const struct neap__journal_base *journal, const char *what, uint64_t there, uint64_t here)
{
	return neap__fail(NEAP_EUSAGE,
		"the journal in '%s' is of another run: %s is %llu there, %llu here. Choose "
		"another directory, or remove %s to start over",
		journal->directory, what, (ull)there, (ull)here, journal->name);
}

int neap__journal_same_strategy(
	const struct neap__journal_base *journal, const char *there, const char *here)
{
	if (strncmp(there, here, 32) == 0)
		return 0;
	return neap__fail(NEAP_EUSAGE,
		"the journal in '%s' is of a run with strategy %.31s, not %s. Choose another "
		"directory, or remove %s to start over",
		journal->directory, there, here, journal->name);
}

int neap__journal_senseless(const struct neap__journal_base *journal)
{
	return neap__fail(NEAP_EFORMAT, "the journal in '%s' is damaged. Remove it to start over",
		journal->directory);
}

struct subject {
	char *at;
	size_t bytes;
	int64_t room;
};

static int add(void *user, const char *from, size_t bytes)
{
	struct subject *text = user;
	if (neap__grow(&text->at, &text->room, (int64_t)(text->bytes + bytes), 1) < 0)
		return neap__fail_errno(ENOMEM, "a journal");
	memcpy(text->at + text->bytes, from, bytes);
	text->bytes += bytes;
	return 0;
}

int neap__journal_write_subject(struct neap__journal *file, uint64_t number, void *identity,
	size_t bytes, uint64_t *plan_bytes, const struct neap_plan *plan,
	const struct neap_problem *problem, uint64_t most)
{
	struct subject text = {0};
	int rc = add(&text, identity, bytes);
	/* A plan that cannot be written is made anew, and compared action by action. */
	if (rc == 0 && plan && neap_plan_write(plan, problem, 0, add, &text) < 0)
		text.bytes = bytes;
	*plan_bytes = text.bytes - bytes;
	if (rc == 0)
		memcpy(text.at, identity, bytes);
	if (rc == 0)
		rc = neap__journal_begin(file, number, text.at, text.bytes, most);
	free(text.at);
	return rc;
}

double neap__journal_every(double option, double took)
{
	double every = option == 0 ? SECONDS : option;
	return every > 0 && every < SHARE * took ? SHARE * took : every;
}

int neap__journal_needs(int saves)
{
	return saves ? 0
		     : neap__fail(NEAP_EUSAGE,
			       "a journal requires grad_save and grad_load, which the model does "
			       "not have");
}

static int open_first(const struct neap__journal_owner *o, int saves)
{
	const struct neap_sweep_options *options = o->options;
	struct neap__journal_base *journal = o->journal;
	NEAP_TRY(neap__journal_needs(saves));
	journal->directory = strdup(options->journal);
	if (!journal->directory)
		return neap__fail_errno(ENOMEM, "a journal");
	NEAP_TRY(neap__scratch_name(journal->name, NEAP__JOURNAL_NAME, options->journal_suffix));
	return neap__journal_open(&journal->file, options->journal, options->journal_suffix,
		options->journal_in_memory);
}

int neap__journal_open_first(const struct neap__journal_owner *o, int saves)
{
	int rc = open_first(o, saves);
	return neap__journal_meet(o->agreement, o->journal->file, rc);
}

void neap__journal_adopt(const struct neap__journal_owner *o, uint64_t epoch)
{
	for (int i = 0; i < o->ntiers; i++)
		(void)neap__tier_adopt(o->tiers[i], epoch);
}

void neap__journal_drop(const struct neap__journal_owner *o)
{
	struct neap__journal_base *journal = o->journal;
	if (!journal->file)
		return;
	neap__journal_remove(journal->file);
	journal->file = NULL;
	journal->resumes = 0;
	neap__journal_adopt(o, 0);
}

void neap__journal_let_go(const struct neap__journal_owner *o)
{
	struct neap__journal_base *journal = o->journal;
	if (journal->finished)
		neap__journal_drop(o);
	neap__journal_close(journal->file);
	neap_saved_free(journal->plan);
	free(journal->directory);
}

int neap__journal_begin_run(const struct neap__journal_owner *o)
{
	struct neap__journal_base *journal = o->journal;
	int rc = 0;
	if (journal->finished)
		neap__journal_drop(o);
	journal->finished = 0;
	journal->seconds_before = 0;
	if (!journal->file)
		rc = neap__journal_open(&journal->file, journal->directory,
			journal->name + sizeof NEAP__JOURNAL_NAME - 1,
			o->options->journal_in_memory);
	NEAP_TRY(neap__journal_meet(o->agreement, journal->file, rc));
	return neap__journal_resume_from(o->agreement, journal->file);
}

void neap__journal_run_began(const struct neap__journal_owner *o)
{
	o->journal->began_at = neap__seconds();
	o->journal->due_at =
		o->journal->began_at + neap__journal_every(o->options->journal_seconds, 0);
}

void neap__journal_resumed(const struct neap__journal_owner *o)
{
	struct neap_sweep_stats *stats = o->stats;
	o->journal->seconds_before = stats->seconds;
	stats->spared = stats->advance_steps + stats->record_steps + stats->backward_steps;
}

void neap__journal_end_run(const struct neap__journal_owner *o, int rc)
{
	o->stats->seconds += o->journal->seconds_before;
	o->stats->started_over = o->agreement->started_over;
	o->agreement->started_over = 0;
	o->journal->finished = rc == 0 && o->journal->file;
}

void neap__journal_take_commit(
	const struct neap__journal_owner *o, int (*write)(void *run), void *run)
{
	struct neap__journal_base *journal = o->journal;
	struct neap_sweep_stats *stats = o->stats;
	double start = neap__seconds();
	int rc = 0;
	for (int i = 0; rc == 0 && i < o->ntiers; i++)
		rc = neap__tier_sync(o->tiers[i]);
	stats->seconds = journal->seconds_before + start - journal->began_at;
	stats->commits++;
	if (rc == 0)
		rc = write(run);
	rc = neap__journal_settle_commit(o->agreement, journal->file, rc);
	stats->commits -= rc < 0;
	stats->commits_failed += rc < 0;
	double end = neap__seconds(), took = end - start;
	stats->journal += took;
	journal->due_at = end + neap__journal_every(o->options->journal_seconds, took);
}

int neap__journal_is_due(const struct neap__journal_base *journal)
{
	return journal->file && neap__seconds() >= journal->due_at;
}

static int count_bytes(void *to, const void *bytes, size_t count)
{
	uint64_t *sum = to;
	(void)bytes;
	*sum = neap__sat_add(*sum, count);
	return 0;
}

static int give(void *to, const void *bytes, size_t count)
{
	return neap__journal_write(to, bytes, count);
}

static int take(void *from, void *bytes, size_t count)
{
	return neap__journal_read(from, bytes, count);
}

int neap__journal_count(neap__grad_save *save, void *user, uint64_t *bytes)
{
	*bytes = 0;
	neap_detail_set(NULL);
	return neap__step_answer("grad_save", save(user, count_bytes, bytes));
}

int neap__journal_save(struct neap__journal *file, neap__grad_save *save, void *user)
{
	neap_detail_set(NULL);
	return neap__step_answer("grad_save", save(user, give, file));
}

int neap__journal_load(struct neap__journal *file, neap__grad_load *load, void *user)
{
	neap_detail_set(NULL);
	return neap__step_answer("grad_load", load(user, take, file));
}

int neap__journal_write_out(struct neap__journal *file, void *bytes, size_t count)
{
	return neap__journal_write(file, bytes, count);
}

int neap__journal_read_in(struct neap__journal *file, void *bytes, size_t count)
{
	return neap__journal_read(file, bytes, count);
}

int neap__journal_move(struct neap__journal *file, const struct neap__journal_field *fields,
	size_t count, neap__journal_mover *move)
{
	for (size_t i = 0; i < count; i++)
		NEAP_TRY(move(file, fields[i].at, fields[i].bytes));
	return 0;
}

int neap__commit_write_pages(void *file, const unsigned char *bytes, uint64_t from, uint64_t count)
{
	(void)from;
	return neap__journal_write_pages(file, bytes, (size_t)count);
}

int neap__commit_read_pages(void *file, unsigned char *bytes, uint64_t count)
{
	return neap__journal_read_pages(file, bytes, (size_t)count);
}
