/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leak.h: decays a step of each unit, fixed or learned. A learned one is the sigmoid of a
 * real parameter, so that it stays between 0 and 1 (as the PLIF cell of Fang and others
 * 2021 has it, there one for a layer).
 *
 * The gradient of a parameter p is the sum over steps of dU_t dF/dp, F what a step makes of
 * U_{t-1} and so on: dU is there for all units, so that this asks for the membranes of all.
 * But what dU_t hands down through the leak is linear, and the sum may be taken the other
 * way round: with e = s' dS what enters dU_t at the units inside the surrogate's support,
 *   dp = sum over t of e_t P_t, P_t = J P_{t-1} + dF_t/dp
 * (J: the step's own derivative, spikes apart; eligibility traces). P goes forward with the
 * state, a row or more a parameter, and the tape holds it where it holds a membrane.
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

/* A row of traces [n] in the state: of each leak in turn, then what else the cell moves on. */
static inline real *neap__trace(const struct neap__at *at, int row)
{
	return (real *)(void *)(at->state + at->layer->traces_at) + (size_t)row * at->layer->n;
}

/* u = decay u + b, x = decay x */
void neap__leak_decay(const struct neap__at *at, int leak, real *u, const real *b);
void neap__leak_scale(const struct neap__at *at, int leak, real *x);
/* trace = decay trace + slope x: of u = decay u + ..., where x is the u before */
void neap__leak_trace(const struct neap__at *at, int leak, real *trace, const real *x);
/* The parameters' gradient += e[k] trace of the k-th active unit. */
void neap__leak_add(
	const struct neap__at *at, int leak, const struct neap__view *view, const real *e);

#endif
