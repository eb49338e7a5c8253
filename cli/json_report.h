/* SPDX-License-Identifier: Apache-2.0 */
/* json_report.h: what the reports of `--json` share: the keys of a plan, and their printing. */
#ifndef NEAP_CLI_JSON_REPORT_H
#define NEAP_CLI_JSON_REPORT_H

#include "cli.h"
#include "base/json.h"

/*
 * Writes the contract's keys of a plan into the object that is open. Without `with_overhead`
 * a feasible plan's key "overhead" is left to the caller, who measured it.
 */
void cli_json_plan(struct neap__json *to, const struct neap_problem *problem,
	const struct neap_plan *plan, int with_overhead);

struct neap_answer;
/* 1: the answer is numbers, its scores, and has no label and no prediction. */
int cli_answer_numbers(const struct neap_answer *answer);
/* Adds the name of a class or an output: its number if `name` is NULL. */
void cli_json_class(struct neap__json *to, const char *key, const char *name, int number);
/*
 * Adds what a net answers to a sample as an object of a list: the file unless it is NULL, sample
 * and its name, time of a decision, steps (of a step: its number, step), label, prediction and its
 * class's name or the names of outputs, scores.
 */
void cli_json_answer(struct neap__json *to, const struct neap_answer *answer, const char *file);

/* Prints and frees a report: CLI_DONE, or CLI_FAILED where it cannot be made or written. */
int cli_json_print(struct neap__json *report, const char *command);

#endif
