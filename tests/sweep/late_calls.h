/* SPDX-License-Identifier: Apache-2.0 */
/* late_calls.h: whether the calls of this test's models return before they are done (late_calls.c).
 */
#ifndef NEAP_TESTS_SWEEP_LATE_CALLS_H
#define NEAP_TESTS_SWEEP_LATE_CALLS_H

#include <neap/sweep.h>

int calls_are_late(void);
/* The model's callbacks behind ones that queue calls; *user becomes their model. */
struct neap_step_ops late_steps(const struct neap_step_ops *ops, void **user);
struct neap_stage_ops late_stages(const struct neap_stage_ops *ops, void **user);
struct neap_join_ops late_joins(const struct neap_join_ops *ops, void **user);
/* The callbacks of a model that late_steps returned, and other ones for it. */
struct neap_step_ops late_ops(const void *late);
struct neap_step_ops late_steps_again(const struct neap_step_ops *ops, void *late);
/* Ends the test if calls of this thread's last model are queued. */
void late_expect_none(const char *what);
/* The number of queued calls of this thread's last model. */
int late_queued(void);
/* Does the queued calls of this thread's last model. */
void late_drain(void);

#endif
