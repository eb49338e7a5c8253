/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_parse.c: reads the text of a plan line by line. Every number must be of its kind and in
 * its range, every key known and there once, every table as long as the chain.
 */
#include "plan/text/plan_parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "plan/text/action_text.h"
#include "base/fail.h"
#include "plan/core/stage_sizes.h"
#include "plan/core/strategy.h"
#include "plan/core/sizing.h"
#include "plan/strategy_table.h"

#define LINE_MOST 512
#define COUNT_MOST ((int64_t)1000000000000000)
#define LONG_MOST ((int64_t)1 << 62)

struct plan_parsing {
	struct neap__parsed *out;
	const char *at, *end;
	int64_t line;
	char text[LINE_MOST]; /* the line at hand */
	int section;	      /* -1: none yet */
	int seen[NEAP__SECTIONS];
	int column[NEAP__STAGE_COLUMNS], columns; /* in the order of the text */
	int64_t stage, action_room;
	int ended;
};

#define BAD(p, ...)                                                                                \
	neap__fail_in(neap__fail(NEAP_EFORMAT, __VA_ARGS__), "line %lld: ", (ll)(p)->line)
typedef long long ll;

/* The next line that says something, without its end and blanks; 0 at the end. */
static int next_line(struct plan_parsing *p)
{
	while (p->at < p->end) {
		const char *stop = memchr(p->at, '\n', (size_t)(p->end - p->at));
		size_t n = (size_t)((stop ? stop : p->end) - p->at);
		const char *from = p->at;
		p->at = stop ? stop + 1 : p->end;
		p->line++;
		if (memchr(from, '\0', n))
			return BAD(p, "not text");
		while (n > 0 && strchr(" \t\r", from[n - 1]))
			n--;
		if (n == 0 || from[0] == '#')
			continue;
		if (n >= sizeof p->text)
			return BAD(p, "longer than %d characters", LINE_MOST - 1);
		memcpy(p->text, from, n);
		p->text[n] = '\0';
		return 1;
	}
	return 0;
}

static int hex(char c)
{
	const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c) : NULL;
	return at ? (int)(at - digits) : -1;
}

static int read_word(char *room, size_t most, const char *text)
{
	size_t n = 0;
	for (const char *c = text; *c; c++) {
		int high = 0, low = 0;
		if (*c == '%' && ((high = hex(c[1])) < 0 || (low = hex(c[2])) < 0))
			return -1;
		if (n + 1 >= most || (*c == '%' && high == 0 && low == 0) || *c == ' ')
			return -1;
		room[n++] = *c == '%' ? (char)(16 * high + low) : *c;
		c += *c == '%' ? 2 : 0;
	}
	room[n] = '\0';
	return 0;
}

static int read_name(const char **name, const char *text)
{
	const struct neap__strategy *row = neap__strategy_find(text);
	*name = row ? row->name : "own";
	return row || strcmp(text, "own") == 0 ? 0 : -1;
}

static int read_flag(uint32_t bit, void *into, const char *text)
{
	uint32_t flags;
	if ((text[0] != '0' && text[0] != '1') || text[1])
		return -1;
	memcpy(&flags, into, sizeof flags);
	flags = text[0] == '1' ? flags | bit : flags & ~bit;
	memcpy(into, &flags, sizeof flags);
	return 0;
}

/* -1: not of its kind; `what` then says what would be. */
static int read_value(const struct neap__key *key, void *into, const char *text, const char **what)
{
	int64_t count = 0, most = key->type == NEAP__KEY_COUNT ? COUNT_MOST : LONG_MOST;
	double real;
	int rc, whole;
	switch (key->type) {
	case NEAP__KEY_INT:
		*what = "a whole number between 0 and 10^9";
		rc = neap__read_count(&count, text) < 0 || count > 1000000000 ? -1 : 0;
		whole = (int)count;
		if (rc == 0)
			memcpy(into, &whole, sizeof whole);
		return rc;
	case NEAP__KEY_BYTES:
		*what = "a whole number of bytes, or inf";
		return neap__read_bytes(into, text);
	case NEAP__KEY_REAL:
		*what = "a number";
		rc = neap__read_real(&real, text);
		if (rc == 0)
			memcpy(into, &real, sizeof real);
		return rc;
	case NEAP__KEY_FLAG:
		*what = "0 or 1";
		return read_flag(key->bit, into, text);
	case NEAP__KEY_WORD:
		*what = "a name of at most 23 characters";
		return read_word(into, sizeof((struct neap_tier_spec *)0)->name, text);
	case NEAP__KEY_NAME:
		*what = "a strategy";
		return read_name(into, text);
	default:
		*what = most == COUNT_MOST ? "a whole number between 0 and 10^15"
					   : "a whole number between 0 and 2^62";
		rc = neap__read_count(&count, text) < 0 || count > most ? -1 : 0;
		if (rc == 0)
			memcpy(into, &count, sizeof count);
		return rc;
	}
}

static void *object_of(struct plan_parsing *p)
{
	struct neap__parsed *out = p->out;
	switch (p->section) {
	case NEAP__IN_CHAIN:
		return &out->problem;
	case NEAP__IN_STAGES:
		return &out->stages;
	case NEAP__IN_TIER:
		return &out->problem.tiers[out->problem.ntiers - 1];
	case NEAP__IN_USED:
		return &out->plan.tiers[p->seen[NEAP__IN_USED] - 1];
	case NEAP__IN_REPLAN:
		return &out->plan.replans[out->plan.replan_count - 1];
	default:
		return &out->plan;
	}
}

/* The text behind the first word, which ends there from now on. */
static char *split(char *text)
{
	char *blank = strchr(text, ' ');
	if (!blank)
		return text + strlen(text);
	*blank = '\0';
	return blank + 1;
}

static int take_key(struct plan_parsing *p)
{
	struct neap__parsed *out = p->out;
	int64_t *lines =
		p->section == NEAP__IN_USED ? out->used_line[p->seen[p->section] - 1] : out->line;
	const char *value = split(p->text), *what = "";
	for (int i = 0; neap__plan_keys[i].name; i++) {
		const struct neap__key *key = &neap__plan_keys[i];
		if ((int)key->section != p->section || strcmp(key->name, p->text) != 0)
			continue;
		if (lines[i])
			return BAD(p, "%s: is there twice", key->name);
		lines[i] = p->line;
		void *into = (char *)object_of(p) + key->offset;
		if (read_value(key, into, value, &what) < 0)
			return BAD(p, "%s: '%.80s' is not %s", key->name, value, what);
		return 0;
	}
	return BAD(p, "%.80s: unknown key of [%s]", p->text, neap__section_names[p->section]);
}

static int take_columns(struct plan_parsing *p)
{
	struct neap__parsed *out = p->out;
	int64_t steps = out->problem.chain.steps;
	if (p->columns)
		return BAD(p, "columns: are there twice");
	for (char *word = split(p->text), *rest; *word; word = rest) {
		int k = 0;
		rest = split(word);
		while (k < NEAP__STAGE_COLUMNS && strcmp(neap__stage_columns[k].name, word) != 0)
			k++;
		if (k == NEAP__STAGE_COLUMNS)
			return BAD(p, "columns: %.80s: unknown", word);
		if (out->columns[k])
			return BAD(p, "columns: %s: is there twice", word);
		out->columns[k] = calloc((size_t)steps + 1, sizeof(uint64_t));
		if (!out->columns[k])
			return neap__fail(-ENOMEM, "plan: out of memory");
		memcpy((char *)&out->stages + neap__stage_columns[k].offset, &out->columns[k],
			sizeof out->columns[k]);
		p->column[p->columns++] = k;
	}
	return p->columns ? 0 : BAD(p, "columns: none");
}

static int take_cell(struct plan_parsing *p, int k, const char *text)
{
	const struct neap__stage_column *column = &neap__stage_columns[k];
	int bad;
	if (p->stage == p->out->problem.chain.steps && !column->more)
		bad = strcmp(text, "-") != 0;
	else if (column->seconds)
		bad = neap__read_real((double *)p->out->columns[k] + p->stage, text);
	else
		bad = neap__read_bytes((uint64_t *)p->out->columns[k] + p->stage, text);
	return bad ? BAD(p, "stage %lld: %s: '%.80s' is not %s", (ll)p->stage, column->name, text,
			     column->seconds ? "a number" : "a whole number of bytes")
		   : 0;
}

/* "3 0.5 1 4096 8192": a stage's number, then its columns. */
static int take_stage(struct plan_parsing *p)
{
	int64_t number;
	char *rest = split(p->text);
	if (p->columns == 0)
		return BAD(p, "stages: their columns are not named yet");
	if (neap__read_count(&number, p->text) < 0 || number != p->stage ||
		number > p->out->problem.chain.steps)
		return BAD(p, "stage %.40s: stages 0 to %lld come in order, once each", p->text,
			(ll)p->out->problem.chain.steps);
	for (int i = 0; i < p->columns; i++) {
		char *word = rest;
		rest = split(word);
		NEAP_TRY(take_cell(p, p->column[i], word));
	}
	p->stage++;
	return *rest ? BAD(p, "stage %lld: more numbers than columns", (ll)number) : 0;
}

static int take_action(struct plan_parsing *p)
{
	struct neap__parsed *out = p->out;
	int64_t *count = &out->plan.action_count;
	if (*count == p->action_room) {
		int64_t room = p->action_room ? 2 * p->action_room : 256;
		void *more = realloc(out->actions, (size_t)room * sizeof *out->actions);
		if (!more)
			return neap__fail(-ENOMEM, "plan: out of memory");
		out->actions = more;
		p->action_room = room;
	}
	if (neap__action_parse(&out->actions[*count], p->text) < 0)
		return BAD(p, "'%.80s' is not an action", p->text);
	++*count;
	return 0;
}

/* A line for each stage takes some of the text: no table is larger than that. */
static int begin_stages(struct plan_parsing *p)
{
	struct neap_chain *c = &p->out->problem.chain;
	if (!p->seen[NEAP__IN_CHAIN])
		return BAD(p, "[stages]: comes after [chain]");
	if (c->steps > NEAP__STAGES_MOST || c->steps >= p->end - p->at)
		return BAD(p, "[stages]: %lld steps are more than there are lines", (ll)c->steps);
	c->stages = &p->out->stages;
	return 0;
}

/* The keys of a section that repeats may stand there again. */
static void forget_lines(struct plan_parsing *p)
{
	for (int i = 0; neap__plan_keys[i].name; i++)
		if ((int)neap__plan_keys[i].section == p->section)
			p->out->line[i] = 0;
}

static int take_section(struct plan_parsing *p)
{
	struct neap_problem *problem = &p->out->problem;
	size_t n = strlen(p->text);
	int k = 0;
	while (k < NEAP__SECTIONS && (strlen(neap__section_names[k]) != n - 2 ||
					     memcmp(neap__section_names[k], p->text + 1, n - 2)))
		k++;
	if (k == NEAP__SECTIONS || p->text[n - 1] != ']')
		return BAD(p, "%.80s: unknown section", p->text);
	int most = k == NEAP__IN_TIER || k == NEAP__IN_USED ? NEAP_TIERS_MAX
		   : k == NEAP__IN_REPLAN		    ? NEAP_REPLANS_MAX
							    : 1;
	p->section = k;
	if (p->seen[k]++ >= most)
		return BAD(p, "%s: is there more than %s", p->text,
			most == 1		   ? "once"
			: most == NEAP_REPLANS_MAX ? "4 times"
						   : "8 times");
	if (k == NEAP__IN_TIER || k == NEAP__IN_REPLAN)
		forget_lines(p);
	if (k == NEAP__IN_TIER)
		problem->tiers[problem->ntiers++].capacity = NEAP_INFINITE;
	p->out->plan.replan_count += k == NEAP__IN_REPLAN;
	p->out->listed |= k == NEAP__IN_ACTIONS;
	return k == NEAP__IN_STAGES ? begin_stages(p) : 0;
}

static int take_line(struct plan_parsing *p)
{
	if (p->ended)
		return BAD(p, "something follows the end");
	if (strcmp(p->text, "end") == 0) {
		p->ended = 1;
		return 0;
	}
	if (p->text[0] == '[')
		return take_section(p);
	if (p->section < 0)
		return BAD(p, "%.80s: stands in no section", p->text);
	if (p->section == NEAP__IN_ACTIONS)
		return take_action(p);
	if (p->section == NEAP__IN_STAGES && strncmp(p->text, "columns ", 8) == 0)
		return take_columns(p);
	if (p->section == NEAP__IN_STAGES && p->text[0] >= '0' && p->text[0] <= '9')
		return take_stage(p);
	return take_key(p);
}

static int64_t line_of(const struct neap__parsed *out, const char *name, enum neap__section section)
{
	for (int i = 0; neap__plan_keys[i].name; i++)
		if (neap__plan_keys[i].section == section &&
			strcmp(neap__plan_keys[i].name, name) == 0)
			return out->line[i];
	return 0;
}

/* No slot number needs to be beyond the list's length: tables are as long. */
static int check_list(struct neap__parsed *out)
{
	for (int64_t i = 0; i < out->plan.action_count; i++) {
		struct neap_action *a = &out->actions[i];
		if (a->slot >= out->plan.action_count)
			return neap__fail(NEAP_EFORMAT,
				"[actions]: slot %lld is beyond the number of actions",
				(ll)a->slot);
		if (a->kind == NEAP_TURN)
			a->t0 = a->t1 = neap__last_state(&out->problem.chain);
	}
	return 0;
}

static int check_blocks(const struct neap_blocks *blocks, const char *section)
{
	if (!(blocks->price >= 0 && blocks->price <= 1e15))
		return neap__fail(NEAP_EFORMAT, "[%s]: price is not between 0 and 1e15", section);
	if (blocks->inner > NEAP_BLOCKS_KEPT)
		return neap__fail(NEAP_EFORMAT, "[%s]: inner is not 0, 1, 2 or 3", section);
	return 0;
}

static int check_near(const struct neap_plan *plan, int tiers)
{
	const struct neap_near *near = &plan->near;
	if (near->tier > tiers || (near->tier > 0 && near->tier == plan->tier))
		return neap__fail(NEAP_EFORMAT, "[near]: tier is not another tier of the problem");
	if (near->share > NEAP_NEAR_SHARES)
		return neap__fail(
			NEAP_EFORMAT, "[near]: share is not between 0 and %d", NEAP_NEAR_SHARES);
	return 0;
}

/* What only the whole text tells. */
static int complete(const struct plan_parsing *p)
{
	struct neap__parsed *out = p->out;
	const struct neap_chain *c = &out->problem.chain;
	if (!p->ended)
		return BAD(p, "the text stops before 'end'");
	if (!line_of(out, "steps", NEAP__IN_CHAIN) || !line_of(out, "memory", NEAP__IN_CHAIN))
		return neap__fail(NEAP_EFORMAT, "[chain]: steps and memory are required");
	if (c->stages && p->stage != c->steps + 1)
		return neap__fail(NEAP_EFORMAT, "[stages]: %lld lines for %lld steps and the loss",
			(ll)p->stage, (ll)c->steps);
	if (!out->plan.strategy && !out->listed)
		return neap__fail(
			NEAP_EFORMAT, "[plan]: a strategy or a list of actions is required");
	if (p->seen[NEAP__IN_USED] > out->problem.ntiers)
		return neap__fail(NEAP_EFORMAT, "[used]: there are more than tiers");
	NEAP_TRY(check_blocks(&out->plan.blocks, "blocks"));
	NEAP_TRY(check_near(&out->plan, out->problem.ntiers));
	for (int64_t i = 0; i < out->plan.replan_count; i++)
		NEAP_TRY(check_blocks(&out->plan.replans[i].blocks, "replan"));
	return check_list(out);
}

int neap__plan_parse(struct neap__parsed *parsed, const char *text, size_t length)
{
	struct plan_parsing p = {.out = parsed, .at = text, .end = text + length, .section = -1};
	struct neap_plan *plan = &parsed->plan;
	parsed->problem.size = sizeof parsed->problem;
	plan->size = sizeof *plan;
	parsed->saved = (struct neap_saved){&parsed->problem, plan};
	int rc = next_line(&p);
	NEAP_TRY(rc);
	if (rc == 0 || strcmp(p.text, "neap plan 1") != 0)
		return neap__fail(NEAP_EFORMAT,
			"line 1 is not 'neap plan 1'; is it a file of 'neap plan --save'?");
	while ((rc = next_line(&p)) > 0)
		NEAP_TRY(take_line(&p));
	NEAP_TRY(rc);
	NEAP_TRY(complete(&p));
	if (!plan->strategy)
		plan->strategy = "own";
	if (!plan->chosen)
		plan->chosen = plan->strategy;
	/* An empty list is a list. */
	if (parsed->listed && !parsed->actions &&
		!(parsed->actions = calloc(1, sizeof *plan->actions)))
		return neap__fail(-ENOMEM, "plan: out of memory");
	plan->actions = parsed->actions;
	plan->feasible = 1;
	return 0;
}

void neap__parsed_free(struct neap__parsed *parsed)
{
	for (int i = 0; i < NEAP__STAGE_COLUMNS; i++)
		free(parsed->columns[i]);
	free(parsed->actions);
}
