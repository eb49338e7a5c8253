/* SPDX-License-Identifier: Apache-2.0 */
/*
 * abi.h: what programs depend on in the public headers, row by row: sizes of structs, offsets and
 * types of their fields, values of constants, types of functions. tools/abi_rows.py finds the rows
 * in the headers as the library is built; the compiler fills in the numbers.
 */
#ifndef NEAP_BASE_ABI_H
#define NEAP_BASE_ABI_H

#include <stdint.h>

struct neap__abi_row {
	const char *kind; /* "struct", "field", "constant" or "function" */
	const char *name; /* of a field: STRUCT.FIELD */
	const char *type; /* as in the header, without names of arguments; "-": none */
	int64_t at;	  /* of a field: its offset in bytes; of a constant: its value */
	int64_t bytes;	  /* of a struct or field */
};

/* The rows of libneap's headers, in their order, `*count` of them. */
const struct neap__abi_row *neap__abi_rows(int *count);

#define NEAP__ABI_LINE 512 /* bytes: the longest type takes less than half */

/* A row as a line of text without its end: "field neap_action.kind 0 1 uint8_t". Returns room. */
const char *neap__abi_line(char room[NEAP__ABI_LINE], const struct neap__abi_row *row);

#endif
