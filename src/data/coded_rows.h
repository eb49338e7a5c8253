/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coded_rows.h: a data set whose rows of numbers become spikes by a coding (coding/coding.h). To
 * all that reads it then, it is a set of spikes whose samples are rows of steps: it can be read
 * in part, and its memory does not grow with its samples.
 */
#ifndef NEAP_DATA_CODED_ROWS_H
#define NEAP_DATA_CODED_ROWS_H

#include "data/coding/coding.h"
#include "data/dataset.h"

/*
 * Makes spikes of the numbers of a set, after normalisation, whenever that is set. Samples are cut
 * at `most` steps (0: not), which latencies are meant for. A coding without a kind changes
 * nothing. 0; NEAP_EUSAGE where the inputs are spikes, where targets are of steps and a row lasts
 * several, or for too many channels or steps; -ENOMEM.
 */
int neap__rows_encode(struct neap_dataset *set, const struct neap__coding *coding, int64_t most);

/* The coding of a set, and where its samples are cut; no kind, where numbers stay numbers. */
struct neap__coding neap__rows_coding(const struct neap_dataset *set, int64_t *most);

#endif
