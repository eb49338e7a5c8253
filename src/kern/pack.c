/* SPDX-License-Identifier: Apache-2.0 */
#include "kern/kern.h"

#include <string.h>

/* Row by row within a strip, so that a strip's weights lie together. */
void neap__walk_pack(real *packed, const real *w, int rows, int n, int strip)
{
	for (int from = 0; from < n; from += strip)
		for (int j = 0; j < rows; j++, packed += strip) {
			int most = n - from < strip ? n - from : strip;
			memset(packed, 0, (size_t)strip * sizeof(real));
			memcpy(packed, w + (size_t)j * n + from, (size_t)most * sizeof(real));
		}
}
