/* SPDX-License-Identifier: Apache-2.0 */
/*
 * problem.c: checks the numbers of a problem, once, so that no planner has to: each number in
 * its range, and every product of them within 63 bits.
 */
#include <neap/chain.h>

#include <math.h>
#include <string.h>
#include "base/checked.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "plan/core/stage_sizes.h"

/* Far beyond any machine, and small enough that every product below stays in 63 bits. */
#define STEPS_MOST ((int64_t)1000000000000)
#define BYTES_MOST ((uint64_t)1 << 60)
#define SECONDS_MOST 1e15

static int check_bytes(const char *name, uint64_t value)
{
	if (value > BYTES_MOST)
		return neap__fail(NEAP_EUSAGE, "%s is %llu; it must be at most 2^60", name,
			(unsigned long long)value);
	return 0;
}

static int check_seconds(const char *name, double value)
{
	if (!(value >= 0 && value <= SECONDS_MOST))
		return neap__fail(NEAP_EUSAGE, "%s is %g; it must be a time between 0 and 1e15 s",
			name, value);
	return 0;
}

static int check_rate(const char *tier, const char *name, double value)
{
	if (!(value >= 0 && value <= 1e30) || (value > 0 && value < 1e-9))
		return neap__fail(NEAP_EUSAGE,
			"tier %s: %s is %g; it must be a rate: 0, or 1e-9 to 1e30 bytes per second",
			tier, name, value);
	return 0;
}

static int check_tier(const struct neap_tier_spec *tier, int index)
{
	if (!memchr(tier->name, 0, sizeof tier->name))
		return neap__fail(NEAP_EUSAGE, "tier %d: its name has no end", index + 1);
	NEAP_TRY(check_rate(tier->name, "write rate", tier->write_rate));
	NEAP_TRY(check_rate(tier->name, "read rate", tier->read_rate));
	NEAP_TRY(check_seconds("tier: time of a write", tier->write_fixed));
	NEAP_TRY(check_seconds("tier: time of a read", tier->read_fixed));
	NEAP_TRY(check_bytes("tier: staging", tier->staging));
	NEAP_TRY(check_seconds("tier: cpu", tier->cpu));
	NEAP_TRY(check_seconds("tier: cpu_fixed", tier->cpu_fixed));
	if (tier->flags & ~(uint32_t)(NEAP_TIER_SYNC | NEAP_TIER_DUPLEX))
		return neap__fail(NEAP_EUSAGE, "tier %s: unknown flags", tier->name);
	return 0;
}

static int check_sizes(const struct neap_chain *c)
{
	uint64_t step, all;
	NEAP_TRY(check_bytes("state", c->state));
	NEAP_TRY(check_bytes("tape", c->tape));
	NEAP_TRY(check_bytes("tape_max", c->tape_max));
	NEAP_TRY(check_bytes("tape_mean", c->tape_mean));
	NEAP_TRY(check_bytes("adjoint", c->adjoint));
	NEAP_TRY(check_bytes("live", c->live));
	NEAP_TRY(check_bytes("log", c->log));
	if (c->state < 1)
		return neap__fail(NEAP_EUSAGE, "state is 0; it must be at least 1 byte");
	if (c->tape_max && c->tape_max < c->tape)
		return neap__fail(NEAP_EUSAGE, "tape_max is %llu, less than tape (%llu)",
			(unsigned long long)c->tape_max, (unsigned long long)c->tape);
	if (c->tape_mean > c->tape)
		return neap__fail(NEAP_EUSAGE, "tape_mean is %llu, more than tape (%llu)",
			(unsigned long long)c->tape_mean, (unsigned long long)c->tape);
	if (c->flags & NEAP_CHAIN_CLASSIC &&
		(c->state != 1 || c->tape || c->tape_max || c->adjoint || c->live))
		return neap__fail(NEAP_EUSAGE, "in a classic problem state must be 1 slot, and "
					       "tape, adjoint and live must be 0");
	if (neap__add_u64(&step, c->state, c->tape_max > c->tape ? c->tape_max : c->tape) ||
		neap__add_u64(&step, step, c->log) ||
		neap__mul_u64(&all, step, (uint64_t)(c->steps + c->join)) || all > BYTES_MOST)
		return neap__fail(NEAP_EUSAGE,
			"steps is %lld: with %llu bytes each, that is more than 2^60 bytes",
			(long long)(c->steps + c->join), (unsigned long long)step);
	return 0;
}

/* Checks the kind of a chain: its length, its flags, and what goes together. */
static int check_kind(const struct neap_problem *problem)
{
	const struct neap_chain *c = &problem->chain;

	if (c->steps < 0 || c->steps > STEPS_MOST)
		return neap__fail(NEAP_EUSAGE, "steps is %lld; it must be between 0 and 10^12",
			(long long)c->steps);
	if (c->flags & ~(uint32_t)(NEAP_CHAIN_CLASSIC | NEAP_CHAIN_TAPES_STAY | NEAP_CHAIN_MIXED))
		return neap__fail(NEAP_EUSAGE, "chain: unknown flags");
	if (c->flags & NEAP_CHAIN_MIXED && !(c->flags & NEAP_CHAIN_CLASSIC))
		return neap__fail(NEAP_EUSAGE, "chain: only a classic problem is mixed");
	if (c->join && (c->join < 0 || c->join > STEPS_MOST || c->steps < 1 || problem->ntiers ||
			       c->stages || c->flags & NEAP_CHAIN_MIXED))
		return neap__fail(NEAP_EUSAGE,
			"join requires two uniform chains of 1 to 10^12 steps, without tiers");
	if (!(c->last >= 0 && c->last <= 1) || (c->last > 0 && (c->stages || c->join)))
		return neap__fail(NEAP_EUSAGE,
			"last is %g; it must be a fraction of a step between 0 and 1, in a single "
			"uniform chain",
			c->last);
	if (c->record_steps < 0)
		return neap__fail(NEAP_EUSAGE,
			"record_steps is %lld; it must not be negative (0: no limit)",
			(long long)c->record_steps);
	return 0;
}

int neap_problem_check(const struct neap_problem *problem)
{
	NEAP_NEED(problem);
	const struct neap_chain *c = &problem->chain;
	NEAP_TRY(
		neap__struct_size(problem->size, sizeof *problem, sizeof *problem, "neap_problem"));
	NEAP_TRY(check_kind(problem));
	NEAP_TRY(check_seconds("replay", c->replay));
	if (c->log && (c->stages || c->join || c->flags & NEAP_CHAIN_CLASSIC))
		return neap__fail(NEAP_EUSAGE, "log requires a single uniform chain in bytes");
	if (c->stages) {
		NEAP_TRY(neap__stages_check(c));
	} else {
		NEAP_TRY(check_sizes(c));
		NEAP_TRY(check_seconds("advance", c->advance));
		NEAP_TRY(check_seconds("record", c->record));
		NEAP_TRY(check_seconds("backward", c->backward));
		NEAP_TRY(check_seconds("call", c->call));
	}
	NEAP_TRY(check_seconds("slot_write", c->slot_write));
	NEAP_TRY(check_seconds("slot_read", c->slot_read));
	if (problem->ntiers < 0 || problem->ntiers > NEAP_TIERS_MAX)
		return neap__fail(NEAP_EUSAGE, "tiers is %d; it must be between 0 and %d",
			problem->ntiers, NEAP_TIERS_MAX);
	for (int i = 0; i < problem->ntiers; i++)
		NEAP_TRY(check_tier(&problem->tiers[i], i));
	return 0;
}
