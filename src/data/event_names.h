/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_names.h: names that columns of events go by in arrays, records and tables: neap's own, and
 * those of dv-processing, snnTorch, norse and other libraries.
 */
#ifndef NEAP_DATA_EVENT_NAMES_H
#define NEAP_DATA_EVENT_NAMES_H

enum { NEAP__EVENT_T, NEAP__EVENT_X, NEAP__EVENT_Y, NEAP__EVENT_P, NEAP__EVENT_COLUMNS };

/* By column, its names; NULL ends. `units` are channels without pixels. */
extern const char *const *const neap__event_names[NEAP__EVENT_COLUMNS];
/* What is in front of the names in a file with groups or records; NULL ends. The last is that of
 * the first of several samples. */
extern const char *const neap__event_prefixes[];

#endif
