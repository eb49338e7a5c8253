/* SPDX-License-Identifier: Apache-2.0 */
/* neap.h: includes all of libneap. For networks, data and training include neap/train.h. */
#ifndef NEAP_NEAP_H
#define NEAP_NEAP_H

#include <neap/version.h>
#include <neap/status.h>
#include <neap/chain.h>
#include <neap/plan.h>
#include <neap/tier.h>
#include <neap/sweep.h>
#include <neap/trace.h>
#include <neap/machine.h>

#endif
