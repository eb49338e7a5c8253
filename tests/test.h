/* SPDX-License-Identifier: Apache-2.0 */
/* test.h: what every unit test includes first. */
#ifndef NEAP_TEST_H
#define NEAP_TEST_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

/*
 * Folder with recordings and trained nets: NEAP_DATA, or ../shared beside the
 * source tree. NULL where it is absent; the test then says so and skips.
 */
static inline const char *test_data(void)
{
	static char path[4096];
	const char *given = getenv("NEAP_DATA"), *source = getenv("NEAP_SOURCE");
	if (given)
		snprintf(path, sizeof path, "%s", given);
	else
		snprintf(path, sizeof path, "%s/../shared", source ? source : ".");
	return access(path, R_OK) == 0 ? path : NULL;
}

/* 1 under the address sanitizer, which makes programs several times slower. */
#if defined(__SANITIZE_ADDRESS__)
#define TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TEST_SANITIZED 1
#endif
#endif
#ifndef TEST_SANITIZED
#define TEST_SANITIZED 0
#endif

/* Folder with tables of exact costs, a part of the source tree. */
static inline const char *test_oracles(void)
{
	static char path[4096];
	const char *source = getenv("NEAP_SOURCE");
	snprintf(path, sizeof path, "%s/tests/oracles", source ? source : ".");
	return path;
}

/* Seed of a property test: NEAP_SEED, or `fallback`; printed. */
static inline uint64_t test_seed(uint64_t fallback)
{
	const char *given = getenv("NEAP_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : fallback;
	fprintf(stderr, "# NEAP_SEED=%llu\n", (unsigned long long)seed);
	return seed;
}

#endif
