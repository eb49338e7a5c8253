/* SPDX-License-Identifier: Apache-2.0 */
/* stage_sizes.c: checks the numbers of stages, and adds up seconds and bytes of actions. */
#include "plan/core/stage_sizes.h"

#include "base/checked.h"
#include "base/fail.h"

/* All sizes of a chain together stay below this, so that sums stay in 63 bits. */
#define BYTES_MOST ((uint64_t)1 << 60)
#define SECONDS_MOST 1e15

static int check_times(const char *name, const double *value, int64_t n)
{
	for (int64_t i = 0; value && i < n; i++)
		if (!(value[i] >= 0 && value[i] <= SECONDS_MOST))
			return neap__fail(NEAP_EUSAGE,
				"%s[%lld] is %g; it must be a time between 0 and 1e15 s", name,
				(long long)i, value[i]);
	return 0;
}

static int check_bytes(const char *name, const uint64_t *value, int64_t n, uint64_t *all)
{
	for (int64_t i = 0; value && i < n; i++) {
		*all = neap__sat_add(*all, value[i]);
		if (*all > BYTES_MOST)
			return neap__fail(NEAP_EUSAGE,
				"%s[%lld] is %llu, which makes more than 2^60 bytes in total", name,
				(long long)i, (unsigned long long)value[i]);
	}
	return 0;
}

int neap__stages_check(const struct neap_chain *c)
{
	const struct neap_stages *s = c->stages;
	int64_t n = c->steps;
	uint64_t all = 0;
	if (n > NEAP__STAGES_MOST)
		return neap__fail(NEAP_EUSAGE, "steps is %lld; there can be at most %d stages",
			(long long)n, NEAP__STAGES_MOST);
	if (c->flags & (NEAP_CHAIN_CLASSIC | NEAP_CHAIN_MIXED))
		return neap__fail(NEAP_EUSAGE, "chain: a classic problem has no stages");
	if (s->flags &
		~(uint32_t)(NEAP_STAGES_TAPE_HOLDS_OUTPUT | NEAP_STAGES_BACKWARD_NEEDS_INPUT))
		return neap__fail(NEAP_EUSAGE, "stages: unknown flags");
	if (!s->advance || !s->backward || !s->state || !s->tape)
		return neap__fail(
			NEAP_EUSAGE, "stages: advance, backward, state and tape are required");
	NEAP_TRY(check_times("advance", s->advance, n));
	NEAP_TRY(check_times("record", s->record, n));
	NEAP_TRY(check_times("backward", s->backward, n + 1));
	NEAP_TRY(check_bytes("state", s->state, n + 1, &all));
	NEAP_TRY(check_bytes("tape", s->tape, n, &all));
	NEAP_TRY(check_bytes("advance_tmp", s->advance_tmp, n, &all));
	NEAP_TRY(check_bytes("record_tmp", s->record_tmp, n, &all));
	NEAP_TRY(check_bytes("backward_tmp", s->backward_tmp, n + 1, &all));
	NEAP_TRY(check_bytes("adjoint", &c->adjoint, 1, &all));
	for (int64_t i = 0; neap__tape_holds_output(s) && i < n; i++)
		if (s->tape[i] < s->state[i + 1])
			return neap__fail(NEAP_EUSAGE,
				"tape[%lld] has %llu bytes, too few for the stage's output of %llu "
				"bytes. Raise it, or set tape_holds_output to false",
				(long long)i, (unsigned long long)s->tape[i],
				(unsigned long long)s->state[i + 1]);
	return 0;
}

double neap__stages_least_time(const struct neap_chain *c)
{
	const struct neap_stages *s = c->stages;
	long double all = c->steps ? s->backward[c->steps] : 0;
	for (int64_t i = 0; i < c->steps; i++)
		all += neap__stage_record(s, i) + s->backward[i];
	return (double)all;
}

int neap__stages_flat(const struct neap_chain *c)
{
	const struct neap_stages *s = c->stages;
	for (int64_t i = 0; i < c->steps; i++)
		if (s->state[i + 1] != s->state[0] || neap__stage_advance_tmp(s, i))
			return 0;
	return 1;
}

double neap__stages_seconds(const struct neap_chain *c, const struct neap_action *a)
{
	const struct neap_stages *s = c->stages;
	double seconds = 0;
	if (a->kind == NEAP_TURN)
		return s->backward[c->steps];
	if (a->t0 < 0 || a->t1 > c->steps)
		return 0;
	for (int64_t i = a->t0; i < a->t1; i++)
		seconds += a->kind == NEAP_ADVANCE  ? s->advance[i]
			   : a->kind == NEAP_RECORD ? neap__stage_record(s, i)
						    : s->backward[i];
	return seconds;
}

int neap__stages_hold(const struct neap_chain *c, const struct neap_action *a)
{
	if (a->payload == NEAP_STATE)
		return a->t0 >= 0 && a->t0 <= c->steps;
	return a->payload == NEAP_TAPE && a->t0 >= 0 && a->t0 < a->t1 && a->t1 <= c->steps;
}

uint64_t neap__stages_bytes(const struct neap_stages *s, const struct neap_action *a)
{
	uint64_t bytes = 0;
	if (a->payload == NEAP_STATE)
		return s->state[a->t0];
	for (int64_t i = a->t0; i < a->t1; i++)
		bytes += s->tape[i];
	return bytes;
}
