/* SPDX-License-Identifier: Apache-2.0 */
/* guard_memory.h: whether the arenas of this test lie in memory that nobody may touch
 * (guard_memory.c). */
#ifndef NEAP_TESTS_SWEEP_GUARD_MEMORY_H
#define NEAP_TESTS_SWEEP_GUARD_MEMORY_H

#include <neap/sweep.h>

int memory_is_guarded(void);
/* Where the byte of an arena can be touched; another address stays as it is. */
void *guarded_address(const void *at);
/* Has the tiers of a sweep checked in the same way. */
void guard_tiers(const struct neap_sweep_options *options);

#endif
