/* SPDX-License-Identifier: Apache-2.0 */
/*
 * late_events.h: data sets of spikes whose times do not begin at 0, as those of a clock. The steps
 * in front of the first spike are run, and hold nothing.
 */
#ifndef NEAP_DATA_EVENTS_LATE_EVENTS_H
#define NEAP_DATA_EVENTS_LATE_EVENTS_H

#include "data/dataset.h"

/* 1: most of the first samples have no spike in the first half of their duration. */
int neap__begin_late(struct neap_dataset *set);
/* 1 and the warning about such a set, or 0; of_model: of one that a model answers. */
int neap__late_doubt(char line[NEAP__TAKEN_TEXT], struct neap_dataset *set, int of_model);
/* 1: one of the first samples begins later than at 0. */
int neap__begin_behind_0(struct neap_dataset *set);

#endif
