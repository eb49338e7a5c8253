/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agree.c: the hook and its stamp, the problem, the plan's text, and polls. One operation is
 * enough: the largest is the least of negatives, values are the same where both agree, and one rank
 * tells all others where they give INT64_MAX. Seconds that are not negative are in the order of
 * their bits.
 */
#include "sweep/agree.h"
#include "base/half.h"
#include "base/fail.h"
#include "base/grow.h"
#include "base/print.h"
#include "store/journal_file.h"
#include "sys/clock.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POLL_SECONDS 0.1
#define STRETCH_MOST 65536 /* work between polls */
#define TEXT_BYTES 7	   /* of a text in a value */
#define TEXT_MOST (INT64_C(1) << 30)

static const char *const site_names[] = {
#define NEAP__AGREE_SITE(name, text) [NEAP__AGREE_##name] = text,
	NEAP__AGREE_SITES
#undef NEAP__AGREE_SITE
};

int (*neap__agree_always)(void *user, int64_t *values, int count);

void neap__agree_take(struct neap__agree_state *a, const struct neap_sweep_options *o)
{
	*a = (struct neap__agree_state){.agree = o->agree ? o->agree : neap__agree_always,
		.leave = o->leave,
		.user = o->agree_user,
		.stretch = 1};
}

void neap__agree_begin_run(struct neap__agree_state *a)
{
	if (!a->agree)
		return;
	a->over = a->broken = a->known = a->asked = a->interrupted = a->due = 0;
	a->number = a->work = 0;
	a->stretch = 1;
	a->polled_at = neap__seconds();
}

/* No agreement comes after one that failed. */
static int fail_for_good(struct neap__agree_state *a, int rc)
{
	a->broken = rc;
	neap__print(a->line, sizeof a->line, "%s", neap_detail());
	return rc;
}

static int hook_failed(struct neap__agree_state *a, int rc)
{
	if (rc > 0)
		rc = neap__fail(NEAP_EMODEL, "neap_sweep_options.agree answered %d", rc);
	else if (!neap_detail()[0])
		neap__fail(rc, "neap_sweep_options.agree answered %d: %s", rc, neap_strerror(rc));
	fail_for_good(a, rc);
	if (a->leave)
		a->leave(a->user, rc);
	return neap__fail(rc, "%s", a->line);
}

int neap__agree(struct neap__agree_state *a, enum neap__agree_site site, int64_t *values, int count)
{
	if (!a->agree || a->over)
		return 0;
	if (a->broken)
		return neap__fail(a->broken, "%s", a->line);
	int64_t number = a->number++, stamp = number << 8 | site;
	int64_t frame[NEAP__AGREE_VALUES + 2] = {stamp, -stamp};
	char line[NEAP__DETAIL_BYTES]; /* of an error that is on its way */
	neap__print(line, sizeof line, "%s", neap_detail());
	memcpy(frame + 2, values, (size_t)count * sizeof *values);
	neap_detail_set(NULL);
	int rc = a->agree(a->user, frame, NEAP__AGREE_VALUES + 2);
	if (rc != 0)
		return hook_failed(a, rc);
	if (frame[0] != stamp || frame[1] != -stamp)
		return fail_for_good(
			a, neap__fail(NEAP_EILLEGAL, "the ranks went apart at agreement %lld (%s)",
				   (long long)number, site_names[site]));
	memcpy(values, frame + 2, (size_t)count * sizeof *values);
	neap_detail_set(line[0] ? line : NULL);
	return 0;
}

int neap__agree_code(struct neap__agree_state *a, enum neap__agree_site site, int rc)
{
	int64_t least = rc < 0 ? rc : 0;
	if (!a->agree || a->over)
		return rc;
	NEAP_TRY(neap__agree(a, site, &least, 1));
	if (least == 0)
		return rc;
	a->known = (int)least;
	if (rc < 0)
		return (int)least;
	return neap__fail((int)least, "another rank: %s", neap_strerror((int)least));
}

int neap__agree_answer(struct neap__agree_state *a, int answer)
{
	int64_t least = answer < 0 ? answer : 0;
	if (neap__agree(a, NEAP__AGREE_WAIT, &least, 1) < 0)
		return answer;
	return (int)least;
}

int neap__agree_used(struct neap__agree_state *a, const char *name, size_t *used, int64_t done)
{
	int64_t most = *used > INT64_MAX ? INT64_MAX : (int64_t)*used;
	int64_t values[] = {-most, done, -done};
	NEAP_TRY(neap__agree(a, NEAP__AGREE_RECORD, values, 3));
	*used = (size_t)-values[0];
	if (values[1] == -values[2])
		return 0;
	a->known = NEAP_EMODEL;
	return neap__fail(NEAP_EMODEL,
		"the model's %s came to step %lld on one rank, %lld on another", name,
		(long long)values[1], -(long long)values[2]);
}

/* Seconds as a value in their order. */
static int64_t order_of(double seconds)
{
	return seconds > 0 ? (int64_t)neap__double_bits(seconds) : 0;
}

static double seconds_of(int64_t bits)
{
	return neap__bits_double((uint64_t)bits);
}

int neap__agree_list(struct neap__agree_state *a, double *seconds, int64_t n)
{
	int64_t values[NEAP__AGREE_VALUES];
	for (int64_t from = 0; a->agree && from < n; from += NEAP__AGREE_VALUES) {
		int count = n - from < NEAP__AGREE_VALUES ? (int)(n - from) : NEAP__AGREE_VALUES;
		for (int i = 0; i < count; i++)
			values[i] = -order_of(seconds[from + i]);
		NEAP_TRY(neap__agree(a, NEAP__AGREE_COST, values, count));
		for (int i = 0; i < count; i++)
			seconds[from + i] = seconds_of(-values[i]);
	}
	return 0;
}

int neap__agree_seconds(struct neap__agree_state *a, double *seconds)
{
	return neap__agree_list(a, seconds, 1);
}

/* A number whose negative there is. */
static int64_t value_of(uint64_t value)
{
	return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

int neap__agree_same(struct neap__agree_state *a, enum neap__agree_site site, int rc,
	const struct neap__agree_row *rows, int count)
{
	enum { AT_ONCE = NEAP__AGREE_VALUES / 2 };
	int64_t values[NEAP__AGREE_VALUES];
	if (!a->agree)
		return rc;
	NEAP_TRY(neap__agree_code(a, site, rc));
	for (int from = 0; from < count; from += AT_ONCE) {
		int n = count - from < AT_ONCE ? count - from : AT_ONCE;
		for (int i = 0; i < n; i++) {
			values[2 * i] = value_of(rows[from + i].value);
			values[2 * i + 1] = -values[2 * i];
		}
		NEAP_TRY(neap__agree(a, site, values, 2 * n));
		for (int i = 0; i < n; i++)
			if (values[2 * i] != -values[2 * i + 1])
				return neap__fail(NEAP_EUSAGE,
					"the ranks differ in %s: %lld to %lld", rows[from + i].name,
					(long long)values[2 * i], -(long long)values[2 * i + 1]);
	}
	return rc;
}

uint64_t neap__agree_hash(const void *bytes, size_t count)
{
	return neap__journal_hash(1, bytes, count) >> 2;
}

uint64_t neap__agree_hash_name(const char *name)
{
	return name ? neap__agree_hash(name, strlen(name)) : 0;
}

/* Kinds of numbers of a problem. */
enum number_kind { MOST_SECONDS, LEAST_RATE, LEAST_BYTES, MOST_BYTES, ANY_FLAGS };

struct problem_number {
	enum number_kind kind;
	void *at;
};

#define NUMBERS_MOST (12 + 9 * NEAP_TIERS_MAX)

static int list_numbers(struct neap_problem *p, struct problem_number *rows)
{
	struct neap_chain *c = &p->chain;
	const struct problem_number chain[] = {
		{MOST_SECONDS, &c->advance},
		{MOST_SECONDS, &c->record},
		{MOST_SECONDS, &c->backward},
		{MOST_SECONDS, &c->replay},
		{MOST_SECONDS, &c->call},
		{MOST_SECONDS, &c->slot_write},
		{MOST_SECONDS, &c->slot_read},
		{ANY_FLAGS, &c->flags},
		{LEAST_BYTES, &p->memory},
	};
	int n = sizeof chain / sizeof chain[0];
	memcpy(rows, chain, sizeof chain);
	for (int i = 0; i < p->ntiers; i++) {
		struct neap_tier_spec *t = &p->tiers[i];
		const struct problem_number tier[] = {
			{LEAST_BYTES, &t->capacity},
			{LEAST_RATE, &t->write_rate},
			{LEAST_RATE, &t->read_rate},
			{MOST_SECONDS, &t->write_fixed},
			{MOST_SECONDS, &t->read_fixed},
			{MOST_SECONDS, &t->cpu},
			{MOST_SECONDS, &t->cpu_fixed},
			{MOST_BYTES, &t->staging},
			{ANY_FLAGS, &t->flags},
		};
		memcpy(rows + n, tier, sizeof tier);
		n += (int)(sizeof tier / sizeof tier[0]);
	}
	return n;
}

/* A rate of 0 is infinite. */
static int64_t pack(const struct problem_number *row)
{
	uint64_t bytes;
	uint32_t flags;
	double real;
	switch (row->kind) {
	case MOST_SECONDS:
		memcpy(&real, row->at, sizeof real);
		return -order_of(real);
	case LEAST_RATE:
		memcpy(&real, row->at, sizeof real);
		return order_of(real > 0 ? real : INFINITY);
	case ANY_FLAGS:
		memcpy(&flags, row->at, sizeof flags);
		return -(int64_t)flags;
	default:
		memcpy(&bytes, row->at, sizeof bytes);
		return row->kind == MOST_BYTES ? -value_of(bytes) : value_of(bytes);
	}
}

static void unpack(const struct problem_number *row, int64_t value)
{
	uint64_t bytes = (uint64_t)(row->kind == MOST_BYTES ? -value : value);
	uint32_t flags = (uint32_t)-value;
	double real = seconds_of(row->kind == MOST_SECONDS ? -value : value);
	switch (row->kind) {
	case MOST_SECONDS:
		memcpy(row->at, &real, sizeof real);
		break;
	case LEAST_RATE:
		real = isinf(real) ? 0 : real;
		memcpy(row->at, &real, sizeof real);
		break;
	case ANY_FLAGS:
		memcpy(row->at, &flags, sizeof flags);
		break;
	default:
		bytes = bytes == INT64_MAX ? NEAP_INFINITE : bytes;
		memcpy(row->at, &bytes, sizeof bytes);
	}
}

int neap__agree_problem(struct neap__agree_state *a, int rc, struct neap_problem *problem)
{
	struct problem_number rows[NUMBERS_MOST];
	int64_t values[NEAP__AGREE_VALUES];
	if (!a->agree)
		return rc;
	NEAP_TRY(neap__agree_code(a, NEAP__AGREE_PROBLEM, rc));
	int n = list_numbers(problem, rows);
	for (int from = 0; from < n; from += NEAP__AGREE_VALUES) {
		int count = n - from < NEAP__AGREE_VALUES ? n - from : NEAP__AGREE_VALUES;
		for (int i = 0; i < count; i++)
			values[i] = pack(&rows[from + i]);
		NEAP_TRY(neap__agree(a, NEAP__AGREE_PROBLEM, values, count));
		for (int i = 0; i < count; i++)
			unpack(&rows[from + i], values[i]);
	}
	return rc;
}

struct agreed_text {
	char *at;
	int64_t bytes, room;
};

static int add_text(void *user, const char *from, size_t bytes)
{
	struct agreed_text *text = user;
	if (neap__grow(&text->at, &text->room, text->bytes + (int64_t)bytes, 1) < 0)
		return neap__fail_errno(ENOMEM, "the text of a plan");
	memcpy(text->at + text->bytes, from, bytes);
	text->bytes += (int64_t)bytes;
	return 0;
}

static int hash_text(void *user, const char *from, size_t bytes)
{
	uint64_t *hash = user;
	*hash = neap__journal_hash(*hash, from, bytes);
	return 0;
}

uint64_t neap__agree_plan_hash(const struct neap_plan *plan, const struct neap_problem *problem)
{
	uint64_t hash = 1;
	return neap_plan_write(plan, problem, 0, hash_text, &hash) < 0 ? 0 : hash >> 2;
}

/* Sends the leader's text; the others have room for it. */
static int send_text(struct neap__agree_state *a, int leads, struct agreed_text *text)
{
	int64_t values[NEAP__AGREE_VALUES];
	for (int64_t at = 0; at < text->bytes; at += NEAP__AGREE_VALUES * TEXT_BYTES) {
		int count = 0;
		for (int64_t from = at; from < text->bytes && count < NEAP__AGREE_VALUES;
			from += TEXT_BYTES, count++) {
			int64_t n = text->bytes - from;
			values[count] = leads ? 0 : INT64_MAX;
			if (leads)
				memcpy(&values[count], text->at + from,
					(size_t)(n < TEXT_BYTES ? n : TEXT_BYTES));
		}
		NEAP_TRY(neap__agree(a, NEAP__AGREE_PLAN, values, count));
		for (int i = 0; i < count; i++) {
			int64_t from = at + i * TEXT_BYTES, n = text->bytes - from;
			memcpy(text->at + from, &values[i],
				(size_t)(n < TEXT_BYTES ? n : TEXT_BYTES));
		}
	}
	return 0;
}

/* What the leader has to send: the plan's text, or the line that says why there is none. */
static int make_text(const struct neap_problem *problem,
	int (*make)(void *user, struct neap_plan *plan), void *user, struct agreed_text *text)
{
	struct neap_plan plan = {.size = sizeof plan};
	int rc = make(user, &plan);
	if (rc == 0)
		rc = neap_plan_write(&plan, problem, 0, add_text, text);
	if (rc < 0) {
		text->bytes = 0;
		if (add_text(text, neap_detail(), strlen(neap_detail())) < 0)
			text->bytes = 0;
	}
	return rc;
}

static int share_text(struct neap__agree_state *a, const struct neap_problem *problem,
	int (*make)(void *user, struct neap_plan *plan), void *user, struct agreed_text *text)
{
	int64_t mine = (int64_t)(neap__unique() >> 2), least = mine;
	NEAP_TRY(neap__agree(a, NEAP__AGREE_LEADER, &least, 1));
	int leads = mine == least;
	int64_t head[] = {INT64_MAX, INT64_MAX};
	if (leads) {
		head[0] = make_text(problem, make, user, text);
		head[1] = text->bytes;
	}
	NEAP_TRY(neap__agree(a, NEAP__AGREE_PLAN, head, 2));
	int rc = 0;
	if (head[1] < 0 || head[1] > TEXT_MOST)
		rc = neap__fail(NEAP_EFORMAT, "a plan's text of %lld bytes", (long long)head[1]);
	else if (neap__grow(&text->at, &text->room, head[1] + 1, 1) < 0)
		rc = neap__fail_errno(ENOMEM, "the text of a plan");
	NEAP_TRY(neap__agree_code(a, NEAP__AGREE_PLAN, rc));
	text->bytes = head[1];
	NEAP_TRY(send_text(a, leads, text));
	if (head[0] >= 0)
		return 0;
	text->at[text->bytes] = '\0';
	return neap__fail((int)head[0], "%s", text->at);
}

int neap__agree_plan(struct neap__agree_state *a, const struct neap_problem *problem,
	int (*make)(void *user, struct neap_plan *plan), void *user, struct neap_saved **saved)
{
	struct agreed_text text = {0};
	*saved = NULL;
	int rc = share_text(a, problem, make, user, &text);
	if (rc == 0) {
		rc = neap_plan_read(saved, text.at, (size_t)text.bytes, 0);
		rc = neap__agree_code(a, NEAP__AGREE_PLAN, rc);
	}
	free(text.at);
	if (rc < 0) {
		neap_saved_free(*saved);
		*saved = NULL;
	}
	return rc;
}

/* Work until the next poll: that of POLL_SECONDS, at most twice what it was. */
static int64_t next_stretch(const struct neap__agree_state *a, int64_t done, double now)
{
	double seconds = now - a->polled_at, most = 2.0 * (double)a->stretch;
	double want = seconds > 0 ? POLL_SECONDS * (double)done / seconds : most;
	want = want < most ? want : most;
	return want < 1 ? 1 : want > STRETCH_MOST ? STRETCH_MOST : (int64_t)want;
}

int neap__agree_poll(struct neap__agree_state *a, int64_t work, int due, int often)
{
	if (!a->agree || a->over)
		return 0;
	if (a->broken)
		return neap__fail(a->broken, "%s", a->line);
	if (work - a->work < a->stretch)
		return 0;
	double now = neap__seconds();
	int64_t values[] = {!a->asked, !due, often ? 1 : next_stretch(a, work - a->work, now)};
	NEAP_TRY(neap__agree(a, NEAP__AGREE_POLL, values, 3));
	a->interrupted = values[0] == 0;
	a->due |= values[1] == 0;
	a->stretch = values[2];
	a->work = work;
	a->polled_at = now;
	return 0;
}

int neap__agree_end(struct neap__agree_state *a, int rc)
{
	if (!a->agree || a->over)
		return rc;
	if (a->broken) {
		rc = neap__fail(a->broken, "%s", a->line);
	} else if (rc < 0 && rc != a->known && a->leave) {
		char own[NEAP__DETAIL_BYTES];
		neap__print(own, sizeof own, "%s", neap_detail());
		fail_for_good(a, rc);
		a->leave(a->user, rc);
		rc = neap__fail(rc, "%s", own);
	} else {
		rc = neap__agree_code(a, NEAP__AGREE_END, rc);
	}
	a->over = 1;
	return rc;
}
