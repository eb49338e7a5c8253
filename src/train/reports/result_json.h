/* SPDX-License-Identifier: Apache-2.0 */
/* result_json.h: parts of a training's result in JSON, in run.json and in what --json prints. */
#ifndef NEAP_TRAIN_REPORTS_RESULT_JSON_H
#define NEAP_TRAIN_REPORTS_RESULT_JSON_H

#include <neap/train.h>
#include "base/json.h"

/* What the ranks exchanged; null where there is one. */
void neap__json_exchange(struct neap__json *to, const struct neap_exchange *e);
/* An evaluation; null where there were no samples. No bounds where nothing is right or wrong. */
void neap__json_evaluation(
	struct neap__json *to, const char *key, const struct neap_eval_result *e);

#endif
