/* SPDX-License-Identifier: Apache-2.0 */
/* batch_checks.h: checks a batch against the net and its objective. */
#ifndef NEAP_NN_BATCH_BATCH_CHECKS_H
#define NEAP_NN_BATCH_BATCH_CHECKS_H

struct neap_net;
struct neap_batch;

/*
 * Checks sizes, kinds of inputs and targets, and every event, number and label; windows check
 * theirs when they read them. net->objective must be set. 0 or NEAP_EUSAGE.
 */
int neap__batch_check(const struct neap_net *net, const struct neap_batch *batch);

#endif
