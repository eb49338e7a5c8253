/* SPDX-License-Identifier: Apache-2.0 */
/* record_hash.c: XXH3 with the vectors that the compiler may use. */
#include "store/records/record.h"

void neap__record_hash(XXH3_state_t *state, const void *data, size_t bytes)
{
	XXH3_64bits_update(state, data, bytes);
}
