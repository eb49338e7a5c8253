/* SPDX-License-Identifier: Apache-2.0 */
/*
 * array_labels.h: classes of the samples in a file of arrays: `labels` are numbers, which `classes`
 * or --classes name, or texts, which name the classes themselves if nothing else does.
 */
#ifndef NEAP_DATA_EVENTS_ARRAY_LABELS_H
#define NEAP_DATA_EVENTS_ARRAY_LABELS_H

#include "data/events/columns.h"
#include "data/events/event_source.h"

enum { NEAP__MOST_LABELS = 1 << 26 };

/*
 * Sets the source's classes and *label [samples], which is freed by the caller in any case. 0,
 * NEAP_EFORMAT, NEAP_EUSAGE or -ENOMEM.
 */
int neap__array_labels_read(double **label, struct neap__event_source *source,
	struct neap__columns *columns, const struct neap_event_options *options);

#endif
