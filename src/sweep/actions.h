/* SPDX-License-Identifier: Apache-2.0 */
/* actions.h: performs one action of a schedule. */
#ifndef NEAP_SWEEP_ACTIONS_H
#define NEAP_SWEEP_ACTIONS_H

#include "sweep/sweep_state.h"

/* Performs the action, whatever it is. NEAP_EILLEGAL where the sweep's state does not allow it. */
int neap__action_perform(struct neap_sweep *s, const struct neap_action *action);

/* GET of a state, which moves up if its slot is not the lowest free one. */
int neap__transfer_get(struct neap_sweep *s, const struct neap_action *action);

#endif
