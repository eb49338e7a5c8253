/* SPDX-License-Identifier: Apache-2.0 */
/* sample_extent.h: the size of a sample that is read in part, before and after augmentation. */
#ifndef NEAP_DATA_AUGMENT_SAMPLE_EXTENT_H
#define NEAP_DATA_AUGMENT_SAMPLE_EXTENT_H

#include <stdint.h>

/* Size of a sample that can be read in part. */
struct neap__sample_extent {
	int64_t count;	 /* events */
	double duration; /* seconds; 0: unknown */
	double last;	 /* time of the last event, where the duration is unknown */
};

#endif
