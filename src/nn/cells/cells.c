/* SPDX-License-Identifier: Apache-2.0 */
/* cells.c: the table of cells as an array, and the search in it. */
#include "nn/cells/cells.h"

#include <string.h>

static const struct neap__cell cells[] = {
#define NEAP__X(cell, traits)                                                                      \
	{#cell, traits, ((traits)&NEAP__READOUT) != 0,                                             \
		{&neap__##cell##_float, &neap__##cell##_double}},
	NEAP__CELLS(NEAP__X)
#undef NEAP__X
};

const struct neap__cell *neap__cell_find(const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++)
		if (strlen(cells[i].name) == length && memcmp(cells[i].name, name, length) == 0)
			return &cells[i];
	return NULL;
}

const struct neap__cell *neap__cell_at(int index)
{
	return index >= 0 && (size_t)index < sizeof cells / sizeof cells[0] ? &cells[index] : NULL;
}
