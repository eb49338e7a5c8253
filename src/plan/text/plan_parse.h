/* SPDX-License-Identifier: Apache-2.0 */
/* plan_parse.h: the numbers and tables in the text of a plan, each checked by itself only. */
#ifndef NEAP_PLAN_TEXT_PLAN_PARSE_H
#define NEAP_PLAN_TEXT_PLAN_PARSE_H

#include "plan/text/plan_keys.h"

struct neap__parsed {
	struct neap_saved saved; /* first: what the caller sees, of these two: */
	struct neap_problem problem;
	struct neap_plan plan;
	struct neap_stages stages;
	void *columns[NEAP__STAGE_COLUMNS];
	struct neap_action *actions;
	int listed; /* there is a list of actions */
	/* Lines on which keys stand, 0: not there; by row of neap__plan_keys. */
	int64_t line[NEAP__PLAN_KEYS_MOST];
	int64_t used_line[NEAP_TIERS_MAX][NEAP__PLAN_KEYS_MOST];
};

/*
 * Fills `parsed`, all zero before; free it in every case. NEAP_EFORMAT with a line
 * that begins with the number of the text's line.
 */
int neap__plan_parse(struct neap__parsed *parsed, const char *text, size_t length);
void neap__parsed_free(struct neap__parsed *parsed);

#endif
