/* SPDX-License-Identifier: Apache-2.0 */
/*
 * palette.c: one colour and mark for each strategy, in every figure. The nine hues are
 * Paul Tol's "muted" scheme, which colour-blind readers tell apart, and black; those who
 * share a grey differ in their marks.
 */
#include <stddef.h>
#include <string.h>
#include "study/figure.h"

static const struct neap__shade strategies[] = {
	{"bptt", "#000000", 7},
	{"standard", "#DDAA33", 5},
	{"remote", "#88CCEE", 9},
	{"hierarchical", "#AA4499", 11},
	{"double", "#332288", 13},
	{"revolve", "#117733", 4},
	{"async", "#CC6677", 6},
	{"stream", "#44AA99", 8},
	{"disk-revolve", "#999933", 10},
	{"auto", "#882255", 15},
	{"mixed", "#777777", 12},
	{"online", "#777777", 14},
	{"replay", "#777777", 1},
	{"multistage", "#777777", 2},
	{"periodic", "#777777", 3},
	{"h-revolve", "#777777", 16},
	{"truncated", "#BBBBBB", 17},
};

/* For series that are no strategy's: Okabe and Ito's. */
static const struct neap__shade others[] = {
	{"", "#0072B2", 7},
	{"", "#D55E00", 5},
	{"", "#009E73", 9},
	{"", "#CC79A7", 11},
	{"", "#E69F00", 13},
	{"", "#56B4E9", 6},
	{"", "#000000", 4},
};

const struct neap__shade *neap__shade_of(const char *strategy, int index)
{
	for (size_t i = 0; strategy && i < sizeof strategies / sizeof strategies[0]; i++)
		if (strcmp(strategies[i].name, strategy) == 0)
			return &strategies[i];
	return &others[(size_t)index % (sizeof others / sizeof others[0])];
}
