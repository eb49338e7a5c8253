/* SPDX-License-Identifier: Apache-2.0 */
/* plan_write.c: a plan as text, one key a line; docs/plan-format.md has the format. */
#include <inttypes.h>
#include <string.h>
#include "base/fail.h"
#include "base/text.h"
#include "plan/text/plan_keys.h"

#define ACTIONS_MOST 1000000

struct plan_writing {
	struct neap__text text;
	int (*write)(void *user, const char *text, size_t length);
	void *user;
};

static int flush(struct plan_writing *w)
{
	if (w->text.error)
		return neap__fail(w->text.error, "plan: out of memory");
	if (w->text.length == 0)
		return 0;
	int rc = w->write(w->user, w->text.data, w->text.length);
	w->text.length = 0;
	return rc;
}

/* What is between blanks: no blank, no control character, no '%' but for %XX. */
static void write_word(struct neap__text *out, const char *word)
{
	for (int plain = 0; *word; word++) {
		int n = plain > 0 ? plain : neap__utf8_bytes(word);
		if (plain == 0 && n > 0 && *word != ' ' && *word != '%' && !neap__is_control(word))
			plain = n;
		neap__text_add(out, plain > 0 ? "%c" : "%%%02x", (unsigned char)*word);
		plain -= plain > 0;
	}
}

static void write_bytes(struct neap__text *out, uint64_t value)
{
	if (value == NEAP_INFINITE)
		neap__text_add(out, "inf");
	else
		neap__text_add(out, "%" PRIu64, value);
}

static int is_zero(const struct neap__key *key, const void *at)
{
	static const char zeros[8];
	uint32_t flags;
	double real;
	switch (key->type) {
	case NEAP__KEY_FLAG:
		memcpy(&flags, at, sizeof flags);
		return !(flags & key->bit);
	case NEAP__KEY_REAL:
		memcpy(&real, at, sizeof real);
		return !(real > 0 || real < 0);
	case NEAP__KEY_INT:
		return memcmp(at, zeros, sizeof(int)) == 0;
	case NEAP__KEY_WORD:
	case NEAP__KEY_NAME:
		return 0;
	default:
		return memcmp(at, zeros, sizeof zeros) == 0;
	}
}

static void write_value(struct neap__text *out, const struct neap__key *key, const void *at)
{
	char room[NEAP__NUMBER_TEXT];
	int64_t count;
	uint64_t bytes;
	double real;
	int whole;
	const char *name;
	switch (key->type) {
	case NEAP__KEY_COUNT:
	case NEAP__KEY_LONG:
		memcpy(&count, at, sizeof count);
		neap__text_add(out, "%" PRId64, count);
		break;
	case NEAP__KEY_INT:
		memcpy(&whole, at, sizeof whole);
		neap__text_add(out, "%d", whole);
		break;
	case NEAP__KEY_BYTES:
		memcpy(&bytes, at, sizeof bytes);
		write_bytes(out, bytes);
		break;
	case NEAP__KEY_REAL:
		memcpy(&real, at, sizeof real);
		neap__text_add(out, "%s", neap__show_real(room, real));
		break;
	case NEAP__KEY_FLAG:
		neap__text_add(out, "1");
		break;
	case NEAP__KEY_WORD:
		write_word(out, at);
		break;
	case NEAP__KEY_NAME:
		memcpy(&name, at, sizeof name);
		neap__text_add(out, "%s", name);
		break;
	}
}

/* The keys of a section; nothing, if none of them has something to say. */
static void write_keys(struct plan_writing *w, enum neap__section section, const void *object)
{
	int titled = 0;
	for (const struct neap__key *key = neap__plan_keys; key->name; key++) {
		const char *at = (const char *)object + key->offset;
		if (key->section != section || (!key->always && is_zero(key, at)))
			continue;
		if (!titled)
			neap__text_add(&w->text, "\n[%s]\n", neap__section_names[section]);
		titled = 1;
		neap__text_add(&w->text, "%s ", key->name);
		write_value(&w->text, key, at);
		neap__text_add(&w->text, "\n");
	}
}

static void write_cell(struct neap__text *out, const struct neap_stages *s,
	const struct neap__stage_column *column, int64_t i)
{
	char room[NEAP__NUMBER_TEXT];
	const void *list;
	memcpy(&list, (const char *)s + column->offset, sizeof list);
	if (column->seconds)
		neap__text_add(out, " %s", neap__show_real(room, ((const double *)list)[i]));
	else
		neap__text_add(out, " %" PRIu64, ((const uint64_t *)list)[i]);
}

static int has_column(const struct neap_stages *s, const struct neap__stage_column *column)
{
	const void *list;
	memcpy(&list, (const char *)s + column->offset, sizeof list);
	return list != NULL;
}

/* Flags, the names of the columns, and a line a stage, the loss last. */
static int write_stages(struct plan_writing *w, const struct neap_chain *c)
{
	const struct neap_stages *s = c->stages;
	neap__text_add(&w->text, "\n[stages]\n");
	for (const struct neap__key *key = neap__plan_keys; key->name; key++)
		if (key->section == NEAP__IN_STAGES)
			neap__text_add(&w->text, "%s %d\n", key->name, (s->flags & key->bit) != 0);
	neap__text_add(&w->text, "columns");
	for (int k = 0; k < NEAP__STAGE_COLUMNS; k++)
		if (has_column(s, &neap__stage_columns[k]))
			neap__text_add(&w->text, " %s", neap__stage_columns[k].name);
	for (int64_t i = 0; i <= c->steps; i++) {
		neap__text_add(&w->text, "\n%" PRId64, i);
		for (int k = 0; k < NEAP__STAGE_COLUMNS; k++) {
			const struct neap__stage_column *column = &neap__stage_columns[k];
			if (!has_column(s, column))
				continue;
			if (i < c->steps || column->more)
				write_cell(&w->text, s, column, i);
			else
				neap__text_add(&w->text, " -");
		}
		if (w->text.length > 60000)
			NEAP_TRY(flush(w));
	}
	neap__text_add(&w->text, "\n");
	return 0;
}

static int write_actions(
	struct plan_writing *w, const struct neap_plan *plan, const struct neap_problem *problem)
{
	char room[NEAP_ACTION_TEXT];
	struct neap_schedule *schedule;
	struct neap_action a;
	int64_t count = 0;
	int rc = neap_schedule_open(&schedule, problem, plan);
	if (rc < 0)
		return rc;
	neap__text_add(&w->text, "\n[actions]\n");
	while (rc >= 0 && (rc = neap_schedule_next(schedule, &a)) > 0) {
		neap__text_add(&w->text, "%s\n", neap_action_show(room, &a));
		if (++count > ACTIONS_MOST)
			rc = neap__fail(NEAP_EUSAGE,
				"plan: more than %d actions, too many for a list", ACTIONS_MOST);
		else if (w->text.length > 60000)
			rc = flush(w);
	}
	neap_schedule_close(schedule);
	return rc;
}

static int write_all(struct plan_writing *w, const struct neap_plan *plan,
	const struct neap_problem *problem, uint32_t flags)
{
	const struct neap_chain *c = &problem->chain;
	neap__text_add(&w->text, "neap plan 1\n");
	write_keys(w, NEAP__IN_CHAIN, problem);
	if (c->stages)
		NEAP_TRY(write_stages(w, c));
	for (int i = 0; i < problem->ntiers; i++)
		write_keys(w, NEAP__IN_TIER, &problem->tiers[i]);
	write_keys(w, NEAP__IN_PLAN, plan);
	write_keys(w, NEAP__IN_PARAMS, plan);
	write_keys(w, NEAP__IN_BLOCKS, plan);
	write_keys(w, NEAP__IN_NEAR, plan);
	for (int64_t i = 0; i < plan->replan_count; i++)
		write_keys(w, NEAP__IN_REPLAN, &plan->replans[i]);
	write_keys(w, NEAP__IN_PREDICTED, plan);
	for (int i = 0; i < problem->ntiers; i++)
		write_keys(w, NEAP__IN_USED, &plan->tiers[i]);
	if (flags & NEAP_WRITE_ACTIONS || plan->actions || c->stages)
		NEAP_TRY(write_actions(w, plan, problem));
	neap__text_add(&w->text, "\nend\n");
	return flush(w);
}

int neap_plan_write(const struct neap_plan *plan, const struct neap_problem *problem,
	uint32_t flags, int (*write)(void *user, const char *text, size_t length), void *user)
{
	NEAP_NEED(plan, problem, write);
	struct plan_writing w = {.write = write, .user = user};
	if (flags & ~(uint32_t)NEAP_WRITE_ACTIONS)
		return neap__fail(NEAP_EUSAGE, "plan: unknown flags");
	if (!plan->feasible)
		return neap__fail(NEAP_EINFEASIBLE, "%s: %s", plan->strategy, plan->why);
	int rc = neap_problem_check(problem);
	if (rc == 0)
		rc = write_all(&w, plan, problem, flags);
	neap__text_free(&w.text);
	return rc;
}
