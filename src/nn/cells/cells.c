/* SPDX-License-Identifier: Apache-2.0 */
/* cells.c: the table of cells as an array, and the search in it. */
#include "nn/cells/cells.h"
#include "base/fail.h"
#include "base/suggest.h"
#include "base/text.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

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

/* Names of other libraries, and of kinds of nets, whose spelling is closer to another cell. */
static const struct {
	const char *name, *cell;
} known_as[] = {{"snn", "lif"}, {"spiking", "lif"}, {"leaky", "lif"}, {"synaptic", "cubalif"},
	{"iaf", "lif"}, {"if", "lif"}, {"srnn", "lif"}, {"rsnn", "lif"}, {"lsnn", "alif"},
	{"elman", "rnn"}, {"dense", "li"}, {"linear", "li"}, {"fc", "li"}};

int neap__cell_unknown(const char *name, int length)
{
	struct neap__text names = {0};
	struct neap__suggestion meant = {.text = name, .length = (size_t)length};
	char room[80];
	int letters = length;

	while (letters > 0 && isdigit((unsigned char)name[letters - 1]))
		letters--;
	if (letters < length && neap__cell_find(name, (size_t)letters))
		return neap__fail(NEAP_EUSAGE,
			"--net: unknown cell '%.*s'. A colon precedes the size; did you mean "
			"'%.*s:%.*s'? "
			"Example: gru:64,li",
			length, name, letters, name, length - letters, name + letters);
	for (int i = 0; neap__cell_at(i); i++) {
		neap__suggest(&meant, neap__cell_at(i)->name);
		neap__text_add(&names, "%s%s", i ? ", " : "", neap__cell_at(i)->name);
	}
	for (size_t i = 0; i < sizeof known_as / sizeof known_as[0]; i++)
		if (strlen(known_as[i].name) == (size_t)length &&
			strncasecmp(name, known_as[i].name, (size_t)length) == 0)
			meant.name = known_as[i].cell;
	int rc = neap__fail(NEAP_EUSAGE,
		"--net: unknown cell '%.*s'; choose one of %s%s Example: gru:64,li", length, name,
		names.data ? names.data : "", *neap__did_you_mean(room, &meant, "") ? room : ".");
	neap__text_free(&names);
	return rc;
}
