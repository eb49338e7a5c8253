/* SPDX-License-Identifier: Apache-2.0 */
/* recording.h: one recording as a data set, encoded with settings of the caller's. */
#ifndef NEAP_DATA_FORMATS_RECORDING_H
#define NEAP_DATA_FORMATS_RECORDING_H

#include <neap/data.h>

/* Whether a name is that of a recording: of a sound file, or "-". */
int neap__recording_named(const char *name);
/*
 * Opens one, for neap__dataset_finish. NULL: the default settings. 0, NEAP_EFORMAT, NEAP_EUSAGE or
 * -errno.
 */
int neap__recording_open(
	struct neap_dataset **out, const char *name, const struct neap_encoder_options *encoder);

#endif
