/* SPDX-License-Identifier: Apache-2.0 */
/* sizes.c: reading and writing sizes (sizes.h). */
#include "nn/sizes.h"
#include "base/text.h"

enum { COUNT_MOST = 3, SIZE_MOST = 65536 };

int neap__sizes_read(int *to, int count, int least, const char *text, int length)
{
	int size[COUNT_MOST] = {0}, found = 0, digits = 0;

	for (int i = 0; i < length; i++) {
		int is_digit = text[i] >= '0' && text[i] <= '9';
		if (!is_digit && (text[i] != 'x' || !digits || ++found >= count))
			return 0;
		digits = is_digit;
		if (is_digit)
			size[found] = size[found] * 10 + (text[i] - '0');
		if (size[found] > SIZE_MOST)
			return 0;
	}
	if (!digits || (found + 1 != count && !(count == 2 && found == 0)))
		return 0;
	if (found + 1 != count)
		size[1] = size[0];
	for (int i = 0; i < count; i++)
		if (size[i] < least)
			return 0;
	for (int i = 0; i < count; i++)
		to[i] = size[i];
	return 1;
}

void neap__sizes_write(struct neap__text *text, const int *sizes, int count)
{
	int same = count == 2 && sizes[0] == sizes[1];

	for (int i = 0; i < count - same; i++)
		neap__text_add(text, "%s%d", i ? "x" : "", sizes[i]);
}
