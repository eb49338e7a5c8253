/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_options.h: the options that chains, stages and joins share. */
#ifndef NEAP_SWEEP_SWEEP_OPTIONS_H
#define NEAP_SWEEP_SWEEP_OPTIONS_H

#include <neap/sweep.h>

/* NEAP_EUSAGE where a number of seconds is negative, not a number, or infinite. */
int neap__sweep_options_check(const struct neap_sweep_options *options);

/* The name of the strategy becomes the table's own: the caller's string may go after create. */
void neap__sweep_options_own(struct neap_sweep_options *options);

#endif
