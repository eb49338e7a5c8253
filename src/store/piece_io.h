/* SPDX-License-Identifier: Apache-2.0 */
/* piece_io.h: the I/O thread's work: moves the pieces of requests through the staging. */
#ifndef NEAP_STORE_PIECE_IO_H
#define NEAP_STORE_PIECE_IO_H

#include "store/mover_state.h"

/* Begins the pieces that can begin and waits for one to end. 0 when there was nothing to do. */
int neap__piece_io_run(struct neap__mover *mover);
/* Ends what is RUNNING with -ECANCELED: no more pieces of it begin. */
void neap__piece_io_stop(struct neap__mover *mover);

#endif
