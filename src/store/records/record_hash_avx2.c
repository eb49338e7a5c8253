/* SPDX-License-Identifier: Apache-2.0 */
/* record_hash_avx2.c: XXH3 compiled in and for AVX2; record_hash_inlined.c chooses it. */
#include "store/records/record.h"

void neap__record_hash_avx2(XXH3_state_t *state, const void *data, size_t bytes)
{
	XXH3_64bits_update(state, data, bytes);
}
