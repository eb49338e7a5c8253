/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leak.h: decays a step of each unit, fixed or learned. A learned decay is the sigmoid of a real
 * parameter p, so that it stays between 0 and 1 (as in the PLIF cell of Fang and others 2021, which
 * has one for a layer).
 *
 * The gradient of p is the sum over steps of dU_t dF_t/dp, F_t the step as a function of U_{t-1}
 * and p. dU is not 0 for all units, so that this sum needs the membranes of all. But what dU_t
 * hands down through the leak is linear, and the sum may be taken the other way round: with
 * e = s' dS, which enters dU at the units inside the support alone,
 *     dp = sum over t of e_t P_t, P_t = J_t P_{t-1} + dF_t/dp
 * where J_t is the derivative of the step by its membrane, spikes held fixed (eligibility traces).
 * P moves forward with the state, a row or more a parameter, and the tape holds P where it holds a
 * membrane. A prime is the derivative by the parameter: beta' = d beta / dp.
 */
#ifndef NEAP_NN_CELLS_LEAK_H
#define NEAP_NN_CELLS_LEAK_H

#include "nn/core/precision.h"

#define neap__leak_decay NEAP_R(neap__leak_decay)
#define neap__leak_scale NEAP_R(neap__leak_scale)
#define neap__leak_trace NEAP_R(neap__leak_trace)
#define neap__leak_add NEAP_R(neap__leak_add)

#define neap__leak_begin NEAP_R(neap__leak_begin)

/* A row of struct neap__precision_ops: the decays of a batch, from the parameters. */
void neap__leak_begin(struct neap_net *net, const struct neap__layer *layer);

/* A row of traces [n] in the state: of each leak in turn, then what else the cell needs. */
static inline real *neap__trace(const struct neap__at *at, int row)
{
	return (real *)(void *)(at->state + at->layer->traces_at) + (size_t)row * at->layer->n;
}

/* u = decay u + b, x = decay x */
void neap__leak_decay(const struct neap__at *at, int leak, real *u, const real *b);
void neap__leak_scale(const struct neap__at *at, int leak, real *x);
/* trace = decay trace + slope x: the trace of u = decay u + ..., x the u before the step */
void neap__leak_trace(const struct neap__at *at, int leak, real *trace, const real *x);
/* The gradient of the parameters += e[k] times the trace of the k-th active unit. */
void neap__leak_add(
	const struct neap__at *at, int leak, const struct neap__view *view, const real *e);

#endif
