/* SPDX-License-Identifier: Apache-2.0 */
/* spans.c: spans of numbers as options write them. */
#include "cli.h"

#include <math.h>
#include <string.h>

int cli_parse_span(double *low, double *high, const char *text)
{
	char first[64];
	size_t n = strcspn(text, ":");
	double number;

	if (n >= sizeof first)
		return -1;
	memcpy(first, text, n);
	first[n] = '\0';
	if (neap__units_number(&number, first) < 0)
		return -1;
	*low = text[n] ? number : 1 - number;
	*high = 1 + number;
	if (text[n] && neap__units_number(high, text + n + 1) < 0)
		return -1;
	return *low > 0 && *low <= *high ? 0 : -1;
}
