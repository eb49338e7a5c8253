/* SPDX-License-Identifier: Apache-2.0 */
/* loader_ahead.h: the batch that a loader will give next, and loaders that read nothing ahead. */
#ifndef NEAP_DATA_LOADER_AHEAD_H
#define NEAP_DATA_LOADER_AHEAD_H

#include <neap/data.h>

/*
 * Returns the batch that the next call of neap_loader_next gives, if it is made already and its
 * events are in memory; else NULL. Valid as that call's batch, unless the loader is started again.
 */
const struct neap_batch *neap__loader_ahead(struct neap_loader *loader);

/*
 * Makes no batch after the one given last, which stays valid, until the loader is started again:
 * its thread then takes no processor from what is measured with that batch. Waits for the sample
 * that is being read.
 */
void neap__loader_rest(struct neap_loader *loader);

#endif
