/* SPDX-License-Identifier: Apache-2.0 */
/* batch_checks.h: checks a batch against the net and the objective that it begins with. */
#ifndef NEAP_NN_BATCH_BATCH_CHECKS_H
#define NEAP_NN_BATCH_BATCH_CHECKS_H

struct neap_net;
struct neap_batch;

/*
 * Checks sizes and kinds, and every event, number and label of samples, but those of windows, which
 * check theirs when they read them. Uses net->objective. 0 or NEAP_EUSAGE.
 */
int neap__batch_check(const struct neap_net *net, const struct neap_batch *batch);

#endif
