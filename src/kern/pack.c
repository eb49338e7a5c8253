/* SPDX-License-Identifier: Apache-2.0 */
/* pack.c: copies of weights in strips of columns, so that the weights of a strip lie together. */
#include "kern/kern.h"

#include <string.h>

void neap__pack_part(real *packed, const real *w, int rows, int n, int strip, int first, int all)
{
	packed += (size_t)first * strip;
	for (int from = 0; from < n; from += strip, packed += (size_t)(all - rows) * strip)
		for (int j = 0; j < rows; j++, packed += strip) {
			int most = n - from < strip ? n - from : strip;
			memset(packed, 0, (size_t)strip * sizeof(real));
			memcpy(packed, w + (size_t)j * n + from, (size_t)most * sizeof(real));
		}
}

void neap__pack(real *packed, const real *w, int rows, int n, int strip)
{
	neap__pack_part(packed, w, rows, n, strip, 0, rows);
}

/* Reads w in its order; what a strip of rows writes stays near. */
void neap__pack_turned(real *packed, const real *w, int rows, int n, int strip)
{
	for (int from = 0; from < rows; from += strip, packed += (size_t)n * strip) {
		int most = rows - from < strip ? rows - from : strip;
		if (most < strip)
			memset(packed, 0, (size_t)n * strip * sizeof(real));
		for (int j = 0; j < most; j++)
			for (int k = 0; k < n; k++)
				packed[(size_t)k * strip + j] = w[(size_t)(from + j) * n + k];
	}
}
