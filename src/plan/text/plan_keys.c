/* SPDX-License-Identifier: Apache-2.0 */
/* plan_keys.c: the table of keys of plans as text; exact numbers as text, and back. */
#include "plan/text/plan_keys.h"
#include "base/units.h"
#include "base/print.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A new member is to be written and read, too: a row below, then these sizes. */
_Static_assert(sizeof(struct neap_chain) == 176, "rows of [chain]");
_Static_assert(sizeof(struct neap_stages) == 72, "neap__stage_columns");
_Static_assert(sizeof(struct neap_tier_spec) == 112, "rows of [tier]");
_Static_assert(sizeof(struct neap_params) == 104, "rows of [params]");
_Static_assert(sizeof(struct neap_blocks) == 80, "rows of [blocks]");
_Static_assert(sizeof(struct neap_near) == 80, "rows of [near]");
_Static_assert(sizeof(struct neap_tier_use) == 32, "rows of [used]");
_Static_assert(sizeof(struct neap_replan) == 88, "rows of [replan]");
_Static_assert(sizeof(struct neap_plan) == 1208, "rows of [plan], [near] and [predicted]");

const char *const neap__section_names[NEAP__SECTIONS] = {"chain", "stages", "tier", "plan",
	"params", "blocks", "near", "replan", "predicted", "used", "actions"};

#define CHAIN(type, always, key)                                                                   \
	{                                                                                          \
		NEAP__IN_CHAIN, #key, NEAP__KEY_##type, always,                                    \
			offsetof(struct neap_problem, chain.key), 0                                \
	}
#define FLAG(section, key, object, member, bit)                                                    \
	{                                                                                          \
		NEAP__IN_##section, key, NEAP__KEY_FLAG, 0, offsetof(struct object, member), bit   \
	}
#define TIER(type, key)                                                                            \
	{                                                                                          \
		NEAP__IN_TIER, #key, NEAP__KEY_##type, 1, offsetof(struct neap_tier_spec, key), 0  \
	}
#define PLAN(section, type, always, key)                                                           \
	{                                                                                          \
		NEAP__IN_##section, #key, NEAP__KEY_##type, always,                                \
			offsetof(struct neap_plan, key), 0                                         \
	}
#define INNER(section, type, inside, key)                                                          \
	{                                                                                          \
		NEAP__IN_##section, #key, NEAP__KEY_##type, 0,                                     \
			offsetof(struct neap_plan, inside.key), 0                                  \
	}
#define REPLAN(type, always, name, member)                                                         \
	{                                                                                          \
		NEAP__IN_REPLAN, name, NEAP__KEY_##type, always,                                   \
			offsetof(struct neap_replan, member), 0                                    \
	}
#define USED(key)                                                                                  \
	{                                                                                          \
		NEAP__IN_USED, #key, NEAP__KEY_BYTES, 1, offsetof(struct neap_tier_use, key), 0    \
	}

const struct neap__key neap__plan_keys[] = {
	CHAIN(COUNT, 1, steps),
	CHAIN(COUNT, 0, join),
	CHAIN(BYTES, 0, state),
	CHAIN(BYTES, 0, tape),
	CHAIN(BYTES, 0, tape_max),
	CHAIN(BYTES, 0, adjoint),
	CHAIN(BYTES, 0, live),
	CHAIN(REAL, 0, advance),
	CHAIN(REAL, 0, record),
	CHAIN(REAL, 0, backward),
	CHAIN(REAL, 0, slot_write),
	CHAIN(REAL, 0, slot_read),
	CHAIN(BYTES, 0, log),
	CHAIN(REAL, 0, replay),
	CHAIN(REAL, 0, call),
	CHAIN(COUNT, 0, record_steps),
	CHAIN(BYTES, 0, tape_mean),
	CHAIN(REAL, 0, last),
	FLAG(CHAIN, "classic", neap_problem, chain.flags, NEAP_CHAIN_CLASSIC),
	FLAG(CHAIN, "tapes_stay", neap_problem, chain.flags, NEAP_CHAIN_TAPES_STAY),
	FLAG(CHAIN, "mixed", neap_problem, chain.flags, NEAP_CHAIN_MIXED),
	{NEAP__IN_CHAIN, "memory", NEAP__KEY_BYTES, 1, offsetof(struct neap_problem, memory), 0},
	FLAG(STAGES, "tape_holds_output", neap_stages, flags, NEAP_STAGES_TAPE_HOLDS_OUTPUT),
	FLAG(STAGES, "backward_needs_input", neap_stages, flags, NEAP_STAGES_BACKWARD_NEEDS_INPUT),
	TIER(WORD, name),
	TIER(BYTES, capacity),
	TIER(REAL, write_rate),
	TIER(REAL, read_rate),
	TIER(REAL, write_fixed),
	TIER(REAL, read_fixed),
	TIER(BYTES, staging),
	{NEAP__IN_TIER, "cpu", NEAP__KEY_REAL, 0, offsetof(struct neap_tier_spec, cpu), 0},
	{NEAP__IN_TIER, "cpu_fixed", NEAP__KEY_REAL, 0, offsetof(struct neap_tier_spec, cpu_fixed),
		0},
	FLAG(TIER, "sync", neap_tier_spec, flags, NEAP_TIER_SYNC),
	FLAG(TIER, "duplex", neap_tier_spec, flags, NEAP_TIER_DUPLEX),
	PLAN(PLAN, NAME, 1, strategy),
	PLAN(PLAN, NAME, 1, chosen),
	PLAN(PLAN, INT, 0, tier),
	PLAN(PLAN, INT, 0, variant),
	PLAN(PLAN, COUNT, 0, slots),
	PLAN(PLAN, COUNT, 0, stage_slots),
#define NEAP__X(name, option, meaning) INNER(PARAMS, COUNT, params, name),
	NEAP_PARAM_TABLE(NEAP__X)
#undef NEAP__X
		INNER(PARAMS, COUNT, params, effort),
	INNER(BLOCKS, COUNT, blocks, advance),
	INNER(BLOCKS, COUNT, blocks, record),
	INNER(BLOCKS, COUNT, blocks, chunk),
	INNER(BLOCKS, COUNT, blocks, tail),
	INNER(BLOCKS, LONG, blocks, reserve),
	INNER(BLOCKS, LONG, blocks, reserve_steps),
	INNER(BLOCKS, LONG, blocks, tail_reserve),
	INNER(BLOCKS, REAL, blocks, price),
	INNER(BLOCKS, INT, blocks, inner),
	INNER(BLOCKS, COUNT, blocks, kept_states),
	INNER(BLOCKS, INT, blocks, every),
	INNER(NEAR, INT, near, tier),
	INNER(NEAR, INT, near, share),
	INNER(NEAR, COUNT, near, chunk),
	INNER(NEAR, COUNT, near, advance),
	INNER(NEAR, COUNT, near, record),
	INNER(NEAR, COUNT, near, tail),
	INNER(NEAR, COUNT, near, last_advance),
	INNER(NEAR, COUNT, near, last_record),
	INNER(NEAR, COUNT, near, last_tail),
	REPLAN(COUNT, 1, "from", from),
	REPLAN(COUNT, 0, "advance", blocks.advance),
	REPLAN(COUNT, 0, "record", blocks.record),
	REPLAN(COUNT, 0, "chunk", blocks.chunk),
	REPLAN(COUNT, 0, "tail", blocks.tail),
	REPLAN(LONG, 0, "reserve", blocks.reserve),
	REPLAN(LONG, 0, "reserve_steps", blocks.reserve_steps),
	REPLAN(LONG, 0, "tail_reserve", blocks.tail_reserve),
	REPLAN(REAL, 0, "price", blocks.price),
	REPLAN(INT, 0, "inner", blocks.inner),
	REPLAN(INT, 0, "every", blocks.every),
	PLAN(PREDICTED, BYTES, 1, arena_bytes),
	PLAN(PREDICTED, BYTES, 1, peak_bytes),
	PLAN(PREDICTED, BYTES, 1, slow_bytes),
	PLAN(PREDICTED, LONG, 1, advance_steps),
	PLAN(PREDICTED, LONG, 1, record_steps),
	PLAN(PREDICTED, REAL, 1, makespan),
	PLAN(PREDICTED, REAL, 1, stall),
	PLAN(PREDICTED, REAL, 0, lost),
	PLAN(PREDICTED, REAL, 1, overhead),
	PLAN(PREDICTED, REAL, 1, bound),
	PLAN(PREDICTED, REAL, 1, gap),
	PLAN(PREDICTED, REAL, 0, model_bound),
	USED(peak_bytes),
	USED(written),
	USED(read),
	{0},
};

_Static_assert(sizeof neap__plan_keys / sizeof *neap__plan_keys <= NEAP__PLAN_KEYS_MOST,
	"a line is remembered for each key");

#define COLUMN(name, seconds, needed, more)                                                        \
	{                                                                                          \
#name, seconds, needed, more, offsetof(struct neap_stages, name)                   \
	}
const struct neap__stage_column neap__stage_columns[NEAP__STAGE_COLUMNS] = {
	COLUMN(advance, 1, 1, 0),
	COLUMN(record, 1, 0, 0),
	COLUMN(backward, 1, 1, 1),
	COLUMN(state, 0, 1, 1),
	COLUMN(tape, 0, 1, 0),
	COLUMN(advance_tmp, 0, 0, 0),
	COLUMN(record_tmp, 0, 0, 0),
	COLUMN(backward_tmp, 0, 0, 1),
};

const char *neap__show_real(char room[NEAP__NUMBER_TEXT], double value)
{
	for (int digits = 15; digits <= 17; digits++) {
		neap__print(room, NEAP__NUMBER_TEXT, "%.*g", digits, value);
		if (!isfinite(value) || neap__read_double(room, NULL) == value)
			break;
	}
	return room;
}

int neap__read_bytes(uint64_t *value, const char *text)
{
	char *end;
	size_t digits = strspn(text, "0123456789");
	if (strcmp(text, "inf") == 0) {
		*value = NEAP_INFINITE;
		return 0;
	}
	if (digits == 0 || text[digits] != '\0')
		return -1;
	errno = 0;
	unsigned long long v = strtoull(text, &end, 10);
	if (errno)
		return -1;
	*value = v;
	return 0;
}

int neap__read_count(int64_t *value, const char *text)
{
	uint64_t v;
	if (text[0] == 'i' || neap__read_bytes(&v, text) < 0 || v > INT64_MAX)
		return -1;
	*value = (int64_t)v;
	return 0;
}

int neap__read_real(double *value, const char *text)
{
	if (strcmp(text, "inf") != 0)
		return neap__units_number(value, text);
	*value = INFINITY;
	return 0;
}
