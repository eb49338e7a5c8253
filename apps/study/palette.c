/* SPDX-License-Identifier: Apache-2.0 */
/*
 * palette.c: the colour and mark of a series, the same in every figure. A strategy's stand in
 * its row (core/strategy.h). The nine hues there are Paul Tol's "muted" scheme, which
 * colour-blind readers tell apart, and black; strategies that share a grey differ in their
 * marks.
 */
#include <stddef.h>
#include <string.h>
#include "base/svg.h"
#include "plan/strategy_table.h"
#include "study/figure.h"

/* Series with a name that are no strategy's. */
static const struct {
	const char *name;
	struct neap__shade shade;
} named[] = {
	{"reference", {"#000000", 7}}, /* bptt outside the budget, drawn as bptt */
	{"truncated", {"#BBBBBB", 17}},
};

/* For series without a name, by number. */
static const struct neap__shade others[] = {
	{NEAP__SVG_BLUE, 7},
	{NEAP__SVG_RED, 5},
	{NEAP__SVG_GREEN, 9},
	{NEAP__SVG_PINK, 11},
	{NEAP__SVG_ORANGE, 13},
	{NEAP__SVG_SKY, 6},
	{NEAP__SVG_INK, 4},
};

struct neap__shade neap__shade_of(const char *name, int index)
{
	const struct neap__strategy *row = neap__strategy_find(name);
	if (row && row->color)
		return (struct neap__shade){row->color, row->mark};
	for (size_t i = 0; name && i < sizeof named / sizeof named[0]; i++)
		if (strcmp(named[i].name, name) == 0)
			return named[i].shade;
	return others[(size_t)index % (sizeof others / sizeof others[0])];
}
