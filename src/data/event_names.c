/* SPDX-License-Identifier: Apache-2.0 */
/* event_names.c: the table of names (event_names.h). */
#include "data/event_names.h"

#include <stddef.h>

static const char *const t[] = {"t", "times", "timestamp", "timestamps", "ts", "time", NULL};
static const char *const x[] = {"x", "xs", "units", NULL}, *const y[] = {"y", "ys", NULL};
static const char *const p[] = {"p", "polarity", "polarities", "pol", "ps", NULL};
const char *const *const neap__event_names[NEAP__EVENT_COLUMNS] = {t, x, y, p};

/* numpy.savez calls an array without a name arr_0; Metavision calls its events CD/events. */
const char *const neap__event_prefixes[] = {"", "events/", "arr_0/", "CD/events/", "0/", NULL};
