/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_hash_inlined.c: XXH3 compiled in (x86), with the wider of two kinds of vectors that this
 * processor has. The state of a hash is the same for both.
 */
#include "store/records/record.h"

void neap__record_hash(XXH3_state_t *state, const void *data, size_t bytes)
{
	if (__builtin_cpu_supports("avx2"))
		neap__record_hash_avx2(state, data, bytes);
	else
		XXH3_64bits_update(state, data, bytes);
}
