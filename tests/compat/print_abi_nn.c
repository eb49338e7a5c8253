/* SPDX-License-Identifier: Apache-2.0 */
/* print_abi_nn.c: as python/print_abi.c, for the headers of libneap-nn and libneap-cuda, without a
 * hash. */
#include "base/abi.h"

#include <neap/cuda.h>
#include <neap/ports.h>
#include <neap/train.h>
#include <stdio.h>
#include "abi_rows_nn.h"

int main(void)
{
	static const struct neap__abi_row rows[] = {ABI_ROWS};
	char room[NEAP__ABI_LINE];
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		printf("%s\n", neap__abi_line(room, &rows[i]));
	return 0;
}
