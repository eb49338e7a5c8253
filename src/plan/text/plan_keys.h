/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_keys.h: the keys of plans as text, which plan_write.c writes and plan_read.c
 * reads, and the numbers in them.
 */
#ifndef NEAP_PLAN_TEXT_PLAN_KEYS_H
#define NEAP_PLAN_TEXT_PLAN_KEYS_H

#include <neap/plan.h>

enum neap__key_type {
	NEAP__KEY_COUNT, /* int64_t, 0 to 10^15 */
	NEAP__KEY_LONG,	 /* int64_t, 0 to 2^62 */
	NEAP__KEY_INT,	 /* int, 0 to 10^9 */
	NEAP__KEY_BYTES, /* uint64_t; "inf" for NEAP_INFINITE */
	NEAP__KEY_REAL,	 /* double; "inf" */
	NEAP__KEY_FLAG,	 /* a bit of a uint32_t: 1 when it is set */
	NEAP__KEY_WORD,	 /* char[24]: a tier's name, %XX for what is not plain */
	NEAP__KEY_NAME,	 /* const char *: a strategy */
};

/* What a section is about; offsets of its keys count from there. */
enum neap__section {
	NEAP__IN_CHAIN,	 /* struct neap_problem */
	NEAP__IN_STAGES, /* struct neap_stages */
	NEAP__IN_TIER,	 /* struct neap_tier_spec, once for each tier */
	NEAP__IN_PLAN,	 /* struct neap_plan */
	NEAP__IN_PARAMS, /* struct neap_plan */
	NEAP__IN_BLOCKS, /* struct neap_plan */
	NEAP__IN_NEAR,	 /* struct neap_plan */
	NEAP__IN_REPLAN, /* struct neap_replan, once for each */
	NEAP__IN_PREDICTED,
	NEAP__IN_USED, /* struct neap_tier_use, once for each tier */
	NEAP__IN_ACTIONS,
	NEAP__SECTIONS
};

struct neap__key {
	enum neap__section section;
	const char *name;
	enum neap__key_type type;
	int always; /* written also where it is 0 */
	size_t offset;
	uint32_t bit;
};

#define NEAP__PLAN_KEYS_MOST 128 /* rows of neap__plan_keys, at most */
extern const char *const neap__section_names[NEAP__SECTIONS];
/* Ends with a row of name NULL. */
extern const struct neap__key neap__plan_keys[];

/* The columns of per-step sizes and costs; `more`: one entry more than steps. */
struct neap__stage_column {
	const char *name;
	int seconds, needed, more;
	size_t offset; /* of the pointer in struct neap_stages */
};
#define NEAP__STAGE_COLUMNS 8
extern const struct neap__stage_column neap__stage_columns[NEAP__STAGE_COLUMNS];

#define NEAP__NUMBER_TEXT 40
/* The shortest decimal that reads back as the same number; "inf". */
const char *neap__show_real(char room[NEAP__NUMBER_TEXT], double value);

/* Whole text or -1: no blanks, no signs, no hex. */
int neap__read_count(int64_t *value, const char *text);
int neap__read_bytes(uint64_t *value, const char *text);
int neap__read_real(double *value, const char *text); /* a negative one too */

#endif
