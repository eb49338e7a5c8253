/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward.h: ranges of steps of one group, forward: with tapes, with a log, or with neither. A step
 * goes layer by layer over the samples in their order, so that a row of weights serves all of them,
 * and sums over samples do not depend on where a range was cut.
 */
#ifndef NEAP_NN_CORE_FORWARD_H
#define NEAP_NN_CORE_FORWARD_H

#include "nn/core/precision.h"

#define neap__start_bias NEAP_R(neap__start_bias)
#define neap__arriving NEAP_R(neap__arriving)
#define neap__inputs_of NEAP_R(neap__inputs_of)
#define neap__group_alive NEAP_R(neap__group_alive)
#define neap__group_step NEAP_R(neap__group_step)
#define neap__tapes_begin NEAP_R(neap__tapes_begin)
#define neap__tapes_end NEAP_R(neap__tapes_end)
#define neap__advance_group NEAP_R(neap__advance_group)
#define neap__record_group NEAP_R(neap__record_group)
#define neap__log_group NEAP_R(neap__log_group)

/* A `start` of struct neap__cell_code: sums that begin with the bias. */
void *neap__start_bias(struct neap__at *at, void *row);

/* What arrives at the first layer. */
struct neap__list neap__inputs_of(const struct neap_net *net, const struct neap__at *at);
/*
 * What of the outputs `list` of a source arrives at a layer after dropout and max pooling, in
 * scratch of the sample's slot.
 */
struct neap__list neap__arriving(const struct neap__at *at, const struct neap__layer *layer,
	int source, struct neap__list list);

/* Fills in group->at for the samples that have a step t, in their order; returns how many. */
int neap__group_alive(struct neap_net *net, struct neap__group *group, int64_t t);

/*
 * Moves all samples by one step; returns the bytes of tape. Where `walked` is not NULL, hidden
 * layers get no products: `walked` ends the step of a sample in such a layer (replay_steps.c).
 */
size_t neap__group_step(struct neap_net *net, struct neap__group *group, unsigned char *state,
	int64_t t, int first, unsigned char *tape,
	size_t (*walked)(struct neap__at *at, unsigned char *tape));

/* Clears the table of offsets before the tapes of n steps; returns its bytes. */
size_t neap__tapes_begin(unsigned char *tape, int64_t n);
/* Pads the `bytes` written to a multiple of 8, with zeros; returns that. */
size_t neap__tapes_end(unsigned char *tape, size_t bytes);

/* Rows of struct neap__precision_ops. */
void neap__advance_group(struct neap_net *net, struct neap__group *group, unsigned char *state,
	int64_t t0, int64_t t1, int first);
size_t neap__record_group(struct neap_net *net, struct neap__group *group, unsigned char *state,
	int64_t t0, int64_t t1, int first, unsigned char *tape);
size_t neap__log_group(struct neap_net *net, struct neap__group *group, unsigned char *state,
	int64_t t0, int64_t t1, int first, unsigned char *log);

#endif
