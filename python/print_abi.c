/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_abi.c: writes what programs depend on in libneap's headers as text, a row a line (src/base/
 * abi.h), and last its hash. make_abi.py makes the structs of the Python package of it, and a test
 * compares it with tests/compat/abi.txt.
 */
#include "base/abi.h"

#include <neap/version.h>
#include <inttypes.h>
#include <stdio.h>

int main(void)
{
	char room[NEAP__ABI_LINE];
	int count;
	const struct neap__abi_row *rows = neap__abi_rows(&count);
	for (int i = 0; i < count; i++)
		printf("%s\n", neap__abi_line(room, &rows[i]));
	printf("hash %016" PRIx64 "\n", neap_abi_hash());
	return 0;
}
