/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turn_program.h: a lower bound with slow tiers, from what crosses the turn, by a linear program
 * (linear_program.h). Its variables, each divided by T; those of the second column stand once for
 * each group of tiers:
 *
 *     X1, X2       seconds before and after the turn
 *     NM   nm      tapes in fast memory at the turn
 *     NK   nk      states in fast memory at the turn
 *     LA, LN  l    late states, see below
 *     EX   e       forward executions after the turn, less one for each step whose tape is
 *                  recorded after it: e2 - (T - a - nm), with e2 all executions after the turn
 *
 *     TA   a       tapes written before the turn and read after it
 *     TV   v       tapes recorded and written after the turn
 *     SH   h       states written before the turn and read after it
 *     SW   w       states written after the turn
 *     SR   R       reads of states after the turn, repeats counted
 *
 *     t T - e2 <= t a + (t-1) v + U + V      for every level t
 *     V = h (q_0 - Phi_{t-2}) + R Phi_{t-2}    or   h sum_{j<t} Phi_j + w sum_{j<t-1} Phi_j
 *
 * with Phi of the pool of P bytes of fast memory, sums over all tiers, and U and q of
 * turn_levels.h, in which l <= nk and l <= w. SW counts writes of states that are read at least
 * once, NM no tape that is counted in TA. docs/lower-bound.md has the proof.
 *
 * Each channel carries its transfers within X1 and X2, and the computation loses their overhead
 * (neap_tier_lost). The tiers of a group count as one with the sum of their rates and capacities,
 * which only helps; a group all of whose tiers wait for every transfer waits for its fastest tier.
 *
 * Bounded tiers of N bytes together are a group of their own, `near`, and the rest is `far`. Then a
 * second set of rows holds: a schedule of both is one of a machine with P + N bytes of fast memory
 * and the far tiers alone, where each transfer of a near tier is a copy. What is there twice takes
 * P + N bytes at most. So the rows hold with Phi of P + N, the far tiers' a, v, h, w and R, and
 * nm + a, nk + h of both fast memory and near tiers for nm, nk. Late states of these rows, LN, are
 * at most nk + h and at most the far tiers' w. There may be no far tier. Ours.
 */
#ifndef NEAP_PLAN_BOUND_TURN_PROGRAM_H
#define NEAP_PLAN_BOUND_TURN_PROGRAM_H

#include <neap/plan.h>

/*
 * The best optimum over groups of tiers in seconds, within rounding; 0 where it does not apply.
 * late 0: without the variable l, which is an estimate and no bound.
 */
double neap__turn_program_bound(const struct neap_problem *p, int64_t pool, int late);

#endif
