/* SPDX-License-Identifier: Apache-2.0 */
/* record_hash_wide.c: XXH3 with the widest vectors of this processor (x86): twice as fast. */
#include "store/records/record.h"

#include <xxh_x86dispatch.h>

void neap__record_hash(XXH3_state_t *state, const void *data, size_t bytes)
{
	XXH3_64bits_update_dispatch(state, data, bytes);
}
