/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_problems.c: chains of 10^6 steps. The first ones are usual: a spiking net, a
 * time-stepping code, a disk or a second memory as slow tier. The others are slow to plan:
 * transfers that reach a steady state late or never, few slots, millions of slots, copies that
 * take time, full tiers.
 */
#include "bench/plan_problems.h"

#define MILLION 1000000
#define KIB 1024
#define MIB (1024 * 1024)
#define GIB (1024.0 * 1024 * 1024)

/* A problem of 10^6 steps: bytes of state and tape, seconds of the three kinds of step. */
#define CHAIN(s, a, f, r, b)                                                                       \
	.size = sizeof(struct neap_problem), .chain = {.steps = MILLION,                           \
						     .state = (s),                                 \
						     .tape = (a),                                  \
						     .adjoint = (s),                               \
						     .live = (s),                                  \
						     .advance = (f),                               \
						     .record = (r),                                \
						     .backward = (b)}

static const struct neap__plan_problem problems[] = {
	{"spiking net, 64 MiB, disk",
		{CHAIN(64 * KIB, 256 * KIB, 1e-3, 1e-3, 2e-3), .memory = 64 * MIB, .ntiers = 1,
			.tiers = {{.name = "disk",
				.capacity = NEAP_INFINITE,
				.write_rate = 2 * GIB,
				.read_rate = 1 * GIB,
				.write_fixed = 1e-4,
				.read_fixed = 1e-4}}}},
	{"wave equation, ten states, disk",
		{CHAIN(8 * MIB, 8 * MIB, 5e-3, 5e-3, 1e-2), .memory = 80 * MIB, .ntiers = 1,
			.tiers = {{.name = "disk",
				.capacity = NEAP_INFINITE,
				.write_rate = 1 * GIB,
				.read_rate = 1 * GIB,
				.flags = NEAP_TIER_DUPLEX}}}},
	{"two tiers, the first one full",
		{CHAIN(MIB, 300 * KIB, 1e-3, 1.3e-3, 2e-3), .memory = 16 * MIB, .ntiers = 2,
			.tiers = {{.name = "ram",
					  .capacity = 4096 * (uint64_t)MIB,
					  .write_rate = 10 * GIB,
					  .read_rate = 10 * GIB,
					  .flags = NEAP_TIER_DUPLEX},
				{.name = "disk",
					.capacity = NEAP_INFINITE,
					.write_rate = 0.5 * GIB,
					.read_rate = 0.5 * GIB,
					.write_fixed = 1e-3,
					.read_fixed = 1e-3}}}},
	{"two tapes, writes a hair slower than a chunk",
		{CHAIN(1000, 500, 1, 1, 2), .memory = 3900, .ntiers = 1,
			.tiers = {{.name = "tier",
				.capacity = NEAP_INFINITE,
				.write_fixed = 2.00001,
				.read_fixed = 0.5,
				.flags = NEAP_TIER_DUPLEX}}}},
	{"writes 75 steps long, small tapes",
		{CHAIN(1000, 385, 1, 1.25, 2), .memory = 5545, .ntiers = 1,
			.tiers = {{.name = "tier",
				.capacity = NEAP_INFINITE,
				.write_fixed = 75,
				.read_fixed = 1.4}}}},
	{"a million slots, tapes of 24 states", {CHAIN(KIB, 24 * KIB, 1e-4, 1e-4, 4e-5),
							.memory = 1024 * (uint64_t)MIB, .ntiers = 1,
							.tiers = {{.name = "tier",
								.capacity = NEAP_INFINITE,
								.write_fixed = 4e-3,
								.read_fixed = 3.5e-3}}}},
	{"copies into slots cost, two synchronous tiers",
		{CHAIN(1000, 100, 2, 4, 4), .memory = 132000, .ntiers = 2,
			.tiers = {{.name = "near",
					  .capacity = 1000000,
					  .write_fixed = 0.6,
					  .read_fixed = 37,
					  .flags = NEAP_TIER_SYNC},
				{.name = "far",
					.capacity = NEAP_INFINITE,
					.write_fixed = 60,
					.read_fixed = 60,
					.flags = NEAP_TIER_SYNC}}}},
	{"classic: 30 slots, unlimited second tier", {.size = sizeof(struct neap_problem),
							     .chain = {.steps = MILLION,
								     .state = 1,
								     .advance = 1,
								     .record = 1,
								     .backward = 2,
								     .flags = NEAP_CHAIN_CLASSIC},
							     .memory = 30,
							     .ntiers = 1,
							     .tiers = {{.name = "disk",
								     .capacity = NEAP_INFINITE,
								     .write_fixed = 5,
								     .read_fixed = 5,
								     .flags = NEAP_TIER_SYNC}}}},
};

const struct neap__plan_problem *neap__million_problems(int *n)
{
	*n = (int)(sizeof problems / sizeof problems[0]);
	return problems;
}
