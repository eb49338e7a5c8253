/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_bound.h: a lower bound for chains of unequal stages: what memory and channels force,
 * seen from the turn. Every stage runs before the turn, within X seconds, and is reversed
 * after it, within Y seconds. The tape that the backward of stage i uses
 *
 *     is in fast memory at the turn, or on its way there or from there: share k_i,
 *     or was recorded and written before the turn and is read after it: share s_i,
 *     or is recorded after the turn, for which stage i runs a second time: share z_i.
 *
 *     k_i, s_i, z_i      shares that add up to 1
 *     f_i, r_i, b_i      seconds to advance, to record and to reverse stage i
 *     A_i                bytes of the tape of stage i
 *     w_i, v_i           seconds to write and to read that tape
 *     o_i                transfer overhead of either, in seconds of computing
 *     M                  bytes that the gradient of x_L and the loss leave of the budget
 *     Q                  bytes on all tiers
 *
 *     sum k_i A_i <= M        sum s_i A_i <= Q
 *     X >= sum (k_i + s_i) r_i + z_i min(f_i, r_i) + s_i o_i      X >= sum s_i w_i
 *     Y >= sum b_i + z_i r_i + s_i o_i                            Y >= sum s_i v_i
 *
 * No schedule is faster than the least X + Y and the loss. Ours.
 */
#ifndef NEAP_PLAN_BOUND_STAGE_BOUND_H
#define NEAP_PLAN_BOUND_STAGE_BOUND_H

#include <neap/plan.h>

/* Seconds that no schedule of the problem beats; chain.stages must be set. */
double neap__stage_bound(const struct neap_problem *problem);

#endif
