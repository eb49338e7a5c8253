/* SPDX-License-Identifier: Apache-2.0 */
/* random_tiers.h: tiers of every kind whose capacity is at the edge of what records take. */
#ifndef NEAP_TESTS_SWEEP_RANDOM_TIERS_H
#define NEAP_TESTS_SWEEP_RANDOM_TIERS_H

#include "lazy_tier.h"
#include "random_stages.h"
#include "store/fault_tier.h"

enum { TIER_MEMORY, TIER_FILE, TIER_FAULTY_MEMORY, TIER_FAULTY_FILE, TIER_OWN, TIER_KINDS };

static inline int tier_has_faults(int kind)
{
	return kind == TIER_FAULTY_MEMORY || kind == TIER_FAULTY_FILE;
}

static inline int tier_in_file(int kind)
{
	return kind == TIER_FILE || kind == TIER_FAULTY_FILE;
}

/* `faults` is borrowed. A file tier takes a capacity of 0 for the free space of its disk. */
static inline struct neap_tier *tier_of_kind(
	int kind, uint64_t capacity, const struct neap__faults *faults)
{
	const struct neap_file_options o = {.size = sizeof o, .capacity = capacity ? capacity : 1};
	struct neap_tier *tier, *outer;
	int rc = kind == TIER_OWN     ? lazy_open(&tier, capacity)
		 : tier_in_file(kind) ? neap_tier_open_file(&tier, "/var/tmp", &o)
				      : neap_tier_open_memory(&tier, capacity);
	if (rc < 0)
		fail_msg("%s", neap_detail());
	if (!tier_has_faults(kind))
		return tier;
	assert_int_equal(neap__fault_open(&outer, tier, faults), 0);
	return outer;
}

/* Room for a few records of the given sizes, exactly, or a little less or more. */
static inline uint64_t tight_capacity(
	struct random *r, int kind, const uint64_t *sizes, int nsizes, int64_t most)
{
	static const struct neap__faults none;
	struct neap_tier *tier = tier_of_kind(kind, 1, &none);
	uint64_t unit = tier->ops.unit ? tier->ops.unit(tier->self) : 1, capacity = 0;
	for (int64_t k = below(r, 1 + below(r, most)); k > 0; k--)
		capacity += neap__tier_footprint(tier, sizes[below(r, nsizes)]);
	neap_tier_close(tier);
	switch (below(r, 5)) {
	case 0:
		return capacity ? capacity - 1 : 0;
	case 1:
		return capacity + 1;
	case 2:
		return capacity + unit - 1;
	case 3:
		return capacity + (uint64_t)below(r, (int64_t)unit);
	default:
		return capacity;
	}
}

/*
 * As many records as described are granted, of states and of tapes; not one more. Units are no
 * places for whole records, which the next sweep might take them for.
 */
static inline int64_t check_promise(struct neap_tier *tier, uint64_t bytes, uint64_t capacity)
{
	struct neap_tier_spec spec;
	neap_tier_describe(tier, bytes, &spec);
	int64_t n = (int64_t)(spec.capacity / bytes), units = neap__tier_units(tier, bytes);
	assert_true(!tier->ops.footprint || spec.capacity % bytes == 0);
	assert_int_equal(neap_tier_format(tier, bytes, n, NULL), 0);
	assert_int_equal(neap_tier_format(tier, bytes, n + 1, NULL), -ENOSPC);
	assert_int_equal(neap_tier_format(tier, bytes, 0, NULL), 0);
	assert_int_equal(neap_tier_format_tapes(tier, bytes, n, 0), 0);
	assert_int_equal(neap_tier_format_tapes(tier, bytes, n + 1, 0), -ENOSPC);
	assert_int_equal(neap_tier_format(tier, bytes, 0, NULL), 0);
	assert_int_equal(neap__tier_format_units(tier, bytes, n * units, 0), 0);
	assert_true(neap__tier_units_need(tier, bytes, n * units) <= capacity);
	struct neap__records states = {bytes, 0}, tapes = {bytes, n};
	assert_true(!tier->ops.unit || n == 0 ||
		    !neap__tier_fits(tier, states, tapes, &(struct neap__staging){0}));
	return n;
}

#endif
