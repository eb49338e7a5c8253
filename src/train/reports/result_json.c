/* SPDX-License-Identifier: Apache-2.0 */
/* result_json.c: parts of a training's result in JSON. */
#include "train/reports/result_json.h"

#include <math.h>

void neap__json_exchange(struct neap__json *to, const struct neap_exchange *e)
{
	if (e->ranks < 2) {
		neap__json_null(to, "exchange");
		return;
	}
	neap__json_begin(to, "exchange", '{');
	neap__json_int(to, "ranks", e->ranks);
	neap__json_int(to, "batches", e->batches);
	neap__json_int(to, "calls", e->calls);
	neap__json_number(to, "seconds", e->seconds);
	neap__json_number(to, "waited", e->waited);
	neap__json_bytes(to, "sent", e->sent);
	neap__json_end(to, '}');
}

void neap__json_evaluation(struct neap__json *to, const char *key, const struct neap_eval_result *e)
{
	if (e->samples == 0) {
		neap__json_null(to, key);
		return;
	}
	neap__json_begin(to, key, '{');
	neap__json_int(to, "samples", e->samples);
	neap__json_int(to, "correct", e->correct);
	neap__json_number(to, "accuracy", e->accuracy);
	neap__json_number(to, "low", e->judged > 0 ? e->low : NAN);
	neap__json_number(to, "high", e->judged > 0 ? e->high : NAN);
	neap__json_number(to, "loss", e->loss);
	neap__json_end(to, '}');
}
