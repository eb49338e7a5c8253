/* SPDX-License-Identifier: Apache-2.0 */
/* tape_transfer.h: PUT, GET and WAIT of tapes and logs. */
#ifndef NEAP_SWEEP_TRANSFERS_TAPE_TRANSFER_H
#define NEAP_SWEEP_TRANSFERS_TAPE_TRANSFER_H

#include "sweep/sweep_state.h"

int neap__tape_transfer_put(struct neap_sweep *s, const struct neap_action *action);
int neap__tape_transfer_get(struct neap_sweep *s, const struct neap_action *action);
/* Ends a ticket that is not in flight. */
int neap__tape_transfer_wait(struct neap_sweep *s, struct neap__ticket *ticket);
int neap__tape_transfer_forget(struct neap_sweep *s, const struct neap_action *action);
/* Issues GETs that waited for room, oldest first, as far as there is some. */
void neap__tape_transfer_resume(struct neap_sweep *s);
/* Frees tapes that came, or come, and are not waited for: their GETs are issued again later. */
void neap__tape_transfer_postpone(struct neap_sweep *s);
/* Before a run: empties the tables. */
void neap__tape_transfer_reset(struct neap_sweep *s);

#endif
