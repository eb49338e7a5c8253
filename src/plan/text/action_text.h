/* SPDX-License-Identifier: Apache-2.0 */
/* action_text.h: an action read from a line of text, and schedules that are lists of them. */
#ifndef NEAP_PLAN_TEXT_ACTION_TEXT_H
#define NEAP_PLAN_TEXT_ACTION_TEXT_H

#include <neap/plan.h>

/* 0, or -1: the line is not an action as neap_action_show writes it. */
int neap__action_parse(struct neap_action *action, const char *line);

#endif
