/* SPDX-License-Identifier: Apache-2.0 */
/* abi.c: the rows of libneap's headers, and their hash: FNV-1a, 64 bits, over their lines. */
#include "base/abi.h"
#include "base/print.h"

#include <neap/version.h>
#include "abi_rows.h"

static const struct neap__abi_row all[] = {ABI_ROWS};

const struct neap__abi_row *neap__abi_rows(int *count)
{
	*count = (int)(sizeof all / sizeof *all);
	return all;
}

const char *neap__abi_line(char room[NEAP__ABI_LINE], const struct neap__abi_row *row)
{
	neap__print(room, NEAP__ABI_LINE, "%s %s %lld %lld %s", row->kind, row->name,
		(long long)row->at, (long long)row->bytes, row->type);
	return room;
}

uint64_t neap_abi_hash(void)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	char room[NEAP__ABI_LINE];
	int count;
	const struct neap__abi_row *rows = neap__abi_rows(&count);
	for (int i = 0; i < count; i++)
		for (const char *c = neap__abi_line(room, &rows[i]); *c; c++)
			hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
	return hash;
}
